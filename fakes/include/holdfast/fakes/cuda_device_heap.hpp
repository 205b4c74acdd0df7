// Device memory of the fake: one equal part of a region per device, first fit, so that freed memory is soon another's.
// Fresh and freed memory carry patterns of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace holdfast::fakes {

inline constexpr std::uint8_t kFreshDeviceByte = 0xCD;
inline constexpr std::uint8_t kFreedDeviceByte = 0xDB;
inline constexpr std::uint64_t kDeviceAlignBytes = 256;

struct DeviceAllocation {
  std::uintptr_t base = 0;
  std::uint64_t bytes = 0;  // as asked for
  int device = -1;
};

class DeviceHeap {
 public:
  // Every earlier allocation is freed.
  void reset(std::uintptr_t region, int device_count, std::uint64_t device_bytes);
  void clear();

  [[nodiscard]] std::optional<std::uintptr_t> allocate(std::uint64_t bytes, int device);
  // The caller has checked that `base` starts an allocation.
  void free(std::uintptr_t base);

  // The live allocation that holds all of [base, base + bytes), which neither is empty nor overflows.
  [[nodiscard]] const DeviceAllocation* find(std::uintptr_t base, std::uint64_t bytes) const;
  [[nodiscard]] const DeviceAllocation* starting_at(std::uintptr_t base) const;
  [[nodiscard]] bool contains(std::uintptr_t address) const { return address - region_ < region_bytes_; }
  [[nodiscard]] bool overlaps(std::uintptr_t base, std::uint64_t bytes) const {
    return base < region_ + region_bytes_ && region_ < base + bytes;
  }
  // Device of an address inside the region.
  [[nodiscard]] int device_of(std::uintptr_t address) const {
    return static_cast<int>((address - region_) / device_bytes_);
  }
  [[nodiscard]] std::uint64_t offset_in_device(std::uintptr_t address) const {
    return (address - region_) % device_bytes_;
  }
  [[nodiscard]] int device_count() const { return device_count_; }
  [[nodiscard]] std::size_t allocation_count() const { return live_.size(); }

 private:
  std::uintptr_t region_ = 0;
  std::uint64_t region_bytes_ = 0;
  std::uint64_t device_bytes_ = 1;
  int device_count_ = 0;
  std::vector<DeviceAllocation> live_;  // ordered by base
  mutable std::size_t last_ = 0;        // most copies of a batch lie in one allocation
};

}  // namespace holdfast::fakes
