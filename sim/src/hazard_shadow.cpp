#include "holdfast/sim/hazard_shadow.hpp"

#include <utility>

namespace holdfast::sim {

// Where the granule is, or where it would be put.
std::size_t HazardShadow::slot_of(std::uint64_t granule) const {
  constexpr std::uint64_t kOdd = 0x9E37'79B9'7F4A'7C15ULL;
  const std::size_t mask = index_.size() - 1;
  std::size_t at = (granule * kOdd >> 32U) & mask;
  while (index_[at] != kNone && cells_[index_[at]].granule != granule) at = (at + 1) & mask;
  return at;
}

HazardShadow::Cell* HazardShadow::find(std::uint64_t granule) {
  const std::uint32_t cell = index_[slot_of(granule)];
  return cell == kNone ? nullptr : &cells_[cell];
}

HazardShadow::Cell& HazardShadow::cell_at(std::uint64_t granule) {
  std::size_t at = slot_of(granule);
  if (index_[at] == kNone) {
    if (2 * (cells_.size() + 1) > index_.size()) {
      build_index(2 * index_.size());
      at = slot_of(granule);
    }
    index_[at] = static_cast<std::uint32_t>(cells_.size());
    cells_.push_back({granule, kNone, 0});
  }
  return cells_[index_[at]];
}

void HazardShadow::build_index(std::size_t size) {
  index_.assign(size, kNone);
  for (std::uint32_t cell = 0; cell < cells_.size(); ++cell) index_[slot_of(cells_[cell].granule)] = cell;
}

void HazardShadow::add(Cell& cell, const Record& record) {
  std::uint32_t at = spare_;
  if (at == kNone) {
    at = static_cast<std::uint32_t>(records_.size());
    records_.emplace_back();
  } else {
    spare_ = records_[at].next;
  }
  records_[at] = record;
  records_[at].next = std::exchange(cell.first, at);
}

void HazardShadow::drop(std::uint32_t& link) {
  const std::uint32_t at = link;
  link = records_[at].next;
  records_[at].next = std::exchange(spare_, at);
}

void HazardShadow::forget(const MemoryRange& range) {
  each_known(range, [&](Cell& cell) {
    if (cell.granule * kGranuleBytes >= range.base) cell.value_bytes = 0;
    for (std::uint32_t* link = &cell.first; *link != kNone;) {
      if (records_[*link].range.touches(range)) {
        drop(*link);
      } else {
        link = &records_[*link].next;
      }
    }
    return true;
  });
}

void HazardShadow::forget_records() {
  for (Cell& cell : cells_) cell.first = kNone;
  records_.clear();
  spare_ = kNone;
}

void HazardShadow::clear() {
  cells_.clear();
  records_.clear();
  spare_ = kNone;
  index_.assign(kIndexMin, kNone);
}

}  // namespace holdfast::sim
