// A plan's table is read only when it is what was asked for.
#include "holdfast/core/plan_blob.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace holdfast {
namespace {

class PlanBlobTest : public testing::Test {
 protected:
  PlanBlobTest() {
    segment.write_ptr = 0x10000;
    segment.read_ptr = 0x90000;
    segment.len = 0x4000;
    words = {kPlanMagic, 2, 0x10000, 0x11000};
  }

  Result<std::vector<std::uintptr_t>> decode(PlanSide side = PlanSide::write) {
    return decode_plan_blob({{reinterpret_cast<std::uintptr_t>(words.data())}, side, lengths, std::span(&segment, 1)});
  }
  void expect_refused(const std::string& part_of_reason) {
    const auto decoded = decode();
    ASSERT_FALSE(decoded.has_value());
    EXPECT_TRUE(decoded.error().is(Errc::bad_plan_blob));
    EXPECT_NE(decoded.error().detail.find(part_of_reason), std::string::npos) << decoded.error().detail;
  }

  Segment segment;
  std::vector<std::uint64_t> lengths{0x1000, 0x1000};
  std::vector<std::uint64_t> words;
};

TEST_F(PlanBlobTest, GivesTheAddressesInKeyOrder) {
  const auto decoded = decode();
  ASSERT_TRUE(decoded.has_value()) << to_string(decoded.error());
  EXPECT_EQ(*decoded, (std::vector<std::uintptr_t>{0x10000, 0x11000}));
}

TEST_F(PlanBlobTest, MagicIsValidated) {
  words[0] ^= 1;
  expect_refused("magic");
}

TEST_F(PlanBlobTest, CountIsValidated) {
  words[1] = 3;
  expect_refused("count");
  words[1] = 1;
  expect_refused("count");
}

TEST_F(PlanBlobTest, ANullPlanIsRefused) {
  const auto decoded = decode_plan_blob({{0}, PlanSide::write, lengths, std::span(&segment, 1)});
  ASSERT_FALSE(decoded.has_value());
  EXPECT_TRUE(decoded.error().is(Errc::bad_plan_blob));
}

TEST_F(PlanBlobTest, AMisalignedPlanIsRefused) {
  const auto at = reinterpret_cast<std::uintptr_t>(words.data());
  for (std::uintptr_t off = 1; off < 8; ++off) {
    const auto decoded = decode_plan_blob({{at + off}, PlanSide::write, lengths, std::span(&segment, 1)});
    ASSERT_FALSE(decoded.has_value());
    EXPECT_NE(decoded.error().detail.find("aligned"), std::string::npos);
  }
}

TEST_F(PlanBlobTest, ANullAddressIsRefused) {
  words[3] = 0;
  expect_refused("value 1 is null");
}

TEST_F(PlanBlobTest, AnAddressOutsideEverySegmentIsRefused) {
  for (const std::uint64_t address : {0x0FFFULL, 0xFFFFULL, 0x14000ULL, 0x90000ULL, ~0ULL}) {
    words[3] = address;
    expect_refused("value 1 of");
  }
}

TEST_F(PlanBlobTest, AValueThatReachesPastItsSegmentIsRefused) {
  words[3] = 0x13001;
  expect_refused("not whole");
  words[3] = 0x13000;
  EXPECT_TRUE(decode().has_value());
  lengths[1] = ~0ULL;
  expect_refused("not whole");
}

TEST_F(PlanBlobTest, AValueThatDoesNotBeginASlotIsRefused) {
  for (const std::uint64_t off : {8ULL, 0x800ULL, 0xFF8ULL}) {
    words[3] = 0x12000 + off;
    expect_refused("not at the beginning of a slot");
  }
}

TEST_F(PlanBlobTest, TwoValuesInOneSlotAreRefused) {
  words[3] = words[2];
  expect_refused("values 0 and 1 are in one slot");
  lengths[1] = 0x1001;  // two slots
  words = {kPlanMagic, 2, 0x11000, 0x10000};
  expect_refused("values 1 and 0 are in one slot");
}

TEST_F(PlanBlobTest, AReadPlanLiesInTheReadMapping) {
  EXPECT_FALSE(decode(PlanSide::read).has_value());
  words = {kPlanMagic, 2, 0x90000, 0x93000};
  EXPECT_TRUE(decode(PlanSide::read).has_value());
  EXPECT_FALSE(decode(PlanSide::write).has_value());
}

}  // namespace
}  // namespace holdfast
