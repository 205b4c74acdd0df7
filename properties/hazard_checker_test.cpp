#include "holdfast/sim/hazard_checker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hazard_history.hpp"

namespace holdfast::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct HazardChecking : ::testing::Test, HazardHistory {
  // The one hazard that the history has.
  Hazard only() {
    std::vector<Hazard> found = checker.take_found();
    EXPECT_THAT(found, SizeIs(1));
    if (found.size() != 1) return {};
    EXPECT_GT(checker.take_checked(), 0U);
    return std::move(found.front());
  }
  void expect_none() {
    for (const Hazard& hazard : checker.take_found()) ADD_FAILURE() << hazard.text;
    EXPECT_GT(checker.take_checked(), 0U) << "nothing needed an edge";
  }
  void expect_only(HazardCall earlier, HazardCall later, HazardEdge missing) {
    const Hazard hazard = only();
    EXPECT_EQ(hazard.earlier.call, earlier) << hazard.text;
    EXPECT_EQ(hazard.later.call, later) << hazard.text;
    EXPECT_EQ(hazard.missing, missing) << hazard.text;
  }
};
using HazardsKnownBad = HazardChecking;
using HazardsKnownGood = HazardChecking;
using HazardReports = HazardChecking;

// ---- Known bad: one edge is missing.

TEST_F(HazardsKnownBad, ACommitWithoutAWait) {
  claim(0);
  copy_out(1, 0, 0);
  commit(0);
  expect_only(HazardCall::copy_batch, HazardCall::put_commit, HazardEdge::host_wait);
}

TEST_F(HazardsKnownBad, ACommitAfterAWaitForAnotherStream) {
  claim(0);
  copy_out(1, 0, 0);
  kernel(2, 5, true);
  wait_stream(2);
  commit(0);
  expect_only(HazardCall::copy_batch, HazardCall::put_commit, HazardEdge::host_wait);
}

TEST_F(HazardsKnownBad, AnEventRecordedBeforeTheCopy) {
  claim(0);
  record(7, 1);
  copy_out(1, 0, 0);
  wait_event(7);
  commit(0);
  expect_only(HazardCall::copy_batch, HazardCall::put_commit, HazardEdge::host_wait);
}

TEST_F(HazardsKnownBad, AnEventThatWasNeverRecorded) {
  claim(0);
  copy_out(1, 0, 0);
  wait_event(7);
  commit(0);
  expect_only(HazardCall::copy_batch, HazardCall::put_commit, HazardEdge::host_wait);
}

TEST_F(HazardsKnownBad, AnEventDestroyedBeforeTheWait) {
  claim(0);
  copy_out(1, 0, 0);
  record(7, 1);
  checker.event_forget(event(7));
  wait_event(7);
  commit(0);
  expect_only(HazardCall::copy_batch, HazardCall::put_commit, HazardEdge::host_wait);
}

TEST_F(HazardsKnownBad, AnEventRecordedAgainOnAnotherStream) {
  claim(0);
  copy_out(1, 0, 0);
  record(7, 1);
  record(7, 2);
  wait_event(7);
  commit(0);
  expect_only(HazardCall::copy_batch, HazardCall::put_commit, HazardEdge::host_wait);
}

TEST_F(HazardsKnownBad, ACommitAfterTheEventOfAnotherGroup) {
  claim(0);
  claim(1);
  copy_out(1, 0, 0);
  record(7, 1);
  copy_out(1, 1, 1);
  record(8, 1);
  wait_event(7);
  commit(0);
  commit(1);
  const Hazard hazard = only();
  EXPECT_EQ(hazard.later.range.base, slot(1));
  EXPECT_EQ(hazard.later.call, HazardCall::put_commit);
}

TEST_F(HazardsKnownBad, AnAbortUnderACopy) {
  claim(0);
  copy_out(1, 0, 0);
  abort(0);
  expect_only(HazardCall::copy_batch, HazardCall::put_abort, HazardEdge::host_wait);
}

TEST_F(HazardsKnownBad, AReleaseUnderACopy) {
  transfer(0);
  copy_in(1, 0, 0);
  release(0);
  expect_only(HazardCall::copy_batch, HazardCall::release_views, HazardEdge::host_wait);
}

TEST_F(HazardsKnownBad, ASlotClaimedUnderACopyOfItsLastPlan) {
  claim(0);
  copy_out(1, 0, 0);
  claim(0);  // the plan timed out
  expect_only(HazardCall::copy_batch, HazardCall::put_start, HazardEdge::host_wait);
}

TEST_F(HazardsKnownBad, TheRingOverwrittenUnderACopyOutOfIt) {
  copy_out(1, 0, 0);
  kernel(2, 0, true);
  expect_only(HazardCall::copy_batch, HazardCall::kernel, HazardEdge::event_wait);
}

TEST_F(HazardsKnownBad, TheRingReadUnderACopyIntoIt) {
  copy_in(1, 0, 0);
  kernel(2, 0, false);
  expect_only(HazardCall::copy_batch, HazardCall::kernel, HazardEdge::event_wait);
}

TEST_F(HazardsKnownBad, TheProducersEventNotWaitedFor) {
  kernel(2, 0, true);
  record(7, 2);
  copy_out(1, 0, 0);
  expect_only(HazardCall::kernel, HazardCall::copy_batch, HazardEdge::event_wait);
}

TEST_F(HazardsKnownBad, TheProducersEventWaitedForAfterTheCopy) {
  kernel(2, 0, true);
  record(7, 2);
  copy_out(1, 0, 0);
  stream_wait(1, 7);
  expect_only(HazardCall::kernel, HazardCall::copy_batch, HazardEdge::event_wait);
}

TEST_F(HazardsKnownBad, TheProducersEventWaitedForOnAnotherStream) {
  kernel(2, 0, true);
  record(7, 2);
  stream_wait(3, 7);
  copy_out(1, 0, 0);
  expect_only(HazardCall::kernel, HazardCall::copy_batch, HazardEdge::event_wait);
}

TEST_F(HazardsKnownBad, ASegmentUnregisteredUnderACopy) {
  claim(3);
  copy_out(1, 0, 3);
  checker.unregister(by(0), {kSegment, kSegmentBytes});
  expect_only(HazardCall::copy_batch, HazardCall::host_unregister, HazardEdge::host_wait);
}

TEST_F(HazardsKnownBad, ASegmentUnregisteredUnderACopyThatIsHardlyInIt) {
  copy(1, {kSegment + kSegmentBytes - 1, frame(0), 2});
  checker.unregister(by(0), {kSegment, kSegmentBytes});
  expect_only(HazardCall::copy_batch, HazardCall::host_unregister, HazardEdge::host_wait);
}

// The commit comes after the copy, but whoever unregisters does not.
TEST_F(HazardsKnownBad, ASegmentUnregisteredByWhoDoesNotKnowOfTheWait) {
  const std::uint32_t other = checker.add_host(0);
  claim(0);
  copy_out(1, 0, 0);
  wait_stream(1);
  commit(0);
  checker.unregister(by(other), {kSegment, kSegmentBytes});
  expect_only(HazardCall::copy_batch, HazardCall::host_unregister, HazardEdge::host_wait);
}

TEST_F(HazardsKnownBad, AMappingUnregisteredByWhoDoesNotKnowThatItsReaderIsDone) {
  const std::uint32_t other = checker.add_host(0);
  transfer(0);
  copy_in(1, 0, 0);
  wait_stream(1);
  release(0);
  checker.unregister(by(other), {kReadSide, kSegmentBytes});
  expect_only(HazardCall::copy_batch, HazardCall::host_unregister, HazardEdge::host_wait);
}

TEST_F(HazardsKnownBad, DeviceMemoryFreedUnderACopy) {
  copy_in(1, 0, 0);
  checker.free_device(by(0), stream(2), {frame(0), kValueBytes});
  expect_only(HazardCall::copy_batch, HazardCall::device_free, HazardEdge::event_wait);
}

TEST_F(HazardsKnownBad, StagingMemoryFilledUnderACopyOutOfIt) {
  checker.host_access(by(0), {{slot(0), kValueBytes}, true});
  copy(1, {frame(0), slot(0), kValueBytes});
  checker.host_access(by(0), {{slot(0), kValueBytes}, true});
  expect_only(HazardCall::copy_batch, HazardCall::host_memory, HazardEdge::host_wait);
}

TEST_F(HazardsKnownBad, AnOverlapByOneByte) {
  copy(1, {slot(0), frame(0), 100});
  copy(2, {slot(0) + 99, frame(9), 100});
  expect_only(HazardCall::copy_batch, HazardCall::copy_batch, HazardEdge::event_wait);
}

TEST_F(HazardsKnownBad, AnOverlapByTheLastByteOfAGranule) {
  copy(1, {slot(1) - 1, frame(0), 1});
  copy(2, {slot(0), frame(9), kSlotBytes});
  expect_only(HazardCall::copy_batch, HazardCall::copy_batch, HazardEdge::event_wait);
}

TEST_F(HazardsKnownBad, AnOverlapOfLongCopiesInOneOfTheirGranules) {
  copy(1, {slot(0), kDevice, 3 * kSlotBytes});
  copy(2, {slot(2), kDevice + (1 << 20), 3 * kSlotBytes});
  expect_only(HazardCall::copy_batch, HazardCall::copy_batch, HazardEdge::event_wait);
}

TEST_F(HazardsKnownBad, TheSameBytesAtTheirOtherAddress) {
  copy_out(1, 0, 0);
  copy_in(2, 0, 9);
  expect_only(HazardCall::copy_batch, HazardCall::copy_batch, HazardEdge::event_wait);
}

TEST_F(HazardsKnownBad, OverlappingDestinationsInOneBatch) {
  checker.copy_batch(by(0), stream(1), std::vector{Copy{slot(0), frame(0), 100}, Copy{slot(0) + 50, frame(4), 100}});
  expect_only(HazardCall::copy_batch, HazardCall::copy_batch, HazardEdge::stream_order);
}

// The write is still there although a later read came after it.
TEST_F(HazardsKnownBad, AWriteBehindAReadThatCameAfterIt) {
  copy_in(1, 0, 0);
  copy_out(1, 0, 4);
  copy_out(2, 0, 5);
  const Hazard hazard = only();
  EXPECT_TRUE(hazard.earlier.write);
  EXPECT_FALSE(hazard.later.write);
}

// The part that the later access does not cover is still there.
TEST_F(HazardsKnownBad, TheRestOfAWriteThatALaterOneCoversInPart) {
  copy(1, {frame(0), read_slot(0), kValueBytes});
  copy(1, {frame(0), read_slot(0), kValueBytes - 1});
  checker.host_access(by(0), {{frame(0) + kValueBytes - 1, 1}, false});
  expect_only(HazardCall::copy_batch, HazardCall::host_memory, HazardEdge::host_wait);
}

TEST_F(HazardsKnownBad, ASlotOfAnotherSessionThatWasNotLetGo) {
  const std::uint32_t other = checker.add_host(0);
  claim(0);
  claim(0, other);
  expect_only(HazardCall::put_start, HazardCall::put_start, HazardEdge::slot_reuse);
}

TEST_F(HazardsKnownBad, ASlotReusedUnderACopyThatItsFirstSessionDidNotWaitFor) {
  const std::uint32_t other = checker.add_host(0);
  claim(0);
  copy_out(1, 0, 0);
  abort(0);
  static_cast<void>(only());
  claim(0, other);
  copy_out(2, 1, 0, other);
  const std::vector<Hazard> found = checker.take_found();
  ASSERT_THAT(found, SizeIs(2));  // the claim, and its copy
  EXPECT_EQ(found[0].later.call, HazardCall::put_start);
  EXPECT_EQ(found[1].missing, HazardEdge::event_wait);
}

TEST_F(HazardsKnownBad, AWaitByAnotherSessionWithoutALock) {
  const std::uint32_t other = checker.add_host(0);
  claim(0);
  copy_out(1, 0, 0);
  wait_stream(1, other);
  commit(0);
  expect_only(HazardCall::copy_batch, HazardCall::put_commit, HazardEdge::host_wait);
}

TEST_F(HazardsKnownBad, AValueReadWithoutItsTransfer) {
  const std::uint32_t other = checker.add_host(0);
  claim(0);
  copy_out(1, 0, 0);
  wait_stream(1);
  commit(0);
  copy_in(2, 0, 9, other);
  expect_only(HazardCall::copy_batch, HazardCall::copy_batch, HazardEdge::event_wait);
}

TEST_F(HazardsKnownBad, ALockTakenBeforeItWasLetGo) {
  const std::uint32_t other = checker.add_host(0);
  checker.lock(other, 1);
  checker.host_access(by(0), {{slot(0), 8}, true});
  checker.unlock(0, 1);
  checker.host_access(by(other), {{slot(0), 8}, false});
  expect_only(HazardCall::host_memory, HazardCall::host_memory, HazardEdge::lock);
}

TEST_F(HazardsKnownBad, WhatAHostDoesAfterItsUnlock) {
  const std::uint32_t other = checker.add_host(0);
  checker.unlock(0, 1);
  checker.host_access(by(0), {{slot(0), 8}, true});
  checker.lock(other, 1);
  checker.host_access(by(other), {{slot(0), 8}, false});
  expect_only(HazardCall::host_memory, HazardCall::host_memory, HazardEdge::lock);
}

TEST_F(HazardsKnownBad, WhatAHostDoesAfterItsSubmission) {
  const std::uint32_t other = checker.add_host(0);
  copy(1, {frame(0), slot(0), 8});
  checker.host_access(by(0), {{slot(9), 8}, true});
  wait_stream(1, other);
  checker.host_access(by(other), {{slot(9), 8}, true});
  expect_only(HazardCall::host_memory, HazardCall::host_memory, HazardEdge::lock);
}

// ---- Known good: each edge, by itself.

TEST_F(HazardsKnownGood, AWaitForTheStream) {
  claim(0);
  copy_out(1, 0, 0);
  wait_stream(1);
  commit(0);
  expect_none();
}

TEST_F(HazardsKnownGood, AWaitForAnEventBehindTheCopy) {
  claim(0);
  copy_out(1, 0, 0);
  record(7, 1);
  copy_out(1, 1, 1);
  wait_event(7);
  commit(0);
  expect_none();
}

TEST_F(HazardsKnownGood, WorkOfOneStream) {
  kernel(1, 0, true);
  copy_out(1, 0, 0);
  kernel(1, 0, true);
  wait_stream(1);
  commit(0);
  expect_none();
}

TEST_F(HazardsKnownGood, TheEnginesEvents) {
  kernel(2, 0, true);
  record(7, 2);
  stream_wait(1, 7);
  copy_out(1, 0, 0);
  record(8, 1);
  stream_wait(2, 8);
  kernel(2, 0, true);
  expect_none();
}

TEST_F(HazardsKnownGood, WhatAHostWaitedForBeforeItSubmits) {
  kernel(2, 0, true);
  wait_stream(2);
  copy_out(1, 0, 0);
  expect_none();
}

TEST_F(HazardsKnownGood, ByWayOfAThirdStream) {
  kernel(1, 0, true);
  record(7, 1);
  stream_wait(2, 7);
  record(8, 2);
  stream_wait(3, 8);
  copy_out(3, 0, 0);
  record(9, 3);
  wait_event(9);
  commit(0);
  expect_none();
}

TEST_F(HazardsKnownGood, AnEventDestroyedAfterTheStreamBeganToWait) {
  kernel(2, 0, true);
  record(7, 2);
  stream_wait(1, 7);
  checker.event_forget(event(7));
  copy_out(1, 0, 0);
  expect_none();
}

TEST_F(HazardsKnownGood, AnEventTheRecordOfWhichWasReplacedAfterTheWait) {
  claim(0);
  copy_out(1, 0, 0);
  record(7, 1);
  wait_event(7);
  record(7, 2);
  commit(0);
  expect_none();
}

TEST_F(HazardsKnownGood, RangesThatOnlyTouch) {
  copy(1, {slot(0), frame(0), 100});
  copy(2, {slot(0) + 100, frame(9), 100});
  copy(3, {slot(1), frame(12), kSlotBytes});
  copy(4, {slot(2), frame(60), kSlotBytes});
  EXPECT_THAT(checker.take_found(), IsEmpty());
}

TEST_F(HazardsKnownGood, ReadsOfOneRange) {
  copy(1, {slot(0), frame(0), 100});
  copy(2, {slot(1), frame(0), 100});
  kernel(3, 0, false);
  EXPECT_THAT(checker.take_found(), IsEmpty());
}

TEST_F(HazardsKnownGood, TheCopiesOfOneBatchApart) {
  checker.copy_batch(by(0), stream(1), std::vector{Copy{slot(0), frame(0), 100}, Copy{slot(0) + 100, frame(0), 100}});
  EXPECT_THAT(checker.take_found(), IsEmpty());
}

TEST_F(HazardsKnownGood, AKernelThatMovesBytesWithinTheRing) {
  checker.kernel(by(0), stream(1),
                 std::vector{RangeAccess{{frame(0), 512}, false}, RangeAccess{{frame(0), 256}, true}});
  EXPECT_THAT(checker.take_found(), IsEmpty());
}

TEST_F(HazardsKnownGood, ASlotLetGoAndClaimedByAnotherSession) {
  const std::uint32_t other = checker.add_host(0);
  claim(0);
  copy_out(1, 0, 0);
  wait_stream(1);
  abort(0);
  claim(0, other);
  copy_out(2, 1, 0, other);
  wait_stream(2, other);
  commit(0, other);
  expect_none();
}

TEST_F(HazardsKnownGood, ASlotReleasedByAllItsReadersAndClaimedByAnotherSession) {
  const std::uint32_t second = checker.add_host(0);
  const std::uint32_t third = checker.add_host(0);
  claim(0);
  copy_out(1, 0, 0);
  wait_stream(1);
  commit(0);
  transfer(0, second);
  copy_in(2, 0, 1, second);
  transfer(0);
  copy_in(1, 0, 2);
  wait_stream(2, second);
  checker.release_held(by(second), std::vector{read_slot(0)});
  wait_stream(1);
  release(0);
  claim(0, third);
  expect_none();
}

TEST_F(HazardsKnownBad, AValueReleasedByItsLastHolderUnderACopyOfAnEarlierOne) {
  const std::uint32_t other = checker.add_host(0);
  transfer(0);
  copy_in(1, 0, 1);
  transfer(0, other);
  checker.release_held(by(0), std::vector{read_slot(0)});
  wait_stream(1);
  release(0, other);
  expect_only(HazardCall::copy_batch, HazardCall::release_views, HazardEdge::host_wait);
}

TEST_F(HazardsKnownGood, AValueReadAfterItsTransfer) {
  const std::uint32_t other = checker.add_host(0);
  claim(0);
  copy_out(1, 0, 0);
  wait_stream(1);
  commit(0);
  transfer(0, other);
  copy_in(2, 0, 9, other);
  expect_none();
}

TEST_F(HazardsKnownGood, ALockBetweenTwoSessions) {
  const std::uint32_t other = checker.add_host(0);
  copy_out(1, 0, 0);
  wait_stream(1);
  checker.unlock(0, 1);
  checker.lock(other, 1);
  checker.unregister(by(other), {kSegment, kSegmentBytes});
  expect_none();
}

TEST_F(HazardsKnownGood, WhatWasDoneBeforeASessionBegan) {
  copy_out(1, 0, 0);
  wait_stream(1);
  const std::uint32_t other = checker.add_host(0);
  checker.unregister(by(other), {kSegment, kSegmentBytes});
  expect_none();
}

TEST_F(HazardsKnownGood, AMappingUnregisteredUnderACopyThroughTheOtherOne) {
  copy_out(1, 0, 0);
  checker.unregister(by(0), {kReadSide, kSegmentBytes});
  EXPECT_THAT(checker.take_found(), IsEmpty());
}

TEST_F(HazardsKnownGood, ASegmentUnregisteredWhileAnotherSessionEndsItsPlan) {
  const std::uint32_t other = checker.add_host(0);
  claim(0, other);
  abort(0, other);
  checker.unregister(by(0), {kSegment, kSegmentBytes});
  EXPECT_THAT(checker.take_found(), IsEmpty());
}

TEST_F(HazardsKnownGood, DeviceMemoryOfAnotherAfterItWasFreed) {
  kernel(1, 0, true);
  checker.free_device(by(0), stream(1), {frame(0), kValueBytes});
  kernel(2, 0, true);
  EXPECT_THAT(checker.take_found(), IsEmpty());
}

TEST_F(HazardsKnownGood, AddressesThatAreOtherBytesNow) {
  copy_out(1, 0, 0);
  checker.forget({kSegment, kSegmentBytes});
  claim(0);
  EXPECT_THAT(checker.take_found(), IsEmpty());
}

TEST_F(HazardsKnownGood, WorkThatEndedWithItsContext) {
  claim(0);
  copy_out(1, 0, 0);
  checker.forget_all();
  abort(0);
  EXPECT_THAT(checker.take_found(), IsEmpty());
}

// ---- The report.

TEST_F(HazardReports, NameBothAccessesTheEdgeAndTheCallThatOwedIt) {
  claim(0);
  copy_out(3, 0, 0);
  wait_stream(3);
  copy_out(3, 1, 0);
  commit(0);
  const Hazard hazard = only();
  EXPECT_THAT(hazard.text,
              AllOf(HasSubstr("copy_batch writes 0x10000000 (256 bytes, work 2 of stream 1, by host 0 at 4 ns)"),
                    HasSubstr("local_fast_put_commit publishes 0x10000000 (256 bytes, host 0 at 5 ns)"),
                    HasSubstr("host 0 has waited for stream 1 up to work 1"), HasSubstr("Missing: a host's wait"),
                    HasSubstr("owed by stream_synchronize of stream 1, or event_synchronize of an event recorded "
                              "behind its work 2, by host 0 before local_fast_put_commit")));
  EXPECT_EQ(hazard.kinds, "copy_batch writes and local_fast_put_commit publishes");
}

TEST_F(HazardReports, NameAddressesAsTheyAreToldTo) {
  HazardChecker named([](std::uintptr_t address) { return "place " + std::to_string(address - kSegment); });
  const std::vector<Copy> copies{{slot(1), frame(0), 8}};
  named.copy_batch({0, 1}, stream(1), copies);
  named.abort({0, 2}, std::vector{slot(1)});
  const std::vector<Hazard> found = named.take_found();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found.front().text, AllOf(HasSubstr("place 4096 (8 bytes"), Not(HasSubstr("0x"))));
}

TEST_F(HazardReports, OneForEachAccessOfACall) {
  copy_out(1, 0, 0);
  copy_out(2, 1, 0);
  static_cast<void>(checker.take_found());
  abort(0);
  EXPECT_THAT(checker.take_found(), SizeIs(1)) << "although it races with two";
}

TEST_F(HazardReports, NothingIsCheckedWhereNothingNeedsAnEdge) {
  copy_out(1, 0, 0);
  copy_out(1, 0, 1);
  kernel(1, 0, true);
  claim(7);
  commit(7);
  EXPECT_EQ(checker.take_checked(), 0U);
  kernel(2, 50, true);
  EXPECT_EQ(checker.take_checked(), 0U);
  wait_stream(1);
  commit(0);
  EXPECT_EQ(checker.take_checked(), 1U);
  EXPECT_EQ(checker.take_checked(), 0U);
}

TEST_F(HazardReports, NothingIsLeftAfterAReset) {
  copy_out(1, 0, 0);
  const std::uint32_t other = checker.add_host(0);
  checker.reset();
  commit(0);
  EXPECT_THAT(checker.take_found(), IsEmpty());
  EXPECT_EQ(checker.add_host(0), other);
}

}  // namespace
}  // namespace holdfast::sim
