// A caller's device memory as the core is told of it: raw bytes, where they lie, and what they must be.
#pragma once

#include <cstdint>

namespace holdfast {

// The caller owns the memory and keeps it alive until the operation it was handed to has returned.
struct DeviceTensor {
  std::uintptr_t data = 0;
  std::uint64_t bytes = 0;
  int device = 0;
  bool contiguous = true;
};

}  // namespace holdfast
