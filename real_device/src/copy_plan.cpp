#include "holdfast/real_device/copy_plan.hpp"

#include <algorithm>

namespace holdfast::device {
namespace {

std::uintptr_t host_side(CopyDirection direction, const Copy& copy) {
  return direction == CopyDirection::device_to_host ? copy.dst : copy.src;
}

// Where the range ends that holds `address`; `address` itself when none does.
std::uintptr_t end_of_range(std::span<const HostRangeOf> registered, std::uintptr_t address) {
  const auto after = std::ranges::upper_bound(registered, address, {}, &HostRangeOf::base);
  if (after == registered.begin()) return address;
  const HostRangeOf& range = *std::prev(after);
  return address - range.base < range.bytes ? range.base + range.bytes : address;
}

}  // namespace

void plan_copies(CopyDirection direction, std::span<const Copy> copies, std::span<const HostRangeOf> registered,
                 const CopyThresholds& thresholds, CopyPlan& plan) {
  plan.clear();
  const std::uint64_t threshold =
      direction == CopyDirection::device_to_host ? thresholds.to_host_bytes : thresholds.to_device_bytes;
  std::uintptr_t range_end = 0;
  for (std::size_t i = 0; i < copies.size();) {
    Copy run = copies[i++];
    const std::uintptr_t host = host_side(direction, run);
    while (i < copies.size() && copies[i].dst == run.dst + run.bytes && copies[i].src == run.src + run.bytes) {
      if (range_end <= host || range_end - host < run.bytes) range_end = end_of_range(registered, host);
      if (range_end - host < run.bytes + copies[i].bytes) break;
      run.bytes += copies[i++].bytes;
    }
    (run.bytes < threshold ? plan.by_kernel : plan.by_engine).push_back(run);
  }
}

}  // namespace holdfast::device
