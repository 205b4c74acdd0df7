// Exploring finds what only some interleavings show, says when it has seen them all, and leaves a trace that shows it.
#include "holdfast/sim/explore.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "forwarding_system.hpp"
#include "holdfast/sim/scenarios.hpp"

namespace holdfast::sim {
namespace {

Trace scenario(std::string_view name) {
  Result<Trace> trace = scenario_named(name);
  EXPECT_TRUE(trace) << name;
  return *trace;
}

ExploreOptions preempting(std::uint64_t times) {
  ExploreOptions options;
  options.preemptions_max = times;
  return options;
}

TEST(Explore, CoversAllWithinTheBoundAndMoreWithMore) {
  const Trace trace = scenario("close_beside_put");
  std::uint64_t before = 0;
  for (const std::uint64_t preemptions : {0U, 1U, 2U}) {
    const Result<Exploration> explored = explore(trace, make_production_system, preempting(preemptions));
    ASSERT_TRUE(explored);
    EXPECT_TRUE(explored->covered);
    EXPECT_FALSE(explored->diverged);
    EXPECT_FALSE(explored->failing);
    EXPECT_GT(explored->interleavings, before);
    before = explored->interleavings;
  }
}

TEST(Explore, TwoSessionsHaveTwoOrdersWithoutPreemption) {
  const Result<Exploration> explored = explore(scenario("put_beside_put"), make_production_system, preempting(0));
  ASSERT_TRUE(explored);
  EXPECT_EQ(explored->interleavings, 2U);
}

TEST(Explore, ChanceEndsAfterSoManyRuns) {
  for (const ExploreBy by : {ExploreBy::random, ExploreBy::pct}) {
    ExploreOptions options;
    options.by = by;
    options.runs_max = 50;
    const Result<Exploration> explored = explore(scenario("put_beside_put"), make_production_system, options);
    ASSERT_TRUE(explored);
    EXPECT_EQ(explored->interleavings, 50U) << name_of(by);
    EXPECT_FALSE(explored->covered);
    EXPECT_GT(explored->end_states, 1U) << name_of(by);
  }
}

TEST(Explore, EndsWhenItsTimeIsOver) {
  ExploreOptions options;
  options.time_budget_ns = 1;
  const Result<Exploration> explored = explore(scenario("restart_beside_put"), make_production_system, options);
  ASSERT_TRUE(explored);
  EXPECT_LE(explored->interleavings, 1U);
  EXPECT_FALSE(explored->covered);
  EXPECT_FALSE(explored->failing);
}

// Looks whether anybody else is writing, and writes a moment later: two may.
class CheckThenAct final : public ForwardingSystem {
 public:
  CheckThenAct(Ports& ports, std::unique_ptr<SystemUnderTest> inner, bool crash)
      : ForwardingSystem(std::move(inner)), ports_(ports), crash_(crash) {}
  Result<IngestOutcome> chunk_finalized(SessionId session) override {
    const bool alone = !busy_;
    static_cast<void>(ports_.fluxon.wait_local_segments_ready());
    if (!alone) return IngestOutcome{};
    if (busy_ && crash_) std::abort();
    if (busy_) static_cast<void>(ports_.fluxon.put_abort({0x1000}));
    busy_ = true;
    Result<IngestOutcome> outcome = ForwardingSystem::chunk_finalized(session);
    busy_ = false;
    return outcome;
  }

 private:
  Ports& ports_;
  bool crash_;
  bool busy_ = false;
};

TEST(Explore, FindsWhatOneStepAfterTheOtherNeverShowsAndLeavesItsTrace) {
  for (const bool crash : {false, true}) {
    const SystemFactory factory = [crash](Ports& ports, ClaimListener& claims, const SystemOptions& options) {
      return std::make_unique<CheckThenAct>(ports, make_production_system(ports, claims, options), crash);
    };
    const Trace trace = scenario("put_beside_put");
    Executor executor(factory);
    ASSERT_TRUE(executor.run(trace).violations.empty());
    for (const ExploreBy by : {ExploreBy::dfs, ExploreBy::sleep_sets, ExploreBy::random, ExploreBy::pct}) {
      ExploreOptions options;
      options.by = by;
      const Result<Exploration> explored = explore(trace, factory, options);
      ASSERT_TRUE(explored);
      ASSERT_TRUE(explored->failing) << name_of(by) << (crash ? ", a crash" : "");
      EXPECT_FALSE(explored->covered);
      ASSERT_FALSE(explored->failing->switches.empty());
      if (!crash) {
        EXPECT_FALSE(executor.run(*explored->failing).violations.empty()) << name_of(by);
      } else {
        EXPECT_DEATH(static_cast<void>(executor.run(*explored->failing)), "");
      }
    }
  }
}

TEST(Explore, SleepSetsComeToTheEndStatesOfEveryInterleaving) {
  constexpr std::uint64_t kUnbounded = 1'000;
  for (const std::string_view name :
       {"evict_beside_hold", "evict_beside_put", "make_room_beside_hold", "snapshot_beside_snapshot"}) {
    const Result<Exploration> all = explore(scenario(name), make_production_system, preempting(kUnbounded));
    ExploreOptions pruned;
    pruned.by = ExploreBy::sleep_sets;
    const Result<Exploration> slept = explore(scenario(name), make_production_system, pruned);
    ASSERT_TRUE(all && slept);
    ASSERT_TRUE(all->covered && slept->covered) << name;
    EXPECT_EQ(slept->end_states, all->end_states) << name;
    EXPECT_LT(slept->interleavings, all->interleavings) << name;
    EXPECT_GT(all->end_states, 1U) << name;
  }
}

}  // namespace
}  // namespace holdfast::sim
