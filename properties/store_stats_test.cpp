// What a store counts and times: a put that needs two tries, an adoption, and many batches are one operation each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "session_fixture.hpp"
#include "stats_words.hpp"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::Return;

class StoreStatsTest : public CoreTest {
 protected:
  Result<PutReceipt> put(TestStore& store, const std::vector<std::string_view>& keys,
                         const std::vector<DeviceTensor>& tensors) {
    spent = {};
    return store.put(keys, tensors, stream, absorbed, &spent);
  }
  // The next commit answers nothing that one could believe.
  void leave_in_doubt(const std::vector<fakes::KeyChoice::Fate>& fates) {
    fakes::CommitChoice choice;
    for (const fakes::KeyChoice::Fate fate : fates) choice.keys.push_back({fate, -608, 0});
    owner.choose_next_commit(choice);
  }

  Absorbed absorbed;
  Stats spent;
};

TEST_F(StoreStatsTest, APutThatRemovesALeftoverAndTriesAgainIsOnePut) {
  TestStore store(runtime, plan_options());
  leave_in_doubt({fakes::KeyChoice::Fate::stored, fakes::KeyChoice::Fate::not_stored});
  const std::vector<DeviceTensor> values{tensor(512), tensor(512)};
  ASSERT_FALSE(put(store, {"a", "b"}, values).has_value());
  clock.advance_by(kSettleBound);
  ASSERT_EQ(put(store, {"a", "b"}, values)->verdict, PutVerdict::stored);
  EXPECT_THAT(stages_in(spent), ElementsAre("segments 1", "put_start 1, 1 failed", "put_copy 1", "put_wait 1",
                                            "put_commit 1", "probe 1", "settle 1"));
}

TEST_F(StoreStatsTest, ALeftoverThatStaysIsToldWhereItWasToGo) {
  TestStore store(runtime, plan_options());
  leave_in_doubt({fakes::KeyChoice::Fate::stored, fakes::KeyChoice::Fate::not_stored});
  const std::vector<DeviceTensor> values{tensor(512), tensor(512)};
  ASSERT_FALSE(put(store, {"a", "b"}, values).has_value());
  clock.advance_by(kSettleBound);
  EXPECT_CALL(fluxon, remove).WillRepeatedly(Return(fluxon_error(FluxonErrc::network, "remove")));
  ASSERT_FALSE(put(store, {"a", "b"}, values).has_value());
  EXPECT_THAT(stages_in(spent),
              ElementsAre("segments 1", "put_start 1, 1 failed", "put_copy 1", "probe 1", "settle 1, 1 failed"));
}

TEST_F(StoreStatsTest, WhatCannotBeTakenBackIsAFailedUndo) {
  TestStore store(runtime, plan_options());
  fakes::CommitChoice choice;
  choice.keys = {{fakes::KeyChoice::Fate::stored, 0, 0}, {fakes::KeyChoice::Fate::not_stored, -103, 0}};
  owner.choose_next_commit(choice);
  EXPECT_CALL(fluxon, remove).WillOnce(Return(fluxon_error(FluxonErrc::network, "remove")));
  ASSERT_FALSE(put(store, {"a", "b"}, {tensor(512), tensor(512)}).has_value());
  EXPECT_EQ(spent.at(Stage::put_commit), (StageStats{1, 1, 0}));
  EXPECT_EQ(spent.at(Stage::put_undo), (StageStats{1, 1, 0}));
}

TEST_F(StoreStatsTest, CopiesThatAreRefusedAsTheyAreFailThere) {
  TestStore store(runtime, plan_options());
  // Two plans at one place.
  std::uint64_t first = 0;
  ON_CALL(fluxon, local_fast_put_start).WillByDefault([&](Keys keys, std::uint64_t bytes, const PutOptions& how) {
    Result<PlanPtr> plan = owner.local_fast_put_start(keys, bytes, how);
    auto* words = reinterpret_cast<std::uint64_t*>(plan->address);
    if (first == 0) first = words[2];
    words[2] = first;
    return plan;
  });
  ASSERT_FALSE(put(store, {"a", "b"}, {tensor(512), tensor(1024)}).has_value());
  EXPECT_EQ(spent.at(Stage::put_start), (StageStats{1, 0, 0}));
  EXPECT_EQ(spent.at(Stage::put_copy), (StageStats{1, 1, 0}));

  testing::Mock::VerifyAndClear(&fluxon);
  fluxon.delegate_to(owner);
  const std::vector<std::string_view> keys{"c"};
  const std::vector<DeviceTensor> values{tensor(512)};
  ASSERT_TRUE(put(store, keys, values).has_value());
  const std::vector<std::uint64_t> lengths(1, 512);
  const std::vector<std::uint32_t> groups(1, 1);
  const std::vector<ReadCopy> copies{{0, 0, 0, 0, 512}, {0, 0, 0, 0, 512}};
  spent = {};
  ASSERT_EQ(store.restore({keys, lengths, groups, values, copies}, stream, absorbed, &spent).verdict,
            ReadVerdict::failed);
  EXPECT_EQ(spent.at(Stage::read_start), (StageStats{1, 0, 0}));
  EXPECT_EQ(spent.at(Stage::read_copy), (StageStats{1, 1, 0}));
}

TEST_F(StoreStatsTest, AnAdoptionIsAProbe) {
  TestStore store(runtime, plan_options());
  leave_in_doubt({fakes::KeyChoice::Fate::stored, fakes::KeyChoice::Fate::stored});
  const std::vector<DeviceTensor> values{tensor(512), tensor(512)};
  ASSERT_FALSE(put(store, {"a", "b"}, values).has_value());
  clock.advance_by(kSettleBound);
  ASSERT_EQ(put(store, {"a", "b"}, values)->verdict, PutVerdict::adopted);
  EXPECT_THAT(stages_in(spent), ElementsAre("segments 1", "put_start 1, 1 failed", "put_copy 1", "probe 1"));
  EXPECT_EQ(spent.to_host, TransferStats{});
}

TEST_F(StoreStatsTest, APutOfManyBatchesIsOnePutWhoseTransferLastsFromTheFirstToTheLast) {
  PlanOptions options = plan_options();
  options.overlap = {CopyMode::overlapped, 2, 1};
  TestStore store(runtime, options);
  ON_CALL(fluxon, local_fast_put_start).WillByDefault([&](Keys keys, std::uint64_t bytes, const PutOptions& how) {
    clock.advance_by(kSecond);
    return owner.local_fast_put_start(keys, bytes, how);
  });
  const std::vector<DeviceTensor> values{tensor(512), tensor(1024), tensor(2048), tensor(4096)};
  ASSERT_TRUE(put(store, {"a", "b", "c", "d"}, values).has_value());
  EXPECT_THAT(stages_in(spent),
              ElementsAre("segments 1", "put_start 1, 4 s", "put_copy 1", "put_wait 1", "put_commit 1"));
  EXPECT_EQ(spent.to_host, (TransferStats{1, 512 + 1024 + 2048 + 4096, 3 * kSecond}));
}

TEST_F(StoreStatsTest, AReadOfManyBatchesIsOneRead) {
  PlanOptions options = plan_options();
  options.overlap = {CopyMode::overlapped, 2, 1};
  TestStore store(runtime, options);
  const std::vector<std::string_view> keys{"a", "b", "c"};
  const std::vector<DeviceTensor> values{tensor(512), tensor(512), tensor(512)};
  ASSERT_TRUE(put(store, keys, values).has_value());
  const std::vector<std::uint64_t> lengths(3, 512);
  const std::vector<std::uint32_t> groups(3, 1);
  const std::vector<ReadCopy> copies{{0, 0, 0, 0, 512}, {1, 0, 1, 0, 512}, {2, 0, 2, 0, 512}};
  spent = {};
  ASSERT_EQ(store.restore({keys, lengths, groups, values, copies}, stream, absorbed, &spent).verdict,
            ReadVerdict::restored);
  EXPECT_THAT(stages_in(spent), ElementsAre("segments 1", "read_start 1", "read_copy 1", "read_wait 1", "read_end 1"));
  EXPECT_EQ(spent.to_device, (TransferStats{1, 3 * 512, 0}));
}

// ---- A store of owned snapshots has the same stages.

TEST_F(StoreStatsTest, OwnedSnapshotsCountTheirRounds) {
  const std::uintptr_t staging = arena.map_private(4096);
  MemoryTierStore<StdSync> tensors(sync);
  OwnedSnapshots<TestRuntime, MemoryTierStore<StdSync>> snapshots(runtime, tensors, {staging, 1024});
  const std::vector<std::string_view> keys{"a", "b", "c"};  // two rounds
  const std::vector<DeviceTensor> values{tensor(512), tensor(512), tensor(512)};
  ASSERT_TRUE(snapshots.put(keys, values, stream, absorbed, &spent).has_value());
  EXPECT_THAT(stages_in(spent), ElementsAre("segments 1", "put_copy 1", "put_wait 1", "put_commit 1"));
  EXPECT_EQ(spent.to_host, (TransferStats{1, 3 * 512, 0}));
  const std::vector<std::uint64_t> lengths(3, 512);
  const std::vector<std::uint32_t> groups(3, 1);
  const std::vector<ReadCopy> copies{{0, 0, 0, 0, 512}, {1, 0, 1, 0, 512}, {2, 0, 2, 0, 512}};
  spent = {};
  ASSERT_EQ(snapshots.restore({keys, lengths, groups, values, copies}, stream, absorbed, &spent).verdict,
            ReadVerdict::restored);
  EXPECT_THAT(stages_in(spent), ElementsAre("segments 1", "read_start 1", "read_copy 1", "read_wait 1"));
  EXPECT_EQ(spent.to_device, (TransferStats{1, 3 * 512, 0}));
  EXPECT_TRUE(snapshots.shut_down().has_value());
}

}  // namespace
}  // namespace holdfast
