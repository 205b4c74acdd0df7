#include "random_switches.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/sim/rng.hpp"
#include "lanes.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kSeedOfSwitches = 0x73776974636865ULL;  // draws of its own, whatever the seed drew before
constexpr std::uint64_t kTogetherMax = 8;
constexpr std::uint64_t kTogetherSwitchesMax = 24;  // of steps that run together
constexpr std::uint64_t kDoublingsMax = 5;

// Nothing can be done about time that passes between the last look at a plan's age and its call: what may pass in the
// middle of steps is, all in all, less than what the plan's owner waits longer.
constexpr std::uint64_t kSleepMax = (kPlanTimeout - 20 * kMinute) / kTogetherMax;

bool is_by_itself(const Step& step) {
  return step.kind == StepKind::restart || (step.kind == StepKind::pass_time && step.amount > kSleepMax);
}

// From one lane to another, and on from there: a step that others of its lane come before cannot begin.
void draw_switches(Trace& trace, std::span<const Step> together, Rng& rng) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_lane;
  for (const Step& step : together) by_lane[lane_of(trace, step)].push_back(step.id);
  if (by_lane.size() < 2) return;
  std::vector<std::vector<std::uint32_t>> lanes;
  for (auto& [lane, steps] : by_lane) lanes.push_back(std::move(steps));
  std::map<std::uint32_t, std::uint32_t> decided;  // a step's switches are at one decision after the other
  const auto step_of = [&](std::uint64_t lane) {
    return lanes[lane][rng.below(std::min<std::size_t>(lanes[lane].size(), 2))];
  };
  std::uint64_t lane = 0;
  std::uint32_t from = lanes.front().front();
  for (std::uint64_t left = 1 + rng.below(kTogetherSwitchesMax); left > 0; --left) {
    lane = (lane + 1 + rng.below(lanes.size() - 1)) % lanes.size();
    const std::uint32_t to = step_of(lane);
    std::uint32_t& nth = decided[from];
    nth += static_cast<std::uint32_t>(rng.below(std::uint64_t{2} << rng.below(kDoublingsMax)));
    trace.switches.push_back({from, nth++, to});
    from = to;
  }
}

}  // namespace

void add_switches(Trace& trace, std::uint64_t seed) {
  Rng rng(seed ^ kSeedOfSwitches);
  std::erase_if(trace.faults,
                [](const FaultPoint& fault) { return fault.kind == FaultKind::time && fault.arg > kSleepMax; });
  for (std::size_t begin = 0; begin < trace.steps.size();) {
    std::size_t end = std::min<std::size_t>(begin + 1 + rng.below(kTogetherMax), trace.steps.size());
    for (std::size_t i = begin; i < end; ++i) {
      if (is_by_itself(trace.steps[i])) end = std::max(i, begin + 1);
    }
    trace.steps[begin].join = begin > 0;
    draw_switches(trace, std::span(trace.steps).subspan(begin, end - begin), rng);
    begin = end;
  }
}

}  // namespace holdfast::sim
