// Which parts share a batch.
#include "holdfast/core/batch_cuts.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

using Cuts = std::vector<BatchCut>;

Cuts cut(const std::vector<std::uint64_t>& bytes, std::uint64_t bytes_min) {
  return cut_into_batches(bytes, {CopyMode::overlapped, 1, bytes_min});
}

TEST(BatchCutsTest, SynchronousCopiesAreOneBatch) {
  EXPECT_EQ(cut_into_batches(std::vector<std::uint64_t>{9, 9, 9}, {CopyMode::synchronous, 1, 1}), (Cuts{{0, 3}}));
}

TEST(BatchCutsTest, ABatchEndsWhereItIsLongEnough) {
  EXPECT_EQ(cut({4, 4, 4, 9, 1}, 8), (Cuts{{0, 2}, {2, 4}, {4, 5}}));
  EXPECT_EQ(cut({4, 4, 4}, 1), (Cuts{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(cut({4, 4, 4}, 100), (Cuts{{0, 3}}));
}

TEST(BatchCutsTest, NothingIsNoBatch) { EXPECT_EQ(cut({}, 1), Cuts{}); }

}  // namespace
}  // namespace holdfast
