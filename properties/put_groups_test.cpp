// A put's keys, grouped as the owner takes them.
#include "holdfast/core/put_groups.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast {
namespace {

TEST(PutGroups, AGroupHoldsNoMoreKeysThanOnePlanTakes) {
  const std::vector<std::string_view> keys(kMaxPutGroupKeys + 1, "k");
  const std::vector<DeviceTensor> tensors(keys.size(), DeviceTensor{0x1000, 512, 0, true});
  const std::vector<PutGroup> groups = group_by_size(keys, tensors);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].keys.size(), kMaxPutGroupKeys);
  EXPECT_EQ(groups[1].members, std::vector<std::size_t>{kMaxPutGroupKeys});
}

}  // namespace
}  // namespace holdfast
