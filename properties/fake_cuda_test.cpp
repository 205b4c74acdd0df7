// What memory the fake device takes, names and loses: registrations, pointers, undefined accesses, death. A test's name
// is the promise, its body one situation.
#include <string>
#include <thread>

#include "fake_cuda_fixture.hpp"

namespace holdfast::fakes {
namespace {

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
  ASSERT_TRUE(to_device(stream, 4));
  clock.advance_to(5);
  cuda.name_host(host, kHostBytes, "seg0");
  ASSERT_TRUE(cuda.host_unregister(host));
  EXPECT_EQ(cuda.in_flight_count(), 0U);
  EXPECT_TRUE(holds(dev + 3 * kPage, 1, kPage));

  const std::vector<DeviceIncident> incidents = cuda.drain_incidents();
  ASSERT_EQ(incidents.size(), 4U);
  EXPECT_EQ(incidents[0].copy.batch, 1U);
  EXPECT_EQ(incidents[3].copy.batch, 3U);
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
  EXPECT_EQ(cuda.in_flight_count(), 1U);
  ASSERT_TRUE(cuda.stream_synchronize(stream));
  EXPECT_TRUE(holds(host + 2 * kPage, kFreshDeviceByte, kPage));
}

TEST_F(FakeCudaTest, InFlightNamesTheOldestCopyThatTouchesARange) {
  ASSERT_TRUE(to_device(stream, 5));
  ASSERT_TRUE(copy(kToDevice, {{dev, host, 16}, {dev + kPage, host + kPage, 16}}, other));
  ASSERT_TRUE(copy(kToHost, {{host + kPage, dev + 2 * kPage, 16}}, stream));
  EXPECT_EQ(cuda.in_flight(host + kPage, 16)->batch, 2U);
  EXPECT_EQ(cuda.in_flight(host + kPage, 16)->index, 1U);
  EXPECT_EQ(cuda.in_flight(dev + 2 * kPage + 15, 1)->batch, 3U);
  EXPECT_FALSE(cuda.in_flight(dev + 2 * kPage + 16, 1));
  EXPECT_FALSE(cuda.in_flight(host + 16, kPage - 16));
  ASSERT_TRUE(cuda.stream_synchronize(other));
  EXPECT_EQ(cuda.in_flight(host + kPage, 16)->batch, 3U);
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
