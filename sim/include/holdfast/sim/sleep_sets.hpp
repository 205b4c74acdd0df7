// Every end state and every deadlock, depth first, without those schedules that only swap what is independent.
#pragma once

#include <vector>

#include "holdfast/sim/choice_path.hpp"
#include "holdfast/sim/strategy.hpp"

namespace holdfast::sim {

// Godefroid's sleep sets, without a bound. What a fiber is about to do touches the mutex, for a lock, or the runtime,
// one for all, for a call; a beginning touches nothing. What touches the same is dependent. Two mutexes may be taken
// for one, which only means less is left out. Sound where fibers share nothing but what their mutexes guard and what
// their calls reach; the clock is read between points, so that what only hangs on the time that another's calls took
// may be left out. For small programs.
class SleepSets final : public Strategy {
 public:
  [[nodiscard]] bool next_run() override;
  FiberId choose(const Decision& decision) override;

  // As in DepthFirst.
  [[nodiscard]] bool exhausted() const { return exhausted_; }
  [[nodiscard]] bool diverged() const { return diverged_; }
  [[nodiscard]] std::uint64_t schedules() const { return schedules_; }
  // Runs that were found to be no new schedule on their way.
  [[nodiscard]] std::uint64_t redundant() const { return redundant_; }

 private:
  void count_run();

  ChoicePath path_;
  std::vector<Choosable> asleep_;   // at the current decision
  std::vector<Choosable> choices_;  // at the current decision
  std::uint64_t schedules_ = 0;
  std::uint64_t redundant_ = 0;
  bool running_ = false;
  bool cut_ = false;  // the current run
  bool exhausted_ = false;
  bool diverged_ = false;
};

}  // namespace holdfast::sim
