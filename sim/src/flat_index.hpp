// An index from 64-bit hashes to small numbers: open addressing, nothing is ever taken out but everything.
#pragma once

#include <cstdint>
#include <vector>

namespace holdfast::sim {

class FlatIndex {
 public:
  static constexpr std::uint32_t kAbsent = ~0U;

  FlatIndex() { clear(); }

  [[nodiscard]] std::uint32_t find(std::uint64_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
      if (slots_[at].value == kAbsent || slots_[at].hash == hash) return slots_[at].value;
    }
  }
  // `hash` is absent; `value` is not kAbsent.
  void insert(std::uint64_t hash, std::uint32_t value) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    place({hash, value});
    ++count_;
  }
  void clear() {
    slots_.assign(kSlotsMin, {});
    count_ = 0;
  }

 private:
  static constexpr std::size_t kSlotsMin = 256;
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t value = kAbsent;
  };

  void place(const Slot& slot) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = slot.hash & mask;
    while (slots_[at].value != kAbsent) at = (at + 1) & mask;
    slots_[at] = slot;
  }
  void grow() {
    std::vector<Slot> before(2 * slots_.size());
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.value != kAbsent) place(slot);
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace holdfast::sim
