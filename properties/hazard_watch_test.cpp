// The watch over the fakes: what crosses the seam becomes accesses and edges. No store above, and the copies always
// move at the wait, so that nothing is found because of timing.
#include "holdfast/sim/hazard_watch.hpp"

#include "holdfast/fakes/mock_cuda.hpp"
#include "layer_chain.hpp"

namespace holdfast::sim {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class HazardWatchTest : public LayerChain {
 protected:
  HazardWatchTest() {
    const Segment segment = owner.segment();
    device.name_host(segment.write_ptr, segment.len, "map");
    static_cast<void>(watch.fluxon().wait_local_segments_ready().value());
    for (const std::uintptr_t base : {segment.write_ptr, segment.read_ptr}) {
      EXPECT_TRUE(device.host_unregister(base));
      EXPECT_TRUE(watch.cuda().host_register(
          base, segment.len, base == segment.write_ptr ? HostAccess::read_write : HostAccess::read_only));
    }
  }

  PlanPtr put_started(const Names& keys) { return watch.fluxon().local_fast_put_start(keys, kValueBytes, {}).value(); }
  PlanPtr read_started(const Names& keys) {
    const GetHandle handle = watch.fluxon().get_start(keys, true, {}).value().handle;
    return watch.fluxon().get_transfer(handle, keys.size()).value();
  }
  void submit(PlanPtr plan, std::size_t count, CopyDirection direction, StreamRef on) {
    ASSERT_TRUE(watch.cuda().copy_batch(direction, copies_of(plan, count, direction), on));
  }
  void copy_out(PlanPtr plan, std::size_t count = 1) { submit(plan, count, CopyDirection::device_to_host, stream); }
  void copy_in(PlanPtr plan, StreamRef on) { submit(plan, 1, CopyDirection::host_to_device, on); }
  void wait(StreamRef on) { ASSERT_TRUE(watch.cuda().stream_synchronize(on)); }
  void stored(const Names& keys) {
    const PlanPtr plan = put_started(keys);
    copy_out(plan, keys.size());
    wait(stream);
    ASSERT_TRUE(watch.fluxon().local_fast_put_commit(plan).value().wait(kSecond));
    pass(kSecond);
  }
  // The engine writes what the copies read.
  void produce(StreamRef on) {
    const RangeAccess all{{tensor, kTensorBytes}, true};
    watch.kernel(on, std::span(&all, 1));
  }
  EventRef recorded(StreamRef on) {
    const EventRef event = watch.cuda().event_create().value();
    EXPECT_TRUE(watch.cuda().event_record(event, on));
    return event;
  }

  HazardWatch watch{context, tap.fluxon(), tap.cuda(),
                    [this](std::uintptr_t address) { return device.location(address); }};
  StreamRef engine = device.create_stream().value();
};

TEST_F(HazardWatchTest, APutAsItShouldBeIsCheckedAndHolds) {
  stored({"a", "b"});
  EXPECT_THAT(violated(), IsEmpty());
  EXPECT_EQ(checks(Invariant::no_hazard), 2U);  // the commit of each
}

TEST_F(HazardWatchTest, ACommitWithoutAWaitNamesBothTheEdgeAndWhoOwesIt) {
  const PlanPtr plan = put_started({"a"});
  pass(3);
  copy_out(plan);
  pass(2);
  ASSERT_TRUE(watch.fluxon().local_fast_put_commit(plan));
  EXPECT_THAT(violated(), ElementsAre("no-hazard"));
  EXPECT_THAT(message(),
              AllOf(HasSubstr("copy_batch writes map+0x"), HasSubstr("(256 bytes, work 1 of stream 1, by host 0 at "),
                    HasSubstr("local_fast_put_commit publishes map+0x"), HasSubstr("owed by stream_synchronize")));
  const Violation& violation = context.verdicts.violations().front();
  EXPECT_EQ(violation.call, "local_fast_put_commit");
  EXPECT_EQ(violation.culprits, "generate: copy_batch writes and local_fast_put_commit publishes");
}

TEST_F(HazardWatchTest, AnAbortUnderACopy) {
  const PlanPtr plan = put_started({"a"});
  copy_out(plan);
  ASSERT_TRUE(watch.fluxon().put_abort(plan));
  EXPECT_THAT(violated(), testing::Contains("no-hazard"));
}

TEST_F(HazardWatchTest, AnEventCoversWhatWasBeforeItsRecordOnly) {
  const EventRef event = watch.cuda().event_create().value();
  for (const bool before : {false, true}) {
    const PlanPtr plan = put_started({before ? "a" : "b"});
    if (before) {
      ASSERT_TRUE(watch.cuda().event_record(event, stream));
    }
    copy_out(plan);
    if (!before) {
      ASSERT_TRUE(watch.cuda().event_record(event, stream));
    }
    ASSERT_TRUE(watch.cuda().event_synchronize(event));
    ASSERT_TRUE(watch.fluxon().local_fast_put_commit(plan));
    EXPECT_EQ(violated().size(), before ? 1U : 0U);
  }
}

TEST_F(HazardWatchTest, AQueryIsAWaitWhenItSaysDone) {
  const PlanPtr plan = put_started({"a"});
  copy_out(plan);
  const EventRef event = recorded(stream);
  EXPECT_FALSE(watch.cuda().event_query(event).value());
  ASSERT_TRUE(device.stream_synchronize(stream));  // nobody's wait: time, as it were
  EXPECT_TRUE(watch.cuda().event_query(event).value());
  ASSERT_TRUE(watch.fluxon().local_fast_put_commit(plan));
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(HazardWatchTest, AQueryThatSaysNotReadyIsNone) {
  const PlanPtr plan = put_started({"a"});
  copy_out(plan);
  EXPECT_FALSE(watch.cuda().event_query(recorded(stream)).value());
  ASSERT_TRUE(watch.fluxon().local_fast_put_commit(plan));
  EXPECT_THAT(violated(), ElementsAre("no-hazard"));
}

// Whatever the device has done meanwhile.
TEST_F(HazardWatchTest, ThatACopyHasMovedIsNoEdge) {
  const PlanPtr plan = put_started({"a"});
  copy_out(plan);
  ASSERT_TRUE(device.stream_synchronize(stream));
  ASSERT_TRUE(watch.fluxon().local_fast_put_commit(plan));
  EXPECT_THAT(violated(), ElementsAre("no-hazard"));
}

TEST_F(HazardWatchTest, ADestroyedEventIsWaitedForByThoseWhoAlreadyDo) {
  produce(engine);
  const EventRef event = recorded(engine);
  ASSERT_TRUE(watch.cuda().stream_wait(stream, event));
  ASSERT_TRUE(watch.cuda().event_destroy(event));
  copy_out(put_started({"a"}));
  EXPECT_THAT(violated(), IsEmpty());
  EXPECT_FALSE(watch.cuda().stream_wait(stream, event));
}

// A runtime may give the same number again; what was never recorded orders nothing.
TEST_F(HazardWatchTest, AnEventWithTheNumberOfADestroyedOneIsAnotherOne) {
  testing::NiceMock<fakes::MockCuda> runtime;
  ON_CALL(runtime, event_create()).WillByDefault([] { return EventRef{7}; });
  HazardWatch other(context, tap.fluxon(), runtime, {});
  const RangeAccess written{{tensor, kValueBytes}, true};
  other.kernel(engine, std::span(&written, 1));
  const EventRef first = other.cuda().event_create().value();
  ASSERT_TRUE(other.cuda().event_record(first, engine));
  ASSERT_TRUE(other.cuda().event_destroy(first));
  const EventRef second = other.cuda().event_create().value();
  ASSERT_EQ(second, first);
  ASSERT_TRUE(other.cuda().stream_wait(stream, second));
  other.kernel(stream, std::span(&written, 1));
  EXPECT_THAT(violated(), ElementsAre("no-hazard"));
}

TEST_F(HazardWatchTest, TheProducersEventIsWaitedForBeforeTheCopy) {
  produce(engine);
  copy_out(put_started({"a"}));
  EXPECT_THAT(violated(), ElementsAre("no-hazard"));
  EXPECT_THAT(message(), AllOf(HasSubstr("an engine's kernel writes dev0+0x"), HasSubstr("copy_batch reads dev0+0x"),
                               HasSubstr("event_record on stream 1"), HasSubstr("stream_wait of stream 2")));
}

TEST_F(HazardWatchTest, TheEngineWaitsForTheCopyBeforeItOverwrites) {
  copy_out(put_started({"a"}));
  ASSERT_TRUE(watch.cuda().stream_wait(engine, recorded(stream)));
  produce(engine);
  EXPECT_THAT(violated(), IsEmpty());
  copy_out(put_started({"b"}));
  EXPECT_EQ(violated().size(), 1U) << "the engine's own event was not waited for";
  produce(engine);
  EXPECT_EQ(violated().size(), 2U);
}

TEST_F(HazardWatchTest, DeviceMemoryIsFreedBehindTheCopies) {
  const PlanPtr plan = put_started({"a"});
  copy_out(plan);
  watch.free_device(engine, {tensor, kTensorBytes});
  EXPECT_THAT(message(), HasSubstr("an engine's free frees"));
  produce(engine);
  EXPECT_EQ(violated().size(), 1U) << "what comes afterwards is another's memory";
}

TEST_F(HazardWatchTest, AReleaseUnderACopyOutOfEitherMapping) {
  stored({"a"});
  const Segment segment = owner.segment();
  for (const bool translated : {false, true}) {
    const PlanPtr plan = read_started({"a"});
    Copy copy = copies_of(plan, 1, CopyDirection::host_to_device).front();
    if (translated) copy.src = segment.write_ptr + (copy.src - segment.read_ptr);
    ASSERT_TRUE(watch.cuda().copy_batch(CopyDirection::host_to_device, std::span(&copy, 1), stream));
    const std::size_t before = violated().size();
    ASSERT_TRUE(watch.fluxon().release_views(plan));
    EXPECT_GT(violated().size(), before);
    wait(stream);
    pass(kSecond);
  }
}

TEST_F(HazardWatchTest, AValueThatAnotherPlanHoldsIsNotGivenAway) {
  stored({"a"});
  const PlanPtr one = read_started({"a"});
  const PlanPtr other = read_started({"a"});
  copy_in(one, stream);
  ASSERT_TRUE(watch.fluxon().release_views(other));
  EXPECT_THAT(violated(), IsEmpty());
  ASSERT_TRUE(watch.fluxon().release_views(one));
  EXPECT_THAT(violated(), testing::Contains("no-hazard"));
}

TEST_F(HazardWatchTest, ASlotGivenOutAgainUnderACopyOfAPlanThatEnded) {
  const PlanPtr plan = put_started({"a"});
  const auto slot = addresses_of(plan, 1);
  copy_out(plan);
  ASSERT_TRUE(watch.fluxon().put_abort(plan));
  const std::size_t before = violated().size();
  EXPECT_EQ(addresses_of(put_started({"b"}), 1), slot);
  ASSERT_GT(violated().size(), before);
  EXPECT_THAT(context.verdicts.violations().back().message, HasSubstr("local_fast_put_start claims"));
}

// Its waits may all have failed.
TEST_F(HazardWatchTest, ASlotThatTheOwnerTookBackAtTheTimeOutIsNobodysFault) {
  const PlanPtr plan = put_started({"a"});
  const auto slot = addresses_of(plan, 1);
  copy_out(plan);
  pass(kPlanTimeout);
  const PlanPtr next = put_started({"b"});
  EXPECT_EQ(addresses_of(next, 1), slot);
  ASSERT_TRUE(watch.fluxon().put_abort(plan));
  EXPECT_THAT(violated(), Not(testing::Contains("no-hazard")));
  copy_out(next);
  ASSERT_TRUE(watch.fluxon().local_fast_put_commit(next));
  EXPECT_THAT(violated(), testing::Contains("no-hazard"));
}

TEST_F(HazardWatchTest, ASegmentUnregisteredUnderACopyThatUsesIt) {
  copy_out(put_started({"a"}));
  ASSERT_TRUE(watch.cuda().host_unregister(owner.segment().read_ptr));
  EXPECT_THAT(violated(), IsEmpty()) << "the copy uses the other mapping";
  ASSERT_TRUE(watch.cuda().host_unregister(owner.segment().write_ptr));
  EXPECT_THAT(violated(), testing::Contains("no-hazard"));
}

TEST_F(HazardWatchTest, ARefusedBatchIsNoAccess) {
  const std::uintptr_t slot = addresses_of(put_started({"a"}), 1).front();
  const Copy copies[] = {{slot, tensor, kValueBytes}, {slot, tensor, ~std::uint64_t{0}}};
  EXPECT_FALSE(watch.cuda().copy_batch(CopyDirection::device_to_host, copies, stream));
  produce(engine);
  EXPECT_THAT(violated(), IsEmpty());
  EXPECT_EQ(checks(Invariant::no_hazard), 0U);
}

TEST_F(HazardWatchTest, NothingIsInFlightOnceTheClientIsDead) {
  const PlanPtr plan = put_started({"a"});
  copy_out(plan);
  device.client_died();
  watch.all_ended();
  produce(engine);
  ASSERT_TRUE(watch.fluxon().put_abort(plan));
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(HazardWatchTest, TheSlotsOfANewGenerationAreOtherBytes) {
  const std::uintptr_t first = addresses_of(put_started({"a"}), 1).front();
  copy_out(put_started({"b"}));
  const std::uintptr_t copied = first + kSlotAlignment;
  for (int i = 0; i < 3; ++i) owner.restart();  // the first mapping again
  const Segment segment = watch.fluxon().wait_local_segments_ready().value().front();
  const Names keys{"c", "d"};
  const auto slots = addresses_of(put_started(keys), 2);
  ASSERT_THAT(slots, testing::Contains(copied));
  ASSERT_EQ(segment.write_ptr, owner.segment().write_ptr);
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(HazardWatchTest, SwitchedOffItSeesNothing) {
  context.verdicts.disable(Invariant::no_hazard);
  watch.reset();
  const PlanPtr plan = put_started({"a"});
  const auto slots = addresses_of(plan, 1);
  copy_out(plan);
  ASSERT_TRUE(watch.fluxon().local_fast_put_commit(plan));
  EXPECT_THAT(violated(), IsEmpty());
  EXPECT_EQ(checks(Invariant::no_hazard), 0U);
  watch.checker().abort({}, slots);
  EXPECT_EQ(watch.checker().take_checked(), 0U) << "it was told of the copy all the same";
}

}  // namespace
}  // namespace holdfast::sim
