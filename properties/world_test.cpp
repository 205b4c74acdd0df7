// A session's world: what is refused before anything is opened, stored or copied.
#include "holdfast/core/world.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace holdfast {
namespace {

WorldSpec sane_world() {
  WorldSpec spec;
  spec.layout.n_layers = 2;
  spec.layout.kv_shape = {48};
  spec.layout.kv_dtype = "uint8";
  spec.layout.chunk_size = 2;
  spec.layout.frame_tokens = 3;
  spec.ring = {.frames_per_chunk = 2, .frame_tokens = 3, .ring_frames = 8, .sink_frames = 0, .full_length = true};
  return spec;
}

// K and V of two layers, each of eight frames of three tokens.
std::vector<DeviceTensor> sane_ring() { return std::vector<DeviceTensor>(4, {0x1000, 8 * 3 * 48, 0, true}); }

TEST(World, ALayoutThatIsNotSaneIsRefused) {
  ASSERT_TRUE(validate_world(sane_world()).has_value());
  WorldSpec spec = sane_world();
  spec.layout.kv_dtype = "complex";
  const Status valid = validate_world(spec);
  ASSERT_FALSE(valid.has_value());
  EXPECT_TRUE(valid.error().is(Errc::invalid_argument));
}

TEST(World, ALayoutThatDiffersFromItsRingIsRefused) {
  WorldSpec frames = sane_world();
  frames.layout.chunk_size = 1;
  WorldSpec tokens = sane_world();
  tokens.layout.frame_tokens = 1;
  for (const WorldSpec& spec : {frames, tokens}) {
    const Status valid = validate_world(spec);
    ASSERT_FALSE(valid.has_value());
    EXPECT_TRUE(valid.error().is(Errc::invalid_argument));
  }
}

TEST(World, ARingWithATensorTooFewOrTooManyIsRefused) {
  ASSERT_TRUE(check_ring(sane_world(), sane_ring()).has_value());
  for (const int more : {-1, 1}) {
    std::vector<DeviceTensor> ring = sane_ring();
    ring.resize(ring.size() + static_cast<std::size_t>(more), ring.front());
    const Status checked = check_ring(sane_world(), ring);
    ASSERT_FALSE(checked.has_value()) << ring.size();
    EXPECT_TRUE(checked.error().is(Errc::invalid_argument));
  }
}

TEST(World, NoChunkIsTakenFromARingThatDoesNotFit) {
  std::vector<DeviceTensor> ring = sane_ring();
  ASSERT_TRUE(finalized_chunk(sane_world(), ring, 6).has_value());
  ring.back().bytes /= 2;
  const Result<std::vector<DeviceTensor>> values = finalized_chunk(sane_world(), ring, 6);
  ASSERT_FALSE(values.has_value());
  EXPECT_TRUE(values.error().is(Errc::invalid_argument));
}

}  // namespace
}  // namespace holdfast
