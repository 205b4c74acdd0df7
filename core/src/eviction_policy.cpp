#include "holdfast/core/eviction_policy.hpp"

#include <algorithm>

namespace holdfast {
namespace {

// Each victim is worth more than the last one of its kind: even what is never used ages the others.
std::uint64_t worth(const EvictionLink& link) { return link.base + 1 + link.level; }

bool goes_before(const EvictionLink& a, const EvictionLink& b) {
  return worth(a) != worth(b) ? worth(a) < worth(b) : a.turn < b.turn;
}

}  // namespace

void LeastRecentlyUsed::inserted(EvictionLink& link) { list_.push_most_recent(link); }

void LeastRecentlyUsed::touched(EvictionLink& link) {
  EvictionList::unlink(link);
  list_.push_most_recent(link);
}

void LeastRecentlyUsed::withdrawn(EvictionLink& link) { EvictionList::unlink(link); }

EvictionLink* LeastRecentlyUsed::victim(const std::function<bool(EvictionLink&)>& takes) {
  for (EvictionLink* at = list_.first(); at != list_.end(); at = at->next) {
    if (takes(*at)) return at;
  }
  return nullptr;
}

void FrequencyAware::inserted(EvictionLink& link) {
  link.level = std::min(link.uses, kLevels - 1);
  link.base = base_;
  link.turn = ++turn_;
  levels_[link.level].push_most_recent(link);
}

void FrequencyAware::touched(EvictionLink& link) {
  withdrawn(link);
  inserted(link);
}

void FrequencyAware::withdrawn(EvictionLink& link) { EvictionList::unlink(link); }

EvictionLink* FrequencyAware::victim(const std::function<bool(EvictionLink&)>& takes) {
  // Within a level they are in order: the bases grow.
  std::array<EvictionLink*, kLevels> heads{};
  for (std::size_t level = 0; level < kLevels; ++level) heads[level] = levels_[level].first();
  while (true) {
    EvictionLink** first = nullptr;
    for (std::size_t level = 0; level < kLevels; ++level) {
      if (heads[level] == levels_[level].end()) continue;
      if (first == nullptr || goes_before(*heads[level], **first)) first = &heads[level];
    }
    if (first == nullptr) return nullptr;
    if (takes(**first)) {
      base_ = std::max(base_, worth(**first));
      return *first;
    }
    *first = (*first)->next;
  }
}

}  // namespace holdfast
