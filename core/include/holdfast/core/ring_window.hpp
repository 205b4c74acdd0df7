// Which chunks a resumed session needs, and where each of their frames goes in the KV ring: the arithmetic that makes
// a resumed ring equal, byte for byte, the ring of a cold run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holdfast/core/result.hpp"

namespace holdfast {

// Depths of the chunks of a window path, oldest first: the sink chunks above, then the most recent ones, none twice.
struct WindowChunks {
  std::uint32_t sink = 0;
  std::uint32_t recent = 0;
};
[[nodiscard]] std::vector<std::uint32_t> window_path(std::uint32_t matched_chunks, const WindowChunks& window);

// Frames of one chunk that go to neighbouring slots of the ring.
struct CopyRun {
  std::uint32_t chunk_depth = 0;
  std::uint32_t src_frame = 0;  // within the chunk
  std::uint32_t dst_frame = 0;  // physical, within the ring
  std::uint32_t frames = 0;
  friend bool operator==(const CopyRun&, const CopyRun&) = default;
};

struct RingEnds {
  std::uint64_t local_end_tokens = 0;   // physical
  std::uint64_t global_end_tokens = 0;  // logical
  friend bool operator==(const RingEnds&, const RingEnds&) = default;
};

// A range of tokens, end exclusive.
struct TokenRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend bool operator==(const TokenRange&, const TokenRange&) = default;
};

// A ring of `ring_frames` frames whose first `sink_frames` stay for good. A rolling ring drops the oldest frames behind
// the sink; a full-length ring is as long as the whole video and never rolls.
// Everything but validate() expects a geometry that validate() accepted.
struct RingGeometry {
  std::uint32_t frames_per_chunk = 0;
  std::uint32_t frame_tokens = 0;
  std::uint32_t ring_frames = 0;
  std::uint32_t sink_frames = 0;
  bool full_length = false;

  // InvalidArgument for zeroes and sizes that overflow. UnsupportedGeometry where a cold ring, once rolled, differs
  // from any reconstruction: a rolling ring needs frames_per_chunk <= ring_frames - sink_frames.
  [[nodiscard]] Status validate() const;

  [[nodiscard]] std::uint32_t window_chunks() const;
  [[nodiscard]] std::uint32_t sink_chunks() const;
  // How many chunks a full-length ring can hold; no limit for a rolling ring.
  [[nodiscard]] std::uint32_t max_chunks() const;

  [[nodiscard]] std::vector<std::uint32_t> window_path(std::uint32_t matched_chunks) const;

  // The logical frame in each physical slot, after `matched_chunks` chunks.
  [[nodiscard]] std::vector<std::uint64_t> frames_of(std::uint32_t matched_chunks) const;
  [[nodiscard]] RingEnds ends_of(std::uint32_t matched_chunks) const;

  // Where chunk `matched_chunks - 1` lies in the ring right after it was generated.
  [[nodiscard]] TokenRange finalize_slice(std::uint32_t matched_chunks) const;

  // The copies that rebuild the ring from the chunks of `path` (depths, strictly ascending), ordered by destination.
  // Incomplete when a frame's chunk is not in the path; InvalidArgument for a path that is not ascending or more
  // chunks than a full-length ring holds. Nothing is to be copied then.
  [[nodiscard]] Result<std::vector<CopyRun>> copy_runs(std::uint32_t matched_chunks,
                                                       std::span<const std::uint32_t> path) const;

  friend bool operator==(const RingGeometry&, const RingGeometry&) = default;
};

}  // namespace holdfast
