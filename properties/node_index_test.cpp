#include "holdfast/core/node_index.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <deque>
#include <vector>

namespace holdfast {
namespace {

std::size_t times_found(const NodeIndex& index, const IndexLink& wanted, std::uint64_t hash) {
  std::size_t found = 0;
  for (const IndexLink* link = index.bucket_of(hash); link != nullptr; link = link->next_in_bucket) {
    if (link == &wanted) ++found;
  }
  return found;
}

RC_GTEST_PROP(NodeIndex, WhatWasInsertedAndNotErasedIsFoundOnce, (const std::vector<std::uint64_t>& hashes)) {
  NodeIndex index;
  std::deque<IndexLink> links(hashes.size());
  for (std::size_t i = 0; i < hashes.size(); ++i) index.insert(links[i], hashes[i]);
  for (std::size_t i = 0; i < hashes.size(); i += 3) index.erase(links[i]);
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    RC_ASSERT(times_found(index, links[i], hashes[i]) == (i % 3 == 0 ? 0U : 1U));
  }
  RC_ASSERT(index.size() == hashes.size() - (hashes.size() + 2) / 3);
}

TEST(NodeIndex, EveryMemberIsFoundAtEverySizeWhileItGrows) {
  NodeIndex index;
  std::deque<IndexLink> links;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const std::uint64_t hash = i * 0x9e3779b97f4a7c15;
    index.insert(links.emplace_back(), hash);
    for (std::uint64_t j = 0; j <= i; ++j) ASSERT_EQ(times_found(index, links[j], j * 0x9e3779b97f4a7c15), 1U);
  }
}

TEST(NodeIndex, BucketsStayShortHoweverManyMembers) {
  NodeIndex index;
  std::deque<IndexLink> links;
  std::uint64_t hash = 1;
  for (int i = 0; i < 100'000; ++i) {
    hash = hash * 6364136223846793005 + 1442695040888963407;
    index.insert(links.emplace_back(), hash ^ (hash >> 32));
  }
  std::size_t longest = 0;
  for (const IndexLink& member : links) {
    std::size_t length = 0;
    for (const IndexLink* link = index.bucket_of(member.hash); link != nullptr; link = link->next_in_bucket) ++length;
    longest = std::max(longest, length);
  }
  EXPECT_LT(longest, 20U);
}

TEST(NodeIndex, WhatComesAndGoesLeavesNoBucketsBehind) {
  NodeIndex index;
  IndexLink link;
  constexpr std::uint64_t kHash = 1024;
  for (int i = 0; i < 10'000; ++i) {
    index.insert(link, kHash);
    index.erase(link);
  }
  index.insert(link, kHash);
  EXPECT_EQ(times_found(index, link, 0), 1U) << "bucket 0 was split more than 1024 times";
}

TEST(NodeIndexDeathTest, ErasingWhatIsNotInItIsABrokenInvariant) {
  NodeIndex index;
  IndexLink link;
  EXPECT_DEATH(index.erase(link), "an index link is erased from the index that holds it");
}

}  // namespace
}  // namespace holdfast
