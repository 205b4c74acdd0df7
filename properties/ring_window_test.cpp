#include "holdfast/core/ring_window.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "golden.hpp"

namespace holdfast {
namespace {

using nlohmann::json;
using Frames = std::vector<std::uint64_t>;

// A cold run, one chunk at a time: room for the chunk is made by moving what is behind the sink to the left.
class ColdRing {
 public:
  explicit ColdRing(const RingGeometry& ring) : ring_(ring) {}

  void write_chunk() {
    const std::size_t end = frames_.size() + ring_.frames_per_chunk;
    const std::size_t dropped = end > ring_.ring_frames ? end - ring_.ring_frames : 0;
    std::vector<std::uint64_t> shifted;
    for (std::size_t i = 0; i < frames_.size(); ++i) {
      const bool in_sink = i < ring_.sink_frames;
      if (in_sink || i >= ring_.sink_frames + dropped) shifted.push_back(frames_[i]);
    }
    frames_ = std::move(shifted);
    for (std::uint32_t i = 0; i < ring_.frames_per_chunk; ++i) frames_.push_back(next_frame_++);
  }
  [[nodiscard]] const Frames& frames() const { return frames_; }

 private:
  RingGeometry ring_;
  Frames frames_;
  std::uint64_t next_frame_ = 0;
};

Frames cold_ring(const RingGeometry& ring, std::uint32_t chunks) {
  ColdRing cold(ring);
  for (std::uint32_t i = 0; i < chunks; ++i) cold.write_chunk();
  return cold.frames();
}

// What the copies make of an empty ring. Nothing when two write one slot, or one reads or writes out of bounds.
std::optional<Frames> resumed_ring(const RingGeometry& ring, const std::vector<CopyRun>& runs) {
  constexpr std::uint64_t kNothing = std::numeric_limits<std::uint64_t>::max();
  Frames frames(ring.ring_frames, kNothing);
  for (const CopyRun& run : runs) {
    if (run.frames == 0 || run.src_frame + run.frames > ring.frames_per_chunk) return std::nullopt;
    for (std::uint32_t i = 0; i < run.frames; ++i) {
      if (run.dst_frame + i >= ring.ring_frames || frames[run.dst_frame + i] != kNothing) return std::nullopt;
      frames[run.dst_frame + i] = std::uint64_t{run.chunk_depth} * ring.frames_per_chunk + run.src_frame + i;
    }
  }
  while (!frames.empty() && frames.back() == kNothing) frames.pop_back();
  return frames;
}

std::optional<Frames> resumed_ring(const RingGeometry& ring, std::uint32_t chunks) {
  const Result<std::vector<CopyRun>> runs = ring.copy_runs(chunks, ring.window_path(chunks));
  return runs ? resumed_ring(ring, *runs) : std::nullopt;
}

RingGeometry rolling(std::uint32_t ring_frames, std::uint32_t sink_frames, std::uint32_t frames_per_chunk) {
  return {
      .frames_per_chunk = frames_per_chunk, .frame_tokens = 2, .ring_frames = ring_frames, .sink_frames = sink_frames};
}

RingGeometry full_length(std::uint32_t ring_frames, std::uint32_t sink_frames, std::uint32_t frames_per_chunk) {
  RingGeometry ring = rolling(ring_frames, sink_frames, frames_per_chunk);
  ring.full_length = true;
  return ring;
}

RingGeometry geometry_of(const json& vector) {
  RingGeometry ring = rolling(vector["L"], vector["S"], vector["c"]);
  ring.frame_tokens = vector["frame_tokens"];
  ring.full_length = vector["name"].get<std::string>().starts_with("full length");
  return ring;
}

TEST(RingWindow, WindowPathAgreesWithTheGoldenVectors) {
  for (const json& vector : test::golden("window_path")) {
    const WindowChunks window{.sink = vector["sink_chunks"], .recent = vector["window_chunks"]};
    EXPECT_EQ(window_path(vector["K"], window), vector["path_depths"].get<std::vector<std::uint32_t>>()) << vector;
  }
}

TEST(RingWindow, WindowAndSinkChunksAgreeWithTheGoldenVectors) {
  for (const json& vector : test::golden("rolling_config")) {
    const RingGeometry ring = rolling(vector["L"], vector["S"], vector["c"]);
    EXPECT_EQ(ring.window_chunks(), vector["window_chunks"]) << vector;
    EXPECT_EQ(ring.sink_chunks(), vector["sink_chunks"]) << vector;
  }
}

TEST(RingWindow, RingsAgreeWithTheGoldenVectors) {
  int refused = 0;
  for (const json& vector : test::golden("ring")) {
    const RingGeometry ring = geometry_of(vector);
    if (vector["name"].get<std::string>().starts_with("INVALID")) {
      EXPECT_TRUE(ring.validate().error().is(Errc::unsupported_geometry));
      ++refused;
      continue;
    }
    ASSERT_TRUE(ring.validate()) << vector["name"];
    EXPECT_EQ(ring.window_chunks(), vector["window_chunks"]);
    EXPECT_EQ(ring.sink_chunks(), vector["sink_chunks"]);
    for (const json& at : vector["cases"]) {
      const std::uint32_t chunks = at["K"];
      SCOPED_TRACE(vector["name"].get<std::string>() + ", K = " + std::to_string(chunks));
      EXPECT_EQ(ring.window_path(chunks), at["path_depths"].get<std::vector<std::uint32_t>>());
      EXPECT_EQ(ring.frames_of(chunks), at["frames"].get<Frames>());
      EXPECT_EQ(ring.ends_of(chunks).local_end_tokens, at["local_end_tokens"]);
      EXPECT_EQ(ring.ends_of(chunks).global_end_tokens, at["global_end_tokens"]);
      EXPECT_EQ(ring.finalize_slice(chunks).begin, at["finalize_slice_tokens"][0]);
      EXPECT_EQ(ring.finalize_slice(chunks).end, at["finalize_slice_tokens"][1]);
      std::vector<CopyRun> runs;
      for (const json& run : at["copy_runs"]) {
        runs.push_back({run["chunk"], run["src_frame"], run["dst_frame"], run["n"]});
      }
      EXPECT_EQ(ring.copy_runs(chunks, ring.window_path(chunks)).value(), runs);
    }
  }
  EXPECT_EQ(refused, 1);
}

// The claim of the golden file's ring_sweep, decided by our own cold ring.
TEST(RingWindow, EveryRingThatDiffersFromTheColdOneIsOfARefusedGeometry) {
  ASSERT_TRUE(test::golden("ring_sweep")["every_not_equal_has_c_greater_than_L_minus_S"].get<bool>());
  int different = 0;
  for (std::uint32_t length = 1; length <= 14; ++length) {
    for (std::uint32_t sink = 0; sink <= length; ++sink) {
      for (std::uint32_t chunk = 1; chunk <= length; ++chunk) {
        const RingGeometry ring = rolling(length, sink, chunk);
        EXPECT_EQ(ring.validate().has_value(), chunk <= length - sink);
        for (std::uint32_t chunks = 1; chunks <= 8; ++chunks) {
          if (resumed_ring(ring, chunks) == cold_ring(ring, chunks)) continue;
          ++different;
          EXPECT_GT(chunk, length - sink) << "L " << length << ", S " << sink << ", K " << chunks;
        }
      }
    }
  }
  EXPECT_GT(different, 0);
}

struct Drawn {
  RingGeometry ring;
  std::uint32_t chunks = 0;
};

Drawn draw_rolling() {
  const auto chunk = *rc::gen::inRange<std::uint32_t>(1, 9);
  const auto sink = *rc::gen::inRange<std::uint32_t>(0, 30);
  const auto recent = *rc::gen::inRange<std::uint32_t>(chunk, chunk + 30);
  RingGeometry ring = rolling(sink + recent, sink, chunk);
  ring.frame_tokens = *rc::gen::inRange<std::uint32_t>(1, 5);
  return {ring, *rc::gen::inRange<std::uint32_t>(0, 60)};
}

RC_GTEST_PROP(RingWindow, ARolledRingEqualsTheColdRingAtEveryResumePoint, ()) {
  const auto [ring, chunks] = draw_rolling();
  RC_ASSERT(ring.validate().has_value());
  ColdRing cold(ring);
  for (std::uint32_t at = 0; at <= chunks; ++at) {
    RC_ASSERT(resumed_ring(ring, at) == cold.frames());
    RC_ASSERT(ring.frames_of(at) == cold.frames());
    RC_ASSERT(ring.ends_of(at).local_end_tokens == cold.frames().size() * ring.frame_tokens);
    cold.write_chunk();
  }
}

RC_GTEST_PROP(RingWindow, AFullLengthRingEqualsTheColdRingAtEveryResumePoint, ()) {
  const auto chunk = *rc::gen::inRange<std::uint32_t>(1, 9);
  const auto length = *rc::gen::inRange<std::uint32_t>(chunk, 80);
  const auto sink = *rc::gen::inRange<std::uint32_t>(0, 100);
  const RingGeometry ring = full_length(length, sink, chunk);
  RC_ASSERT(ring.validate().has_value());
  for (std::uint32_t at = 0; at <= ring.max_chunks(); ++at) RC_ASSERT(resumed_ring(ring, at) == cold_ring(ring, at));
  RC_ASSERT(ring.copy_runs(ring.max_chunks() + 1, {}).error().is(Errc::invalid_argument));
}

RC_GTEST_PROP(RingWindow, AForkedSessionGoesOnAsTheColdRing, ()) {
  const auto [ring, chunks] = draw_rolling();
  RC_PRE(chunks > 0U);
  const auto resumed_at = *rc::gen::inRange<std::uint32_t>(0, chunks);
  const std::optional<Frames> resumed = resumed_ring(ring, resumed_at);
  RC_ASSERT(resumed.has_value());
  // Going on from equal rings is equal: what the next chunks do depends on the ring and its ends only.
  RC_ASSERT(*resumed == cold_ring(ring, resumed_at));
  RC_ASSERT(resumed_ring(ring, chunks) == cold_ring(ring, chunks));
}

RC_GTEST_PROP(RingWindow, RunsAreAsLongAsTheyCanBeAndOrderedByDestination, ()) {
  const auto [ring, chunks] = draw_rolling();
  const std::vector<CopyRun> runs = ring.copy_runs(chunks, ring.window_path(chunks)).value();
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const CopyRun& before = runs[i - 1];
    RC_ASSERT(before.dst_frame + before.frames == runs[i].dst_frame);
    RC_ASSERT(!(before.chunk_depth == runs[i].chunk_depth && before.src_frame + before.frames == runs[i].src_frame));
  }
}

RC_GTEST_PROP(RingWindow, WithoutAChunkThatIsNeededNoCopyIsPlanned, ()) {
  const auto [ring, chunks] = draw_rolling();
  RC_PRE(chunks > 0U);
  std::vector<std::uint32_t> path = ring.window_path(chunks);
  const std::vector<CopyRun> runs = ring.copy_runs(chunks, path).value();
  const std::uint32_t lost = runs[*rc::gen::inRange<std::size_t>(0, runs.size())].chunk_depth;
  std::erase(path, lost);
  const Result<std::vector<CopyRun>> without = ring.copy_runs(chunks, path);
  RC_ASSERT(!without.has_value());
  RC_ASSERT(without.error().is(Errc::incomplete));
  RC_ASSERT(without.error().detail.find("chunk " + std::to_string(lost)) != std::string::npos);
}

TEST(RingWindow, SinkLargerThanAChunk) {
  const RingGeometry ring = rolling(15, 7, 3);
  EXPECT_EQ(ring.sink_chunks(), 3U);
  for (std::uint32_t chunks = 0; chunks < 20; ++chunks) EXPECT_EQ(resumed_ring(ring, chunks), cold_ring(ring, chunks));
}

TEST(RingWindow, NoChunksAreAnEmptyRing) {
  const RingGeometry ring = rolling(7, 3, 3);
  EXPECT_TRUE(ring.window_path(0).empty());
  EXPECT_TRUE(ring.frames_of(0).empty());
  EXPECT_TRUE(ring.copy_runs(0, {}).value().empty());
  EXPECT_EQ(ring.ends_of(0), RingEnds{});
  EXPECT_EQ(ring.finalize_slice(0), TokenRange{});
}

TEST(RingWindow, AnAncestorPathThatIsNotAscendingIsRefused) {
  const RingGeometry ring = rolling(7, 3, 3);
  EXPECT_TRUE(ring.copy_runs(2, std::vector<std::uint32_t>{1, 0}).error().is(Errc::invalid_argument));
  EXPECT_TRUE(ring.copy_runs(2, std::vector<std::uint32_t>{0, 1, 1}).error().is(Errc::invalid_argument));
}

TEST(RingWindow, GeometriesThatARollingRingCannotReconstructAreRefused) {
  EXPECT_TRUE(rolling(6, 3, 3).validate());
  for (const RingGeometry& ring : {rolling(5, 3, 3), rolling(3, 3, 1), rolling(3, 5, 1), rolling(2, 0, 3)}) {
    EXPECT_TRUE(ring.validate().error().is(Errc::unsupported_geometry));
  }
  EXPECT_TRUE(full_length(4, 3, 3).validate());
  EXPECT_TRUE(full_length(2, 0, 3).validate().error().is(Errc::unsupported_geometry));
}

TEST(RingWindow, ZeroesAndHugeNumbersAreRefused) {
  constexpr std::uint32_t kHuge = std::numeric_limits<std::uint32_t>::max();
  RingGeometry no_tokens = rolling(7, 3, 3);
  no_tokens.frame_tokens = 0;
  for (const RingGeometry& ring :
       {rolling(0, 0, 3), rolling(7, 3, 0), no_tokens, rolling(kHuge, 0, 1), full_length(7, kHuge, 1)}) {
    EXPECT_TRUE(ring.validate().error().is(Errc::invalid_argument));
  }
}

TEST(RingWindow, TheLargestRingIsTaken) {
  EXPECT_TRUE(rolling(1 << 24, 0, 1).validate());
  EXPECT_TRUE(rolling((1 << 24) + 1, 0, 1).validate().error().is(Errc::invalid_argument));
}

TEST(RingWindow, ARefusalNamesTheLargestChunkThatFits) {
  EXPECT_NE(rolling(5, 3, 3).validate().error().detail.find("at most 2 frames, not 3"), std::string::npos);
  EXPECT_NE(rolling(3, 5, 1).validate().error().detail.find("at most 0 frames, not 1"), std::string::npos);
}

TEST(RingWindow, TheLargestResumePointOverflowsNothing) {
  constexpr std::uint32_t kChunks = std::numeric_limits<std::uint32_t>::max();
  const RingGeometry ring = rolling(7, 3, 3);
  EXPECT_EQ(ring.ends_of(kChunks).global_end_tokens, std::uint64_t{kChunks} * 6);
  EXPECT_EQ(ring.copy_runs(kChunks, ring.window_path(kChunks)).value().back(), (CopyRun{kChunks - 1, 0, 4, 3}));
}

}  // namespace
}  // namespace holdfast
