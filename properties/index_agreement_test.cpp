// The index and the store: what an owner that has gone is still believed, and what a probe withdraws.
#include <gtest/gtest.h>

#include "holdfast/fakes/memory_files.hpp"
#include "session_fixture.hpp"

namespace holdfast {
namespace {

using testing::_;
using testing::Return;

class IndexAgreementTest : public SessionTest {
 protected:
  void write(const std::vector<std::string>& actions) {
    Session session = open(spec);
    generate_all(session, actions);
    settle();
  }
  void lose_blob(const std::vector<std::string>& actions) {
    for (std::uint32_t layer = 0; layer < 2; ++layer) {
      for (const KvPart part : {KvPart::k, KvPart::v}) {
        ASSERT_TRUE(owner.evict(kv_key(kv_locator(node(spec, actions)->key()), layer, part)));
      }
    }
  }
  // Another session's path tells of the new owner.
  void restart_owner_and_tell() {
    owner.restart();
    Session other = open(world_spec(kFullRing, 64, "other"));
    ASSERT_TRUE(generate(other, "0").has_value());
  }
  std::vector<Error> errors;
  const WorldSpec spec = world_spec(kFullRing);
};

TEST_F(IndexAgreementTest, APutAsksForWhatAnOwnerThatHasGoneHad) {
  write({"0", "1"});
  restart_owner_and_tell();
  Session session = open(spec);
  for (const char* action : {"0", "1"}) {
    const Result<IngestReceipt> receipt = generate(session, action);
    ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
    EXPECT_EQ(receipt->kv, IngestVerdict::stored);
    EXPECT_EQ(receipt->latent, IngestVerdict::stored);
  }
  settle();
  Session reader = open(spec);
  EXPECT_EQ(resume(reader, {"0", "1"})->matched_chunks, 2U);
}

TEST_F(IndexAgreementTest, AHintThatIsThereIsConfirmedAndMovesNothing) {
  write({"0"});
  fakes::MemoryFiles files;
  ASSERT_TRUE(manager.save(files, "snapshot").has_value());
  TestStore next_store{runtime, plan_options()};
  TestManager next{runtime, next_store, {}};
  ASSERT_TRUE(next.load(files, "snapshot").has_value());
  TestEngine engine(device, stream, spec);
  auto session = *TestBinding::open(next, engine, {spec, 4, 3});
  engine.generate("|0");
  EXPECT_CALL(fluxon, get_start(_, _, _)).Times(2);
  EXPECT_CALL(fluxon, local_fast_put_start).Times(0);
  Result<IngestReceipt> receipt = session->on_chunk_finalized("0", absorbed);
  ASSERT_TRUE(receipt.has_value());
  EXPECT_EQ(receipt->kv, IngestVerdict::already_ready);
  const Node* hint = next.find(node_key(spec.root, "0"));
  EXPECT_TRUE(hint->blob().confirmed);
  EXPECT_TRUE(hint->skeleton().confirmed);
  session.reset();
  session = *TestBinding::open(next, engine, {spec, 4, 3});
  receipt = session->on_chunk_finalized("0", absorbed);
  EXPECT_EQ(receipt->latent, IngestVerdict::already_ready);
}

TEST_F(IndexAgreementTest, AFailedProbeOfAHintWithdrawsNothing) {
  write({"0"});
  restart_owner_and_tell();
  Session session = open(spec);
  ON_CALL(fluxon, get_start(_, _, _)).WillByDefault(Return(fluxon_error(FluxonErrc::network, "get_start")));
  const Result<IngestReceipt> receipt = generate(session, "0");
  ASSERT_TRUE(receipt.has_value());
  EXPECT_EQ(receipt->kv, IngestVerdict::already_ready);
  EXPECT_EQ(absorbed.size(), 2U);
  EXPECT_TRUE(ready(spec, {"0"}));
}

TEST_F(IndexAgreementTest, WhatWentWithItsOwnerLeavesNothingToBeRemoved) {
  write({"0"});
  restart_owner_and_tell();
  Session reader = open(spec);
  EXPECT_EQ(resume(reader, {"0"})->matched_chunks, 0U);
  EXPECT_FALSE(ready(spec, {"0"}));
  EXPECT_FALSE(node(spec, {"0"})->skeleton().ready);
  EXPECT_EQ(manager.counts().unsettled, 0U);
}

TEST_F(IndexAgreementTest, WhatIsLeftOfALostBlobIsRemoved) {
  write({"0"});
  ASSERT_TRUE(owner.evict(kv_key(kv_locator(node(spec, {"0"})->key()), 1, KvPart::v)));
  manager.probe_all(errors);
  EXPECT_TRUE(errors.empty());
  EXPECT_FALSE(ready(spec, {"0"}));
  EXPECT_TRUE(node(spec, {"0"})->skeleton().ready);
  EXPECT_EQ(manager.counts().unsettled, 4U);
  clock.advance_by(kSettleBound);
  manager.pump(errors);
  EXPECT_EQ(owner.stored_keys(), 1U);
}

TEST_F(IndexAgreementTest, AProbeComesToEveryNodeInTurn) {
  write({"0", "1", "2"});
  lose_blob({"0", "1", "2"});
  manager.probe(2, errors);
  EXPECT_TRUE(ready(spec, {"0", "1", "2"}));
  manager.probe(2, errors);
  EXPECT_FALSE(ready(spec, {"0", "1", "2"}));
  lose_blob({"0"});
  manager.probe(2, errors);
  EXPECT_TRUE(ready(spec, {"0"})) << "the round went on behind it";
  manager.probe(2, errors);
  EXPECT_FALSE(ready(spec, {"0"}));
  EXPECT_TRUE(ready(spec, {"0", "1"}));
}

TEST_F(IndexAgreementTest, APumpProbesAsManyNodesAsItsOptionSays) {
  TestManager probing{runtime, store, {.pump_probes_max = 1}};
  TestEngine engine(device, stream, spec);
  auto session = *TestBinding::open(probing, engine, {spec, 4, 3});
  for (const char* action : {"0", "1"}) {
    engine.generate(std::string("|") + action);
    ASSERT_TRUE(session->on_chunk_finalized(action, absorbed).has_value());
  }
  settle();
  EXPECT_CALL(fluxon, get_start(_, _, _)).Times(2);  // of a latent and a blob
  probing.pump(errors);
  EXPECT_TRUE(errors.empty());
}

TEST_F(IndexAgreementTest, AFailedProbeWithdrawsNothingAndIsTold) {
  write({"0"});
  ON_CALL(fluxon, get_start(_, _, _)).WillByDefault(Return(fluxon_error(FluxonErrc::network, "get_start")));
  manager.probe_all(errors);
  EXPECT_EQ(errors.size(), 2U);
  EXPECT_TRUE(ready(spec, {"0"}));
  EXPECT_TRUE(node(spec, {"0"})->skeleton().ready);
}

}  // namespace
}  // namespace holdfast
