// What the manager counts and times, through the hooks: each stage once per operation, whether it succeeds or fails,
// and no time twice. A chunk has a latent of 64 bytes and four values of 96.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "session_fixture.hpp"
#include "stats_words.hpp"

namespace holdfast {
namespace {

using testing::_;
using testing::ElementsAre;
using testing::Invoke;
using testing::IsEmpty;
using testing::Return;

class ManagerStatsTest : public SessionTest {
 protected:
  void write(const std::vector<std::string>& actions) {
    Session session = open(spec);
    generate_all(session, actions);
    settle();
  }
  // The latent of "new" is stored, but its commit answers nothing that one could believe.
  void leave_in_doubt() {
    fakes::CommitChoice choice;
    choice.keys.push_back({fakes::KeyChoice::Fate::stored, -608, 0});
    owner.choose_next_commit(choice);
    Session session = open(spec);
    ASSERT_FALSE(generate(session, "new").has_value());
  }
  // What was done since `begin`, or in all.
  Stats took() {
    const Stats now = manager.stats();
    Stats since = now;
    for (std::size_t i = 0; i < kStageCount; ++i) {
      since.stages[i] = {now.stages[i].operations - before_.stages[i].operations,
                         now.stages[i].failures - before_.stages[i].failures,
                         now.stages[i].time_ns - before_.stages[i].time_ns};
    }
    for (const auto transfers : {&Stats::to_host, &Stats::to_device}) {
      since.*transfers = {(now.*transfers).operations - (before_.*transfers).operations,
                          (now.*transfers).bytes - (before_.*transfers).bytes,
                          (now.*transfers).time_ns - (before_.*transfers).time_ns};
    }
    for (const Counter& counter : counters()) since.*counter.value -= before_.*counter.value;
    return since;
  }
  void begin() { before_ = manager.stats(); }

  Error network(std::string_view call) { return fluxon_error(FluxonErrc::network, call); }
  Error launch_failure(std::string_view call) { return cuda_error(CudaErrc::launch_failure, call); }

  const WorldSpec spec = world_spec(kFullRing);

 private:
  Stats before_;
};

TEST_F(ManagerStatsTest, NothingIsCountedBeforeAnythingIsDone) { EXPECT_EQ(manager.stats(), Stats{}); }

TEST_F(ManagerStatsTest, AStoredChunkIsTwoPuts) {
  Session session = open(spec);
  generate_all(session, {"0"});
  const Stats stats = manager.stats();
  EXPECT_THAT(stages_in(stats),
              ElementsAre("segments 2", "put_start 2", "put_copy 2", "put_wait 2", "put_commit 2", "publish 2"));
  EXPECT_THAT(counts_in(stats), ElementsAre("puts_stored 2"));
  EXPECT_EQ(stats.to_host, (TransferStats{2, 64 + 4 * 96, 0}));
  EXPECT_EQ(stats.to_device, TransferStats{});
  EXPECT_EQ(stats.accounted_bytes, 5U * 4096);
}

TEST_F(ManagerStatsTest, AChunkThatIsThereCountsNothing) {
  write({"0"});
  begin();
  Session session = open(spec);
  generate_all(session, {"0"});
  EXPECT_THAT(stages_in(took()), IsEmpty());
  EXPECT_THAT(counts_in(took()), IsEmpty());
}

TEST_F(ManagerStatsTest, AResumeIsALookupTwoReadsAndAPublication) {
  write({"0", "1", "2"});
  begin();
  Session session = open(spec);
  ASSERT_EQ(resume(session, {"0", "1", "2"})->matched_chunks, 3U);
  EXPECT_THAT(stages_in(took()), ElementsAre("lookup 1", "segments 2", "read_start 2", "read_copy 2", "read_wait 2",
                                             "read_end 2", "publish 1"));
  EXPECT_THAT(counts_in(took()), ElementsAre("reads_restored 2", "hit_chunks 3"));
  EXPECT_EQ(took().to_device, (TransferStats{2, 3 * (64 + 4 * 96), 0}));
  EXPECT_EQ(took().to_host, TransferStats{});
}

TEST_F(ManagerStatsTest, AColdResumeIsALookup) {
  Session session = open(spec);
  ASSERT_EQ(resume(session, {"0"})->matched_chunks, 0U);
  EXPECT_THAT(stages_in(took()), ElementsAre("lookup 1"));
  EXPECT_THAT(counts_in(took()), IsEmpty());
}

TEST_F(ManagerStatsTest, AnEvictionAndAPumpAreCountedWithWhatTheyCameTo) {
  write({"0", "1"});
  begin();
  ASSERT_TRUE(manager.evict_blob(*node(spec, {"0", "1"}), absorbed)->evicted);
  ASSERT_FALSE(manager.evict_blob(*node(spec, {"0", "1"}), absorbed)->evicted) << "there is no blob any more";
  std::vector<Error> errors;
  manager.pump(errors);
  EXPECT_THAT(stages_in(took()), ElementsAre("evict 1", "settle 1"));
  EXPECT_THAT(counts_in(took()), ElementsAre("evicted_blobs 1", "evicted_bytes 16384"));
}

TEST_F(ManagerStatsTest, EachVictimThatMakesRoomIsAnEvictionAndARefusedPutIsTold) {
  TestManager tight{runtime, store, {.capacity_bytes = 12 * 4096, .victim_age_min_ns = 0}};
  TestEngine engine(device, stream, spec);
  auto session = *TestBinding::open(tight, engine, {spec, 4, 3});
  std::string history;
  for (const char* action : {"0", "1", "2"}) {
    history += std::string("|") + action;
    engine.generate(history);
    ASSERT_TRUE(session->on_chunk_finalized(action, absorbed).has_value());
    settle();
  }
  EXPECT_EQ(tight.stats().evicted_blobs, 1U) << "two chunks and two slots fit";
  EXPECT_EQ(tight.stats().at(Stage::evict), (StageStats{1, 0, 0}));
  EXPECT_FALSE(tight.make_room(13 * 4096, absorbed).has_value());
  EXPECT_EQ(tight.stats().puts_without_room, 0U) << "no put asked for it";

  TestManager tiny{runtime, store, {.capacity_bytes = 4096}};
  const WorldSpec other = world_spec(kFullRing, 0, "other");
  auto refused = *TestBinding::open(tiny, engine, {other, 4, 3});
  EXPECT_FALSE(refused->on_chunk_finalized("0", absorbed).has_value());
  EXPECT_EQ(tiny.stats().puts_without_room, 1U);
  EXPECT_THAT(stages_in(tiny.stats()), IsEmpty());
}

TEST_F(ManagerStatsTest, WhatIsAskedForByTheWayIsAProbeEach) {
  write({"0"});
  begin();
  std::vector<Error> errors;
  manager.probe_all(errors);
  EXPECT_THAT(stages_in(took()), ElementsAre("probe 2")) << "the latent and the blob";
  ON_CALL(fluxon, get_start(_, false, _)).WillByDefault(Return(network("get_start")));
  manager.probe_all(errors);
  EXPECT_THAT(stages_in(took()), ElementsAre("probe 4, 2 failed"));
  EXPECT_THAT(counts_in(took()), IsEmpty());
}

TEST_F(ManagerStatsTest, WhatAnIdleWorldHasLeftIsAnEvictionOfNoBlob) {
  TestManager tight{runtime, store, {.capacity_bytes = 5 * 4096, .victim_age_min_ns = 0}};
  TestEngine engine(device, stream, spec);
  auto session = *TestBinding::open(tight, engine, {spec, 4, 3});
  engine.generate("|0");
  ASSERT_TRUE(session->on_chunk_finalized("0", absorbed).has_value());
  settle();
  ASSERT_TRUE(tight.evict_blob(*tight.find(node_key(spec.root, "0")), absorbed)->evicted);
  session.reset();
  ASSERT_TRUE(tight.make_room(5 * 4096, absorbed).has_value());
  EXPECT_EQ(tight.stats().at(Stage::evict), (StageStats{2, 0, 0}));
  EXPECT_EQ(tight.stats().evicted_blobs, 1U);
  EXPECT_EQ(tight.stats().accounted_bytes, 0U);
}

TEST_F(ManagerStatsTest, ALatentThatAnIdleWorldCannotRemoveIsAFailedEviction) {
  TestManager tight{runtime, store, {.capacity_bytes = 5 * 4096, .victim_age_min_ns = 0}};
  TestEngine engine(device, stream, spec);
  auto session = *TestBinding::open(tight, engine, {spec, 4, 3});
  engine.generate("|0");
  ASSERT_TRUE(session->on_chunk_finalized("0", absorbed).has_value());
  settle();
  ASSERT_TRUE(tight.evict_blob(*tight.find(node_key(spec.root, "0")), absorbed)->evicted);
  session.reset();
  EXPECT_CALL(fluxon, remove).WillRepeatedly(Return(network("remove")));
  EXPECT_FALSE(tight.make_room(5 * 4096, absorbed).has_value());
  EXPECT_EQ(tight.stats().at(Stage::evict), (StageStats{2, 1, 0}));
}

TEST_F(ManagerStatsTest, TimeBelongsToTheStageItPassedIn) {
  // One second in the first call, two in the second, and so on, each a power of two.
  const auto takes = [this](Nanos seconds) { return [this, seconds] { clock.advance_by(seconds * kSecond); }; };
  const WorldSpec bare = world_spec(kFullRing, 0);
  ON_CALL(fluxon, wait_local_segments_ready).WillByDefault([&] {
    takes(1)();
    return owner.wait_local_segments_ready();
  });
  ON_CALL(fluxon, local_fast_put_start).WillByDefault([&](Keys keys, std::uint64_t bytes, const PutOptions& how) {
    takes(2)();
    return owner.local_fast_put_start(keys, bytes, how);
  });
  ON_CALL(cuda, copy_batch).WillByDefault([&](CopyDirection way, std::span<const Copy> copies, StreamRef on) {
    takes(4)();
    return device.copy_batch(way, copies, on);
  });
  ON_CALL(cuda, stream_synchronize).WillByDefault([&](StreamRef on) {
    takes(8)();
    return device.stream_synchronize(on);
  });
  ON_CALL(fluxon, local_fast_put_commit).WillByDefault([&](PlanPtr plan) {
    takes(16)();
    return owner.local_fast_put_commit(plan);
  });
  owner.choose_next_commit({.keys = {}, .answer_after_ns = kSecond / 2, .route_after_ns = {}});
  Session cold = open(bare);
  ASSERT_TRUE(generate(cold, "0").has_value());
  const Stats put = took();
  EXPECT_THAT(stages_in(put), ElementsAre("segments 1, 1 s", "put_start 1, 2 s", "put_copy 1, 4 s", "put_wait 1, 8 s",
                                          "put_commit 1, 16.5 s", "publish 1"));
  EXPECT_EQ(put.to_host, (TransferStats{1, 4 * 96, 12 * kSecond}));

  begin();
  ON_CALL(fluxon, get_start).WillByDefault([&](Keys keys, bool best, std::span<const std::uint32_t> groups) {
    takes(32)();
    return owner.get_start(keys, best, groups);
  });
  ON_CALL(fluxon, get_transfer).WillByDefault([&](GetHandle handle, std::uint64_t keys) {
    takes(64)();
    return owner.get_transfer(handle, keys);
  });
  ON_CALL(fluxon, release_views).WillByDefault([&](PlanPtr plan) {
    takes(128)();
    return owner.release_views(plan);
  });
  Session warm = open(bare);
  ASSERT_EQ(resume(warm, {"0"})->matched_chunks, 1U);
  const Stats read = took();
  EXPECT_THAT(stages_in(read), ElementsAre("lookup 1", "segments 1, 1 s", "read_start 1, 96 s", "read_copy 1, 4 s",
                                           "read_wait 1, 8 s", "read_end 1, 128 s", "publish 1"));
  EXPECT_EQ(read.to_device, (TransferStats{1, 4 * 96, 12 * kSecond}));
}

TEST_F(ManagerStatsTest, TimeBehindAPutAndAReadIsToldToo) {
  write({"0"});
  ON_CALL(fluxon, remove).WillByDefault([&](std::string_view key) {
    clock.advance_by(kSecond);
    return owner.remove(key);
  });
  ON_CALL(fluxon, get_start(_, false, _))
      .WillByDefault([&](Keys keys, bool best, std::span<const std::uint32_t> groups) {
        clock.advance_by(16 * kSecond);
        return owner.get_start(keys, best, groups);
      });
  begin();
  std::vector<Error> errors;
  manager.probe_all(errors);
  ASSERT_TRUE(manager.evict_blob(*node(spec, {"0"}), absorbed)->evicted);
  EXPECT_THAT(stages_in(took()), ElementsAre("probe 2, 32 s", "evict 1, 4 s"));

  leave_in_doubt();
  clock.advance_by(kSettleBound);
  begin();
  EXPECT_EQ(manager.pump(errors), 1U);
  EXPECT_THAT(stages_in(took()), ElementsAre("settle 1, 1 s"));
}

// ---- Failures: once in the stage where they happen, and nothing of what would have come later.

TEST_F(ManagerStatsTest, APutThatFindsNoSegmentFailsThere) {
  EXPECT_CALL(fluxon, wait_local_segments_ready).WillOnce(Return(network("wait_local_segments_ready")));
  Session session = open(spec);
  ASSERT_FALSE(generate(session, "0").has_value());
  // Its tensors were looked at before.
  EXPECT_THAT(stages_in(took()), ElementsAre("segments 1, 1 failed", "put_copy 1"));
  EXPECT_THAT(counts_in(took()), ElementsAre("puts_failed 1"));
}

TEST_F(ManagerStatsTest, APutThatIsNotStartedFailsThere) {
  EXPECT_CALL(fluxon, local_fast_put_start).WillOnce(Return(network("local_fast_put_start")));
  Session session = open(spec);
  ASSERT_FALSE(generate(session, "0").has_value());
  EXPECT_THAT(stages_in(took()), ElementsAre("segments 1", "put_start 1, 1 failed", "put_copy 1"));
}

TEST_F(ManagerStatsTest, APutWhoseCopiesAreRefusedFailsThereAndIsUndone) {
  EXPECT_CALL(cuda, copy_batch).WillOnce(Return(launch_failure("copy_batch")));
  Session session = open(spec);
  ASSERT_FALSE(generate(session, "0").has_value());
  EXPECT_THAT(stages_in(took()), ElementsAre("segments 1", "put_start 1", "put_copy 1, 1 failed", "put_undo 1"));
  EXPECT_EQ(took().to_host, TransferStats{}) << "what was copied then is nobody's";
}

TEST_F(ManagerStatsTest, APutWhoseWaitFailsFailsThereAndIsUndone) {
  EXPECT_CALL(cuda, stream_synchronize)
      .WillOnce(Return(launch_failure("stream_synchronize")))
      .WillRepeatedly(Invoke(&device, &fakes::FakeCuda::stream_synchronize));
  Session session = open(spec);
  ASSERT_FALSE(generate(session, "0").has_value());
  EXPECT_THAT(stages_in(took()),
              ElementsAre("segments 1", "put_start 1", "put_copy 1", "put_wait 1, 1 failed", "put_undo 1"));
  EXPECT_EQ(took().to_host, TransferStats{});
}

TEST_F(ManagerStatsTest, APutWhoseCodesAreBadFailsAtItsCommitAndItsKeysAreInDoubt) {
  leave_in_doubt();
  EXPECT_THAT(stages_in(took()), ElementsAre("segments 1", "put_start 1", "put_copy 1", "put_wait 1",
                                             "put_commit 1, 1 failed", "put_undo 1"));
  EXPECT_EQ(took().to_host, (TransferStats{1, 64, 0})) << "the copies themselves arrived";
  EXPECT_EQ(took().unsettled_keys, (ListLength{1, 1}));

  clock.advance_by(kSettleBound);
  std::vector<Error> errors;
  ASSERT_EQ(manager.pump(errors), 1U);
  EXPECT_EQ(took().settled_keys, 1U);
  EXPECT_EQ(took().unsettled_keys, (ListLength{0, 1})) << "the peak stays";
}

TEST_F(ManagerStatsTest, AnUndoThatFailsIsTold) {
  EXPECT_CALL(cuda, copy_batch).WillOnce(Return(launch_failure("copy_batch")));
  EXPECT_CALL(fluxon, put_abort).WillOnce(Return(network("put_abort")));
  Session session = open(spec);
  ASSERT_FALSE(generate(session, "0").has_value());
  EXPECT_EQ(took().at(Stage::put_undo), (StageStats{1, 1, 0}));
}

TEST_F(ManagerStatsTest, APlanThatCannotBeWaitedForIsInTheQuarantinesLength) {
  EXPECT_CALL(cuda, stream_synchronize).Times(2).WillRepeatedly(Return(launch_failure("stream_synchronize")));
  Session session = open(spec);
  ASSERT_FALSE(generate(session, "0").has_value());
  EXPECT_EQ(took().quarantined_plans, (ListLength{1, 1}));
  EXPECT_EQ(took().unsettled_keys, (ListLength{1, 1}));
  testing::Mock::VerifyAndClearExpectations(&cuda);
  cuda.delegate_to(device);
  std::vector<Error> errors;
  manager.pump(errors);
  EXPECT_EQ(took().quarantined_plans, (ListLength{0, 1}));
  EXPECT_THAT(stages_in(took()), testing::Contains("settle 1"));
}

TEST_F(ManagerStatsTest, AReadThatFailsCountsWhereItDoes) {
  write({"0"});
  const auto failed_resume = [&] {
    begin();
    Session session = open(spec);
    EXPECT_FALSE(resume(session, {"0"}).has_value());
    return stages_in(took());
  };
  EXPECT_CALL(fluxon, wait_local_segments_ready)
      .WillOnce(Return(network("wait_local_segments_ready")))
      .WillRepeatedly(Invoke(&owner, &fakes::FakeOwner::wait_local_segments_ready));
  EXPECT_THAT(failed_resume(), ElementsAre("lookup 1", "segments 1, 1 failed", "read_copy 1"));
  EXPECT_CALL(fluxon, get_start)
      .WillOnce(Return(network("get_start")))
      .WillRepeatedly(Invoke(&owner, &fakes::FakeOwner::get_start));
  EXPECT_THAT(failed_resume(), ElementsAre("lookup 1", "segments 1", "read_start 1, 1 failed", "read_copy 1"));
  EXPECT_CALL(cuda, copy_batch)
      .WillOnce(Return(launch_failure("copy_batch")))
      .WillRepeatedly(Invoke(&device, &fakes::FakeCuda::copy_batch));
  EXPECT_THAT(failed_resume(),
              ElementsAre("lookup 1", "segments 1", "read_start 1", "read_copy 1, 1 failed", "read_end 1"));
  EXPECT_CALL(cuda, stream_synchronize)
      .WillOnce(Return(launch_failure("stream_synchronize")))
      .WillRepeatedly(Invoke(&device, &fakes::FakeCuda::stream_synchronize));
  EXPECT_THAT(failed_resume(), ElementsAre("lookup 1", "segments 1", "read_start 1", "read_copy 1",
                                           "read_wait 1, 1 failed", "read_end 1"));
  EXPECT_EQ(manager.stats().reads_failed, 4U);
  EXPECT_EQ(manager.stats().hit_chunks, 0U);
  EXPECT_EQ(manager.stats().to_device, TransferStats{});
}

TEST_F(ManagerStatsTest, AReleaseThatIsLostFailsNothingElse) {
  write({"0"});
  begin();
  EXPECT_CALL(fluxon, release_views).Times(2).WillRepeatedly(Return(network("release_views")));
  Session session = open(spec);
  ASSERT_EQ(resume(session, {"0"})->matched_chunks, 1U);
  EXPECT_EQ(took().at(Stage::read_end), (StageStats{2, 2, 0}));
  EXPECT_EQ(took().reads_restored, 2U);
}

TEST_F(ManagerStatsTest, AnIncompleteReadIsProbedAndTriedAgainShorter) {
  write({"0", "1"});
  begin();
  ASSERT_TRUE(owner.remove(kv_locator(node(spec, {"0", "1"})->key()) + ":L0:k").has_value());
  Session session = open(spec);
  ASSERT_EQ(resume(session, {"0", "1"})->matched_chunks, 1U);
  // Two lookups. Latents, window, latents, window. The window's blobs and the latents of both chunks are asked for.
  EXPECT_THAT(stages_in(took()), ElementsAre("lookup 2", "segments 4", "read_start 4", "read_copy 4", "read_wait 3",
                                             "read_end 3", "probe 4", "publish 1"));
  EXPECT_THAT(counts_in(took()),
              ElementsAre("reads_restored 3", "reads_incomplete 1", "hit_chunks 1", "withdrawn_blobs 1"));
}

TEST_F(ManagerStatsTest, AFailedProbeIsTold) {
  write({"0"});
  begin();
  ASSERT_TRUE(owner.remove(latent_locator(node(spec, {"0"})->key())).has_value());
  ON_CALL(fluxon, get_start(_, false, _)).WillByDefault(Return(network("get_start")));
  Session session = open(spec);
  ASSERT_EQ(resume(session, {"0"})->matched_chunks, 0U);
  // Nothing is withdrawn, so that all tries are the same: four, with two probes each.
  EXPECT_EQ(took().at(Stage::probe), (StageStats{8, 8, 0}));
  EXPECT_EQ(took().withdrawn_latents, 0U);
}

TEST_F(ManagerStatsTest, ALookupThatDisagreesWithTheLayoutFails) {
  write({"0"});
  begin();
  WorldSpec other = spec;
  other.layout.n_layers = 1;
  auto* world = *manager.open(other);
  const std::vector<std::string_view> actions{"0"};
  EXPECT_FALSE(manager.lookup(*world, other, actions).has_value());
  EXPECT_THAT(stages_in(took()), ElementsAre("lookup 1, 1 failed"));
  manager.close(*world);
}

TEST_F(ManagerStatsTest, AnEvictionThatIsRefusedOrFailsIsTold) {
  write({"0"});
  begin();
  Session session = open(spec);
  const std::vector<std::string_view> actions{"0"};
  {
    const Result<PathLease> held = manager.lookup(session.binding->world(), spec, actions);
    ASSERT_FALSE(manager.evict_blob(*node(spec, {"0"}), absorbed).has_value()) << "it is referenced";
  }
  EXPECT_EQ(took().at(Stage::evict), (StageStats{1, 1, 0}));
  EXPECT_CALL(fluxon, remove)
      .WillOnce(Return(network("remove")))
      .WillRepeatedly(Invoke(&owner, &fakes::FakeOwner::remove));
  ASSERT_FALSE(manager.evict_blob(*node(spec, {"0"}), absorbed).has_value());
  EXPECT_EQ(took().at(Stage::evict), (StageStats{2, 2, 0}));
  EXPECT_EQ(took().evicted_blobs, 0U);
  std::vector<Error> errors;
  manager.pump(errors);
  EXPECT_EQ(took().at(Stage::evict), (StageStats{3, 2, 0})) << "tried again";
  EXPECT_THAT(counts_in(took()), ElementsAre("evicted_blobs 1", "evicted_bytes 16384"));
}

TEST_F(ManagerStatsTest, APumpWhoseRemovalFailsIsTold) {
  leave_in_doubt();
  clock.advance_by(kSettleBound);
  begin();
  EXPECT_CALL(fluxon, remove).WillOnce(Return(network("remove")));
  std::vector<Error> errors;
  EXPECT_EQ(manager.pump(errors), 0U);
  EXPECT_THAT(stages_in(took()), ElementsAre("settle 1, 1 failed"));
  EXPECT_THAT(counts_in(took()), IsEmpty());
}

TEST_F(ManagerStatsTest, WhatSomebodyElseHasWrittenIsNotOurs) {
  EXPECT_CALL(fluxon, local_fast_put_start)
      .WillRepeatedly(Return(fluxon_error(FluxonErrc::key_being_written, "local_fast_put_start")));
  Session session = open(spec);
  ASSERT_TRUE(generate(session, "0").has_value());
  EXPECT_THAT(counts_in(took()), ElementsAre("puts_elsewhere 2"));
  EXPECT_EQ(took().at(Stage::publish), StageStats{});
}

TEST_F(ManagerStatsTest, WhatIsInTheStoreAlreadyIsAdopted) {
  leave_in_doubt();
  clock.advance_by(kSettleBound);
  begin();
  Session session = open(spec);
  ASSERT_TRUE(generate(session, "new").has_value());
  EXPECT_THAT(counts_in(took()), ElementsAre("puts_stored 1", "puts_adopted 1"));
  EXPECT_EQ(took().at(Stage::publish).operations, 2U);
}

TEST_F(ManagerStatsTest, ALatentThatIsGoneIsWithdrawn) {
  write({"0"});
  begin();
  ASSERT_TRUE(owner.remove(latent_locator(node(spec, {"0"})->key())).has_value());
  Session session = open(spec);
  ASSERT_EQ(resume(session, {"0"})->matched_chunks, 0U);
  EXPECT_THAT(counts_in(took()), ElementsAre("reads_incomplete 1", "withdrawn_latents 1"));
}

}  // namespace
}  // namespace holdfast
