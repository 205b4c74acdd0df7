// The warm-up: bounded, in parts and pieces, told of, cancelled, rolled back, and paid once.
#include "holdfast/core/warm_up.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core_fixture.hpp"
#include "locked_backends.hpp"
#include "task_executors.hpp"

namespace holdfast {
namespace {

using testing::_;
using testing::Invoke;
using testing::NiceMock;
using testing::Return;

constexpr std::uint64_t kSegmentBytes = 4 * kTestGrantBytes;
constexpr std::uint32_t kPieces = 8;  // of both mappings

// Runs nothing before it is waited for, and then one task.
class LateExecutor final : public TaskExecutor {
 public:
  explicit LateExecutor(fakes::VirtualClock& clock) : clock_(clock) {}
  void submit(std::function<void()> task) override { tasks.push_back(std::move(task)); }
  void wait(Nanos limit_ns) override {
    ++waits;
    if (!runs || tasks.empty()) {
      clock_.advance_by(limit_ns);
      return;
    }
    run_one();
  }
  void run_one() {
    const std::function<void()> task = std::move(tasks.front());
    tasks.pop_front();
    task();
  }

  std::deque<std::function<void()>> tasks;
  bool runs = true;
  std::uint64_t waits = 0;

 private:
  fakes::VirtualClock& clock_;
};

class WarmUpTest : public CoreTest {
 protected:
  WarmUpTest() : CoreTest(fakes::OwnerOptions{.segment_bytes = kSegmentBytes, .grant_bytes = kTestGrantBytes}) {
    options.touch_part_bytes = kTestGrantBytes;
    options.touch = [this](const HostRange& range) { touched.push_back(range); };
    options.go_on = [this](const WarmUpProgress& progress) {
      told.push_back(progress);
      return told.size() != cancelled_at;
    };
  }
  Result<WarmUpReport> warm_up() { return store.warm_up(absorbed, options); }
  // The nth (from 0) call to register fails.
  void refuse_registration(std::uint32_t nth, CudaErrc with = CudaErrc::memory_allocation) {
    auto seen = std::make_shared<std::uint32_t>(0);
    EXPECT_CALL(cuda, host_register).WillRepeatedly([=, this](std::uintptr_t at, std::uint64_t bytes, HostAccess how) {
      if ((*seen)++ == nth) return Status(cuda_error(with, "host_register"));
      return device.host_register(at, bytes, how);
    });
  }
  void allow_registrations() {
    testing::Mock::VerifyAndClearExpectations(&cuda);
    cuda.delegate_to(device);
  }
  Result<PutReceipt> put(std::string_view key) {
    const DeviceTensor value = tensor(512);
    return store.put({&key, 1}, {&value, 1}, stream, absorbed);
  }

  PlanTierStore<TestRuntime> store{runtime, plan_options()};
  WarmUpOptions options;
  std::vector<HostRange> touched;
  std::vector<WarmUpProgress> told;
  std::size_t cancelled_at = 0;
  Absorbed absorbed;
};

TEST_F(WarmUpTest, EveryPageIsTouchedOnceAndEveryPieceRegistered) {
  const Result<WarmUpReport> report = warm_up();
  ASSERT_TRUE(report.has_value());
  std::uintptr_t at = owner.segment().write_ptr;
  ASSERT_EQ(touched.size(), 4U);
  for (const HostRange& part : touched) {
    EXPECT_EQ(part.base, at);
    at += part.bytes;
  }
  EXPECT_EQ(at, owner.segment().write_ptr + kSegmentBytes);
  EXPECT_EQ(store.registry_counts().registered_pieces, kPieces);
  EXPECT_EQ(report->progress, (WarmUpProgress{WarmUpStage::registering, kSegmentBytes, kSegmentBytes, 2 * kSegmentBytes,
                                              2 * kSegmentBytes}));
}

TEST_F(WarmUpTest, PagesAreTouchedBeforeTheFirstPieceIsRegistered) {
  EXPECT_CALL(cuda, host_register).Times(testing::AtLeast(1)).WillRepeatedly([&](auto at, auto bytes, auto how) {
    EXPECT_EQ(touched.size(), 4U);
    return device.host_register(at, bytes, how);
  });
  EXPECT_TRUE(warm_up().has_value());
}

TEST_F(WarmUpTest, TheFirstPutAfterItRegistersNothing) {
  ASSERT_TRUE(warm_up().has_value());
  EXPECT_CALL(cuda, host_register).Times(0);
  EXPECT_CALL(cuda, host_unregister).Times(0);
  EXPECT_TRUE(put("a").has_value());
}

TEST_F(WarmUpTest, ItFindsNothingToDoTheSecondTime) {
  ASSERT_TRUE(warm_up().has_value());
  touched.clear();
  EXPECT_CALL(cuda, host_register).Times(0);
  const Result<WarmUpReport> again = warm_up();
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(touched.empty());
  EXPECT_EQ(again->progress.register_total_bytes, 0U);
}

TEST_F(WarmUpTest, AfterARestartOfTheOwnerTheOldRangeIsUnregisteredBeforeTheNewOneIsTouched) {
  ASSERT_TRUE(warm_up().has_value());
  owner.restart();
  touched.clear();
  EXPECT_CALL(cuda, host_unregister).Times(kPieces).WillRepeatedly([&](std::uintptr_t at) {
    EXPECT_TRUE(touched.empty());
    return device.host_unregister(at);
  });
  ASSERT_TRUE(warm_up().has_value());
  EXPECT_EQ(touched.size(), 4U);
  EXPECT_EQ(device.registrations().size(), kPieces);
  EXPECT_CALL(cuda, host_register).Times(0);
  EXPECT_TRUE(put("a").has_value());
}

TEST_F(WarmUpTest, WhateverPieceOfTheFirstMappingFailsTheOthersAreRolledBackExactly) {
  for (std::uint32_t failing = 0; failing < 4; ++failing) {
    refuse_registration(failing);
    EXPECT_CALL(cuda, host_unregister).Times(static_cast<int>(failing));
    const Result<WarmUpReport> report = warm_up();
    ASSERT_FALSE(report.has_value()) << failing;
    EXPECT_TRUE(report.error().is(Errc::registration_failed));
    EXPECT_TRUE(mentions(report.error(), Origin::cuda, static_cast<std::int32_t>(CudaErrc::memory_allocation)));
    EXPECT_TRUE(device.registrations().empty()) << failing;
    EXPECT_EQ(store.registry_counts().registered_pieces, 0U);
    allow_registrations();
  }
  EXPECT_TRUE(warm_up().has_value()) << "none of them left anything in the way";
}

TEST_F(WarmUpTest, WhateverPieceOfTheSecondMappingIsRefusedItIsTranslatedAndCountedAsDone) {
  for (std::uint32_t failing = 4; failing < kPieces; ++failing) {
    owner.restart();
    refuse_registration(failing);
    const Result<WarmUpReport> report = warm_up();
    ASSERT_TRUE(report.has_value()) << failing;
    EXPECT_EQ(device.registrations().size(), 4U);
    EXPECT_EQ(report->progress.registered_bytes, 2 * kSegmentBytes);
    EXPECT_FALSE(absorbed.empty());
    EXPECT_CALL(cuda, host_register).Times(0);
    EXPECT_TRUE(put("a").has_value());
    allow_registrations();
  }
}

TEST_F(WarmUpTest, CancelledAtAnyMomentItLeavesNothing) {
  ASSERT_TRUE(warm_up().has_value());
  const std::size_t asks = told.size();
  EXPECT_EQ(asks, 1 + (4 + 1) + kPieces);
  for (std::size_t moment = 1; moment <= asks; ++moment) {
    owner.restart();
    told.clear();
    cancelled_at = moment;
    const Result<WarmUpReport> report = warm_up();
    ASSERT_FALSE(report.has_value()) << moment;
    EXPECT_TRUE(report.error().is(Errc::cancelled));
    EXPECT_EQ(told.size(), moment) << "not asked again";
    if (moment > 1) {
      EXPECT_TRUE(device.registrations().empty()) << moment;
      EXPECT_EQ(store.registry_counts().registered_pieces, 0U);
    }
    cancelled_at = 0;
    ASSERT_TRUE(warm_up().has_value()) << moment;
  }
}

TEST_F(WarmUpTest, APieceThatCannotBeRolledBackIsToldAndLetGoByTheNextWarmUp) {
  cancelled_at = 1 + 5 + 2;  // one piece is registered
  EXPECT_CALL(cuda, host_unregister)
      .WillOnce(Return(cuda_error(CudaErrc::invalid_value, "host_unregister")))
      .WillRepeatedly(Invoke(&device, &fakes::FakeCuda::host_unregister));
  const Result<WarmUpReport> report = warm_up();
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().suppressed.size(), 1U);
  ASSERT_EQ(device.registrations().size(), 1U);
  cancelled_at = 0;
  EXPECT_TRUE(warm_up().has_value());
  EXPECT_EQ(device.registrations().size(), kPieces);
}

TEST_F(WarmUpTest, ASecondSegmentThatFailsTakesTheFirstOneBack) {
  Segment first = owner.segment();
  first.len = 2 * kTestGrantBytes;
  Segment second = first;
  second.write_ptr += first.len;
  second.read_ptr += first.len;
  EXPECT_CALL(fluxon, wait_local_segments_ready).WillRepeatedly(Return(std::vector<Segment>{first, second}));
  refuse_registration(4);
  ASSERT_FALSE(warm_up().has_value());
  EXPECT_TRUE(device.registrations().empty());
  EXPECT_EQ(store.registry_counts().registered_pieces, 0U);
}

TEST_F(WarmUpTest, NoNumberGoesBackAndNoneIsAboveItsTotal) {
  refuse_registration(6);
  ASSERT_TRUE(warm_up().has_value());
  WarmUpProgress last;
  for (const WarmUpProgress& now : told) {
    EXPECT_GE(now.stage, last.stage);
    EXPECT_GE(now.touched_bytes, last.touched_bytes);
    EXPECT_GE(now.registered_bytes, last.registered_bytes);
    EXPECT_LE(now.touched_bytes, now.touch_total_bytes);
    EXPECT_LE(now.registered_bytes, now.register_total_bytes);
    last = now;
  }
}

TEST_F(WarmUpTest, TheTimeOfEachStageIsThatOfTheRuntimesClock) {
  ASSERT_TRUE(warm_up().has_value());
  owner.restart();
  owner.mount_at(clock.now_ns() + 5 * kSecond);
  options.touch = [this](const HostRange&) { clock.advance_by(kSecond); };
  EXPECT_CALL(cuda, host_register).WillRepeatedly([&](auto at, auto bytes, auto how) {
    clock.advance_by(2 * kSecond);
    return device.host_register(at, bytes, how);
  });
  EXPECT_CALL(cuda, host_unregister).WillRepeatedly([&](auto at) {
    clock.advance_by(3 * kSecond);
    return device.host_unregister(at);
  });
  const Result<WarmUpReport> report = warm_up();
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->ns_of(WarmUpStage::waiting), 5 * kSecond);
  EXPECT_EQ(report->ns_of(WarmUpStage::unregistering), kPieces * 3 * kSecond);
  EXPECT_EQ(report->ns_of(WarmUpStage::touching), 4 * kSecond);
  EXPECT_EQ(report->ns_of(WarmUpStage::registering), kPieces * 2 * kSecond);
}

TEST_F(WarmUpTest, AMissingAnswerOfTheOwnerEndsItWithTheOwnersError) {
  owner.mount_at(fakes::kNever);
  const Result<WarmUpReport> report = warm_up();
  ASSERT_FALSE(report.has_value());
  EXPECT_TRUE(is_fluxon(report.error(), FluxonErrc::timeout));
  EXPECT_TRUE(touched.empty());
}

// With an executor

TEST_F(WarmUpTest, AnOwnerThatMountsNothingIsGivenUpAfterTheBound) {
  LateExecutor executor(clock);
  executor.runs = false;
  options.executor = &executor;
  options.segments_wait_max_ns = 7 * kSecond;
  const Nanos began_ns = clock.now_ns();
  const Result<WarmUpReport> report = warm_up();
  ASSERT_FALSE(report.has_value());
  EXPECT_TRUE(report.error().is(Errc::timed_out));
  EXPECT_EQ(clock.now_ns() - began_ns, 7 * kSecond);
}

TEST_F(WarmUpTest, WhoGivesUpOftenLeavesOneCallBehindAndUsesItsAnswer) {
  LateExecutor executor(clock);
  executor.runs = false;
  options.executor = &executor;
  for (int i = 0; i < 3; ++i) ASSERT_FALSE(warm_up().has_value());
  EXPECT_EQ(executor.tasks.size(), 1U);
  executor.runs = true;
  EXPECT_CALL(fluxon, wait_local_segments_ready).Times(1);
  EXPECT_TRUE(warm_up().has_value());
}

TEST_F(WarmUpTest, AnAnswerThatCameWhenNobodyWaitedIsNotUsed) {
  LateExecutor executor(clock);
  executor.runs = false;
  options.executor = &executor;
  ASSERT_FALSE(warm_up().has_value());
  executor.run_one();
  owner.restart();
  executor.runs = true;
  ASSERT_TRUE(warm_up().has_value());
  EXPECT_CALL(cuda, host_register).Times(0);
  EXPECT_TRUE(put("a").has_value()) << "it is the newer owner's segment that was made ready";
}

TEST_F(WarmUpTest, TheWaitForAnOwnerIsCancelledToo) {
  LateExecutor executor(clock);
  executor.runs = false;
  options.executor = &executor;
  cancelled_at = 3;
  const Result<WarmUpReport> report = warm_up();
  ASSERT_FALSE(report.has_value());
  EXPECT_TRUE(report.error().is(Errc::cancelled));
  EXPECT_EQ(executor.waits, 1U);
}

TEST_F(WarmUpTest, TasksThatAreNeverBegunCostNothingButTheirHelp) {
  LateExecutor executor(clock);
  options.executor = &executor;
  ASSERT_TRUE(warm_up().has_value());
  EXPECT_EQ(touched.size(), 4U);
  while (!executor.tasks.empty()) executor.run_one();
  EXPECT_EQ(touched.size(), 4U) << "the late ones found nothing left";
}

TEST_F(WarmUpTest, EveryPartIsTouchedOnceByWhoeverComes) {
  std::mutex mutex;
  options.touch_part_bytes = kTestGrantBytes / 16;
  options.touch = [&](const HostRange& range) {
    read_pages(range);
    const std::scoped_lock lock(mutex);
    touched.push_back(range);
  };
  ThreadExecutor executor;
  options.executor = &executor;
  options.touchers_max = 4;
  options.segments_wait_max_ns = kMinute;
  const Result<WarmUpReport> report = warm_up();
  {
    // Nobody touches any more once it has returned.
    const std::scoped_lock lock(mutex);
    EXPECT_EQ(touched.size(), 64U);
  }
  executor.join();
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->progress.touched_bytes, kSegmentBytes);
  std::sort(touched.begin(), touched.end(), [](const auto& a, const auto& b) { return a.base < b.base; });
  std::uintptr_t at = owner.segment().write_ptr;
  for (const HostRange& part : touched) {
    EXPECT_EQ(part.base, at);
    at += part.bytes;
  }
}

TEST_F(WarmUpTest, CancelledWhileOthersTouchItReturnsWhenTheyHaveStopped) {
  std::mutex mutex;
  bool returned = false;
  std::size_t late = 0;
  options.touch_part_bytes = kPageBytes;
  options.touch = [&](const HostRange& range) {
    read_pages(range);
    const std::scoped_lock lock(mutex);
    if (returned) ++late;
  };
  ThreadExecutor executor;
  options.executor = &executor;
  options.segments_wait_max_ns = kMinute;
  options.go_on = [](const WarmUpProgress& progress) { return progress.touched_bytes == 0; };
  const Result<WarmUpReport> report = warm_up();
  {
    const std::scoped_lock lock(mutex);
    returned = true;
  }
  executor.join();
  EXPECT_EQ(late, 0U);
  ASSERT_FALSE(report.has_value());
  EXPECT_TRUE(report.error().is(Errc::cancelled));
  EXPECT_TRUE(device.registrations().empty());
}

// Threads

TEST(WarmUpThreads, ManyAtOnceMakeASegmentReadyOnceWhileOthersPut) {
  LockedWorld world({.segment_bytes = kSegmentBytes, .grant_bytes = kTestGrantBytes});
  LockedFluxon fluxon(world);
  LockedCuda cuda(world);
  LockedClock clock(world);
  StdSync sync;
  using Locked = RuntimeOf<FluxonBackend, CudaBackend, LockedClock, StdSync>;
  Locked runtime{fluxon, cuda, clock, sync};
  PlanOptions plan;
  plan.registry.piece_bytes = kTestGrantBytes;
  PlanTierStore<Locked> store(runtime, plan);
  ThreadExecutor executor;
  WarmUpOptions options;
  options.executor = &executor;
  options.touch_part_bytes = kPageBytes;
  options.segments_wait_max_ns = kMinute;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      Absorbed absorbed;
      EXPECT_TRUE(store.warm_up(absorbed, options).has_value());
    });
  }
  threads.emplace_back([&] {
    const StreamRef stream = world.with([&] { return *world.device.create_stream(); });
    for (const std::string_view key : {"a", "b", "c"}) {
      const DeviceTensor value{world.with([&] { return *world.device.allocate(512); }), 512, 0, true};
      Absorbed absorbed;
      EXPECT_TRUE(store.put({&key, 1}, {&value, 1}, stream, absorbed).has_value());
    }
  });
  for (std::thread& thread : threads) thread.join();
  executor.join();
  EXPECT_EQ(world.device.registrations().size(), kPieces);
  EXPECT_TRUE(store.shut_down().has_value());
  EXPECT_TRUE(world.device.registrations().empty());
}

// Pages

TEST(PageTouch, ReadingPagesChangesNone) {
  fakes::Arena arena;
  const fakes::DualRegion region = arena.map_dual(8 * kPageBytes);
  auto* bytes = reinterpret_cast<std::uint8_t*>(region.write_base);
  for (std::uint64_t i = 0; i < region.bytes; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7);
  read_pages({region.write_base + 100, region.bytes - 100});
  read_pages({region.read_base, region.bytes});  // mapped read-only: a write would end the process
  for (std::uint64_t i = 0; i < region.bytes; ++i) ASSERT_EQ(bytes[i], static_cast<std::uint8_t>(i * 7));
}

// Sizes that no test machine has: nothing is touched and nothing is mapped.

class Huge {
 public:
  // Warms a mapping of this size up, by pieces of so many grants; what is registered and touched is kept.
  void warm_up(std::uint64_t bytes, std::uint64_t grants_in_piece, bool one_mapping) {
    segment.write_ptr = std::uintptr_t{1} << 42U;
    segment.read_ptr = one_mapping ? segment.write_ptr : std::uintptr_t{1} << 44U;
    segment.len = bytes;
    segment.generation = 1;
    ON_CALL(cuda, host_register).WillByDefault([&](std::uintptr_t at, std::uint64_t length, HostAccess) {
      if (length >= kRegistrationBytesLimit) return Status(cuda_error(CudaErrc::memory_allocation, "host_register"));
      pieces.push_back({at, length});
      return Status();
    });
    SegmentRegistry<fakes::MockCuda, StdSync> registry(cuda, sync, {.piece_bytes = grants_in_piece * kGrantBytes});
    WarmUpOptions options;
    options.touch_part_bytes = 64 * kGrantBytes;
    options.touch = [&](const HostRange& range) { touched_bytes += range.bytes; };
    WarmUpRun<fakes::VirtualClock, StdSync> run(clock, sync, options);
    if (Result<std::uint64_t> epoch = registry.ensure(registry.begin_look(), {&segment, 1}, absorbed, &run); !epoch) {
      ready = std::move(epoch.error());
    }
    registered_bytes = run.finish().progress.registered_bytes;
  }
  // Why the pieces are not one mapping after the other, cut where grants end and below the limit; empty when they are.
  std::string wrong() const {
    if (!ready) return to_string(ready.error());
    if (!absorbed.empty()) return to_string(absorbed.front());
    if (touched_bytes != segment.len) return "touched otherwise";
    const std::uint64_t mappings = segment.read_ptr == segment.write_ptr ? 1 : 2;
    if (registered_bytes != mappings * segment.len) return "told otherwise";
    std::uint64_t all = 0;
    for (const HostRange& piece : pieces) all += piece.bytes;
    if (all != registered_bytes) return "more or less than told";
    std::uintptr_t begin = segment.write_ptr;
    std::uintptr_t at = begin;
    for (const HostRange& piece : pieces) {
      if (at == segment.write_ptr + segment.len) at = begin = segment.read_ptr;
      if (piece.base != at) return "a gap, or an overlap";
      if (piece.bytes == 0 || piece.bytes >= kRegistrationBytesLimit) return "a piece that the device refuses";
      at += piece.bytes;
      if ((at - begin) % kGrantBytes != 0 && at != begin + segment.len) return "a piece that ends within a grant";
    }
    return at == begin + segment.len && begin == segment.read_ptr ? "" : "not to its end";
  }

  Segment segment;
  std::vector<HostRange> pieces;
  std::uint64_t touched_bytes = 0;
  std::uint64_t registered_bytes = 0;
  NiceMock<fakes::MockCuda> cuda;
  StdSync sync;
  fakes::VirtualClock clock;
  std::vector<Error> absorbed;
  Status ready;
};

RC_GTEST_PROP(WarmUpPieces, EndOnGrantsAndStayBelowTheLimitForAnySize, ()) {
  constexpr std::uint64_t kPagesMax = (4ULL << 40) / kPageBytes;
  Huge huge;
  const auto grants = *rc::gen::resize(1000, rc::gen::inRange<std::uint64_t>(1, kRegistrationBytesLimit / kGrantBytes));
  const auto pages = *rc::gen::resize(1000, rc::gen::inRange<std::uint64_t>(1, kPagesMax + 1));
  huge.warm_up(pages * kPageBytes, grants, *rc::gen::arbitrary<bool>());
  RC_ASSERT(huge.wrong() == "");
}

TEST(WarmUpPieces, DoSoAtTheEdges) {
  constexpr std::uint64_t kGrantsMax = kRegistrationBytesLimit / kGrantBytes - 1;
  for (const std::uint64_t bytes : std::initializer_list<std::uint64_t>{
           1, kPageBytes, kGrantBytes - 1, kGrantBytes, kGrantBytes + 1, kRegistrationBytesLimit - 1,
           kRegistrationBytesLimit, kRegistrationBytesLimit + 1, 4ULL << 40, (4ULL << 40) - 1}) {
    for (const std::uint64_t grants : {std::uint64_t{8}, std::uint64_t{1000}, kGrantsMax}) {
      Huge huge;
      huge.warm_up(bytes, grants, false);
      EXPECT_EQ(huge.wrong(), "") << bytes << " bytes by " << grants << " grants";
    }
  }
}

TEST(WarmUpPieces, OfTheDefaultSizeAreOneGrantEach) {
  Huge huge;
  huge.warm_up(1ULL << 40, RegistryOptions{}.piece_bytes / kGrantBytes, true);
  EXPECT_EQ(huge.wrong(), "");
  EXPECT_EQ(huge.pieces.size(), (1ULL << 40) / kGrantBytes);
}

TEST(WarmUpPieces, ThatTheDeviceRefusesAreRefusedAtOnce) {
  NiceMock<fakes::MockCuda> cuda;
  StdSync sync;
  using Registry = SegmentRegistry<fakes::MockCuda, StdSync>;
  EXPECT_DEATH(Registry(cuda, sync, {.piece_bytes = kRegistrationBytesLimit}), "pieces that the device refuses");
}

}  // namespace
}  // namespace holdfast
