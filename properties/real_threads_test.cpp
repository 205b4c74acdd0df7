// Several sessions on threads of their own, one manager, shared worlds: what each session sees equals what one thread
// computes alone, and when all are done nothing is left over. Meant for ThreadSanitizer as well.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "holdfast/core/memory_tier_store.hpp"
#include "holdfast/core/plan_tier_store.hpp"
#include "holdfast/core/session_binding.hpp"
#include "locked_backends.hpp"
#include "test_engine.hpp"

namespace holdfast::real_threads {
namespace {

using ThreadsRuntime = RuntimeOf<FluxonBackend, CudaBackend, LockedClock, StdSync>;
using Path = std::vector<std::string>;

constexpr std::uint32_t kThreads = 4;
constexpr std::uint32_t kDepthMax = 5;
constexpr std::uint32_t kOperations = 100;  // of each thread
constexpr std::uint64_t kNodeSlots = 5 * 4096;
constexpr std::uint64_t kStagingBytes = 512;
constexpr std::uint64_t kGrantBytesOfTest = 64 << 10;

// What a cold run of one thread computes, for every path there is.
struct Cold {
  std::map<std::string, std::string> ring;     // by history: all that the ring holds
  std::map<std::string, std::string> latents;  // by history: of its last chunk
};

// The worlds that every thread may open: one whose ring rolls, and one whose ring holds everything.
const std::vector<std::string> kWorldNames{"rolling", "whole"};
WorldSpec world_spec(std::size_t world) {
  return test_world(world == 0 ? kShortRing : kFullRing, 64, kWorldNames[world]);
}

std::string bytes_of(const DeviceTensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data), static_cast<std::size_t>(tensor.bytes)};
}

// Every access of the engine to its memory is a kernel in the order of its stream, under the world's mutex.
class ThreadEngine final : public TestEngine {
 public:
  ThreadEngine(LockedWorld& world, StreamRef stream, const WorldSpec& spec)
      : TestEngine(world.device, stream, spec), world_(world), stream_(stream) {}

  Result<std::vector<DeviceTensor>> latent_targets(std::uint32_t chunks) override {
    return world_.with([&] { return TestEngine::latent_targets(chunks); });
  }
  void compute(const std::string& history) {
    in_stream_order([&] { generate(history); });
  }
  std::string ring_now() {
    std::string all;
    in_stream_order([&] { all = contents(); });
    return all;
  }
  std::vector<std::string> latents_now() {
    std::vector<std::string> all;
    in_stream_order([&] {
      for (const DeviceTensor& target : targets()) all.push_back(bytes_of(target));
    });
    return all;
  }
  std::string finalized_now() {
    std::string bytes;
    in_stream_order([&] { bytes = bytes_of(finalized_latent()); });
    return bytes;
  }

 private:
  template <class Kernel>
  void in_stream_order(Kernel&& kernel) {
    fakes::CopyChoice at_once;
    at_once.moment = fakes::CopyMoment::at_submission;
    world_.with([&] { ASSERT_TRUE(world_.device.launch(stream_, kernel, at_once).has_value()); });
  }

  LockedWorld& world_;
  StreamRef stream_;
};

// A small generator of its own for each thread.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9e37'79b9'7f4a'7c15 + 1) {}
  std::uint64_t below(std::uint64_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return (state_ >> 11) % limit;
  }
  Path path(std::uint64_t depth_max, std::uint64_t actions_max) {
    Path actions;
    for (std::uint64_t length = 1 + below(depth_max); actions.size() < length;) {
      actions.push_back(std::string(1, static_cast<char>('a' + below(actions_max))));
    }
    return actions;
  }

 private:
  std::uint64_t state_;
};

// How a store of this kind is made, and what it holds.
template <class Store>
struct StoreOf;
template <>
struct StoreOf<PlanTierStore<ThreadsRuntime>> {
  using ManagerType = Manager<ThreadsRuntime, PlanTierStore<ThreadsRuntime>>;
  StoreOf(LockedWorld& world, ThreadsRuntime& runtime, StdSync& /*sync*/, const ManagerOptions& options)
      : world_(world), store_(runtime, plan_options()), manager(runtime, store_, options) {}
  static PlanOptions plan_options() {
    PlanOptions plan;
    plan.registry.piece_bytes = kGrantBytesOfTest;
    return plan;
  }
  [[nodiscard]] std::uint64_t held_bytes() { return world_.owner.held_bytes(); }
  [[nodiscard]] std::uint64_t lost_of(Keys keys) const {
    return static_cast<std::uint64_t>(std::count_if(keys.begin(), keys.end(), [&](std::string_view key) {
      const auto view = world_.owner.peek(key);
      return !view || view->state == fakes::KeyState::prepared;
    }));
  }
  // The owner drops a value by itself.
  void lose(Dice& dice) {
    world_.with([&] {
      const std::vector<std::string> keys = world_.owner.evictable_keys();
      if (!keys.empty()) static_cast<void>(world_.owner.evict(keys[dice.below(keys.size())]));
    });
  }

 private:
  LockedWorld& world_;
  PlanTierStore<ThreadsRuntime> store_;

 public:
  ManagerType manager;
};
template <>
struct StoreOf<MemoryTierStore<StdSync>> {
  using ManagerType = Manager<ThreadsRuntime, MemoryTierStore<StdSync>>;
  StoreOf(LockedWorld& world, ThreadsRuntime& runtime, StdSync& sync, const ManagerOptions& options)
      : store_(sync), manager(runtime, store_, {world.arena.map_private(kStagingBytes), kStagingBytes}, options) {}
  [[nodiscard]] std::uint64_t held_bytes() { return store_.size() * kSlotAlignment; }
  [[nodiscard]] std::uint64_t lost_of(Keys /*keys*/) const { return 0; }
  void lose(Dice& /*dice*/) {}

 private:
  MemoryTierStore<StdSync> store_;

 public:
  ManagerType manager;
};

struct Mix {
  std::uint64_t fails_every = 0;  // so many of the first thread's calls; the others' fail a little less often
  // All sessions meet in two nodes of one world, which the store keeps losing.
  bool crowded = false;
};

template <class Store>
class RealThreadsTest : public testing::Test {
 protected:
  using ManagerType = typename StoreOf<Store>::ManagerType;
  using Binding = SessionBinding<ManagerType>;

  RealThreadsTest() {
    for (std::size_t w = 0; w < kWorldNames.size(); ++w) compute_cold(w, {});
  }

  void compute_cold(std::size_t w, const Path& path) {
    if (!path.empty()) {
      ThreadEngine engine(world, *world.device.create_stream(), world_spec(w));
      std::string history = kWorldNames[w];
      for (const std::string& action : path) {
        history += "|" + action;
        engine.compute(history);
      }
      cold.ring[history] = engine.ring_now();
      cold.latents[history] = engine.finalized_now();
    }
    if (path.size() == kDepthMax) return;
    for (const char* action : {"a", "b"}) {
      Path longer = path;
      longer.emplace_back(action);
      compute_cold(w, longer);
    }
  }

  std::unique_ptr<ThreadEngine> engine_for(std::size_t w) {
    return world.with(
        [&] { return std::make_unique<ThreadEngine>(world, *world.device.create_stream(), world_spec(w)); });
  }

  // Resumes what it can of the path, and generates up to `generated_max` chunks behind it.
  void play(std::size_t w, const Path& path, std::size_t generated_max, Absorbed& absorbed) {
    const std::unique_ptr<ThreadEngine> engine = engine_for(w);
    Result<std::unique_ptr<Binding>> binding =
        Binding::open(store.manager, *engine, {world_spec(w), /*timesteps=*/4, /*retries_max=*/3});
    ASSERT_TRUE(binding.has_value());
    std::string history = kWorldNames[w];
    std::size_t next = resume(**binding, *engine, path, history, absorbed);
    for (; next < path.size() && generated_max > 0; ++next, --generated_max) {
      history += "|" + path[next];
      engine->compute(history);
      EXPECT_EQ(engine->ring_now(), cold.ring.at(history));
      static_cast<void>((*binding)->on_chunk_finalized(path[next], absorbed).has_value());
    }
    // Whatever became of its puts, its ring is its own.
    if (next > 0) {
      EXPECT_EQ(engine->ring_now(), cold.ring.at(history));
    }
  }

  std::size_t resume(Binding& binding, ThreadEngine& engine, const Path& path, std::string& history,
                     Absorbed& absorbed) {
    const std::vector<std::string_view> views(path.begin(), path.end());
    const Result<ResumeReceipt> receipt = binding.resume(views, absorbed);
    if (!receipt || receipt->matched_chunks == 0) return 0;
    const std::vector<std::string> latents = engine.latents_now();
    for (std::uint32_t i = 0; i < receipt->matched_chunks; ++i) {
      history += "|" + path[i];
      EXPECT_EQ(latents.at(i), cold.latents.at(history));
    }
    EXPECT_EQ(engine.ring_now(), cold.ring.at(history));
    return receipt->matched_chunks;
  }

  void evict(std::size_t w, const Path& path, Absorbed& absorbed) {
    NodeKey key = world_spec(w).root;
    for (const std::string& action : path) key = node_key(key, action);
    if (Node* node = store.manager.find(key)) static_cast<void>(store.manager.evict_blob(*node, absorbed).has_value());
  }

  void one_operation(Dice& dice, const Mix& mix) {
    Absorbed absorbed;
    std::vector<Error> errors;
    const std::size_t w = mix.crowded ? 1 : dice.below(kWorldNames.size());
    const Path path = mix.crowded ? dice.path(2, 1) : dice.path(kDepthMax, 2);
    switch (dice.below(10)) {
      case 0:
        evict(w, path, absorbed);
        break;
      case 1:
        static_cast<void>(store.manager.make_room(kNodeSlots * (1 + dice.below(8)), absorbed).has_value());
        break;
      case 2:
        store.manager.pump(errors);
        break;
      case 3:
        static_cast<void>(store.manager.save(files, "dir/forest").has_value());
        break;
      case 4:
        EXPECT_LE(store.manager.counts().forest.ready_blobs, 2U << kDepthMax << 1U);
        break;
      case 5:
        store.lose(dice);
        break;
      default:
        play(w, path, dice.below(kDepthMax + 1), absorbed);
        break;
    }
    if (mix.crowded) store.lose(dice);
    const Nanos pause_ns = (mix.crowded ? kSecond : 20 * kMillisecond) + dice.below(100) * kMillisecond;
    world.with([&] { world.clock.advance_by(pause_ns); });
  }

  void run_threads(const Mix& mix) {
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([this, t, mix] {
        ThreadFaults::mine() = {mix.fails_every == 0 ? 0 : mix.fails_every + 2 * t, 0};
        Dice dice(t + 1);
        for (std::uint32_t i = 0; i < kOperations && !this->HasFailure(); ++i) one_operation(dice, mix);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void settle() {
    for (int turn = 0; turn < 4; ++turn) {
      world.clock.advance_by(kSettleBound + kSecond);
      std::vector<Error> errors;
      store.manager.pump(errors);
    }
    world.clock.advance_by(kSecond);
  }

  static std::pair<std::size_t, Path> path_of(const std::string& history) {
    Path path;
    for (std::size_t at = history.find('|'); at != std::string::npos; at = history.find('|', at + 1)) {
      path.push_back(history.substr(at + 1, 1));
    }
    return {history.starts_with(kWorldNames[0]) ? 0 : 1, path};
  }

  // Of blobs behind one that is gone: no lookup gets to them, so that nobody has seen what the store lost of them.
  std::uint64_t bytes_lost_unseen() {
    std::uint64_t lost = 0;
    for (const auto& [history, ring] : cold.ring) {
      const auto [w, path] = path_of(history);
      NodeKey key = world_spec(w).root;
      for (const std::string& action : path) key = node_key(key, action);
      const Node* node = store.manager.find(key);
      if (node == nullptr) continue;
      KeyBatch keys;
      if (node->blob().present) keys.add_chunk(key, node->blob().shape);
      if (node->skeleton().ready) keys.add_latent(key);
      lost += store.lost_of(keys.keys()) * kSlotAlignment;
    }
    return lost;
  }

  void expect_baseline() {
    settle();
    for (int turn = 0; turn < 2; ++turn) {
      Absorbed absorbed;
      for (const auto& [history, ring] : cold.ring) {
        const auto [w, path] = path_of(history);
        play(w, path, 0, absorbed);
      }
      // What the store had lost is known now.
      if (turn == 0) {
        settle();
      } else {
        EXPECT_TRUE(absorbed.empty()) << to_string(absorbed.front());
      }
    }
    world.clock.advance_by(kSecond);
    const ManagerCounts counts = store.manager.counts();
    EXPECT_EQ(counts.forest.references, 0U);
    EXPECT_EQ(counts.unsettled, 0U);
    EXPECT_EQ(counts.quarantined, 0U);
    EXPECT_EQ(counts.accounted_bytes, store.held_bytes() + bytes_lost_unseen());
    EXPECT_EQ(world.owner.live_plans(), 0U);
    EXPECT_EQ(world.owner.live_handles(), 0U);
    EXPECT_EQ(world.owner.holders(), 0U);
    EXPECT_EQ(world.device.in_flight_count(), 0U);
    EXPECT_TRUE(world.owner.take_incidents().empty());
    EXPECT_TRUE(world.device.drain_incidents().empty());
    EXPECT_TRUE(store.manager.shut_down().has_value());
    EXPECT_TRUE(world.device.registrations().empty());
    const Result<Snapshot> snapshot = read_snapshot(files, "dir/forest");
    EXPECT_TRUE(snapshot.has_value()) << to_string(snapshot.error());
  }

  Cold cold;
  LockedWorld world{{.segment_bytes = 1 << 20, .grant_bytes = kGrantBytesOfTest}};
  LockedFluxon fluxon{world};
  LockedCuda cuda{world};
  LockedFiles files{world};
  LockedClock clock{world};
  StdSync sync;
  ThreadsRuntime runtime{fluxon, cuda, clock, sync};
  // Room for half of what there is to store.
  StoreOf<Store> store{world, runtime, sync, {.capacity_bytes = 30 * kNodeSlots, .victim_age_min_ns = kSecond}};
};

using Stores = testing::Types<PlanTierStore<ThreadsRuntime>, MemoryTierStore<StdSync>>;
TYPED_TEST_SUITE(RealThreadsTest, Stores);

TYPED_TEST(RealThreadsTest, EverySessionSeesWhatAColdRunComputesAndNothingIsLeftOver) {
  this->run_threads({});
  this->expect_baseline();
}

TYPED_TEST(RealThreadsTest, SoDoSessionsWhoseCallsFailNowAndThen) {
  this->run_threads({.fails_every = 23});
  this->expect_baseline();
}

TYPED_TEST(RealThreadsTest, SoDoSessionsThatAllMeetInTheSameNodes) {
  this->run_threads({.fails_every = 61, .crowded = true});
  this->expect_baseline();
}

}  // namespace
}  // namespace holdfast::real_threads
