// Registration as measured on a device: once per mapping and generation, read-only where it must be, proven or refused.
#include "holdfast/core/segment_registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "holdfast/fakes/arena.hpp"
#include "holdfast/fakes/cuda_device.hpp"
#include "holdfast/fakes/virtual_clock.hpp"
#include "mock_instances.hpp"
#include "stepping_sync.hpp"

namespace holdfast {
namespace {

using testing::_;
using testing::InSequence;
using testing::Invoke;
using testing::NiceMock;
using testing::Return;

constexpr std::uint64_t kPieceBytes = 64 << 10;

class SegmentRegistryTest : public testing::Test {
 protected:
  SegmentRegistryTest() : region(arena.map_dual(4 * kPieceBytes)) {
    cuda.delegate_to(device);
    segment.segment_label = "external_owner:0";
    segment.write_ptr = region.write_base;
    segment.read_ptr = region.read_base;
    segment.len = region.bytes;
    segment.generation = 100;
  }
  Result<std::uint64_t> ensure(const Segment& of) {
    return registry.ensure(registry.begin_look(), std::span(&of, 1), absorbed);
  }
  Result<std::uintptr_t> translate(std::uintptr_t base, std::uint64_t bytes) {
    HostRange range{base, bytes};
    if (Status translated = registry.translate(std::span(&range, 1)); !translated) return translated.error();
    return range.base;
  }
  static Error refused(CudaErrc errc) { return cuda_error(errc, "host_register"); }

  fakes::Arena arena;
  fakes::VirtualClock clock;
  fakes::FakeCuda device{arena, clock};
  fakes::DualRegion region;
  NiceMock<fakes::MockCuda> cuda;
  StdSync sync;
  SegmentRegistry<fakes::MockCuda, StdSync> registry{cuda, sync, {.piece_bytes = kPieceBytes}};
  Segment segment;
  std::vector<Error> absorbed;
};

TEST_F(SegmentRegistryTest, WriteAndReadMappingsAreRegisteredInPieces) {
  EXPECT_CALL(cuda, host_register(_, kPieceBytes, _)).Times(8);
  ASSERT_TRUE(ensure(segment).has_value());
  EXPECT_TRUE(device.is_registered(region.write_base, kPieceBytes));
  EXPECT_TRUE(device.is_registered(region.read_base + 3 * kPieceBytes, kPieceBytes));
}

TEST_F(SegmentRegistryTest, WhereOneMappingIsEnoughTheOtherIsReachedByItsOffset) {
  SegmentRegistry<fakes::MockCuda, StdSync> one{cuda, sync, {.piece_bytes = kPieceBytes, .both_mappings = false}};
  EXPECT_CALL(cuda, host_register(_, kPieceBytes, _)).Times(4);
  ASSERT_TRUE(one.ensure(one.begin_look(), std::span(&segment, 1), absorbed).has_value());
  EXPECT_TRUE(device.is_registered(region.write_base, kPieceBytes));
  EXPECT_FALSE(device.is_registered(region.read_base, kPieceBytes));
  HostRange range{region.read_base + kPieceBytes + 8, 100};
  ASSERT_TRUE(one.translate(std::span(&range, 1)).has_value());
  EXPECT_EQ(range.base, region.write_base + kPieceBytes + 8);
  EXPECT_TRUE(absorbed.empty()) << "nothing was refused";
  EXPECT_EQ(one.counts().translated_mappings, 0U);
}

TEST_F(SegmentRegistryTest, OneMappingIsRegisteredOncePerPtrLenAndGeneration) {
  ASSERT_TRUE(ensure(segment).has_value());
  EXPECT_CALL(cuda, host_register).Times(0);
  EXPECT_CALL(cuda, host_unregister).Times(0);
  ASSERT_TRUE(ensure(segment).has_value());
}

TEST_F(SegmentRegistryTest, ANewGenerationAtTheSameAddressIsUnregisteredThenRegistered) {
  ASSERT_TRUE(ensure(segment).has_value());
  Segment next = segment;
  next.generation = 101;
  const InSequence order;
  EXPECT_CALL(cuda, host_unregister).Times(8);
  EXPECT_CALL(cuda, host_register).Times(8);
  ASSERT_TRUE(ensure(next).has_value());
  EXPECT_TRUE(registry.is_live(101));
  EXPECT_FALSE(registry.is_live(100));
}

TEST_F(SegmentRegistryTest, AMappingWhoseCopiesMayBeInFlightIsNotUnregistered) {
  ASSERT_TRUE(ensure(segment).has_value());
  ASSERT_TRUE(registry.begin_use(100).has_value());
  Segment next = segment;
  next.generation = 101;
  EXPECT_CALL(cuda, host_unregister).Times(0);
  const Result<std::uint64_t> status = ensure(next);
  ASSERT_FALSE(status.has_value()) << "the same address: nothing can be proven of it";
  EXPECT_TRUE(status.error().is(Errc::registration_failed));
  testing::Mock::VerifyAndClearExpectations(&cuda);
  cuda.delegate_to(device);
  registry.end_use(100);
  EXPECT_TRUE(ensure(next).has_value());
}

TEST_F(SegmentRegistryTest, ASegmentThatGoesLeavesItsNeighbourAlone) {
  Segment first = segment;
  first.len = 2 * kPieceBytes;
  Segment second = first;
  second.write_ptr += first.len;
  second.read_ptr += first.len;
  const std::vector<Segment> both{first, second};
  ASSERT_TRUE(registry.ensure(registry.begin_look(), both, absorbed).has_value());
  ASSERT_TRUE(ensure(second).has_value());
  EXPECT_EQ(registry.counts().registered_pieces, 4U);
  EXPECT_EQ(*translate(second.write_ptr, 0x100), second.write_ptr);
  EXPECT_FALSE(translate(first.write_ptr, 0x100).has_value());
}

TEST_F(SegmentRegistryTest, AReadOnlyMappingFallsBackToTheReadOnlyFlag) {
  device.declare_read_only(region);
  EXPECT_CALL(cuda, host_register(_, _, HostAccess::read_write)).Times(5);  // 4 writable pieces, 1 refused
  EXPECT_CALL(cuda, host_register(_, _, HostAccess::read_only)).Times(4);
  ASSERT_TRUE(ensure(segment).has_value());
  EXPECT_EQ(registry.counts().read_only_fallbacks, 1U);
  ASSERT_EQ(absorbed.size(), 1U);
  EXPECT_TRUE(is_cuda(absorbed[0], CudaErrc::invalid_value));
}

TEST_F(SegmentRegistryTest, NotSupportedTriggersTheFallBackToo) {
  EXPECT_CALL(cuda, host_register(_, _, HostAccess::read_write))
      .Times(5)
      .WillOnce(Return(Status()))
      .WillOnce(Return(Status()))
      .WillOnce(Return(Status()))
      .WillOnce(Return(Status()))
      .WillOnce(Return(refused(CudaErrc::not_supported)));
  EXPECT_CALL(cuda, host_register(_, _, HostAccess::read_only)).Times(4).WillRepeatedly(Return(Status()));
  EXPECT_TRUE(ensure(segment).has_value());
}

TEST_F(SegmentRegistryTest, TheWriteMappingDoesNotFallBack) {
  EXPECT_CALL(cuda, host_register).WillOnce(Return(refused(CudaErrc::invalid_value)));
  EXPECT_FALSE(ensure(segment).has_value());
}

TEST_F(SegmentRegistryTest, ARefusedSecondMappingIsTranslatedByItsOffset) {
  EXPECT_CALL(cuda, host_register(testing::Ge(region.read_base), _, _))
      .WillRepeatedly(Return(refused(CudaErrc::memory_allocation)));
  EXPECT_CALL(cuda, host_register(testing::Lt(region.read_base), _, _)).Times(4);
  ASSERT_TRUE(ensure(segment).has_value());
  EXPECT_EQ(registry.counts().translated_mappings, 1U);
  EXPECT_EQ(*translate(region.read_base + 0x1234, 0x100), region.write_base + 0x1234);
  EXPECT_EQ(*translate(region.write_base + 0x1234, 0x100), region.write_base + 0x1234);
}

TEST_F(SegmentRegistryTest, ARegisteredSecondMappingIsUsedAsItIs) {
  ASSERT_TRUE(ensure(segment).has_value());
  EXPECT_EQ(*translate(region.read_base + 0x1234, 0x100), region.read_base + 0x1234);
}

TEST_F(SegmentRegistryTest, AFailureAtALaterPieceRollsBackTheEarlierOnes) {
  const InSequence order;
  EXPECT_CALL(cuda, host_register(region.write_base, _, _));
  EXPECT_CALL(cuda, host_register(region.write_base + kPieceBytes, _, _));
  EXPECT_CALL(cuda, host_register(region.write_base + 2 * kPieceBytes, _, _))
      .WillOnce(Return(refused(CudaErrc::memory_allocation)));
  EXPECT_CALL(cuda, host_unregister(region.write_base));
  EXPECT_CALL(cuda, host_unregister(region.write_base + kPieceBytes));
  const Result<std::uint64_t> status = ensure(segment);
  ASSERT_FALSE(status.has_value());
  EXPECT_TRUE(mentions(status.error(), Origin::cuda, 2));
  EXPECT_TRUE(device.registrations().empty());
  EXPECT_EQ(registry.counts().registered_pieces, 0U);
}

TEST_F(SegmentRegistryTest, APieceThatCannotBeRolledBackIsLetGoLater) {
  EXPECT_CALL(cuda, host_register(region.write_base, _, _));
  EXPECT_CALL(cuda, host_register(region.write_base + kPieceBytes, _, _))
      .WillOnce(Return(refused(CudaErrc::memory_allocation)));
  EXPECT_CALL(cuda, host_unregister).WillOnce(Return(cuda_error(CudaErrc::invalid_value, "host_unregister")));
  ASSERT_FALSE(ensure(segment).has_value());
  testing::Mock::VerifyAndClearExpectations(&cuda);
  cuda.delegate_to(device);
  EXPECT_FALSE(device.registrations().empty());
  EXPECT_TRUE(registry.unregister_all().has_value());
  EXPECT_TRUE(device.registrations().empty());
}

TEST_F(SegmentRegistryTest, MemoryOfOurOwnIsRegisteredUntilItsUnregistrationSucceeds) {
  ASSERT_TRUE(registry.register_own({region.write_base, kPieceBytes}).has_value());
  EXPECT_CALL(cuda, host_unregister(region.write_base))
      .WillOnce(Return(cuda_error(CudaErrc::invalid_value, "host_unregister")))
      .WillOnce(Invoke(&device, &fakes::FakeCuda::host_unregister));
  EXPECT_FALSE(registry.unregister_own(region.write_base).has_value());
  EXPECT_TRUE(translate(region.write_base, kPieceBytes).has_value());
  EXPECT_TRUE(registry.unregister_own(region.write_base).has_value());
  EXPECT_FALSE(translate(region.write_base, kPieceBytes).has_value());
}

TEST_F(SegmentRegistryTest, AlreadyRegisteredIsAcceptedWhenBothEndsAreProven) {
  ASSERT_TRUE(device.host_register(region.write_base, region.bytes, HostAccess::read_write).has_value());
  ASSERT_TRUE(ensure(segment).has_value()) << "somebody else registered the whole of it";
  ASSERT_EQ(absorbed.size(), 4U);
  EXPECT_TRUE(is_cuda(absorbed[0], CudaErrc::host_memory_already_registered));
  EXPECT_TRUE(translate(region.write_base, 0x100).has_value());
  EXPECT_CALL(cuda, host_unregister(testing::Ge(region.read_base))).Times(4);
  EXPECT_CALL(cuda, host_unregister(testing::Lt(region.read_base))).Times(0);
  EXPECT_TRUE(registry.unregister_all().has_value()) << "what is not ours stays";
}

TEST_F(SegmentRegistryTest, AlreadyRegisteredIsRefusedWhenOnlyAPartIsPinned) {
  ASSERT_TRUE(device.host_register(region.write_base, kPieceBytes / 2, HostAccess::read_write).has_value());
  const Result<std::uint64_t> status = ensure(segment);
  ASSERT_FALSE(status.has_value());
  EXPECT_TRUE(status.error().is(Errc::registration_failed));
}

TEST_F(SegmentRegistryTest, SomebodyElsesRegistrationOfAnOlderMappingProvesNothing) {
  ASSERT_TRUE(device.host_register(region.write_base, region.bytes, HostAccess::read_write).has_value());
  ASSERT_TRUE(ensure(segment).has_value());
  Segment next = segment;
  next.generation = 101;
  EXPECT_FALSE(ensure(next).has_value()) << "it would deliver the old mapping's bytes";
  ASSERT_TRUE(device.host_unregister(region.write_base).has_value());
  EXPECT_TRUE(ensure(next).has_value());
}

TEST_F(SegmentRegistryTest, NothingIsRegisteredAnewWhereACopyOfAnOlderMappingMayBeInFlight) {
  ASSERT_TRUE(device.host_register(region.write_base, region.bytes, HostAccess::read_write).has_value());
  ASSERT_TRUE(ensure(segment).has_value());
  ASSERT_TRUE(registry.begin_use(100).has_value());
  ASSERT_TRUE(device.host_unregister(region.write_base).has_value());  // whoever had registered it
  Segment next = segment;
  next.generation = 101;
  EXPECT_CALL(cuda, host_register).Times(0);
  EXPECT_FALSE(ensure(next).has_value());
  testing::Mock::VerifyAndClearExpectations(&cuda);
  cuda.delegate_to(device);
  registry.end_use(100);
  EXPECT_TRUE(ensure(next).has_value());
}

TEST_F(SegmentRegistryTest, AFailedUnregistrationIsTriedAgain) {
  ASSERT_TRUE(ensure(segment).has_value());
  EXPECT_CALL(cuda, host_unregister).WillRepeatedly(Return(cuda_error(CudaErrc::invalid_value, "host_unregister")));
  const Status failed = registry.unregister_all();
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().suppressed.size(), 7U);
  testing::Mock::VerifyAndClearExpectations(&cuda);
  cuda.delegate_to(device);
  EXPECT_TRUE(registry.unregister_all().has_value());
  EXPECT_TRUE(device.registrations().empty());
}

TEST_F(SegmentRegistryTest, NobodyWaitsForARegistrationOfWhatTheyDoNotUse) {
  SteppingSync stepping;
  SegmentRegistry<fakes::MockCuda, SteppingSync> busy(cuda, stepping, {.piece_bytes = kPieceBytes});
  ASSERT_TRUE(busy.ensure(busy.begin_look(), std::span(&segment, 1), absorbed).has_value());
  const fakes::DualRegion more = arena.map_dual(kPieceBytes);
  Segment next = segment;
  next.write_ptr = more.write_base;
  next.read_ptr = more.read_base;
  next.len = more.bytes;
  EXPECT_CALL(cuda, host_register).Times(2).WillRepeatedly([&](std::uintptr_t at, std::uint64_t bytes, HostAccess how) {
    HostRange range{segment.write_ptr, 64};
    EXPECT_TRUE(busy.translate(std::span(&range, 1)).has_value());
    EXPECT_TRUE(busy.is_live(segment.generation));
    EXPECT_TRUE(busy.begin_use(segment.generation).has_value());
    busy.end_use(segment.generation);
    EXPECT_GE(busy.counts().registered_pieces, 8U);
    EXPECT_TRUE(busy.ensure(busy.begin_look(), std::span(&segment, 1), absorbed).has_value());
    return device.host_register(at, bytes, how);
  });
  const std::vector<Segment> both{segment, next};
  EXPECT_TRUE(busy.ensure(busy.begin_look(), both, absorbed).has_value());
}

TEST_F(SegmentRegistryTest, AnOlderAnswerThanTheOneInForceChangesNothing) {
  const std::uint64_t older = registry.begin_look();
  const std::uint64_t newer = registry.begin_look();
  Segment next = segment;
  next.generation = 101;
  ASSERT_TRUE(registry.ensure(newer, std::span(&next, 1), absorbed).has_value());
  EXPECT_CALL(cuda, host_register).Times(0);
  EXPECT_CALL(cuda, host_unregister).Times(0);
  const Result<std::uint64_t> late = registry.ensure(older, std::span(&segment, 1), absorbed);
  ASSERT_FALSE(late.has_value());
  EXPECT_TRUE(late.error().is(Errc::stale_generation));
  EXPECT_TRUE(registry.is_live(101));
  EXPECT_TRUE(registry.ensure(older, std::span(&next, 1), absorbed).has_value()) << "it says the same";
}

TEST_F(SegmentRegistryTest, NoUseBeginsOfARetiredGeneration) {
  ASSERT_TRUE(ensure(segment).has_value());
  Segment next = segment;
  next.generation = 101;
  ASSERT_TRUE(ensure(next).has_value());
  const Status use = registry.begin_use(100);
  ASSERT_FALSE(use.has_value());
  EXPECT_TRUE(use.error().is(Errc::stale_generation));
}

TEST_F(SegmentRegistryTest, AUseThatDidNotBeginDoesNotEnd) {
  EXPECT_DEATH(registry.end_use(100), "end_use without begin_use");
}

TEST_F(SegmentRegistryTest, PiecesOfNoBytesAreRefused) {
  using Registry = SegmentRegistry<fakes::MockCuda, StdSync>;
  EXPECT_DEATH(Registry(cuda, sync, {.piece_bytes = 0}), "registration pieces of no bytes");
}

TEST_F(SegmentRegistryTest, AnEpochEndsWithItsSegmentsAndNotWithTheirRegistrations) {
  EXPECT_EQ(*ensure(segment), 1U);
  EXPECT_EQ(*ensure(segment), 1U);
  ASSERT_TRUE(registry.unregister_all().has_value());
  EXPECT_EQ(*ensure(segment), 1U) << "the owner is the same";
  ++segment.generation;
  EXPECT_EQ(*ensure(segment), 2U);
  EXPECT_EQ(registry.epoch(), 2U);
}

TEST_F(SegmentRegistryTest, ASegmentThatCannotBeRegisteredBeginsItsEpochAllTheSame) {
  ASSERT_TRUE(ensure(segment).has_value());
  ++segment.generation;
  EXPECT_CALL(cuda, host_register).WillRepeatedly(Return(refused(CudaErrc::memory_allocation)));
  EXPECT_FALSE(ensure(segment).has_value());
  EXPECT_FALSE(ensure(segment).has_value());
  EXPECT_EQ(registry.epoch(), 2U);
}

}  // namespace
}  // namespace holdfast
