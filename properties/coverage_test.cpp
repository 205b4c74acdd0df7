// Coverage-guided campaigns: what reached something new is kept and changed, and nothing depends on who ran what.
#include "holdfast/sim/coverage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "forwarding_system.hpp"

namespace holdfast::sim {
namespace {

const Profile& guided() { return *profile_named("coverage"); }

CoverageOptions some_seeds(std::uint64_t count) {
  CoverageOptions options;
  options.campaign.seeds = {1, count};
  options.campaign.recheck = {0, 1};
  options.generation_seeds = 32;
  return options;
}

// What a run would have had to do to reach just these.
RunResult reaching(std::initializer_list<std::size_t> cells, std::initializer_list<Mark> marks, std::uint64_t cost) {
  RunResult run;
  for (const std::size_t cell : cells) run.faults.cells[cell] = 1;
  for (const Mark mark : marks) run.marks.reach(mark);
  run.runtime_calls = cost;
  return run;
}

std::shared_ptr<const Trace> some_trace(std::uint64_t seed) {
  return std::make_shared<const Trace>(generate(seed, guided()));
}

RanTrace ran(std::uint64_t seed, const char* profile = "swarm") {
  static Executor executor(make_production_system);
  auto trace = std::make_shared<const Trace>(generate(seed, *profile_named(profile)));
  RunOptions options;
  options.keep_calls = true;
  const RunResult run = executor.run(*trace, options);
  return {trace, last_calls_of(run.calls)};
}

TEST(CoverageCorpus, KeepsWhatReachesACellAMarkOrAPairThatIsNew) {
  CoverageCorpus corpus;
  EXPECT_TRUE(corpus.offer(some_trace(1), reaching({3}, {Mark::full_hit}, 10)));
  EXPECT_FALSE(corpus.offer(some_trace(2), reaching({3}, {Mark::full_hit}, 10)));
  EXPECT_TRUE(corpus.offer(some_trace(3), reaching({4}, {}, 10)));
  EXPECT_TRUE(corpus.offer(some_trace(4), reaching({}, {Mark::evicted}, 10)));
  EXPECT_TRUE(corpus.offer(some_trace(5), reaching({}, {Mark::evicted, Mark::full_hit}, 10))) << "two marks in one run";
  EXPECT_TRUE(corpus.offer(some_trace(6), reaching({4}, {Mark::full_hit}, 10))) << "a cell and a mark in one run";
  EXPECT_FALSE(corpus.offer(some_trace(7), reaching({}, {Mark::evicted, Mark::full_hit}, 10)));
  const CoverageFigures figures = corpus.figures();
  EXPECT_EQ(figures.cells, 2U);
  EXPECT_EQ(figures.marks, 2U);
  EXPECT_EQ(figures.pairs, 3U);
  EXPECT_EQ(figures.corpus, 5U);
}

TEST(CoverageCorpus, ACheaperTraceTakesOverAndTheDearOneIsDropped) {
  CoverageCorpus corpus;
  corpus.offer(some_trace(1), reaching({3}, {Mark::full_hit}, 100));
  EXPECT_FALSE(corpus.offer(some_trace(2), reaching({3}, {Mark::full_hit}, 90)));
  EXPECT_EQ(corpus.figures().corpus, 1U);
  corpus.offer(some_trace(3), reaching({3}, {}, 10));  // the second is still the cheapest with the mark
  EXPECT_EQ(corpus.figures().corpus, 2U);
}

TEST(CoverageCorpus, WhenFullOnlyACellOrAMarkIsWorthMore) {
  CoverageCorpus corpus(1);
  corpus.offer(some_trace(1), reaching({3}, {Mark::full_hit}, 10));
  EXPECT_TRUE(corpus.offer(some_trace(2), reaching({4}, {}, 10)));
  EXPECT_FALSE(corpus.offer(some_trace(3), reaching({4}, {Mark::full_hit}, 10)));
  EXPECT_EQ(corpus.figures().corpus, 2U);
}

TEST(CoverageCorpus, WithoutAnythingKeptATraceIsTheProfiles) {
  EXPECT_EQ(CoverageCorpus().make(5, guided()), generate(5, guided()));
}

TEST(CoverageCorpus, MostTracesAreMadeOfWhatWasKept) {
  CoverageCorpus corpus;
  const RanTrace kept = ran(3);
  RunResult run = reaching({3}, {Mark::full_hit}, 10);
  corpus.offer(kept.trace, run);
  int fresh = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const Trace trace = corpus.make(seed, guided());
    ASSERT_EQ(trace, corpus.make(seed, guided())) << seed;
    ASSERT_EQ(trace.seed, seed);
    fresh += trace == generate(seed, guided()) ? 1 : 0;
  }
  EXPECT_GT(fresh, 20);
  EXPECT_LT(fresh, 160);
}

TEST(TraceMutator, TheLastCallOfEachStepAndKindIsKept) {
  const std::vector<CallRecord> calls{
      {1, Call::remove, 0}, {2, Call::remove, 0}, {1, Call::remove, 1}, {1, Call::get_start, 0}};
  const std::vector<CallRecord> last{{1, Call::get_start, 0}, {1, Call::remove, 1}, {2, Call::remove, 0}};
  EXPECT_EQ(last_calls_of(calls), last);
}

TEST(TraceMutator, EveryMutantIsValidAndMostDiffer) {
  int same = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const RanTrace parent = ran(seed, seed % 2 == 0 ? "default" : "swarm");
    const RanTrace other = ran(seed + 1);
    for (std::uint64_t child = 0; child < 40; ++child) {
      const LegalFault* wanted = child % 2 == 0 ? nullptr : &legal_faults()[child % legal_faults().size()];
      const Trace mutant = mutate(parent, other, wanted, Rng(child));
      const Status valid = validate_trace(mutant);
      ASSERT_TRUE(valid) << seed << ", " << child << ": " << to_string(valid.error());
      same += mutant == *parent.trace ? 1 : 0;
    }
  }
  EXPECT_LT(same, 60 * 40 / 20);
}

// In the parent's steps, so that nothing but the mutant's own steps could have others.
TEST(TraceMutator, NewFaultsAreAtCallsThatTheParentMade) {
  const RanTrace parent = ran(1, "calm");
  ASSERT_TRUE(parent.trace->faults.empty());
  int faults = 0;
  for (std::uint64_t child = 0; child < 500; ++child) {
    const Trace mutant = mutate(parent, parent, nullptr, Rng(child));
    for (const FaultPoint& fault : mutant.faults) {
      const bool made = std::ranges::any_of(parent.last_calls, [&](const CallRecord& last) {
        return last.step == fault.step && last.call == fault.call &&
               fault.nth <= last.nth + 1;  // it may move on by one
      });
      const bool of_parent =
          std::ranges::any_of(parent.trace->steps, [&](const Step& step) { return step.id == fault.step; });
      if (!of_parent) continue;
      ++faults;
      ASSERT_TRUE(made) << child << ": " << name_of(fault.call) << " of step " << fault.step;
    }
  }
  EXPECT_GT(faults, 300);
}

TEST(TraceMutator, AWantedFaultTakesThePlaceOfOtherFaultsOfItsCall) {
  const LegalFault& wanted =
      legal_cells()[cell_index(Call::commit_wait, FaultKind::part, -608, CallState::stored).value()].fault;
  const auto is_wanted = [&](const FaultPoint& fault) {
    return fault.call == wanted.call && fault.kind == wanted.kind && fault.code == wanted.code;
  };
  RanTrace parent = ran(1, "calm");
  int with = 0;
  for (std::uint64_t child = 0; child < 200; ++child) {
    const Trace mutant = mutate(parent, parent, &wanted, Rng(child));
    with += std::ranges::any_of(mutant.faults, is_wanted) ? 1 : 0;
  }
  EXPECT_GT(with, 150);

  Trace failing = *parent.trace;
  const CallRecord place = *std::ranges::find(parent.last_calls, Call::commit_wait, &CallRecord::call);
  failing.faults.push_back({place.step, Call::commit_wait, place.nth, FaultKind::late, 0, 1000, false});
  parent.trace = std::make_shared<const Trace>(failing);
  int in_place = 0;
  for (std::uint64_t child = 0; child < 200; ++child) {
    const Trace mutant = mutate(parent, parent, &wanted, Rng(child));
    in_place += std::ranges::any_of(mutant.faults, [&](const FaultPoint& fault) {
      return is_wanted(fault) && fault.step == place.step && fault.nth == place.nth;
    });
  }
  EXPECT_GT(in_place, 100);
}

TEST(CoverageCampaign, TheResultDependsNeitherOnTheJobsNorOnTheDay) {
  CoverageOptions options = some_seeds(160);
  const auto one = run_coverage(options, make_production_system, guided());
  options.campaign.jobs = 3;
  const auto three = run_coverage(options, make_production_system, guided());
  ASSERT_TRUE(one.has_value() && three.has_value());
  EXPECT_EQ(one->campaign.seeds_run, 160U);
  EXPECT_EQ(one->campaign.log_hash, three->campaign.log_hash);
  EXPECT_EQ(one->campaign.faults.cells, three->campaign.faults.cells);
  EXPECT_EQ(one->campaign.marks.counts, three->campaign.marks.counts);
  EXPECT_EQ(one->over_time, three->over_time);
  EXPECT_TRUE(one->campaign.failures.empty());
}

TEST(CoverageCampaign, TellsWhatItReachedOverTime) {
  const auto result = run_coverage(some_seeds(256), make_production_system, guided());
  ASSERT_TRUE(result.has_value());
  ASSERT_GT(result->over_time.size(), 3U);
  for (std::size_t i = 1; i < result->over_time.size(); ++i) {
    EXPECT_LT(result->over_time[i - 1].seeds, result->over_time[i].seeds);
    EXPECT_LE(result->over_time[i - 1].cells, result->over_time[i].cells);
  }
  EXPECT_EQ(result->over_time.back().seeds, 256U);
  EXPECT_EQ(result->over_time.back().cells, result->campaign.faults.cells_reached());
}

// A store that claims what it never put, whenever a session opens.
class Liar final : public ForwardingSystem {
 public:
  Liar(std::unique_ptr<SystemUnderTest> inner, ClaimListener& listener)
      : ForwardingSystem(std::move(inner)), listener_(listener) {}
  Status open_session(SessionId session, const SessionSpec& spec, Engine& engine) override {
    if (spec.world == 1) listener_.on_claim(Claim::kv, "bad:claim", {1}, 256);
    return ForwardingSystem::open_session(session, spec, engine);
  }

 private:
  ClaimListener& listener_;
};

TEST(CoverageCampaign, EndsAfterTenFailedSeedsAndLeavesTheirTraces) {
  const SystemFactory liars = [](Ports& ports, ClaimListener& listener, const SystemOptions& options) {
    return std::make_unique<Liar>(make_production_system(ports, listener, options), listener);
  };
  CoverageOptions options = some_seeds(100);
  options.generation_seeds = 4;
  const auto result = run_coverage(options, liars, guided());
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->campaign.seeds_run, 10U);
  EXPECT_EQ(result->campaign.stopped, "10 seeds failed; --keep-going runs them all");
  ASSERT_EQ(result->failed.size(), 10U);
  for (const auto& [seed, trace] : result->failed) {
    EXPECT_EQ(trace->seed, seed);
    Executor executor(liars);
    EXPECT_FALSE(executor.run(*trace).violations.empty());
  }
  EXPECT_EQ(result->over_time.back().corpus, 0U) << "what fails is not kept";
}

}  // namespace
}  // namespace holdfast::sim
