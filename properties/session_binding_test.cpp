// Sessions through the two hooks: what is stored, what is restored, what is published, and what is not.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "session_fixture.hpp"

namespace holdfast {
namespace {

using testing::_;
using testing::ElementsAre;
using testing::InSequence;
using testing::Invoke;
using testing::Return;

class SessionBindingTest : public SessionTest {
 protected:
  const WorldSpec spec = world_spec(kFullRing);
  const std::vector<std::string> actions{"0", "1", "2"};
};

TEST_F(SessionBindingTest, AFullWindowHitRestoresTheColdRing) {
  Session cold = open(spec);
  generate_all(cold, actions);
  Session warm = open(spec);
  const Result<ResumeReceipt> receipt = resume(warm, actions);
  ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
  EXPECT_EQ(receipt->matched_chunks, 3U);
  EXPECT_EQ(warm.engine->contents(), cold.engine->contents());
  EXPECT_EQ(warm.engine->indices(), cold.engine->indices());
  EXPECT_TRUE(nothing_open());
}

TEST_F(SessionBindingTest, PublishesIndicesThenLatentsThenTheDepthWithTheDrawsToBurn) {
  Session cold = open(spec);
  generate_all(cold, actions);
  Session warm = open(spec, 5);
  ASSERT_TRUE(resume(warm, actions).has_value());
  EXPECT_THAT(warm.engine->published, ElementsAre("indices 6 6", "latents 3", "forward 3 draws 12"));
  EXPECT_EQ(warm.binding->cursor().depth(), 2);
}

TEST_F(SessionBindingTest, LatentsAreRestoredFirstAndInOneRequest) {
  Session cold = open(spec);
  generate_all(cold, actions);
  Session warm = open(spec);
  const InSequence order;
  EXPECT_CALL(fluxon, get_start(testing::SizeIs(3), _, _));  // 3 latents
  EXPECT_CALL(fluxon, get_start(testing::SizeIs(12), _, testing::ElementsAre(4, 4, 4)));
  ASSERT_TRUE(resume(warm, actions).has_value());
}

TEST_F(SessionBindingTest, KeysAreChunkMajorWithOneGroupPerChunk) {
  Session cold = open(spec);
  generate_all(cold, {"0", "1"});
  Session warm = open(spec);
  std::vector<std::string> keys;
  EXPECT_CALL(fluxon, get_start)
      .WillRepeatedly(Invoke([&](Keys asked, bool best, std::span<const std::uint32_t> groups) {
        if (groups.front() == 4) keys.assign(asked.begin(), asked.end());
        return owner.get_start(asked, best, groups);
      }));
  ASSERT_TRUE(resume(warm, {"0", "1"}).has_value());
  const std::string first = kv_locator(node(spec, {"0"})->key());
  const std::string second = kv_locator(node(spec, {"0", "1"})->key());
  EXPECT_THAT(keys, ElementsAre(first + ":L0:k", first + ":L0:v", first + ":L1:k", first + ":L1:v", second + ":L0:k",
                                second + ":L0:v", second + ":L1:k", second + ":L1:v"));
}

TEST_F(SessionBindingTest, NoIndexIsPublishedWhenALatentFails) {
  Session cold = open(spec);
  generate_all(cold, actions);
  Session warm = open(spec);
  EXPECT_CALL(cuda, copy_batch(CopyDirection::host_to_device, testing::SizeIs(3), _))
      .WillOnce(Return(cuda_error(CudaErrc::launch_failure, "copy_batch")));
  const Result<ResumeReceipt> receipt = resume(warm, actions);
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(warm.engine->published.empty());
  EXPECT_EQ(warm.binding->cursor().depth(), -1);
  EXPECT_TRUE(nothing_open());
}

TEST_F(SessionBindingTest, AMissingLatentCancelsAndTheNextShorterPrefixIsUsed) {
  Session cold = open(spec);
  generate_all(cold, actions);
  settle();
  ASSERT_TRUE(owner.evict(latent_locator(node(spec, {"0", "1"})->key())));
  Session warm = open(spec);
  const Result<ResumeReceipt> receipt = resume(warm, actions);
  ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
  EXPECT_EQ(receipt->matched_chunks, 1U);
  EXPECT_EQ(receipt->retries, 1U);
  EXPECT_THAT(warm.engine->published, ElementsAre("indices 2 2", "latents 1", "forward 1 draws 3"));
  EXPECT_TRUE(ready(spec, {"0", "1"})) << "the blob is there: only the latent was withdrawn";
}

TEST_F(SessionBindingTest, AsManyShorterPrefixesAreTriedAsRetriesAreAllowed) {
  Session cold = open(spec);
  generate_all(cold, actions);
  settle();
  TestEngine engine(device, stream, spec);
  const std::vector<std::string_view> asked(actions.begin(), actions.end());
  const auto none = *TestBinding::open(manager, engine, {spec, 4, 0});
  EXPECT_EQ(none->resume(asked, absorbed)->matched_chunks, 3U);
  settle();
  ASSERT_TRUE(owner.evict(latent_locator(node(spec, {"0", "1"})->key())));
  const auto one = *TestBinding::open(manager, engine, {spec, 4, 1});
  EXPECT_EQ(one->resume(asked, absorbed)->matched_chunks, 1U);
}

TEST_F(SessionBindingTest, APartialPrefixIsCancelledAndExactlyWhatIsAbsentIsWithdrawn) {
  Session cold = open(spec);
  generate_all(cold, actions);
  settle();
  ASSERT_TRUE(owner.evict(kv_key(kv_locator(node(spec, actions)->key()), 1, KvPart::v)));
  Session warm = open(spec);
  EXPECT_CALL(cuda, copy_batch(CopyDirection::host_to_device, testing::SizeIs(12), _)).Times(0);
  EXPECT_CALL(cuda, copy_batch(CopyDirection::host_to_device, testing::Not(testing::SizeIs(12)), _))
      .Times(testing::AnyNumber());
  const Result<ResumeReceipt> receipt = resume(warm, actions);
  ASSERT_TRUE(receipt.has_value());
  EXPECT_EQ(receipt->matched_chunks, 2U);
  EXPECT_TRUE(ready(spec, {"0", "1"}));
  EXPECT_FALSE(ready(spec, actions));
}

TEST_F(SessionBindingTest, AFailureInTheRingLeavesTheSessionColdAndSaysEmpty) {
  Session cold = open(spec);
  generate_all(cold, actions);
  Session warm = open(spec);
  EXPECT_CALL(cuda, copy_batch(CopyDirection::host_to_device, _, _))
      .WillOnce(Invoke(&device, &fakes::FakeCuda::copy_batch))
      .WillOnce(Return(cuda_error(CudaErrc::launch_failure, "copy_batch")));
  ASSERT_FALSE(resume(warm, actions).has_value());
  EXPECT_THAT(warm.engine->published, ElementsAre("indices 0 0"));
  EXPECT_EQ(warm.engine->indices(), RingIndices{});
  EXPECT_EQ(warm.binding->cursor().depth(), -1);
}

TEST_F(SessionBindingTest, ReferencesAreTakenWhileRestoringAndLetGoOnEveryPath) {
  Session cold = open(spec);
  generate_all(cold, actions);
  Session warm = open(spec);
  EXPECT_CALL(fluxon, get_transfer).WillRepeatedly(Invoke([&](GetHandle handle, std::uint64_t length) {
    EXPECT_EQ(node(spec, actions)->ref_count(), 1U);
    EXPECT_TRUE(manager.evict_blob(*node(spec, actions), absorbed).error().is(Errc::in_use));
    return owner.get_transfer(handle, length);
  }));
  ASSERT_TRUE(resume(warm, actions).has_value());
  EXPECT_EQ(manager.counts().forest.references, 0U);
  EXPECT_CALL(fluxon, get_start).WillRepeatedly(Return(fluxon_error(FluxonErrc::network, "get_start")));
  Session failing = open(spec);
  ASSERT_FALSE(resume(failing, actions).has_value());
  EXPECT_EQ(manager.counts().forest.references, 0U);
}

TEST_F(SessionBindingTest, AForkSharesItsPrefixAndOnlyThat) {
  Session first = open(spec);
  generate_all(first, actions);
  Session fork = open(spec);
  const std::vector<std::string> other{"0", "1", "\"2\""};
  const Result<ResumeReceipt> receipt = resume(fork, other);
  ASSERT_TRUE(receipt.has_value());
  EXPECT_EQ(receipt->matched_chunks, 2U);
  ASSERT_TRUE(generate(fork, other[2]).has_value());
  Session cold = open(world_spec(kFullRing, 64, "elsewhere"));
  generate_all(cold, other);
  EXPECT_EQ(fork.engine->contents(), cold.engine->contents());
}

TEST_F(SessionBindingTest, ARepeatedIngestOfAReadyChunkMovesNothing) {
  Session first = open(spec);
  generate_all(first, actions);
  Session second = open(spec);
  EXPECT_CALL(cuda, copy_batch).Times(0);
  EXPECT_CALL(fluxon, local_fast_put_start).Times(0);
  const Result<IngestReceipt> receipt = generate(second, "0");
  ASSERT_TRUE(receipt.has_value());
  EXPECT_EQ(receipt->kv, IngestVerdict::already_ready);
  EXPECT_EQ(receipt->latent, IngestVerdict::already_ready);
}

TEST_F(SessionBindingTest, ReadyOnlyAfterEveryCommitAnswered) {
  Session session = open(spec);
  EXPECT_CALL(fluxon, local_fast_put_commit).WillRepeatedly(Invoke([&](PlanPtr plan) {
    EXPECT_FALSE(ready(spec, {"0"}));
    return owner.local_fast_put_commit(plan);
  }));
  ASSERT_TRUE(generate(session, "0").has_value());
  EXPECT_TRUE(ready(spec, {"0"}));
}

TEST_F(SessionBindingTest, AFailedPutPublishesNothingAndTheSessionGoesOn) {
  Session session = open(spec);
  EXPECT_CALL(fluxon, local_fast_put_start)
      .WillOnce(Return(fluxon_error(FluxonErrc::network, "local_fast_put_start")))
      .WillRepeatedly(Invoke(&owner, &fakes::FakeOwner::local_fast_put_start));
  EXPECT_FALSE(generate(session, "0").has_value());
  EXPECT_FALSE(ready(spec, {"0"}));
  EXPECT_TRUE(generate(session, "1").has_value());
  EXPECT_TRUE(ready(spec, {"0", "1"}));
  EXPECT_EQ(session.binding->cursor().depth(), 1);
}

TEST_F(SessionBindingTest, AChunkThatCouldNotEvenBeLocatedStillLeadsToTheNextOne) {
  Session session = open(spec);
  session.engine->publish_kv_indices({});  // the engine is mistaken about its ring
  ASSERT_FALSE(session.binding->on_chunk_finalized("0", absorbed).has_value());
  session.history = "|0";
  ASSERT_TRUE(generate(session, "1").has_value());
  EXPECT_TRUE(ready(spec, {"0", "1"}));
  EXPECT_EQ(node(spec, {"1"}), nullptr) << "the chunk after it has the key of its whole history";
}

TEST_F(SessionBindingTest, AShortPrefixBelowBreakEvenIsNotReused) {
  WorldSpec dear = spec;
  dear.break_even_k = 3;
  Session cold = open(dear);
  generate_all(cold, {"0", "1"});
  Session warm = open(dear);
  EXPECT_CALL(fluxon, get_start).Times(0);
  EXPECT_EQ(resume(warm, {"0", "1"})->matched_chunks, 0U);
  EXPECT_TRUE(warm.engine->published.empty());
}

TEST_F(SessionBindingTest, AnotherLayoutIsAnotherNamespace) {
  const WorldSpec one = world_spec(kFullRing);
  WorldSpec other = one;
  other.layout.kv_shape = {96};
  EXPECT_NE(one.layout.to_config(), other.layout.to_config());
  const std::string config = other.layout.to_config().dump();
  other.root = root_hash({"world", "prompt", config_hash({config, "weights"})});
  Session cold = open(one);
  generate_all(cold, actions);
  Session warm = open(other);
  EXPECT_CALL(fluxon, get_start).Times(0);
  EXPECT_EQ(resume(warm, actions)->matched_chunks, 0U) << "a cold miss, never reinterpreted";
}

TEST_F(SessionBindingTest, LengthsThatDoNotMatchTheLayoutAreRefusedBeforeAnyCopy) {
  Session cold = open(spec);
  generate_all(cold, actions);
  WorldSpec lying = spec;  // the same root over another layout: a caller's mistake
  lying.layout.kv_shape = {96};
  Session warm = open(lying);
  EXPECT_CALL(fluxon, get_start).Times(0);
  EXPECT_CALL(cuda, copy_batch).Times(0);
  const Result<ResumeReceipt> receipt = resume(warm, actions);
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(receipt.error().is(Errc::layout_mismatch));
  EXPECT_TRUE(warm.engine->published.empty());
}

TEST_F(SessionBindingTest, AGeometryThatCannotBeReconstructedIsRefusedWhenTheSessionOpens) {
  WorldSpec impossible = world_spec({3, 2, 4, 2, false});
  TestEngine engine(device, stream, impossible);
  const auto binding = TestBinding::open(manager, engine, {impossible, 4, 3});
  ASSERT_FALSE(binding.has_value());
  EXPECT_TRUE(binding.error().is(Errc::unsupported_geometry));
}

TEST_F(SessionBindingTest, ARingOfAnotherSizeIsRefusedWhenTheSessionOpens) {
  WorldSpec wider = spec;
  wider.ring.ring_frames += 1;
  TestEngine engine(device, stream, spec);
  const auto binding = TestBinding::open(manager, engine, {wider, 4, 3});
  ASSERT_FALSE(binding.has_value());
  EXPECT_TRUE(binding.error().is(Errc::invalid_argument));
}

TEST_F(SessionBindingTest, ALayoutThatIsNotSaneIsRefusedWhenTheSessionOpens) {
  WorldSpec insane = spec;
  insane.layout.chunk_size = 0;
  TestEngine engine(device, stream, spec);
  const auto binding = TestBinding::open(manager, engine, {insane, 4, 3});
  ASSERT_FALSE(binding.has_value());
  EXPECT_TRUE(binding.error().is(Errc::invalid_argument));
}

TEST_F(SessionBindingTest, ALayoutWithoutLatentsStoresAndRestoresNone) {
  const WorldSpec bare = world_spec(kFullRing, 0);
  Session cold = open(bare);
  EXPECT_CALL(fluxon, local_fast_put_start(testing::SizeIs(4), _, _)).Times(3);
  generate_all(cold, actions);
  Session warm = open(bare);
  EXPECT_EQ(resume(warm, actions)->matched_chunks, 3U);
  EXPECT_EQ(warm.engine->contents(), cold.engine->contents());
}

TEST_F(SessionBindingTest, ChunksOfThreeValueSizesAreStoredInThreePlans) {
  WorldSpec mixed = world_spec(kFullRing, 0);
  mixed.layout.mixed_kv_shapes = {{48}, {4096}, {5000}};
  Session cold = open(mixed);
  EXPECT_CALL(fluxon, local_fast_put_start).Times(3);
  ASSERT_TRUE(generate(cold, "0").has_value());
  Session warm = open(mixed);
  EXPECT_EQ(resume(warm, {"0"})->matched_chunks, 1U);
  EXPECT_EQ(warm.engine->contents(), cold.engine->contents());
}

class ReconstructionTest : public SessionTest {
 protected:
  ReconstructionTest() = default;
  void expect_like_cold(const RingGeometry& ring, std::uint32_t chunks) {
    const WorldSpec of = world_spec(ring, 16, "ring " + std::to_string(worlds_++));
    std::vector<std::string> actions;
    for (std::uint32_t i = 0; i < chunks; ++i) actions.push_back(std::to_string(i));
    Session writer = open(of);
    std::vector<std::string> contents;
    for (const std::string& action : actions) {
      ASSERT_TRUE(generate(writer, action).has_value());
      contents.push_back(writer.engine->contents());
    }
    for (std::uint32_t k = 1; k <= chunks; ++k) {
      Session warm = open(of);
      const Result<ResumeReceipt> receipt = resume(warm, {actions.begin(), actions.begin() + k});
      ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
      ASSERT_EQ(receipt->matched_chunks, k);
      ASSERT_EQ(warm.engine->contents(), contents[k - 1]) << "resumed at " << k << " of " << chunks;
      if (k < chunks) {
        ASSERT_TRUE(generate(warm, actions[k]).has_value());
        ASSERT_EQ(warm.engine->contents(), contents[k]) << "the chunk after a resume at " << k;
      }
    }
  }
  int worlds_ = 0;
};

TEST_F(ReconstructionTest, FullLengthRingsEqualTheColdRingAtEveryResumePoint) {
  expect_like_cold({2, 1, 12, 0, true}, 6);
}
TEST_F(ReconstructionTest, RolledRingsEqualTheColdRingAtEveryResumePoint) { expect_like_cold({1, 2, 3, 0, false}, 8); }
TEST_F(ReconstructionTest, SinkAndRecentRingsEqualTheColdRingAtEveryResumePoint) {
  expect_like_cold({3, 1, 7, 3, false}, 8);
}
TEST_F(ReconstructionTest, ASinkWiderThanAChunkEqualsTheColdRing) { expect_like_cold({2, 1, 9, 5, false}, 9); }
TEST_F(ReconstructionTest, AChunkThatDoesNotDivideTheWindowEqualsTheColdRing) {
  expect_like_cold({2, 1, 5, 0, false}, 7);
}

RC_GTEST_FIXTURE_PROP(ReconstructionTest, RandomGeometriesEqualTheColdRingAtEveryResumePoint, ()) {
  const auto c = *rc::gen::inRange<std::uint32_t>(1, 4);
  const auto sink = *rc::gen::inRange<std::uint32_t>(0, 6);
  const auto room = *rc::gen::inRange<std::uint32_t>(0, 5);
  const auto chunks = *rc::gen::inRange<std::uint32_t>(1, 8);
  const bool full = *rc::gen::arbitrary<bool>();
  const RingGeometry ring = full ? RingGeometry{c, 2, c * chunks + room, std::min(sink, c * chunks), true}
                                 : RingGeometry{c, 2, sink + c + room, sink, false};
  expect_like_cold(ring, chunks);
  RC_ASSERT(!testing::Test::HasFailure());
}

}  // namespace
}  // namespace holdfast
