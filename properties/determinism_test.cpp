// That a run which is not the same twice is noticed, and where: a leak of each kind into a decision of the store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/sim/campaign.hpp"
#include "holdfast/sim/generator.hpp"
#include "leaky/leaky_system.hpp"

namespace holdfast::sim {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::uint64_t kRecheckedSeeds = 40;

std::string_view name_of(Leak leak) {
  for (const NamedLeak& named : kLeaks) {
    if (named.leak == leak) return named.name;
  }
  return "";
}

// Seeds are worlds: a session before, one of the seed's world, and one after.
std::shared_ptr<const Trace> trace_in_world(std::uint64_t world) {
  Trace trace;
  trace.name = "sessions of world " + std::to_string(world);
  trace.seed = world;
  trace.geometries.resize(1);
  for (const std::uint32_t of : {std::uint32_t{1}, static_cast<std::uint32_t>(world), std::uint32_t{2}}) {
    Step open;
    open.id = static_cast<std::uint32_t>(trace.steps.size() + 1);
    open.kind = StepKind::open;
    open.world = of;
    open.actions = {"0"};
    trace.steps.push_back(open);
  }
  return std::make_shared<const Trace>(std::move(trace));
}

CampaignOptions options_of(Leak leak, bool fresh) {
  CampaignOptions options;
  options.seeds = {1, kRecheckedSeeds};
  options.recheck = {1, 1};
  options.failed_seeds_max = 0;
  if (fresh) options.fresh_program = {HOLDFAST_LEAKY_PROGRAM, std::string(name_of(leak))};
  return options;
}

CampaignResult outcome(Leak leak, const CampaignOptions& options) {
  auto result = run_campaign(options, leaky_factory(leak), trace_in_world);
  EXPECT_TRUE(result) << to_string(result.error());
  return result.value_or(CampaignResult{});
}

// What the campaign says of the one seed that leaks; it goes no further than that.
std::string divergence_of(Leak leak, bool fresh) {
  const CampaignResult result = outcome(leak, options_of(leak, fresh));
  if (result.failures.empty()) return {};
  EXPECT_THAT(result.failures, SizeIs(1));
  EXPECT_EQ(result.failures.front().kind, FailureKind::divergence);
  EXPECT_EQ(result.failures.front().seed, kLeakyWorld);
  EXPECT_TRUE(result.failures.front().has_trace);
  EXPECT_EQ(result.diverged, 1U);
  EXPECT_EQ(result.seeds_run, kLeakyWorld);
  return result.failures.front().message;
}

// "event N, in step 2 open, was <the leak> and <where>, in step 2 open, <the leak>"
auto names_the_first_event(const std::string& where) {
  return AllOf(ContainsRegex("event [0-9]+, in step 2 open, was\n +0.000000 ms  file_read leak "),
               ContainsRegex("and when run again in " + where + ", in step 2 open,\n +0.000000 ms  file_read leak "));
}

std::string test_name(const testing::TestParamInfo<Leak>& info) {
  std::string name(name_of(info.param));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class LeakInOneProcess : public testing::TestWithParam<Leak> {};
TEST_P(LeakInOneProcess, IsCaughtWhenRunAgainThere) {
  EXPECT_THAT(divergence_of(GetParam(), false), names_the_first_event("the same process"));
}
INSTANTIATE_TEST_SUITE_P(Determinism, LeakInOneProcess,
                         testing::Values(Leak::address, Leak::hash_seed, Leak::clock, Leak::history, Leak::locale),
                         test_name);
// AddressSanitizer's heap hands out no block that was just let go, so that nothing stirs the order of its blocks.
#ifndef __SANITIZE_ADDRESS__
INSTANTIATE_TEST_SUITE_P(DeterminismOfTheHeap, LeakInOneProcess, testing::Values(Leak::pointer_order, Leak::hash_order),
                         test_name);
#endif

class LeakOfAProcess : public testing::TestWithParam<Leak> {};
TEST_P(LeakOfAProcess, IsCaughtInAFreshOneAlone) {
  EXPECT_THAT(divergence_of(GetParam(), false), IsEmpty());
  EXPECT_THAT(divergence_of(GetParam(), true), names_the_first_event("a fresh process"));
}
INSTANTIATE_TEST_SUITE_P(Determinism, LeakOfAProcess, testing::Values(Leak::static_address, Leak::long_history),
                         test_name);

TEST(Determinism, WhatHappensOnceInAProcessIsNamedWithTheHelpOfAFreshOne) {
  EXPECT_THAT(divergence_of(Leak::once, true), names_the_first_event("a fresh process"));
}

TEST(Determinism, WhatCannotBeSeenAgainSaysWhatRanBeforeIt) {
  EXPECT_THAT(divergence_of(Leak::once, false),
              AllOf(HasSubstr("depends on what ran before it"), HasSubstr("its process had run 30 seeds, from 1 on")));
}

TEST(Determinism, AStoreThatLeaksNothingIsTheSameInAFreshProcess) {
  const CampaignResult result = outcome(Leak::none, options_of(Leak::none, true));
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_EQ(result.rechecked, kRecheckedSeeds);
  EXPECT_EQ(result.diverged, 0U);
}

TEST(Determinism, GeneratedTracesAreTheSameInAFreshProcessReadFromTheirText) {
  for (const Profile& profile : profiles()) {
    CampaignOptions options = options_of(Leak::none, true);
    const auto source = [&](std::uint64_t seed) { return std::make_shared<const Trace>(generate(seed, profile)); };
    const auto result = run_campaign(options, make_production_system, source);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->rechecked, kRecheckedSeeds);
    for (const SeedFailure& failure : result->failures) {
      EXPECT_NE(failure.kind, FailureKind::divergence) << failure.message;
    }
  }
}

TEST(Determinism, ALogOfTheSameEventsDoesNotHideThatSomethingElseDiffered) {
  CampaignOptions options = options_of(Leak::violation, false);
  const CampaignResult result = outcome(Leak::violation, options);
  ASSERT_THAT(result.failures, SizeIs(2));
  EXPECT_EQ(result.failures[0].kind, FailureKind::violation);
  EXPECT_EQ(result.failures[1].kind, FailureKind::divergence);
  EXPECT_THAT(result.failures[1].message, HasSubstr("the violations"));
}

TEST(Determinism, SwitchedOffChecksAreOffInTheFreshProcessToo) {
  CampaignOptions options = options_of(Leak::none, true);
  options.run.disabled = {Invariant::quiescent_baseline, Invariant::one_terminal};
  EXPECT_THAT(outcome(Leak::none, options).failures, IsEmpty());
}

TEST(Determinism, ATraceThatCannotBeReadFromItsTextIsADivergence) {
  CampaignOptions options = options_of(Leak::none, true);
  const auto result = run_campaign(options, leaky_factory(Leak::none), [](std::uint64_t seed) {
    auto trace = std::make_shared<Trace>(*trace_in_world(seed));
    if (seed == kLeakyWorld) trace->steps[1].id = trace->steps[0].id;
    return trace;
  });
  ASSERT_TRUE(result);
  ASSERT_THAT(result->failures, SizeIs(1));
  EXPECT_EQ(result->failures.front().kind, FailureKind::divergence);
  EXPECT_THAT(result->failures.front().message, HasSubstr("cannot be read"));
}

TEST(Determinism, ACrashInTheFreshProcessIsTheVerdictOfItsSeed) {
  const Leak leak = Leak::crashes_in_a_fresh_process;
  const CampaignResult result = outcome(leak, options_of(leak, true));
  ASSERT_THAT(result.failures, SizeIs(1));
  EXPECT_EQ(result.failures.front().seed, kLeakyWorld);
  EXPECT_EQ(result.failures.front().kind, FailureKind::crash);
  EXPECT_THAT(result.failures.front().message,
              AllOf(HasSubstr("thrown in the fresh process"), HasSubstr("when it was run again in a fresh process")));
  EXPECT_EQ(result.seeds_run, kRecheckedSeeds);
}

TEST(Determinism, AHangInTheFreshProcessIsTheVerdictOfItsSeed) {
  const Leak leak = Leak::hangs_in_a_fresh_process;
  CampaignOptions options = options_of(leak, true);
  options.hang_limit_ns = kSecond;
  const CampaignResult result = outcome(leak, options);
  ASSERT_THAT(result.failures, SizeIs(1));
  EXPECT_EQ(result.failures.front().seed, kLeakyWorld);
  EXPECT_EQ(result.failures.front().kind, FailureKind::hang);
  EXPECT_THAT(result.failures.front().message, HasSubstr("when it was run again in a fresh process"));
  EXPECT_EQ(result.seeds_run, kRecheckedSeeds);
}

TEST(Determinism, AFreshProcessThatCannotBeHadIsAFailureOfTheHarness) {
  for (const std::vector<std::string>& program :
       {std::vector<std::string>{"/nowhere/holdfast"}, {"/bin/true"}, {HOLDFAST_LEAKY_PROGRAM, "unknown"}}) {
    CampaignOptions options = options_of(Leak::none, true);
    options.fresh_program = program;
    const auto result = run_campaign(options, leaky_factory(Leak::none), trace_in_world);
    ASSERT_FALSE(result);
    EXPECT_THAT(to_string(result.error()),
                AllOf(HasSubstr("the fresh process that runs seeds again"), HasSubstr(program.front())));
  }
}

}  // namespace
}  // namespace holdfast::sim
