// What a campaign makes of runs that break a promise, crash, hang, throw, exit, or differ when repeated.
#include "holdfast/sim/campaign.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "forwarding_system.hpp"
#include "holdfast/sim/generator.hpp"

namespace holdfast::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Seeds are worlds here; each of these does what its name says when a session of its world is opened.
constexpr std::uint32_t kBreaksPromise = 7;
constexpr std::uint32_t kAborts = 13;
constexpr std::uint32_t kHangs = 19;
constexpr std::uint32_t kThrows = 23;
constexpr std::uint32_t kExits = 29;
constexpr std::uint32_t kShowsHashSeed = 31;
constexpr std::uint32_t kRetriesForEver = 37;

// The project's own store, which misbehaves where it is told to.
class TroubledSystem final : public ForwardingSystem {
 public:
  TroubledSystem(Ports& ports, ClaimListener& listener, const SystemOptions& options, std::set<std::uint32_t> troubles)
      : ForwardingSystem(make_production_system(ports, listener, options)),
        ports_(ports),
        listener_(listener),
        options_(options),
        troubles_(std::move(troubles)) {}

  Status open_session(SessionId session, const SessionSpec& spec, Engine& engine) override {
    if (troubles_.contains(spec.world)) misbehave(spec.world);
    return ForwardingSystem::open_session(session, spec, engine);
  }

 private:
  void misbehave(std::uint32_t world) {
    switch (world) {
      case kBreaksPromise:
        listener_.on_claim(Claim::kv, "bad:claim", {1}, 256);  // of something that was never put
        break;
      case kAborts:
        static_cast<void>(write(STDERR_FILENO, "the last words\n", 15));
        std::abort();
      case kHangs:
        for (volatile bool forever = true; forever;) continue;
        break;
      case kThrows:
        throw std::runtime_error("thrown on purpose");
      case kExits:
        _exit(42);
      case kRetriesForEver:
        for (volatile bool forever = true; forever;) static_cast<void>(ports_.cuda.pointer_attributes(4096));
        break;
      case kShowsHashSeed:
        if (options_.hash_seed != 0) {
          const auto event = ports_.cuda.event_create();
          static_cast<void>(ports_.cuda.event_destroy(event.value()));
        }
        break;
      default:
        break;
    }
  }

  Ports& ports_;
  ClaimListener& listener_;
  SystemOptions options_;
  std::set<std::uint32_t> troubles_;
};

std::shared_ptr<const Trace> trace_of_world(std::uint64_t world) {
  Trace trace;
  trace.name = "a session of world " + std::to_string(world);
  trace.seed = world;
  trace.geometries.resize(1);
  Step open;
  open.id = 1;
  open.kind = StepKind::open;
  open.world = static_cast<std::uint32_t>(world);
  open.actions = {"0"};
  trace.steps = {open};
  return std::make_shared<const Trace>(std::move(trace));
}

struct Wanted {
  std::set<std::uint32_t> troubles{};
  SeedRange seeds{1, 40};
  std::uint32_t jobs = 1;
};

CampaignOptions options_of(const Wanted& wanted) {
  CampaignOptions options;
  options.seeds = wanted.seeds;
  options.jobs = wanted.jobs;
  options.recheck = {0, 1};
  options.failed_seeds_max = 0;
  return options;
}

CampaignResult outcome(const CampaignOptions& options, const std::set<std::uint32_t>& troubles,
                       const TraceSource& source = trace_of_world) {
  const SystemFactory factory = [&](Ports& ports, ClaimListener& listener, const SystemOptions& system) {
    return std::make_unique<TroubledSystem>(ports, listener, system, troubles);
  };
  auto result = run_campaign(options, factory, source);
  EXPECT_TRUE(result) << to_string(result.error());
  return result.value_or(CampaignResult{});
}

CampaignResult outcome(const Wanted& wanted) { return outcome(options_of(wanted), wanted.troubles); }

std::vector<std::uint64_t> seeds_of(const std::vector<SeedFailure>& failures) {
  std::vector<std::uint64_t> seeds;
  for (const SeedFailure& failure : failures) seeds.push_back(failure.seed);
  return seeds;
}

TEST(Campaign, RunsEachSeedOnceAndHoldsWhenAllOfThemDo) {
  const CampaignResult result = outcome({});
  EXPECT_EQ(result.seeds_run, 40U);
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_THAT(result.stopped, IsEmpty());
}

TEST(Campaign, NamesTheSlowestAndTheLongestCases) {
  CampaignOptions options = options_of({});
  options.keep_results = true;
  const CampaignResult result = outcome(options, {});
  const auto keeps_most = [&](const std::vector<NotableCase>& kept, auto measure, auto measure_of_result) {
    ASSERT_THAT(kept, SizeIs(kNotableCasesMax));
    EXPECT_TRUE(std::ranges::is_sorted(kept, std::greater<>{}, measure));
    for (const NotableCase& notable : kept) EXPECT_GT(notable.wall_ns, 0);
    for (const SeedResult& seed : result.results) {
      const bool among = std::ranges::find(kept, seed.seed, &NotableCase::seed) != kept.end();
      if (among) continue;
      EXPECT_LE(measure_of_result(seed), std::invoke(measure, kept.back()));
    }
  };
  keeps_most(result.slowest, &NotableCase::wall_ns, [](const SeedResult& seed) { return seed.wall_ns; });
  keeps_most(result.longest, &NotableCase::runtime_calls,
             [](const SeedResult& seed) { return seed.run.runtime_calls; });
  const auto first = static_cast<std::size_t>(result.longest.front().seed - 1);
  EXPECT_EQ(result.longest.front().steps, result.results[first].run.steps);
}

TEST(Campaign, ABrokenPromiseIsTheVerdictOfItsSeed) {
  const CampaignResult result = outcome({.troubles = {kBreaksPromise}});
  ASSERT_THAT(result.failures, SizeIs(1));
  const SeedFailure& failure = result.failures.front();
  EXPECT_EQ(failure.seed, kBreaksPromise);
  EXPECT_EQ(failure.kind, FailureKind::violation);
  ASSERT_FALSE(failure.violations.empty());
  EXPECT_EQ(failure.violations.front().invariant, Invariant::ready_after_commit);
  EXPECT_GE(result.violated[static_cast<std::size_t>(Invariant::ready_after_commit)], 1U);
  EXPECT_EQ(result.seeds_run, 40U);
}

TEST(Campaign, ASwitchedOffCheckLetsItsViolationThrough) {
  CampaignOptions options = options_of({});
  options.run.disabled = {Invariant::ready_after_commit, Invariant::index_agrees};
  EXPECT_THAT(outcome(options, {kBreaksPromise}).failures, IsEmpty());
}

TEST(Campaign, ACrashIsTheVerdictOfExactlyItsSeedAndTheRestGoesOn) {
  const CampaignResult result = outcome({.troubles = {kAborts}});
  ASSERT_THAT(seeds_of(result.failures), ElementsAre(kAborts));
  EXPECT_EQ(result.failures.front().kind, FailureKind::crash);
  EXPECT_THAT(result.failures.front().message, HasSubstr("signal 6 (Aborted)"));
  EXPECT_THAT(result.failures.front().message, HasSubstr("the last words"));
  EXPECT_EQ(result.seeds_run, 40U);
}

TEST(Campaign, AHangIsTheVerdictOfExactlyItsSeedAndTheRestGoesOn) {
  CampaignOptions options = options_of({});
  options.hang_limit_ns = 500 * kMillisecond;
  const CampaignResult result = outcome(options, {kHangs});
  ASSERT_THAT(seeds_of(result.failures), ElementsAre(kHangs));
  EXPECT_EQ(result.failures.front().kind, FailureKind::hang);
  EXPECT_THAT(result.failures.front().message, HasSubstr("no end within 0.50 s"));
  EXPECT_EQ(result.seeds_run, 40U);
}

TEST(Campaign, AnOperationThatRetriesForEverIsAHangLongBeforeTheHangLimit) {
  CampaignOptions options = options_of({});
  options.hang_limit_ns = 60 * kMinute;
  const CampaignResult result = outcome(options, {kRetriesForEver});
  ASSERT_THAT(seeds_of(result.failures), ElementsAre(kRetriesForEver));
  EXPECT_EQ(result.failures.front().kind, FailureKind::hang);
  EXPECT_TRUE(result.failures.front().has_trace);
  EXPECT_THAT(result.failures.front().message, HasSubstr("no end: the operation open of step 1 (open)"));
  EXPECT_EQ(result.seeds_run, 40U);
}

TEST(Campaign, AnExceptionAndAnExitAreCrashes) {
  const CampaignResult result = outcome({.troubles = {kThrows, kExits}});
  ASSERT_THAT(seeds_of(result.failures), ElementsAre(kThrows, kExits));
  EXPECT_EQ(result.failures[0].kind, FailureKind::crash);
  EXPECT_THAT(result.failures[0].message, HasSubstr("thrown on purpose"));
  EXPECT_EQ(result.failures[1].kind, FailureKind::crash);
  EXPECT_THAT(result.failures[1].message, HasSubstr("exited with status 42"));
  EXPECT_EQ(result.seeds_run, 40U);
}

TEST(Campaign, ACrashInTheGeneratorLeavesNoTrace) {
  const auto result = outcome(options_of({}), {}, [](std::uint64_t seed) {
    if (seed == 5) std::abort();
    return trace_of_world(seed);
  });
  ASSERT_THAT(seeds_of(result.failures), ElementsAre(5U));
  EXPECT_FALSE(result.failures.front().has_trace);
  EXPECT_THAT(result.failures.front().message, HasSubstr("while its trace was being made"));
}

TEST(Campaign, TheFirstAndTheLastSeedOfABlockMayCrash) {
  const auto crash_at = [](std::uint64_t bad) {
    return [bad](std::uint64_t seed) {
      if (seed == bad) std::abort();
      return trace_of_world(seed);
    };
  };
  for (const std::uint64_t seed : {1U, 16U, 17U, 40U}) {
    const auto result = outcome(options_of({}), {}, crash_at(seed));
    EXPECT_THAT(seeds_of(result.failures), ElementsAre(seed));
    EXPECT_EQ(result.seeds_run, 40U);
  }
}

TEST(Campaign, TheNumberOfJobsDoesNotShow) {
  const std::set<std::uint32_t> troubles{kBreaksPromise, kAborts, kThrows};
  const CampaignResult one = outcome({.troubles = troubles, .jobs = 1});
  for (const std::uint32_t jobs : {2U, 5U, 64U}) {
    const CampaignResult many = outcome({.troubles = troubles, .jobs = jobs});
    EXPECT_EQ(many.log_hash, one.log_hash);
    EXPECT_EQ(many.checked, one.checked);
    EXPECT_EQ(many.runtime_calls, one.runtime_calls);
    EXPECT_EQ(many.virtual_ns, one.virtual_ns);
    EXPECT_EQ(many.marks.counts, one.marks.counts);
    ASSERT_EQ(seeds_of(many.failures), seeds_of(one.failures));
    for (std::size_t i = 0; i < one.failures.size(); ++i) {
      EXPECT_EQ(many.failures[i].message, one.failures[i].message);
    }
  }
}

TEST(Campaign, StopsAtTheSameSeedWhateverTheNumberOfJobs) {
  for (const std::uint32_t jobs : {1U, 2U, 8U}) {
    CampaignOptions options = options_of({.seeds = {1, 1000}, .jobs = jobs});
    options.failed_seeds_max = 2;
    const CampaignResult result = outcome(options, {kBreaksPromise, kAborts, kThrows});
    EXPECT_THAT(seeds_of(result.failures), ElementsAre(kBreaksPromise, kAborts));
    EXPECT_EQ(result.seeds_run, kAborts);
    EXPECT_THAT(result.stopped, HasSubstr("2 seeds failed"));
  }
}

TEST(Campaign, StopsAtTheFirstViolationOfAnInvariantThatItIsAskedToStopAt) {
  CampaignOptions options = options_of({.seeds = {2, 40}});
  options.stop_at = Invariant::ready_after_commit;
  const CampaignResult result = outcome(options, {kBreaksPromise, kAborts});
  EXPECT_THAT(seeds_of(result.failures), ElementsAre(kBreaksPromise));
  EXPECT_EQ(result.seeds_run, kBreaksPromise - 1);
  EXPECT_THAT(result.stopped, HasSubstr("ready-after-commit"));
}

TEST(Campaign, AnInvariantThatIsNotViolatedStopsNothing) {
  CampaignOptions options = options_of({});
  options.stop_at = Invariant::pinned_stays;
  const CampaignResult result = outcome(options, {kBreaksPromise, kAborts});
  EXPECT_THAT(seeds_of(result.failures), ElementsAre(kBreaksPromise, kAborts));
  EXPECT_EQ(result.seeds_run, 40U);
}

TEST(Campaign, ARunThatDiffersWhenPerturbedEndsItAndNamesTheFirstEventThatDiffers) {
  CampaignOptions options = options_of({});
  options.recheck = {1, 1};
  const CampaignResult result = outcome(options, {kShowsHashSeed});
  ASSERT_THAT(seeds_of(result.failures), ElementsAre(kShowsHashSeed));
  EXPECT_EQ(result.failures.front().kind, FailureKind::divergence);
  EXPECT_THAT(result.failures.front().message, HasSubstr("event_create"));
  EXPECT_EQ(result.diverged, 1U);
  EXPECT_EQ(result.seeds_run, kShowsHashSeed);
}

TEST(Campaign, RechecksTheShareItIsTold) {
  CampaignOptions options = options_of({.seeds = {1, 400}});
  options.recheck = {1, 4};
  const CampaignResult result = outcome(options, {});
  EXPECT_GT(result.rechecked, 60U);
  EXPECT_LT(result.rechecked, 140U);
  EXPECT_EQ(result.diverged, 0U);
}

TEST(Campaign, ATimeBudgetEndsItWithTheSeedsRunInOneRow) {
  CampaignOptions options = options_of({.seeds = {1, 1'000'000'000'000}, .jobs = 2});
  options.time_budget_ns = 200 * kMillisecond;
  options.keep_results = true;
  const CampaignResult result = outcome(options, {});
  EXPECT_THAT(result.stopped, HasSubstr("time budget"));
  ASSERT_EQ(result.results.size(), result.seeds_run);
  for (std::size_t i = 0; i < result.results.size(); ++i) EXPECT_EQ(result.results[i].seed, i + 1);
}

TEST(Campaign, KeepsWholeResultsOnlyWhenAsked) {
  CampaignOptions options = options_of({.seeds = {4, 6}});
  EXPECT_THAT(outcome(options, {}).results, IsEmpty());
  options.keep_results = true;
  const CampaignResult result = outcome(options, {});
  ASSERT_THAT(result.results, SizeIs(3));
  EXPECT_EQ(result.results.front().seed, 4U);
  EXPECT_THAT(result.results.front().run.frame_hashes, Not(IsEmpty()));
}

TEST(Campaign, AResultComesBackFromItsProcessWhole) {
  const Profile* profile = profile_named("default");
  ASSERT_NE(profile, nullptr);
  CampaignOptions options = options_of({.seeds = {1, 12}});
  options.keep_results = true;
  options.run.keep_log = true;
  const auto source = [&](std::uint64_t seed) { return std::make_shared<const Trace>(generate(seed, *profile)); };
  const auto there = run_campaign(options, make_production_system, source);
  ASSERT_TRUE(there);
  ASSERT_THAT(there->results, SizeIs(12));
  Executor executor(make_production_system);
  for (const SeedResult& seed : there->results) {
    const RunResult here = executor.run(*source(seed.seed), options.run);
    const RunResult& back = seed.run;
    ASSERT_EQ(back.violations.size(), here.violations.size());
    for (std::size_t i = 0; i < here.violations.size(); ++i) {
      EXPECT_EQ(back.violations[i].invariant, here.violations[i].invariant);
      EXPECT_EQ(back.violations[i].step, here.violations[i].step);
      EXPECT_EQ(back.violations[i].call, here.violations[i].call);
      EXPECT_EQ(back.violations[i].message, here.violations[i].message);
      EXPECT_EQ(back.violations[i].culprits, here.violations[i].culprits);
      EXPECT_EQ(back.violations[i].at_ns, here.violations[i].at_ns);
    }
    EXPECT_EQ(back.checked, here.checked);
    EXPECT_EQ(back.marks.counts, here.marks.counts);
    EXPECT_EQ(back.faults.fired, here.faults.fired);
    EXPECT_EQ(back.faults.total, here.faults.total);
    EXPECT_EQ(back.log_hash, here.log_hash);
    EXPECT_EQ(back.log_events, here.log_events);
    EXPECT_EQ(back.log, here.log);
    EXPECT_EQ(back.runtime_calls, here.runtime_calls);
    EXPECT_EQ(back.steps, here.steps);
    EXPECT_EQ(back.steps_skipped, here.steps_skipped);
    EXPECT_EQ(back.virtual_ns, here.virtual_ns);
    EXPECT_EQ(back.chunks_hit, here.chunks_hit);
    EXPECT_EQ(back.chunks_generated, here.chunks_generated);
    EXPECT_EQ(back.evictions, here.evictions);
    EXPECT_EQ(back.bytes_to_host, here.bytes_to_host);
    EXPECT_EQ(back.bytes_to_device, here.bytes_to_device);
    EXPECT_EQ(back.stats, here.stats);
    EXPECT_EQ(back.exempt_keys, here.exempt_keys);
    EXPECT_EQ(back.frame_hashes, here.frame_hashes);
    EXPECT_EQ(back.session_chunks_hit, here.session_chunks_hit);
  }
}

TEST(Campaign, TellsHowFarItIs) {
  std::vector<CampaignProgress> told;
  const SystemFactory factory = [](Ports& ports, ClaimListener& listener, const SystemOptions& system) {
    return std::make_unique<TroubledSystem>(ports, listener, system, std::set<std::uint32_t>{});
  };
  ASSERT_TRUE(run_campaign(options_of({}), factory, trace_of_world,
                           [&](const CampaignProgress& progress) { told.push_back(progress); }));
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().seeds_run, 40U);
  EXPECT_EQ(told.back().seeds_all, 40U);
}

TEST(Campaign, AnInterruptEndsItAfterTheSeedsInProgressAndItSaysSo) {
  const SystemFactory factory = [](Ports& ports, ClaimListener& listener, const SystemOptions& system) {
    return std::make_unique<TroubledSystem>(ports, listener, system, std::set<std::uint32_t>{});
  };
  bool sent = false;
  const auto result = run_campaign(options_of({.seeds = {1, 1'000'000'000'000}}), factory, trace_of_world,
                                   [&](const CampaignProgress& /*progress*/) {
                                     if (!sent) std::raise(SIGINT);
                                     sent = true;
                                   });
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->interrupted);
  EXPECT_THAT(result->stopped, HasSubstr("interrupted"));
  EXPECT_GE(result->seeds_run, 1U);
}

TEST(Perturbation, NumberZeroChangesNothingAndEveryOtherChangesEverything) {
  EXPECT_EQ(perturbation_numbered(0).arena_shift_pages, 0U);
  EXPECT_EQ(perturbation_numbered(0).hash_seed, 0U);
  for (std::uint64_t number = 1; number < 50; ++number) {
    const Perturbation perturbation = perturbation_numbered(number);
    EXPECT_NE(perturbation.arena_shift_pages, 0U);
    EXPECT_NE(perturbation.hash_seed, 0U);
    EXPECT_NE(perturbation.heap_fill, 0U);
    EXPECT_TRUE(perturbation.other_locale);
  }
}

}  // namespace
}  // namespace holdfast::sim
