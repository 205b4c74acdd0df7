// The way from the root of a tree of choices to the leaf that a depth-first search looks at.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holdfast/sim/strategy.hpp"

namespace holdfast::sim {

// What an operation touches, a bit each: operations that share none do the same in either order.
using Footprint = std::uint64_t;

struct Choosable {
  FiberId fiber = kNoFiber;
  Footprint footprint = 0;
  friend bool operator==(const Choosable&, const Choosable&) = default;
};

// One run walks down: known nodes first, then new ones, each with its first choice. Before the next the deepest node
// that has another choice takes it, and what lies below is forgotten.
class ChoicePath {
 public:
  // To the root again, for another leaf. False when there is none.
  bool next_leaf();
  [[nodiscard]] bool at_known() const { return depth_ < nodes_.size(); }

  // `asleep` need no choice here, `choices` do, in this order; there is at least one. At a known node they are those it
  // was made with: false if they aren't, and then the search has come to its end.
  bool step(std::span<const Choosable> asleep, std::span<const Choosable> choices);
  // At the node of the last step: what was chosen, and what is asleep or was chosen before.
  [[nodiscard]] Choosable chosen() const;
  [[nodiscard]] std::span<const Choosable> done() const;

 private:
  struct Node {
    std::size_t first = 0;   // of its choosables, the sleeping ones first
    std::size_t asleep = 0;  // how many
    std::size_t chosen = 0;  // of its choosables
  };

  std::vector<Node> nodes_;
  std::vector<Choosable> choosables_;  // of all nodes, in order
  std::size_t depth_ = 0;
  bool begun_ = false;
};

}  // namespace holdfast::sim
