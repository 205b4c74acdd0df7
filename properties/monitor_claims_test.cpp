// The monitor on claims: what may be ready, what may be withdrawn, and what must stay.
#include "monitor_fixture.hpp"

namespace holdfast::sim {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using MonitorClaimsTest = MonitorTest;

// ---- ready-after-commit

TEST_F(MonitorClaimsTest, AClaimBeforeItsCodesIsSeen) {
  monitor.begin_ingest(source());
  const PlanPtr plan = start(keys());
  ASSERT_TRUE(copy_out(plan, 2));
  ASSERT_TRUE(cuda().stream_synchronize(stream));
  auto future = commit(plan);
  claim_kv();
  EXPECT_THAT(violated(), ElementsAre("ready-after-commit"));
  EXPECT_THAT(message(), AllOf(HasSubstr("world 1 [0]"), HasSubstr(":L0:k")));
}

TEST_F(MonitorClaimsTest, AClaimDespiteOneBadCodeIsSeen) {
  inject({{.call = Call::commit_wait, .kind = FaultKind::part, .code = -103, .arg = 1}});
  monitor.begin_ingest(source());
  ASSERT_THAT(put(keys()).value(), Contains(-103));
  claim_kv();
  EXPECT_THAT(violated(), ElementsAre("ready-after-commit"));
  EXPECT_TRUE(monitor.unsettled(7));
}

TEST_F(MonitorClaimsTest, EveryLayerOfAClaimNeedsItsCodes) {
  const std::string k1 = locator + ":L1:k";
  const std::string v1 = locator + ":L1:v";
  const Names of_two_layers{k, v, k1, v1};
  for (const std::size_t missing : {0U, 1U, 2U, 3U}) {
    Names stored = of_two_layers;
    stored.erase(stored.begin() + static_cast<std::ptrdiff_t>(missing));
    monitor.begin(Operation::ingest);
    put_and_route(stored);
    monitor.on_claim(Claim::kv, locator, {2}, 4 * kValueBytes);
    monitor.end(true);
    EXPECT_THAT(violated(), ElementsAre("ready-after-commit"));
    EXPECT_THAT(message(), HasSubstr(std::string(of_two_layers[missing]) + " has no code 0"));
    monitor.on_withdrawal(Claim::kv, locator);
    for (const std::string_view key : stored) ASSERT_TRUE(fluxon().remove(key));
    context.verdicts.reset();
  }
}

TEST_F(MonitorClaimsTest, TheScalesOfAClaimNeedTheirCodesToo) {
  const std::string ks = locator + ":L0:ks";
  const std::string vs = locator + ":L0:vs";
  for (const std::string& missing : {ks, vs}) {
    monitor.begin(Operation::ingest);
    put_and_route({k, v, missing == ks ? vs : ks});
    monitor.on_claim(Claim::kv, locator, {1, kScaledParts}, 4 * kValueBytes);
    monitor.end(true);
    EXPECT_THAT(violated(), ElementsAre("ready-after-commit"));
    EXPECT_THAT(message(), HasSubstr(missing + " has no code 0"));
    monitor.on_withdrawal(Claim::kv, locator);
    for (const std::string& key : {k, v, missing == ks ? vs : ks}) ASSERT_TRUE(fluxon().remove(key));
    context.verdicts.reset();
  }
}

TEST_F(MonitorClaimsTest, AClaimOfAKeyThatWasRemovedSinceIsSeen) {
  monitor.begin_ingest(source());
  put_and_route(keys());
  ASSERT_TRUE(fluxon().remove(v));
  claim_kv();
  EXPECT_THAT(violated(), ElementsAre("ready-after-commit"));
}

TEST_F(MonitorClaimsTest, AClaimOfOtherBytesThanTheSourcesIsSeen) {
  monitor.begin_ingest(source());
  put_and_route(keys());
  bytes_at(owner.peek(v)->write_address)[9] ^= 1;
  claim_kv();
  EXPECT_THAT(violated(), ElementsAre("ready-after-commit"));
  EXPECT_THAT(message(), AllOf(HasSubstr(v), HasSubstr("not the source's")));
}

TEST_F(MonitorClaimsTest, AValueThatWasEvictedMeanwhileIsNotHeldAgainstItsClaim) {
  monitor.begin_ingest(source());
  put_and_route(keys());
  ASSERT_TRUE(owner.evict(v));
  claim_kv();
  EXPECT_THAT(violated(), IsEmpty());
  EXPECT_EQ(checks(Invariant::ready_after_commit), 1U);
}

TEST_F(MonitorClaimsTest, AdoptionNeedsOneReadPlanOfThisOperationPastTheBoundOverEveryKey) {
  inject({{.call = Call::commit_wait, .kind = FaultKind::lost, .code = -608}});
  monitor.begin_ingest(source());
  ASSERT_TRUE(put(keys()));
  monitor.end(true);
  context.verdicts.disable(Invariant::index_agrees);  // what is claimed here is withdrawn though it is there
  const auto adopt = [&](const std::vector<Names>& reads, bool same_operation) {
    context.verdicts.reset();
    monitor.begin_ingest(source());
    for (const Names& names : reads) EXPECT_TRUE(fluxon().release_views(read(names)));
    if (!same_operation) {
      monitor.end(true);
      monitor.begin_ingest(source());
    }
    claim_kv();
    monitor.end(true);
    monitor.on_withdrawal(Claim::kv, locator);
    return violated().empty();
  };
  EXPECT_FALSE(adopt({keys()}, true));  // within the bound
  pass(kSettleBound);
  EXPECT_FALSE(adopt({{k}}, true));
  EXPECT_FALSE(adopt({{k}, {v}}, true));
  EXPECT_FALSE(adopt({keys()}, false));
  EXPECT_TRUE(adopt({keys()}, true));
}

TEST_F(MonitorClaimsTest, ASnapshotsClaimsAreHints) {
  monitor.begin(Operation::restore);
  claim_kv();
  monitor.end(true);
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(MonitorClaimsTest, CodesOfAnOlderGenerationProveNothing) {
  monitor.begin_ingest(source());
  put_and_route(keys());
  restart_owner_and_learn();
  claim_kv();
  EXPECT_THAT(violated(), ElementsAre("ready-after-commit"));
}

TEST_F(MonitorClaimsTest, AClaimMustFallInTheOperationThatRemovesItsKeys) {
  ingest();
  monitor.begin(Operation::evict);
  ASSERT_TRUE(fluxon().remove(k));
  monitor.end(true);
  EXPECT_THAT(violated(), ElementsAre("ready-after-commit"));
  EXPECT_THAT(message(), HasSubstr("still claimed"));
}

TEST_F(MonitorClaimsTest, AMemoryStoreMayClaimOnceNothingIsInFlightToTheHost) {
  monitor.expect_memory_store();
  const std::uintptr_t own = arena.map_private(1 << 13);
  ASSERT_TRUE(cuda().host_register(own, 1 << 13, HostAccess::read_write));
  monitor.begin_ingest(source());
  submit({{own, tensor, 64}}, kOut);
  claim_kv();
  EXPECT_THAT(violated(), ElementsAre("ready-after-commit"));
  context.verdicts.reset();
  ASSERT_TRUE(cuda().stream_synchronize(stream));
  claim_kv();
  EXPECT_THAT(violated(), IsEmpty());
}

// ---- no-publish-on-failure

TEST_F(MonitorClaimsTest, AFailedOperationMayWithdrawWhatWasMissedButNotClaim) {
  ingest();
  ASSERT_TRUE(owner.evict(k));
  monitor.begin(Operation::resume);
  ASSERT_TRUE(fluxon().cancel_get_transfer(look(keys()).handle));
  monitor.on_withdrawal(Claim::kv, locator);
  monitor.end(false);
  EXPECT_THAT(violated(), IsEmpty());
  EXPECT_EQ(checks(Invariant::no_publish_on_failure), 2U);
  ASSERT_TRUE(fluxon().remove(v));
  monitor.begin_ingest(source());
  put_and_route(keys());
  claim_kv();
  monitor.end(false);
  EXPECT_THAT(violated(), ElementsAre("no-publish-on-failure"));
}

TEST_F(MonitorClaimsTest, GivingUpWhatNothingSpeaksAgainstIsSeenUnlessItIsClaimedAgain) {
  context.verdicts.disable(Invariant::index_agrees);  // which allows neither
  ingest();
  for (const bool again : {true, false}) {
    monitor.begin_ingest(source());
    monitor.on_withdrawal(Claim::kv, locator);
    if (again) claim_kv();
    monitor.end(true);
    EXPECT_EQ(violated().empty(), again);
  }
  EXPECT_THAT(violated(), ElementsAre("no-publish-on-failure"));
  EXPECT_THAT(message(), AllOf(HasSubstr("ingest"), HasSubstr("did not put it back")));
}

TEST_F(MonitorClaimsTest, AClaimOfAnOlderGenerationMayBeGivenUp) {
  ingest();
  restart_owner_and_learn();
  monitor.begin(Operation::resume);
  monitor.on_withdrawal(Claim::kv, locator);
  monitor.end(true);
  EXPECT_THAT(violated(), IsEmpty());
}

// ---- pinned-stays

TEST_F(MonitorClaimsTest, EvictionOfAPinnedNodeIsSeenWhetherOrNotItIsWithdrawnFirst) {
  for (const bool withdrawn : {true, false}) {
    ingest();
    monitor.pin(7, true);
    monitor.begin(Operation::evict);
    if (withdrawn) monitor.on_withdrawal(Claim::kv, locator);
    ASSERT_TRUE(fluxon().remove(k));
    if (!withdrawn) monitor.on_withdrawal(Claim::kv, locator);
    ASSERT_TRUE(fluxon().remove(v));
    monitor.end(true);
    EXPECT_THAT(violated(), Contains("pinned-stays"));
    EXPECT_THAT(message(), HasSubstr("the node is pinned"));
    context.verdicts.reset();
    monitor.pin(7, false);
  }
}

TEST_F(MonitorClaimsTest, EvictionOfAHeldNodeIsSeenUntilItIsLetGo) {
  ingest();
  monitor.hold(7);
  monitor.begin(Operation::make_room);
  monitor.on_withdrawal(Claim::kv, locator);
  monitor.end(true);
  EXPECT_THAT(violated(), ElementsAre("pinned-stays"));
  EXPECT_THAT(message(), HasSubstr("referenced 1 times"));
  context.verdicts.reset();
  monitor.unhold(7);
  monitor.begin_ingest(source());
  claim_kv();
  monitor.end(true);
  monitor.begin(Operation::make_room);
  monitor.on_withdrawal(Claim::kv, locator);
  monitor.end(true);
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(MonitorClaimsTest, ReferencesToWhatWasWithdrawnAreSeen) {
  ingest();
  monitor.begin(Operation::evict);
  monitor.on_withdrawal(Claim::kv, locator);
  monitor.end(true);
  EXPECT_THAT(violated(), IsEmpty());
  monitor.hold(7);
  EXPECT_THAT(violated(), ElementsAre("pinned-stays"));
  EXPECT_THAT(message(), HasSubstr("is not ready"));
}

TEST_F(MonitorClaimsTest, AnEvictionToMakeRoomForAPutIsOneToo) {
  ingest();
  monitor.hold(7);
  monitor.begin_ingest(source(8));
  monitor.on_withdrawal(Claim::kv, locator);
  EXPECT_THAT(violated(), ElementsAre("pinned-stays"));
}

TEST_F(MonitorClaimsTest, AHeldNodeMayBeWithdrawnWhenAGetMissedIt) {
  ingest();
  monitor.hold(7);
  ASSERT_TRUE(owner.evict(k));
  monitor.begin(Operation::resume);
  ASSERT_TRUE(fluxon().cancel_get_transfer(look(keys()).handle));
  monitor.on_withdrawal(Claim::kv, locator);
  monitor.end(true);
  monitor.begin(Operation::pump);
  ASSERT_TRUE(fluxon().remove(v));  // a leftover by now
  monitor.end(true);
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(MonitorClaimsTest, TheSkeletonStays) {
  ingest_latent();
  monitor.begin(Operation::evict);
  monitor.on_withdrawal(Claim::latent, latent);
  ASSERT_TRUE(fluxon().remove(latent));
  monitor.end(true);
  EXPECT_THAT(violated(), ElementsAre("pinned-stays"));
  EXPECT_THAT(message(), HasSubstr("skeleton"));
}

TEST_F(MonitorClaimsTest, EvictionOfAnUnsettledBlobIsSeenButNotWhatItUnsettlesItself) {
  ingest();
  inject({{.call = Call::remove, .kind = FaultKind::lost, .code = 7000}});
  monitor.begin(Operation::evict);
  ASSERT_FALSE(fluxon().remove(k));
  monitor.on_withdrawal(Claim::kv, locator);
  ASSERT_TRUE(fluxon().remove(v));
  monitor.end(false);
  EXPECT_THAT(violated(), IsEmpty());
  EXPECT_TRUE(monitor.unsettled(7));
  monitor.begin(Operation::restore);
  claim_kv();
  monitor.end(true);
  monitor.begin(Operation::evict);
  monitor.on_withdrawal(Claim::kv, locator);
  EXPECT_THAT(violated(), ElementsAre("pinned-stays"));
  EXPECT_THAT(message(), HasSubstr("unsettled"));
}

TEST_F(MonitorClaimsTest, LeftoversMayBeRemovedAtAnyTime) {
  monitor.begin_ingest(source());
  put_and_route(keys());
  monitor.pin(7, true);
  ASSERT_TRUE(fluxon().remove(k));
  ASSERT_TRUE(fluxon().remove(v));
  monitor.end(false);
  EXPECT_THAT(violated(), IsEmpty());
  EXPECT_EQ(checks(Invariant::pinned_stays), 0U);
}

// ---- Unsettled keys.

TEST_F(MonitorClaimsTest, AnUnknownKeyIsDecidedByARemovalOrAProbeAfterTheBound) {
  inject({{.call = Call::commit_wait, .kind = FaultKind::lost, .code = -608, .persistent = true}});
  const auto unknown_again = [&] {
    monitor.begin_ingest(source());
    ASSERT_TRUE(put(keys()));
    monitor.end(false);
    EXPECT_TRUE(monitor.unsettled(7));
  };
  unknown_again();
  EXPECT_TRUE(fluxon().cancel_get_transfer(look(keys()).handle));
  EXPECT_TRUE(monitor.unsettled(7));  // within the bound it decides nothing
  pass(kSettleBound);
  EXPECT_TRUE(fluxon().cancel_get_transfer(look(keys()).handle));
  EXPECT_FALSE(monitor.unsettled(7));
  EXPECT_TRUE(fluxon().remove(k) && fluxon().remove(v));
  unknown_again();
  EXPECT_EQ(code_of(fluxon().remove(k)), 4000);  // not routed yet
  EXPECT_TRUE(monitor.unsettled(7));
  pass(kSettleBound);
  EXPECT_TRUE(fluxon().remove(k) && fluxon().remove(v));
  EXPECT_FALSE(monitor.unsettled(7));
}

}  // namespace
}  // namespace holdfast::sim
