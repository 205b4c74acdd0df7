// The CUDA adapter on a machine without a device: what holds everywhere, since a hidden device counts as none.
#include "holdfast/real_device/cuda_device.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace holdfast::device {
namespace {

// Only in a child process: the runtime reads the variable once.
[[noreturn]] void open_without_devices() {
  ::setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
  const auto opened = CudaDevice::open(0);
  if (opened) std::exit(1);
  std::fprintf(stderr, "%s\n", to_string(opened.error()).c_str());
  std::exit(is_cuda(opened.error(), CudaErrc::no_device) ? 0 : 2);
}

class CudaDeviceDeathTest : public testing::Test {
 protected:
  CudaDeviceDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(CudaDeviceDeathTest, OpenWithoutADeviceSaysNoDeviceAndWhy) {
  EXPECT_EXIT(open_without_devices(), testing::ExitedWithCode(0),
              "open: .*on this machine.*cudaGetDeviceCount.*(driver|device)");
}

}  // namespace
}  // namespace holdfast::device
