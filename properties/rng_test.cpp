// Random numbers are part of what a seed means: the vectors here were computed by an independent program.
#include "holdfast/sim/rng.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace holdfast::sim {
namespace {

template <class Draw>
auto draws(std::uint64_t seed, std::size_t count, Draw&& draw) {
  Rng rng(seed);
  std::vector<decltype(draw(rng))> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(draw(rng));
  return all;
}

TEST(Rng, ASeedGivesTheSameNumbersEverywhere) {
  const auto raw = [](Rng& rng) { return rng(); };
  using Numbers = std::vector<std::uint64_t>;
  EXPECT_EQ(draws(0, 4, raw),
            (Numbers{0x99EC5F36CB75F2B4, 0xBF6E1F784956452A, 0x1A5F849D4933E6E0, 0x6AA594F1262D2D2C}));
  EXPECT_EQ(draws(1, 4, raw),
            (Numbers{0xB3F2AF6D0FC710C5, 0x853B559647364CEA, 0x92F89756082A4514, 0x642E1C7BC266A3A7}));
  EXPECT_EQ(draws(0xDEADBEEF, 4, raw),
            (Numbers{0xC5555444A74D7E83, 0x65C30D37B4B16E38, 0x54F773200A4EFA23, 0x429AED75FB958AF7}));
}

TEST(Rng, DistributionsAreThoseOfTheVectors) {
  EXPECT_EQ(draws(7, 16, [](Rng& rng) { return rng.below(10); }),
            (std::vector<std::uint64_t>{7, 2, 8, 9, 9, 8, 0, 1, 4, 1, 5, 7, 9, 8, 4, 5}));
  const std::array<std::uint32_t, 4> weights{1, 0, 5, 2};
  EXPECT_EQ(draws(7, 16, [&](Rng& rng) { return rng.weighted(weights); }),
            (std::vector<std::size_t>{2, 2, 3, 3, 3, 3, 0, 0, 2, 2, 2, 2, 3, 3, 2, 2}));
  EXPECT_EQ(draws(7, 4, [](Rng& rng) { return rng.between(100, 1'000'000'000'000); }),
            (std::vector<std::uint64_t>{700576482210, 278751229546, 839627461893, 981097725017}));
  EXPECT_EQ(draws(7, 8, [](Rng& rng) { return rng.ratio(1, 4); }),
            (std::vector<bool>{false, false, false, false, false, false, true, true}));
}

TEST(Rng, BelowIsUniformWhereTheBoundDividesNothing) {
  constexpr std::uint64_t kBound = 3;
  constexpr int kDraws = 30'000;
  std::array<int, kBound> counts{};
  Rng rng(11);
  for (int i = 0; i < kDraws; ++i) ++counts[rng.below(kBound)];
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 3, 400);
}

// Without rejection, every third number below such a bound would come twice as often as the others.
TEST(Rng, BelowIsUniformUpToALargeBound) {
  constexpr std::uint64_t kBound = 3ULL << 62;
  constexpr int kDraws = 30'000;
  std::array<int, 3> counts{};
  Rng rng(13);
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t number = rng.below(kBound);
    ASSERT_LT(number, kBound);
    ++counts[number % 3];
  }
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 3, 400);
}

TEST(Rng, AWeightOfZeroIsNeverPicked) {
  const std::array<std::uint32_t, 3> weights{0, 1, 0};
  Rng rng(17);
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(rng.weighted(weights), 1U);
}

TEST(Rng, ASplitGeneratorDoesNotFollowItsParent) {
  Rng parent(7);
  Rng child = parent.split();
  EXPECT_EQ(child(), 0x214C58958CA2A8A5U);
  EXPECT_EQ(parent(), 0x475C3D964F482CD2U);
}

TEST(RngDeathTest, ABoundOfZeroIsABug) {
  Rng rng(1);
  EXPECT_DEATH((void)rng.below(0), "below 0");
}

}  // namespace
}  // namespace holdfast::sim
