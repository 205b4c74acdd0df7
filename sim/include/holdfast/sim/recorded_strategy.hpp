// The choices of a trace, and the default everywhere else.
#pragma once

#include <vector>

#include "holdfast/sim/strategy.hpp"

namespace holdfast::sim {

// A choice that isn't reached, or whose fiber can't go on there, changes nothing: what a shortened trace has left over.
// `Scheduler::choices` tells which ones counted.
class RecordedStrategy final : public Strategy {
 public:
  // Of two choices for one decision the later counts.
  explicit RecordedStrategy(std::vector<Switch> choices);

  [[nodiscard]] bool next_run() override { return true; }
  FiberId choose(const Decision& decision) override;

 private:
  std::vector<Switch> choices_;  // by (from, nth)
};

}  // namespace holdfast::sim
