// What an event proves to the monitor: the copies before its last record, on its stream and on those that it waited
// for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor_fixture.hpp"

namespace holdfast::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MonitorEventsTest : public MonitorTest {
 protected:
  EventRef event() { return cuda().event_create().value(); }
  PlanPtr copied(const Names& names, StreamRef on) {
    const PlanPtr plan = start(names);
    EXPECT_TRUE(cuda().copy_batch(kOut, copies_of(plan, names.size(), kOut), on));
    return plan;
  }
};

TEST_F(MonitorEventsTest, GroupsThatAreCommittedEachBehindItsOwnEventHold) {
  const EventRef first = event();
  const EventRef second = event();
  const PlanPtr a = copied({"a"}, stream);
  ASSERT_TRUE(cuda().event_record(first, stream));
  const PlanPtr b = copied({"b"}, stream);
  ASSERT_TRUE(cuda().event_record(second, stream));
  ASSERT_TRUE(cuda().event_synchronize(first));
  commit(a);
  ASSERT_TRUE(cuda().event_synchronize(second));
  commit(b);
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(MonitorEventsTest, ACommitBehindTheEventOfTheGroupBeforeItIsSeen) {
  const EventRef first = event();
  const EventRef second = event();
  copied({"a"}, stream);
  ASSERT_TRUE(cuda().event_record(first, stream));
  const PlanPtr b = copied({"b"}, stream);
  ASSERT_TRUE(cuda().event_record(second, stream));
  ASSERT_TRUE(cuda().event_synchronize(first));
  commit(b);
  EXPECT_THAT(violated(), ElementsAre("sync-before-commit"));
}

TEST_F(MonitorEventsTest, TheEventOfALaterGroupOfTheStreamCoversTheEarlierOnes) {
  const EventRef second = event();
  const PlanPtr a = copied({"a"}, stream);
  copied({"b"}, stream);
  ASSERT_TRUE(cuda().event_record(second, stream));
  ASSERT_TRUE(cuda().event_synchronize(second));
  commit(a);
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(MonitorEventsTest, AnEventRecordedBeforeTheCopyCoversNothing) {
  const EventRef early = event();
  ASSERT_TRUE(cuda().event_record(early, stream));
  const PlanPtr a = copied({"a"}, stream);
  ASSERT_TRUE(cuda().event_synchronize(early));
  commit(a);
  EXPECT_THAT(violated(), ElementsAre("sync-before-commit"));
}

TEST_F(MonitorEventsTest, AnEventThatWasNeverRecordedCoversNothing) {
  const EventRef never = event();
  const PlanPtr a = copied({"a"}, stream);
  ASSERT_TRUE(cuda().event_synchronize(never));
  ASSERT_TRUE(cuda().event_query(never).value());
  commit(a);
  EXPECT_THAT(violated(), ElementsAre("sync-before-commit"));
}

TEST_F(MonitorEventsTest, AnEventRecordedOnAnotherStreamCoversNothing) {
  const StreamRef other = device.create_stream().value();
  const EventRef elsewhere = event();
  const PlanPtr a = copied({"a"}, stream);
  ASSERT_TRUE(cuda().event_record(elsewhere, other));
  ASSERT_TRUE(cuda().event_synchronize(elsewhere));
  commit(a);
  EXPECT_THAT(violated(), ElementsAre("sync-before-commit"));
}

TEST_F(MonitorEventsTest, RecordingAgainReplacesWhatTheEventCovered) {
  const StreamRef other = device.create_stream().value();
  const EventRef again = event();
  const PlanPtr a = copied({"a"}, stream);
  ASSERT_TRUE(cuda().event_record(again, stream));
  ASSERT_TRUE(cuda().event_record(again, other));
  ASSERT_TRUE(cuda().event_synchronize(again));
  commit(a);
  EXPECT_THAT(violated(), ElementsAre("sync-before-commit"));
}

TEST_F(MonitorEventsTest, WhatAStreamWaitedForBeforeTheEventWasRecordedAgainStays) {
  const StreamRef other = device.create_stream().value();
  const EventRef again = event();
  const PlanPtr a = copied({"a"}, stream);
  ASSERT_TRUE(cuda().event_record(again, stream));
  ASSERT_TRUE(cuda().stream_wait(other, again));
  ASSERT_TRUE(cuda().event_record(again, other));
  ASSERT_TRUE(cuda().event_destroy(again));
  ASSERT_TRUE(cuda().stream_synchronize(other));
  commit(a);
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(MonitorEventsTest, AStreamThatWaitsTooEarlyCoversNothing) {
  const StreamRef other = device.create_stream().value();
  const EventRef early = event();
  ASSERT_TRUE(cuda().event_record(early, stream));
  ASSERT_TRUE(cuda().stream_wait(other, early));
  const PlanPtr a = copied({"a"}, stream);
  ASSERT_TRUE(cuda().stream_synchronize(other));
  commit(a);
  EXPECT_THAT(violated(), ElementsAre("sync-before-commit"));
}

TEST_F(MonitorEventsTest, AFailedWaitForOneGroupSaysNothingOfAnotherThatHadArrived) {
  const EventRef first = event();
  const EventRef second = event();
  const PlanPtr a = copied({"a"}, stream);
  ASSERT_TRUE(cuda().event_record(first, stream));
  const PlanPtr b = copied({"b"}, stream);
  ASSERT_TRUE(cuda().event_record(second, stream));
  ASSERT_TRUE(cuda().event_synchronize(first));
  inject({{.call = Call::event_synchronize, .kind = FaultKind::before, .code = 719, .persistent = true}});
  ASSERT_FALSE(cuda().event_synchronize(second));
  commit(a);
  EXPECT_THAT(violated(), IsEmpty());
  ASSERT_TRUE(cuda().stream_synchronize(stream));
  commit(b);
  EXPECT_THAT(violated(), ElementsAre("sync-before-commit"));
}

TEST_F(MonitorEventsTest, AnErrorOfARecordOrAStreamsWaitMayBeThatOfTheCopiesBeforeIt) {
  for (const Call call : {Call::event_record, Call::stream_wait}) {
    const EventRef mark = event();
    const PlanPtr a = copied({"a"}, stream);
    inject({{.call = call, .kind = FaultKind::before, .code = 719, .persistent = true}});
    ASSERT_FALSE(call == Call::event_record ? cuda().event_record(mark, stream) : cuda().stream_wait(stream, mark));
    ASSERT_TRUE(cuda().stream_synchronize(stream));
    commit(a);
    EXPECT_THAT(violated(), ElementsAre("sync-before-commit"));
    EXPECT_THAT(message(), HasSubstr(name_of(call)));
    context.verdicts.reset();
    pass(kSecond);
    inject({});
    ASSERT_TRUE(fluxon().remove("a"));
  }
}

TEST_F(MonitorEventsTest, AViewIsLetGoBehindTheEventOfItsOwnBatch) {
  put_and_route({"a"});
  put_and_route({"b"});
  const EventRef first = event();
  const PlanPtr a = read({"a"});
  submit(copies_of(a, 1, kIn), kIn);
  ASSERT_TRUE(cuda().event_record(first, stream));
  const PlanPtr b = read({"b"});
  submit(copies_of(b, 1, kIn), kIn);
  ASSERT_TRUE(cuda().event_synchronize(first));
  ASSERT_TRUE(fluxon().release_views(a));
  EXPECT_THAT(violated(), IsEmpty());
  ASSERT_TRUE(fluxon().release_views(b));
  EXPECT_THAT(violated(), testing::Contains("abort-after-sync"));
}

}  // namespace
}  // namespace holdfast::sim
