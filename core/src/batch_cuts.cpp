#include "holdfast/core/batch_cuts.hpp"

namespace holdfast {

std::vector<BatchCut> cut_into_batches(std::span<const std::uint64_t> part_bytes, const OverlapOptions& options) {
  std::vector<BatchCut> cuts;
  std::uint64_t bytes = 0;
  for (std::size_t part = 0; part < part_bytes.size(); ++part) {
    const bool full = options.mode == CopyMode::overlapped && bytes >= options.batch_bytes_min;
    if (cuts.empty() || full) {
      cuts.push_back({part, part});
      bytes = 0;
    }
    cuts.back().last = part + 1;
    bytes += part_bytes[part];
  }
  return cuts;
}

}  // namespace holdfast
