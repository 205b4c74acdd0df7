// Which parts of an operation are copied together: neighbours, until a batch is worth its calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace holdfast {

enum class CopyMode : std::uint8_t {
  synchronous,  // one batch per operation, waited for by its stream before anything goes on
  overlapped,  // several: one is copied while the next one's plans are started, and each is waited for by its own event
};

struct OverlapOptions {
  CopyMode mode = CopyMode::synchronous;
  // Overlapped only:
  std::size_t batches_in_flight_max = 4;    // of one operation, at least 1
  std::uint64_t batch_bytes_min = 4 << 20;  // below, neighbouring parts share a batch
};

// Parts [first, last).
struct BatchCut {
  std::size_t first = 0;
  std::size_t last = 0;
  friend bool operator==(const BatchCut&, const BatchCut&) = default;
};

// Covers parts of these lengths, in order. All in one batch when synchronous.
[[nodiscard]] std::vector<BatchCut> cut_into_batches(std::span<const std::uint64_t> part_bytes,
                                                     const OverlapOptions& options);

}  // namespace holdfast
