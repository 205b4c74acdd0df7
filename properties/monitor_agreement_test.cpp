// The monitor on agreement: what a get did not find is withdrawn, exactly that, and an owner that has gone is believed
// nothing.
#include "holdfast/sim/lies.hpp"
#include "monitor_fixture.hpp"

namespace holdfast::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MonitorAgreementTest : public MonitorTest {
 protected:
  MonitorAgreementTest() {
    ingest();
    ingest_latent();
  }
  // As a probe asks.
  void probe(const Names& names) {
    Result<GetStart> start = fluxon().get_start(names, false, {});
    if (start) static_cast<void>(fluxon().cancel_get_transfer(start->handle));
  }
  void read_all() {
    GetStart start = look({k, v, latent});
    static_cast<void>(fluxon().cancel_get_transfer(start.handle));
  }
  void read_with_a_plan(const Names& names) {
    const GetStart start = look(names);
    const Result<PlanPtr> plan = fluxon().get_transfer(start.handle, names.size());
    ASSERT_TRUE(plan.has_value());
    ASSERT_TRUE(fluxon().release_views(*plan).has_value());
  }
  void withdraw(Claim claim) { monitor.on_withdrawal(claim, claim == Claim::kv ? locator : latent); }
};

TEST_F(MonitorAgreementTest, WhatIsAbsentIsWithdrawnAndNothingElse) {
  ASSERT_TRUE(owner.evict(v));
  monitor.begin(Operation::resume);
  read_all();
  probe(keys());
  withdraw(Claim::kv);
  probe({latent});
  monitor.end(true);
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(MonitorAgreementTest, ALatentWithdrawnWithItsBlobIsSeen) {
  ASSERT_TRUE(owner.evict(v));
  monitor.begin(Operation::resume);
  read_all();
  probe(keys());
  withdraw(Claim::kv);
  probe({latent});
  withdraw(Claim::latent);
  monitor.end(true);
  EXPECT_THAT(violated(), testing::Contains("index-agrees"));
  EXPECT_THAT(context.verdicts.violations().front().message, HasSubstr("the store has all of it"));
}

TEST_F(MonitorAgreementTest, AFailedProbeTakenForAbsenceIsSeen) {
  inject({{.call = Call::get_start, .kind = FaultKind::before, .code = code_of(FluxonErrc::network)}});
  monitor.begin(Operation::resume);
  probe(keys());
  withdraw(Claim::kv);
  monitor.end(true);
  EXPECT_THAT(violated(), testing::Contains("index-agrees"));
}

TEST_F(MonitorAgreementTest, WhatAProbeMissedAndIsStillClaimedIsSeen) {
  ASSERT_TRUE(owner.evict(v));
  monitor.begin(Operation::pump);
  probe(keys());
  monitor.end(true);
  EXPECT_THAT(violated(), ElementsAre("index-agrees"));
  EXPECT_THAT(message(), HasSubstr("still claimed at the end of pump"));
  EXPECT_EQ(reached(Mark::probed_gone), 1U);
}

TEST_F(MonitorAgreementTest, AChunkOfAnIncompleteReadThatIsNotProbedIsSeen) {
  ASSERT_TRUE(owner.evict(v));
  monitor.begin(Operation::resume);
  read_all();
  probe(keys());
  withdraw(Claim::kv);
  monitor.end(true);
  EXPECT_THAT(violated(), ElementsAre("index-agrees"));
  EXPECT_THAT(message(), HasSubstr("no get of its own"));
}

TEST_F(MonitorAgreementTest, AnIncompleteReadOfAFailedResumeNeedsNoProbe) {
  ASSERT_TRUE(owner.evict(v));
  monitor.begin(Operation::resume);
  read_all();
  monitor.end(false);
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(MonitorAgreementTest, AReadOfWhatIsNotClaimedIsSeen) {
  ASSERT_TRUE(owner.evict(latent));
  monitor.begin(Operation::pump);
  probe({latent});
  withdraw(Claim::latent);
  monitor.end(true);
  monitor.begin(Operation::resume);
  read_all();
  EXPECT_THAT(violated(), ElementsAre("index-agrees"));
  EXPECT_THAT(message(), HasSubstr("which is not claimed"));
}

TEST_F(MonitorAgreementTest, WhatIsReadAndDamagedIsWithdrawn) {
  ASSERT_TRUE(owner.damage(v, 0));
  monitor.begin(Operation::resume);
  read_with_a_plan(keys());
  withdraw(Claim::kv);
  monitor.end(true);
  EXPECT_THAT(violated(), IsEmpty());
  EXPECT_EQ(reached(Mark::corrupt_found), 1U);
  EXPECT_TRUE(monitor.read_damaged());
}

TEST_F(MonitorAgreementTest, WhatIsReadAndDamagedIsWithdrawnThoughItsOwnerHasGoneSince) {
  ASSERT_TRUE(owner.damage(v, 0));
  monitor.begin(Operation::resume);
  read_with_a_plan(keys());
  owner.restart();
  withdraw(Claim::kv);
  monitor.end(true);
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(MonitorAgreementTest, WhatIsReadAndDamagedAndStillClaimedIsSeen) {
  ASSERT_TRUE(owner.damage(latent, 0));
  monitor.begin(Operation::resume);
  read_with_a_plan({latent});
  read_with_a_plan(keys());
  monitor.end(true);
  EXPECT_THAT(violated(), ElementsAre("index-agrees"));
  EXPECT_THAT(message(), HasSubstr("latent of world 1 [0] is still claimed"));
  EXPECT_THAT(message(), HasSubstr("is not what was put"));
}

TEST_F(MonitorAgreementTest, ThroughAPlanThatCannotBeNothingIsRead) {
  constexpr std::uint64_t kWaysToBeForeign = 3;
  ASSERT_TRUE(owner.damage(v, 0));
  for (std::int32_t lie = static_cast<std::int32_t>(Lie::bad_magic);
       lie <= static_cast<std::int32_t>(Lie::address_past_the_end); ++lie) {
    for (std::uint64_t arg = 0; arg < kWaysToBeForeign; ++arg) {
      inject({{1, Call::get_transfer, 0, FaultKind::lie, lie, arg, false}});
      monitor.begin(Operation::resume);
      static_cast<void>(fluxon().release_views(read(keys())));
      monitor.end(true);
      EXPECT_FALSE(monitor.read_damaged()) << "lie " << lie << ", " << arg;
      EXPECT_THAT(violated(), IsEmpty()) << "lie " << lie << ", " << arg;
    }
  }
}

TEST_F(MonitorAgreementTest, WhatIsIntactIsNotWithdrawnWithWhatIsDamaged) {
  ASSERT_TRUE(owner.damage(latent, 0));
  monitor.begin(Operation::resume);
  read_with_a_plan({latent});
  withdraw(Claim::latent);
  withdraw(Claim::kv);
  monitor.end(true);
  EXPECT_THAT(violated(), testing::Contains("index-agrees"));
  EXPECT_THAT(context.verdicts.violations().front().message, HasSubstr("the store has all of it"));
}

TEST_F(MonitorAgreementTest, WhatIsDamagedIsNotWithdrawnByWhoCannotHaveReadIt) {
  ASSERT_TRUE(owner.damage(v, 0));
  monitor.begin(Operation::pump);
  withdraw(Claim::kv);
  monitor.end(true);
  EXPECT_THAT(violated(), testing::Contains("index-agrees"));
  EXPECT_FALSE(monitor.read_damaged());
}

TEST_F(MonitorAgreementTest, AGetThatIsCancelledHasReadNothing) {
  ASSERT_TRUE(owner.damage(v, 0));
  monitor.begin(Operation::resume);
  probe(keys());
  monitor.end(true);
  EXPECT_THAT(violated(), IsEmpty());
  EXPECT_FALSE(monitor.read_damaged());
}

TEST_F(MonitorAgreementTest, AClaimOfAnOwnerThatHasGoneIsNotReliedOn) {
  restart_owner_and_learn();
  monitor.begin_ingest(source());
  monitor.end(true);
  monitor.relied_on(7, Claim::kv);
  EXPECT_THAT(violated(), ElementsAre("index-agrees"));
  EXPECT_THAT(message(), HasSubstr("an owner that has gone"));
}

TEST_F(MonitorAgreementTest, AnOwnerWhoseRegistrationIsStuckCannotBeAsked) {
  restart_owner_and_learn();
  inject({{.call = Call::host_unregister, .kind = FaultKind::before, .code = code_of(CudaErrc::invalid_value)}});
  ASSERT_FALSE(cuda().host_unregister(owner.segment().write_ptr));
  monitor.begin_ingest(source());
  monitor.end(true);
  monitor.relied_on(7, Claim::kv);
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(MonitorAgreementTest, AClaimOfAnEarlierClientIsReliedOnOnceItWasFound) {
  monitor.new_incarnation();
  monitor.begin(Operation::restore);
  claim_kv();
  monitor.end(true);
  ASSERT_TRUE(fluxon().wait_local_segments_ready());
  const auto ingest_again = [&](bool probed) {
    monitor.begin_ingest(source());
    if (probed) probe(keys());
    monitor.end(true);
    monitor.relied_on(7, Claim::kv);
  };
  ingest_again(true);
  EXPECT_THAT(violated(), IsEmpty());
  EXPECT_EQ(reached(Mark::hint_confirmed), 1U);
  restart_owner_and_learn();
  ingest_again(false);
  EXPECT_THAT(violated(), ElementsAre("index-agrees"));
}

TEST_F(MonitorAgreementTest, ClaimsOfWhatIsNotStoredAreNamed) {
  EXPECT_THAT(monitor.claims_not_stored(), IsEmpty());
  ASSERT_TRUE(owner.evict(k));
  EXPECT_THAT(monitor.claims_not_stored(), ElementsAre("kv of world 1 [0]"));
}

}  // namespace
}  // namespace holdfast::sim
