// The sweep: every call, every legal way, whatever the number of jobs; what fails is found, and what was not reached is
// named.
#include "holdfast/sim/sweep.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "forwarding_system.hpp"
#include "holdfast/sim/scenarios.hpp"
#include "holdfast/sim/trace_builder.hpp"

namespace holdfast::sim {
namespace {

using testing::HasSubstr;
using testing::Not;

// One chunk of one layer, without a latent: a put of two values in one plan.
Trace tiny() {
  TraceBuilder builder("tiny");
  builder.trace().segment_bytes = 16 * kSlotAlignment;
  builder.trace().grant_bytes = builder.trace().segment_bytes;
  const std::uint32_t g = builder.geometry({});
  builder.generate(builder.open({.world = 1, .geometry = g, .actions = {"0"}}));
  return builder.finish();
}

Trace scenario(std::string_view name) {
  Result<Trace> trace = scenario_named(name);
  EXPECT_TRUE(trace) << name;
  return trace ? *trace : Trace{};
}

SweepPlan plan_of(std::vector<Trace> traces, const SweepOptions& options = {},
                  const SystemFactory& factory = make_production_system) {
  Result<SweepPlan> plan = SweepPlan::make(std::move(traces), options, factory);
  EXPECT_TRUE(plan) << to_string(plan.error());
  return std::move(*plan);
}

std::vector<CallRecord> calls_of(const Trace& trace) {
  RunOptions options;
  options.keep_calls = true;
  return Executor(make_production_system).run(trace, options).calls;
}

CampaignResult run_all(const SweepPlan& plan, SweepTally& tally, std::uint32_t jobs = 1,
                       const SystemFactory& factory = make_production_system) {
  CampaignOptions options;
  options.seeds = {1, plan.cases()};
  options.jobs = jobs;
  options.recheck = {0, 1};
  options.failed_seeds_max = 0;
  options.run.keep_calls = true;
  options.on_result = [&](const SeedResult& result) { tally.add(result); };
  Result<CampaignResult> result =
      run_campaign(options, factory, [&](std::uint64_t number) { return plan.trace(number); });
  EXPECT_TRUE(result) << to_string(result.error());
  tally.add_failures(result->failures);
  return std::move(*result);
}

// ---- Ways

TEST(SweepWays, CoverTheFaultTableEachFaultOnceAndForGood) {
  for (const LegalFault& legal : legal_faults()) {
    const auto count = [&](std::span<const Way> ways, bool persistent) {
      return std::ranges::count_if(ways, [&](const Way& way) {
        return way.kind == legal.kind && way.code == legal.code && way.persistent == persistent;
      });
    };
    EXPECT_GE(count(ways_of(legal.call), false), 1) << name_of(legal.call) << " " << name_of(legal.kind);
    EXPECT_EQ(count(ways_of(legal.call), true), 1) << name_of(legal.call) << " " << name_of(legal.kind);
    EXPECT_EQ(count(plain_ways_of(legal.call), false), 1) << name_of(legal.call) << " " << name_of(legal.kind);
    EXPECT_EQ(count(plain_ways_of(legal.call), true), 0) << name_of(legal.call) << " " << name_of(legal.kind);
  }
}

TEST(SweepWays, HaveNothingThatTheFaultTableHasNot) {
  for (std::size_t i = 0; i < kCallCount; ++i) {
    const auto call = static_cast<Call>(i);
    for (const Way& way : ways_of(call)) EXPECT_TRUE(is_legal(call, way.kind, way.code)) << name_of(call);
  }
}

TEST(SweepWays, AreNeverTheSameTwice) {
  for (std::size_t i = 0; i < kCallCount; ++i) {
    const std::span<const Way> ways = ways_of(static_cast<Call>(i));
    for (std::size_t a = 0; a < ways.size(); ++a) {
      for (std::size_t b = a + 1; b < ways.size(); ++b) EXPECT_NE(ways[a], ways[b]) << name_of(static_cast<Call>(i));
    }
  }
}

// ---- Cases

TEST(SweepPlan, BeginsWithTheTraceItself) {
  const SweepPlan plan = plan_of({tiny()});
  EXPECT_TRUE(plan.at(1).faults.empty());
  EXPECT_EQ(plan.trace(1)->steps, tiny().steps);
}

TEST(SweepPlan, FailsEachCallOfTheTraceInEachOfItsWays) {
  const SweepPlan plan = plan_of({tiny()});
  std::vector<FaultPoint> expected;
  for (const CallRecord& call : calls_of(tiny())) {
    for (const Way& way : ways_of(call.call)) {
      expected.push_back({call.step, call.call, call.nth, way.kind, way.code, way.arg, way.persistent});
    }
  }
  ASSERT_FALSE(expected.empty());
  ASSERT_EQ(plan.cases(), 1 + expected.size());
  for (std::uint64_t number = 2; number <= plan.cases(); ++number) {
    ASSERT_EQ(plan.at(number).faults, std::vector{expected[number - 2]}) << number;
  }
}

TEST(SweepPlan, ListsTheCallsThatAWriteMakes) {
  std::map<Call, int> counts;
  for (const CallRecord& call : calls_of(tiny())) ++counts[call.call];
  EXPECT_EQ(counts[Call::local_fast_put_start], 1);
  EXPECT_EQ(counts[Call::copy_batch], 1);
  EXPECT_EQ(counts[Call::stream_synchronize], 1);
  EXPECT_EQ(counts[Call::local_fast_put_commit], 1);
  EXPECT_EQ(counts[Call::commit_wait], 1);
  EXPECT_EQ(counts[Call::host_register], 3) << "the second mapping is tried once as writable, once as read-only";
}

TEST(SweepPlan, EveryCaseOfEveryScenarioIsAValidTrace) {
  std::vector<Trace> traces;
  for (const Scenario& each : scenarios()) {
    if (each.name != "abcd") traces.push_back(scenario(each.name));
  }
  const SweepPlan plan = plan_of(std::move(traces));
  constexpr std::uint64_t kStride = 7;
  for (std::uint64_t number = 1; number <= plan.cases(); number += kStride) {
    const Status valid = validate_trace(*plan.trace(number));
    ASSERT_TRUE(valid) << number << ": " << to_string(valid.error());
  }
}

TEST(SweepPlan, AFaultTakesThePlaceOfTheTracesOwn) {
  const Trace own = scenario("failed_copy");
  ASSERT_FALSE(own.faults.empty());
  FaultPoint other = own.faults.front();
  other.kind = FaultKind::before;
  const Trace made = with_faults(own, std::span(&other, 1));
  EXPECT_EQ(made.faults.size(), own.faults.size());
  EXPECT_EQ(std::ranges::count(made.faults, other), 1);
  EXPECT_EQ(std::ranges::count(made.faults, own.faults.front()), 0);
}

TEST(SweepPlan, AnEventComesOnTopOfTheTracesOwnFault) {
  const Trace own = scenario("failed_copy");
  FaultPoint event = own.faults.front();
  event.kind = FaultKind::evict;
  event.code = 0;
  EXPECT_EQ(with_faults(own, std::span(&event, 1)).faults.size(), own.faults.size() + 1);
}

// ---- Pairs

TEST(SweepPlan, PairsTakeTheSecondFaultFromTheRunWithTheFirst) {
  const SweepPlan plan = plan_of({tiny()}, {.depth = 2});
  std::set<std::pair<Call, Call>> pairs;
  for (std::uint64_t number = 1; number <= plan.cases(); ++number) {
    const SweepCase at = plan.at(number);
    if (at.faults.size() == 2) pairs.emplace(at.faults[0].call, at.faults[1].call);
  }
  // A put is aborted only when something failed before.
  EXPECT_TRUE(pairs.contains({Call::copy_batch, Call::put_abort}));
  EXPECT_TRUE(pairs.contains({Call::stream_synchronize, Call::put_abort}));
  EXPECT_FALSE(pairs.contains({Call::commit_wait, Call::copy_batch})) << "it came before";
}

TEST(SweepPlan, PairsAreEachFirstFaultWithEachWayOfEachCallFromThereOn) {
  const Trace trace = tiny();
  const SweepPlan plan = plan_of({trace}, {.depth = 2});
  std::vector<std::vector<FaultPoint>> expected;
  for (const CallRecord& call : calls_of(trace)) {
    for (const Way& way : plain_ways_of(call.call)) {
      const FaultPoint first{call.step, call.call, call.nth, way.kind, way.code, way.arg, false};
      std::vector<CallRecord> calls = calls_of(with_faults(trace, std::span(&first, 1)));
      calls.erase(calls.begin(), std::ranges::find(calls, call));
      for (const CallRecord& later : calls) {
        for (const Way& second : plain_ways_of(later.call)) {
          const FaultPoint point{later.step, later.call, later.nth, second.kind, second.code, second.arg, false};
          if (!same_place(first, point)) expected.push_back({first, point});
        }
      }
    }
  }
  ASSERT_EQ(plan.pairs(0), expected.size());
  const std::uint64_t begin = plan.cases() - plan.pairs(0);
  constexpr std::uint64_t kStride = 13;
  for (std::uint64_t i = 0; i < expected.size(); i += kStride) {
    ASSERT_EQ(plan.at(begin + 1 + i).faults, expected[i]) << i;
  }
  EXPECT_EQ(plan.at(plan.cases()).faults, expected.back());
}

TEST(SweepPlan, ALongTraceHasNoPairsButAllSingles) {
  const SweepPlan bounded = plan_of({tiny()}, {.depth = 2, .pairs_max = 1});
  EXPECT_TRUE(bounded.too_long_for_pairs(0));
  EXPECT_EQ(bounded.pairs(0), 0U);
  EXPECT_EQ(bounded.cases(), plan_of({tiny()}).cases());
}

// ---- Runs

TEST(Sweep, IsTheSameWithAnyNumberOfJobs) {
  const std::vector<Trace> traces{tiny(), scenario("full_hit")};
  const SweepPlan one = plan_of(traces);
  const SweepPlan three = plan_of(traces, {.jobs = 3});
  ASSERT_EQ(one.cases(), three.cases());
  SweepTally tally_of_one(one);
  SweepTally tally_of_three(three);
  const CampaignResult by_one = run_all(one, tally_of_one);
  const CampaignResult by_three = run_all(three, tally_of_three, 3);
  EXPECT_EQ(by_one.log_hash, by_three.log_hash);
  EXPECT_EQ(by_one.faults.cells, by_three.faults.cells);
  EXPECT_EQ(tally_of_one.fired(), tally_of_three.fired());
}

TEST(Sweep, HoldsForAWriteAndAResume) {
  const SweepPlan plan = plan_of({tiny(), scenario("full_hit")});
  SweepTally tally(plan);
  const CampaignResult result = run_all(plan, tally);
  EXPECT_TRUE(result.failures.empty());
  EXPECT_EQ(result.seeds_run, plan.cases());
  EXPECT_GT(tally.fired(), plan.cases() / 2);
}

TEST(Sweep, HoldsForEveryPairOfAWriteAndOfAWarmUp) {
  const SweepPlan plan = plan_of({tiny(), scenario("warm_up")}, {.depth = 2});
  SweepTally tally(plan);
  EXPECT_TRUE(run_all(plan, tally).failures.empty());
}

// A store that keeps the failures of puts to itself.
class Silent final : public ForwardingSystem {
 public:
  using ForwardingSystem::ForwardingSystem;
  Result<IngestOutcome> chunk_finalized(SessionId session) override {
    Result<IngestOutcome> outcome = ForwardingSystem::chunk_finalized(session);
    return outcome ? std::move(*outcome) : IngestOutcome{IngestResult::uncached, IngestResult::uncached, {}};
  }
};

TEST(Sweep, FindsAStoreThatKeepsFailuresToItselfAndItsTraceFailsAgain) {
  const SystemFactory silent = [](Ports& ports, ClaimListener& listener, const SystemOptions& options) {
    return std::make_unique<Silent>(make_production_system(ports, listener, options));
  };
  const SweepPlan plan = plan_of({tiny()}, {}, silent);
  SweepTally tally(plan);
  const CampaignResult result = run_all(plan, tally, 1, silent);
  ASSERT_FALSE(result.failures.empty());
  std::uint64_t failed = 0;
  for (const SweepRow& row : tally.rows()) {
    for (const SweepCounts& counts : row.kinds) failed += counts.failed;
  }
  EXPECT_EQ(failed, result.failures.size());

  const std::string file = write_trace(*plan.trace(result.failures.front().seed));
  const Result<Trace> replayed = read_trace(file, "failure");
  ASSERT_TRUE(replayed) << to_string(replayed.error());
  const RunResult again = Executor(silent).run(*replayed);
  ASSERT_EQ(again.violations.size(), result.failures.front().violations.size());
  EXPECT_EQ(again.violations.front().invariant, Invariant::error_told);
  EXPECT_EQ(again.violations.front().message, result.failures.front().violations.front().message);
}

// ---- What was reached

SweepFigures judged(const SweepPlan& plan, const CampaignResult& result, const SweepTally& tally) {
  SweepFigures figures;
  figures.complete = true;
  for (std::size_t i = 0; i < plan.traces(); ++i) figures.scenarios.push_back(plan.name(i));
  figures.rows = tally.rows();
  judge_cells(result.faults, tally, figures);
  return figures;
}

class SweepCells : public testing::Test {
 protected:
  const SweepPlan plan = plan_of({tiny()});
  SweepTally tally{plan};
  const CampaignResult result = run_all(plan, tally);
  const SweepFigures figures = judged(plan, result, tally);
};

TEST_F(SweepCells, EachIsReachedOrAGapOrOfACallThatWasNeverMade) {
  EXPECT_GT(figures.cells_reached, 0U);
  EXPECT_EQ(figures.cells_reached + figures.gaps.size() + figures.never_made.size(), kLegalCellCount);
}

TEST_F(SweepCells, AGapIsNamedByCallKindCodeAndState) {
  std::vector<std::string> names;
  for (const LegalCell& cell : figures.gaps) names.push_back(describe(cell));
  EXPECT_THAT(names, testing::Contains("local_fast_put_start before 4001 (committed)"));
  EXPECT_THAT(names, Not(testing::Contains("local_fast_put_start before 4001 (absent)"))) << "it was reached";
  EXPECT_THAT(sweep_tables(figures), HasSubstr("  local_fast_put_start before 4001 (committed)\n"));
}

TEST_F(SweepCells, ACallThatTheStoreNeverMakesIsNoGap) {
  EXPECT_THAT(names_never_made(figures), testing::Contains("get_start"));
  EXPECT_TRUE(
      std::ranges::none_of(figures.gaps, [](const LegalCell& cell) { return cell.fault.call == Call::get_start; }));
  EXPECT_THAT(sweep_tables(figures), HasSubstr("never called by this store here: "));
}

TEST_F(SweepCells, TheTableHasARowForEachCallWithItsCasesAndItsVerdict) {
  std::uint64_t cases = 0;
  for (const SweepRow& row : figures.rows) {
    for (const SweepCounts& counts : row.kinds) cases += counts.cases;
  }
  EXPECT_EQ(cases + 1, plan.cases()) << "all but the trace itself";
  const std::string text = sweep_tables(figures);
  EXPECT_THAT(text, HasSubstr("tiny "));
  EXPECT_THAT(text, testing::ContainsRegex(" copy_batch +6 +4 +2 +4 +3 +2 +[0-9]+ held\n"));
}

}  // namespace
}  // namespace holdfast::sim
