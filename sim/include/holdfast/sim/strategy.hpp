// Who goes on at each point where a scheduler may switch.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace holdfast::sim {

class Scheduler;

// In order of spawning, from 0.
using FiberId = std::uint32_t;
inline constexpr FiberId kNoFiber = std::numeric_limits<FiberId>::max();

// A choice other than the default, which is to go on: the fiber that runs while it can, else the lowest number.
struct Switch {
  FiberId from = kNoFiber;  // came to a point or ended; kNoFiber where a run begins
  std::uint64_t nth = 0;    // of the decisions of `from`, from 0
  FiberId to = kNoFiber;
  friend bool operator==(const Switch&, const Switch&) = default;
};

// Where a fiber comes to a point or ends, and where a run begins.
struct Decision {
  const Scheduler& scheduler;  // knows what each fiber is about to do, and which mutexes it holds
  std::uint64_t number;        // from 0, since the reset
  FiberId from;                // as in Switch, and so is nth
  std::uint64_t nth;
  bool from_can_go_on;                // to choose another is a preemption
  FiberId go_on;                      // the default
  std::span<const FiberId> runnable;  // ascending, at least one
};

// Goes through one schedule after another: `next_run`, then a choice for each decision of a run, and again. A run may
// take several resets of the scheduler. Given the same choices, a program must come to the same decisions.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // Before each run. False when nothing is left to try.
  [[nodiscard]] virtual bool next_run() = 0;
  // One of `decision.runnable`. kNoFiber: nothing new comes of this run, its rest may go on by default.
  virtual FiberId choose(const Decision& decision) = 0;
};

// The default at every decision.
class GoOn final : public Strategy {
 public:
  [[nodiscard]] bool next_run() override { return true; }
  FiberId choose(const Decision& decision) override { return decision.go_on; }
};

}  // namespace holdfast::sim
