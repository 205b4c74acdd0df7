// Which frames a ring holds in a run that computes every chunk: the meaning of a ring, kept as a plain list and apart
// from the store's formulas, so that a mistake in those cannot hide here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

// Frames are appended until the ring is full. Then each new chunk pushes out the oldest frames that are not sinks, and
// everything behind them moves down.
class ColdRing {
 public:
  // What an append pushed out: physical frames [first, first + count), before the others moved down.
  struct Dropped {
    std::size_t first = 0;
    std::size_t count = 0;
  };

  void configure(const Geometry& geometry);
  void clear();
  // True when the geometry's ring can take another chunk.
  [[nodiscard]] bool has_room() const;
  Dropped append_chunk();

  [[nodiscard]] std::size_t size() const { return frames_.size(); }
  // The logical frame at a physical position.
  [[nodiscard]] std::uint64_t operator[](std::size_t position) const { return frames_[position]; }
  [[nodiscard]] std::uint64_t frames_seen() const { return next_; }

 private:
  std::size_t capacity_ = 0;
  std::size_t sinks_ = 0;
  std::size_t chunk_ = 1;
  bool rolls_ = false;
  std::uint64_t next_ = 0;
  std::vector<std::uint64_t> frames_;
};

}  // namespace holdfast::sim
