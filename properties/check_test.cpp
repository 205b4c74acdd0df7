#include "holdfast/core/check.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace holdfast {
namespace {

TEST(CheckDeathTest, ABrokenInvariantIsToldWithItsPlaceAndAborts) {
  EXPECT_EXIT(check(false, "two is one"), testing::KilledBySignal(SIGABRT),
              "broken invariant: two is one .*check_test\\.cpp:[0-9]+");
}

}  // namespace
}  // namespace holdfast
