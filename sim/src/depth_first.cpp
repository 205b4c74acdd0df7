#include "holdfast/sim/depth_first.hpp"

#include <numeric>

namespace holdfast::sim {

bool DepthFirst::next_run() {
  count_run();
  preemptions_ = 0;
  if (exhausted_ || diverged_) return false;
  exhausted_ = !path_.next_leaf();
  running_ = !exhausted_;
  return running_;
}

void DepthFirst::count_run() {
  if (!running_ || diverged_) return;
  running_ = false;
  if (schedules_.size() <= preemptions_) schedules_.resize(preemptions_ + 1);
  ++schedules_[preemptions_];
}

std::uint64_t DepthFirst::schedules() const {
  return std::accumulate(schedules_.begin(), schedules_.end(), std::uint64_t{0});
}

FiberId DepthFirst::choose(const Decision& decision) {
  const bool bound_reached = decision.from_can_go_on && preemptions_ == preemptions_max_;
  if (bound_reached || decision.runnable.size() == 1) return decision.go_on;
  choices_.clear();
  choices_.push_back({decision.go_on, 0});
  for (const FiberId fiber : decision.runnable) {
    if (fiber != decision.go_on) choices_.push_back({fiber, 0});
  }
  if (!path_.step({}, choices_)) {
    diverged_ = true;
    return kNoFiber;
  }
  const FiberId chosen = path_.chosen().fiber;
  if (decision.from_can_go_on && chosen != decision.from) ++preemptions_;
  return chosen;
}

}  // namespace holdfast::sim
