// How a batch of copies is divided, without a device.
#include "holdfast/real_device/copy_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::device {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr CopyThresholds kThresholds{.to_device_bytes = 100, .to_host_bytes = 500};
const std::vector<HostRangeOf> kRegistered{{0x1000, 0x1000}, {0x2000, 0x1000}};

CopyPlan plan(CopyDirection direction, const std::vector<Copy>& copies) {
  CopyPlan made;
  plan_copies(direction, copies, kRegistered, kThresholds, made);
  return made;
}

TEST(CopyPlan, EachDirectionHasItsThreshold) {
  const Copy out{0x1000, 0x90000, 100};
  const Copy in{0x90000, 0x1000, 100};
  EXPECT_THAT(plan(CopyDirection::device_to_host, {out}).by_kernel, ElementsAre(out));
  EXPECT_THAT(plan(CopyDirection::host_to_device, {in}).by_engine, ElementsAre(in));
  const Copy smaller{0x90000, 0x1000, 99};
  EXPECT_THAT(plan(CopyDirection::host_to_device, {smaller}).by_kernel, ElementsAre(smaller));
}

TEST(CopyPlan, WhatLiesTogetherOnBothSidesIsOneCopy) {
  const CopyPlan made =
      plan(CopyDirection::host_to_device,
           {{0x90000, 0x1000, 60}, {0x90000 + 60, 0x1000 + 60, 60}, {0x90000 + 120, 0x1000 + 200, 9}});
  EXPECT_THAT(made.by_engine, ElementsAre(Copy{0x90000, 0x1000, 120}));
  EXPECT_THAT(made.by_kernel, ElementsAre(Copy{0x90000 + 120, 0x1000 + 200, 9}));
}

TEST(CopyPlan, NoCopySpansTwoRegistrations) {
  const Copy last{0x90000, 0x1ff0, 0x10}, first{0x90010, 0x2000, 0x10};
  EXPECT_THAT(plan(CopyDirection::host_to_device, {last, first}).by_kernel, ElementsAre(last, first));
  const Copy out_last{0x1ff0, 0x90000, 0x10}, out_first{0x2000, 0x90010, 0x10};
  EXPECT_THAT(plan(CopyDirection::device_to_host, {out_last, out_first}).by_kernel, ElementsAre(out_last, out_first));
}

TEST(CopyPlan, WhatIsNotKnownToBeRegisteredIsNotJoined) {
  const Copy one{0x90000, 0x8000, 0x10}, other{0x90010, 0x8010, 0x10};
  EXPECT_THAT(plan(CopyDirection::host_to_device, {one, other}).by_kernel, ElementsAre(one, other));
  // Nor what only begins in a registration.
  const Copy over{0x90000, 0x2ff0, 0x10}, beyond{0x90010, 0x3000, 0x10};
  EXPECT_THAT(plan(CopyDirection::host_to_device, {over, beyond}).by_kernel, ElementsAre(over, beyond));
}

TEST(CopyPlan, APlanIsFilledAnew) {
  CopyPlan made;
  plan_copies(CopyDirection::host_to_device, std::vector<Copy>{{0x90000, 0x1000, 9}}, kRegistered, kThresholds, made);
  plan_copies(CopyDirection::host_to_device, std::vector<Copy>{}, kRegistered, kThresholds, made);
  EXPECT_THAT(made.by_kernel, IsEmpty());
}

}  // namespace
}  // namespace holdfast::device
