// Which accesses each granule of memory has seen and not yet forgotten: the hazard checker's memory.
#pragma once

#include <cstdint>
#include <vector>

#include "holdfast/core/time.hpp"

namespace holdfast::sim {

struct MemoryRange {
  std::uintptr_t base = 0;
  std::uint64_t bytes = 0;

  [[nodiscard]] std::uintptr_t end() const { return base + bytes; }
  [[nodiscard]] bool touches(const MemoryRange& other) const { return base < other.end() && other.base < end(); }
};

// What made an access.
enum class HazardCall : std::uint8_t {
  copy_batch,
  kernel,       // of the engine
  device_free,  // in stream order
  put_start,
  put_commit,
  put_abort,
  release_views,
  host_unregister,
  host_memory,  // a host's own loads and stores
};

// Granules are found by an index of open addressing. A granule's records are a list: one more is added, never written
// over another that still matters.
class HazardShadow {
 public:
  static constexpr std::uint64_t kGranuleBytes = 4096;
  static constexpr std::uint32_t kNone = ~0U;

  // What one actor did to one range; one in each granule that the range touches.
  struct Record {
    MemoryRange range;
    Nanos at_ns = 0;
    std::uint32_t time = 0;  // of the actor
    std::uint32_t next = kNone;
    std::uint16_t actor = 0;
    std::uint16_t host = 0;
    HazardCall call{};
    bool write = false;
    bool device = false;   // by work of a stream
    bool aliased = false;  // it used the other address of these bytes
  };
  struct Cell {
    std::uint64_t granule = 0;
    std::uint32_t first = kNone;
    std::uint32_t value_bytes = 0;  // of the slot that begins here, once one was claimed
  };

  // Null when nothing is known of the granule. Good until the next cell_at.
  [[nodiscard]] Cell* find(std::uint64_t granule);
  Cell& cell_at(std::uint64_t granule);
  [[nodiscard]] Record& record(std::uint32_t at) { return records_[at]; }
  void add(Cell& cell, const Record& record);
  // Takes the record out that `link` leads to; `link` then leads to the next.
  void drop(std::uint32_t& link);

  // Calls `visit(cell)` for each known granule that the range touches, until it says false.
  template <class Visit>
  void each_known(const MemoryRange& range, Visit&& visit) {
    if (range.bytes == 0) return;
    const std::uint64_t first = range.base / kGranuleBytes;
    const std::uint64_t last = (range.end() - 1) / kGranuleBytes;
    if (last - first >= cells_.size()) {
      for (Cell& cell : cells_) {
        if (cell.granule >= first && cell.granule <= last && !visit(cell)) return;
      }
      return;
    }
    for (std::uint64_t granule = first; granule <= last; ++granule) {
      Cell* cell = find(granule);
      if (cell != nullptr && !visit(*cell)) return;
    }
  }

  // Nothing is known of what touches the range.
  void forget(const MemoryRange& range);
  // Nor of anything; the lengths of slots stay.
  void forget_records();
  void clear();

 private:
  static constexpr std::size_t kIndexMin = 1024;

  [[nodiscard]] std::size_t slot_of(std::uint64_t granule) const;
  void build_index(std::size_t size);

  std::vector<std::uint32_t> index_ = std::vector<std::uint32_t>(kIndexMin, kNone);  // a power of two
  std::vector<Cell> cells_;                                                          // in order of appearance
  std::vector<Record> records_;
  std::uint32_t spare_ = kNone;
};

}  // namespace holdfast::sim
