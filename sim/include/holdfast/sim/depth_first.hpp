// Every schedule with at most so many preemptions, depth first and without pruning.
#pragma once

#include <limits>
#include <vector>

#include "holdfast/sim/choice_path.hpp"
#include "holdfast/sim/strategy.hpp"

namespace holdfast::sim {

// To switch away from a fiber that could go on is a preemption. Where the fiber that ran ends or waits, and where a run
// begins, any choice is free. To prune under a bound would be unsound: the schedule that was left out may be the cheap
// one.
class DepthFirst final : public Strategy {
 public:
  static constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

  explicit DepthFirst(std::uint64_t preemptions_max) : preemptions_max_(preemptions_max) {}

  [[nodiscard]] bool next_run() override;
  FiberId choose(const Decision& decision) override;

  // Nothing within the bound is left. Never once a run came to other decisions than the same choices did before.
  [[nodiscard]] bool exhausted() const { return exhausted_; }
  [[nodiscard]] bool diverged() const { return diverged_; }
  // Run to their end, with exactly as many preemptions as the index says, and in all.
  [[nodiscard]] const std::vector<std::uint64_t>& schedules_by_preemptions() const { return schedules_; }
  [[nodiscard]] std::uint64_t schedules() const;

 private:
  void count_run();

  std::uint64_t preemptions_max_;
  ChoicePath path_;
  std::vector<Choosable> choices_;  // at the current decision
  std::vector<std::uint64_t> schedules_;
  std::uint64_t preemptions_ = 0;  // in the current run
  bool running_ = false;
  bool exhausted_ = false;
  bool diverged_ = false;
};

}  // namespace holdfast::sim
