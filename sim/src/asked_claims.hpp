// What one operation was told of claims by gets that did not find everything.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "holdfast/sim/system_under_test.hpp"

namespace holdfast::sim {

// What the last get of a claim's own keys, and of nothing else, said of it.
enum class OwnGet : std::uint8_t { none, missed, found, failed };

struct AskedClaim {
  std::uint32_t node = 0;
  Claim claim = Claim::kv;
  OwnGet own = OwnGet::none;
  bool incomplete = false;  // it was read together with others, which was incomplete, and not asked for by itself since
  bool told_missing = false;  // of a key of it
  bool absent = false;        // it was, whole or in part, at some instant
  bool damaged = false;       // a value of it was, under a read plan of the operation
};

class AskedClaims {
 public:
  [[nodiscard]] AskedClaim* find(std::uint32_t node, Claim claim) {
    const auto at = std::ranges::find_if(
        asked_, [&](const AskedClaim& asked) { return asked.node == node && asked.claim == claim; });
    return at == asked_.end() ? nullptr : &*at;
  }
  AskedClaim& note(std::uint32_t node, Claim claim) {
    if (AskedClaim* known = find(node, claim)) return *known;
    AskedClaim& asked = asked_.emplace_back();
    asked.node = node;
    asked.claim = claim;
    return asked;
  }
  [[nodiscard]] const std::vector<AskedClaim>& all() const { return asked_; }
  void clear() { asked_.clear(); }

 private:
  std::vector<AskedClaim> asked_;  // few: most gets find everything
};

}  // namespace holdfast::sim
