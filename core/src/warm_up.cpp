#include "holdfast/core/warm_up.hpp"

#include "holdfast/core/check.hpp"

namespace holdfast {

std::string_view to_string(WarmUpStage stage) {
  switch (stage) {
    case WarmUpStage::waiting:
      return "waiting";
    case WarmUpStage::unregistering:
      return "unregistering";
    case WarmUpStage::touching:
      return "touching";
    case WarmUpStage::registering:
      return "registering";
  }
  return {};
}

std::vector<HostRange> parts_of(std::span<const Segment> segments, std::uint64_t part_bytes, WarmUpProgress& progress) {
  check(part_bytes > 0, "parts of no bytes to touch");
  std::vector<HostRange> parts;
  for (const Segment& segment : segments) {
    const bool twice = segment.read_ptr != segment.write_ptr;
    progress.touch_total_bytes += segment.len;
    progress.register_total_bytes += twice ? 2 * segment.len : segment.len;
    const std::vector<HostRange> its = cut_into_pieces({segment.write_ptr, segment.len}, part_bytes);
    parts.insert(parts.end(), its.begin(), its.end());
  }
  return parts;
}

}  // namespace holdfast
