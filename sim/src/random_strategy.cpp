#include "holdfast/sim/random_strategy.hpp"

namespace holdfast::sim {

FiberId RandomStrategy::choose(const Decision& decision) {
  if (decision.runnable.size() == 1) return decision.go_on;
  if (!decision.from_can_go_on) return rng_.pick(decision.runnable);
  if (!rng_.ratio(options_.switches, options_.of)) return decision.from;
  // One of the others.
  const std::uint64_t nth = rng_.below(decision.runnable.size() - 1);
  return decision.runnable[nth] < decision.from ? decision.runnable[nth] : decision.runnable[nth + 1];
}

}  // namespace holdfast::sim
