#include "holdfast/sim/choice_path.hpp"

#include <algorithm>

#include "holdfast/core/check.hpp"

namespace holdfast::sim {

bool ChoicePath::next_leaf() {
  depth_ = 0;
  if (!begun_) return begun_ = true;
  while (!nodes_.empty()) {
    Node& deepest = nodes_.back();
    if (++deepest.chosen < choosables_.size()) return true;
    choosables_.resize(deepest.first);
    nodes_.pop_back();
  }
  return false;
}

bool ChoicePath::step(std::span<const Choosable> asleep, std::span<const Choosable> choices) {
  check(!choices.empty(), "a node without a choice");
  if (!at_known()) {
    nodes_.push_back({choosables_.size(), asleep.size(), choosables_.size() + asleep.size()});
    choosables_.insert(choosables_.end(), asleep.begin(), asleep.end());
    choosables_.insert(choosables_.end(), choices.begin(), choices.end());
    ++depth_;
    return true;
  }
  const Node& node = nodes_[depth_++];
  const std::size_t end = depth_ < nodes_.size() ? nodes_[depth_].first : choosables_.size();
  const std::span<const Choosable> made_with = std::span(choosables_).subspan(node.first, end - node.first);
  return std::ranges::equal(made_with.first(node.asleep), asleep) &&
         std::ranges::equal(made_with.subspan(node.asleep), choices);
}

Choosable ChoicePath::chosen() const { return choosables_[nodes_[depth_ - 1].chosen]; }

std::span<const Choosable> ChoicePath::done() const {
  const Node& node = nodes_[depth_ - 1];
  return std::span(choosables_).subspan(node.first, node.chosen - node.first);
}

}  // namespace holdfast::sim
