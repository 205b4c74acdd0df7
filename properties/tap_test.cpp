// The tap: what really happened below, whatever the caller believes.
#include "layer_chain.hpp"

namespace holdfast::sim {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Calls go in below the monitor, which would tell as well.
class TapTest : public LayerChain {
 protected:
  PlanPtr started(const Names& keys) { return tap.fluxon().local_fast_put_start(keys, kValueBytes, {}).value(); }
  void submit(PlanPtr plan, std::size_t count) {
    ASSERT_TRUE(tap.cuda().copy_batch(CopyDirection::device_to_host,
                                      copies_of(plan, count, CopyDirection::device_to_host), stream));
  }
};

TEST_F(TapTest, AbortUnderACopyInFlightNamesBoth) {
  const PlanPtr plan = started({"a", "b"});
  submit(plan, 2);
  ASSERT_TRUE(tap.fluxon().put_abort(plan));
  EXPECT_THAT(violated(), Each("abort-after-sync"));
  EXPECT_EQ(violated().size(), 2U);
  EXPECT_THAT(message(), AllOf(HasSubstr("copy 0 of batch 1"), HasSubstr("put_abort of the owner's plan 1"),
                               HasSubstr("submitted at 0 ns")));
}

TEST_F(TapTest, AbortAfterTheWaitIsFine) {
  const PlanPtr plan = started({"a"});
  submit(plan, 1);
  ASSERT_TRUE(tap.cuda().stream_synchronize(stream));
  ASSERT_TRUE(tap.fluxon().put_abort(plan));
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(TapTest, ReleaseUnderACopyFromTheViewsIsSeenThroughEitherMapping) {
  put_and_route({"a"});
  const Segment segment = owner.segment();
  for (const bool translated : {false, true}) {
    const PlanPtr plan =
        tap.fluxon().get_transfer(tap.fluxon().get_start(Names{"a"}, true, {}).value().handle, 1).value();
    Copy copy = copies_of(plan, 1, CopyDirection::host_to_device).front();
    if (translated) copy.src = segment.write_ptr + (copy.src - segment.read_ptr);
    ASSERT_TRUE(tap.cuda().copy_batch(CopyDirection::host_to_device, std::span(&copy, 1), stream));
    ASSERT_TRUE(tap.fluxon().release_views(plan));
    EXPECT_EQ(violated().size(), translated ? 2U : 1U);
    ASSERT_TRUE(tap.cuda().stream_synchronize(stream));
    pass(kSecond);
  }
}

TEST_F(TapTest, AValueThatAnotherPlanPinsKeepsItsBytes) {
  put_and_route({"a"});
  const auto open = [&] {
    return tap.fluxon().get_transfer(tap.fluxon().get_start(Names{"a"}, true, {}).value().handle, 1).value();
  };
  const PlanPtr one = open();
  const PlanPtr other = open();
  const std::vector<Copy> copies = copies_of(one, 1, CopyDirection::host_to_device);
  ASSERT_TRUE(tap.cuda().copy_batch(CopyDirection::host_to_device, copies, stream));
  ASSERT_TRUE(tap.fluxon().release_views(other));
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(TapTest, AWriteIntoAFreeSlotIsFoundWhenItIsHandedOutAgain) {
  const PlanPtr plan = started({"a"});
  const std::uintptr_t slot = addresses_of(plan, 1).front();
  ASSERT_TRUE(tap.fluxon().put_abort(plan));
  bytes_at(slot)[3] = 0x11;
  started({"b"});
  EXPECT_THAT(violated(), ElementsAre("abort-after-sync"));
  EXPECT_THAT(message(), HasSubstr("local_fast_put_start"));
}

TEST_F(TapTest, AWriteBehindAValueIsFoundAtItsCommit) {
  const PlanPtr plan = started({"a"});
  bytes_at(addresses_of(plan, 1).front())[kValueBytes] ^= 0x11;
  ASSERT_TRUE(tap.fluxon().local_fast_put_commit(plan));
  EXPECT_THAT(violated(), ElementsAre("validated-batch"));
}

TEST_F(TapTest, OneKeyTwiceBreaksValidation) {
  EXPECT_FALSE(tap.fluxon().local_fast_put_start(Names{"a", "a"}, kValueBytes, {}));
  EXPECT_THAT(violated(), ElementsAre("validated-batch"));
}

TEST_F(TapTest, TheWrongKindOfEndBreaksOneTerminal) {
  ASSERT_TRUE(tap.fluxon().release_views(started({"a"})));
  put_and_route({"b"});
  ASSERT_TRUE(tap.fluxon().put_abort(
      tap.fluxon().get_transfer(tap.fluxon().get_start(Names{"b"}, true, {}).value().handle, 1).value()));
  EXPECT_THAT(violated(), ElementsAre("one-terminal", "one-terminal"));
}

TEST_F(TapTest, UnregisteredHostMemoryBreaksValidation) {
  std::vector<std::byte> own(64);
  const Copy copy{reinterpret_cast<std::uintptr_t>(own.data()), tensor, own.size()};
  ASSERT_TRUE(tap.cuda().copy_batch(CopyDirection::device_to_host, std::span(&copy, 1), stream));
  EXPECT_THAT(violated(), ElementsAre("validated-batch"));
}

TEST_F(TapTest, UnregisteringUnderACopyInFlightIsSeen) {
  const PlanPtr plan = started({"a"});
  submit(plan, 1);
  ASSERT_TRUE(tap.cuda().host_unregister(owner.segment().write_ptr));
  EXPECT_THAT(violated(), ElementsAre("abort-after-sync"));
}

TEST_F(TapTest, MessagesHoldNoAddress) {
  const PlanPtr plan = started({"a"});
  submit(plan, 1);
  ASSERT_TRUE(tap.fluxon().put_abort(plan));
  EXPECT_THAT(message(), Not(HasSubstr("0x7f")));
}

TEST_F(TapTest, StoredDigestIsThatOfTheReadableBytes) {
  const PlanPtr plan = started({"a"});
  submit(plan, 1);
  EXPECT_FALSE(tap.stored_digest("a"));
  ASSERT_TRUE(tap.cuda().stream_synchronize(stream));
  ASSERT_TRUE(tap.fluxon().local_fast_put_commit(plan));
  EXPECT_EQ(tap.stored_digest("a"), tensor_digest(0));
  EXPECT_FALSE(tap.stored_digest("b"));
}

TEST_F(TapTest, WhatIsDamagedIsTold) {
  put_and_route({"a", "b"});
  EXPECT_FALSE(tap.is_damaged("a"));
  ASSERT_TRUE(owner.damage("a", 0));
  EXPECT_TRUE(tap.is_damaged("a"));
  EXPECT_FALSE(tap.is_damaged("b"));
  EXPECT_FALSE(tap.is_damaged("c"));
  EXPECT_NE(tap.stored_digest("a"), tensor_digest(0));
}

TEST_F(TapTest, AtRestTheBaselineHolds) {
  put_and_route({"a", "b"});
  tap.check_baseline();
  EXPECT_THAT(violated(), IsEmpty());
  EXPECT_EQ(checks(Invariant::quiescent_baseline), 1U);
}

TEST_F(TapTest, TheBaselineNamesWhatIsLeft) {
  put_and_route({"a"});
  static_cast<void>(read({"a"}));  // a read plan with its holder
  look({"a"});                     // a handle with another
  const PlanPtr plan = started({"b"});
  submit(plan, 1);
  ASSERT_TRUE(tap.cuda().event_create());
  tap.check_baseline();
  EXPECT_THAT(violated(), Each("quiescent-baseline"));
  std::string all;
  for (const Violation& violation : context.verdicts.violations()) all += violation.message + "\n";
  EXPECT_THAT(all,
              AllOf(HasSubstr("2 live plans"), HasSubstr("1 live handles"), HasSubstr("2 holders"), HasSubstr("a (2)"),
                    HasSubstr("1 prepared slots"), HasSubstr("1 copies in flight"), HasSubstr("1 events")));
}

TEST_F(TapTest, TheBaselineFindsDamageInFreeSlots) {
  const PlanPtr plan = started({"a"});
  const std::uintptr_t slot = addresses_of(plan, 1).front();
  ASSERT_TRUE(tap.fluxon().put_abort(plan));
  bytes_at(slot)[0] = 0x11;
  tap.check_baseline();
  EXPECT_THAT(violated(), ElementsAre("abort-after-sync"));
}

}  // namespace
}  // namespace holdfast::sim
