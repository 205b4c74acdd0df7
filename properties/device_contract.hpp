// The CUDA contract, line by line, as tests of any runtime that a device can be put behind: a test's name is the
// promise. Run over the fake device everywhere, and over a real one where there is one.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "holdfast/core/backend.hpp"
#include "holdfast/fakes/arena.hpp"
#include "holdfast/fakes/cuda_device.hpp"

namespace holdfast {

// A runtime, and what its engine does with it.
class DeviceUnderTest {
 public:
  virtual ~DeviceUnderTest() = default;
  virtual CudaBackend& cuda() = 0;
  virtual StreamRef stream() = 0;  // another each time
  virtual std::uintptr_t allocate(std::uint64_t bytes) = 0;
  virtual void fill(std::uintptr_t at, char with, std::uint64_t bytes) = 0;
  virtual std::string bytes(std::uintptr_t at, std::uint64_t bytes) = 0;
  // What `on` is given from now on does not move before release(); where it is late anyway nothing.
  virtual void hold(StreamRef /*on*/) {}
  virtual void release() {}
  virtual void declare_read_only(const fakes::DualRegion& /*region*/) {}
  // The range is mapped anew, with other pages. False: it cannot be.
  virtual bool map_anew(std::uintptr_t base, std::uint64_t bytes) = 0;
};

class FakeDeviceUnderTest : public DeviceUnderTest {
 public:
  explicit FakeDeviceUnderTest(fakes::Arena& arena) : FakeDeviceUnderTest(arena, nullptr) {}
  using Make = std::unique_ptr<fakes::FakeCuda> (*)(fakes::Arena&, fakes::VirtualClock&, const fakes::DeviceOptions&);
  FakeDeviceUnderTest(fakes::Arena& arena, Make make)
      : device_(make != nullptr ? make(arena, clock_, kOptions)
                                : std::make_unique<fakes::FakeCuda>(arena, clock_, kOptions)) {}
  CudaBackend& cuda() override { return *device_; }
  StreamRef stream() override { return device_->create_stream().value(); }
  std::uintptr_t allocate(std::uint64_t bytes) override { return device_->allocate(bytes).value(); }
  void fill(std::uintptr_t at, char with, std::uint64_t bytes) override {
    std::memset(reinterpret_cast<void*>(at), with, bytes);
    device_->wrote(at, bytes);
  }
  std::string bytes(std::uintptr_t at, std::uint64_t bytes) override {
    device_->fetch(at, bytes);
    return {reinterpret_cast<const char*>(at), bytes};
  }
  void declare_read_only(const fakes::DualRegion& region) override { device_->declare_read_only(region); }
  bool map_anew(std::uintptr_t base, std::uint64_t bytes) override {
    device_->remapped(base, bytes);
    return true;
  }

 protected:
  static constexpr fakes::DeviceOptions kOptions{.device_bytes = 1 << 20};
  fakes::VirtualClock clock_;
  std::unique_ptr<fakes::FakeCuda> device_;
};

struct DeviceKind {
  std::string name;
  std::function<std::unique_ptr<DeviceUnderTest>(fakes::Arena& arena)> make;
  friend std::ostream& operator<<(std::ostream& out, const DeviceKind& kind) { return out << kind.name; }
};

class DeviceContract : public testing::TestWithParam<DeviceKind> {
 protected:
  static constexpr std::uint64_t kPage = 4096;
  static constexpr std::uint64_t kHostBytes = 16 * kPage;
  static constexpr auto kToDevice = CopyDirection::host_to_device;
  static constexpr auto kToHost = CopyDirection::device_to_host;

  DeviceContract() {
    EXPECT_TRUE(cuda.host_register(host, kHostBytes, HostAccess::read_write));
    fill_host(host, 'h', kHostBytes);
    under->fill(memory, 'd', kHostBytes);
  }
  ~DeviceContract() override {
    under->release();
    for (const StreamRef each : {stream, other}) static_cast<void>(cuda.stream_synchronize(each).has_value());
    static_cast<void>(cuda.host_unregister(host).has_value());
  }

  template <class R>
  static std::int32_t code_of(const R& result) {
    return result ? 0 : result.error().code;
  }
  static std::int32_t code(CudaErrc errc) { return static_cast<std::int32_t>(errc); }
  static void fill_host(std::uintptr_t at, char with, std::uint64_t bytes) {
    std::memset(reinterpret_cast<void*>(at), with, bytes);
  }
  static std::string host_bytes(std::uintptr_t at, std::uint64_t bytes) {
    return {reinterpret_cast<const char*>(at), bytes};
  }
  Status copy(CopyDirection direction, std::vector<Copy> copies, StreamRef on) {
    return cuda.copy_batch(direction, copies, on);
  }
  Status page_to_device(StreamRef on) { return copy(kToDevice, {{memory, host, kPage}}, on); }
  EventRef event() { return cuda.event_create().value(); }
  EventRef recorded(StreamRef on) {
    const EventRef made = event();
    EXPECT_TRUE(cuda.event_record(made, on));
    return made;
  }

  fakes::Arena arena;
  std::unique_ptr<DeviceUnderTest> under = GetParam().make(arena);
  CudaBackend& cuda = under->cuda();
  std::uintptr_t host = arena.map_private(kHostBytes);
  std::uintptr_t memory = under->allocate(kHostBytes);
  StreamRef stream = under->stream();
  StreamRef other = under->stream();
};

// ---- Registration.

TEST_P(DeviceContract, RegisteringAgainOrAnyOverlapIsAlreadyRegistered) {
  const auto already = code(CudaErrc::host_memory_already_registered);
  EXPECT_EQ(code_of(cuda.host_register(host, kHostBytes, HostAccess::read_write)), already);
  EXPECT_EQ(code_of(cuda.host_register(host + kPage, kPage, HostAccess::read_write)), already);
  EXPECT_EQ(code_of(cuda.host_register(host + kHostBytes - 1, 1, HostAccess::read_write)), already);
}

TEST_P(DeviceContract, AReadOnlyMappingNeedsTheReadOnlyFlag) {
  const fakes::DualRegion region = arena.map_dual(4 * kPage);
  under->declare_read_only(region);
  EXPECT_EQ(code_of(cuda.host_register(region.read_base, region.bytes, HostAccess::read_write)),
            code(CudaErrc::invalid_value));
  EXPECT_TRUE(cuda.host_register(region.read_base, region.bytes, HostAccess::read_only));
  EXPECT_TRUE(cuda.host_register(region.write_base, region.bytes, HostAccess::read_write));
  fill_host(region.write_base, 'r', kPage);
  EXPECT_TRUE(copy(kToDevice, {{memory, region.read_base, kPage}}, stream));
  EXPECT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_EQ(under->bytes(memory, kPage), std::string(kPage, 'r'));
  EXPECT_TRUE(cuda.host_unregister(region.read_base));
  EXPECT_TRUE(cuda.host_unregister(region.write_base));
}

TEST_P(DeviceContract, AnyStartAndLengthAreTakenAndTwoRangesMayShareAPage) {
  const std::uintptr_t at = arena.map_private(4 * kPage);
  EXPECT_TRUE(cuda.host_register(at + 1, 100, HostAccess::read_write));
  EXPECT_TRUE(cuda.host_register(at + 101, 2 * kPage + 7, HostAccess::read_write));
  EXPECT_TRUE(cuda.host_unregister(at + 1));
  EXPECT_TRUE(cuda.host_unregister(at + 101));
}

TEST_P(DeviceContract, RegisteringNothingOrNullIsInvalid) {
  const std::uintptr_t at = arena.map_private(kPage);
  EXPECT_EQ(code_of(cuda.host_register(at, 0, HostAccess::read_write)), code(CudaErrc::invalid_value));
  EXPECT_EQ(code_of(cuda.host_register(0, kPage, HostAccess::read_write)), code(CudaErrc::invalid_value));
}

TEST_P(DeviceContract, UnregisterRefusesAnAddressInsideARangeAndAnUnknownOne) {
  EXPECT_EQ(code_of(cuda.host_unregister(host + kPage)), code(CudaErrc::invalid_value));
  EXPECT_EQ(code_of(cuda.host_unregister(arena.map_private(kPage))), code(CudaErrc::host_memory_not_registered));
  EXPECT_EQ(code_of(cuda.host_unregister(0)), code(CudaErrc::invalid_value));
}

TEST_P(DeviceContract, ARangeMappedAnewGivesTheOldBytesUntilItIsUnregisteredAndRegistered) {
  if (!under->map_anew(host, kHostBytes)) GTEST_SKIP() << "the pages of this one stay the same";
  fill_host(host, 'n', kHostBytes);
  ASSERT_TRUE(page_to_device(stream));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_EQ(under->bytes(memory, kPage), std::string(kPage, 'h'));
  EXPECT_EQ(code_of(cuda.host_register(host, kHostBytes, HostAccess::read_write)),
            code(CudaErrc::host_memory_already_registered));
  ASSERT_TRUE(cuda.host_unregister(host));
  ASSERT_TRUE(cuda.host_register(host, kHostBytes, HostAccess::read_write));
  ASSERT_TRUE(page_to_device(stream));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_EQ(under->bytes(memory, kPage), std::string(kPage, 'n'));
}

TEST_P(DeviceContract, AttributesTellDeviceRegisteredAndOtherMemory) {
  EXPECT_EQ(cuda.pointer_attributes(memory + 17).value(), (PointerAttributes{MemoryKind::device, 0}));
  EXPECT_EQ(cuda.pointer_attributes(host + 17).value(), (PointerAttributes{MemoryKind::registered_host, -1}));
  EXPECT_EQ(cuda.pointer_attributes(host + kHostBytes - 1).value(),
            (PointerAttributes{MemoryKind::registered_host, -1}));
  EXPECT_EQ(cuda.pointer_attributes(arena.map_private(kPage)).value(),
            (PointerAttributes{MemoryKind::unregistered_host, -1}));
}

// ---- Batches.

TEST_P(DeviceContract, ABatchThatIsEmptyOrHasAnEmptyOrNullCopyIsInvalid) {
  const auto invalid = code(CudaErrc::invalid_value);
  EXPECT_EQ(code_of(copy(kToDevice, {}, stream)), invalid);
  EXPECT_EQ(code_of(copy(kToDevice, {{memory, host, 0}}, stream)), invalid);
  EXPECT_EQ(code_of(copy(kToDevice, {{0, host, kPage}}, stream)), invalid);
  EXPECT_EQ(code_of(copy(kToHost, {{host, 0, kPage}}, stream)), invalid);
  EXPECT_TRUE(cuda.stream_synchronize(stream));
}

TEST_P(DeviceContract, ACopyReadsItsSourceLateAndIsNotDoneBefore) {
  under->hold(stream);
  ASSERT_TRUE(page_to_device(stream));
  const EventRef done = recorded(stream);
  EXPECT_FALSE(cuda.event_query(done).value());
  fill_host(host, 'l', kPage);
  under->release();
  ASSERT_TRUE(cuda.event_synchronize(done));
  EXPECT_TRUE(cuda.event_query(done).value());
  EXPECT_EQ(under->bytes(memory, kPage), std::string(kPage, 'l'));
  EXPECT_TRUE(cuda.event_destroy(done));
}

TEST_P(DeviceContract, AStreamMovesInOrder) {
  ASSERT_TRUE(page_to_device(stream));
  ASSERT_TRUE(copy(kToHost, {{host + kPage, memory, kPage}}, stream));
  ASSERT_TRUE(copy(kToDevice, {{memory + kPage, host + kPage, kPage}}, stream));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_EQ(under->bytes(memory + kPage, kPage), std::string(kPage, 'h'));
}

TEST_P(DeviceContract, OverlappingDestinationsPassAndOneOfThemIsThere) {
  fill_host(host + kPage, 'i', kPage);
  ASSERT_TRUE(copy(kToDevice, {{memory, host, kPage}, {memory, host + kPage, kPage}}, stream));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_THAT(under->bytes(memory, kPage).substr(0, 1), testing::AnyOf("h", "i"));
}

TEST_P(DeviceContract, UnregisteredHostMemoryIsTakenSilently) {
  const std::uintptr_t at = arena.map_private(kPage);
  fill_host(at, 'u', kPage);
  EXPECT_TRUE(copy(kToDevice, {{memory, at, kPage}}, stream));
  EXPECT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_EQ(under->bytes(memory, kPage), std::string(kPage, 'u'));
}

TEST_P(DeviceContract, AnyAlignmentMovesExactlyItsBytes) {
  ASSERT_TRUE(copy(kToDevice, {{memory + 3, host + 5, 4091}, {memory + 2 * kPage + 1, host + 2 * kPage, 1}}, stream));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_EQ(under->bytes(memory, kPage), "ddd" + std::string(4091, 'h') + "dd");
  EXPECT_EQ(under->bytes(memory + 2 * kPage, 3), "dhd");
}

// ---- Events and streams.

TEST_P(DeviceContract, AnEventNeverRecordedCountsAsDone) {
  under->hold(stream);
  ASSERT_TRUE(page_to_device(stream));
  const EventRef never = event();
  EXPECT_TRUE(cuda.event_query(never).value());
  EXPECT_TRUE(cuda.event_synchronize(never));
  EXPECT_TRUE(cuda.stream_wait(other, never));
  EXPECT_TRUE(cuda.stream_synchronize(other));
  under->release();
  EXPECT_TRUE(cuda.event_destroy(never));
}

TEST_P(DeviceContract, RecordingAgainReplacesWhatAnEventHolds) {
  const EventRef again = recorded(other);
  ASSERT_TRUE(cuda.stream_synchronize(other));
  EXPECT_TRUE(cuda.event_query(again).value());
  under->hold(stream);
  ASSERT_TRUE(page_to_device(stream));
  ASSERT_TRUE(cuda.event_record(again, stream));
  EXPECT_FALSE(cuda.event_query(again).value());
  under->release();
  ASSERT_TRUE(cuda.event_synchronize(again));
  EXPECT_TRUE(cuda.event_query(again).value());
  EXPECT_TRUE(cuda.event_destroy(again));
}

TEST_P(DeviceContract, StreamsAreNotOrderedButByEvents) {
  under->hold(stream);
  ASSERT_TRUE(page_to_device(stream));
  const EventRef first = recorded(stream);
  ASSERT_TRUE(copy(kToDevice, {{memory + kPage, host + kPage, kPage}}, other));
  ASSERT_TRUE(cuda.stream_synchronize(other));
  EXPECT_FALSE(cuda.event_query(first).value()) << "the other stream did not wait for it";
  ASSERT_TRUE(cuda.stream_wait(other, first));
  ASSERT_TRUE(copy(kToHost, {{host + 2 * kPage, memory, kPage}}, other));
  under->release();
  ASSERT_TRUE(cuda.stream_synchronize(other));
  EXPECT_EQ(host_bytes(host + 2 * kPage, kPage), std::string(kPage, 'h'));
  EXPECT_TRUE(cuda.event_destroy(first));
}

TEST_P(DeviceContract, APendingEventMayBeDestroyedAndThoseWhoWaitStillDo) {
  under->hold(stream);
  ASSERT_TRUE(page_to_device(stream));
  const EventRef first = recorded(stream);
  ASSERT_TRUE(cuda.stream_wait(other, first));
  EXPECT_TRUE(cuda.event_destroy(first));
  ASSERT_TRUE(copy(kToHost, {{host + 2 * kPage, memory, kPage}}, other));
  const EventRef last = recorded(other);
  EXPECT_FALSE(cuda.event_query(last).value());
  under->release();
  ASSERT_TRUE(cuda.event_synchronize(last));
  EXPECT_EQ(host_bytes(host + 2 * kPage, kPage), std::string(kPage, 'h'));
  EXPECT_TRUE(cuda.event_destroy(last));
}

TEST_P(DeviceContract, ThereIsNoDefaultStream) {
  EXPECT_FALSE(StreamRef::from_native(0));
  EXPECT_FALSE(StreamRef::from_native(1)) << "the legacy handle";
  EXPECT_FALSE(StreamRef::from_native(2)) << "the handle of the thread's own";
}

}  // namespace holdfast
