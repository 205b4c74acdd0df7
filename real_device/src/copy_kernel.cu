#include <cuda_runtime.h>

#include "copy_kernel.hpp"

namespace holdfast::device {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kUnroll = 4;
constexpr std::uint64_t kSegmentBytes = sizeof(uint4) * kThreads * kUnroll;  // of one block at a time
constexpr unsigned kSegmentsMax = 32;                                        // of one copy at a time

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

// A block for each copy (x) and for each of its segments in turn (y).
template <std::size_t kCount>
__global__ void copy_kernel(const __grid_constant__ Batch<kCount> batch) {
  const KernelCopy copy = batch.copies[blockIdx.x];
  for (std::uint64_t begin = blockIdx.y * kSegmentBytes; begin < copy.bytes; begin += gridDim.y * kSegmentBytes) {
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
  const dim3 grid(static_cast<unsigned>(count),
                  segments < kSegmentsMax ? static_cast<unsigned>(segments) : kSegmentsMax);
  copy_kernel<kCount><<<grid, kThreads, 0, stream>>>(batch);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_copies(const KernelCopy* copies, std::size_t count, cudaStream_t stream) {
  // A launch costs more, the more parameters it has.
  constexpr std::size_t kFew = 160;
  return count <= kFew ? launch<kFew>(copies, count, stream) : launch<kKernelCopiesMax>(copies, count, stream);
}

}  // namespace holdfast::device
