#include <cuda_runtime.h>

#include "copy_kernel.hpp"

namespace holdfast::device {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kUnroll = 4;
constexpr std::uint64_t kSegmentBytes = sizeof(uint4) * kThreads * kUnroll;  // of one block at a time
// Enough to fill the link, and few enough that copies the other way, and whatever else the device does, find room.
constexpr unsigned kBlocksMax = 160;

template <std::size_t kCount>
struct Batch {
  KernelCopy copies[kCount];
};

// `dst` and `src` are equally far from a multiple of V's size.
template <class V>
__device__ void copy_segment(char* dst, const char* src, std::uint64_t bytes) {
  const std::uint64_t to_aligned = (0 - reinterpret_cast<std::uint64_t>(dst)) % sizeof(V);
  const std::uint64_t head = to_aligned < bytes ? to_aligned : bytes;
  const std::uint64_t body = (bytes - head) / sizeof(V);
  const std::uint64_t tail = head + body * sizeof(V);
  if (threadIdx.x < head) dst[threadIdx.x] = src[threadIdx.x];
  if (tail + threadIdx.x < bytes) dst[tail + threadIdx.x] = src[tail + threadIdx.x];
  V* const to = reinterpret_cast<V*>(dst + head);
  const V* const from = reinterpret_cast<const V*>(src + head);
  std::uint64_t at = threadIdx.x;
  for (; at + (kUnroll - 1) * kThreads < body; at += kUnroll * kThreads) {
    V held[kUnroll];
#pragma unroll
    for (unsigned i = 0; i < kUnroll; ++i) held[i] = from[at + i * kThreads];
#pragma unroll
    for (unsigned i = 0; i < kUnroll; ++i) to[at + i * kThreads] = held[i];
  }
  for (; at < body; at += kThreads) to[at] = from[at];
}

// The blocks take the copies' segments in turn: first the first of every copy, then the second of each.
template <std::size_t kCount>
__global__ void copy_kernel(const __grid_constant__ Batch<kCount> batch, unsigned count, std::uint64_t segments) {
  for (std::uint64_t turn = blockIdx.x; turn < segments * count; turn += gridDim.x) {
    const KernelCopy copy = batch.copies[turn % count];
    const std::uint64_t begin = turn / count * kSegmentBytes;
    if (begin >= copy.bytes) continue;
    char* const dst = reinterpret_cast<char*>(copy.dst + begin);
    const char* const src = reinterpret_cast<const char*>(copy.src + begin);
    const std::uint64_t left = copy.bytes - begin;
    const std::uint64_t bytes = left < kSegmentBytes ? left : kSegmentBytes;
    const unsigned apart = static_cast<unsigned>(copy.dst ^ copy.src) % sizeof(uint4);
    if (apart == 0) {
      copy_segment<uint4>(dst, src, bytes);
    } else if (apart % 8 == 0) {
      copy_segment<uint2>(dst, src, bytes);
    } else if (apart % 4 == 0) {
      copy_segment<unsigned>(dst, src, bytes);
    } else {
      copy_segment<char>(dst, src, bytes);
    }
  }
}

template <std::size_t kCount>
cudaError_t launch(const KernelCopy* copies, std::size_t count, cudaStream_t stream) {
  Batch<kCount> batch;
  std::uint64_t longest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    batch.copies[i] = copies[i];
    longest = copies[i].bytes > longest ? copies[i].bytes : longest;
  }
  const std::uint64_t segments = (longest + kSegmentBytes - 1) / kSegmentBytes;
  const std::uint64_t turns = segments * count;
  const unsigned blocks = turns < kBlocksMax ? static_cast<unsigned>(turns) : kBlocksMax;
  copy_kernel<kCount><<<blocks, kThreads, 0, stream>>>(batch, static_cast<unsigned>(count), segments);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_copies(const KernelCopy* copies, std::size_t count, cudaStream_t stream) {
  // A launch costs more, the more parameters it has.
  constexpr std::size_t kFew = 160;
  return count <= kFew ? launch<kFew>(copies, count, stream) : launch<kKernelCopiesMax>(copies, count, stream);
}

}  // namespace holdfast::device
