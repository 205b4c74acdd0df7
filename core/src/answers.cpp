#include "holdfast/core/answers.hpp"

#include <fmt/format.h>

#include <limits>

namespace holdfast {
namespace {

bool is_mapping(std::uintptr_t base, std::uint64_t bytes) {
  return base != 0 && bytes != 0 && bytes <= kSegmentBytesMax &&
         base <= std::numeric_limits<std::uintptr_t>::max() - bytes;
}

}  // namespace

Status check_segments(std::span<const Segment> segments) {
  if (segments.empty()) {
    return fluxon_error(FluxonErrc::backend_unavailable, "wait_local_segments_ready", "no segment is mounted");
  }
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Segment& segment = segments[i];
    if (is_mapping(segment.write_ptr, segment.len) && is_mapping(segment.read_ptr, segment.len)) continue;
    return make_error(Errc::bad_answer, "wait_local_segments_ready",
                      fmt::format("segment {} of {} bytes is no mapping of this process", i, segment.len));
  }
  return {};
}

Status check_get_start(const GetStart& start, std::uint64_t keys, std::uint64_t groups) {
  const bool all = start.raw_prefix_hit_len == keys;
  const bool sound = start.raw_prefix_hit_len <= keys && start.transferable_len <= start.raw_prefix_hit_len &&
                     start.prefix_hit_groups <= groups && start.all_hit == all &&
                     (!all || start.transferable_len == keys);
  if (sound) return {};
  return make_error(
      Errc::bad_answer, "get_start",
      fmt::format("{} found, {} transferable, {} groups, {}all hit, of {} keys in {} groups", start.raw_prefix_hit_len,
                  start.transferable_len, start.prefix_hit_groups, start.all_hit ? "" : "not ", keys, groups));
}

}  // namespace holdfast
