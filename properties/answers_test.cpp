// An answer that no honest runtime gives is refused before anything is built on it.
#include "holdfast/core/answers.hpp"

#include <gtest/gtest.h>

#include <array>

namespace holdfast {
namespace {

constexpr std::uint64_t kBytes = 1 << 20;

Segment segment(std::uintptr_t write, std::uintptr_t read, std::uint64_t bytes) {
  Segment segment;
  segment.write_ptr = write;
  segment.read_ptr = read;
  segment.len = bytes;
  return segment;
}

bool refused(const Segment& segment) {
  const Status status = check_segments(std::span(&segment, 1));
  return !status && status.error().is(Errc::bad_answer);
}

TEST(Answers, AMappingIsTaken) {
  const Segment good = segment(0x10000, 0x900000, kBytes);
  EXPECT_TRUE(check_segments(std::span(&good, 1)));
}

TEST(Answers, TheLongestMappingAndOneUpToTheLastAddressAreTaken) {
  const Segment longest = segment(0x10000, 0x900000, kSegmentBytesMax);
  EXPECT_TRUE(check_segments(std::span(&longest, 1)));
  const Segment last = segment(0x10000, ~std::uintptr_t{0} - kBytes, kBytes);
  EXPECT_TRUE(check_segments(std::span(&last, 1)));
}

TEST(Answers, NoSegmentIsUnavailable) {
  const Status status = check_segments({});
  ASSERT_FALSE(status);
  EXPECT_TRUE(is_fluxon(status.error(), FluxonErrc::backend_unavailable));
}

TEST(Answers, ASegmentThatIsNoMappingIsRefused) {
  EXPECT_TRUE(refused(segment(0, 0x900000, kBytes)));
  EXPECT_TRUE(refused(segment(0x10000, 0, kBytes)));
  EXPECT_TRUE(refused(segment(0x10000, 0x900000, 0)));
  EXPECT_TRUE(refused(segment(0x10000, 0x900000, kSegmentBytesMax + 1)));
  EXPECT_TRUE(refused(segment(~std::uintptr_t{0} - kBytes + 1, 0x900000, kBytes)));
  EXPECT_TRUE(refused(segment(0x10000, ~std::uintptr_t{0} - kBytes + 1, kBytes)));
}

TEST(Answers, EverySegmentIsLookedAt) {
  const std::array<Segment, 2> two{segment(0x10000, 0x900000, kBytes), segment(0, 0x900000, kBytes)};
  const Status status = check_segments(two);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().detail.find("segment 1"), std::string::npos);
}

GetStart start(std::uint64_t found, std::uint64_t transferable, std::uint64_t groups, bool all) {
  GetStart start;
  start.raw_prefix_hit_len = found;
  start.transferable_len = transferable;
  start.prefix_hit_groups = groups;
  start.all_hit = all;
  return start;
}

TEST(Answers, CountsOfAGetThatAgreeAreTaken) {
  EXPECT_TRUE(check_get_start(start(4, 4, 2, true), 4, 2));
  EXPECT_TRUE(check_get_start(start(3, 2, 1, false), 4, 2));
  EXPECT_TRUE(check_get_start(start(0, 0, 0, false), 4, 2));
}

TEST(Answers, CountsOfAGetThatContradictEachOtherAreRefused) {
  for (const GetStart& bad : {start(5, 4, 2, false), start(3, 4, 2, false), start(3, 2, 3, false), start(3, 2, 1, true),
                              start(4, 4, 2, false), start(4, 2, 1, true)}) {
    const Status status = check_get_start(bad, 4, 2);
    ASSERT_FALSE(status);
    EXPECT_TRUE(status.error().is(Errc::bad_answer)) << to_string(status.error());
  }
}

}  // namespace
}  // namespace holdfast
