// The fake device keeps every line of the CUDA contract. A test's name is the promise, its body one situation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/fakes/cuda_device.hpp"

namespace holdfast::fakes {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr auto kToDevice = CopyDirection::host_to_device;
constexpr auto kToHost = CopyDirection::device_to_host;

std::uint8_t& byte_at(std::uintptr_t address) { return *reinterpret_cast<std::uint8_t*>(address); }
void fill(std::uintptr_t address, std::uint8_t value, std::uint64_t bytes) {
  std::memset(reinterpret_cast<void*>(address), value, bytes);
}
bool holds(std::uintptr_t address, std::uint8_t value, std::uint64_t bytes) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(address);
  return std::all_of(from, from + bytes, [&](std::uint8_t byte) { return byte == value; });
}

template <class R>
std::int32_t code_of(const R& result) {
  if (result) return 0;
  EXPECT_EQ(result.error().origin, Origin::cuda);
  return result.error().code;
}
std::int32_t code(CudaErrc errc) { return static_cast<std::int32_t>(errc); }

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

// ---- Host register and unregister.

TEST_F(FakeCudaTest, RegisteringAgainOrAnyOverlapIsAlreadyRegistered) {
  const auto already = code(CudaErrc::host_memory_already_registered);
  const std::uintptr_t base = arena.map_private(8 * kPage);
  ASSERT_TRUE(cuda.host_register(base + 2 * kPage, 2 * kPage, HostAccess::read_write));
  EXPECT_EQ(code_of(cuda.host_register(base + 2 * kPage, 2 * kPage, HostAccess::read_write)), already);
  EXPECT_EQ(code_of(cuda.host_register(base, 8 * kPage, HostAccess::read_write)), already);
  EXPECT_EQ(code_of(cuda.host_register(base, 2 * kPage + 1, HostAccess::read_write)), already);
  EXPECT_EQ(code_of(cuda.host_register(base + 4 * kPage - 1, kPage, HostAccess::read_write)), already);
  EXPECT_EQ(code_of(cuda.host_register(base + 3 * kPage, 16, HostAccess::read_write)), already);
  EXPECT_TRUE(cuda.host_register(base, 2 * kPage, HostAccess::read_write));
  EXPECT_TRUE(cuda.host_register(base + 4 * kPage, kPage, HostAccess::read_write));
}

TEST_F(FakeCudaTest, AReadOnlyMappingNeedsTheReadOnlyFlag) {
  const DualRegion region = arena.map_dual(4 * kPage);
  cuda.declare_read_only(region);
  EXPECT_EQ(code_of(cuda.host_register(region.read_base, region.bytes, HostAccess::read_write)),
            code(CudaErrc::invalid_value));
  EXPECT_TRUE(cuda.host_register(region.read_base, region.bytes, HostAccess::read_only));
  EXPECT_TRUE(cuda.host_register(region.write_base, region.bytes, HostAccess::read_write));
}

TEST_F(FakeCudaTest, NothingIsCopiedIntoAReadOnlyMapping) {
  const DualRegion region = arena.map_dual(4 * kPage);
  cuda.declare_read_only(region);
  const std::vector<Copy> into = {{region.read_base, dev, kPage}};
  EXPECT_EQ(code_of(cuda.copy_batch(kToHost, into, stream)), code(CudaErrc::invalid_value));
  ASSERT_TRUE(cuda.host_register(region.read_base, region.bytes, HostAccess::read_only));
  EXPECT_EQ(code_of(cuda.copy_batch(kToHost, into, stream)), code(CudaErrc::invalid_value));
  fill(region.write_base, 7, kPage);
  ASSERT_TRUE(copy(kToDevice, {{dev, region.read_base, kPage}}, stream));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 7, kPage));
}

TEST_F(FakeCudaTest, PinnedMemoryCountsPerMappingAndIsRefusedBeyondTheLimit) {
  const DualRegion region = arena.map_dual(4 * kPage);
  cuda.reset({.device_bytes = 1 << 20, .pinned_bytes_max = 6 * kPage});
  ASSERT_TRUE(cuda.host_register(region.write_base, 4 * kPage, HostAccess::read_write));
  EXPECT_EQ(code_of(cuda.host_register(region.read_base, 4 * kPage, HostAccess::read_only)),
            code(CudaErrc::memory_allocation));
  EXPECT_TRUE(cuda.host_register(region.read_base, 2 * kPage, HostAccess::read_only));
  ASSERT_TRUE(cuda.host_unregister(region.write_base));
  EXPECT_TRUE(cuda.host_register(region.write_base, 4 * kPage, HostAccess::read_write));
}

TEST_F(FakeCudaTest, UnregisterRefusesAnAddressInsideARangeAndAnUnknownOne) {
  EXPECT_EQ(code_of(cuda.host_unregister(host + kPage)), code(CudaErrc::invalid_value));
  EXPECT_EQ(code_of(cuda.host_unregister(host + kHostBytes)), code(CudaErrc::host_memory_not_registered));
  EXPECT_EQ(code_of(cuda.host_unregister(0)), code(CudaErrc::invalid_value));
  EXPECT_TRUE(cuda.is_registered(host, kHostBytes));
  EXPECT_TRUE(cuda.host_unregister(host));
  EXPECT_FALSE(cuda.is_registered(host, 1));
  EXPECT_EQ(code_of(cuda.host_unregister(host)), code(CudaErrc::host_memory_not_registered));
}

TEST_F(FakeCudaTest, ARangeMappedAnewGivesTheOldBytesUntilUnregisteredAndRegistered) {
  cuda.remapped(host, kHostBytes);
  fill(host, 2, kHostBytes);
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 1, kPage));

  EXPECT_EQ(code_of(cuda.host_register(host, kHostBytes, HostAccess::read_write)),
            code(CudaErrc::host_memory_already_registered));
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 1, kPage));

  ASSERT_TRUE(cuda.host_unregister(host));
  ASSERT_TRUE(cuda.host_register(host, kHostBytes, HostAccess::read_write));
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 2, kPage));
}

TEST_F(FakeCudaTest, ACopyIntoARangeMappedAnewWritesTheOldBytes) {
  cuda.remapped(host, kHostBytes);
  fill(host, 2, kHostBytes);
  fill(dev, 9, kPage);
  ASSERT_TRUE(to_host(stream));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(host, 2, kPage));
  fill(dev, 0, kPage);
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 9, kPage));
}

TEST_F(FakeCudaTest, MappedAnewTwiceARegistrationKeepsItsFirstBytes) {
  cuda.remapped(host + 2 * kPage, kPage);
  fill(host, 2, kHostBytes);
  cuda.remapped(host, kHostBytes);
  fill(host, 3, kHostBytes);
  ASSERT_TRUE(copy(kToDevice, {{dev, host + kPage, 3 * kPage}}, stream));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 2, kPage));
  EXPECT_TRUE(holds(dev + kPage, 1, kPage));
  EXPECT_TRUE(holds(dev + 2 * kPage, 2, kPage));
}

TEST_F(FakeCudaTest, ACopyAcrossTheEdgeOfWhatWasMappedAnewTakesEachPartFromItsOwnPages) {
  cuda.remapped(host, kPage);
  fill(host, 2, kHostBytes);
  ASSERT_TRUE(copy(kToDevice, {{dev, host + kPage / 2, kPage}}, stream));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 1, kPage / 2));
  EXPECT_TRUE(holds(dev + kPage / 2, 2, kPage / 2));
}

TEST_F(FakeCudaTest, UnregisteringUnderACopyWaitsForItAndIsReportedWithBothCulprits) {
  ASSERT_TRUE(to_device(stream, 3));
  ASSERT_TRUE(copy(kToDevice, {{dev, host, 16}, {dev + kPage, host + kPage, 32}}, other));
  clock.advance_to(5);
  cuda.name_host(host, kHostBytes, "seg0");
  ASSERT_TRUE(cuda.host_unregister(host));
  EXPECT_EQ(cuda.in_flight_count(), 0U);
  EXPECT_TRUE(holds(dev + 3 * kPage, 1, kPage));

  const std::vector<DeviceIncident> incidents = cuda.drain_incidents();
  ASSERT_EQ(incidents.size(), 3U);
  EXPECT_EQ(incidents[0].copy.batch, 1U);
  EXPECT_EQ(incidents[2].kind, DeviceIncidentKind::unregistered_in_flight);
  EXPECT_EQ(incidents[2].copy.batch, 2U);
  EXPECT_EQ(incidents[2].copy.index, 1U);
  EXPECT_EQ(incidents[2].copy.direction, kToDevice);
  EXPECT_EQ(incidents[2].copy.copy, (Copy{dev + kPage, host + kPage, 32}));
  EXPECT_EQ(incidents[2].copy.stream, other.native());
  EXPECT_EQ(incidents[2].copy.submitted_at_ns, 0);
  EXPECT_EQ(incidents[2].at_ns, 5);
  EXPECT_EQ(incidents[2].call, cuda.call_count());
  EXPECT_EQ(incidents[2].culprit, "host_unregister(seg0+0x0, 0x10000)");
  EXPECT_TRUE(cuda.drain_incidents().empty());
}

TEST_F(FakeCudaTest, UnregisteringWithNothingInFlightThereIsFine) {
  const std::uintptr_t elsewhere = arena.map_private(kPage);
  ASSERT_TRUE(cuda.host_register(elsewhere, kPage, HostAccess::read_write));
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.host_unregister(elsewhere));
  EXPECT_FALSE(cuda.has_incidents());
  EXPECT_EQ(cuda.in_flight_count(), 1U);
}

// ---- Alignment and pieces.

TEST_F(FakeCudaTest, AnyStartAndLengthRegistersAndRangesMayShareAPage) {
  const std::uintptr_t base = arena.map_private(kPage);
  EXPECT_TRUE(cuda.host_register(base + 3, 5, HostAccess::read_write));
  EXPECT_TRUE(cuda.host_register(base + 8, 1, HostAccess::read_write));
  EXPECT_TRUE(copy(kToDevice, {{dev + 1, base + 4, 3}, {dev + 9, base + 8, 1}}, stream));
}

TEST_F(FakeCudaTest, RegisteringNothingNullOrPastTheEndOfMemoryIsInvalid) {
  const auto invalid = code(CudaErrc::invalid_value);
  const std::uintptr_t base = arena.map_private(kPage);
  EXPECT_EQ(code_of(cuda.host_register(base, 0, HostAccess::read_write)), invalid);
  EXPECT_EQ(code_of(cuda.host_register(0, kPage, HostAccess::read_write)), invalid);
  EXPECT_EQ(code_of(cuda.host_register(base, ~0ULL, HostAccess::read_write)), invalid);
  EXPECT_EQ(code_of(cuda.host_register(dev, kPage, HostAccess::read_write)), invalid);
}

TEST_F(FakeCudaTest, ACopyThatLeavesItsRegistrationIsRefused) {
  const auto invalid = code(CudaErrc::invalid_value);
  const std::uintptr_t base = arena.map_private(4 * kPage);
  ASSERT_TRUE(cuda.host_register(base + kPage, kPage, HostAccess::read_write));
  ASSERT_TRUE(cuda.host_register(base + 2 * kPage, kPage, HostAccess::read_write));
  EXPECT_EQ(code_of(copy(kToDevice, {{dev, base + 2 * kPage - 8, 16}}, stream)), invalid);
  EXPECT_EQ(code_of(copy(kToDevice, {{dev, base + 3 * kPage - 8, 16}}, stream)), invalid);
  EXPECT_EQ(code_of(copy(kToHost, {{base + kPage - 8, dev, 16}}, stream)), invalid);
  EXPECT_EQ(cuda.in_flight_count(), 0U);
}

// ---- One copy.

TEST_F(FakeCudaTest, NoByteMovesBeforeTheWaitThatCoversIt) {
  ASSERT_TRUE(to_device(stream));
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, kPage));
  ASSERT_TRUE(cuda.stream_synchronize(other));
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, kPage));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 1, kPage));
}

TEST_F(FakeCudaTest, TheSourceIsReadWhenTheCopyMoves) {
  ASSERT_TRUE(copy(kToDevice, {{dev, host, 64}}, stream));
  fill(host, 5, 64);
  fill(dev + kPage, 6, 64);
  ASSERT_TRUE(copy(kToHost, {{host + kPage, dev + kPage, 64}}, stream));
  fill(dev + kPage, 7, 64);
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 5, 64));
  EXPECT_TRUE(holds(host + kPage, 7, 64));
}

TEST_F(FakeCudaTest, ACopyMayMoveAtSubmission) {
  cuda.choose_next_copy({.moment = CopyMoment::at_submission});
  ASSERT_TRUE(to_device(stream));
  EXPECT_TRUE(holds(dev, 1, kPage));
  EXPECT_EQ(cuda.in_flight_count(), 0U);
  ASSERT_TRUE(to_device(stream, 1));
  EXPECT_EQ(cuda.in_flight_count(), 1U) << "a choice holds for one batch";
}

TEST_F(FakeCudaTest, ARefusedBatchUsesUpNoChoice) {
  cuda.choose_next_copy({.moment = CopyMoment::at_submission});
  ASSERT_FALSE(copy(kToDevice, {}, stream));
  ASSERT_TRUE(to_device(stream));
  EXPECT_EQ(cuda.in_flight_count(), 0U);
}

TEST_F(FakeCudaTest, ACopyMayMoveAfterSomeCallsOfAnyKind) {
  cuda.choose_next_copy({.moment = CopyMoment::after_calls, .calls = 2});
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.pointer_attributes(host));
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, kPage));
  ASSERT_TRUE(cuda.pointer_attributes(host));
  EXPECT_TRUE(holds(dev, 1, kPage));
}

TEST_F(FakeCudaTest, ACopyMayMoveAtAChosenInstant) {
  clock.advance_to(100);
  cuda.choose_next_copy({.moment = CopyMoment::after_time, .delay_ns = 50});
  ASSERT_TRUE(to_device(stream));
  clock.advance_to(149);
  EXPECT_EQ(cuda.in_flight_count(), 1U);
  clock.advance_to(150);
  EXPECT_TRUE(holds(dev, 1, kPage));
  EXPECT_EQ(clock.next_due_ns(), kNever);
}

TEST_F(FakeCudaTest, ACopyLeftAloneMovesByItselfInTheEnd) {
  ASSERT_TRUE(to_device(stream));
  clock.advance_to(kSecond / 2);
  ASSERT_TRUE(to_device(other, 1));
  clock.advance_to(kSecond - 1);
  EXPECT_EQ(cuda.in_flight_count(), 2U);
  clock.advance_to(kSecond);
  EXPECT_EQ(cuda.in_flight_count(), 1U);
  EXPECT_TRUE(holds(dev, 1, kPage));
  clock.advance_by(kSecond);
  EXPECT_EQ(cuda.in_flight_count(), 0U);
}

TEST_F(FakeCudaTest, CopiesOfAStreamMoveInItsOrderWhateverTheirChoices) {
  fill(dev + kPage, 3, kPage);
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(copy(kToHost, {{host + kPage, dev, kPage}}, stream));
  cuda.choose_next_copy({.moment = CopyMoment::at_submission});
  ASSERT_TRUE(copy(kToHost, {{host + 2 * kPage, dev + kPage, kPage}}, stream));
  EXPECT_TRUE(holds(host + kPage, 1, kPage));
  EXPECT_TRUE(holds(host + 2 * kPage, 3, kPage));
  EXPECT_EQ(cuda.in_flight_count(), 0U);
}

TEST_F(FakeCudaTest, BytesMayMovePiecemeal) {
  cuda.choose_next_copy({.moment = CopyMoment::at_submission, .split = true});
  ASSERT_TRUE(copy(kToDevice, {{dev, host, 64}, {dev + kPage, host, 65}, {dev + 2 * kPage, host, 1}}, stream));
  EXPECT_EQ(cuda.in_flight_count(), 3U);
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, 32));
  EXPECT_TRUE(holds(dev + 32, 1, 32));
  EXPECT_TRUE(holds(dev + kPage, kFreshDeviceByte, 32));
  EXPECT_TRUE(holds(dev + kPage + 32, 1, 33));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 1, 64));
  EXPECT_TRUE(holds(dev + kPage, 1, 65));
  EXPECT_TRUE(holds(dev + 2 * kPage, 1, 1));
  EXPECT_TRUE(holds(dev + 64, kFreshDeviceByte, 64));
}

TEST_F(FakeCudaTest, EveryMomentSplitAndOrderMovesEveryByteOnce) {
  for (const CopyMoment moment :
       {CopyMoment::at_the_wait, CopyMoment::at_submission, CopyMoment::after_calls, CopyMoment::after_time}) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      for (const bool split : {false, true}) {
        fill(dev, 0, 8 * kPage);
        std::vector<Copy> copies;
        for (std::uint64_t i = 0; i < 8; ++i) {
          fill(host + i * kPage, static_cast<std::uint8_t>(10 + i), kPage);
          copies.push_back({dev + i * kPage, host + i * kPage, 100 + i});
        }
        cuda.choose_next_copy({moment, 1, 10, seed, split});
        ASSERT_TRUE(copy(kToDevice, copies, stream));
        clock.advance_by(10);
        ASSERT_TRUE(cuda.stream_synchronize(stream));
        for (std::uint64_t i = 0; i < 8; ++i) {
          EXPECT_TRUE(holds(dev + i * kPage, static_cast<std::uint8_t>(10 + i), 100 + i));
          EXPECT_EQ(byte_at(dev + i * kPage + 100 + i), 0);
        }
      }
    }
  }
}

TEST_F(FakeCudaTest, AnUnregisteredSourceIsReadAtSubmissionAndReported) {
  const std::uintptr_t loose = arena.map_private(2 * kPage);
  fill(loose, 4, kPage);
  ASSERT_TRUE(copy(kToDevice, {{dev, host, 16}, {dev + kPage, loose, 16}}, stream));
  fill(loose, 5, kPage);
  fill(host, 6, 16);
  EXPECT_TRUE(holds(dev + kPage, kFreshDeviceByte, 16));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev + kPage, 4, 16));
  EXPECT_TRUE(holds(dev, 6, 16));
  const std::vector<DeviceIncident> incidents = cuda.drain_incidents();
  ASSERT_EQ(incidents.size(), 1U);
  EXPECT_EQ(incidents[0].kind, DeviceIncidentKind::unregistered_host);
  EXPECT_EQ(incidents[0].copy.index, 1U);
  EXPECT_EQ(incidents[0].copy.batch, 1U);
}

// ---- A batch.

TEST_F(FakeCudaTest, CopiesOfOneBatchHaveNoOrderAndOverlappingDestinationsPass) {
  byte_at(host) = 1;
  byte_at(host + 1) = 2;
  byte_at(host + 2) = 3;
  const std::vector<Copy> copies = {{dev, host, 1}, {dev, host + 1, 1}, {dev, host + 2, 1}};
  ASSERT_TRUE(copy(kToDevice, copies, stream));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_EQ(byte_at(dev), 1) << "by default the first copy moves last";
  std::set<int> last;
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    cuda.choose_next_copy({.order_seed = seed});
    ASSERT_TRUE(copy(kToDevice, copies, stream));
    ASSERT_TRUE(cuda.stream_synchronize(stream));
    last.insert(byte_at(dev));
  }
  EXPECT_EQ(last, (std::set<int>{1, 2, 3}));
  EXPECT_FALSE(cuda.has_incidents());
}

TEST_F(FakeCudaTest, AnEmptyBatchLengthZeroAndNullAreInvalidAndNothingMoves) {
  const auto invalid = code(CudaErrc::invalid_value);
  const Copy good{dev, host, 16};
  EXPECT_EQ(code_of(copy(kToDevice, {}, stream)), invalid);
  for (const Copy bad : {Copy{dev, host, 0}, Copy{0, host, 16}, Copy{dev, 0, 16}, Copy{dev, host, ~0ULL}}) {
    EXPECT_EQ(code_of(copy(kToDevice, {good, bad}, stream)), invalid);
  }
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, 16));
}

TEST_F(FakeCudaTest, ABatchIsOrderedWithWhatIsBeforeAndAfterItInTheStream) {
  ASSERT_TRUE(to_device(stream));
  cuda.choose_next_copy({.order_seed = 3, .split = true});
  ASSERT_TRUE(copy(kToHost, {{host + kPage, dev, kPage}, {host + 2 * kPage, dev, kPage}}, stream));
  ASSERT_TRUE(
      copy(kToDevice, {{dev + 3 * kPage, host + kPage, kPage}, {dev + 4 * kPage, host + 2 * kPage, kPage}}, stream));
  fill(host, 8, kPage);
  fill(host + kPage, 0, 2 * kPage);
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev + 3 * kPage, 8, 2 * kPage));
}

TEST_F(FakeCudaTest, TheDefaultStreamsAndUnknownOnesAreRefused) {
  for (const std::uintptr_t native : {0U, 1U, 2U}) EXPECT_FALSE(StreamRef::from_native(native));
  const StreamRef unknown = StreamRef::from_native(kFirstStream + 99).value();
  const auto no_such = code(kInvalidResourceHandle);
  EXPECT_EQ(code_of(to_device(unknown)), no_such);
  EXPECT_EQ(code_of(cuda.stream_synchronize(unknown)), no_such);
  EXPECT_EQ(code_of(cuda.event_record(event(), unknown)), no_such);
  EXPECT_EQ(code_of(cuda.stream_wait(unknown, event())), no_such);
  ASSERT_TRUE(cuda.destroy_stream(other));
  EXPECT_EQ(code_of(to_device(other)), no_such);
  EXPECT_EQ(stream.native(), 16U);
  EXPECT_EQ(cuda.create_stream().value().native(), 18U);
}

// ---- Events.

TEST_F(FakeCudaTest, AnEventCapturesWhatTheStreamHasSoFar) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_device(stream, 0));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  ASSERT_TRUE(to_device(stream, 1));
  EXPECT_FALSE(cuda.event_query(recorded).value());
  ASSERT_TRUE(cuda.event_synchronize(recorded));
  EXPECT_TRUE(cuda.event_query(recorded).value());
  EXPECT_TRUE(holds(dev, 1, kPage));
  EXPECT_TRUE(holds(dev + kPage, kFreshDeviceByte, kPage));
}

TEST_F(FakeCudaTest, RecordingAgainReplacesWhatAnEventCaptured) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_device(stream, 0));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  ASSERT_TRUE(to_device(other, 1));
  ASSERT_TRUE(cuda.event_record(recorded, other));
  ASSERT_TRUE(cuda.event_synchronize(recorded));
  EXPECT_TRUE(holds(dev + kPage, 1, kPage));
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, kPage));
}

TEST_F(FakeCudaTest, AnEventNeverRecordedCountsAsDone) {
  const EventRef never = event();
  ASSERT_TRUE(to_device(stream));
  EXPECT_TRUE(cuda.event_query(never).value());
  EXPECT_TRUE(cuda.event_synchronize(never));
  ASSERT_TRUE(cuda.stream_wait(other, never));
  ASSERT_TRUE(to_device(other, 1));
  ASSERT_TRUE(cuda.stream_synchronize(other));
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, kPage));
}

TEST_F(FakeCudaTest, AskingMovesNothingButTimeDoes) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(cuda.event_query(recorded).value());
  clock.advance_by(kSecond);
  EXPECT_TRUE(cuda.event_query(recorded).value());
}

TEST_F(FakeCudaTest, DestroyingAPendingEventChangesNothingForWhoWaitsAlready) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  ASSERT_TRUE(cuda.stream_wait(other, recorded));
  ASSERT_TRUE(cuda.event_destroy(recorded));
  ASSERT_TRUE(copy(kToHost, {{host + kPage, dev, kPage}}, other));
  fill(host + kPage, 0, kPage);
  ASSERT_TRUE(cuda.stream_synchronize(other));
  EXPECT_TRUE(holds(host + kPage, 1, kPage));
}

TEST_F(FakeCudaTest, ADestroyedEventIsNobodysEvenWhenANewOneIsMade) {
  const EventRef gone = event();
  ASSERT_TRUE(cuda.event_destroy(gone));
  const EventRef fresh = event();
  EXPECT_NE(gone, fresh);
  const auto no_such = code(kInvalidResourceHandle);
  EXPECT_EQ(code_of(cuda.event_record(gone, stream)), no_such);
  EXPECT_EQ(code_of(cuda.event_query(gone)), no_such);
  EXPECT_EQ(code_of(cuda.event_synchronize(gone)), no_such);
  EXPECT_EQ(code_of(cuda.stream_wait(stream, gone)), no_such);
  EXPECT_EQ(code_of(cuda.event_destroy(gone)), no_such);
  EXPECT_EQ(code_of(cuda.event_destroy(EventRef{})), no_such);
  EXPECT_EQ(cuda.event_count(), 1U);
}

TEST_F(FakeCudaTest, WorkInADestroyedStreamGoesOn) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  ASSERT_TRUE(cuda.destroy_stream(stream));
  EXPECT_FALSE(cuda.event_query(recorded).value());
  ASSERT_TRUE(cuda.event_synchronize(recorded));
  EXPECT_TRUE(holds(dev, 1, kPage));
}

// ---- Streams and the engine.

TEST_F(FakeCudaTest, StreamsAreNotOrderedWithEachOther) {
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(copy(kToHost, {{host + kPage, dev, kPage}}, other));
  ASSERT_TRUE(cuda.stream_synchronize(other));
  EXPECT_TRUE(holds(host + kPage, kFreshDeviceByte, kPage));
}

TEST_F(FakeCudaTest, AnEventOrdersOneStreamBehindWhatItCapturedOfAnother) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  ASSERT_TRUE(to_device(stream, 2));
  ASSERT_TRUE(cuda.stream_wait(other, recorded));
  cuda.choose_next_copy({.moment = CopyMoment::at_submission});
  ASSERT_TRUE(copy(kToHost, {{host + kPage, dev, kPage}}, other));
  EXPECT_TRUE(holds(host + kPage, 1, kPage));
  EXPECT_TRUE(holds(dev + 2 * kPage, kFreshDeviceByte, kPage)) << "submitted after the record";
}

TEST_F(FakeCudaTest, WaitsForEachOtherInTurnAreFollowedToTheirStart) {
  for (std::uint64_t page = 0; page < 15; ++page) {
    const StreamRef writer = page % 2 == 0 ? stream : other;
    const StreamRef next = page % 2 == 0 ? other : stream;
    const EventRef recorded = event();
    ASSERT_TRUE(copy(kToDevice, {{dev + page * kPage, host + page * kPage, kPage}}, writer));
    ASSERT_TRUE(copy(kToHost, {{host + (page + 1) * kPage, dev + page * kPage, kPage}}, writer));
    ASSERT_TRUE(cuda.event_record(recorded, writer));
    ASSERT_TRUE(cuda.stream_wait(next, recorded));
  }
  fill(host, 42, kPage);
  ASSERT_TRUE(cuda.stream_synchronize(other));
  EXPECT_TRUE(holds(host + 15 * kPage, 42, kPage));
}

TEST_F(FakeCudaTest, AWaitHoldsBackOnlyWhatComesAfterItInItsStream) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  const EventRef before = event();
  ASSERT_TRUE(to_device(other, 1));
  ASSERT_TRUE(cuda.event_record(before, other));
  ASSERT_TRUE(cuda.stream_wait(other, recorded));
  ASSERT_TRUE(cuda.event_synchronize(before));
  EXPECT_TRUE(holds(dev + kPage, 1, kPage));
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, kPage));
}

TEST_F(FakeCudaTest, TheEnginesKernelsRunInStreamOrderAndEventsHandThemOver) {
  const EventRef written = event();
  ASSERT_TRUE(cuda.launch(stream, [&] { fill(dev, 77, kPage); }));
  ASSERT_TRUE(cuda.event_record(written, stream));
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, kPage));
  ASSERT_TRUE(cuda.stream_wait(other, written));
  ASSERT_TRUE(to_host(other));
  const EventRef read = event();
  ASSERT_TRUE(cuda.event_record(read, other));
  ASSERT_TRUE(cuda.stream_wait(stream, read));
  ASSERT_TRUE(cuda.launch(stream, [&] { fill(dev, 78, kPage); }, {.moment = CopyMoment::at_submission}));
  EXPECT_TRUE(holds(host, 77, kPage));
  EXPECT_TRUE(holds(dev, 78, kPage));
}

TEST_F(FakeCudaTest, WithoutAnEventACopyReadsWhatTheEngineHasNotWrittenYet) {
  ASSERT_TRUE(cuda.launch(stream, [&] { fill(dev, 77, kPage); }));
  ASSERT_TRUE(to_host(other));
  ASSERT_TRUE(cuda.stream_synchronize(other));
  EXPECT_TRUE(holds(host, kFreshDeviceByte, kPage));
}

// ---- Synchronize and errors.

TEST_F(FakeCudaTest, ASuccessfulWaitMeansThatEverythingCoveredIsDone) {
  for (std::uint64_t page = 0; page < 8; ++page) {
    cuda.choose_next_copy({.moment = CopyMoment::after_time, .delay_ns = kMinute, .split = true});
    ASSERT_TRUE(to_device(stream, page));
  }
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 1, 8 * kPage));
  EXPECT_EQ(cuda.in_flight_count(), 0U);
  EXPECT_EQ(clock.next_due_ns(), kNever);
}

TEST_F(FakeCudaTest, AnAsynchronousErrorSurfacesAtTheWaitNotWhereItWasCausedAndOnce) {
  ASSERT_TRUE(to_device(stream));
  cuda.fail_later(stream, CudaErrc::launch_failure, false);
  ASSERT_TRUE(to_device(stream, 1));
  EXPECT_TRUE(cuda.stream_synchronize(other));
  EXPECT_EQ(code_of(cuda.stream_synchronize(stream)), code(CudaErrc::launch_failure));
  EXPECT_FALSE(cuda.context_dead());
  EXPECT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 1, 2 * kPage));
}

TEST_F(FakeCudaTest, AFailedWaitProvesNothingAboutWhatIsInFlight) {
  ASSERT_TRUE(to_device(stream));
  cuda.fail_later(stream, CudaErrc::launch_failure, false);
  ASSERT_FALSE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(cuda.in_flight(host, kPage).has_value());
  fill(host, 33, kPage);
  clock.advance_by(kSecond);
  EXPECT_TRUE(holds(dev, 33, kPage)) << "it still moved, later";
}

TEST_F(FakeCudaTest, AnAsynchronousErrorSurfacesAtEventsThatCoverTheFailedWorkOnly) {
  const EventRef before = event();
  const EventRef after = event();
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.event_record(before, stream));
  ASSERT_TRUE(to_device(stream, 1));
  ASSERT_TRUE(cuda.event_record(after, stream));
  cuda.fail_later(stream, CudaErrc::launch_failure, false);
  EXPECT_FALSE(cuda.event_query(before).value());
  EXPECT_TRUE(cuda.event_synchronize(before));
  EXPECT_EQ(code_of(cuda.event_query(after)), code(CudaErrc::launch_failure));
  cuda.fail_later(stream, CudaErrc::launch_failure, false);
  EXPECT_EQ(code_of(cuda.event_synchronize(after)), code(CudaErrc::launch_failure));
}

TEST_F(FakeCudaTest, AnAsynchronousErrorSurfacesAtAStreamThatWaitsForTheFailedWork) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  cuda.fail_later(stream, CudaErrc::launch_failure, false);
  ASSERT_TRUE(cuda.stream_wait(other, recorded));
  EXPECT_EQ(code_of(cuda.stream_synchronize(other)), code(CudaErrc::launch_failure));
}

TEST_F(FakeCudaTest, AnAsynchronousErrorMaySurfaceAtAnyLaterCall) {
  ASSERT_TRUE(to_device(stream));
  cuda.fail_later(stream, CudaErrc::launch_failure, false, 2);
  EXPECT_TRUE(cuda.pointer_attributes(host));
  EXPECT_EQ(code_of(cuda.event_create()), code(CudaErrc::launch_failure));
  EXPECT_TRUE(cuda.event_create());
  EXPECT_TRUE(cuda.stream_synchronize(stream));
}

TEST_F(FakeCudaTest, AStickyErrorIsToldByItsOwnStreamsWaitAndThenByEveryCallOfEveryStream) {
  const EventRef recorded = event();
  cuda.fail_later(stream, CudaErrc::illegal_address, true);
  EXPECT_TRUE(to_device(other)) << "others succeed for a while";
  EXPECT_TRUE(cuda.stream_synchronize(other));
  EXPECT_TRUE(to_device(stream, 1));
  EXPECT_EQ(code_of(cuda.stream_synchronize(stream)), 700);

  EXPECT_TRUE(cuda.context_dead());
  EXPECT_EQ(code_of(cuda.stream_synchronize(stream)), 700);
  EXPECT_EQ(code_of(cuda.stream_synchronize(other)), 700);
  EXPECT_EQ(code_of(to_device(other)), 700);
  EXPECT_EQ(code_of(cuda.host_register(arena.map_private(kPage), kPage, HostAccess::read_write)), 700);
  EXPECT_EQ(code_of(cuda.host_unregister(host)), 700);
  EXPECT_EQ(code_of(cuda.event_create()), 700);
  EXPECT_EQ(code_of(cuda.event_record(recorded, other)), 700);
  EXPECT_EQ(code_of(cuda.stream_wait(other, recorded)), 700);
  EXPECT_EQ(code_of(cuda.event_query(recorded)), 700);
  EXPECT_EQ(code_of(cuda.event_synchronize(recorded)), 700);
  EXPECT_EQ(code_of(cuda.event_destroy(recorded)), 700);
  EXPECT_EQ(code_of(cuda.pointer_attributes(host)), 700);
  EXPECT_EQ(code_of(cuda.allocate(16)), 700);
  EXPECT_EQ(code_of(cuda.free(dev)), 700);
  EXPECT_EQ(code_of(cuda.create_stream()), 700);
  EXPECT_EQ(code_of(cuda.destroy_stream(other)), 700);
  EXPECT_EQ(code_of(cuda.launch(other, [] {})), 700);
}

TEST_F(FakeCudaTest, OnlyTearingTheContextDownEndsAStickyErrorAndNoCopyMovesAfterIt) {
  const EventRef recorded = event();
  ASSERT_TRUE(to_host(stream));
  ASSERT_TRUE(cuda.event_record(recorded, stream));
  cuda.fail_later(stream, CudaErrc::illegal_address, true);
  ASSERT_FALSE(cuda.stream_synchronize(stream));
  cuda.client_died();
  EXPECT_FALSE(cuda.create_stream());
  cuda.tear_down();
  clock.advance_by(kMinute);
  EXPECT_TRUE(holds(host, 1, kPage));
  EXPECT_EQ(cuda.in_flight_count(), 0U);
  EXPECT_TRUE(cuda.registrations().empty());
  EXPECT_EQ(cuda.allocation_count(), 0U);
  EXPECT_EQ(cuda.event_count(), 0U);
  EXPECT_EQ(cuda.stream_count(), 0U);
  EXPECT_TRUE(holds(dev, kFreedDeviceByte, kPage));
  EXPECT_EQ(code_of(cuda.stream_synchronize(stream)), code(kInvalidResourceHandle));
  EXPECT_EQ(code_of(cuda.event_query(recorded)), code(kInvalidResourceHandle));

  EXPECT_TRUE(cuda.host_register(host, kHostBytes, HostAccess::read_write));
  EXPECT_EQ(cuda.allocate(kDeviceBytes).value(), dev);
  const StreamRef fresh = cuda.create_stream().value();
  EXPECT_EQ(fresh.native(), 18U);
  ASSERT_TRUE(to_device(fresh));
  ASSERT_TRUE(cuda.stream_synchronize(fresh));
  EXPECT_TRUE(holds(dev, 1, kPage));
  EXPECT_FALSE(cuda.has_incidents());
}

// ---- Pointers.

TEST_F(FakeCudaTest, AttributesTellDeviceRegisteredAndUnregisteredMemory) {
  const std::uintptr_t second = cuda.allocate(100, 1).value();
  const std::uintptr_t loose = arena.map_private(kPage);
  using Attributes = PointerAttributes;
  EXPECT_EQ(cuda.pointer_attributes(dev).value(), (Attributes{MemoryKind::device, 0}));
  EXPECT_EQ(cuda.pointer_attributes(dev + kDeviceBytes - 1).value(), (Attributes{MemoryKind::device, 0}));
  EXPECT_EQ(cuda.pointer_attributes(second + 99).value(), (Attributes{MemoryKind::device, 1}));
  EXPECT_EQ(cuda.pointer_attributes(second + 100).value(), (Attributes{MemoryKind::unregistered_host, -1}));
  EXPECT_EQ(cuda.pointer_attributes(host + kHostBytes - 1).value(), (Attributes{MemoryKind::registered_host, -1}));
  EXPECT_EQ(cuda.pointer_attributes(host + kHostBytes).value(), (Attributes{MemoryKind::unregistered_host, -1}));
  EXPECT_EQ(cuda.pointer_attributes(loose).value(), (Attributes{MemoryKind::unregistered_host, -1}));
  EXPECT_EQ(cuda.pointer_attributes(0).value(), (Attributes{MemoryKind::unregistered_host, -1}));
}

TEST_F(FakeCudaTest, DeviceMemoryOfAnotherDeviceOrOutsideOneAllocationIsRefused) {
  const auto invalid = code(CudaErrc::invalid_value);
  const std::uintptr_t second = cuda.allocate(kPage, 1).value();
  const std::uintptr_t neighbour = cuda.allocate(kPage).value();
  ASSERT_EQ(neighbour, dev + kDeviceBytes);
  EXPECT_EQ(code_of(copy(kToDevice, {{second, host, 16}}, stream)), invalid);
  EXPECT_EQ(code_of(copy(kToDevice, {{neighbour - 8, host, 16}}, stream)), invalid);
  EXPECT_EQ(code_of(copy(kToHost, {{host, neighbour + kPage - 8, 16}}, stream)), invalid);
  EXPECT_EQ(code_of(copy(kToHost, {{dev, neighbour, 16}}, stream)), invalid) << "both on the device";
  EXPECT_EQ(code_of(copy(kToDevice, {{host, dev, 16}}, stream)), invalid) << "the wrong way round";
  EXPECT_TRUE(copy(kToDevice, {{second, host, 16}}, cuda.create_stream(1).value()));
}

TEST_F(FakeCudaTest, DeviceMemoryRunsOutAndOfAnUnknownDeviceThereIsNone) {
  EXPECT_EQ(code_of(cuda.allocate((1 << 20) - kDeviceBytes + 1)), code(CudaErrc::memory_allocation));
  EXPECT_TRUE(cuda.allocate((1 << 20) - kDeviceBytes));
  EXPECT_EQ(code_of(cuda.allocate(1)), code(CudaErrc::memory_allocation));
  EXPECT_TRUE(cuda.allocate(1, 1));
  EXPECT_EQ(code_of(cuda.allocate(1, 2)), code(CudaErrc::invalid_device));
  EXPECT_EQ(code_of(cuda.create_stream(-1)), code(CudaErrc::invalid_device));
  EXPECT_EQ(code_of(cuda.allocate(0)), code(CudaErrc::invalid_value));
  EXPECT_EQ(code_of(cuda.free(dev + 1)), code(CudaErrc::invalid_value));
}

// ---- Undefined accesses.

TEST_F(FakeCudaTest, FreeingDeviceMemoryUnderACopyIsReported) {
  ASSERT_TRUE(to_host(stream, 2));
  ASSERT_TRUE(cuda.free(dev));
  EXPECT_TRUE(holds(dev, kFreedDeviceByte, kDeviceBytes));
  const std::vector<DeviceIncident> incidents = cuda.drain_incidents();
  ASSERT_EQ(incidents.size(), 1U);
  EXPECT_EQ(incidents[0].kind, DeviceIncidentKind::device_freed_in_flight);
  EXPECT_EQ(incidents[0].copy.device(), dev + 2 * kPage);
  EXPECT_EQ(incidents[0].copy.host(), host + 2 * kPage);
  EXPECT_EQ(incidents[0].culprit, "free(dev0+0x0, 0x10000)");
  EXPECT_EQ(cuda.in_flight_count(), 0U) << "what is given out next is not written by the old copy";
}

TEST_F(FakeCudaTest, GivingHostMemoryAwayUnderACopyIsReportedAndTheCopyStillMoves) {
  ASSERT_TRUE(to_host(stream, 2));
  cuda.host_freed(host, 2 * kPage, "put_abort");
  EXPECT_FALSE(cuda.has_incidents());
  cuda.name_host(host, kHostBytes, "seg0");
  cuda.host_freed(host + 2 * kPage, kPage, "put_abort");
  const std::vector<DeviceIncident> incidents = cuda.drain_incidents();
  ASSERT_EQ(incidents.size(), 1U);
  EXPECT_EQ(incidents[0].kind, DeviceIncidentKind::host_freed_in_flight);
  EXPECT_EQ(incidents[0].culprit, "put_abort(seg0+0x2000, 0x1000)");
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(host + 2 * kPage, kFreshDeviceByte, kPage));
}

TEST_F(FakeCudaTest, InFlightNamesTheOldestCopyThatTouchesARange) {
  ASSERT_TRUE(copy(kToDevice, {{dev, host, 16}, {dev + kPage, host + kPage, 16}}, other));
  ASSERT_TRUE(copy(kToHost, {{host + kPage, dev + 2 * kPage, 16}}, stream));
  EXPECT_EQ(cuda.in_flight(host + kPage, 16)->batch, 1U);
  EXPECT_EQ(cuda.in_flight(host + kPage, 16)->index, 1U);
  EXPECT_EQ(cuda.in_flight(dev + 2 * kPage + 15, 1)->batch, 2U);
  EXPECT_FALSE(cuda.in_flight(dev + 2 * kPage + 16, 1));
  EXPECT_FALSE(cuda.in_flight(host + 16, kPage - 16));
  ASSERT_TRUE(cuda.stream_synchronize(other));
  EXPECT_EQ(cuda.in_flight(host + kPage, 16)->batch, 2U);
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_FALSE(cuda.in_flight(host, kHostBytes));
}

// ---- Death, threads, runs.

TEST_F(FakeCudaTest, WhenTheClientDiesItsCopiesStopAndItsRegistrationsGo) {
  const EventRef recorded = event();
  cuda.choose_next_copy({.moment = CopyMoment::after_time, .delay_ns = 1});
  ASSERT_TRUE(to_host(stream));
  ASSERT_TRUE(cuda.launch(stream, [&] { fill(dev, 99, kPage); }));
  cuda.client_died();
  clock.advance_by(kMinute);
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(host, 1, kPage));
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, kPage));
  EXPECT_TRUE(cuda.registrations().empty());
  EXPECT_EQ(code_of(cuda.event_query(recorded)), code(kInvalidResourceHandle));
  EXPECT_FALSE(cuda.has_incidents());
  EXPECT_EQ(cuda.allocation_count(), 1U);
  ASSERT_TRUE(cuda.host_register(host, kHostBytes, HostAccess::read_write));
  ASSERT_TRUE(to_device(stream));
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(dev, 1, kPage));
}

TEST_F(FakeCudaTest, AllCallsMayComeFromSeveralThreads) {
  const auto work = [&](StreamRef on, std::uint64_t page) {
    for (int i = 0; i < 500; ++i) {
      const EventRef recorded = cuda.event_create().value();
      const std::vector<Copy> copies = {{dev + page * kPage, host + page * kPage, kPage}};
      ASSERT_TRUE(cuda.copy_batch(kToDevice, copies, on));
      ASSERT_TRUE(cuda.event_record(recorded, on));
      ASSERT_TRUE(cuda.event_synchronize(recorded));
      ASSERT_TRUE(cuda.event_destroy(recorded));
    }
  };
  std::thread first(work, stream, 0);
  std::thread second(work, other, 1);
  first.join();
  second.join();
  EXPECT_TRUE(holds(dev, 1, 2 * kPage));
  EXPECT_EQ(cuda.event_count(), 0U);
  EXPECT_FALSE(cuda.has_incidents());
}

TEST_F(FakeCudaTest, AfterAResetEverythingIsAsNew) {
  ASSERT_TRUE(to_device(stream));
  cuda.choose_next_copy({.moment = CopyMoment::at_submission});
  cuda.fail_later(stream, CudaErrc::illegal_address, true, 0);
  ASSERT_FALSE(cuda.event_create());
  cuda.host_freed(host, kPage, "a test");
  clock.reset();
  cuda.reset({.device_bytes = 1 << 20});
  EXPECT_EQ(cuda.call_count(), 0U);
  EXPECT_EQ(cuda.in_flight_count(), 0U);
  EXPECT_FALSE(cuda.has_incidents());
  EXPECT_FALSE(cuda.context_dead());
  EXPECT_TRUE(cuda.registrations().empty());
  EXPECT_EQ(clock.next_due_ns(), kNever);
  EXPECT_EQ(cuda.allocate(kDeviceBytes).value(), dev);
  EXPECT_TRUE(holds(dev, kFreshDeviceByte, kDeviceBytes));
  EXPECT_EQ(code_of(cuda.allocate(1, 1)), code(CudaErrc::invalid_device));
  EXPECT_EQ(cuda.create_stream().value(), stream);
  ASSERT_TRUE(cuda.host_register(host, kHostBytes, HostAccess::read_write));
  ASSERT_TRUE(to_device(stream));
  EXPECT_EQ(cuda.in_flight(dev, 1)->batch, 1U);
}

TEST(FakeCudaDeterminism, LocationsDoNotDependOnWhereTheArenaLies) {
  std::vector<std::string> first;
  for (const std::uint64_t shift : {0U, 77U}) {
    Arena arena({.reserve_bytes = 1 << 30, .base_shift_pages = shift});
    VirtualClock clock;
    FakeCuda cuda(arena, clock, {.device_count = 2, .device_bytes = 1 << 20});
    const std::uintptr_t host = arena.map_private(kPage);
    const std::uintptr_t named = arena.map_private(kPage);
    cuda.name_host(named, kPage, "seg0");
    const int on_stack = 0;
    const std::vector<std::string> now = {
        cuda.location(cuda.allocate(16).value() + 0x200),
        cuda.location(cuda.allocate(16, 1).value()),
        cuda.location(host + 4),
        cuda.location(named + 64),
        cuda.location(reinterpret_cast<std::uintptr_t>(&on_stack)),
    };
    if (first.empty()) first = now;
    EXPECT_EQ(now, first);
  }
  EXPECT_THAT(first,
              testing::ElementsAre("dev0+0x200", "dev1+0x0", testing::StartsWith("host+0x"), "seg0+0x40", "host"));
}

TEST(FakeCudaDeterminism, ASeedPermutesTheSameOnEveryMachine) {
  Arena arena({.reserve_bytes = 1 << 30});
  VirtualClock clock;
  FakeCuda cuda(arena, clock, {.device_bytes = 1 << 20});
  const std::uintptr_t host = arena.map_private(kPage);
  const std::uintptr_t dev = cuda.allocate(kPage).value();
  const StreamRef stream = cuda.create_stream().value();
  ASSERT_TRUE(cuda.host_register(host, kPage, HostAccess::read_write));
  // Copy i covers bytes i to 7, so byte i shows which of the first copies moved last.
  std::vector<Copy> copies;
  for (std::uint64_t i = 0; i < 8; ++i) {
    fill(host + i * 16, static_cast<std::uint8_t>('a' + i), 16);
    copies.push_back({dev + i, host + i * 16, 8 - i});
  }
  std::vector<std::string> shown;
  for (const std::uint64_t seed : {0U, 1U, 2U, 12345U}) {
    cuda.choose_next_copy({.order_seed = seed});
    ASSERT_TRUE(cuda.copy_batch(kToDevice, copies, stream));
    ASSERT_TRUE(cuda.stream_synchronize(stream));
    shown.emplace_back(reinterpret_cast<const char*>(dev), 8);
  }
  EXPECT_THAT(shown, testing::ElementsAre("aaaaaaaa", "abbbbbbb", "aaaaaagg", "aaaaaaaa"));
}

}  // namespace
}  // namespace holdfast::fakes
