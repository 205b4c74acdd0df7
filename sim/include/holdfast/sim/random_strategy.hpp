// At each point where a fiber could go on, another may be chosen instead, by chance.
#pragma once

#include "holdfast/sim/rng.hpp"
#include "holdfast/sim/strategy.hpp"

namespace holdfast::sim {

struct RandomStrategyOptions {
  std::uint64_t seed = 0;
  // A fiber that can go on is switched away from in `switches` of `of` cases.
  std::uint32_t switches = 1;
  std::uint32_t of = 10;
};

// One run after another draws on. The choices of a run are reproduced by RecordedStrategy.
class RandomStrategy final : public Strategy {
 public:
  explicit RandomStrategy(const RandomStrategyOptions& options) : options_(options), rng_(options.seed) {}

  [[nodiscard]] bool next_run() override { return true; }
  FiberId choose(const Decision& decision) override;

 private:
  RandomStrategyOptions options_;
  Rng rng_;
};

}  // namespace holdfast::sim
