// The scenarios that people name are valid, each shows the situation that its name says, and the acceptance scenario
// has the seed's geometry.
#include "holdfast/sim/scenarios.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "holdfast/sim/campaign.hpp"
#include "holdfast/sim/executor.hpp"

namespace holdfast::sim {
namespace {

RunResult run(std::string_view name, Executor& executor) {
  const Result<Trace> trace = scenario_named(name);
  EXPECT_TRUE(trace) << name;
  return executor.run(*trace);
}

// What shows that a scenario is the situation that it is named for.
struct Shown {
  std::string_view name;
  std::uint64_t generated = 0;
  std::uint64_t hit = 0;
  std::vector<Mark> marks;
};

std::vector<Shown> shown() {
  using enum Mark;
  return {
      {"abcd", 7, 5, {full_hit, fork_resumed}},
      {"cold_write", 1, 0, {}},
      {"one_size_write", 1, 0, {put_one_size}},
      {"mixed_write", 1, 1, {put_three_sizes, full_hit}},
      {"quantised", 6, 6, {put_three_sizes, scales_restored, full_hit, evicted, restart_resumed_warm}},
      {"repeated_write", 2, 0, {put_ready_node}},
      {"two_writers", 4, 0, {put_written_elsewhere, second_plan_refused, abort_nothing_submitted, put_ready_node}},
      {"key_in_flight", 2, 0, {put_key_in_flight}},
      {"adopted_leftover", 3, 0, {commit_transport_stored, put_refused_unsettled, leftover_adopted}},
      {"leftover_of_another_length", 2, 0, {commit_transport_stored}},
      {"leftovers", 2, 0, {leftovers_removed}},
      {"leftovers_repeated", 2, 0, {leftover_removal_repeated}},
      {"failed_copy", 4, 0, {abort_after_partial_batch, abort_after_later_wait}},
      {"stuck_copy", 3, 0, {plan_quarantined, put_refused_unsettled}},
      {"dead_context", 1, 0, {plan_quarantined, quarantine_torn_down}},
      {"old_plan", 3, 0, {plan_aborted_for_age, slot_freed_under_plan}},
      {"lost_reservation", 3, 0, {put_written_elsewhere, put_start_lost_returned}},
      {"reserved_full", 3, 0, {put_written_elsewhere}},
      {"no_free_slots", 3, 0, {evicted}},
      {"orphans", 4, 0, {}},
      {"full_of_orphans", 4, 0, {}},
      {"memory_tier", 4, 3, {full_hit, evicted, restart_resumed_cold}},
      {"overlapped", 3, 2, {batches_overlapped}},
      {"overlapped_beside", 3, 2, {batches_overlapped, copied_beside_the_engine}},
      {"synchronous_beside", 3, 2, {copied_beside_the_engine}},
      {"memory_tier_beside", 3, 2, {copied_beside_the_engine}},
      {"overlapped_failures", 8, 0, {batches_overlapped, event_refused}},
      {"overlapped_stuck", 3, 0, {plan_quarantined, put_refused_unsettled}},
      {"vanished_part", 3, 1, {transfer_not_found, shorter_prefix}},
      {"full_hit", 2, 2, {full_hit, ring_full_length}},
      {"two_of_three", 3, 2, {ring_full_length}},
      {"fork", 4, 2, {fork_resumed}},
      {"full_length_ring", 2, 3, {full_hit, ring_full_length}},
      {"ring_exactly_full", 2, 2, {ring_exactly_full}},
      {"rolled", 3, 3, {ring_just_rolled}},
      {"deep_rolled", 6, 6, {ring_deep_rolled}},
      {"wide_sink", 4, 4, {sink_wider_than_chunk}},
      {"window_minus_one", 2, 1, {}},
      {"window_exact", 3, 2, {}},
      {"window_plus_one", 4, 3, {ring_just_rolled}},
      {"large_values", 2, 2, {full_hit}},
      {"not_yet_routed", 3, 3, {full_hit, leftover_removal_repeated}},
      {"break_even", 3, 2, {break_even_refused, full_hit}},
      {"mistaken_layout", 1, 0, {length_differs}},
      {"evict_then_resume", 6, 2, {evicted, store_evicted_ready, blob_missing, shorter_prefix}},
      {"evict_held", 3, 1, {evict_refused_pinned, evict_refused_referenced, evicted}},
      {"evict_failed", 1, 0, {eviction_failed_retried, removal_lost_repeated}},
      {"evict_early", 1, 0, {leftover_removal_repeated}},
      {"make_room", 2, 0, {evicted}},
      {"two_marks", 4, 2, {fork_resumed}},
      {"idle_world", 3, 0, {}},
      {"store_evicts_latent", 3, 1, {latent_missing, store_evicted_ready}},
      {"store_evicts_between", 3, 1, {store_evicted_between, transfer_not_found, shorter_prefix}},
      {"damaged", 6, 6, {corrupt_found, shorter_prefix, restart_resumed_warm}},
      {"handle_times_out", 1, 2, {handle_timed_out}},
      {"restart_during_put", 4, 0, {restart_during_put, restart_with_plan_open}},
      {"restart_before_wait", 2, 0, {restart_before_wait}},
      {"restart_during_get", 3, 0, {restart_during_get, retry_exhausted}},
      {"owner_restart", 2, 1, {retry_exhausted, full_hit}},
      {"hints_above_a_gap", 8, 0, {hint_gone}},
      {"hints_of_a_snapshot", 6, 0, {hint_gone, hint_confirmed}},
      {"many_lost_at_once", 8, 0, {retry_exhausted}},
      {"probed_in_turn", 3, 0, {probed_gone}},
      {"warm_up", 0, 0, {registered_read_only}},
      {"warm_up_cancelled", 1, 0, {warm_up_cancelled, registered_read_only}},
      {"snapshot_failed", 1, 1, {restart_resumed_warm}},
      {"registration_refused", 2, 0, {registration_rolled_back, second_mapping_refused}},
      {"registered_by_others", 0, 0, {}},
      {"snapshot_restart", 5, 3, {restart_resumed_warm, fork_resumed}},
      {"torn_snapshot", 2, 0, {torn_snapshot_refused, restart_resumed_cold}},
  };
}

TEST(Scenarios, EachShowsWhatItIsNamedFor) {
  Executor executor(make_production_system);
  const std::vector<Shown> all = shown();
  EXPECT_EQ(all.size(), scenarios().size());
  for (const Shown& expected : all) {
    const RunResult result = run(expected.name, executor);
    EXPECT_EQ(result.chunks_generated, expected.generated) << expected.name;
    EXPECT_EQ(result.chunks_hit, expected.hit) << expected.name;
    EXPECT_EQ(result.steps_skipped, 0U) << expected.name;
    for (const Mark mark : expected.marks) {
      EXPECT_GT(result.marks.counts[static_cast<std::size_t>(mark)], 0U) << expected.name << ": " << name_of(mark);
    }
  }
}

TEST(Scenarios, EachHoldsAndEveryFaultOfItsOwnFires) {
  Executor executor(make_production_system);
  for (const Scenario& scenario : scenarios()) {
    const RunResult result = run(scenario.name, executor);
    for (const Violation& violation : result.violations) {
      ADD_FAILURE() << scenario.name << ": " << name_of(violation.invariant) << ": " << violation.message;
    }
    EXPECT_GE(result.faults.total, scenario_named(scenario.name)->faults.size()) << scenario.name;
  }
}

TEST(Scenarios, EachIsDeterministic) {
  Executor plain(make_production_system);
  Executor perturbed(make_production_system, perturbation_numbered(1));
  for (const Scenario& scenario : scenarios()) {
    EXPECT_EQ(run(scenario.name, plain).log_hash, run(scenario.name, perturbed).log_hash) << scenario.name;
  }
}

TEST(Scenarios, ReachEveryRareMark) {
  MarkCounts marks;
  Executor executor(make_production_system);
  for (const Scenario& scenario : scenarios()) {
    const RunResult result = run(scenario.name, executor);
    for (std::size_t i = 0; i < kMarkCount; ++i) marks.counts[i] += result.marks.counts[i];
  }
  for (std::size_t i = 0; i < kMarkCount; ++i) {
    const auto mark = static_cast<Mark>(i);
    EXPECT_TRUE(!is_rare(mark) || marks.counts[i] > 0) << name_of(mark);
  }
}

TEST(Scenarios, EachIsAValidTraceOfItsName) {
  for (const Scenario& scenario : scenarios()) {
    const Result<Trace> trace = scenario_named(scenario.name);
    ASSERT_TRUE(trace) << scenario.name;
    const Status valid = validate_trace(*trace);
    EXPECT_TRUE(valid) << scenario.name << ": " << to_string(valid.error());
    EXPECT_EQ(trace->name, scenario.name);
  }
}

TEST(Scenarios, EachSurvivesItsFile) {
  for (const Scenario& scenario : scenarios()) {
    const Result<Trace> trace = scenario_named(scenario.name);
    const Result<Trace> back = read_trace(write_trace(*trace), "scenario");
    ASSERT_TRUE(back) << to_string(back.error());
    EXPECT_EQ(*back, *trace) << scenario.name;
  }
}

TEST(Scenarios, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const Scenario& scenario : scenarios()) EXPECT_TRUE(names.insert(scenario.name).second) << scenario.name;
}

TEST(Scenarios, AnUnknownNameIsAnError) {
  const Result<Trace> trace = scenario_named("abcde");
  ASSERT_FALSE(trace);
  EXPECT_THAT(to_string(trace.error()), testing::HasSubstr("there is no scenario \"abcde\""));
}

TEST(Scenarios, AbcdHasFourSessionsOfThreeChunksOfWhichTwoAreShared) {
  const Result<Trace> trace = scenario_named("abcd");
  ASSERT_TRUE(trace);
  std::vector<std::vector<std::string>> actions;
  std::vector<bool> resumed;
  std::vector<int> generated;
  for (const Step& step : trace->steps) {
    if (step.kind == StepKind::open) {
      actions.push_back(step.actions);
      resumed.push_back(false);
      generated.push_back(0);
    }
    if (step.kind == StepKind::resume) resumed.back() = true;
    if (step.kind == StepKind::generate) ++generated.back();
  }
  ASSERT_EQ(actions.size(), 4U);
  for (const auto& of_session : actions) EXPECT_EQ(of_session.size(), 3U);
  EXPECT_EQ(actions[1], actions[0]);
  EXPECT_EQ(actions[3], actions[2]);
  EXPECT_TRUE(std::equal(actions[0].begin(), actions[0].begin() + 2, actions[2].begin()));
  EXPECT_NE(actions[2][2], actions[0][2]);
  EXPECT_EQ(resumed, (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(generated, (std::vector<int>{3, 0, 1, 3}));
}

TEST(Scenarios, AbcdHasTheRealModelsLayersRingAndFrames) {
  const Result<Trace> trace = scenario_named("abcd");
  const Geometry& geometry = trace->geometries.front();
  EXPECT_EQ(geometry.n_layers, 40U);
  EXPECT_EQ(geometry.ring_frames, 7U);
  EXPECT_EQ(geometry.sink_frames, 3U);
  EXPECT_FALSE(geometry.full_length);
  constexpr std::uint32_t kChunks = 3;
  EXPECT_EQ(1 + 4 * kChunks * geometry.frames_per_chunk, 37U);
}

}  // namespace
}  // namespace holdfast::sim
