// The tests that need a device. Without one the program says why and exits 77, or 3 with --require-device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/real_device/cuda_device.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  bool required = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--require-device") {
      required = true;
      continue;
    }
    std::fprintf(stderr, "holdfast_device_tests: unknown option '%s'; --require-device and GoogleTest's are known\n",
                 argv[i]);
    return 2;
  }
  if (const auto opened = holdfast::device::CudaDevice::open(0); !opened) {
    std::fprintf(stderr, "holdfast_device_tests: there is no device to use: %s\n",
                 holdfast::to_string(opened.error()).c_str());
    return required ? 3 : 77;
  }
  return RUN_ALL_TESTS();
}
