// Where an owner's segments come from.
#pragma once

#include <cstdint>

namespace holdfast::fakes {

// Memory that is written through one address and read through another: the same bytes behind both.
struct DualRegion {
  std::uintptr_t write_base = 0;
  std::uintptr_t read_base = 0;  // mapped read-only
  std::uint64_t bytes = 0;
};

// Owns what it maps. Regions that are still there when it ends go with it.
class SegmentMemory {
 public:
  virtual ~SegmentMemory() = default;
  // Zeroed, at least `bytes` long. Throws std::bad_alloc when the system refuses it.
  virtual DualRegion map_segment(std::uint64_t bytes) = 0;
  // Gives the region's pages back to the system; they read as zero afterwards.
  virtual void discard(const DualRegion& region) = 0;
  // Nobody uses the region any more.
  virtual void unmap_segment(const DualRegion& region) = 0;
};

}  // namespace holdfast::fakes
