// A store over mocks that let every call through to the fakes: a test scripts the one call it is about.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/plan_tier_store.hpp"
#include "holdfast/fakes/cuda_device.hpp"
#include "holdfast/fakes/fluxon_owner.hpp"
#include "mock_instances.hpp"

namespace holdfast {

using TestRuntime = RuntimeOf<fakes::MockFluxon, fakes::MockCuda, fakes::VirtualClock, StdSync>;

// Instantiated once, in core_instances.cpp.
extern template class PlanTierStore<TestRuntime>;
extern template class SegmentRegistry<fakes::MockCuda, StdSync>;

inline constexpr std::uint64_t kTestGrantBytes = 64 << 10;

class CoreTest : public testing::Test {
 protected:
  explicit CoreTest(const fakes::OwnerOptions& owner_options = {.segment_bytes = 1 << 20,
                                                                .grant_bytes = kTestGrantBytes});
  ~CoreTest() override;

  static PlanOptions plan_options() {
    PlanOptions options;
    options.registry.piece_bytes = kTestGrantBytes;
    return options;
  }

  // Device memory filled with a pattern of its own.
  DeviceTensor tensor(std::uint64_t bytes, std::uint8_t fill = 0) {
    const Result<std::uintptr_t> at = device.allocate(bytes);
    EXPECT_TRUE(at.has_value());
    auto* memory = reinterpret_cast<std::uint8_t*>(*at);
    for (std::uint64_t i = 0; i < bytes; ++i) memory[i] = static_cast<std::uint8_t>(fill + i * 7);
    return {*at, bytes, 0, true};
  }

  static std::string bytes_of(const DeviceTensor& of) {
    return {reinterpret_cast<const char*>(of.data), static_cast<std::size_t>(of.bytes)};
  }
  // The bytes stored under `key`; empty when it is not readable.
  std::string stored(std::string_view key) {
    const auto view = owner.peek(key);
    if (!view || view->state == fakes::KeyState::prepared) return {};
    return {reinterpret_cast<const char*>(view->read_address), static_cast<std::size_t>(view->value_bytes)};
  }
  [[nodiscard]] bool nothing_open() const {
    return owner.live_plans() == 0 && owner.live_handles() == 0 && device.in_flight_count() == 0;
  }
  // Lets the owner route what was stored, and drop the holders that were released.
  void settle() { clock.advance_by(kSecond); }

  fakes::Arena arena;
  fakes::VirtualClock clock;
  fakes::FakeOwner owner;
  fakes::FakeCuda device;
  testing::NiceMock<fakes::MockFluxon> fluxon;
  testing::NiceMock<fakes::MockCuda> cuda;
  StdSync sync;
  TestRuntime runtime{fluxon, cuda, clock, sync};
  StreamRef stream = *device.create_stream();
};

}  // namespace holdfast
