// When the fake device moves bytes, and in which order: copies, batches, events, streams, waits and their errors. A
// test's name is the promise, its body one situation.
#include <set>

#include "fake_cuda_fixture.hpp"

namespace holdfast::fakes {
namespace {

using FakeCudaOrderTest = FakeCudaTest;

// ---- One copy.

TEST_F(FakeCudaOrderTest, NoByteMovesBeforeTheWaitThatCoversIt) {
  ASSERT_TRUE(to_device(stream));
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, kPage));
  ASSERT_TRUE(cuda.stream_synchronize(other));
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, kPage));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 1, kPage));
}

TEST_F(FakeCudaOrderTest, TheSourceIsReadWhenTheCopyMoves) {
  ASSERT_TRUE(copy(kToDevice, {{dev, host, 64}}, stream));
  fill(host, 5, 64);
  fill(dev + kPage, 6, 64);
  ASSERT_TRUE(copy(kToHost, {{host + kPage, dev + kPage, 64}}, stream));
  fill(dev + kPage, 7, 64);
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 5, 64));
  EXPECT_TRUE(holds(host + kPage, 7, 64));
}

TEST_F(FakeCudaOrderTest, ACopyMayMoveAtSubmission) {
  cuda.choose_next_copy({.moment = CopyMoment::at_submission});
  ASSERT_TRUE(to_device(stream));
  EXPECT_TRUE(holds(dev, 1, kPage));
  EXPECT_EQ(cuda.in_flight_count(), 0U);
  ASSERT_TRUE(to_device(stream, 1));
  EXPECT_EQ(cuda.in_flight_count(), 1U) << "a choice holds for one batch";
}

TEST_F(FakeCudaOrderTest, ARefusedBatchUsesUpNoChoice) {
  cuda.choose_next_copy({.moment = CopyMoment::at_submission});
  ASSERT_FALSE(copy(kToDevice, {}, stream));
  ASSERT_TRUE(to_device(stream));
  EXPECT_EQ(cuda.in_flight_count(), 0U);
}

TEST_F(FakeCudaOrderTest, ACopyMayMoveAfterSomeCallsOfAnyKind) {
  cuda.choose_next_copy({.moment = CopyMoment::after_calls, .calls = 2});
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.pointer_attributes(host));
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, kPage));
  ASSERT_TRUE(cuda.pointer_attributes(host));
  EXPECT_TRUE(holds(dev, 1, kPage));
}

TEST_F(FakeCudaOrderTest, ACopyMayMoveAtAChosenInstant) {
  clock.advance_to(100);
  cuda.choose_next_copy({.moment = CopyMoment::after_time, .delay_ns = 50});
  ASSERT_TRUE(to_device(stream));
  clock.advance_to(149);
  EXPECT_EQ(cuda.in_flight_count(), 1U);
  clock.advance_to(150);
  EXPECT_TRUE(holds(dev, 1, kPage));
  EXPECT_EQ(clock.next_due_ns(), kNever);
}

TEST_F(FakeCudaOrderTest, ACopyLeftAloneMovesByItselfInTheEnd) {
  ASSERT_TRUE(to_device(stream));
  clock.advance_to(kSecond / 2);
  ASSERT_TRUE(to_device(other, 1));
  clock.advance_to(kSecond - 1);
  EXPECT_EQ(cuda.in_flight_count(), 2U);
  clock.advance_to(kSecond);
  EXPECT_EQ(cuda.in_flight_count(), 1U);
  EXPECT_TRUE(holds(dev, 1, kPage));
  clock.advance_by(kSecond);
  EXPECT_EQ(cuda.in_flight_count(), 0U);
}

TEST_F(FakeCudaOrderTest, CopiesOfAStreamMoveInItsOrderWhateverTheirChoices) {
  fill(dev + kPage, 3, kPage);
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(copy(kToHost, {{host + kPage, dev, kPage}}, stream));
  cuda.choose_next_copy({.moment = CopyMoment::at_submission});
  ASSERT_TRUE(copy(kToHost, {{host + 2 * kPage, dev + kPage, kPage}}, stream));
  EXPECT_TRUE(holds(host + kPage, 1, kPage));
  EXPECT_TRUE(holds(host + 2 * kPage, 3, kPage));
  EXPECT_EQ(cuda.in_flight_count(), 0U);
}

TEST_F(FakeCudaOrderTest, BytesMayMovePiecemeal) {
  cuda.choose_next_copy({.moment = CopyMoment::at_submission, .split = true});
  ASSERT_TRUE(copy(kToDevice, {{dev, host, 64}, {dev + kPage, host, 65}, {dev + 2 * kPage, host, 1}}, stream));
  EXPECT_EQ(cuda.in_flight_count(), 3U);
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, 32));
  EXPECT_TRUE(holds(dev + 32, 1, 32));
  EXPECT_TRUE(holds(dev + kPage, kFreshDeviceByte, 32));
  EXPECT_TRUE(holds(dev + kPage + 32, 1, 33));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 1, 64));
  EXPECT_TRUE(holds(dev + kPage, 1, 65));
  EXPECT_TRUE(holds(dev + 2 * kPage, 1, 1));
  EXPECT_TRUE(holds(dev + 64, kFreshDeviceByte, 64));
}

TEST_F(FakeCudaOrderTest, BeforeTheFirstPieceOfABatchMovesEverythingBeforeItInItsStreamHas) {
  ASSERT_TRUE(to_device(stream));
  cuda.choose_next_copy({.moment = CopyMoment::at_submission, .split = true});
  ASSERT_TRUE(copy(kToHost, {{host + kPage, dev, kPage}, {host + 2 * kPage, dev, kPage}}, stream));
  EXPECT_TRUE(holds(dev, 1, kPage));
  EXPECT_EQ(cuda.in_flight_count(), 2U);
  fill(dev, 2, kPage);
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(host + kPage, 2, kPage / 2));
  EXPECT_TRUE(holds(host + kPage + kPage / 2, 1, kPage / 2));
}

TEST_F(FakeCudaOrderTest, EveryMomentSplitAndOrderMovesEveryByteOnce) {
  for (const CopyMoment moment :
       {CopyMoment::at_the_wait, CopyMoment::at_submission, CopyMoment::after_calls, CopyMoment::after_time}) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      for (const bool split : {false, true}) {
        fill(dev, 0, 8 * kPage);
        std::vector<Copy> copies;
        for (std::uint64_t i = 0; i < 8; ++i) {
          fill(host + i * kPage, static_cast<std::uint8_t>(10 + i), kPage);
          copies.push_back({dev + i * kPage, host + i * kPage, 100 + i});
        }
        cuda.choose_next_copy({moment, 1, 10, seed, split});
        ASSERT_TRUE(copy(kToDevice, copies, stream));
        clock.advance_by(10);
        ASSERT_TRUE(cuda.stream_synchronize(stream));
        for (std::uint64_t i = 0; i < 8; ++i) {
          EXPECT_TRUE(holds(dev + i * kPage, static_cast<std::uint8_t>(10 + i), 100 + i));
          EXPECT_EQ(byte_at(dev + i * kPage + 100 + i), 0);
        }
      }
    }
  }
}

TEST_F(FakeCudaOrderTest, AnUnregisteredSourceIsReadAtSubmissionAndReported) {
  const std::uintptr_t loose = arena.map_private(2 * kPage);
  fill(loose, 4, kPage);
  ASSERT_TRUE(copy(kToDevice, {{dev, host, 16}, {dev + kPage, loose, 16}}, stream));
  fill(loose, 5, kPage);
  fill(host, 6, 16);
  EXPECT_TRUE(holds(dev + kPage, kFreshDeviceByte, 16));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev + kPage, 4, 16));
  EXPECT_TRUE(holds(dev, 6, 16));
  const std::vector<DeviceIncident> incidents = cuda.drain_incidents();
  ASSERT_EQ(incidents.size(), 1U);
  EXPECT_EQ(incidents[0].kind, DeviceIncidentKind::unregistered_host);
  EXPECT_EQ(incidents[0].copy.index, 1U);
  EXPECT_EQ(incidents[0].copy.batch, 1U);
}

TEST_F(FakeCudaOrderTest, AQueueThatNeverRunsEmptyGoesOnForEver) {
  constexpr std::uint64_t kLag = 1500;
  constexpr std::uint64_t kValues = 251;
  for (std::uint64_t i = 0; i < kValues; ++i) fill(host + i * 8, static_cast<std::uint8_t>(i), 8);
  const auto target = [&](std::uint64_t i) { return dev + i % (2 * kLag) * 8; };
  std::vector<EventRef> recorded;
  for (std::uint64_t i = 0; i < 6 * kLag; ++i) {
    ASSERT_TRUE(copy(kToDevice, {{dev + 8 * kPage, host, 8}, {target(i), host + i % kValues * 8, 8}}, stream));
    recorded.push_back(event());
    ASSERT_TRUE(cuda.event_record(recorded.back(), stream));
    if (i < kLag) continue;
    ASSERT_TRUE(cuda.event_synchronize(recorded[i - kLag]));
    ASSERT_EQ(cuda.in_flight_count(), 2 * kLag);
    ASSERT_TRUE(holds(target(i - kLag), static_cast<std::uint8_t>((i - kLag) % kValues), 8)) << i;
  }
}

// ---- A batch.

TEST_F(FakeCudaOrderTest, CopiesOfOneBatchHaveNoOrderAndOverlappingDestinationsPass) {
  byte_at(host) = 1;
  byte_at(host + 1) = 2;
  byte_at(host + 2) = 3;
  const std::vector<Copy> copies = {{dev, host, 1}, {dev, host + 1, 1}, {dev, host + 2, 1}};
  ASSERT_TRUE(copy(kToDevice, copies, stream));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_EQ(byte_at(dev), 1) << "by default the first copy moves last";
  std::set<int> last;
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    cuda.choose_next_copy({.order_seed = seed});
    ASSERT_TRUE(copy(kToDevice, copies, stream));
    ASSERT_TRUE(cuda.stream_synchronize(stream));
    last.insert(byte_at(dev));
  }
  EXPECT_EQ(last, (std::set<int>{1, 2, 3}));
  EXPECT_FALSE(cuda.has_incidents());
}

TEST_F(FakeCudaOrderTest, AnEmptyBatchLengthZeroAndNullAreInvalidAndNothingMoves) {
  const auto invalid = code(CudaErrc::invalid_value);
  const Copy good{dev, host, 16};
  EXPECT_EQ(code_of(copy(kToDevice, {}, stream)), invalid);
  for (const Copy bad : {Copy{dev, host, 0}, Copy{0, host, 16}, Copy{dev, 0, 16}, Copy{dev, host, ~0ULL}}) {
    EXPECT_EQ(code_of(copy(kToDevice, {good, bad}, stream)), invalid);
  }
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, 16));
}

TEST_F(FakeCudaOrderTest, ABatchIsOrderedWithWhatIsBeforeAndAfterItInTheStream) {
  ASSERT_TRUE(to_device(stream));
  cuda.choose_next_copy({.order_seed = 3, .split = true});
  ASSERT_TRUE(copy(kToHost, {{host + kPage, dev, kPage}, {host + 2 * kPage, dev, kPage}}, stream));
  ASSERT_TRUE(
      copy(kToDevice, {{dev + 3 * kPage, host + kPage, kPage}, {dev + 4 * kPage, host + 2 * kPage, kPage}}, stream));
  fill(host, 8, kPage);
  fill(host + kPage, 0, 2 * kPage);
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev + 3 * kPage, 8, 2 * kPage));
}

TEST_F(FakeCudaOrderTest, TheDefaultStreamsAndUnknownOnesAreRefused) {
  for (const std::uintptr_t native : {0U, 1U, 2U}) EXPECT_FALSE(StreamRef::from_native(native));
  const StreamRef unknown = StreamRef::from_native(kFirstStream + 99).value();
  const auto no_such = code(kInvalidResourceHandle);
  EXPECT_EQ(code_of(to_device(unknown)), no_such);
  EXPECT_EQ(code_of(cuda.stream_synchronize(unknown)), no_such);
  EXPECT_EQ(code_of(cuda.event_record(event(), unknown)), no_such);
  EXPECT_EQ(code_of(cuda.stream_wait(unknown, event())), no_such);
  ASSERT_TRUE(cuda.destroy_stream(other));
  EXPECT_EQ(code_of(to_device(other)), no_such);
  EXPECT_EQ(stream.native(), 16U);
  EXPECT_EQ(cuda.create_stream().value().native(), 18U);
}

// ---- Events.

TEST_F(FakeCudaOrderTest, AnEventCapturesWhatTheStreamHasSoFar) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_device(stream, 0));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  ASSERT_TRUE(to_device(stream, 1));
  EXPECT_FALSE(cuda.event_query(recorded).value());
  ASSERT_TRUE(cuda.event_synchronize(recorded));
  EXPECT_TRUE(cuda.event_query(recorded).value());
  EXPECT_TRUE(holds(dev, 1, kPage));
  EXPECT_TRUE(holds(dev + kPage, kFreshDeviceByte, kPage));
}

TEST_F(FakeCudaOrderTest, RecordingAgainReplacesWhatAnEventCaptured) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_device(stream, 0));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  ASSERT_TRUE(to_device(other, 1));
  ASSERT_TRUE(cuda.event_record(recorded, other));
  ASSERT_TRUE(cuda.event_synchronize(recorded));
  EXPECT_TRUE(holds(dev + kPage, 1, kPage));
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, kPage));
}

TEST_F(FakeCudaOrderTest, AnEventNeverRecordedCountsAsDone) {
  const EventRef never = event();
  ASSERT_TRUE(to_device(stream));
  EXPECT_TRUE(cuda.event_query(never).value());
  EXPECT_TRUE(cuda.event_synchronize(never));
  ASSERT_TRUE(cuda.stream_wait(other, never));
  ASSERT_TRUE(to_device(other, 1));
  ASSERT_TRUE(cuda.stream_synchronize(other));
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, kPage));
}

TEST_F(FakeCudaOrderTest, AskingMovesNothingButTimeDoes) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(cuda.event_query(recorded).value());
  clock.advance_by(kSecond);
  EXPECT_TRUE(cuda.event_query(recorded).value());
}

TEST_F(FakeCudaOrderTest, DestroyingAPendingEventChangesNothingForWhoWaitsAlready) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  ASSERT_TRUE(cuda.stream_wait(other, recorded));
  ASSERT_TRUE(cuda.event_destroy(recorded));
  ASSERT_TRUE(copy(kToHost, {{host + kPage, dev, kPage}}, other));
  fill(host + kPage, 0, kPage);
  ASSERT_TRUE(cuda.stream_synchronize(other));
  EXPECT_TRUE(holds(host + kPage, 1, kPage));
}

TEST_F(FakeCudaOrderTest, ADestroyedEventIsNobodysEvenWhenANewOneIsMade) {
  const EventRef gone = event();
  ASSERT_TRUE(cuda.event_destroy(gone));
  const EventRef fresh = event();
  EXPECT_NE(gone, fresh);
  const auto no_such = code(kInvalidResourceHandle);
  EXPECT_EQ(code_of(cuda.event_record(gone, stream)), no_such);
  EXPECT_EQ(code_of(cuda.event_query(gone)), no_such);
  EXPECT_EQ(code_of(cuda.event_synchronize(gone)), no_such);
  EXPECT_EQ(code_of(cuda.stream_wait(stream, gone)), no_such);
  EXPECT_EQ(code_of(cuda.event_destroy(gone)), no_such);
  EXPECT_EQ(code_of(cuda.event_destroy(EventRef{})), no_such);
  EXPECT_EQ(cuda.event_count(), 1U);
}

TEST_F(FakeCudaOrderTest, ANewEventRemembersNothingOfADestroyedOne) {
  const EventRef gone = event();
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.event_record(gone, stream));
  ASSERT_TRUE(cuda.event_destroy(gone));
  EXPECT_TRUE(cuda.event_query(event()).value());
}

TEST_F(FakeCudaOrderTest, WorkInADestroyedStreamGoesOn) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  ASSERT_TRUE(cuda.destroy_stream(stream));
  EXPECT_FALSE(cuda.event_query(recorded).value());
  ASSERT_TRUE(cuda.event_synchronize(recorded));
  EXPECT_TRUE(holds(dev, 1, kPage));
}

// ---- Streams and the engine.

TEST_F(FakeCudaOrderTest, StreamsAreNotOrderedWithEachOther) {
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(copy(kToHost, {{host + kPage, dev, kPage}}, other));
  ASSERT_TRUE(cuda.stream_synchronize(other));
  EXPECT_TRUE(holds(host + kPage, kFreshDeviceByte, kPage));
}

TEST_F(FakeCudaOrderTest, AnEventOrdersOneStreamBehindWhatItCapturedOfAnother) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  ASSERT_TRUE(to_device(stream, 2));
  ASSERT_TRUE(cuda.stream_wait(other, recorded));
  cuda.choose_next_copy({.moment = CopyMoment::at_submission});
  ASSERT_TRUE(copy(kToHost, {{host + kPage, dev, kPage}}, other));
  EXPECT_TRUE(holds(host + kPage, 1, kPage));
  EXPECT_TRUE(holds(dev + 2 * kPage, kFreshDeviceByte, kPage)) << "submitted after the record";
}

TEST_F(FakeCudaOrderTest, WaitsForEachOtherInTurnAreFollowedToTheirStart) {
  for (std::uint64_t page = 0; page < 15; ++page) {
    const StreamRef writer = page % 2 == 0 ? stream : other;
    const StreamRef next = page % 2 == 0 ? other : stream;
    const EventRef recorded = event();
    ASSERT_TRUE(copy(kToDevice, {{dev + page * kPage, host + page * kPage, kPage}}, writer));
    ASSERT_TRUE(copy(kToHost, {{host + (page + 1) * kPage, dev + page * kPage, kPage}}, writer));
    ASSERT_TRUE(cuda.event_record(recorded, writer));
    ASSERT_TRUE(cuda.stream_wait(next, recorded));
  }
  fill(host, 42, kPage);
  ASSERT_TRUE(cuda.stream_synchronize(other));
  EXPECT_TRUE(holds(host + 15 * kPage, 42, kPage));
}

TEST_F(FakeCudaOrderTest, AWaitHoldsBackOnlyWhatComesAfterItInItsStream) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  const EventRef before = event();
  ASSERT_TRUE(to_device(other, 1));
  ASSERT_TRUE(cuda.event_record(before, other));
  ASSERT_TRUE(cuda.stream_wait(other, recorded));
  ASSERT_TRUE(cuda.event_synchronize(before));
  EXPECT_TRUE(holds(dev + kPage, 1, kPage));
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, kPage));
}

TEST_F(FakeCudaOrderTest, TheEnginesKernelsRunInStreamOrderAndEventsHandThemOver) {
  const EventRef written = event();
  ASSERT_TRUE(cuda.launch(stream, [&] { fill(dev, 77, kPage); }));
  ASSERT_TRUE(cuda.event_record(written, stream));
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, kPage));
  ASSERT_TRUE(cuda.stream_wait(other, written));
  ASSERT_TRUE(to_host(other));
  const EventRef read = event();
  ASSERT_TRUE(cuda.event_record(read, other));
  ASSERT_TRUE(cuda.stream_wait(stream, read));
  ASSERT_TRUE(cuda.launch(stream, [&] { fill(dev, 78, kPage); }, {.moment = CopyMoment::at_submission}));
  EXPECT_TRUE(holds(host, 77, kPage));
  EXPECT_TRUE(holds(dev, 78, kPage));
}

TEST_F(FakeCudaOrderTest, WithoutAnEventACopyReadsWhatTheEngineHasNotWrittenYet) {
  ASSERT_TRUE(cuda.launch(stream, [&] { fill(dev, 77, kPage); }));
  ASSERT_TRUE(to_host(other));
  ASSERT_TRUE(cuda.stream_synchronize(other));
  EXPECT_TRUE(holds(host, kFreshDeviceByte, kPage));
}

// ---- Synchronize and errors.

TEST_F(FakeCudaOrderTest, ASuccessfulWaitMeansThatEverythingCoveredIsDone) {
  for (std::uint64_t page = 0; page < 8; ++page) {
    cuda.choose_next_copy({.moment = CopyMoment::after_time, .delay_ns = kMinute, .split = true});
    ASSERT_TRUE(to_device(stream, page));
  }
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 1, 8 * kPage));
  EXPECT_EQ(cuda.in_flight_count(), 0U);
  EXPECT_EQ(clock.next_due_ns(), kNever);
}

TEST_F(FakeCudaOrderTest, AnAsynchronousErrorSurfacesAtTheWaitNotWhereItWasCausedAndOnce) {
  ASSERT_TRUE(to_device(stream));
  cuda.fail_later(stream, CudaErrc::launch_failure, false);
  ASSERT_TRUE(to_device(stream, 1));
  EXPECT_TRUE(cuda.stream_synchronize(other));
  EXPECT_EQ(code_of(cuda.stream_synchronize(stream)), code(CudaErrc::launch_failure));
  EXPECT_FALSE(cuda.context_dead());
  EXPECT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 1, 2 * kPage));
}

TEST_F(FakeCudaOrderTest, AFailedWaitProvesNothingAboutWhatIsInFlight) {
  ASSERT_TRUE(to_device(stream));
  cuda.fail_later(stream, CudaErrc::launch_failure, false);
  ASSERT_FALSE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(cuda.in_flight(host, kPage).has_value());
  fill(host, 33, kPage);
  clock.advance_by(kSecond);
  EXPECT_TRUE(holds(dev, 33, kPage)) << "it still moved, later";
}

TEST_F(FakeCudaOrderTest, AnAsynchronousErrorSurfacesAtEventsThatCoverTheFailedWorkOnly) {
  const EventRef before = event();
  const EventRef after = event();
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.event_record(before, stream));
  ASSERT_TRUE(to_device(stream, 1));
  ASSERT_TRUE(cuda.event_record(after, stream));
  cuda.fail_later(stream, CudaErrc::launch_failure, false);
  EXPECT_FALSE(cuda.event_query(before).value());
  EXPECT_TRUE(cuda.event_synchronize(before));
  EXPECT_EQ(code_of(cuda.event_query(after)), code(CudaErrc::launch_failure));
  cuda.fail_later(stream, CudaErrc::launch_failure, false);
  EXPECT_EQ(code_of(cuda.event_synchronize(after)), code(CudaErrc::launch_failure));
}

TEST_F(FakeCudaOrderTest, AnAsynchronousErrorSurfacesAtAStreamThatWaitsForTheFailedWork) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  cuda.fail_later(stream, CudaErrc::launch_failure, false);
  ASSERT_TRUE(cuda.stream_wait(other, recorded));
  EXPECT_EQ(code_of(cuda.stream_synchronize(other)), code(CudaErrc::launch_failure));
}

TEST_F(FakeCudaOrderTest, AnAsynchronousErrorMaySurfaceAtAnyLaterCall) {
  ASSERT_TRUE(to_device(stream));
  cuda.fail_later(stream, CudaErrc::launch_failure, false, 2);
  EXPECT_TRUE(cuda.pointer_attributes(host));
  EXPECT_EQ(code_of(cuda.event_create()), code(CudaErrc::launch_failure));
  EXPECT_TRUE(cuda.event_create());
  EXPECT_TRUE(cuda.stream_synchronize(stream));
}

TEST_F(FakeCudaOrderTest, AStickyErrorIsToldByItsOwnStreamsWaitAndThenByEveryCallOfEveryStream) {
  const EventRef recorded = event();
  cuda.fail_later(stream, CudaErrc::illegal_address, true);
  EXPECT_TRUE(to_device(other)) << "others succeed for a while";
  EXPECT_TRUE(cuda.stream_synchronize(other));
  EXPECT_TRUE(to_device(stream, 1));
  EXPECT_EQ(code_of(cuda.stream_synchronize(stream)), 700);

  EXPECT_TRUE(cuda.context_dead());
  EXPECT_EQ(code_of(cuda.stream_synchronize(stream)), 700);
  EXPECT_EQ(code_of(cuda.stream_synchronize(other)), 700);
  EXPECT_EQ(code_of(to_device(other)), 700);
  EXPECT_EQ(code_of(cuda.host_register(arena.map_private(kPage), kPage, HostAccess::read_write)), 700);
  EXPECT_EQ(code_of(cuda.host_unregister(host)), 700);
  EXPECT_EQ(code_of(cuda.event_create()), 700);
  EXPECT_EQ(code_of(cuda.event_record(recorded, other)), 700);
  EXPECT_EQ(code_of(cuda.stream_wait(other, recorded)), 700);
  EXPECT_EQ(code_of(cuda.event_query(recorded)), 700);
  EXPECT_EQ(code_of(cuda.event_synchronize(recorded)), 700);
  EXPECT_EQ(code_of(cuda.event_destroy(recorded)), 700);
  EXPECT_EQ(code_of(cuda.pointer_attributes(host)), 700);
  EXPECT_EQ(code_of(cuda.allocate(16)), 700);
  EXPECT_EQ(code_of(cuda.free(dev)), 700);
  EXPECT_EQ(code_of(cuda.create_stream()), 700);
  EXPECT_EQ(code_of(cuda.destroy_stream(other)), 700);
  EXPECT_EQ(code_of(cuda.launch(other, [] {})), 700);
}

TEST_F(FakeCudaOrderTest, OnlyTearingTheContextDownEndsAStickyErrorAndNoCopyMovesAfterIt) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_host(stream));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  cuda.fail_later(stream, CudaErrc::illegal_address, true);
  ASSERT_FALSE(cuda.stream_synchronize(stream));
  cuda.client_died();
  EXPECT_FALSE(cuda.create_stream());
  cuda.tear_down();
  clock.advance_by(kMinute);
  EXPECT_TRUE(holds(host, 1, kPage));
  EXPECT_EQ(cuda.in_flight_count(), 0U);
  EXPECT_TRUE(cuda.registrations().empty());
  EXPECT_EQ(cuda.allocation_count(), 0U);
  EXPECT_EQ(cuda.event_count(), 0U);
  EXPECT_EQ(cuda.stream_count(), 0U);
  EXPECT_TRUE(holds(dev, kFreedDeviceByte, kPage));
  EXPECT_EQ(code_of(cuda.stream_synchronize(stream)), code(kInvalidResourceHandle));
  EXPECT_EQ(code_of(cuda.event_query(recorded)), code(kInvalidResourceHandle));

  EXPECT_TRUE(cuda.host_register(host, kHostBytes, HostAccess::read_write));
  EXPECT_EQ(cuda.allocate(kDeviceBytes).value(), dev);
  const StreamRef fresh = cuda.create_stream().value();
  EXPECT_EQ(fresh.native(), 18U);
  ASSERT_TRUE(to_device(fresh));
  ASSERT_TRUE(cuda.stream_synchronize(fresh));
  EXPECT_TRUE(holds(dev, 1, kPage));
  EXPECT_FALSE(cuda.has_incidents());
}

}  // namespace
}  // namespace holdfast::fakes
