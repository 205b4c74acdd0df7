// Owned snapshots by themselves: staging memory that may be in flight, values that do not fit, and what is told.
#include "holdfast/core/owned_snapshots.hpp"

#include <gtest/gtest.h>

#include <array>

#include "core_fixture.hpp"
#include "flaky_tensors.hpp"
#include "holdfast/core/async_tensor_store.hpp"
#include "task_executors.hpp"

namespace holdfast {
namespace {

using testing::Return;

class SnapshotStoreTest : public CoreTest {
 protected:
  static constexpr std::uint64_t kStagingBytes = 256;

  Result<PutReceipt> put(const std::vector<std::string>& names, std::uint64_t value_bytes = 96) {
    std::vector<DeviceTensor> values;
    for (std::size_t i = 0; i < names.size(); ++i) values.push_back(tensor(value_bytes));
    return put_these(names, values);
  }
  Result<PutReceipt> put_these(const std::vector<std::string>& names, const std::vector<DeviceTensor>& values) {
    const std::vector<std::string_view> keys(names.begin(), names.end());
    return snapshots.put(keys, values, stream, absorbed, &spent);
  }
  // `copy` from the value "a" to `target`.
  ReadOutcome read_a(const DeviceTensor& target, std::uint64_t value_bytes, const ReadCopy& copy) {
    const std::array<std::string_view, 1> keys{"a"};
    const std::array<std::uint32_t, 1> groups{1};
    return snapshots.restore({keys, std::span(&value_bytes, 1), groups, std::span(&target, 1), std::span(&copy, 1)},
                             stream, absorbed);
  }
  void fail_waits(int times) {
    auto& expected = EXPECT_CALL(cuda, stream_synchronize).Times(testing::AtLeast(times));
    for (int i = 0; i < times; ++i) {
      expected.WillOnce(Return(cuda_error(CudaErrc::launch_failure, "stream_synchronize")));
    }
    expected.WillRepeatedly(testing::Invoke(&device, &fakes::FakeCuda::stream_synchronize));
  }
  // A put fails, and its copies may still be in flight; so many waits after it fail too.
  void leave_copies_in_flight(int more_failing_waits) {
    fail_waits(2 + more_failing_waits);
    ASSERT_FALSE(put({"lost"}).has_value());
    ASSERT_EQ(snapshots.quarantined(), 1U);
  }
  DeviceTensor host_memory() { return {arena.map_private(4096), 96, 0, true}; }

  FlakyTensors tensors{sync};
  const HostRange staging{arena.map_private(4096), kStagingBytes};
  OwnedSnapshots<TestRuntime, FlakyTensors> snapshots{runtime, tensors, staging};
  Absorbed absorbed;
  Stats spent;  // by the put
  std::vector<Error> errors;
};

TEST_F(SnapshotStoreTest, OnlyDeviceMemoryIsStoredAndRestored) {
  const Result<PutReceipt> receipt = put_these({"a"}, {host_memory()});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(receipt.error().is(Errc::not_device_memory));
  ASSERT_TRUE(put({"a"}).has_value());
  const ReadOutcome outcome = read_a(host_memory(), 96, {0, 0, 0, 0, 96});
  EXPECT_EQ(outcome.verdict, ReadVerdict::failed);
  EXPECT_FALSE(outcome.targets_touched);
  EXPECT_TRUE(mentions(outcome.error, Origin::core, static_cast<std::int32_t>(Errc::not_device_memory)));
}

TEST_F(SnapshotStoreTest, AValueAsLongAsTheStagingMemoryIsStoredAndRestored) {
  const DeviceTensor value = tensor(kStagingBytes, 1);
  ASSERT_TRUE(put_these({"a"}, {value}).has_value());
  const DeviceTensor target = tensor(kStagingBytes, 2);
  EXPECT_EQ(read_a(target, kStagingBytes, {0, 0, 0, 0, kStagingBytes}).verdict, ReadVerdict::restored);
  EXPECT_EQ(bytes_of(target), bytes_of(value));
}

TEST_F(SnapshotStoreTest, AValueLongerThanTheStagingMemoryIsRefused) {
  const Result<PutReceipt> receipt = put({"a"}, kStagingBytes + 1);
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(mentions(receipt.error(), Origin::core, static_cast<std::int32_t>(Errc::invalid_argument)));
  EXPECT_EQ(tensors.size(), 0U);
}

TEST_F(SnapshotStoreTest, ACopyPastTheEndOfItsValueIsRefused) {
  ASSERT_TRUE(put({"a"}).has_value());
  const ReadOutcome outcome = read_a(tensor(96), 96, {0, 1, 0, 0, 96});
  EXPECT_EQ(outcome.verdict, ReadVerdict::failed);
  EXPECT_TRUE(mentions(outcome.error, Origin::core, static_cast<std::int32_t>(Errc::invalid_argument)));
}

TEST_F(SnapshotStoreTest, OnlyWhatAFailedPutMayHaveStoredIsLeftOver) {
  tensors.refused_key = "b";
  tensors.failing_removals = 3;
  ASSERT_FALSE(put({"a", "b", "c"}).has_value());
  EXPECT_EQ(snapshots.unsettled_keys(), 2U) << "what failed may be there all the same, what was not tried is not";
}

TEST_F(SnapshotStoreTest, APutThatFailedThoughItStoredIsRemoved) {
  tensors.refused_key = "b";
  tensors.refused_is_stored = true;
  ASSERT_FALSE(put({"a", "b"}).has_value());
  EXPECT_EQ(tensors.size(), 0U);
  EXPECT_EQ(snapshots.unsettled_keys(), 0U);
  EXPECT_EQ(spent.at(Stage::put_commit), (StageStats{1, 1, 0}));
  EXPECT_EQ(spent.at(Stage::put_undo), (StageStats{1, 0, 0}));
}

TEST_F(SnapshotStoreTest, ADamagedValueIsAsGoodAsNoneAndAFailedProbeSaysNothing) {
  ASSERT_TRUE(put({"a"}).has_value());
  const std::array<std::string_view, 1> keys{"a"};
  tensors.failing_gets = make_error(Errc::wrong_checksum, "get_tensor");
  const ReadOutcome damaged = read_a(tensor(96), 96, {0, 0, 0, 0, 96});
  EXPECT_EQ(damaged.verdict, ReadVerdict::incomplete);
  EXPECT_TRUE(mentions(damaged.error, Origin::core, static_cast<std::int32_t>(Errc::wrong_checksum)));
  EXPECT_FALSE(snapshots.probe(keys, absorbed).value().present);
  tensors.failing_gets = make_error(Errc::file_failed, "get_tensor");
  EXPECT_EQ(read_a(tensor(96), 96, {0, 0, 0, 0, 96}).verdict, ReadVerdict::failed);
  EXPECT_FALSE(snapshots.probe(keys, absorbed).has_value());
  tensors.failing_gets.reset();
  EXPECT_TRUE(snapshots.probe(keys, absorbed).value().present);
}

TEST_F(SnapshotStoreTest, ARemovalThatFailedIsToldWithItsError) {
  ASSERT_TRUE(put({"a", "b"}).has_value());
  tensors.failing_removals = 1;
  const std::array<std::string_view, 2> keys{"a", "b"};
  const std::array<std::uint64_t, 2> value_bytes{96, 96};
  const RemoveOutcome outcome = snapshots.remove({keys, value_bytes, 0}, absorbed);
  EXPECT_EQ(outcome.removed, 1U);
  ASSERT_EQ(outcome.failures.size(), 1U);
  EXPECT_TRUE(mentions(outcome.failures[0], Origin::fluxon, 7000));
}

TEST_F(SnapshotStoreTest, APumpRemovesNoMoreLeftoversThanItMay) {
  tensors.refused_key = "c";
  tensors.failing_removals = 2;
  ASSERT_FALSE(put({"a", "b", "c"}).has_value());
  ASSERT_EQ(snapshots.unsettled_keys(), 2U);
  EXPECT_EQ(snapshots.pump(1, errors), 1U);
  EXPECT_EQ(snapshots.unsettled_length(), (ListLength{1, 2}));
}

TEST_F(SnapshotStoreTest, AWarmUpTouchesAndRegistersTheStagingMemorySoThatNoPutDoes) {
  WarmUpOptions options;
  std::vector<HostRange> touched;
  options.touch = [&](const HostRange& range) { touched.push_back(range); };
  const Result<WarmUpReport> report = snapshots.warm_up(absorbed, options);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->progress,
            (WarmUpProgress{WarmUpStage::registering, kStagingBytes, kStagingBytes, kStagingBytes, kStagingBytes}));
  ASSERT_EQ(touched.size(), 1U);
  EXPECT_EQ(touched[0].base, staging.base);
  EXPECT_EQ(touched[0].bytes, kStagingBytes);
  EXPECT_CALL(cuda, host_register).Times(0);
  EXPECT_TRUE(put({"a"}).has_value());
  const Result<WarmUpReport> again = snapshots.warm_up(absorbed, options);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->progress.register_total_bytes, 0U);
  EXPECT_EQ(touched.size(), 1U) << "nothing is left to do";
}

TEST_F(SnapshotStoreTest, AWarmUpThatIsCancelledLeavesTheStagingMemoryUnregistered) {
  constexpr std::size_t kAsks = 4;  // at first, before and after the one part that is touched, before the one piece
  for (std::size_t moment = 1; moment <= kAsks + 1; ++moment) {
    std::size_t asked = 0;
    WarmUpOptions options;
    options.go_on = [&](const WarmUpProgress&) { return ++asked != moment; };
    const Result<WarmUpReport> report = snapshots.warm_up(absorbed, options);
    EXPECT_EQ(report.has_value(), moment > kAsks) << moment;
    EXPECT_EQ(device.registrations().empty(), moment <= kAsks) << moment;
    if (!report) {
      EXPECT_TRUE(report.error().is(Errc::cancelled)) << moment;
    }
  }
}

TEST_F(SnapshotStoreTest, NothingIsStagedWhileACopyMayBeInFlight) {
  leave_copies_in_flight(1);
  EXPECT_CALL(cuda, copy_batch).Times(0);
  const Result<PutReceipt> receipt = put({"a"});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(mentions(receipt.error(), Origin::core, static_cast<std::int32_t>(Errc::quarantined)));
}

TEST_F(SnapshotStoreTest, APumpTellsOfAWaitThatFailsAgain) {
  leave_copies_in_flight(1);
  snapshots.pump(16, errors);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(snapshots.quarantined(), 1U);
  snapshots.pump(16, errors);
  EXPECT_EQ(errors.size(), 1U);
  EXPECT_EQ(snapshots.quarantine_length(), (ListLength{0, 1}));
}

TEST_F(SnapshotStoreTest, WhatIsAskedOfTheBooksDoesNotWaitForACopy) {
  EXPECT_CALL(cuda, copy_batch).WillOnce([&](CopyDirection direction, std::span<const Copy> copies, StreamRef on) {
    EXPECT_EQ(snapshots.quarantined(), 0U) << "no wait has failed yet";
    EXPECT_EQ(snapshots.unsettled_keys(), 0U);
    EXPECT_EQ(snapshots.held_bytes(), 0U);
    EXPECT_EQ(snapshots.registry_counts().registered_pieces, 1U);
    return device.copy_batch(direction, copies, on);
  });
  EXPECT_TRUE(put({"a"}).has_value());
}

TEST_F(SnapshotStoreTest, AQueuedRemovalIsDoneByThePump) {
  ASSERT_TRUE(put({"a"}).has_value());
  const std::array<std::string_view, 1> keys{"a"};
  const std::array<std::uint64_t, 1> value_bytes{96};
  snapshots.queue_removal({keys, value_bytes, 0});
  EXPECT_EQ(tensors.size(), 1U);
  EXPECT_EQ(snapshots.held_bytes(), kSlotAlignment);
  EXPECT_EQ(snapshots.pump(16, errors), 1U);
  EXPECT_EQ(tensors.size(), 0U);
  EXPECT_EQ(snapshots.held_bytes(), 0U);
}

TEST_F(SnapshotStoreTest, StagingMemoryIsNotGivenBackWhileACopyMayBeInFlight) {
  leave_copies_in_flight(1);
  const Status early = snapshots.shut_down();
  ASSERT_FALSE(early.has_value());
  EXPECT_TRUE(early.error().is(Errc::quarantined));
  EXPECT_TRUE(device.is_registered(staging.base, staging.bytes));
  EXPECT_TRUE(snapshots.shut_down().has_value());
  EXPECT_TRUE(device.registrations().empty());
}

TEST_F(SnapshotStoreTest, WithTheDeviceContextGoEveryCopyAndEveryRegistration) {
  leave_copies_in_flight(0);
  device.tear_down();
  snapshots.device_torn_down(errors);
  EXPECT_EQ(snapshots.quarantined(), 0U);
  EXPECT_EQ(snapshots.registry_counts().registered_pieces, 0U);
  stream = *device.create_stream();
  EXPECT_TRUE(put({"a"}).has_value());
}

TEST_F(SnapshotStoreTest, ASubmissionThatFailedIsToldWithTheWaitsThatFailedAfterIt) {
  EXPECT_CALL(cuda, copy_batch).WillOnce(Return(cuda_error(CudaErrc::invalid_value, "copy_batch")));
  fail_waits(2);
  const Result<PutReceipt> receipt = put({"a"});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(mentions(receipt.error(), Origin::cuda, static_cast<std::int32_t>(CudaErrc::invalid_value)));
  EXPECT_TRUE(mentions(receipt.error(), Origin::cuda, static_cast<std::int32_t>(CudaErrc::launch_failure)));
}

// ---- Over a store whose puts are queued.

class QueuedSnapshotsTest : public CoreTest {
 protected:
  Result<PutReceipt> put(const std::vector<std::string_view>& keys) {
    std::vector<DeviceTensor> values;
    for (std::size_t i = 0; i < keys.size(); ++i) values.push_back(tensor(96));
    return snapshots.put(keys, values, stream, absorbed);
  }

  FlakyTensors tensors{sync};
  QueuedExecutor executor;
  AsyncTensorStore<FlakyTensors, StdSync> queue{tensors, executor, sync, {}};
  const HostRange staging{arena.map_private(4096), 256};
  OwnedSnapshots<TestRuntime, AsyncTensorStore<FlakyTensors, StdSync>> snapshots{runtime, queue, staging};
  Absorbed absorbed;
};

TEST_F(QueuedSnapshotsTest, WhatWasPutIsStoredWhenThePutSucceeded) {
  ASSERT_TRUE(put({"a", "b", "c"}).has_value());
  EXPECT_EQ(tensors.size(), 3U);
  EXPECT_EQ(queue.queued_puts(), 0U);
}

TEST_F(QueuedSnapshotsTest, AQueuedPutThatFailedIsAFailureOfThePut) {
  tensors.refused_key = "b";
  const Result<PutReceipt> receipt = put({"a", "b", "c"});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(receipt.error().is(Errc::put_failed));
  EXPECT_TRUE(mentions(receipt.error(), Origin::fluxon, 7000));
  EXPECT_EQ(tensors.size(), 0U) << "what was stored beside it is gone again";
}

TEST_F(QueuedSnapshotsTest, AFailureOfSomebodyElsesPutIsToldAndIsNone) {
  tensors.refused_key = "x";
  ASSERT_TRUE(queue.put_tensor("x", {}).has_value());
  ASSERT_TRUE(put({"a"}).has_value());
  ASSERT_EQ(absorbed.size(), 1U);
  EXPECT_TRUE(is_fluxon(absorbed[0], FluxonErrc::network));
  EXPECT_EQ(tensors.size(), 1U);
}

}  // namespace
}  // namespace holdfast
