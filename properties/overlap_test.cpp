// The Plan tier store with copies that overlap: the order of its calls, what each failure falls back to, and that no
// event is left.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>

#include "core_fixture.hpp"

namespace holdfast {
namespace {

using testing::_;
using testing::HasSubstr;
using testing::InSequence;
using testing::Invoke;
using testing::Return;
using testing::SizeIs;

Error launch_failure(std::string_view call) { return cuda_error(CudaErrc::launch_failure, call); }

class Follower final : public CopyFollower {
 public:
  void follow(StreamRef copies, std::optional<EventRef> done) override {
    streams.push_back(copies);
    events.push_back(done);
  }
  std::vector<StreamRef> streams;
  std::vector<std::optional<EventRef>> events;
};

class OverlapTest : public CoreTest {
 protected:
  static PlanOptions overlapped(std::size_t batches_in_flight_max = 2) {
    PlanOptions options = plan_options();
    options.overlap = {CopyMode::overlapped, batches_in_flight_max, 1};
    return options;
  }
  ~OverlapTest() override {
    std::vector<Error> errors;
    store.pump(16, errors);
    EXPECT_EQ(device.event_count(), 0U) << "an event was left";
    EXPECT_TRUE(nothing_open());
  }

  Result<PutReceipt> put(const std::vector<std::string>& names, const std::vector<DeviceTensor>& tensors,
                         const CopyStream& on) {
    const std::vector<std::string_view> keys(names.begin(), names.end());
    return store.put(keys, tensors, on, absorbed);
  }
  Result<PutReceipt> put(const std::vector<std::string>& names, const std::vector<DeviceTensor>& tensors) {
    return put(names, tensors, stream);
  }
  // Each key an atomic group of its own.
  ReadOutcome read(const std::vector<std::string>& names, const std::vector<DeviceTensor>& targets,
                   const CopyStream& on, bool one_answer = false) {
    const std::vector<std::string_view> keys(names.begin(), names.end());
    std::vector<std::uint64_t> value_bytes;
    std::vector<ReadCopy> copies;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      value_bytes.push_back(targets[i].bytes);
      copies.push_back({i, 0, i, 0, targets[i].bytes});
    }
    const std::vector<std::uint32_t> groups(names.size(), 1);
    return store.restore({keys, value_bytes, groups, targets, copies, one_answer}, on, absorbed);
  }
  ReadOutcome read(const std::vector<std::string>& names, const std::vector<DeviceTensor>& targets) {
    return read(names, targets, stream);
  }
  bool is_absorbed(CudaErrc errc) const {
    return std::any_of(absorbed.begin(), absorbed.end(), [&](const Error& error) { return is_cuda(error, errc); });
  }

  Absorbed absorbed;
  PlanTierStore<TestRuntime> store{runtime, overlapped()};
  const std::vector<std::string> two{"a", "b"};
};

// ---- Puts.

TEST_F(OverlapTest, TheNextPlanIsStartedWhileAGroupIsCopiedAndEachIsCommittedBehindItsOwnEvent) {
  std::vector<EventRef> events;
  {
    const InSequence order;
    for (const std::uint64_t bytes : {512, 1024}) {
      EXPECT_CALL(fluxon, local_fast_put_start(_, bytes, _));
      EXPECT_CALL(cuda, event_create()).WillOnce(Invoke([&] {
        Result<EventRef> event = device.event_create();
        events.push_back(*event);
        return event;
      }));
      EXPECT_CALL(cuda, copy_batch(CopyDirection::device_to_host, SizeIs(1), stream));
      EXPECT_CALL(cuda, event_record(_, stream));
    }
    for (const std::size_t group : {0, 1}) {
      EXPECT_CALL(cuda, event_synchronize(testing::Truly([&, group](EventRef on) { return on == events[group]; })));
      EXPECT_CALL(cuda, event_destroy(testing::Truly([&, group](EventRef on) { return on == events[group]; })));
      EXPECT_CALL(fluxon, local_fast_put_commit(_));
    }
  }
  EXPECT_CALL(cuda, stream_synchronize).Times(0);
  const std::vector<DeviceTensor> values{tensor(512, 1), tensor(1024, 2)};
  const Result<PutReceipt> receipt = put(two, values);
  ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
  EXPECT_EQ(receipt->verdict, PutVerdict::stored);
  EXPECT_EQ(stored("a"), bytes_of(values[0]));
  EXPECT_EQ(stored("b"), bytes_of(values[1]));
}

TEST_F(OverlapTest, ASynchronousStoreKnowsNoEvents) {
  PlanTierStore<TestRuntime> plain(runtime, plan_options());
  EXPECT_CALL(cuda, event_create).Times(0);
  EXPECT_CALL(cuda, copy_batch).Times(1);
  EXPECT_CALL(cuda, stream_synchronize(stream)).Times(1);
  const std::vector<std::string_view> keys{"a", "b"};
  ASSERT_TRUE(plain.put(keys, std::vector{tensor(512), tensor(1024)}, stream, absorbed).has_value());
}

TEST_F(OverlapTest, NoMoreBatchesAreInFlightThanTheBound) {
  std::size_t in_flight = 0;
  std::size_t most = 0;
  EXPECT_CALL(cuda, copy_batch)
      .Times(4)
      .WillRepeatedly(Invoke([&](CopyDirection direction, std::span<const Copy> copies, StreamRef on) {
        most = std::max(most, ++in_flight);
        return device.copy_batch(direction, copies, on);
      }));
  EXPECT_CALL(cuda, event_synchronize).Times(4).WillRepeatedly(Invoke([&](EventRef event) {
    --in_flight;
    return device.event_synchronize(event);
  }));
  ASSERT_TRUE(put({"a", "b", "c", "d"}, {tensor(512), tensor(1024), tensor(2048), tensor(4096)}).has_value());
  EXPECT_EQ(most, 2U);
}

TEST_F(OverlapTest, ARefusedLaterPlanStoresNothingThoughTheFirstIsCopied) {
  for (const FluxonErrc refusal : {FluxonErrc::key_being_written, FluxonErrc::key_already_exists}) {
    const InSequence order;
    EXPECT_CALL(fluxon, local_fast_put_start(_, 512, _));
    EXPECT_CALL(cuda, copy_batch);
    EXPECT_CALL(fluxon, local_fast_put_start(_, 1024, _)).WillOnce(Return(fluxon_error(refusal, "start")));
    EXPECT_CALL(cuda, event_synchronize);
    EXPECT_CALL(fluxon, put_abort);
    EXPECT_CALL(fluxon, local_fast_put_commit).Times(0);
    const Result<PutReceipt> receipt = put(two, {tensor(512), tensor(1024)});
    ASSERT_TRUE(receipt.has_value());
    EXPECT_EQ(receipt->verdict, PutVerdict::elsewhere);
    EXPECT_EQ(owner.prepared_slots(), 0U);
    testing::Mock::VerifyAndClearExpectations(&fluxon);
    testing::Mock::VerifyAndClearExpectations(&cuda);
    fluxon.delegate_to(owner);
    cuda.delegate_to(device);
  }
}

TEST_F(OverlapTest, ARefusedPutWhoseCopiesCannotBeWaitedForFailsAndIsNotTriedAgain) {
  EXPECT_CALL(fluxon, local_fast_put_start(_, 512, _)).Times(1);
  EXPECT_CALL(fluxon, local_fast_put_start(_, 1024, _))
      .WillOnce(Return(fluxon_error(FluxonErrc::key_already_exists, "local_fast_put_start")));
  EXPECT_CALL(cuda, event_synchronize).WillOnce(Return(launch_failure("event_synchronize")));
  EXPECT_CALL(cuda, stream_synchronize).WillOnce(Return(launch_failure("stream_synchronize")));
  const Result<PutReceipt> receipt = put(two, {tensor(512), tensor(1024)});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(mentions(receipt.error(), Origin::fluxon, 4001));
  EXPECT_TRUE(mentions(receipt.error(), Origin::cuda, 719));
  EXPECT_EQ(store.quarantined(), 1U);
  ASSERT_TRUE(device.stream_synchronize(stream).has_value());
}

TEST_F(OverlapTest, WithoutMemoryForAnEventTheStreamIsWaitedFor) {
  EXPECT_CALL(cuda, event_create)
      .WillOnce(Return(cuda_error(CudaErrc::memory_allocation, "event_create")))
      .WillOnce(Invoke(&device, &fakes::FakeCuda::event_create));
  EXPECT_CALL(cuda, stream_synchronize(stream)).Times(1);
  EXPECT_CALL(cuda, event_synchronize).Times(1);
  ASSERT_TRUE(put(two, {tensor(512), tensor(1024)}).has_value());
  EXPECT_TRUE(is_absorbed(CudaErrc::memory_allocation));
}

TEST_F(OverlapTest, AnyOtherErrorBeforeTheCopiesSubmitsNothing) {
  EXPECT_CALL(cuda, event_create).WillOnce(Return(launch_failure("event_create")));
  EXPECT_CALL(cuda, copy_batch).Times(0);
  EXPECT_CALL(fluxon, put_abort).Times(1);
  EXPECT_CALL(fluxon, local_fast_put_commit).Times(0);
  const Result<PutReceipt> receipt = put({"a"}, {tensor(512)});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(mentions(receipt.error(), Origin::cuda, 719));
}

TEST_F(OverlapTest, AFailedRecordMayBeTheCopysOwnErrorSoNothingIsCommitted) {
  const InSequence order;
  EXPECT_CALL(cuda, copy_batch);
  EXPECT_CALL(cuda, event_record).WillOnce(Return(launch_failure("event_record")));
  EXPECT_CALL(cuda, event_destroy);
  EXPECT_CALL(cuda, stream_synchronize(stream));
  EXPECT_CALL(fluxon, put_abort);
  EXPECT_CALL(fluxon, local_fast_put_commit).Times(0);
  const Result<PutReceipt> receipt = put({"a"}, {tensor(512)});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(mentions(receipt.error(), Origin::cuda, 719));
}

TEST_F(OverlapTest, ASecondGroupThatCannotBeWaitedForTakesTheFirstBackAndIsNamed) {
  EXPECT_CALL(cuda, event_synchronize)
      .WillOnce(Invoke(&device, &fakes::FakeCuda::event_synchronize))
      .WillOnce(Return(launch_failure("event_synchronize")));
  EXPECT_CALL(fluxon, local_fast_put_commit).Times(1);
  EXPECT_CALL(cuda, stream_synchronize(stream)).Times(1);
  EXPECT_CALL(fluxon, put_abort).Times(1);
  EXPECT_CALL(fluxon, remove("a")).Times(1);
  const Result<PutReceipt> receipt = put(two, {tensor(512), tensor(1024)});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_THAT(to_string(receipt.error()), HasSubstr("wait of group 2 of 2"));
  EXPECT_EQ(store.quarantined(), 0U);
  const std::vector<std::string_view> keys{"a"};
  EXPECT_TRUE(store.unsettled(keys)) << "stored, not routed: its removal answered 4000";
}

TEST_F(OverlapTest, WhereEveryEventFailsTheStreamTellsAndNothingIsQuarantined) {
  EXPECT_CALL(cuda, event_synchronize).Times(2).WillRepeatedly(Return(launch_failure("event_synchronize")));
  EXPECT_CALL(cuda, stream_synchronize).Times(2);
  EXPECT_CALL(fluxon, local_fast_put_commit).Times(0);
  EXPECT_CALL(fluxon, put_abort).Times(2);
  ASSERT_FALSE(put(two, {tensor(512), tensor(1024)}).has_value());
  EXPECT_EQ(store.quarantined(), 0U);
}

TEST_F(OverlapTest, EveryGroupIsCommittedBeforeAnyCodeIsSeen) {
  fakes::CommitChoice choice;
  choice.keys.push_back({fakes::KeyChoice::Fate::not_stored, -118, 0});
  owner.choose_next_commit(choice);
  EXPECT_CALL(fluxon, local_fast_put_commit).Times(2);
  EXPECT_CALL(fluxon, remove("b")).Times(1);
  ASSERT_FALSE(put(two, {tensor(512), tensor(1024)}).has_value());
}

TEST_F(OverlapTest, APlanThatGrewOldWhileOthersWereCopiedIsNotCommitted) {
  EXPECT_CALL(cuda, event_synchronize)
      .WillOnce(Invoke([&](EventRef event) {
        clock.advance_by(21 * kMinute);
        return device.event_synchronize(event);
      }))
      .WillRepeatedly(Invoke(&device, &fakes::FakeCuda::event_synchronize));
  EXPECT_CALL(fluxon, local_fast_put_commit).Times(0);
  EXPECT_CALL(fluxon, put_abort).Times(2);
  const Result<PutReceipt> receipt = put(two, {tensor(512), tensor(1024)});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_THAT(to_string(receipt.error()), HasSubstr("group 1 of 2"));
}

TEST_F(OverlapTest, TwoPlansOfOnePutMayNotShareASlot) {
  std::uint64_t first = 0;
  EXPECT_CALL(fluxon, local_fast_put_start)
      .WillRepeatedly(Invoke([&](Keys keys, std::uint64_t bytes, const PutOptions& options) {
        Result<PlanPtr> plan = owner.local_fast_put_start(keys, bytes, options);
        auto* words = reinterpret_cast<std::uint64_t*>(plan->address);
        if (first == 0) {
          first = words[2];
        } else {
          words[2] = first;
        }
        return plan;
      }));
  EXPECT_CALL(cuda, copy_batch).Times(1);
  EXPECT_CALL(fluxon, local_fast_put_commit).Times(0);
  const Result<PutReceipt> receipt = put(two, {tensor(512), tensor(1024)});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_THAT(to_string(receipt.error()), HasSubstr("write the same bytes"));
}

// ---- What cannot be waited for.

TEST_F(OverlapTest, APumpAsksTheEventAndWaitsForNothing) {
  EXPECT_CALL(cuda, event_synchronize).WillOnce(Return(launch_failure("event_synchronize")));
  EXPECT_CALL(cuda, stream_synchronize).WillOnce(Return(launch_failure("stream_synchronize")));
  ASSERT_FALSE(put({"a"}, {tensor(512)}).has_value());
  ASSERT_EQ(store.quarantined(), 1U);

  EXPECT_CALL(fluxon, put_abort).Times(0);
  EXPECT_CALL(cuda, event_query)
      .WillOnce(Invoke(&device, &fakes::FakeCuda::event_query))
      .WillOnce(Return(launch_failure("event_query")))
      .WillOnce(Invoke(&device, &fakes::FakeCuda::event_query));
  std::vector<Error> errors;
  store.pump(16, errors);
  EXPECT_TRUE(errors.empty()) << "not ready is no error";
  store.pump(16, errors);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(store.quarantined(), 1U);

  ASSERT_TRUE(device.stream_synchronize(stream).has_value());
  EXPECT_CALL(fluxon, put_abort).Times(1);
  EXPECT_CALL(cuda, event_destroy).Times(1);
  store.pump(16, errors);
  EXPECT_EQ(store.quarantined(), 0U);
  EXPECT_EQ(errors.size(), 1U);
}

TEST_F(OverlapTest, AShutDownWaits) {
  EXPECT_CALL(cuda, event_synchronize).WillOnce(Return(launch_failure("event_synchronize")));
  EXPECT_CALL(cuda, stream_synchronize)
      .WillOnce(Return(launch_failure("stream_synchronize")))
      .WillOnce(Invoke(&device, &fakes::FakeCuda::stream_synchronize));
  EXPECT_CALL(cuda, event_query).Times(0);
  ASSERT_FALSE(put({"a"}, {tensor(512)}).has_value());
  EXPECT_TRUE(store.shut_down().has_value());
}

TEST_F(OverlapTest, EventsOfATornDownContextAreNotDestroyed) {
  EXPECT_CALL(cuda, event_synchronize).WillRepeatedly(Return(launch_failure("event_synchronize")));
  EXPECT_CALL(cuda, stream_synchronize).WillRepeatedly(Return(launch_failure("stream_synchronize")));
  EXPECT_CALL(cuda, event_destroy).Times(0);
  ASSERT_FALSE(put({"a"}, {tensor(512)}).has_value());
  device.tear_down();
  std::vector<Error> errors;
  store.device_torn_down(errors);
  EXPECT_EQ(store.quarantined(), 0U);
  EXPECT_TRUE(errors.empty());
}

TEST_F(OverlapTest, AStoreThatEndsWithAQuarantineDestroysItsEvents) {
  EXPECT_CALL(cuda, event_synchronize).WillOnce(Return(launch_failure("event_synchronize")));
  EXPECT_CALL(cuda, stream_synchronize).WillOnce(Return(launch_failure("stream_synchronize")));
  EXPECT_CALL(cuda, event_destroy).Times(1);
  {
    PlanTierStore<TestRuntime> other(runtime, overlapped());
    const std::vector<std::string_view> keys{"a"};
    ASSERT_FALSE(other.put(keys, std::vector{tensor(512)}, stream, absorbed).has_value());
  }
  EXPECT_EQ(device.event_count(), 0U);
  owner.client_died();
  ASSERT_TRUE(device.stream_synchronize(stream).has_value());
}

TEST_F(OverlapTest, AnEventThatCannotBeDestroyedIsToldOfAndNotTriedAgain) {
  EXPECT_CALL(cuda, event_destroy).WillOnce(Invoke([&](EventRef event) {
    EXPECT_TRUE(device.event_destroy(event).has_value());
    return Status(launch_failure("event_destroy"));
  }));
  EXPECT_TRUE(put({"a"}, {tensor(512)}).has_value());
  EXPECT_TRUE(is_absorbed(CudaErrc::launch_failure));
}

// ---- Streams that are not the engine's.

TEST_F(OverlapTest, TheFirstCopyWaitsForTheProducerAndTheFollowerForEachBatch) {
  const StreamRef engine = *device.create_stream();
  const EventRef written = *device.event_create();
  ASSERT_TRUE(device.event_record(written, engine).has_value());
  Follower follower;
  CopyStream on = stream;
  on.producer = written;
  on.follower = &follower;
  {
    const InSequence order;
    EXPECT_CALL(cuda, stream_wait(stream, written)).Times(1);
    EXPECT_CALL(cuda, copy_batch).Times(2);
  }
  ASSERT_TRUE(put(two, {tensor(512), tensor(1024)}, on).has_value());
  ASSERT_THAT(follower.events, SizeIs(2));
  EXPECT_TRUE(follower.events[0] && follower.events[1]);
  EXPECT_EQ(follower.streams, (std::vector{stream, stream}));
  ASSERT_TRUE(device.event_destroy(written).has_value());
}

TEST_F(OverlapTest, WhatCannotWaitForTheProducerIsNotCopied) {
  const EventRef written = *device.event_create();
  CopyStream on = stream;
  on.producer = written;
  EXPECT_CALL(cuda, stream_wait).Times(2).WillRepeatedly(Return(launch_failure("stream_wait")));
  EXPECT_CALL(cuda, copy_batch).Times(0);
  EXPECT_CALL(fluxon, put_abort).Times(1);
  const Result<PutReceipt> receipt = put({"a"}, {tensor(512)}, on);
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(mentions(receipt.error(), Origin::cuda, 719));
  ASSERT_TRUE(owner.put("b", std::vector<std::byte>(512)).has_value());
  EXPECT_EQ(read({"b"}, {tensor(512)}, on).verdict, ReadVerdict::failed);
  ASSERT_TRUE(device.event_destroy(written).has_value());
}

TEST_F(OverlapTest, AFollowerIsToldWhatMayBeInFlightWithoutAnEventToo) {
  Follower follower;
  CopyStream on = stream;
  on.follower = &follower;
  EXPECT_CALL(cuda, copy_batch)
      .WillOnce(Return(launch_failure("copy_batch")))
      .WillOnce(Invoke(&device, &fakes::FakeCuda::copy_batch));
  EXPECT_CALL(cuda, event_record).WillOnce(Return(launch_failure("event_record")));
  ASSERT_FALSE(put({"a"}, {tensor(512)}, on).has_value());
  ASSERT_FALSE(put({"b"}, {tensor(512)}, on).has_value());
  ASSERT_THAT(follower.events, SizeIs(2));
  EXPECT_FALSE(follower.events[0] || follower.events[1]);
}

TEST_F(OverlapTest, AFollowerOfASynchronousStoreGetsNoEvent) {
  PlanTierStore<TestRuntime> plain(runtime, plan_options());
  Follower follower;
  CopyStream on = stream;
  on.follower = &follower;
  const std::vector<std::string_view> keys{"a", "b"};
  EXPECT_CALL(cuda, copy_batch).Times(1);
  EXPECT_CALL(cuda, event_create).Times(0);
  ASSERT_TRUE(plain.put(keys, std::vector{tensor(512), tensor(1024)}, on, absorbed).has_value());
  ASSERT_THAT(follower.events, SizeIs(1));
  EXPECT_FALSE(follower.events[0].has_value());
}

// ---- Reads.

TEST_F(OverlapTest, AllGetsAreStartedThenEachPartIsTransferredWhileTheOneBeforeItIsCopied) {
  ASSERT_TRUE(put(two, {tensor(512, 1), tensor(512, 2)}).has_value());
  {
    const InSequence order;
    EXPECT_CALL(fluxon, get_start(SizeIs(1), _, _)).Times(2);
    for (int part = 0; part < 2; ++part) {
      EXPECT_CALL(fluxon, get_transfer(_, 1));
      EXPECT_CALL(cuda, copy_batch(CopyDirection::host_to_device, SizeIs(1), stream));
      EXPECT_CALL(cuda, event_record(_, stream));
    }
    for (int part = 0; part < 2; ++part) {
      EXPECT_CALL(cuda, event_synchronize);
      EXPECT_CALL(fluxon, release_views);
    }
  }
  EXPECT_CALL(cuda, stream_synchronize).Times(0);
  const std::vector<DeviceTensor> targets{tensor(512), tensor(512)};
  EXPECT_EQ(read(two, targets).verdict, ReadVerdict::restored);
  EXPECT_EQ(bytes_of(targets[0]), stored("a"));
  EXPECT_EQ(bytes_of(targets[1]), stored("b"));
}

TEST_F(OverlapTest, WhatAsksForOneAnswerIsOneGetAndOneBatch) {
  ASSERT_TRUE(put(two, {tensor(512), tensor(512)}).has_value());
  EXPECT_CALL(fluxon, get_start(SizeIs(2), _, _)).Times(1);
  EXPECT_CALL(fluxon, get_transfer(_, 2)).Times(1);
  EXPECT_CALL(cuda, copy_batch(_, SizeIs(2), _)).Times(1);
  EXPECT_EQ(read(two, {tensor(512), tensor(512)}, stream, true).verdict, ReadVerdict::restored);
}

TEST_F(OverlapTest, AMissOfALaterPartCancelsTheOthersAndTouchesNothing) {
  ASSERT_TRUE(put({"a"}, {tensor(512)}).has_value());
  EXPECT_CALL(fluxon, cancel_get_transfer).Times(2);
  EXPECT_CALL(fluxon, get_transfer).Times(0);
  EXPECT_CALL(cuda, copy_batch).Times(0);
  const ReadOutcome outcome = read({"a", "b", "c"}, {tensor(512), tensor(512), tensor(512)});
  EXPECT_EQ(outcome.verdict, ReadVerdict::incomplete);
  EXPECT_FALSE(outcome.targets_touched);
}

TEST_F(OverlapTest, AFailedLaterStartCancelsTheOthers) {
  ASSERT_TRUE(put(two, {tensor(512), tensor(512)}).has_value());
  EXPECT_CALL(fluxon, get_start)
      .WillOnce(Invoke(&owner, &fakes::FakeOwner::get_start))
      .WillOnce(Return(fluxon_error(FluxonErrc::network, "get_start")));
  EXPECT_CALL(fluxon, cancel_get_transfer).Times(1);
  const ReadOutcome outcome = read(two, {tensor(512), tensor(512)});
  EXPECT_EQ(outcome.verdict, ReadVerdict::failed);
  EXPECT_FALSE(outcome.targets_touched);
  EXPECT_THAT(to_string(outcome.error), HasSubstr("groups 2 to 2 of 2"));
}

TEST_F(OverlapTest, AValueThatVanishesBeforeALaterTransferLeavesTheTargetsUndefined) {
  ASSERT_TRUE(put({"a", "b", "c"}, {tensor(512), tensor(512), tensor(512)}).has_value());
  EXPECT_CALL(fluxon, get_transfer)
      .WillOnce(Invoke(&owner, &fakes::FakeOwner::get_transfer))
      .WillOnce(Invoke([&](GetHandle handle, std::uint64_t) {
        EXPECT_TRUE(owner.cancel_get_transfer(handle).has_value());  // consumed all the same
        return Result<PlanPtr>(fluxon_error(FluxonErrc::key_not_found, "get_transfer"));
      }));
  EXPECT_CALL(fluxon, cancel_get_transfer).Times(1);
  EXPECT_CALL(fluxon, release_views).Times(1);
  const ReadOutcome outcome = read({"a", "b", "c"}, {tensor(512), tensor(512), tensor(512)});
  EXPECT_EQ(outcome.verdict, ReadVerdict::incomplete);
  EXPECT_TRUE(outcome.targets_touched);
}

TEST_F(OverlapTest, AFailedLaterCopyIsNamedAndEveryViewIsLetGoBehindItsCopies) {
  ASSERT_TRUE(put(two, {tensor(512), tensor(512)}).has_value());
  const InSequence order;
  EXPECT_CALL(cuda, copy_batch);
  EXPECT_CALL(cuda, copy_batch).WillOnce(Return(launch_failure("copy_batch")));
  EXPECT_CALL(cuda, event_synchronize);
  EXPECT_CALL(fluxon, release_views);
  EXPECT_CALL(cuda, stream_synchronize);
  EXPECT_CALL(fluxon, release_views);
  const ReadOutcome outcome = read(two, {tensor(512), tensor(512)});
  EXPECT_EQ(outcome.verdict, ReadVerdict::failed);
  EXPECT_TRUE(outcome.targets_touched);
  EXPECT_THAT(to_string(outcome.error), HasSubstr("groups 2 to 2 of 2, first b"));
}

TEST_F(OverlapTest, AMissWhoseCopiesCannotBeWaitedForIsAFailure) {
  ASSERT_TRUE(put(two, {tensor(512), tensor(512)}).has_value());
  EXPECT_CALL(fluxon, get_transfer)
      .WillOnce(Invoke(&owner, &fakes::FakeOwner::get_transfer))
      .WillOnce(Invoke([&](GetHandle handle, std::uint64_t) {
        EXPECT_TRUE(owner.cancel_get_transfer(handle).has_value());
        return Result<PlanPtr>(fluxon_error(FluxonErrc::key_not_found, "get_transfer"));
      }));
  EXPECT_CALL(cuda, event_synchronize).WillOnce(Return(launch_failure("event_synchronize")));
  EXPECT_CALL(cuda, stream_synchronize).WillOnce(Return(launch_failure("stream_synchronize")));
  const ReadOutcome outcome = read(two, {tensor(512), tensor(512)});
  EXPECT_EQ(outcome.verdict, ReadVerdict::failed) << "the targets are not for another try";
  EXPECT_TRUE(mentions(outcome.error, Origin::fluxon, 4000));
  EXPECT_EQ(store.quarantined(), 1U);
  ASSERT_TRUE(device.stream_synchronize(stream).has_value());
}

TEST_F(OverlapTest, AReadHasNoMoreBatchesInFlightThanTheBoundAndLetsTheOldestViewsGoFirst) {
  const std::vector<std::string> names{"a", "b", "c", "d"};
  ASSERT_TRUE(put(names, {tensor(512), tensor(512), tensor(512), tensor(512)}).has_value());
  std::size_t most = 0;
  EXPECT_CALL(cuda, event_record).Times(4).WillRepeatedly(Invoke([&](EventRef event, StreamRef on) {
    most = std::max(most, device.in_flight_count());
    return device.event_record(event, on);
  }));
  std::size_t live_at_the_last_release = 9;
  EXPECT_CALL(fluxon, release_views).Times(4).WillRepeatedly(Invoke([&](PlanPtr plan) {
    live_at_the_last_release = owner.live_plans();
    return owner.release_views(plan);
  }));
  EXPECT_EQ(read(names, {tensor(512), tensor(512), tensor(512), tensor(512)}).verdict, ReadVerdict::restored);
  EXPECT_EQ(most, 2U);
  EXPECT_EQ(live_at_the_last_release, 1U);
}

TEST_F(OverlapTest, AValueWithoutACopyIsReadLikeTheOthers) {
  ASSERT_TRUE(put(two, {tensor(512, 1), tensor(512, 2)}).has_value());
  const std::vector<std::string_view> keys{"a", "b"};
  const std::vector<std::uint64_t> lengths{512, 512};
  const std::vector<std::uint32_t> groups{1, 1};
  const DeviceTensor target = tensor(512);
  const ReadCopy copy{1, 0, 0, 0, 512};
  EXPECT_CALL(fluxon, release_views).Times(2);
  const ReadOutcome outcome =
      store.restore({keys, lengths, groups, std::span(&target, 1), std::span(&copy, 1)}, stream, absorbed);
  EXPECT_EQ(outcome.verdict, ReadVerdict::restored);
  EXPECT_EQ(bytes_of(target), stored("b"));
}

TEST_F(OverlapTest, ARequestThatContradictsItselfStartsNothing) {
  EXPECT_CALL(fluxon, get_start).Times(0);
  const std::vector<std::string_view> keys{"a", "b"};
  const std::vector<std::uint64_t> lengths{512, 512};
  const std::vector<std::uint32_t> groups{1, 1};
  const std::vector<std::uint32_t> too_few{1};
  const DeviceTensor target = tensor(512);
  const std::vector<ReadCopy> good{{0, 0, 0, 0, 512}};
  const std::vector<ReadCopy> past{{0, 1, 0, 0, 512}};
  const std::vector<ReadCopy> of_no_key{{2, 0, 0, 0, 512}};
  const std::vector<ReadCopy> to_no_tensor{{0, 0, 1, 0, 512}};
  const std::span targets(&target, 1);
  for (const ReadRequest& request :
       {ReadRequest{keys, lengths, too_few, targets, good}, ReadRequest{keys, lengths, groups, targets, {}},
        ReadRequest{keys, lengths, groups, targets, past}, ReadRequest{keys, lengths, groups, targets, of_no_key},
        ReadRequest{keys, lengths, groups, targets, to_no_tensor},
        ReadRequest{keys, std::span(lengths).first(1), groups, targets, good}}) {
    const ReadOutcome outcome = store.restore(request, stream, absorbed);
    EXPECT_EQ(outcome.verdict, ReadVerdict::failed);
    EXPECT_TRUE(mentions(outcome.error, Origin::core, static_cast<std::int32_t>(Errc::invalid_argument)));
  }
}

// ---- Both modes.

RC_GTEST_FIXTURE_PROP(OverlapTest, BothModesMoveTheSameBytes, ()) {
  const auto sizes = *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(1, 9000));
  RC_PRE(!sizes.empty() && sizes.size() <= 8);
  PlanOptions options = overlapped(*rc::gen::inRange<std::size_t>(1, 4));
  options.overlap.batch_bytes_min = *rc::gen::inRange<std::uint64_t>(1, 20000);
  PlanTierStore<TestRuntime> other(runtime, options);
  PlanTierStore<TestRuntime> plain(runtime, plan_options());
  std::vector<std::string> names;
  std::vector<DeviceTensor> sources;
  std::vector<DeviceTensor> targets;
  std::vector<ReadCopy> copies;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    names.push_back("k" + std::to_string(i));
    sources.push_back(tensor(sizes[i], static_cast<std::uint8_t>(i * 31 + 1)));
    targets.push_back(tensor(sizes[i]));
    copies.push_back({i, 0, i, 0, sizes[i]});
  }
  const std::vector<std::string_view> keys(names.begin(), names.end());
  const std::vector<std::uint32_t> groups(sizes.size(), 1);
  const ReadRequest request{keys, sizes, groups, targets, copies};
  for (const bool overlapped_put : {true, false}) {
    PlanTierStore<TestRuntime>& writer = overlapped_put ? other : plain;
    PlanTierStore<TestRuntime>& reader = overlapped_put ? plain : other;
    RC_ASSERT(writer.put(keys, sources, stream, absorbed).has_value());
    RC_ASSERT(reader.restore(request, stream, absorbed).verdict == ReadVerdict::restored);
    for (std::size_t i = 0; i < sizes.size(); ++i) RC_ASSERT(bytes_of(targets[i]) == bytes_of(sources[i]));
    settle();
    for (const std::string& name : names) RC_ASSERT(owner.remove(name).has_value());
  }
}

}  // namespace
}  // namespace holdfast
