// Several sessions with one manager: at every moment of what one does, the other does something whole, and neither
// loses, leaks or is served wrong bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/plan_tier_store.hpp"
#include "holdfast/core/session_binding.hpp"
#include "holdfast/fakes/fluxon_owner.hpp"
#include "holdfast/fakes/memory_files.hpp"
#include "stepping_sync.hpp"
#include "test_engine.hpp"

namespace holdfast::several_sessions {
namespace {

using SteppingRuntime = RuntimeOf<FluxonBackend, CudaBackend, fakes::VirtualClock, SteppingSync>;
using SteppingStore = PlanTierStore<SteppingRuntime>;
using SteppingManager = Manager<SteppingRuntime, SteppingStore>;
using SteppingBinding = SessionBinding<SteppingManager>;
using Path = std::vector<std::string>;

constexpr std::uint64_t kChunkSlots = 4 * 4096;  // K and V of two layers
constexpr std::uint64_t kLatentSlot = 4096;
constexpr std::uint64_t kNodeSlots = kChunkSlots + kLatentSlot;
constexpr std::uint64_t kHouseGrantBytes = 64 << 10;

struct Session {
  std::unique_ptr<TestEngine> engine;
  std::unique_ptr<SteppingBinding> binding;
  std::string history;
};

// An owner, a device, a manager and two sessions of one world.
class House {
 public:
  explicit House(const ManagerOptions& options)
      : owner_(arena_, clock, {.segment_bytes = 1 << 20, .grant_bytes = kHouseGrantBytes}),
        device_(arena_, clock),
        manager(runtime_, store_, options),
        one(open()),
        two(open()) {}

  Session open() {
    Session session;
    session.engine = std::make_unique<TestEngine>(device_, *device_.create_stream(), spec);
    session.binding = *SteppingBinding::open(manager, *session.engine, {spec, 4, 3});
    return session;
  }
  Result<IngestReceipt> generate(Session& session, const std::string& action) {
    session.history += "|" + action;
    session.engine->generate(session.history);
    return session.binding->on_chunk_finalized(action, absorbed);
  }
  void generate_all(Session& session, const Path& actions) {
    for (const std::string& action : actions) ASSERT_TRUE(generate(session, action).has_value());
  }
  // What it restores is what a cold run computes.
  ResumeReceipt resume(Session& session, const Path& actions) {
    const std::vector<std::string_view> views(actions.begin(), actions.end());
    const Result<ResumeReceipt> receipt = session.binding->resume(views, absorbed);
    EXPECT_TRUE(receipt.has_value()) << to_string(receipt.error());
    if (!receipt) return {};
    session.history.clear();
    TestEngine cold(device_, *device_.create_stream(), spec);
    for (std::uint32_t i = 0; i < receipt->matched_chunks; ++i) {
      session.history += "|" + actions[i];
      cold.generate(session.history);
    }
    EXPECT_EQ(session.engine->contents(), cold.contents());
    return *receipt;
  }
  Node* node(const Path& actions) {
    NodeKey key = spec.root;
    for (const std::string& action : actions) key = node_key(key, action);
    return manager.find(key);
  }
  bool ready(const Path& actions) { return node(actions)->blob().ready; }
  Result<EvictReceipt> evict(const Path& actions) { return manager.evict_blob(*node(actions), absorbed); }
  Result<PathLease> hold(const Path& actions) {
    const std::vector<std::string_view> views(actions.begin(), actions.end());
    return manager.lookup(one.binding->world(), spec, views);
  }
  // The store drops it by itself.
  void lose_values(const Path& actions) {
    clock.advance_by(kSecond);
    EXPECT_TRUE(owner_.evict(kv_key(kv_locator(node(actions)->key()), 1, KvPart::k)));
  }
  void lose_latent(const Path& actions) {
    clock.advance_by(kSecond);
    EXPECT_TRUE(owner_.evict(latent_locator(node(actions)->key())));
  }
  // Past the bound of everything so far.
  void settle() {
    clock.advance_by(kSettleBound + kSecond);
    std::vector<Error> errors;
    manager.pump(errors);
    clock.advance_by(kSecond);
  }
  [[nodiscard]] std::uint64_t held_bytes() const { return owner_.held_bytes(); }
  [[nodiscard]] bool has_all(Keys keys) const {
    return std::all_of(keys.begin(), keys.end(), [&](std::string_view key) {
      const auto view = owner_.peek(key);
      return view && view->state != fakes::KeyState::prepared;
    });
  }
  std::vector<fakes::DeviceIncident> device_incidents() { return device_.drain_incidents(); }
  void restart_owner() { owner_.restart(); }
  // Every call fails until then.
  void mount_owner_at(Nanos instant_ns) { owner_.mount_at(instant_ns); }

  // Everything has ended, what is claimed is there, and what is held is accounted.
  void expect_baseline(const std::vector<Path>& paths) {
    settle();
    Session reader = open();
    for (const Path& path : paths) resume(reader, path);  // finds out what the store has lost
    settle();
    for (const Path& path : paths) EXPECT_EQ(resume(reader, path).retries, 0U);
    const ManagerCounts counts = manager.counts();
    EXPECT_EQ(counts.forest.references, 0U);
    EXPECT_EQ(counts.unsettled, 0U);
    EXPECT_EQ(counts.quarantined, 0U);
    EXPECT_EQ(counts.accounted_bytes, owner_.held_bytes());
    EXPECT_EQ(owner_.live_plans(), 0U);
    EXPECT_EQ(owner_.live_handles(), 0U);
    EXPECT_EQ(device_.in_flight_count(), 0U);
    EXPECT_TRUE(owner_.take_incidents().empty());
    EXPECT_TRUE(device_.drain_incidents().empty());
  }

  const WorldSpec spec = test_world(kFullRing, 64, "world");
  fakes::VirtualClock clock;
  SteppingSync sync;
  Absorbed absorbed;

 private:
  fakes::Arena arena_;
  fakes::FakeOwner owner_;
  fakes::FakeCuda device_;
  SteppingRuntime runtime_{owner_, device_, clock, sync};
  SteppingStore store_{runtime_, plan_options()};

  static PlanOptions plan_options() {
    PlanOptions options;
    options.registry.piece_bytes = kHouseGrantBytes;
    return options;
  }

 public:
  SteppingManager manager;
  Session one;
  Session two;
};

class SeveralSessionsTest : public testing::Test {
 protected:
  using Act = std::function<void(House&)>;

  // In a fresh house each time: `act`, and `step` at each moment of it in turn; then `after`, and the baseline.
  void at_every_moment(const Act& prepare, const Act& act, const Act& step, const Act& after = {}) {
    constexpr std::uint64_t kMomentsMax = 1'000;
    for (std::uint64_t moment = 0; moment < kMomentsMax; ++moment) {
      SCOPED_TRACE("moment " + std::to_string(moment));
      House house(options);
      prepare(house);
      house.sync.step_at(moment, [&] { step(house); });
      act(house);
      if (!house.sync.stepped()) {
        EXPECT_GT(moment, 1U) << "the operation passes no moments";
        return;
      }
      if (after) after(house);
      if (with_baseline) house.expect_baseline(paths);
      if (HasFailure()) return;
    }
    FAIL() << "an operation without an end";
  }

  ManagerOptions options;
  bool with_baseline = true;
  std::vector<Path> paths{{"a"}, {"a", "b"}, {"a", "c"}, {"d"}};
};

const auto kNothing = [](House&) {};
const auto kWriteAB = [](House& house) {
  house.generate_all(house.one, {"a", "b"});
  house.clock.advance_by(2 * kSecond);
};

TEST_F(SeveralSessionsTest, OfTwoPutsOfOneChunkOneStoresIt) {
  IngestVerdict first{};
  IngestVerdict second{};
  at_every_moment(
      kNothing, [&](House& house) { first = house.generate(house.one, "a")->kv; },
      [&](House& house) { second = house.generate(house.two, "a")->kv; },
      [&](House& house) {
        EXPECT_EQ((first == IngestVerdict::stored) + (second == IngestVerdict::stored), 1);
        EXPECT_TRUE(house.ready({"a"}));
        EXPECT_EQ(house.manager.accounted_bytes(), kNodeSlots);
      });
}

TEST_F(SeveralSessionsTest, AForkDuringAPutIsAChunkOfItsOwn) {
  at_every_moment(
      [](House& house) {
        house.generate_all(house.one, {"a"});
        house.resume(house.two, {"a"});
      },
      [](House& house) { EXPECT_EQ(house.generate(house.one, "b")->kv, IngestVerdict::stored); },
      [](House& house) { EXPECT_EQ(house.generate(house.two, "c")->kv, IngestVerdict::stored); },
      [](House& house) {
        EXPECT_TRUE(house.ready({"a", "b"}));
        EXPECT_TRUE(house.ready({"a", "c"}));
      });
}

TEST_F(SeveralSessionsTest, AResumeBesideAPutFindsTheChunkWholeOrNotAtAll) {
  at_every_moment(
      kNothing, [](House& house) { house.generate_all(house.one, {"a"}); },
      [](House& house) { EXPECT_EQ(house.resume(house.two, {"a"}).retries, 0U); });
}

TEST_F(SeveralSessionsTest, AnEvictionBesideAResumeIsRefusedOrComesFirstOrLast) {
  bool evicted = false;
  at_every_moment(
      kWriteAB, [](House& house) { EXPECT_EQ(house.resume(house.two, {"a", "b"}).retries, 0U); },
      [&](House& house) { evicted = house.evict({"a", "b"}).has_value(); },
      [&](House& house) { EXPECT_EQ(house.ready({"a", "b"}), !evicted); });
}

TEST_F(SeveralSessionsTest, AResumeBesideAnEvictionIsNotServedWhatIsGoing) {
  at_every_moment(
      kWriteAB, [](House& house) { static_cast<void>(house.evict({"a", "b"}).has_value()); },
      [](House& house) { EXPECT_EQ(house.resume(house.two, {"a", "b"}).retries, 0U); });
}

TEST_F(SeveralSessionsTest, APutBesideTheEvictionOfItsChunkWaitsForItsEnd) {
  at_every_moment(
      [](House& house) {
        kWriteAB(house);
        house.resume(house.two, {"a"});
      },
      [](House& house) { EXPECT_TRUE(house.evict({"a", "b"}).has_value()); },
      [](House& house) { static_cast<void>(house.generate(house.two, "b").has_value()); });
}

TEST_F(SeveralSessionsTest, NoRoomIsMadeOfWhatAReaderHasFound) {
  options.capacity_bytes = 2 * kNodeSlots;
  std::optional<PathLease> held;
  at_every_moment(
      kWriteAB,
      [](House& house) { static_cast<void>(house.manager.make_room(kChunkSlots, house.absorbed).has_value()); },
      [&](House& house) { held = std::move(*house.hold({"a", "b"})); },
      [&](House& house) {
        for (const Node* node : held->window()) EXPECT_TRUE(node->blob().ready);
        EXPECT_EQ(house.manager.counts().forest.references, held->window().size());
        held.reset();
      });
}

TEST_F(SeveralSessionsTest, WhoMakesRoomCountsWhatItFreedAndNothingElse) {
  options.capacity_bytes = 2 * kNodeSlots;
  Result<EvictReceipt> room;
  Result<EvictReceipt> evicted;
  at_every_moment(
      kWriteAB, [&](House& house) { room = house.manager.make_room(kChunkSlots, house.absorbed); },
      [&](House& house) { evicted = house.evict({"a", "b"}); },
      [&](House& house) {
        ASSERT_TRUE(room.has_value());
        EXPECT_EQ(room->evicted, room->freed_bytes > 0);
        const std::uint64_t freed = room->freed_bytes + (evicted ? evicted->freed_bytes : 0);
        EXPECT_EQ(house.held_bytes(), 2 * kNodeSlots - freed);
      });
}

TEST_F(SeveralSessionsTest, TwoPutsDoNotShareTheRoomThatOneOfThemFound) {
  options.capacity_bytes = kNodeSlots + kLatentSlot;
  at_every_moment(
      kNothing,
      [](House& house) {
        house.generate_all(house.one, {"a"});
        EXPECT_LE(house.held_bytes(), kNodeSlots + kLatentSlot);
      },
      [](House& house) { static_cast<void>(house.generate(house.two, "d").has_value()); });
}

TEST_F(SeveralSessionsTest, WhatIsHeldIsAccountedAtEveryMomentOfAPut) {
  at_every_moment(
      kNothing, [](House& house) { house.generate_all(house.one, {"a"}); },
      [](House& house) { EXPECT_GE(house.manager.accounted_bytes(), house.held_bytes()); },
      [](House& house) { EXPECT_EQ(house.manager.accounted_bytes(), kNodeSlots); });
}

TEST_F(SeveralSessionsTest, WhatIsHeldIsAccountedAtEveryMomentOfAnEviction) {
  at_every_moment([](House& house) { house.generate_all(house.one, {"a", "b"}); },  // and not routed yet: it may appear
                  [](House& house) { EXPECT_TRUE(house.evict({"a", "b"}).has_value()); },
                  [](House& house) { EXPECT_GE(house.manager.accounted_bytes(), house.held_bytes()); });
}

TEST_F(SeveralSessionsTest, WhatMovesWhileItIsCountedIsNotMissed) {
  std::uint64_t accounted = 0;
  at_every_moment([](House& house) { house.generate_all(house.one, {"a", "b"}); },
                  [&](House& house) { accounted = house.manager.accounted_bytes(); },
                  [](House& house) { EXPECT_TRUE(house.evict({"a", "b"}).has_value()); },
                  [&](House& house) { EXPECT_GE(accounted, house.held_bytes()); });
}

// One reader finds a value lost. At some moment another has found it too, and the chunk has been stored anew.
TEST_F(SeveralSessionsTest, ALossWithdrawsTheBlobThatWasProbedAndNotItsSuccessor) {
  at_every_moment(
      [](House& house) {
        kWriteAB(house);
        house.lose_values({"a", "b"});
      },
      [](House& house) { house.resume(house.one, {"a", "b"}); },
      [](House& house) {
        ASSERT_EQ(house.resume(house.two, {"a", "b"}).matched_chunks, 1U);
        house.settle();
        ASSERT_EQ(house.generate(house.two, "b")->kv, IngestVerdict::stored);
      },
      [](House& house) { EXPECT_TRUE(house.ready({"a", "b"})); });
}

TEST_F(SeveralSessionsTest, ALossWithdrawsTheLatentThatWasProbedAndNotItsSuccessor) {
  at_every_moment(
      [](House& house) {
        kWriteAB(house);
        house.lose_latent({"a", "b"});
      },
      [](House& house) { house.resume(house.one, {"a", "b"}); },
      [](House& house) {
        ASSERT_EQ(house.resume(house.two, {"a", "b"}).matched_chunks, 1U);
        house.settle();
        ASSERT_EQ(house.generate(house.two, "b")->latent, IngestVerdict::stored);
      },
      [](House& house) { EXPECT_TRUE(house.node({"a", "b"})->skeleton().ready); });
}

TEST_F(SeveralSessionsTest, OneSessionsEndBesideAnothersResumeTakesNothingFromIt) {
  at_every_moment(
      kWriteAB, [](House& house) { EXPECT_EQ(house.resume(house.two, {"a", "b"}).matched_chunks, 2U); },
      [](House& house) { house.one.binding.reset(); });
}

TEST_F(SeveralSessionsTest, AnEvictionTriedAgainLeavesAloneWhatWasStoredMeanwhile) {
  IngestVerdict stored{};
  at_every_moment(
      [](House& house) {
        kWriteAB(house);
        house.resume(house.two, {"a"});
        house.mount_owner_at(house.clock.now_ns() + kMinute);
        ASSERT_FALSE(house.evict({"a", "b"}).has_value());
        house.clock.advance_by(2 * kMinute);
      },
      [](House& house) {
        std::vector<Error> errors;
        house.manager.pump(errors);
      },
      [&](House& house) {
        const Result<IngestReceipt> receipt = house.generate(house.two, "b");
        stored = receipt ? receipt->kv : IngestVerdict::failed;
      },
      [&](House& house) {
        const bool published = stored == IngestVerdict::stored || stored == IngestVerdict::adopted;
        EXPECT_EQ(house.ready({"a", "b"}), published);
      });
}

TEST_F(SeveralSessionsTest, ASnapshotDuringAPutHoldsOnlyWhatIsStored) {
  at_every_moment([](House& house) { house.generate_all(house.one, {"a"}); },
                  [](House& house) { house.generate_all(house.one, {"b"}); },
                  [](House& house) {
                    fakes::MemoryFiles files;
                    ASSERT_TRUE(house.manager.save(files, "dir/forest").has_value());
                    const Snapshot snapshot = *read_snapshot(files, "dir/forest");
                    for (const SnapshotNode& node : snapshot.worlds.at(0).nodes) {
                      KeyBatch keys;
                      if (node.blob_ready) keys.add_chunk(node.key, node.blob.shape);
                      if (node.skeleton_ready) keys.add_latent(node.key);
                      EXPECT_TRUE(house.has_all(keys.keys()));
                    }
                  });
}

// Files that let somebody in before each write.
struct OpenFiles {
  fakes::MemoryFiles files;
  std::function<void()> before_write;

  Result<std::string> read(const std::string& path, std::uint64_t bytes_max) { return files.read(path, bytes_max); }
  Status write(const std::string& path, const std::string& bytes) {
    if (before_write) std::exchange(before_write, nullptr)();
    return files.write(path, bytes);
  }
  Status sync(const std::string& path) { return files.sync(path); }
  Status rename(const std::string& from, const std::string& to) { return files.rename(from, to); }
  Status remove(const std::string& path) { return files.remove(path); }
};
static_assert(FileSystem<OpenFiles>);

TEST_F(SeveralSessionsTest, OfTwoSnapshotsAtOnceTheOlderDoesNotReplaceTheNewer) {
  House house(options);
  OpenFiles files;
  house.generate_all(house.one, {"a"});
  files.before_write = [&] {
    house.generate_all(house.one, {"b"});
    const Status second = house.manager.save(files, "dir/forest");
    ASSERT_FALSE(second.has_value());
    EXPECT_TRUE(second.error().is(Errc::in_use));
  };
  EXPECT_TRUE(house.manager.save(files, "dir/forest").has_value());
  EXPECT_EQ(read_snapshot(files, "dir/forest")->worlds.at(0).nodes.size(), 1U);
  EXPECT_TRUE(house.manager.save(files, "dir/forest").has_value()) << "when the first has ended";
  EXPECT_EQ(read_snapshot(files, "dir/forest")->worlds.at(0).nodes.size(), 2U);
}

TEST_F(SeveralSessionsTest, AnOwnersRestartBesideAPutLetsNoCopyGoToUnregisteredMemory) {
  with_baseline = false;  // what the old owner had behind a chunk that is not ready is accounted until somebody looks
  at_every_moment([](House& house) { house.generate_all(house.one, {"a"}); },
                  [](House& house) { static_cast<void>(house.generate(house.one, "b").has_value()); },
                  [](House& house) {
                    house.restart_owner();
                    static_cast<void>(house.generate(house.two, "d").has_value());
                  },
                  [](House& house) { EXPECT_TRUE(house.device_incidents().empty()); });
}

}  // namespace
}  // namespace holdfast::several_sessions
