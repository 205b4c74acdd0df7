// From how many matched chunks on reusing them is cheaper than computing them again.
#pragma once

#include <cstdint>

#include "holdfast/core/result.hpp"

namespace holdfast {

inline constexpr std::uint32_t kBreakEvenMaxK = 1'000'000;

// Costs in seconds; `window_chunks` is how many chunks at most are fetched, however many matched.
struct ReuseCosts {
  double recompute_per_chunk_s = 0;
  double fetch_per_chunk_s = 0;
  double fixed_overhead_s = 0;
  std::uint32_t window_chunks = 0;
  std::uint32_t max_k = 256;
};

// The smallest K with K * recompute > fixed + min(K, window) * fetch, or max_k + 1 when none pays.
// InvalidArgument for a cost that is negative or not finite, and for max_k above kBreakEvenMaxK.
[[nodiscard]] Result<std::uint32_t> break_even_k(const ReuseCosts& costs);

struct FetchCosts {
  std::uint64_t chunk_bytes = 0;
  double bandwidth_bytes_per_s = 0;
  double overlap = 1;  // the part of the transfer that is not hidden behind other work, 0 to 1
};

// InvalidArgument for a bandwidth that is not positive, or an overlap outside [0, 1].
[[nodiscard]] Result<double> fetch_per_chunk_s(const FetchCosts& costs);

}  // namespace holdfast
