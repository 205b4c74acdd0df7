// How a batch of copies is carried out: what lies together moves together; small copies go to one kernel that reads and
// writes host memory itself, large ones to the driver's copy engines.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holdfast/core/cuda_runtime.hpp"

namespace holdfast::device {

// Copies below so many bytes go to the kernel; 0: none does. The defaults are where the two cross on an H200 with CUDA
// 13.0, over PCIe 5.
struct CopyThresholds {
  std::uint64_t to_device_bytes = 64 << 10;
  std::uint64_t to_host_bytes = 64 << 10;
};

struct HostRangeOf {
  std::uintptr_t base = 0;
  std::uint64_t bytes = 0;
};

// The copies of one batch have no order among themselves.
struct CopyPlan {
  std::vector<Copy> by_kernel;
  std::vector<Copy> by_engine;
  void clear() {
    by_kernel.clear();
    by_engine.clear();
  }
};

// Joins copies that follow each other in the batch and on both sides in memory, unless their host sides lie in
// different ranges of `registered` (sorted by base), and sorts them by size. `plan` is filled anew; its memory is used
// again.
void plan_copies(CopyDirection direction, std::span<const Copy> copies, std::span<const HostRangeOf> registered,
                 const CopyThresholds& thresholds, CopyPlan& plan);

}  // namespace holdfast::device
