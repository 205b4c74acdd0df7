#include "holdfast/core/break_even.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace holdfast {
namespace {

bool is_cost(double seconds) { return std::isfinite(seconds) && seconds >= 0; }

}  // namespace

Result<std::uint32_t> break_even_k(const ReuseCosts& costs) {
  if (!is_cost(costs.recompute_per_chunk_s) || !is_cost(costs.fetch_per_chunk_s) || !is_cost(costs.fixed_overhead_s)) {
    return make_error(Errc::invalid_argument, "break_even_k",
                      fmt::format("a cost is negative or not finite: recompute {} s, fetch {} s, fixed {} s",
                                  costs.recompute_per_chunk_s, costs.fetch_per_chunk_s, costs.fixed_overhead_s));
  }
  if (costs.max_k > kBreakEvenMaxK) {
    return make_error(Errc::invalid_argument, "break_even_k",
                      fmt::format("max_k {} is above {}", costs.max_k, kBreakEvenMaxK));
  }
  for (std::uint32_t k = 1; k <= costs.max_k; ++k) {
    const double recompute_s = k * costs.recompute_per_chunk_s;
    const double reuse_s = costs.fixed_overhead_s + std::min(k, costs.window_chunks) * costs.fetch_per_chunk_s;
    if (recompute_s > reuse_s) return k;
  }
  return costs.max_k + 1;
}

Result<double> fetch_per_chunk_s(const FetchCosts& costs) {
  if (!std::isfinite(costs.bandwidth_bytes_per_s) || costs.bandwidth_bytes_per_s <= 0) {
    return make_error(Errc::invalid_argument, "fetch_per_chunk_s",
                      fmt::format("bandwidth {} B/s is not positive", costs.bandwidth_bytes_per_s));
  }
  if (!(costs.overlap >= 0 && costs.overlap <= 1)) {
    return make_error(Errc::invalid_argument, "fetch_per_chunk_s",
                      fmt::format("overlap {} is outside [0, 1]", costs.overlap));
  }
  return static_cast<double>(costs.chunk_bytes) / costs.bandwidth_bytes_per_s * costs.overlap;
}

}  // namespace holdfast
