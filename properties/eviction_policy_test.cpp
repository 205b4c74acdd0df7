#include "holdfast/core/eviction_policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace holdfast {
namespace {

using testing::ElementsAre;

template <class Policy>
std::vector<EvictionLink*> order_of(Policy& policy) {
  std::vector<EvictionLink*> order;
  EXPECT_EQ(policy.victim([&](EvictionLink& link) {
    order.push_back(&link);
    return false;
  }),
            nullptr);
  return order;
}

constexpr auto kAny = [](EvictionLink&) { return true; };

TEST(LeastRecentlyUsedPolicy, TheLeastRecentlyUsedGoesFirst) {
  LeastRecentlyUsed policy;
  std::array<EvictionLink, 3> links;
  for (EvictionLink& link : links) policy.inserted(link);
  policy.touched(links[0]);
  EXPECT_THAT(order_of(policy), ElementsAre(&links[1], &links[2], &links[0]));
  policy.withdrawn(links[1]);
  EXPECT_EQ(policy.victim(kAny), &links[2]);
}

TEST(LeastRecentlyUsedPolicy, WhatIsDeclinedIsPassedOver) {
  LeastRecentlyUsed policy;
  std::array<EvictionLink, 2> links;
  for (EvictionLink& link : links) policy.inserted(link);
  EXPECT_EQ(policy.victim([&](EvictionLink& link) { return &link == &links[1]; }), &links[1]);
  EXPECT_THAT(order_of(policy), ElementsAre(&links[0], &links[1]));
}

TEST(FrequencyAwarePolicy, WhatWasFoundOftenerStaysLonger) {
  FrequencyAware policy;
  std::array<EvictionLink, 4> links;
  links[0].uses = 2;
  links[2].uses = 1;
  for (EvictionLink& link : links) policy.inserted(link);
  EXPECT_THAT(order_of(policy), ElementsAre(&links[1], &links[3], &links[2], &links[0]));
}

TEST(FrequencyAwarePolicy, OfEqualsTheLeastRecentlyUsedGoesFirst) {
  FrequencyAware policy;
  std::array<EvictionLink, 3> links;
  for (EvictionLink& link : links) policy.inserted(link);
  policy.touched(links[0]);
  EXPECT_THAT(order_of(policy), ElementsAre(&links[1], &links[2], &links[0]));
}

TEST(FrequencyAwarePolicy, WhatWasPopularOnceIsOvertaken) {
  FrequencyAware policy;
  EvictionLink popular;
  popular.uses = 3;
  policy.inserted(popular);
  std::array<EvictionLink, 8> links;
  int outlived = 0;
  for (EvictionLink& link : links) {
    policy.inserted(link);
    EvictionLink* victim = policy.victim(kAny);
    policy.withdrawn(*victim);
    if (victim == &popular) break;
    ++outlived;
  }
  EXPECT_EQ(outlived, 3) << "each victim is worth one more than the last";
}

// However much oftener than the bound it was found, and however far apart the bases are.
TEST(FrequencyAwarePolicy, AnAncestorNeverGoesBeforeADescendant) {
  FrequencyAware policy;
  std::array<EvictionLink, 3> path;  // the deepest first
  const auto use = [&](bool inserts) {
    for (EvictionLink& link : path) inserts ? policy.inserted(link) : policy.touched(link);
  };
  path[1].uses = path[2].uses = 100;
  use(true);
  for (int round = 0; round < 20; ++round) {
    EvictionLink other;
    policy.inserted(other);
    static_cast<void>(policy.victim([&](EvictionLink& link) { return &link == &other; }));
    policy.withdrawn(other);
    for (EvictionLink& link : path) ++link.uses;
    use(false);
    EXPECT_THAT(order_of(policy), ElementsAre(&path[0], &path[1], &path[2]));
  }
}

}  // namespace
}  // namespace holdfast
