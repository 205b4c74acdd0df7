#include "holdfast/sim/recorded_strategy.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace holdfast::sim {
namespace {

auto place(const Switch& choice) { return std::tuple(choice.from, choice.nth); }

}  // namespace

RecordedStrategy::RecordedStrategy(std::vector<Switch> choices) : choices_(std::move(choices)) {
  std::ranges::stable_sort(choices_, {}, place);
}

FiberId RecordedStrategy::choose(const Decision& decision) {
  if (choices_.empty()) return decision.go_on;
  const auto after = std::ranges::upper_bound(choices_, std::tuple(decision.from, decision.nth), {}, place);
  if (after == choices_.begin()) return decision.go_on;
  const Switch& choice = *std::prev(after);
  const bool meant = choice.from == decision.from && choice.nth == decision.nth;
  return meant && std::ranges::binary_search(decision.runnable, choice.to) ? choice.to : decision.go_on;
}

}  // namespace holdfast::sim
