// The fault injector: each legal fault looks like a real one, does below what it says, and is told only to reporters.
#include "layer_chain.hpp"

namespace holdfast::sim {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr std::int32_t kTransport = -608;

class InjectorTest : public LayerChain {
 protected:
  // Below the monitor, which would judge what these tests do.
  FluxonBackend& calls() { return injector.fluxon(); }
  CudaBackend& gpu() { return injector.cuda(); }

  PlanPtr started(const Names& keys) { return calls().local_fast_put_start(keys, kValueBytes, {}).value(); }
  Result<Codes> stored(const Names& keys, Nanos limit_ns = 10 * kSecond) {
    return calls().local_fast_put_commit(started(keys))->wait(limit_ns);
  }
  void stored_and_routed(const Names& keys) {
    ASSERT_TRUE(stored(keys));
    pass(kSecond);
  }
  GetStart found(const Names& keys) { return calls().get_start(keys, true, {}).value(); }
  bool is_stored(std::string_view key) { return tap.stored_digest(key).has_value(); }
  // The only fault that fired, or none.
  FiredFault fired() {
    EXPECT_THAT(injector.fired(), SizeIs(1));
    return injector.fired().empty() ? FiredFault{} : injector.fired().front();
  }
};

TEST_F(InjectorTest, WithoutFaultsEveryCallGoesThroughAndIsCounted) {
  inject({});
  stored_and_routed({"a"});
  EXPECT_TRUE(is_stored("a"));
  EXPECT_THAT(injector.fired(), IsEmpty());
  EXPECT_EQ(context.calls_in_step[static_cast<std::size_t>(Call::local_fast_put_start)], 1U);
  EXPECT_EQ(context.calls_in_step[static_cast<std::size_t>(Call::commit_wait)], 1U);
}

TEST_F(InjectorTest, BeforeFailsAsABackendWouldAndDoesNothing) {
  inject({{.call = Call::local_fast_put_start, .nth = 1, .kind = FaultKind::before, .code = 4004}});
  ASSERT_TRUE(calls().put_abort(started({"a"})));
  const auto refused = calls().local_fast_put_start(Names{"a"}, kValueBytes, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().origin, Origin::fluxon);
  EXPECT_EQ(refused.error().code, 4004);
  EXPECT_EQ(refused.error().call, "local_fast_put_start");
  EXPECT_EQ(owner.live_plans(), 0U);
  EXPECT_EQ(fired().code, 4004);
  EXPECT_EQ(fired().subject, "a");
  EXPECT_EQ(context.faults.total, 1U);
  started({"a"});  // only the nth call
}

TEST_F(InjectorTest, PersistentFailsEveryLaterCallOfTheStep) {
  inject({{.call = Call::local_fast_put_start, .kind = FaultKind::before, .code = 4004, .persistent = true}});
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(calls().local_fast_put_start(Names{"a"}, kValueBytes, {}));
  EXPECT_THAT(injector.fired(), SizeIs(3));
  next_step(2, StepKind::generate);
  EXPECT_THAT(injector.fired(), IsEmpty());
  started({"a"});
}

TEST_F(InjectorTest, PhaseTwoHasNoFaults) {
  inject({{.call = Call::local_fast_put_start, .kind = FaultKind::before, .code = 4004}});
  context.faults_on = false;
  started({"a"});
}

TEST_F(InjectorTest, WhatTheTableDoesNotAllowIsNotInjected) {
  inject({{.call = Call::local_fast_put_start, .kind = FaultKind::part, .code = 4004}});
  started({"a"});
}

TEST_F(InjectorTest, NoSlotIsToldAfterThirtySeconds) {
  inject({{.call = Call::local_fast_put_start, .kind = FaultKind::before, .code = 7000}});
  EXPECT_EQ(code_of(calls().local_fast_put_start(Names{"a"}, kValueBytes, {})), 7000);
  EXPECT_EQ(clock.now_ns(), kPutStartWaitLimit);
}

TEST_F(InjectorTest, ALostPutStartKeepsItsKeysUntilThePlanTimeout) {
  inject({{.call = Call::local_fast_put_start, .kind = FaultKind::lost, .code = 7000}});
  EXPECT_EQ(code_of(calls().local_fast_put_start(Names{"a"}, kValueBytes, {})), 7000);
  EXPECT_EQ(code_of(calls().local_fast_put_start(Names{"a"}, kValueBytes, {})), 4004);
  pass(kPlanTimeout);
  started({"a"});
}

TEST_F(InjectorTest, ALostCommitIsStoredThoughItsCodesSayTransport) {
  inject({{.call = Call::commit_wait, .kind = FaultKind::lost, .code = kTransport}});
  EXPECT_EQ(stored({"a", "b"}).value(), Codes(2, kTransport));
  EXPECT_TRUE(is_stored("a") && is_stored("b"));
  EXPECT_EQ(fired().origin, Origin::fluxon_key);
  EXPECT_EQ(reached(Mark::commit_transport_stored), 1U);
}

TEST_F(InjectorTest, ALostCommitWithAnOddSeedIsStoredLaterInPart) {
  inject({{.call = Call::commit_wait, .kind = FaultKind::lost, .code = kTransport, .arg = 7}});
  const Names keys{"a", "b", "c", "d", "e", "f"};
  EXPECT_EQ(stored(keys).value(), Codes(keys.size(), kTransport));
  const auto count = [&] { return std::ranges::count_if(keys, [&](auto key) { return is_stored(key); }); };
  EXPECT_LT(count(), 6);
  pass(kSettleBound);
  EXPECT_EQ(count(), 6);
}

TEST_F(InjectorTest, ACommitThatFailedBeforeIsNotStored) {
  inject({{.call = Call::commit_wait, .kind = FaultKind::before, .code = kTransport}});
  EXPECT_EQ(stored({"a"}).value(), Codes{kTransport});
  pass(kSettleBound);
  EXPECT_FALSE(is_stored("a"));
  EXPECT_EQ(reached(Mark::commit_transport_not_stored), 1U);
}

TEST_F(InjectorTest, AFailedFutureTellsNoCodes) {
  inject({{.call = Call::commit_wait, .kind = FaultKind::lost, .code = 7000},
          {.call = Call::commit_wait, .nth = 1, .kind = FaultKind::before, .code = 7000}});
  EXPECT_EQ(code_of(stored({"a"})), 7000);
  EXPECT_EQ(code_of(stored({"b"})), 7000);
  EXPECT_TRUE(is_stored("a"));
  EXPECT_FALSE(is_stored("b"));
  EXPECT_EQ(reached(Mark::future_failed_stored), 1U);
}

TEST_F(InjectorTest, APartlyFailedCommitIsDrawnFromItsSeed) {
  const Names keys{"a", "b", "c", "d", "e", "f", "g", "h"};
  std::vector<Codes> seen;
  for (const std::uint64_t seed : {1, 2, 1}) {
    clock.reset();
    owner.reset(owner_options());
    inject({{.call = Call::commit_wait, .kind = FaultKind::part, .code = -118, .arg = seed}});
    seen.push_back(stored(keys).value());
    EXPECT_THAT(seen.back(), Contains(-118));
    EXPECT_THAT(seen.back(), Contains(0));
    for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(is_stored(keys[i]), seen.back()[i] == 0);
  }
  EXPECT_EQ(seen[0], seen[2]);
  EXPECT_NE(seen[0], seen[1]);
}

TEST_F(InjectorTest, ALateFutureOutlastsTheCallersPatience) {
  inject({{.call = Call::commit_wait, .kind = FaultKind::late, .arg = 30 * kSecond}});
  auto future = calls().local_fast_put_commit(started({"a"})).value();
  EXPECT_EQ(code_of(future.wait(10 * kSecond)), 1002);
  EXPECT_EQ(fired().code, 1002);
  EXPECT_EQ(future.wait(30 * kSecond).value(), Codes{0});
  EXPECT_EQ(clock.now_ns(), 30 * kSecond);
}

TEST_F(InjectorTest, TheFateOfAFutureIsThatOfItsCommitHoweverLateItIsWaitedFor) {
  inject({{.call = Call::commit_wait, .nth = 1, .kind = FaultKind::before, .code = -118}});
  auto first = calls().local_fast_put_commit(started({"a"})).value();
  auto second = calls().local_fast_put_commit(started({"b"})).value();
  next_step(2, StepKind::pump);
  EXPECT_EQ(second.wait(kSecond).value(), Codes{-118});
  EXPECT_EQ(first.wait(kSecond).value(), Codes{0});
  EXPECT_EQ(fired().point.step, 1U);
}

TEST_F(InjectorTest, AnOwnerRestartsBetweenCommitAndWait) {
  inject({{.call = Call::commit_wait, .kind = FaultKind::gone}},
         {{.call = Call::local_fast_put_commit, .kind = ChoiceKind::answer_after, .arg = kSecond}});
  EXPECT_EQ(stored({"a"}).value(), Codes{-117});
  EXPECT_EQ(owner.incarnation(), 2U);
  EXPECT_EQ(reached(Mark::restart_before_wait), 1U);
  EXPECT_EQ(reached(Mark::restart_during_put), 1U);
}

TEST_F(InjectorTest, AnAbortThatFailedKeepsAllOrSomeReservations) {
  inject({{.call = Call::put_abort, .kind = FaultKind::before, .code = 7000},
          {.call = Call::put_abort, .nth = 1, .kind = FaultKind::part, .code = 7000},
          {.call = Call::put_abort, .nth = 2, .kind = FaultKind::lost, .code = 7000}});
  EXPECT_EQ(code_of(calls().put_abort(started({"a", "b", "c"}))), 7000);
  EXPECT_EQ(owner.prepared_slots(), 3U);
  EXPECT_EQ(code_of(calls().put_abort(started({"d", "e", "f"}))), 7000);
  EXPECT_EQ(owner.prepared_slots(), 5U);
  EXPECT_EQ(code_of(calls().put_abort(started({"g", "h", "i"}))), 7000);
  EXPECT_EQ(owner.prepared_slots(), 5U);
  EXPECT_EQ(owner.live_plans(), 0U);
  pass(kPlanTimeout);
  EXPECT_EQ(owner.prepared_slots(), 0U);
}

TEST_F(InjectorTest, APerKeyErrorOfGetStartLooksLikeAMiss) {
  stored_and_routed({"a", "b", "c"});
  inject({{.call = Call::get_start, .kind = FaultKind::part, .arg = 1}});
  EXPECT_EQ(found({"a", "b", "c"}).raw_prefix_hit_len, 1U);
  EXPECT_EQ(fired().subject, "b");
  EXPECT_TRUE(found({"a", "b", "c"}).all_hit);
}

TEST_F(InjectorTest, ALostGetStartPins) {
  stored_and_routed({"a"});
  inject({{.call = Call::get_start, .kind = FaultKind::lost, .code = 7000}});
  EXPECT_EQ(code_of(calls().get_start(Names{"a"}, true, {})), 7000);
  EXPECT_EQ(owner.holders(), 1U);
}

TEST_F(InjectorTest, ARefusedTransferLeavesTheHandleAnyOtherFailureConsumesIt) {
  stored_and_routed({"a"});
  inject({{.call = Call::get_transfer, .kind = FaultKind::before, .code = 1001},
          {.call = Call::get_transfer, .nth = 1, .kind = FaultKind::before, .code = 7000},
          {.call = Call::get_transfer, .nth = 2, .kind = FaultKind::lost, .code = 7000}});
  const GetHandle handle = found({"a"}).handle;
  EXPECT_EQ(code_of(calls().get_transfer(handle, 1)), 1001);
  EXPECT_EQ(owner.live_handles(), 1U);
  EXPECT_EQ(code_of(calls().get_transfer(handle, 1)), 7000);
  EXPECT_EQ(owner.live_handles(), 0U);
  EXPECT_EQ(owner.holders(), 0U);
  EXPECT_EQ(code_of(calls().get_transfer(found({"a"}).handle, 1)), 7000);
  EXPECT_EQ(owner.holders(), 1U);
}

TEST_F(InjectorTest, AVanishedValueIsReallyGoneAtTheTransfer) {
  stored_and_routed({"a", "b"});
  inject({{.call = Call::get_transfer, .kind = FaultKind::part, .code = 4000, .arg = 1}});
  EXPECT_EQ(code_of(calls().get_transfer(found({"a", "b"}).handle, 2)), 4000);
  EXPECT_TRUE(is_stored("a"));
  EXPECT_FALSE(is_stored("b"));
  EXPECT_EQ(owner.live_handles() + owner.live_plans() + owner.holders(), 0U);
  EXPECT_EQ(reached(Mark::store_evicted_between), 1U);
}

TEST_F(InjectorTest, AFailedCancelOrReleasePinsUntilTheClientLeaves) {
  stored_and_routed({"a", "b"});
  inject({{.call = Call::cancel_get_transfer, .kind = FaultKind::before, .code = 7000},
          {.call = Call::release_views, .kind = FaultKind::before, .code = 7000}});
  EXPECT_EQ(code_of(calls().cancel_get_transfer(found({"a"}).handle)), 7000);
  EXPECT_EQ(code_of(calls().release_views(calls().get_transfer(found({"b"}).handle, 1).value())), 7000);
  EXPECT_EQ(owner.live_handles() + owner.live_plans(), 0U);
  pass(kSecond);
  EXPECT_EQ(owner.holders(), 2U);
  injector.new_incarnation();
  pass(kHandleTimeout);
  EXPECT_EQ(owner.holders(), 0U);
}

TEST_F(InjectorTest, ARemovalFailsBeforeOrIsLost) {
  stored_and_routed({"a", "b", "c"});
  inject({{.call = Call::remove, .kind = FaultKind::before, .code = 7000},
          {.call = Call::remove, .nth = 1, .kind = FaultKind::lost, .code = 7000},
          {.call = Call::remove, .nth = 2, .kind = FaultKind::lost, .code = 4000}});
  EXPECT_EQ(code_of(calls().remove("a")), 7000);
  EXPECT_EQ(code_of(calls().remove("b")), 7000);
  EXPECT_EQ(code_of(calls().remove("c")), 4000);
  EXPECT_TRUE(is_stored("a"));
  EXPECT_FALSE(is_stored("b") || is_stored("c"));
}

TEST_F(InjectorTest, EvictionTakesTheKeysOfTheCallFirst) {
  stored_and_routed({"a", "b"});
  inject({{.call = Call::get_start, .kind = FaultKind::evict}});
  EXPECT_EQ(found({"a"}).raw_prefix_hit_len, 0U);
  EXPECT_TRUE(is_stored("b"));
  EXPECT_EQ(fired().code, 0);
}

TEST_F(InjectorTest, EvictionAtACallWithoutKeysTakesSomething) {
  stored_and_routed({"a", "b"});
  inject({{.call = Call::stream_synchronize, .kind = FaultKind::evict, .arg = 3}});
  ASSERT_TRUE(gpu().stream_synchronize(stream));
  EXPECT_LT(owner.stored_keys(), 2U);
}

TEST_F(InjectorTest, AnEvictionThatFindsNothingDidNotFire) {
  inject({{.call = Call::stream_synchronize, .kind = FaultKind::evict}});
  ASSERT_TRUE(gpu().stream_synchronize(stream));
  EXPECT_THAT(injector.fired(), IsEmpty());
}

TEST_F(InjectorTest, TheOwnerRestartsJustBeforeACall) {
  const PlanPtr plan = started({"a"});
  inject({{.call = Call::put_abort, .kind = FaultKind::gone}});
  EXPECT_TRUE(calls().put_abort(plan));
  EXPECT_EQ(owner.incarnation(), 2U);
  EXPECT_EQ(reached(Mark::restart_with_plan_open), 1U);
}

TEST_F(InjectorTest, LateMovesTimeBeforeOrAfterTheCall) {
  inject({{.call = Call::stream_synchronize, .kind = FaultKind::late, .arg = 2 * kSecond},
          {.call = Call::remove, .kind = FaultKind::late, .arg = kSecond + 1}});
  EXPECT_TRUE(gpu().stream_synchronize(stream));
  EXPECT_EQ(clock.now_ns(), 2 * kSecond);
  EXPECT_EQ(code_of(calls().remove("a")), 4000);
  EXPECT_EQ(clock.now_ns(), 3 * kSecond + 1);
}

// ---- The device.

TEST_F(InjectorTest, APartlySubmittedBatchLeavesASubsetInFlight) {
  inject({{.call = Call::copy_batch, .kind = FaultKind::part, .code = 719, .arg = 5}});
  const PlanPtr plan = started({"a", "b", "c", "d", "e", "f", "g", "h"});
  const auto copies = copies_of(plan, 8, CopyDirection::device_to_host);
  EXPECT_EQ(code_of(gpu().copy_batch(CopyDirection::device_to_host, copies, stream)), 719);
  EXPECT_GT(device.in_flight_count(), 0U);
  EXPECT_LT(device.in_flight_count(), 8U);
  EXPECT_TRUE(gpu().stream_synchronize(stream));
}

TEST_F(InjectorTest, ABatchThatFailedBeforeIsNotInFlight) {
  inject({{.call = Call::copy_batch, .kind = FaultKind::before, .code = 1}});
  const PlanPtr plan = started({"a"});
  EXPECT_EQ(code_of(gpu().copy_batch(CopyDirection::device_to_host, copies_of(plan, 1, CopyDirection::device_to_host),
                                     stream)),
            1);
  EXPECT_EQ(device.in_flight_count(), 0U);
}

TEST_F(InjectorTest, TimePassesJustBeforeTheCall) {
  inject({});
  stored_and_routed({"a"});
  inject({{.call = Call::get_transfer, .kind = FaultKind::time, .arg = kHandleTimeout + kSecond},
          {.call = Call::commit_wait, .kind = FaultKind::time, .arg = 5 * kSecond}},
         {{.step = context.step, .call = Call::get_start, .kind = ChoiceKind::needs_transfer}});
  const GetStart start = found({"a"});
  EXPECT_FALSE(calls().get_transfer(start.handle, 1));
  EXPECT_EQ(fired().point.kind, FaultKind::time);
  auto future = calls().local_fast_put_commit(started({"b"}));
  const Nanos before = clock.now_ns();
  EXPECT_TRUE(future->wait(kSecond));
  EXPECT_EQ(clock.now_ns(), before + 5 * kSecond);
}

TEST_F(InjectorTest, ALateReleaseDropsItsHoldersLater) {
  inject({});
  stored_and_routed({"a"});
  inject({{.call = Call::release_views, .kind = FaultKind::late, .arg = kMinute}});
  const PlanPtr plan = calls().get_transfer(found({"a"}).handle, 1).value();
  EXPECT_TRUE(calls().release_views(plan));
  pass(kMinute - 1);
  EXPECT_EQ(owner.holders(), 1U);
  pass(1);
  EXPECT_EQ(owner.holders(), 0U);
}

std::uint64_t cell(const RunContext& context, Call call, FaultKind kind, std::int32_t code, CallState state) {
  return context.faults.cells.at(cell_index(call, kind, code, state).value());
}

TEST_F(InjectorTest, AFaultIsCountedInTheStateThatItStruck) {
  const FaultPoint gone_missing{.call = Call::remove, .kind = FaultKind::before, .code = 7000};
  const auto removed_in = [&](CallState state) { return cell(context, Call::remove, FaultKind::before, 7000, state); };
  inject({});
  ASSERT_TRUE(stored({"a"}));
  inject({gone_missing});
  EXPECT_FALSE(calls().remove("a"));
  EXPECT_EQ(removed_in(CallState::local_visible), 1U);
  pass(kSecond);
  inject({gone_missing});
  EXPECT_FALSE(calls().remove("a"));
  EXPECT_EQ(removed_in(CallState::committed), 1U);
  inject({gone_missing});
  EXPECT_FALSE(calls().remove("b"));
  EXPECT_EQ(removed_in(CallState::absent), 1U);

  inject({{.call = Call::get_start, .kind = FaultKind::before, .code = 7000, .persistent = true}});
  static_cast<void>(calls().get_start(Names{"a"}, true, {}));
  static_cast<void>(calls().get_start(Names{"a", "b"}, true, {}));
  static_cast<void>(calls().get_start(Names{"b"}, true, {}));
  for (const CallState state : {CallState::all, CallState::some, CallState::none})
    EXPECT_EQ(cell(context, Call::get_start, FaultKind::before, 7000, state), 1U) << name_of(state);

  inject({{.call = Call::local_fast_put_start, .kind = FaultKind::before, .code = 4004, .persistent = true}});
  static_cast<void>(calls().local_fast_put_start(Names{"a"}, kValueBytes, {}));
  static_cast<void>(calls().local_fast_put_start(Names{"b"}, kValueBytes, {}));
  for (const CallState state : {CallState::committed, CallState::absent})
    EXPECT_EQ(cell(context, Call::local_fast_put_start, FaultKind::before, 4004, state), 1U) << name_of(state);
}

TEST_F(InjectorTest, EachFateOfAFutureIsACell) {
  inject({{.call = Call::commit_wait, .kind = FaultKind::before, .code = kTransport}});
  static_cast<void>(stored({"a"}));
  EXPECT_EQ(cell(context, Call::commit_wait, FaultKind::before, kTransport, CallState::not_stored), 1U);
  inject({{.call = Call::commit_wait, .kind = FaultKind::lost, .code = kTransport}});
  static_cast<void>(stored({"b"}));
  EXPECT_EQ(cell(context, Call::commit_wait, FaultKind::lost, kTransport, CallState::stored), 1U);
  EXPECT_EQ(cell(context, Call::commit_wait, FaultKind::lost, kTransport, CallState::decided_later), 0U);
}

TEST_F(InjectorTest, CallsAreListedWhenAsked) {
  context.keep_calls = true;
  inject({});
  static_cast<void>(stored({"a"}));
  static_cast<void>(calls().remove("a"));
  static_cast<void>(calls().remove("b"));
  const std::uint32_t step = context.step;
  EXPECT_THAT(context.calls,
              ElementsAre(CallRecord{step, Call::local_fast_put_start, 0},
                          CallRecord{step, Call::local_fast_put_commit, 0}, CallRecord{step, Call::commit_wait, 0},
                          CallRecord{step, Call::remove, 0}, CallRecord{step, Call::remove, 1}));
  context.faults_on = false;
  static_cast<void>(calls().remove("c"));
  EXPECT_THAT(context.calls, SizeIs(5));
}

TEST_F(InjectorTest, AFailedWaitLeavesItsCopiesInFlightAndALaterOneSucceeds) {
  inject({{.call = Call::stream_synchronize, .kind = FaultKind::before, .code = 719}});
  const PlanPtr plan = started({"a"});
  ASSERT_TRUE(
      gpu().copy_batch(CopyDirection::device_to_host, copies_of(plan, 1, CopyDirection::device_to_host), stream));
  EXPECT_EQ(code_of(gpu().stream_synchronize(stream)), 719);
  EXPECT_EQ(device.in_flight_count(), 1U);
  EXPECT_TRUE(gpu().stream_synchronize(stream));
  EXPECT_EQ(device.in_flight_count(), 0U);
}

TEST_F(InjectorTest, AStickyErrorFailsEveryCallUntilTheTearDown) {
  inject({{.call = Call::stream_synchronize, .kind = FaultKind::before, .code = 700}});
  EXPECT_EQ(code_of(gpu().stream_synchronize(stream)), 700);
  EXPECT_TRUE(injector.context_dead());
  EXPECT_EQ(code_of(gpu().event_create()), 700);
  EXPECT_EQ(code_of(gpu().pointer_attributes(tensor)), 700);
  EXPECT_TRUE(calls().wait_local_segments_ready());
  EXPECT_THAT(injector.fired(), SizeIs(1));
  injector.tear_down();
  EXPECT_FALSE(injector.context_dead());
  EXPECT_TRUE(gpu().event_create());
}

TEST_F(InjectorTest, AlreadyRegisteredMeansTheWholeRangeOrAPartOfIt) {
  struct Case {
    std::uint64_t arg;
    MemoryKind first, last;
  };
  using enum MemoryKind;
  for (const Case& is : {Case{0, registered_host, registered_host}, Case{1, registered_host, unregistered_host},
                         Case{2, unregistered_host, registered_host}}) {
    const std::uintptr_t own = arena.map_private(1 << 16);
    inject({{.call = Call::host_register, .kind = FaultKind::before, .code = 712, .arg = is.arg}});
    EXPECT_EQ(code_of(gpu().host_register(own, 1 << 16, HostAccess::read_write)), 712);
    EXPECT_EQ(gpu().pointer_attributes(own)->kind, is.first);
    EXPECT_EQ(gpu().pointer_attributes(own + (1 << 16) - 1)->kind, is.last);
  }
}

// Two strangers with a half each would look like one with the whole, which nobody keeps.
TEST_F(InjectorTest, NobodyAddsToWhatSomebodyHoldsOfARange) {
  const std::uintptr_t own = arena.map_private(1 << 16);
  inject({{.call = Call::host_register, .kind = FaultKind::before, .code = 712, .arg = 1},
          {.call = Call::host_register, .nth = 1, .kind = FaultKind::before, .code = 712, .arg = 2}});
  EXPECT_EQ(code_of(gpu().host_register(own, 1 << 16, HostAccess::read_write)), 712);
  EXPECT_EQ(code_of(gpu().host_register(own, 1 << 16, HostAccess::read_write)), 712);
  EXPECT_EQ(gpu().pointer_attributes(own + (1 << 16) - 1)->kind, MemoryKind::unregistered_host);
}

TEST_F(InjectorTest, AQueryMaySayNotReadyForLong) {
  inject({{.call = Call::event_query, .kind = FaultKind::late, .persistent = true}});
  const EventRef event = gpu().event_create().value();
  EXPECT_FALSE(gpu().event_query(event).value());
  EXPECT_FALSE(gpu().event_query(event).value());
  next_step(2, StepKind::pump);
  EXPECT_TRUE(gpu().event_query(event).value());
}

TEST_F(InjectorTest, ChoicesOfABatchReachTheDevice) {
  inject({}, {{.call = Call::copy_batch, .kind = ChoiceKind::copy_at_submit}});
  const PlanPtr plan = started({"a"});
  const auto copies = copies_of(plan, 1, CopyDirection::device_to_host);
  ASSERT_TRUE(gpu().copy_batch(CopyDirection::device_to_host, copies, stream));
  EXPECT_EQ(device.in_flight_count(), 0U);
  ASSERT_TRUE(gpu().copy_batch(CopyDirection::device_to_host, copies, stream));
  EXPECT_EQ(device.in_flight_count(), 1U);
}

TEST_F(InjectorTest, AChosenRouteAndAnswerComeWhenTheySay) {
  inject({}, {{.call = Call::local_fast_put_commit, .kind = ChoiceKind::route_after, .arg = 5 * kSecond},
              {.call = Call::local_fast_put_commit, .kind = ChoiceKind::answer_after, .arg = 2 * kSecond}});
  EXPECT_EQ(stored({"a"}).value(), Codes{0});
  EXPECT_EQ(clock.now_ns(), 2 * kSecond);
  EXPECT_EQ(owner.peek("a")->state, fakes::KeyState::local_visible);
  pass(3 * kSecond);
  EXPECT_EQ(owner.peek("a")->state, fakes::KeyState::committed);
}

TEST_F(InjectorTest, AHandleThatNeedsATransferTimesOut) {
  stored_and_routed({"a"});
  inject({}, {{.call = Call::get_start, .kind = ChoiceKind::needs_transfer}});
  const GetHandle handle = found({"a"}).handle;
  pass(kHandleTimeout);
  EXPECT_EQ(code_of(calls().get_transfer(handle, 1)), 4000);
}

// ---- Files.

TEST_F(InjectorTest, ATornWriteLeavesAPrefixAndALostRenameHappened) {
  inject({{.call = Call::file_write, .kind = FaultKind::part, .code = ENOSPC, .arg = 3},
          {.call = Call::file_rename, .kind = FaultKind::lost, .code = EIO},
          {.call = Call::file_read, .kind = FaultKind::part, .arg = 1}});
  const Status torn = injector.files().write("f", "abcdef");
  EXPECT_EQ(code_of(torn), ENOSPC);
  EXPECT_EQ(torn.error().origin, Origin::file_system);
  EXPECT_EQ(code_of(injector.files().rename("f", "g")), EIO);
  EXPECT_EQ(injector.files().read("g", 100).value(), "a");
  EXPECT_EQ(injector.files().read("g", 100).value(), "abc");
}

// ---- Death.

TEST_F(InjectorTest, ADeadClientsCallsHaveNoEffectUntilANewOneBegins) {
  stored_and_routed({"a"});
  const PlanPtr plan = started({"b"});
  inject({{.call = Call::remove, .kind = FaultKind::death}});
  EXPECT_EQ(code_of(calls().remove("a")), code_of(FluxonErrc::store_closed));
  EXPECT_TRUE(injector.client_dead());
  EXPECT_EQ(code_of(calls().put_abort(plan)), code_of(FluxonErrc::store_closed));
  EXPECT_EQ(code_of(gpu().stream_synchronize(stream)), 709);
  EXPECT_EQ(code_of(injector.files().write("f", "x")), EIO);
  EXPECT_TRUE(is_stored("a"));
  EXPECT_FALSE(files.files.exists("f"));
  EXPECT_THAT(injector.fired(), SizeIs(1));
  injector.new_incarnation();
  EXPECT_FALSE(injector.client_dead());
  EXPECT_TRUE(calls().remove("a"));
}

TEST_F(InjectorTest, ADamagedReadHasAnotherDigitInItsFirstLine) {
  ASSERT_TRUE(injector.files().write("f", "a1b9\n5"));
  inject({{.call = Call::file_read, .kind = FaultKind::part, .arg = 2 * kDamagedRead}});
  EXPECT_EQ(injector.files().read("f", 10).value(), "a2b9\n5");
  inject({{.call = Call::file_read, .kind = FaultKind::part, .arg = 3 * kDamagedRead}});
  EXPECT_EQ(injector.files().read("f", 10).value(), "a1b0\n5");
  ASSERT_TRUE(injector.files().write("f", "ab\n5"));
  inject({{.call = Call::file_read, .kind = FaultKind::part, .arg = kDamagedRead + 3}});
  EXPECT_EQ(injector.files().read("f", 10).value(), "ab\n") << "without a digit it is a short read";
}

TEST_F(InjectorTest, DeathLeavesFilesOldNewOrTorn) {
  inject({{.call = Call::file_write, .kind = FaultKind::death, .arg = 2}});
  EXPECT_FALSE(injector.files().write("f", "abc"));
  EXPECT_EQ(files.files.read("f", 10).value(), "ab");
  injector.new_incarnation();
  inject({{.call = Call::file_rename, .kind = FaultKind::death, .arg = 1}});
  EXPECT_FALSE(injector.files().rename("f", "g"));
  EXPECT_TRUE(files.files.exists("g"));
}

TEST_F(InjectorTest, DeathAtAWaitIsSeenByTheFuture) {
  inject({{.call = Call::commit_wait, .kind = FaultKind::death}});
  EXPECT_EQ(code_of(stored({"a"})), code_of(FluxonErrc::store_closed));
  EXPECT_TRUE(injector.client_dead());
  EXPECT_EQ(reached(Mark::death_during_put), 1U);
}

// ---- All of the table.

class EveryFault : public InjectorTest {
 protected:
  // Each call once, whatever the ones before answered.
  void call_everything() {
    static_cast<void>(calls().wait_local_segments_ready());
    const auto plan = calls().local_fast_put_start(Names{"x", "y"}, kValueBytes, {});
    const auto copies = plan ? copies_of(*plan, 2, CopyDirection::device_to_host) : std::vector<Copy>();
    const auto abandoned = calls().local_fast_put_start(Names{"z", "zz"}, kValueBytes, {});
    const std::uintptr_t own = arena.map_private(1 << 13);
    static_cast<void>(gpu().host_register(own, 1 << 13, HostAccess::read_write));
    static_cast<void>(gpu().pointer_attributes(own));
    if (plan) static_cast<void>(gpu().copy_batch(CopyDirection::device_to_host, copies, stream));
    const auto event = gpu().event_create();
    if (event) {
      static_cast<void>(gpu().event_record(*event, stream));
      static_cast<void>(gpu().stream_wait(stream, *event));
      static_cast<void>(gpu().event_query(*event));
      static_cast<void>(gpu().event_synchronize(*event));
      static_cast<void>(gpu().event_destroy(*event));
    }
    static_cast<void>(gpu().stream_synchronize(stream));
    static_cast<void>(gpu().host_unregister(own));
    if (plan) {
      if (auto future = calls().local_fast_put_commit(*plan)) told = future->wait(kSecond);
    }
    if (abandoned) static_cast<void>(calls().put_abort(*abandoned));
    for (const bool transfer : {true, false}) {
      const auto start = calls().get_start(Names{"a", "b"}, true, {});
      if (!start) continue;
      if (!transfer) {
        static_cast<void>(calls().cancel_get_transfer(start->handle));
      } else if (const auto views = calls().get_transfer(start->handle, 2)) {
        static_cast<void>(calls().release_views(*views));
      }
    }
    pass(kSecond);
    static_cast<void>(calls().remove("a"));
    static_cast<void>(calls().put("p", std::as_bytes(std::span("bytes"))));
    static_cast<void>(calls().get("p"));
    FileBackend& port = injector.files();
    static_cast<void>(port.write("f", "text"));
    static_cast<void>(port.sync("f"));
    static_cast<void>(port.read("f", 100));
    static_cast<void>(port.rename("f", "g"));
    static_cast<void>(port.remove("g"));
  }
  Result<Codes> told = Codes{};
};

TEST_F(EveryFault, OfTheTableFiresOnceAndIsSeenByItsCode) {
  for (const LegalFault& legal : legal_faults()) {
    clock.reset();
    context.reset();
    owner.reset(owner_options());
    device.reset({.device_bytes = 1 << 20, .copy_time_max_ns = 3600 * kSecond});
    files.files.reset();
    injector.reset();
    tensor = device.allocate(kTensorBytes).value();
    stream = device.create_stream().value();
    inject({});
    ASSERT_TRUE(gpu().host_register(owner.segment().write_ptr, owner.segment().len, HostAccess::read_write));
    stored_and_routed({"a", "b", "e"});
    inject({{.call = legal.call, .kind = legal.kind, .code = legal.code, .arg = 2}});
    call_everything();
    const std::string cell =
        std::string(name_of(legal.call)) + " " + std::string(name_of(legal.kind)) + " " + std::to_string(legal.code);
    ASSERT_THAT(injector.fired(), SizeIs(1)) << cell;
    const bool seen = legal.kind != FaultKind::death && legal.code != 0;
    EXPECT_TRUE(!seen || injector.fired().front().code == legal.code) << cell;
    EXPECT_EQ(context.faults.fired[static_cast<std::size_t>(legal.call)][static_cast<std::size_t>(legal.kind)], 1U);
  }
}

}  // namespace
}  // namespace holdfast::sim
