#include "holdfast/sim/pct_strategy.hpp"

#include <algorithm>

#include "holdfast/core/check.hpp"

namespace holdfast::sim {

PctStrategy::PctStrategy(const PctStrategyOptions& options) : options_(options), rng_(options.seed) {
  check(options.depth >= 1 && options.estimated_points >= 1, "PCT needs a depth and a length of at least 1");
}

bool PctStrategy::next_run() {
  points_ = 0;
  change_points_.clear();
  for (std::uint32_t i = 1; i < options_.depth; ++i) change_points_.push_back(rng_.below(options_.estimated_points));
  return true;
}

FiberId PctStrategy::highest(const Decision& decision) {
  // Above all that a change may give. Fibers may be spawned at any time.
  while (priorities_.size() <= decision.runnable.back()) priorities_.push_back(options_.depth + rng_() / 2);
  return *std::ranges::max_element(decision.runnable, {}, [this](FiberId fiber) { return priorities_[fiber]; });
}

FiberId PctStrategy::choose(const Decision& decision) {
  if (decision.from == kNoFiber) priorities_.clear();  // these are other fibers
  FiberId fiber = highest(decision);
  const std::uint64_t number = points_++;
  for (std::size_t i = 0; i < change_points_.size(); ++i) {
    if (change_points_[i] != number) continue;
    priorities_[fiber] = i;
    fiber = highest(decision);
  }
  return fiber;
}

}  // namespace holdfast::sim
