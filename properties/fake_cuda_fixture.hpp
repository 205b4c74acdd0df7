// A fake device with a registered host region, device memory and two streams, for the tests of its contract.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "holdfast/fakes/cuda_device.hpp"

namespace holdfast::fakes {

inline constexpr std::uint64_t kPage = 4096;
inline constexpr auto kToDevice = CopyDirection::host_to_device;
inline constexpr auto kToHost = CopyDirection::device_to_host;

inline std::uint8_t& byte_at(std::uintptr_t address) { return *reinterpret_cast<std::uint8_t*>(address); }
inline void fill(std::uintptr_t address, std::uint8_t value, std::uint64_t bytes) {
  std::memset(reinterpret_cast<void*>(address), value, bytes);
}
inline bool holds(std::uintptr_t address, std::uint8_t value, std::uint64_t bytes) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(address);
  return std::all_of(from, from + bytes, [&](std::uint8_t byte) { return byte == value; });
}

template <class R>
std::int32_t code_of(const R& result) {
  if (result) return 0;
  EXPECT_EQ(result.error().origin, Origin::cuda);
  return result.error().code;
}
inline std::int32_t code(CudaErrc errc) { return static_cast<std::int32_t>(errc); }

class FakeCudaTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kHostBytes = 16 * kPage;
  static constexpr std::uint64_t kDeviceBytes = 16 * kPage;

  FakeCudaTest() {
    EXPECT_TRUE(cuda.host_register(host, kHostBytes, HostAccess::read_write));
    fill(host, 1, kHostBytes);
  }

  Status copy(CopyDirection direction, std::vector<Copy> copies, StreamRef on) {
    return cuda.copy_batch(direction, copies, on);
  }
  // One page from the host to the device.
  Status to_device(StreamRef on, std::uint64_t page = 0) {
    return copy(kToDevice, {{dev + page * kPage, host + page * kPage, kPage}}, on);
  }
  Status to_host(StreamRef on, std::uint64_t page = 0) {
    return copy(kToHost, {{host + page * kPage, dev + page * kPage, kPage}}, on);
  }
  EventRef event() { return cuda.event_create().value(); }

  Arena arena;
  VirtualClock clock;
  FakeCuda cuda{arena, clock, {.device_count = 2, .device_bytes = 1 << 20}};
  std::uintptr_t host = arena.map_private(kHostBytes);
  std::uintptr_t dev = cuda.allocate(kDeviceBytes).value();
  StreamRef stream = cuda.create_stream().value();
  StreamRef other = cuda.create_stream().value();
};

}  // namespace holdfast::fakes
