#include "holdfast/core/ring_window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace holdfast {
namespace {

constexpr std::uint32_t kMaxRingFrames = 1 << 24;

std::uint32_t divide_up(std::uint32_t a, std::uint32_t b) { return a / b + (a % b == 0 ? 0 : 1); }

std::uint64_t total_frames(const RingGeometry& ring, std::uint32_t matched_chunks) {
  return std::uint64_t{matched_chunks} * ring.frames_per_chunk;
}

// Logical frames [first, first + frames) in neighbouring physical slots.
struct FrameRun {
  std::uint64_t first = 0;
  std::uint32_t slot = 0;
  std::uint32_t frames = 0;
};

// The ring as at most two runs: all that there is, or the sink and the most recent frames.
std::array<FrameRun, 2> frame_runs(const RingGeometry& ring, std::uint32_t matched_chunks) {
  const std::uint64_t total = total_frames(ring, matched_chunks);
  if (total <= ring.ring_frames) return {FrameRun{0, 0, static_cast<std::uint32_t>(total)}, FrameRun{}};
  const std::uint32_t recent = ring.ring_frames - ring.sink_frames;
  return {FrameRun{0, 0, ring.sink_frames}, FrameRun{total - recent, ring.sink_frames, recent}};
}

Error refused(Errc errc, std::string detail) { return make_error(errc, "ring_window", std::move(detail)); }

}  // namespace

std::vector<std::uint32_t> window_path(std::uint32_t matched_chunks, const WindowChunks& window) {
  const std::uint32_t first_recent = matched_chunks - std::min(matched_chunks, window.recent);
  const std::uint32_t sink_end = std::min(window.sink, first_recent);
  std::vector<std::uint32_t> path;
  path.reserve(sink_end + (matched_chunks - first_recent));
  for (std::uint32_t depth = 0; depth < sink_end; ++depth) path.push_back(depth);
  for (std::uint32_t depth = first_recent; depth < matched_chunks; ++depth) path.push_back(depth);
  return path;
}

Status RingGeometry::validate() const {
  if (frames_per_chunk == 0 || frame_tokens == 0 || ring_frames == 0) {
    return refused(Errc::invalid_argument, fmt::format("zero: {} frames per chunk, {} tokens per frame, {} ring frames",
                                                       frames_per_chunk, frame_tokens, ring_frames));
  }
  if (ring_frames > kMaxRingFrames || frames_per_chunk > kMaxRingFrames || sink_frames > kMaxRingFrames) {
    return refused(Errc::invalid_argument,
                   fmt::format("{} ring frames, {} frames per chunk, {} sink frames: at most {}", ring_frames,
                               frames_per_chunk, sink_frames, kMaxRingFrames));
  }
  if (full_length) {
    if (frames_per_chunk > ring_frames) {
      return refused(Errc::unsupported_geometry, fmt::format("a full-length ring of {} frames holds no chunk of {}",
                                                             ring_frames, frames_per_chunk));
    }
    return {};
  }
  if (sink_frames >= ring_frames || frames_per_chunk > ring_frames - sink_frames) {
    return refused(
        Errc::unsupported_geometry,
        fmt::format("a rolling ring of {} frames with a sink of {} needs chunks of at most {} frames, not {}",
                    ring_frames, sink_frames, ring_frames > sink_frames ? ring_frames - sink_frames : 0,
                    frames_per_chunk));
  }
  return {};
}

std::uint32_t RingGeometry::window_chunks() const {
  const std::uint32_t recent = ring_frames > sink_frames ? ring_frames - sink_frames : 1;
  return divide_up(recent, frames_per_chunk);
}

std::uint32_t RingGeometry::sink_chunks() const { return divide_up(sink_frames, frames_per_chunk); }

std::uint32_t RingGeometry::max_chunks() const {
  return full_length ? ring_frames / frames_per_chunk : std::numeric_limits<std::uint32_t>::max();
}

std::vector<std::uint32_t> RingGeometry::window_path(std::uint32_t matched_chunks) const {
  return holdfast::window_path(matched_chunks, {.sink = sink_chunks(), .recent = window_chunks()});
}

std::vector<std::uint64_t> RingGeometry::frames_of(std::uint32_t matched_chunks) const {
  std::vector<std::uint64_t> frames;
  for (const FrameRun& part : frame_runs(*this, matched_chunks)) {
    for (std::uint32_t i = 0; i < part.frames; ++i) frames.push_back(part.first + i);
  }
  return frames;
}

RingEnds RingGeometry::ends_of(std::uint32_t matched_chunks) const {
  const std::uint64_t total = total_frames(*this, matched_chunks);
  return {.local_end_tokens = std::min<std::uint64_t>(total, ring_frames) * frame_tokens,
          .global_end_tokens = total * frame_tokens};
}

TokenRange RingGeometry::finalize_slice(std::uint32_t matched_chunks) const {
  const std::uint64_t end = ends_of(matched_chunks).local_end_tokens;
  return {.begin = end - std::min<std::uint64_t>(end, std::uint64_t{frames_per_chunk} * frame_tokens), .end = end};
}

Result<std::vector<CopyRun>> RingGeometry::copy_runs(std::uint32_t matched_chunks,
                                                     std::span<const std::uint32_t> path) const {
  for (std::size_t i = 1; i < path.size(); ++i) {
    if (path[i] <= path[i - 1]) {
      return refused(Errc::invalid_argument,
                     fmt::format("path is not ascending: {} before {} at place {}", path[i - 1], path[i], i));
    }
  }
  if (matched_chunks > max_chunks()) {
    return refused(Errc::invalid_argument,
                   fmt::format("{} chunks of {} frames are more than a full-length ring of {} frames holds",
                               matched_chunks, frames_per_chunk, ring_frames));
  }
  std::vector<CopyRun> runs;
  for (const FrameRun& part : frame_runs(*this, matched_chunks)) {
    std::uint32_t done = 0;
    while (done < part.frames) {
      const std::uint64_t frame = part.first + done;
      CopyRun run;
      run.chunk_depth = static_cast<std::uint32_t>(frame / frames_per_chunk);
      run.src_frame = static_cast<std::uint32_t>(frame % frames_per_chunk);
      run.dst_frame = part.slot + done;
      run.frames = std::min(part.frames - done, frames_per_chunk - run.src_frame);
      if (!std::binary_search(path.begin(), path.end(), run.chunk_depth)) {
        return refused(Errc::incomplete,
                       fmt::format("frame {} belongs to chunk {}, which is not in the path", frame, run.chunk_depth));
      }
      runs.push_back(run);
      done += run.frames;
    }
  }
  return runs;
}

}  // namespace holdfast
