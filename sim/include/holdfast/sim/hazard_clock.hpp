// A vector clock: how far of each actor's work is known to have happened.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace holdfast::sim {

// Actors are numbered from 0; of one that was never heard of nothing has happened.
class HazardClock {
 public:
  [[nodiscard]] std::uint32_t of(std::size_t actor) const { return actor < times_.size() ? times_[actor] : 0; }
  void set(std::size_t actor, std::uint32_t time) {
    if (actor >= times_.size()) times_.resize(actor + 1, 0);
    times_[actor] = time;
  }
  std::uint32_t tick(std::size_t actor) {
    set(actor, of(actor) + 1);
    return times_[actor];
  }
  // What has happened by either has happened.
  void join(const HazardClock& other) {
    if (other.times_.size() > times_.size()) times_.resize(other.times_.size(), 0);
    for (std::size_t i = 0; i < other.times_.size(); ++i) times_[i] = std::max(times_[i], other.times_[i]);
  }
  void clear() { times_.clear(); }

 private:
  std::vector<std::uint32_t> times_;
};

}  // namespace holdfast::sim
