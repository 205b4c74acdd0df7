// Copies by a kernel. Plain enough for the device's compiler.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace holdfast::device {

struct KernelCopy {
  std::uint64_t dst;
  std::uint64_t src;
  std::uint64_t bytes;
};

// Of one launch: what fits the parameters of a kernel (32,764 bytes), so that no descriptor outlives the call.
inline constexpr std::size_t kKernelCopiesMax = 1360;

// `count` is 1 to kKernelCopiesMax, no copy is empty; any alignment. Asynchronous, in the order of `stream`. Host
// memory is registered, and devices see it at its own address.
cudaError_t launch_copies(const KernelCopy* copies, std::size_t count, cudaStream_t stream);

}  // namespace holdfast::device
