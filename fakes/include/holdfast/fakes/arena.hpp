// All memory of the fakes: one reserved address range whose regions lie at fixed offsets with inaccessible gaps between
// them. A log names a byte by its offset, so that it reads the same wherever the arena happens to lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "holdfast/fakes/segment_memory.hpp"

namespace holdfast::fakes {

struct ArenaOptions {
  std::uint64_t reserve_bytes = 1ULL << 40;  // address space only
  // Shifts the base within the reservation; runs that differ only in this must not differ in their logs.
  std::uint64_t base_shift_pages = 0;
};

// Owns the reservation and everything mapped in it. Regions are handed out in order and live as long as the arena.
// Throws std::bad_alloc when the system refuses a mapping.
class Arena final : public SegmentMemory {
 public:
  explicit Arena(const ArenaOptions& options = {});
  ~Arena() override;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Zeroed memory; `bytes` is rounded up to pages. A guard gap of 64 KiB follows.
  std::uintptr_t map_private(std::uint64_t bytes);
  DualRegion map_dual(std::uint64_t bytes);
  // Gives the pages of a region back to the system; they read as zero afterwards.
  void discard(std::uintptr_t base, std::uint64_t bytes);
  // Longer than asked for, so that runs of different sizes share them. What is unmapped keeps its address space.
  DualRegion map_segment(std::uint64_t bytes) override;
  void discard(const DualRegion& region) override { discard(region.write_base, region.bytes); }
  void unmap_segment(const DualRegion& region) override { discard(region); }

  [[nodiscard]] bool contains(std::uintptr_t address) const;
  // Distance from the arena's first region: the only form in which an address may reach a log.
  [[nodiscard]] std::uint64_t offset_of(std::uintptr_t address) const { return address - first_; }

 private:
  std::uintptr_t take(std::uint64_t bytes);

  std::uintptr_t reservation_ = 0;
  std::uint64_t reserved_bytes_ = 0;
  std::uintptr_t first_ = 0;
  std::uintptr_t next_ = 0;
};

}  // namespace holdfast::fakes
