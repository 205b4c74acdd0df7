#include "holdfast/core/break_even.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "golden.hpp"

namespace holdfast {
namespace {

TEST(BreakEven, AgreesWithTheGoldenVectors) {
  for (const nlohmann::json& vector : test::golden("break_even")) {
    const Result<std::uint32_t> k = break_even_k({.recompute_per_chunk_s = vector["recompute_per_chunk_s"],
                                                  .fetch_per_chunk_s = vector["fetch_per_chunk_s"],
                                                  .fixed_overhead_s = vector["fixed_overhead_s"],
                                                  .window_chunks = vector["window_chunks"],
                                                  .max_k = vector["max_k"]});
    ASSERT_TRUE(k);
    EXPECT_EQ(*k, vector["break_even_k"]) << vector["name"];
  }
}

TEST(BreakEven, FetchCostAgreesWithTheGoldenInputs) {
  FetchCosts costs{.chunk_bytes = 3'833'856'000, .bandwidth_bytes_per_s = 3.5e9};
  EXPECT_EQ(fetch_per_chunk_s(costs).value(), 1.0953874285714287);
  costs.overlap = 0.5;
  EXPECT_EQ(fetch_per_chunk_s(costs).value(), 0.5476937142857143);
}

TEST(BreakEven, NothingPaysWithinNoChunks) {
  EXPECT_EQ(break_even_k({.recompute_per_chunk_s = 1, .max_k = 0}).value(), 1U);
}

TEST(BreakEven, TheLastChunkThatIsTriedMayPay) {
  EXPECT_EQ(break_even_k({.recompute_per_chunk_s = 1, .fixed_overhead_s = 2.5, .max_k = 3}).value(), 3U);
}

TEST(BreakEven, TheEndsOfEachRangeAreAllowed) {
  EXPECT_EQ(break_even_k({.recompute_per_chunk_s = 1, .max_k = kBreakEvenMaxK}).value(), 1U);
  EXPECT_EQ(fetch_per_chunk_s({.chunk_bytes = 8, .bandwidth_bytes_per_s = 2, .overlap = 0}).value(), 0.0);
  EXPECT_EQ(fetch_per_chunk_s({.chunk_bytes = 8, .bandwidth_bytes_per_s = 2, .overlap = 1}).value(), 4.0);
}

TEST(BreakEven, CostsThatAreNoCostsAreRefused) {
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(break_even_k({.recompute_per_chunk_s = bad}).error().is(Errc::invalid_argument));
    EXPECT_TRUE(break_even_k({.fetch_per_chunk_s = bad}).error().is(Errc::invalid_argument));
    EXPECT_TRUE(break_even_k({.fixed_overhead_s = bad}).error().is(Errc::invalid_argument));
    EXPECT_TRUE(fetch_per_chunk_s({.bandwidth_bytes_per_s = bad}).error().is(Errc::invalid_argument));
    EXPECT_TRUE(fetch_per_chunk_s({.bandwidth_bytes_per_s = 1, .overlap = bad}).error().is(Errc::invalid_argument));
  }
  EXPECT_TRUE(fetch_per_chunk_s({.bandwidth_bytes_per_s = 0}).error().is(Errc::invalid_argument));
  EXPECT_TRUE(break_even_k({.max_k = kBreakEvenMaxK + 1}).error().is(Errc::invalid_argument));
}

}  // namespace
}  // namespace holdfast
