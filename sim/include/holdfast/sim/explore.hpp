// Explores the interleavings of a trace's steps: one schedule after another, until one breaks a promise, all within the
// bound were tried, or the bound on their number is reached.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "holdfast/core/result.hpp"
#include "holdfast/core/time.hpp"
#include "holdfast/sim/executor.hpp"

namespace holdfast::sim {

enum class ExploreBy : std::uint8_t {
  random,     // at each point another step goes on by chance
  pct,        // random priorities, with `depth` - 1 points at which they change
  dfs,        // every schedule with at most so many preemptions
  sleep_sets  // every end state, without schedules that only swap what is independent
};
std::string_view name_of(ExploreBy by);
std::optional<ExploreBy> explore_by_named(std::string_view name);

struct ExploreOptions {
  ExploreBy by = ExploreBy::dfs;
  std::uint64_t preemptions_max = 2;  // dfs
  std::uint32_t depth = 3;            // pct
  std::uint64_t seed = 1;             // random, pct
  std::uint64_t runs_max = 0;         // 0 = no bound; random and pct have 1,000 then
  Nanos time_budget_ns = 0;           // real time, after which no more are begun; 0 = none
  Nanos hang_limit_ns = kMinute;      // of one run
  std::vector<Invariant> disabled;
};

// Until a schedule failed.
struct Exploration {
  std::uint64_t interleavings = 0;  // run to their end, the failing one among them
  std::uint64_t redundant = 0;      // begun, and found to be nothing new
  std::uint64_t end_states = 0;     // distinct ones
  std::uint64_t decisions_max = 0;  // of one run
  bool covered = false;             // every schedule within the bound
  bool diverged = false;            // the same choices led to other decisions: the harness failed
  // The trace with the switches of the schedule that broke a promise, crashed or hung.
  std::optional<Trace> failing;
  bool cut = false;  // it lacks the last switches: there were more than are kept
};

using ExploreProgress = std::function<void(std::uint64_t interleavings)>;

// In a child process, so that a crash or a hang has its schedule too. An error means that the harness failed. The
// caller has a single thread.
Result<Exploration> explore(const Trace& trace, const SystemFactory& factory, const ExploreOptions& options,
                            const ExploreProgress& progress = {});

}  // namespace holdfast::sim
