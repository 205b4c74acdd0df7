#include "holdfast/sim/cold_ring.hpp"

#include "holdfast/core/check.hpp"

namespace holdfast::sim {

void ColdRing::configure(const Geometry& geometry) {
  capacity_ = geometry.ring_frames;
  sinks_ = geometry.sink_frames;
  chunk_ = geometry.frames_per_chunk;
  rolls_ = !geometry.full_length;
  clear();
}

void ColdRing::clear() {
  next_ = 0;
  frames_.clear();
}

bool ColdRing::has_room() const {
  if (rolls_) return sinks_ + chunk_ <= capacity_;
  return frames_.size() + chunk_ <= capacity_;
}

ColdRing::Dropped ColdRing::append_chunk() {
  check(has_room(), "a frame is added only where the ring has room");
  Dropped dropped;
  if (frames_.size() + chunk_ > capacity_) {
    dropped = {sinks_, frames_.size() + chunk_ - capacity_};
    const auto first = frames_.begin() + static_cast<std::ptrdiff_t>(dropped.first);
    frames_.erase(first, first + static_cast<std::ptrdiff_t>(dropped.count));
  }
  for (std::size_t i = 0; i < chunk_; ++i) frames_.push_back(next_++);
  return dropped;
}

}  // namespace holdfast::sim
