// Probabilistic concurrency testing (Burckhardt and others, 2010): random priorities that change at a few random
// points.
#pragma once

#include <vector>

#include "holdfast/sim/rng.hpp"
#include "holdfast/sim/strategy.hpp"

namespace holdfast::sim {

struct PctStrategyOptions {
  std::uint64_t seed = 0;
  std::uint32_t depth = 3;             // of the bug: how many things must happen in order; at least 1
  std::uint64_t estimated_points = 0;  // of a run, at least 1
};

// Of n fibers that pass k points, a run finds a bug of depth d with a probability of at least 1 / (n * k^(d-1)). The
// highest priority that can go on runs; at d-1 of the points who is about to go on falls below all others.
class PctStrategy final : public Strategy {
 public:
  explicit PctStrategy(const PctStrategyOptions& options);

  [[nodiscard]] bool next_run() override;
  FiberId choose(const Decision& decision) override;

 private:
  [[nodiscard]] FiberId highest(const Decision& decision);

  PctStrategyOptions options_;
  Rng rng_;
  std::vector<std::uint64_t> priorities_;     // by fiber
  std::vector<std::uint64_t> change_points_;  // of the current run, in all its parts
  std::uint64_t points_ = 0;                  // of it so far
};

}  // namespace holdfast::sim
