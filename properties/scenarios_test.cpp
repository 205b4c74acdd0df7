// The scenarios that people name are valid, and the acceptance scenario has the seed's geometry.
#include "holdfast/sim/scenarios.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace holdfast::sim {
namespace {

TEST(Scenarios, EachIsAValidTraceWithoutFaults) {
  for (const Scenario& scenario : scenarios()) {
    const Result<Trace> trace = scenario_named(scenario.name);
    ASSERT_TRUE(trace) << scenario.name;
    const Status valid = validate_trace(*trace);
    EXPECT_TRUE(valid) << scenario.name << ": " << to_string(valid.error());
    EXPECT_TRUE(trace->faults.empty()) << scenario.name;
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
