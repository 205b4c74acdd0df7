#include "holdfast/core/world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast {

Status validate_world(const WorldSpec& spec) {
  if (Status layout = spec.layout.validate(); !layout) return layout;
  if (Status ring = spec.ring.validate(); !ring) return ring;
  if (spec.layout.chunk_size != spec.ring.frames_per_chunk || spec.layout.frame_tokens != spec.ring.frame_tokens) {
    return make_error(Errc::invalid_argument, "validate_world", "layout and ring differ in frames per chunk or tokens");
  }
  return {};
}

std::vector<std::uint64_t> value_lengths(const Layout& layout) {
  std::vector<std::uint64_t> lengths;
  const std::size_t values = layout.chunk_shape().values();
  lengths.reserve(values);
  // After so many layers the shapes come in the same turn again.
  const std::size_t period = layout.chunk_shape().parts * std::max<std::size_t>(layout.mixed_kv_shapes.size(), 1);
  for (std::size_t i = 0; i < values; ++i) lengths.push_back(i < period ? layout.value_bytes(i) : lengths[i - period]);
  return lengths;
}

std::uint64_t slot_bytes_of(std::span<const std::uint64_t> value_bytes) {
  std::uint64_t sum = 0;
  for (const std::uint64_t bytes : value_bytes) sum += slot_bytes(bytes);
  return sum;
}

Status check_ring(const WorldSpec& spec, std::span<const DeviceTensor> ring) {
  const std::vector<std::uint64_t> lengths = value_lengths(spec.layout);
  if (ring.size() != lengths.size()) {
    return make_error(Errc::invalid_argument, "check_ring",
                      fmt::format("{} ring tensors, {} are needed", ring.size(), lengths.size()));
  }
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const std::uint64_t needed = lengths[i] / spec.layout.chunk_size * spec.ring.ring_frames;
    if (ring[i].bytes != needed) {
      return make_error(Errc::invalid_argument, "check_ring",
                        fmt::format("ring tensor {} has {} bytes, {} are needed", i, ring[i].bytes, needed));
    }
  }
  return {};
}

Result<std::vector<DeviceTensor>> finalized_chunk(const WorldSpec& spec, std::span<const DeviceTensor> ring,
                                                  std::uint64_t local_end_tokens) {
  const std::uint64_t chunk_tokens = std::uint64_t{spec.ring.frames_per_chunk} * spec.ring.frame_tokens;
  const std::uint64_t ring_tokens = std::uint64_t{spec.ring.ring_frames} * spec.ring.frame_tokens;
  if (local_end_tokens < chunk_tokens || local_end_tokens > ring_tokens) {
    return make_error(Errc::invalid_argument, "finalized_chunk",
                      fmt::format("the ring ends at token {} of {}", local_end_tokens, ring_tokens));
  }
  if (Status checked = check_ring(spec, ring); !checked) return std::move(checked.error());
  std::vector<DeviceTensor> values(ring.begin(), ring.end());
  for (DeviceTensor& value : values) {
    const std::uint64_t token_bytes = value.bytes / ring_tokens;
    value.data += (local_end_tokens - chunk_tokens) * token_bytes;
    value.bytes = chunk_tokens * token_bytes;
  }
  return values;
}

std::vector<ReadCopy> window_copies(const Layout& layout, std::span<const std::uint32_t> path,
                                    std::span<const CopyRun> runs) {
  const std::vector<std::uint64_t> lengths = value_lengths(layout);
  std::vector<ReadCopy> copies;
  copies.reserve(runs.size() * lengths.size());
  for (const CopyRun& run : runs) {
    const auto at = std::lower_bound(path.begin(), path.end(), run.chunk_depth);
    const std::size_t first_key = static_cast<std::size_t>(at - path.begin()) * lengths.size();
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const std::uint64_t frame_bytes = lengths[i] / layout.chunk_size;
      copies.push_back(
          {first_key + i, run.src_frame * frame_bytes, i, run.dst_frame * frame_bytes, run.frames * frame_bytes});
    }
  }
  return copies;
}

}  // namespace holdfast
