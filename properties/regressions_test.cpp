// Situations in which the core once broke a promise: each test is one of them.
#include <gtest/gtest.h>

#include "flaky_tensors.hpp"
#include "holdfast/core/manager.hpp"
#include "holdfast/fakes/memory_files.hpp"
#include "session_fixture.hpp"

namespace holdfast {
namespace {

using testing::_;
using testing::Invoke;
using testing::Return;

class RegressionsTest : public SessionTest {
 protected:
  static constexpr std::uint64_t kChunkSlots = 4 * 4096;  // K and V of two layers
  static constexpr std::uint64_t kLatentSlot = 4096;

  void write(const std::vector<std::string>& actions) {
    Session session = open(spec);
    generate_all(session, actions);
    settle();
  }
  Result<PutReceipt> put(const std::vector<std::string>& names, const std::vector<DeviceTensor>& tensors) {
    const std::vector<std::string_view> keys(names.begin(), names.end());
    return store.put(keys, tensors, stream, absorbed);
  }
  ReadOutcome read(const std::string& name, const DeviceTensor& target) {
    const std::vector<std::string_view> keys{name};
    const std::vector<std::uint64_t> value_bytes{target.bytes};
    const std::vector<std::uint32_t> groups{1};
    const std::vector<ReadCopy> copies{{0, 0, 0, 0, target.bytes}};
    return store.restore({keys, value_bytes, groups, std::span(&target, 1), copies}, stream, absorbed);
  }
  void fail_waits(int times) {
    auto& expected = EXPECT_CALL(cuda, stream_synchronize).Times(testing::AtLeast(times));
    for (int i = 0; i < times; ++i) {
      expected.WillOnce(Return(cuda_error(CudaErrc::launch_failure, "stream_synchronize")));
    }
    expected.WillRepeatedly(Invoke(&device, &fakes::FakeCuda::stream_synchronize));
  }
  // Another session sees it. Within a call of ours it is refused the new owner, and the old one's time is over.
  void restart_and_tell_the_store() {
    owner.restart();
    Absorbed other;
    const Result<WarmUpReport> told = store.warm_up(other);
    EXPECT_TRUE(told || told.error().is(Errc::stale_generation));
  }

  const WorldSpec spec = world_spec(kFullRing);
};

// A latent

TEST_F(RegressionsTest, ALatentThatAProbeDidNotSeeStaysAccountedUntilItIsRemoved) {
  write({"0"});
  const std::string latent = latent_locator(node(spec, {"0"})->key());
  EXPECT_CALL(fluxon, get_start)
      .WillRepeatedly(Invoke([&](Keys keys, bool best, std::span<const std::uint32_t> groups) {
        if (keys.front() == latent) owner.choose_next_get_start({false, 0});
        return owner.get_start(keys, best, groups);
      }));
  Session warm = open(spec);
  EXPECT_EQ(resume(warm, {"0"})->matched_chunks, 0U);
  EXPECT_FALSE(node(spec, {"0"})->skeleton().ready);
  EXPECT_GE(manager.accounted_bytes(), owner.held_bytes());
  clock.advance_by(kSettleBound);
  std::vector<Error> errors;
  manager.pump(errors);
  EXPECT_EQ(owner.stored_keys(), 4U) << "the latent is a leftover that nobody knows any more";
  EXPECT_EQ(manager.accounted_bytes(), owner.held_bytes());
}

// Quarantined views

TEST_F(RegressionsTest, KeysOfViewsThatCannotBeWaitedForAnswerUnsettled) {
  ASSERT_TRUE(put({"a"}, {tensor(512)}).has_value());
  fail_waits(2);
  EXPECT_EQ(read("a", tensor(512)).verdict, ReadVerdict::failed);
  ASSERT_EQ(store.quarantined(), 1U);
  const std::vector<std::string_view> keys{"a"};
  EXPECT_TRUE(store.unsettled(keys));
  std::vector<Error> errors;
  store.pump(16, errors);
  EXPECT_EQ(store.quarantined(), 0U);
  EXPECT_FALSE(store.unsettled(keys));
}

TEST_F(RegressionsTest, ABlobWhoseViewsAreQuarantinedIsNoVictimAndRoomIsMadeFromOthers) {
  TestManager small{runtime, store, {.capacity_bytes = 2 * (kChunkSlots + kLatentSlot)}};
  TestEngine writer(device, stream, spec);
  {
    auto cold = *SessionBinding<TestManager>::open(small, writer, {spec, 4, 3});
    for (const char* action : {"0", "1"}) {
      writer.generate(std::string("|") + action);
      ASSERT_TRUE(cold->on_chunk_finalized(action, absorbed).has_value());
    }
    settle();
    TestEngine reader(device, stream, spec);
    auto warm = *SessionBinding<TestManager>::open(small, reader, {spec, 4, 3});
    auto& waits = EXPECT_CALL(cuda, stream_synchronize).Times(testing::AtLeast(3));
    waits
        .WillOnce(Invoke(&device, &fakes::FakeCuda::stream_synchronize))  // latents
        .WillOnce(Return(cuda_error(CudaErrc::launch_failure, "stream_synchronize")))
        .WillOnce(Return(cuda_error(CudaErrc::launch_failure, "stream_synchronize")))
        .WillRepeatedly(Invoke(&device, &fakes::FakeCuda::stream_synchronize));
    const std::vector<std::string_view> first{"0"};
    ASSERT_FALSE(warm->resume(first, absorbed).has_value());
    ASSERT_EQ(store.quarantined(), 1U);
  }
  // "1" is used last: "0" would be the victim.
  Namespace* world = *small.open(spec);
  Node* deep = small.find(node_key(node_key(spec.root, "0"), "1"));
  Node* shallow = small.find(node_key(spec.root, "0"));
  const Result<EvictReceipt> room = small.make_room(kChunkSlots, absorbed);
  EXPECT_TRUE(room.has_value());
  EXPECT_TRUE(shallow->blob().ready);
  EXPECT_FALSE(deep->blob().ready);
  const Result<EvictReceipt> more = small.make_room(2 * kChunkSlots, absorbed);
  ASSERT_FALSE(more.has_value());
  EXPECT_TRUE(more.error().is(Errc::out_of_room));
  EXPECT_TRUE(shallow->blob().ready);
  small.close(*world);
}

// Room

TEST_F(RegressionsTest, RoomThatTheCapacityCannotHoldEvictsNothing) {
  TestManager small{runtime, store, {.capacity_bytes = 2 * (kChunkSlots + kLatentSlot)}};
  TestEngine writer(device, stream, spec);
  auto cold = *SessionBinding<TestManager>::open(small, writer, {spec, 4, 3});
  writer.generate("|0");
  ASSERT_TRUE(cold->on_chunk_finalized("0", absorbed).has_value());
  settle();
  for (const std::uint64_t bytes : {small.accounted_bytes() * 10, ~std::uint64_t{0}}) {
    const Result<EvictReceipt> room = small.make_room(bytes, absorbed);
    ASSERT_FALSE(room.has_value()) << bytes;
    EXPECT_TRUE(room.error().is(Errc::out_of_room));
    EXPECT_TRUE(small.find(node_key(spec.root, "0"))->blob().ready);
  }
}

// Generations

TEST_F(RegressionsTest, APlanOfAnOlderGenerationIsNotCommitted) {
  EXPECT_CALL(cuda, copy_batch)
      .WillOnce(Invoke([&](CopyDirection direction, std::span<const Copy> copies, StreamRef on) {
        Status submitted = device.copy_batch(direction, copies, on);
        restart_and_tell_the_store();
        return submitted;
      }));
  EXPECT_CALL(fluxon, local_fast_put_commit).Times(0);
  EXPECT_CALL(fluxon, put_abort).Times(0);
  const Result<PutReceipt> receipt = put({"a"}, {tensor(512)});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(mentions(receipt.error(), Origin::core, static_cast<std::int32_t>(Errc::stale_generation)));
  EXPECT_EQ(store.unsettled_keys(), 0U);
}

TEST_F(RegressionsTest, AHandleOfAnOlderGenerationIsNotTransferred) {
  ASSERT_TRUE(put({"a"}, {tensor(512)}).has_value());
  EXPECT_CALL(fluxon, get_start).WillOnce(Invoke([&](Keys keys, bool best, std::span<const std::uint32_t> groups) {
    Result<GetStart> start = owner.get_start(keys, best, groups);
    restart_and_tell_the_store();
    return start;
  }));
  EXPECT_CALL(fluxon, get_transfer).Times(0);
  EXPECT_CALL(fluxon, cancel_get_transfer).Times(1);  // it may be the new owner's
  const ReadOutcome outcome = read("a", tensor(512));
  EXPECT_EQ(outcome.verdict, ReadVerdict::failed);
  EXPECT_TRUE(mentions(outcome.error, Origin::core, static_cast<std::int32_t>(Errc::stale_generation)));
}

TEST_F(RegressionsTest, AHandleIsNotAskedForUnderAGenerationThatAnotherSessionSawEnd) {
  ASSERT_TRUE(put({"a"}, {tensor(512)}).has_value());
  EXPECT_CALL(fluxon, wait_local_segments_ready).WillOnce(Invoke([&] {
    Result<std::vector<Segment>> segments = owner.wait_local_segments_ready();
    testing::Mock::VerifyAndClearExpectations(&fluxon);
    EXPECT_CALL(fluxon, get_start).Times(0);
    restart_and_tell_the_store();
    return segments;
  }));
  const ReadOutcome outcome = read("a", tensor(512));
  EXPECT_EQ(outcome.verdict, ReadVerdict::failed);
  EXPECT_TRUE(mentions(outcome.error, Origin::core, static_cast<std::int32_t>(Errc::stale_generation)));
}

// Keys

TEST_F(RegressionsTest, OneKeyTwiceInAPutStartsNothing) {
  EXPECT_CALL(fluxon, local_fast_put_start).Times(0);
  const Result<PutReceipt> receipt = put({"a", "b", "a"}, {tensor(512), tensor(512), tensor(512)});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(receipt.error().is(Errc::invalid_argument));
  EXPECT_FALSE(owner.has_incidents());
}

// The cursor

TEST_F(RegressionsTest, ASecondResumeThatEndsColdBeginsAtTheRootAgain) {
  write({"0", "1"});
  Session failing = open(spec);
  ASSERT_EQ(resume(failing, {"0", "1"})->matched_chunks, 2U);
  EXPECT_CALL(cuda, copy_batch)
      .WillOnce(Return(cuda_error(CudaErrc::launch_failure, "copy_batch")))
      .WillRepeatedly(Invoke(&device, &fakes::FakeCuda::copy_batch));
  ASSERT_FALSE(resume(failing, {"0", "1"}).has_value());
  EXPECT_EQ(failing.binding->cursor().depth(), -1);
  EXPECT_EQ(failing.engine->indices(), RingIndices{}) << "what the ring holds is not the root's";

  Session missing = open(spec);
  ASSERT_EQ(resume(missing, {"0", "1"})->matched_chunks, 2U);
  ASSERT_EQ(resume(missing, {"2"})->matched_chunks, 0U);
  EXPECT_EQ(missing.binding->cursor().depth(), -1);
  EXPECT_EQ(missing.engine->indices(), RingIndices{});
}

// Lengths

TEST_F(RegressionsTest, WhatAFailedEvictionLeftIsNotAdoptedUnderAnotherLength) {
  write({"0"});
  EXPECT_CALL(fluxon, remove)
      .Times(testing::AtLeast(4))
      .WillOnce(Return(fluxon_error(FluxonErrc::network, "remove")))
      .WillOnce(Return(fluxon_error(FluxonErrc::network, "remove")))
      .WillOnce(Return(fluxon_error(FluxonErrc::network, "remove")))
      .WillOnce(Return(fluxon_error(FluxonErrc::network, "remove")))
      .WillRepeatedly(Invoke(&owner, &fakes::FakeOwner::remove));
  ASSERT_FALSE(manager.evict_blob(*node(spec, {"0"}), absorbed).has_value());
  clock.advance_by(kSettleBound);
  WorldSpec lying = spec;  // the same root over another layout: a caller's mistake
  lying.layout.kv_shape = {96};
  Session session = open(lying);
  const Result<IngestReceipt> receipt = generate(session, "0");
  ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
  EXPECT_EQ(receipt->kv, IngestVerdict::stored);
  const std::string key = kv_key(kv_locator(node(spec, {"0"})->key()), 0, KvPart::k);
  EXPECT_EQ(stored(key).size(), lying.layout.kv_value_bytes());
}

// Snapshots

TEST_F(RegressionsTest, ASnapshotDoesNotMakeReadyWhatIsBeingEvicted) {
  fakes::MemoryFiles files;
  write({"0"});
  ASSERT_TRUE(manager.save(files, "d/snapshot.json").has_value());
  EXPECT_CALL(fluxon, remove)
      .WillOnce(Invoke(&owner, &fakes::FakeOwner::remove))
      .WillOnce(Return(fluxon_error(FluxonErrc::network, "remove")))
      .WillRepeatedly(Invoke(&owner, &fakes::FakeOwner::remove));
  ASSERT_FALSE(manager.evict_blob(*node(spec, {"0"}), absorbed).has_value());
  ASSERT_TRUE(manager.load(files, "d/snapshot.json").has_value());
  EXPECT_FALSE(ready(spec, {"0"}));
  clock.advance_by(kSettleBound);
  std::vector<Error> errors;
  manager.pump(errors);
  EXPECT_EQ(owner.stored_keys(), 1U) << "the eviction is tried again";
}

// Shutting down

TEST_F(RegressionsTest, AnErrorOfAPlanThatShutDownEndsIsTold) {
  fail_waits(2);
  ASSERT_FALSE(put({"a"}, {tensor(512)}).has_value());
  ASSERT_EQ(store.quarantined(), 1U);
  EXPECT_CALL(fluxon, put_abort).WillOnce(Return(fluxon_error(FluxonErrc::network, "put_abort")));
  const Status ended = store.shut_down();
  ASSERT_FALSE(ended.has_value());
  EXPECT_TRUE(mentions(ended.error(), Origin::fluxon, 7000));
  EXPECT_TRUE(device.registrations().empty()) << "nothing is in use: it goes on";
  EXPECT_TRUE(store.shut_down().has_value());
}

// Stores of tensors

class FlakyTensorsTest : public RegressionsTest {
 protected:
  Result<PutReceipt> put_tensors(const std::vector<std::string>& names) {
    const std::vector<std::string_view> keys(names.begin(), names.end());
    std::vector<DeviceTensor> values;
    for (std::size_t i = 0; i < names.size(); ++i) values.push_back(tensor(96));
    return snapshots.put(keys, values, stream, absorbed);
  }
  FlakyTensors tensors{sync};
  OwnedSnapshots<TestRuntime, FlakyTensors> snapshots{runtime, tensors, {arena.map_private(4096), 256}};
  std::vector<Error> errors;
};

TEST_F(FlakyTensorsTest, ALeftoverTensorWhoseRemovalFailedIsRemovedLater) {
  tensors.refused_key = "b";
  tensors.failing_removals = 1;
  ASSERT_FALSE(put_tensors({"a", "b"}).has_value());
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_EQ(snapshots.unsettled_keys(), 1U);
  EXPECT_GT(snapshots.held_bytes(), 0U);
  snapshots.pump(16, errors);
  EXPECT_EQ(tensors.size(), 0U);
  EXPECT_EQ(snapshots.unsettled_keys(), 0U);
  EXPECT_EQ(snapshots.held_bytes(), 0U);
}

TEST_F(FlakyTensorsTest, AQueuedRemovalThatFailedIsTriedAgainButNotAfterAnotherPut) {
  ASSERT_TRUE(put_tensors({"a", "b"}).has_value());
  tensors.failing_removals = 1;
  const std::vector<std::string_view> keys{"a", "b"};
  const std::vector<std::uint64_t> lengths{96, 96};
  snapshots.queue_removal({keys, lengths, 0});
  ASSERT_EQ(tensors.size(), 2U);
  snapshots.pump(16, errors);
  EXPECT_EQ(errors.size(), 1U);
  EXPECT_EQ(tensors.size(), 1U) << "b is gone";
  ASSERT_TRUE(put_tensors({"a"}).has_value());
  snapshots.pump(16, errors);
  EXPECT_EQ(tensors.size(), 1U) << "a is a new value";
}

TEST_F(FlakyTensorsTest, APutWithMoreKeysThanTensorsIsRefused) {
  const DeviceTensor value = tensor(96);
  const std::vector<std::string_view> keys{"a", "b"};
  const Result<PutReceipt> receipt = snapshots.put(keys, std::span(&value, 1), stream, absorbed);
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(receipt.error().is(Errc::invalid_argument));
  EXPECT_EQ(tensors.size(), 0U);
}

TEST_F(FlakyTensorsTest, StagingMemoryWhoseUnregistrationFailedIsUnregisteredByTheNextShutDown) {
  ASSERT_TRUE(snapshots.warm_up(absorbed).has_value());
  EXPECT_CALL(cuda, host_unregister)
      .WillOnce(Return(cuda_error(CudaErrc::invalid_value, "host_unregister")))
      .WillOnce(Invoke(&device, &fakes::FakeCuda::host_unregister));
  ASSERT_FALSE(snapshots.shut_down().has_value());
  EXPECT_TRUE(snapshots.shut_down().has_value());
  EXPECT_TRUE(device.registrations().empty());
}

}  // namespace
}  // namespace holdfast
