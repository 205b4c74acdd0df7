#include "holdfast/fakes/cuda_device_heap.hpp"

#include <algorithm>
#include <cstring>

namespace holdfast::fakes {
namespace {

std::uint64_t round_up(std::uint64_t bytes) {
  return (bytes + kDeviceAlignBytes - 1) / kDeviceAlignBytes * kDeviceAlignBytes;
}

void fill(std::uintptr_t base, std::uint8_t value, std::uint64_t bytes) {
  std::memset(reinterpret_cast<void*>(base), value, bytes);
}

}  // namespace

void DeviceHeap::reset(std::uintptr_t region, int device_count, std::uint64_t device_bytes) {
  clear();
  region_ = region;
  region_bytes_ = device_bytes * static_cast<std::uint64_t>(device_count);
  device_bytes_ = device_bytes;
  device_count_ = device_count;
}

void DeviceHeap::clear() {
  for (const DeviceAllocation& allocation : live_) fill(allocation.base, kFreedDeviceByte, allocation.bytes);
  live_.clear();
}

std::optional<std::uintptr_t> DeviceHeap::allocate(std::uint64_t bytes, int device) {
  if (bytes > device_bytes_) return std::nullopt;
  const std::uint64_t taken_bytes = round_up(bytes);
  const std::uintptr_t begin = region_ + static_cast<std::uint64_t>(device) * device_bytes_;
  const std::uintptr_t end = begin + device_bytes_;
  std::uintptr_t at = begin;
  auto next = std::partition_point(live_.begin(), live_.end(),
                                   [&](const DeviceAllocation& allocation) { return allocation.base < begin; });
  for (; next != live_.end() && next->base < end && next->base - at < taken_bytes; ++next) {
    at = next->base + round_up(next->bytes);
  }
  if (at > end || end - at < taken_bytes) return std::nullopt;
  live_.insert(next, {at, bytes, device});
  fill(at, kFreshDeviceByte, bytes);
  return at;
}

void DeviceHeap::free(std::uintptr_t base) {
  const auto found = std::find_if(live_.begin(), live_.end(),
                                  [&](const DeviceAllocation& allocation) { return allocation.base == base; });
  fill(base, kFreedDeviceByte, found->bytes);
  live_.erase(found);
}

const DeviceAllocation* DeviceHeap::find(std::uintptr_t base, std::uint64_t bytes) const {
  const auto holds = [&](const DeviceAllocation& allocation) {
    return base >= allocation.base && base - allocation.base < allocation.bytes;
  };
  std::size_t at = last_;
  if (at >= live_.size() || !holds(live_[at])) {
    const auto found = std::partition_point(live_.begin(), live_.end(), [&](const DeviceAllocation& allocation) {
      return allocation.base + allocation.bytes <= base;
    });
    at = static_cast<std::size_t>(found - live_.begin());
    if (at == live_.size() || !holds(live_[at])) return nullptr;
    last_ = at;
  }
  return bytes <= live_[at].bytes - (base - live_[at].base) ? &live_[at] : nullptr;
}

const DeviceAllocation* DeviceHeap::starting_at(std::uintptr_t base) const {
  const DeviceAllocation* found = find(base, 1);
  return found != nullptr && found->base == base ? found : nullptr;
}

}  // namespace holdfast::fakes
