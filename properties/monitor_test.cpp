// The monitor: good histories pass, and each promise about calls is seen broken, by what the caller alone can know.
#include "monitor_fixture.hpp"

namespace holdfast::sim {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST_F(MonitorTest, AGoodHistoryPassesAndEachCheckIsCounted) {
  ingest();
  ingest_latent();
  monitor.begin(Operation::resume);
  const PlanPtr plan = read(keys());
  submit(copies_of(plan, 2, kIn), kIn);
  ASSERT_TRUE(cuda().stream_synchronize(stream));
  ASSERT_TRUE(fluxon().release_views(plan));
  monitor.end(true);
  monitor.begin(Operation::evict);
  monitor.on_withdrawal(Claim::kv, locator);
  ASSERT_TRUE(fluxon().remove(k));
  ASSERT_TRUE(fluxon().remove(v));
  monitor.end(true);
  monitor.check_all_ended();
  pass(kSecond);  // the holders drop
  tap.check_baseline();
  EXPECT_THAT(violated(), IsEmpty()) << message();
  for (const Invariant invariant :
       {Invariant::ready_after_commit, Invariant::sync_before_commit, Invariant::abort_after_sync,
        Invariant::one_terminal, Invariant::validated_batch, Invariant::pinned_stays, Invariant::quiescent_baseline}) {
    EXPECT_GT(checks(invariant), 0U) << name_of(invariant);
  }
  EXPECT_EQ(monitor.claims(7), 2U);
  EXPECT_EQ(monitor.identity_of(locator), 7U);
}

// ---- sync-before-commit

TEST_F(MonitorTest, CommitWithoutAWaitIsSeen) {
  const PlanPtr plan = start({"a"});
  ASSERT_TRUE(copy_out(plan, 1));
  commit(plan);
  EXPECT_THAT(violated(), ElementsAre("sync-before-commit"));
  EXPECT_THAT(message(), AllOf(HasSubstr("put plan 1"), HasSubstr("batch 1"), HasSubstr("no successful wait")));
}

TEST_F(MonitorTest, ProgressOfTheDeviceIsNoExcuse) {
  inject({}, {{.call = Call::copy_batch, .kind = ChoiceKind::copy_at_submit}});
  const PlanPtr plan = start({"a"});
  ASSERT_TRUE(copy_out(plan, 1));
  ASSERT_EQ(device.in_flight_count(), 0U);
  commit(plan);
  EXPECT_THAT(violated(), ElementsAre("sync-before-commit"));
}

TEST_F(MonitorTest, CommitAfterAFailedWaitIsSeenEvenIfALaterOneSucceeded) {
  inject({{.call = Call::stream_synchronize, .kind = FaultKind::before, .code = 719}});
  const PlanPtr plan = start({"a"});
  ASSERT_TRUE(copy_out(plan, 1));
  ASSERT_FALSE(cuda().stream_synchronize(stream));
  ASSERT_TRUE(cuda().stream_synchronize(stream));
  commit(plan);
  EXPECT_THAT(violated(), ElementsAre("sync-before-commit"));
  EXPECT_THAT(message(), HasSubstr("stream_synchronize failed"));
}

TEST_F(MonitorTest, CommitAfterAFailedSubmissionIsSeen) {
  inject({{.call = Call::copy_batch, .kind = FaultKind::part, .code = 719}});
  const PlanPtr plan = start({"a", "b"});
  ASSERT_FALSE(copy_out(plan, 2));
  ASSERT_TRUE(cuda().stream_synchronize(stream));
  commit(plan);
  EXPECT_THAT(violated(), ElementsAre("sync-before-commit"));
}

TEST_F(MonitorTest, AWaitOnAnotherStreamCoversNothing) {
  const StreamRef other = device.create_stream().value();
  const PlanPtr plan = start({"a"});
  ASSERT_TRUE(copy_out(plan, 1));
  const PlanPtr elsewhere = start({"b"});
  ASSERT_TRUE(cuda().copy_batch(kOut, copies_of(elsewhere, 1, kOut), other));
  ASSERT_TRUE(cuda().stream_synchronize(other));
  commit(elsewhere);
  EXPECT_THAT(violated(), IsEmpty());
  commit(plan);
  EXPECT_THAT(violated(), ElementsAre("sync-before-commit"));
}

TEST_F(MonitorTest, AnEventCoversWhatWasSubmittedBeforeItsRecordOnly) {
  const EventRef event = cuda().event_create().value();
  const PlanPtr first = start({"a"});
  ASSERT_TRUE(copy_out(first, 1));
  ASSERT_TRUE(cuda().event_record(event, stream));
  const PlanPtr second = start({"b"});
  ASSERT_TRUE(copy_out(second, 1));
  ASSERT_TRUE(cuda().event_synchronize(event));
  commit(first);
  EXPECT_THAT(violated(), IsEmpty());
  commit(second);
  EXPECT_THAT(violated(), ElementsAre("sync-before-commit"));
}

TEST_F(MonitorTest, AQueryThatSaidDoneIsAWaitAndOneThatSaidNotReadyIsNone) {
  const EventRef event = cuda().event_create().value();
  for (const bool ready : {true, false}) {
    const PlanPtr plan = start({"a"});
    ASSERT_TRUE(copy_out(plan, 1));
    ASSERT_TRUE(cuda().event_record(event, stream));
    if (ready) {  // behind the caller's back
      ASSERT_TRUE(device.event_synchronize(event));
    }
    EXPECT_EQ(cuda().event_query(event).value(), ready);
    ASSERT_EQ(commit(plan).wait(0).value(), Codes{0});
    EXPECT_EQ(violated(), ready ? std::vector<std::string>() : std::vector<std::string>{"sync-before-commit"});
    pass(kSecond);
    ASSERT_TRUE(fluxon().remove("a"));
  }
}

TEST_F(MonitorTest, AWaitReachesThroughTheEventsThatItsStreamWaitedFor) {
  const StreamRef other = device.create_stream().value();
  const EventRef event = cuda().event_create().value();
  const PlanPtr plan = start({"a"});
  ASSERT_TRUE(copy_out(plan, 1));
  ASSERT_TRUE(cuda().event_record(event, stream));
  ASSERT_TRUE(cuda().stream_wait(other, event));
  ASSERT_TRUE(cuda().stream_synchronize(other));
  commit(plan);
  EXPECT_THAT(violated(), IsEmpty());
}

// ---- abort-after-sync

TEST_F(MonitorTest, AbortAndReleaseUnderCopiesAreSeen) {
  const PlanPtr plan = start({"a"});
  ASSERT_TRUE(copy_out(plan, 1));
  ASSERT_TRUE(fluxon().put_abort(plan));
  EXPECT_THAT(violated(), Contains("abort-after-sync"));
  EXPECT_THAT(violated(), Not(Contains("sync-before-commit")));
  EXPECT_THAT(message(), AllOf(HasSubstr("put plan 1"), HasSubstr("no successful wait"))) << "the tap would tell, too";
  context.verdicts.reset();
  ASSERT_TRUE(cuda().stream_synchronize(stream));
  put_and_route({"b"});
  const PlanPtr views = read({"b"});
  submit(copies_of(views, 1, kIn), kIn);
  ASSERT_TRUE(fluxon().release_views(views));
  EXPECT_THAT(context.verdicts.violations(),
              Contains(Field(&Violation::message, AllOf(HasSubstr("read plan"), HasSubstr("no successful wait")))));
}

TEST_F(MonitorTest, ALaterSuccessfulWaitPermitsTheAbort) {
  inject({{.call = Call::stream_synchronize, .kind = FaultKind::before, .code = 719}});
  const PlanPtr plan = start({"a"});
  ASSERT_TRUE(copy_out(plan, 1));
  ASSERT_FALSE(cuda().stream_synchronize(stream));
  ASSERT_TRUE(cuda().stream_synchronize(stream));
  ASSERT_TRUE(fluxon().put_abort(plan));
  EXPECT_THAT(violated(), IsEmpty());
  EXPECT_EQ(reached(Mark::abort_after_later_wait), 1U);
}

TEST_F(MonitorTest, ATearDownPermitsTheAbortButNeverTheCommit) {
  for (const bool abort : {true, false}) {
    const PlanPtr plan = start({"a"});
    ASSERT_TRUE(copy_out(plan, 1));
    device.client_died();
    monitor.device_torn_down();
    if (abort) {
      ASSERT_TRUE(fluxon().put_abort(plan));
      EXPECT_THAT(violated(), IsEmpty());
      learn_and_register();
    } else {
      commit(plan);
      EXPECT_THAT(violated(), ElementsAre("sync-before-commit"));
    }
  }
}

TEST_F(MonitorTest, UnregisteringUnderACopyIsSeen) {
  const PlanPtr plan = start({"a"});
  ASSERT_TRUE(copy_out(plan, 1));
  ASSERT_TRUE(cuda().host_unregister(owner.segment().write_ptr));
  EXPECT_THAT(violated(), Contains("abort-after-sync"));
  EXPECT_THAT(message(), AllOf(HasSubstr("batch 1"), HasSubstr("registration 1")));
}

TEST_F(MonitorTest, UnregisteringUnderACopyAnywhereInTheMappingIsSeen) {
  start({"a"});
  const PlanPtr plan = start({"b"});  // its slot lies behind the first
  ASSERT_GE(addresses_of(plan, 1).front(), owner.segment().write_ptr + kSlotAlignment);
  ASSERT_TRUE(copy_out(plan, 1));
  ASSERT_TRUE(cuda().host_unregister(owner.segment().write_ptr));
  EXPECT_THAT(violated(), Contains("abort-after-sync"));
  EXPECT_THAT(message(), AllOf(HasSubstr("batch 1"), HasSubstr("registration 1")));
}

TEST_F(MonitorTest, UnregisteringTheOtherMappingIsFine) {
  const PlanPtr plan = start({"a"});
  ASSERT_TRUE(copy_out(plan, 1));
  ASSERT_TRUE(cuda().host_unregister(owner.segment().read_ptr));
  EXPECT_THAT(violated(), IsEmpty());
}

// ---- one-terminal

TEST_F(MonitorTest, ASecondEndOfAnyKindIsSeen) {
  const PlanPtr aborted = start({"a"});
  ASSERT_TRUE(fluxon().put_abort(aborted));
  static_cast<void>(fluxon().put_abort(aborted));
  EXPECT_THAT(violated(), ElementsAre("one-terminal"));
  EXPECT_THAT(message(), HasSubstr("put plan 1 ended by put_abort"));
  put_and_route({"b"});
  const GetHandle handle = look({"b"}).handle;
  ASSERT_TRUE(fluxon().cancel_get_transfer(handle));
  static_cast<void>(fluxon().cancel_get_transfer(handle));
  static_cast<void>(fluxon().get_transfer(handle, 1));
  EXPECT_EQ(violated().size(), 3U);
}

TEST_F(MonitorTest, AnEndThatFailedIsAnEnd) {
  inject({{.call = Call::local_fast_put_commit, .kind = FaultKind::before, .code = 1001}});
  const PlanPtr plan = start({"a"});
  ASSERT_FALSE(fluxon().local_fast_put_commit(plan));
  EXPECT_THAT(violated(), IsEmpty());
  static_cast<void>(fluxon().put_abort(plan));
  EXPECT_THAT(violated(), ElementsAre("one-terminal"));
}

TEST_F(MonitorTest, AbortAfterCommitIsSeen) {
  const PlanPtr plan = start({"a"});
  auto future = commit(plan);
  static_cast<void>(fluxon().put_abort(plan));
  EXPECT_THAT(violated(), ElementsAre("one-terminal"));
}

TEST_F(MonitorTest, TheWrongKindOfEndIsSeen) {
  put_and_route({"a"});
  static_cast<void>(fluxon().put_abort(read({"a"})));
  EXPECT_THAT(violated(), Contains("one-terminal"));
  EXPECT_THAT(message(), HasSubstr("wrong kind of call for read plan"));
}

TEST_F(MonitorTest, ARefusedTransferLeavesTheHandleToBeCancelled) {
  put_and_route({"a", "b"});
  const GetHandle handle = look({"a", "b"}).handle;
  ASSERT_EQ(code_of(fluxon().get_transfer(handle, 1)), 1001);
  ASSERT_TRUE(fluxon().cancel_get_transfer(handle));
  EXPECT_THAT(violated(), IsEmpty());
  EXPECT_EQ(reached(Mark::transfer_refused), 1U);
}

TEST_F(MonitorTest, AFailedTransferConsumesTheHandle) {
  put_and_route({"a"});
  inject({{.call = Call::get_transfer, .kind = FaultKind::before, .code = 7000}});
  const GetHandle handle = look({"a"}).handle;
  ASSERT_EQ(code_of(fluxon().get_transfer(handle, 1)), 7000);
  static_cast<void>(fluxon().cancel_get_transfer(handle));
  EXPECT_THAT(violated(), ElementsAre("one-terminal"));
}

TEST_F(MonitorTest, APlanOfAnOlderGenerationMustNotBeUsed) {
  const PlanPtr plan = start({"a"});
  restart_owner_and_learn();
  static_cast<void>(fluxon().put_abort(plan));
  EXPECT_THAT(violated(), ElementsAre("one-terminal"));
  EXPECT_THAT(message(), HasSubstr("older generation"));
}

TEST_F(MonitorTest, WhoHasNotHeardOfTheRestartMayEndHisPlan) {
  const PlanPtr plan = start({"a"});
  owner.restart();
  static_cast<void>(fluxon().put_abort(plan));
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(MonitorTest, AStalePlanNeedsNoEnd) {
  start({"a"});
  restart_owner_and_learn();
  monitor.check_all_ended();
  EXPECT_THAT(violated(), IsEmpty());
  EXPECT_EQ(reached(Mark::stale_not_used), 1U);
}

TEST_F(MonitorTest, WhatNeverEndedIsNamed) {
  put_and_route({"a"});
  start({"b"});
  look({"a"});
  monitor.check_all_ended();
  EXPECT_THAT(violated(), ElementsAre("one-terminal", "one-terminal"));
  EXPECT_THAT(message(), HasSubstr("never ended"));
}

// ---- validated-batch

TEST_F(MonitorTest, CopiesOutsideATensorOrWithoutLengthAreSeen) {
  const PlanPtr plan = start({"a"});
  const Copy good = copies_of(plan, 1, kOut).front();
  submit({{good.dst, tensor + kTensorBytes - 8, 16}}, kOut);
  EXPECT_THAT(message(), HasSubstr("no declared tensor"));
  context.verdicts.reset();
  submit({{good.dst, good.src, 0}}, kOut);
  EXPECT_THAT(message(), HasSubstr("no length"));
  context.verdicts.reset();
  submit({}, kOut);
  EXPECT_THAT(violated(), ElementsAre("validated-batch"));
}

TEST_F(MonitorTest, CopiesMustStayInsideOneSlotOfALivePlan) {
  const PlanPtr plan = start({"a"});
  const Copy good = copies_of(plan, 1, kOut).front();
  submit({{good.dst, good.src, kValueBytes + 1}}, kOut);
  EXPECT_THAT(message(), HasSubstr("exceed the value's 256 bytes"));
  context.verdicts.reset();
  submit({{good.dst + 10 * kSlotAlignment, good.src, 8}}, kOut);
  EXPECT_THAT(message(), HasSubstr("no slot of a live plan"));
  context.verdicts.reset();
  ASSERT_TRUE(cuda().stream_synchronize(stream));
  ASSERT_TRUE(fluxon().put_abort(plan));
  context.verdicts.reset();
  submit({good}, kOut);
  EXPECT_THAT(message(), HasSubstr("no slot of a live plan"));
}

TEST_F(MonitorTest, ThePlanMustBeOfTheRightKind) {
  const PlanPtr plan = start({"a"});
  const Copy out = copies_of(plan, 1, kOut).front();
  submit({{out.src, out.dst, out.bytes}}, kIn);
  EXPECT_THAT(violated(), ElementsAre("validated-batch"));
  EXPECT_THAT(message(), HasSubstr("of the other kind"));
}

TEST_F(MonitorTest, ReadingPastTheRecordedLengthIsSeen) {
  put_and_route({"a"});
  const PlanPtr plan = read({"a"});
  submit(copies_of(plan, 1, kIn, 2 * kValueBytes), kIn);
  EXPECT_THAT(violated(), ElementsAre("validated-batch"));
  EXPECT_THAT(message(), HasSubstr("exceed the value's 256 bytes"));
}

TEST_F(MonitorTest, APartOfAValueMayBeRead) {
  put_and_route({"a"});
  const PlanPtr plan = read({"a"});
  Copy copy = copies_of(plan, 1, kIn).front();
  copy.src += 100;
  copy.bytes = 56;
  submit({copy}, kIn);
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(MonitorTest, OverlappingDestinationsAreSeenInAnyOrder) {
  put_and_route({"a", "b", "c"});
  const PlanPtr plan = read({"a", "b", "c"});
  std::vector<Copy> copies = copies_of(plan, 3, kIn);
  std::swap(copies[0].dst, copies[2].dst);
  submit(copies, kIn);
  EXPECT_THAT(violated(), IsEmpty());
  copies[0].dst = copies[1].dst + 8;
  submit(copies, kIn);
  EXPECT_THAT(message(), HasSubstr("overlaps"));
}

TEST_F(MonitorTest, MemoryMustBeRegisteredInTheLiveGeneration) {
  const PlanPtr plan = start({"a"});
  const std::vector<Copy> copies = copies_of(plan, 1, kOut);
  ASSERT_TRUE(cuda().host_unregister(owner.segment().write_ptr));
  submit(copies, kOut);
  EXPECT_THAT(message(), HasSubstr("no registration"));
  context.verdicts.reset();
  ASSERT_TRUE(cuda().stream_synchronize(stream));
  restart_owner_and_learn();
  ASSERT_TRUE(cuda().host_register(copies.front().dst, kSlotAlignment, HostAccess::read_write));
  submit(copies, kOut);
  EXPECT_THAT(message(), HasSubstr("older generation"));
}

TEST_F(MonitorTest, ARegistrationOfAnOlderMappingAtTheSameAddressIsSeen) {
  come_round();
  const PlanPtr plan = start({"a"});
  ASSERT_TRUE(copy_out(plan, 1));
  EXPECT_THAT(violated(), ElementsAre("validated-batch"));
  EXPECT_THAT(message(), HasSubstr("older mapping at the same address"));
}

TEST_F(MonitorTest, WhatSomebodyElseRegisteredCountsOnceBothEndsAreKnown) {
  ASSERT_TRUE(cuda().host_unregister(owner.segment().write_ptr));
  const Segment segment = owner.segment();
  ASSERT_TRUE(device.host_register(segment.write_ptr, segment.len, HostAccess::read_write));
  ASSERT_EQ(code_of(cuda().host_register(segment.write_ptr, segment.len, HostAccess::read_write)), 712);
  const PlanPtr plan = start({"a"});
  ASSERT_TRUE(cuda().pointer_attributes(segment.write_ptr));
  ASSERT_TRUE(copy_out(plan, 1));
  EXPECT_THAT(violated(), ElementsAre("validated-batch"));
  context.verdicts.reset();
  ASSERT_TRUE(cuda().pointer_attributes(segment.write_ptr + segment.len - 1));
  ASSERT_TRUE(copy_out(plan, 1));
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(MonitorTest, WhatSomebodyElseRegisteredCountsForTheMappingThatWasRefusedLast) {
  const Segment segment = owner.segment();
  const auto refused = [&] {
    return code_of(cuda().host_register(segment.write_ptr, segment.len, HostAccess::read_write)) == 712;
  };
  ASSERT_TRUE(cuda().host_unregister(segment.write_ptr));
  ASSERT_TRUE(device.host_register(segment.write_ptr, segment.len, HostAccess::read_write));
  ASSERT_TRUE(refused());
  ASSERT_TRUE(cuda().pointer_attributes(segment.write_ptr));
  come_round();
  ASSERT_TRUE(refused());
  // The first end was asked of the older mapping only.
  ASSERT_TRUE(cuda().pointer_attributes(segment.write_ptr + segment.len - 1));
  const PlanPtr plan = start({"a"});
  ASSERT_TRUE(copy_out(plan, 1));
  EXPECT_THAT(violated(), ElementsAre("validated-batch"));
  EXPECT_THAT(message(), HasSubstr("no registration"));
  context.verdicts.reset();
  ASSERT_TRUE(cuda().pointer_attributes(segment.write_ptr));
  ASSERT_TRUE(copy_out(plan, 1));
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(MonitorTest, AnOlderRegistrationOfTheCallersOwnIsNoProof) {
  const Segment segment = owner.segment();
  come_round();
  ASSERT_EQ(code_of(cuda().host_register(segment.write_ptr, segment.len, HostAccess::read_write)), 712);
  ASSERT_TRUE(cuda().pointer_attributes(segment.write_ptr));
  ASSERT_TRUE(cuda().pointer_attributes(segment.write_ptr + segment.len - 1));
  const PlanPtr plan = start({"a"});
  ASSERT_TRUE(copy_out(plan, 1));
  EXPECT_THAT(violated(), ElementsAre("validated-batch"));
  EXPECT_THAT(message(), HasSubstr("older mapping at the same address"));
}

TEST_F(MonitorTest, ViewsMayBeReachedThroughTheWriteMapping) {
  put_and_route({"a"});
  const PlanPtr plan = read({"a"});
  std::vector<Copy> copies = copies_of(plan, 1, kIn);
  copies[0].src = copies[0].src - owner.segment().read_ptr + owner.segment().write_ptr;
  submit(copies, kIn);
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(MonitorTest, WritingToAReadOnlyRegistrationIsSeen) {
  const PlanPtr plan = start({"a"});
  std::vector<Copy> copies = copies_of(plan, 1, kOut);
  copies[0].dst = copies[0].dst - owner.segment().write_ptr + owner.segment().read_ptr;
  submit(copies, kOut);
  EXPECT_THAT(message(), HasSubstr("read-only"));
}

TEST_F(MonitorTest, OwnRegisteredMemoryIsNoPlans) {
  const std::uintptr_t own = arena.map_private(1 << 13);
  ASSERT_TRUE(cuda().host_register(own, 1 << 13, HostAccess::read_write));
  submit({{own, tensor, 1 << 13}}, kOut);
  EXPECT_THAT(violated(), IsEmpty());
  submit({{own + 8, tensor, 1 << 13}}, kOut);
  EXPECT_THAT(violated(), ElementsAre("validated-batch"));
}

TEST_F(MonitorTest, ACopyIntoAPlanPastItsTimeoutIsSeen) {
  const PlanPtr plan = start({"a"});
  const std::vector<Copy> copies = copies_of(plan, 1, kOut);
  pass(kPlanTimeout);
  submit(copies, kOut);
  EXPECT_THAT(message(), HasSubstr("past the plan time-out"));
}

// ---- The log.

class History : public LayerChain {
 public:
  explicit History(std::uint64_t arena_shift_pages) : LayerChain(arena_shift_pages) {}
  void TestBody() override {}
  std::uint64_t run(bool keep_text, std::uint64_t bytes) {
    context.log.keep_text(keep_text);
    inject({{.call = Call::commit_wait, .nth = 1, .kind = FaultKind::part, .code = -103, .arg = 3}},
           {{.call = Call::copy_batch, .kind = ChoiceKind::copy_split, .arg = 9}});
    static_cast<void>(put({"a", "b"}, bytes));
    static_cast<void>(put({"c", "d"}, bytes));
    static_cast<void>(fluxon().get_start(Names{"a", "x"}, true, {}));
    static_cast<void>(monitor.files().write("f", "text"));
    for (const std::string& line : context.log.lines()) EXPECT_THAT(line, Not(HasSubstr("0x7f")));
    return context.log.hash();
  }
};

std::uint64_t log_of_a_history(std::uint64_t arena_shift_pages, bool keep_text, std::uint64_t value_bytes) {
  return History(arena_shift_pages).run(keep_text, value_bytes);
}

TEST(MonitorLog, IsTheSameWhereverTheMemoryLies) {
  const std::uint64_t hash = log_of_a_history(0, false, 256);
  EXPECT_EQ(hash, log_of_a_history(3, true, 256));
  EXPECT_NE(hash, log_of_a_history(0, false, 512));
}

}  // namespace
}  // namespace holdfast::sim
