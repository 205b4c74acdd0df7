// The embedded owner: the fake owner's semantics over real shared memory, in real time, for several threads; and the
// core's store above it, with one of its mappings registered.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core_fixture.hpp"
#include "holdfast/real_device/embedded_owner.hpp"
#include "task_executors.hpp"

namespace holdfast::device {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kGrant = 64 << 10;
constexpr std::uint64_t kSlots = kGrant / kSlotAlignment;
constexpr std::uint64_t kBytes = 300;  // of a value

std::uint8_t* memory_at(std::uintptr_t address) { return reinterpret_cast<std::uint8_t*>(address); }

EmbeddedOptions options_of_grants(std::uint64_t grants) {
  EmbeddedOptions options;
  options.owner.grant_bytes = kGrant;
  options.owner.segment_bytes = grants * kGrant;
  options.pages = PageChoice::plain;
  return options;
}

std::unique_ptr<EmbeddedOwner> opened(const EmbeddedOptions& options) {
  return std::move(EmbeddedOwner::open(options).value());
}

Segment segment_of(EmbeddedOwner& owner) { return owner.wait_local_segments_ready().value().front(); }

std::vector<std::string> names_of(std::string_view prefix, std::uint64_t count) {
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < count; ++i) names.push_back(std::string(prefix) + std::to_string(i));
  return names;
}

Result<PlanPtr> start(EmbeddedOwner& owner, const std::vector<std::string>& names, std::uint64_t bytes = kBytes) {
  const std::vector<std::string_view> keys(names.begin(), names.end());
  return owner.local_fast_put_start(keys, bytes, {});
}

std::vector<std::uintptr_t> addresses_in(PlanPtr plan) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(plan.address);
  EXPECT_EQ(words[0], kPlanMagic);
  return {words + 2, words + 2 + words[1]};
}

bool commit_all(EmbeddedOwner& owner, PlanPtr plan) {
  auto future = owner.local_fast_put_commit(plan);
  if (!future) return false;
  const auto codes = future->wait(kSecond);
  return codes && *codes == std::vector<std::int32_t>(codes->size(), 0);
}

TEST(EmbeddedOwner, AValueIsWrittenThroughOneMappingAndReadThroughTheOther) {
  const auto owner = opened(options_of_grants(2));
  const Segment segment = segment_of(*owner);
  EXPECT_NE(segment.write_ptr, segment.read_ptr);
  EXPECT_EQ(segment.len, 2 * kGrant);
  const PlanPtr put = start(*owner, {"a"}).value();
  const std::uintptr_t written = addresses_in(put).front();
  EXPECT_LT(written - segment.write_ptr, segment.len);
  std::memset(memory_at(written), 5, kBytes);
  EXPECT_TRUE(commit_all(*owner, put));
  const std::string_view key = "a";
  const GetStart found = owner->get_start({&key, 1}, true, {}).value();
  const PlanPtr view = owner->get_transfer(found.handle, 1).value();
  const std::uintptr_t read = addresses_in(view).front();
  EXPECT_EQ(read - segment.read_ptr, written - segment.write_ptr);
  EXPECT_EQ(memory_at(read)[kBytes - 1], 5);
  EXPECT_TRUE(owner->release_views(view).has_value());
  EXPECT_EQ(owner->get("a").value(), std::vector<std::byte>(kBytes, std::byte{5}));
}

TEST(EmbeddedOwner, NoValueCrossesTwoGrants) {
  const auto owner = opened(options_of_grants(3));
  const Segment segment = segment_of(*owner);
  const std::uint64_t bytes = 5 * kSlotAlignment + 1;  // six slots' worth: two to a grant
  const PlanPtr plan = start(*owner, names_of("k", 6), bytes).value();
  for (const std::uintptr_t address : addresses_in(plan)) {
    const std::uint64_t first = address - segment.write_ptr;
    EXPECT_EQ(first / kGrant, (first + bytes - 1) / kGrant);
  }
  EXPECT_FALSE(owner->with([&](fakes::FakeOwner& inside) { return inside.has_room(1, bytes); }));
  EXPECT_TRUE(owner->put_abort(plan).has_value());
}

TEST(EmbeddedOwner, ADeadOwnersPagesStayUntilItsMemoryIsMappedAnewAndGoWithIt) {
  EmbeddedOptions options = options_of_grants(1);
  options.owner.mappings = 2;
  auto owner = opened(options);
  const Segment before = segment_of(*owner);
  const PlanPtr plan = start(*owner, {"a"}).value();
  const std::uintptr_t address = addresses_in(plan).front();
  std::memset(memory_at(address), 9, kBytes);
  EXPECT_TRUE(commit_all(*owner, plan));
  owner->with([](fakes::FakeOwner& inside) { inside.restart(); });
  const Segment after = segment_of(*owner);
  EXPECT_NE(after.write_ptr, before.write_ptr);
  EXPECT_GT(after.generation, before.generation);
  EXPECT_EQ(*memory_at(address), 9);
  std::memset(memory_at(address), 1, kBytes);  // a stale copy succeeds, silently
  EXPECT_EQ(*memory_at(after.read_ptr + (address - before.write_ptr)), 0) << "and reaches no newer value";
  EXPECT_FALSE(owner->get("a").has_value());
  owner.reset();
  for (const std::uintptr_t gone : {before.write_ptr, before.read_ptr, after.write_ptr, after.read_ptr}) {
    EXPECT_EQ(msync(memory_at(gone), kSlotAlignment, MS_ASYNC), -1);
  }
}

TEST(EmbeddedOwner, WhatPagesItHasIsWhatWasAskedForOrWhySoNot) {
  EmbeddedOptions options = options_of_grants(64);
  const auto plain = opened(options);
  EXPECT_EQ(plain->pages().kind, PageKind::plain);
  EXPECT_EQ(plain->pages().present_bytes, 0U);
  options.pages = PageChoice::best;
  const auto best = opened(options);
  const PagesGiven pages = best->pages();
  EXPECT_TRUE(pages.kind != PageKind::plain || !pages.why_not_better.empty());
}

TEST(EmbeddedOwner, LengthsThatNoOwnerHasAreRefused) {
  for (const auto& [segment, grant] :
       {std::pair<std::uint64_t, std::uint64_t>{0, kGrant}, {kGrant, 0}, {kGrant, 100}}) {
    EmbeddedOptions options = options_of_grants(1);
    options.owner.segment_bytes = segment;
    options.owner.grant_bytes = grant;
    const auto refused = EmbeddedOwner::open(options);
    ASSERT_FALSE(refused.has_value());
    EXPECT_TRUE(is_fluxon(refused.error(), FluxonErrc::invalid_argument));
  }
  const auto too_long = EmbeddedOwner::open(options_of_grants(1ULL << 44));
  ASSERT_FALSE(too_long.has_value());
  EXPECT_TRUE(is_fluxon(too_long.error(), FluxonErrc::resource_exhausted));
}

// ---- Real time, several threads

TEST(EmbeddedOwner, APutThatWaitsForSlotsGoesOnWhenAnotherThreadFreesThem) {
  const auto owner = opened(options_of_grants(1));
  const PlanPtr all = start(*owner, names_of("k", kSlots)).value();
  std::atomic<bool> ended = false;
  const auto began = std::chrono::steady_clock::now();
  std::thread waiting([&] {
    const auto plan = start(*owner, {"more"});
    ended = true;
    EXPECT_TRUE(plan.has_value());
  });
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(ended);
  EXPECT_FALSE(owner->get("k0").has_value()) << "others go on meanwhile";
  EXPECT_TRUE(owner->put_abort(all).has_value());
  waiting.join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 20s) << "not after the whole wait";
}

TEST(EmbeddedOwner, APutThatWaitsFindsItsKeyTakenMeanwhile) {
  const auto owner = opened(options_of_grants(1));
  const PlanPtr all = start(*owner, names_of("k", kSlots)).value();
  std::vector<std::thread> threads;
  std::atomic<int> started = 0;
  std::atomic<int> refused = 0;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      const auto plan = start(*owner, {"same"});
      ++(plan ? started : refused);
      if (!plan) {
        EXPECT_TRUE(is_fluxon(plan.error(), FluxonErrc::key_being_written));
      }
    });
  }
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(owner->put_abort(all).has_value());
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(started, 1);
  EXPECT_EQ(refused, 1);
}

TEST(EmbeddedOwner, APutThatWaitsEndsWithItsOwner) {
  for (const bool restarts : {true, false}) {
    const auto owner = opened(options_of_grants(1));
    start(*owner, names_of("k", kSlots)).value();
    std::thread waiting([&] {
      const auto plan = start(*owner, {"more"});
      ASSERT_FALSE(plan.has_value());
      EXPECT_TRUE(is_fluxon(plan.error(), restarts ? FluxonErrc::backend_unavailable : FluxonErrc::general));
    });
    std::this_thread::sleep_for(50ms);
    owner->with([&](fakes::FakeOwner& inside) { restarts ? inside.restart() : inside.close(); });
    waiting.join();
    owner->with([](fakes::FakeOwner& inside) {
      EXPECT_EQ(inside.live_plans(), 0U);
      inside.new_client();
    });
    if (restarts) {
      EXPECT_TRUE(owner->with([](fakes::FakeOwner& inside) { return inside.has_room(kSlots, kBytes); }));
    }
  }
}

TEST(EmbeddedOwner, WhoWaitsForACommitLetsOthersGoOn) {
  const auto owner = opened(options_of_grants(1));
  const PlanPtr plan = start(*owner, {"slow"}).value();
  owner->with([](fakes::FakeOwner& inside) {
    inside.choose_next_commit({.keys = {}, .answer_after_ns = 300 * kMillisecond, .route_after_ns = {}});
  });
  auto future = owner->local_fast_put_commit(plan).value();
  const auto began = std::chrono::steady_clock::now();
  const auto early = future.wait(10 * kMillisecond);
  ASSERT_FALSE(early.has_value());
  EXPECT_TRUE(is_fluxon(early.error(), FluxonErrc::timeout));
  std::thread waiting([&] { EXPECT_EQ(future.wait(10 * kSecond).value(), std::vector<std::int32_t>{0}); });
  const PlanPtr fast = start(*owner, {"fast"}).value();
  EXPECT_TRUE(commit_all(*owner, fast));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 250ms + 20s);
  waiting.join();
  EXPECT_GE(std::chrono::steady_clock::now() - began, 300ms);
}

TEST(EmbeddedOwner, RoutesComeAndHoldersDropByTheSystemsClock) {
  const auto owner = opened(options_of_grants(1));
  EXPECT_TRUE(commit_all(*owner, start(*owner, {"a"}).value()));
  for (int i = 0; i < 200 && !owner->remove("a").has_value(); ++i) std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(owner->get("a").has_value());
}

// ---- The core's store above it

// The owner lives by the virtual clock that the device and the store have.
class VirtualTime final : public OwnerTime {
 public:
  explicit VirtualTime(fakes::VirtualClock& clock) : clock_(clock) {}
  [[nodiscard]] Nanos now_ns() const override { return clock_.now_ns(); }
  void wait_until(Nanos instant_ns) override { clock_.advance_to(instant_ns); }

 private:
  fakes::VirtualClock& clock_;
};

class StoreOverSharedMemory : public testing::Test {
 protected:
  StoreOverSharedMemory() {
    fluxon.delegate_to(*owner);
    cuda.delegate_to(device);
    const Segment live = segment_of(*owner);
    device.declare_read_only(live.read_ptr, live.len);
  }
  EmbeddedOptions embedded_options() {
    EmbeddedOptions options = options_of_grants(4);
    options.time = &time;
    return options;
  }
  static PlanOptions plan_options() {
    PlanOptions options;
    options.registry = {.piece_bytes = kGrant, .both_mappings = false};
    return options;
  }
  DeviceTensor tensor(std::uint8_t fill) {
    const std::uintptr_t at = device.allocate(kBytes).value();
    std::memset(memory_at(at), fill, kBytes);
    return {at, kBytes, 0, true};
  }

  fakes::Arena arena;
  fakes::VirtualClock clock;
  VirtualTime time{clock};
  std::unique_ptr<EmbeddedOwner> owner = opened(embedded_options());
  fakes::FakeCuda device{arena, clock};
  testing::NiceMock<fakes::MockFluxon> fluxon;
  testing::NiceMock<fakes::MockCuda> cuda;
  StdSync sync;
  TestRuntime runtime{fluxon, cuda, clock, sync};
  StreamRef stream = *device.create_stream();
  Absorbed absorbed;
  PlanTierStore<TestRuntime> store{runtime, plan_options()};
};

TEST_F(StoreOverSharedMemory, PutsAndReadsGoThroughTheOneRegisteredMapping) {
  EXPECT_CALL(cuda, host_register(testing::_, testing::_, testing::_)).Times(4);  // each grant once
  const std::vector<std::string_view> keys{"a", "b"};
  const std::vector<DeviceTensor> sources{tensor(1), tensor(2)};
  ASSERT_TRUE(store.put(keys, sources, stream, absorbed).has_value());
  EXPECT_EQ(owner->get("b").value(), std::vector<std::byte>(kBytes, std::byte{2}));

  const std::vector<DeviceTensor> targets{tensor(0), tensor(0)};
  const std::vector<std::uint64_t> lengths{kBytes, kBytes};
  const std::vector<std::uint32_t> groups{1, 1};
  const std::vector<ReadCopy> copies{{0, 0, 0, 0, kBytes}, {1, 0, 1, 0, kBytes}};
  const ReadOutcome read = store.restore({keys, lengths, groups, targets, copies}, stream, absorbed);
  EXPECT_EQ(read.verdict, ReadVerdict::restored);
  EXPECT_EQ(*memory_at(targets[0].data), 1);
  EXPECT_EQ(*memory_at(targets[1].data + kBytes - 1), 2);
  EXPECT_TRUE(absorbed.empty());
}

TEST_F(StoreOverSharedMemory, AWarmUpInParallelMakesEveryPageBeThereBeforeItRegisters) {
  ThreadExecutor executor;
  WarmUpOptions options;
  options.executor = &executor;
  options.touchers_max = 3;
  options.touch_part_bytes = kGrant / 2;
  options.touch = populate_pages;
  EXPECT_EQ(owner->pages().present_bytes, 0U);
  EXPECT_CALL(cuda, host_register(testing::_, kGrant, HostAccess::read_write))
      .Times(4)
      .WillRepeatedly([&](std::uintptr_t ptr, std::uint64_t bytes, HostAccess access) {
        EXPECT_EQ(owner->pages().present_bytes, 4 * kGrant);
        return device.host_register(ptr, bytes, access);
      });
  const auto report = store.warm_up(absorbed, options);
  ASSERT_TRUE(report.has_value()) << to_string(report.error());
  EXPECT_EQ(report->progress.touched_bytes, 4 * kGrant);
  EXPECT_EQ(report->progress.registered_bytes, report->progress.register_total_bytes);
}

}  // namespace
}  // namespace holdfast::device
