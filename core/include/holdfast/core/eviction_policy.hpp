// Which blob goes first when room is made: the order among those that may go.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "holdfast/core/eviction_list.hpp"

namespace holdfast {

// Told of every candidate: a blob that is neither pinned, referenced nor being written. It is called under its forest's
// lock, and must neither call the forest nor wait. What it has been told alone decides what it answers.
//
// Of the candidates on one path, whoever uses one tells of it first and of its ancestors next, and these have been used
// at least as often. A policy keeps a candidate before its ancestors: leaves go before inner nodes.
class EvictionPolicy {
 public:
  EvictionPolicy() = default;
  EvictionPolicy(const EvictionPolicy&) = delete;
  EvictionPolicy& operator=(const EvictionPolicy&) = delete;
  virtual ~EvictionPolicy() = default;

  // A candidate from now on, used just now.
  virtual void inserted(EvictionLink& link) = 0;
  // Used again.
  virtual void touched(EvictionLink& link) = 0;
  // None any more: evicted, or in use; it may come back.
  virtual void withdrawn(EvictionLink& link) = 0;
  // The first one, in the order of eviction, that `takes` accepts; it stays until it is withdrawn. Null when there is
  // none.
  virtual EvictionLink* victim(const std::function<bool(EvictionLink&)>& takes) = 0;
};

// The least recently used goes first.
class LeastRecentlyUsed final : public EvictionPolicy {
 public:
  void inserted(EvictionLink& link) override;
  void touched(EvictionLink& link) override;
  void withdrawn(EvictionLink& link) override;
  EvictionLink* victim(const std::function<bool(EvictionLink&)>& takes) override;

 private:
  EvictionList list_;
};

// What was found again stays longer (greedy dual, by frequency). A candidate is worth one more, and its uses up to
// a bound, than the last victim was when it was used last; the least worth goes first, of equals the least recently
// used. What was popular once is overtaken as victims grow dearer. A list for each number of uses: nothing costs more
// the more candidates there are.
class FrequencyAware final : public EvictionPolicy {
 public:
  void inserted(EvictionLink& link) override;
  void touched(EvictionLink& link) override;
  void withdrawn(EvictionLink& link) override;
  EvictionLink* victim(const std::function<bool(EvictionLink&)>& takes) override;

 private:
  static constexpr std::uint32_t kLevels = 8;

  std::array<EvictionList, kLevels> levels_;  // by uses
  std::uint64_t base_ = 0;                    // the last victim's worth
  std::uint64_t turn_ = 0;
};

}  // namespace holdfast
