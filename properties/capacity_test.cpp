// Room between two marks: when it is made, of what, and what becomes of what it cannot be made for.
#include "holdfast/core/capacity.hpp"

#include <gtest/gtest.h>

#include "holdfast/core/manager.hpp"
#include "session_fixture.hpp"

namespace holdfast {
namespace {

using testing::Invoke;
using testing::Return;

constexpr std::uint64_t kChunkSlots = 4 * 4096;  // K and V of two layers
constexpr std::uint64_t kLatentSlot = 4096;
constexpr std::uint64_t kNodeSlots = kChunkSlots + kLatentSlot;

TEST(CapacityMarksAre, RefusedWhenTheLowerIsAboveTheUpperOrAlone) {
  EXPECT_TRUE(validate_marks({}).has_value());
  EXPECT_TRUE(validate_marks({.upper_bytes = 10}).has_value());
  EXPECT_TRUE(validate_marks({.upper_bytes = 10, .lower_bytes = 10}).has_value());
  const Status above = validate_marks({.upper_bytes = 10, .lower_bytes = 11});
  ASSERT_FALSE(above.has_value());
  EXPECT_NE(above.error().detail.find("11"), std::string::npos);
  EXPECT_NE(above.error().detail.find("at most"), std::string::npos);
  const Status alone = validate_marks({.lower_bytes = 1});
  ASSERT_FALSE(alone.has_value());
  EXPECT_NE(alone.error().detail.find("no limit"), std::string::npos);
}

TEST(CapacityMarksAre, ComparedWithoutOverflow) {
  const CapacityMarks marks{.upper_bytes = 10};
  EXPECT_TRUE(marks.fits(4, 6));
  EXPECT_FALSE(marks.fits(4, 7));
  EXPECT_FALSE(marks.fits(11, 0));
  EXPECT_FALSE(marks.fits(1, ~std::uint64_t{0}));
  EXPECT_TRUE(CapacityMarks{}.fits(1, ~std::uint64_t{0}));
}

class RoomTest : public SessionTest {
 protected:
  // A manager with options of its own, and one session in a world.
  struct House {
    House(RoomTest& test, const ManagerOptions& options)
        : manager(test.runtime, test.store, options), engine(test.device, test.stream, test.spec) {}
    TestManager manager;
    TestEngine engine;
  };

  Result<IngestReceipt> ingest(House& house, Namespace& world, const std::vector<std::string>& path) {
    Node* node = world.root();
    std::string history;
    for (const std::string& action : path) {
      node = &house.manager.enter(*node, action);
      history += "|" + action;
    }
    house.engine.generate(history);
    const std::vector<DeviceTensor> ring = house.engine.ring();
    const auto values = finalized_chunk(spec, ring, house.engine.indices().local_end_tokens);
    return house.manager.ingest(*node, spec.layout, *values, house.engine.finalized_latent(), stream, absorbed);
  }
  void fill(House& house, Namespace& world, const std::vector<std::string>& actions) {
    for (const std::string& action : actions) ASSERT_TRUE(ingest(house, world, {action}).has_value());
    settle();
  }
  [[nodiscard]] bool ready(House& house, const std::string& action) const {
    return house.manager.find(node_key(spec.root, action))->blob().ready;
  }

  const WorldSpec spec = world_spec(kFullRing);
};

TEST_F(RoomTest, MarksThatDoNotFitAreToldWhenASessionOpens) {
  House house(*this, {.capacity_bytes = 4096, .lower_mark_bytes = 8192});
  const Result<Namespace*> opened = house.manager.open(spec);
  ASSERT_FALSE(opened.has_value());
  EXPECT_TRUE(opened.error().is(Errc::invalid_argument));
}

TEST_F(RoomTest, IsMadeBeforeThePutStarts) {
  const std::uint64_t capacity = 3 * kNodeSlots;
  House house(*this, {.capacity_bytes = capacity});
  Namespace& world = **house.manager.open(spec);
  fill(house, world, {"0", "1", "2"});
  ASSERT_EQ(owner.held_bytes(), capacity);
  int starts = 0;
  EXPECT_CALL(fluxon, local_fast_put_start)
      .WillRepeatedly(Invoke([&](Keys keys, std::uint64_t value_len, const PutOptions& options) {
        ++starts;
        EXPECT_LE(owner.held_bytes() + keys.size() * slot_bytes(value_len), capacity);
        EXPECT_LE(house.manager.accounted_bytes(), capacity) << "the put's own slots among them";
        return owner.local_fast_put_start(keys, value_len, options);
      }));
  const Nanos before_ns = clock.now_ns();
  ASSERT_TRUE(ingest(house, world, {"3"}).has_value());
  EXPECT_EQ(starts, 2);
  EXPECT_LT(clock.now_ns() - before_ns, kSecond);
  EXPECT_TRUE(ready(house, "3"));
  EXPECT_LE(house.manager.accounted_bytes(), capacity);
}

TEST_F(RoomTest, IsMadeDownToTheLowerMark) {
  House house(*this, {.capacity_bytes = 4 * kNodeSlots, .lower_mark_bytes = 2 * kNodeSlots});
  Namespace& world = **house.manager.open(spec);
  fill(house, world, {"0", "1", "2", "3"});
  ASSERT_EQ(house.manager.accounted_bytes(), 4 * kNodeSlots) << "nothing is evicted below the upper mark";
  ASSERT_TRUE(ingest(house, world, {"4"}).has_value());
  // 20 slots, of which three blobs go: 8 slots are at most 10. Then a chunk comes.
  EXPECT_EQ(house.manager.accounted_bytes(), 4 * kNodeSlots - 3 * kChunkSlots + kNodeSlots);
  EXPECT_TRUE(ready(house, "3"));
  EXPECT_FALSE(ready(house, "2"));
}

TEST_F(RoomTest, ALowerMarkThatCannotBeReachedDoesNotRefuseAPutThatFits) {
  House house(*this, {.capacity_bytes = 2 * kNodeSlots, .lower_mark_bytes = 1});
  Namespace& world = **house.manager.open(spec);
  fill(house, world, {"0", "1"});
  EXPECT_TRUE(ingest(house, world, {"2"}).has_value());
  EXPECT_TRUE(ready(house, "2"));
}

TEST_F(RoomTest, ARefusedPutTakesNothingAndCallsNobody) {
  House house(*this, {.capacity_bytes = kNodeSlots});
  Namespace& world = **house.manager.open(spec);
  ASSERT_TRUE(ingest(house, world, {"0"}).has_value());
  const std::uint64_t before = house.manager.accounted_bytes();
  const Nanos before_ns = clock.now_ns();
  EXPECT_CALL(fluxon, local_fast_put_start).Times(0);
  EXPECT_CALL(fluxon, remove).Times(0);
  for (int i = 0; i < 3; ++i) {
    const Result<IngestReceipt> refused = ingest(house, world, {"1"});
    ASSERT_FALSE(refused.has_value()) << "the other is too young";
    EXPECT_TRUE(refused.error().is(Errc::out_of_room));
    EXPECT_NE(refused.error().detail.find("nothing can be evicted"), std::string::npos);
  }
  EXPECT_EQ(house.manager.accounted_bytes(), before);
  EXPECT_EQ(clock.now_ns(), before_ns);
}

TEST_F(RoomTest, APutThatFailsGivesItsRoomBack) {
  House house(*this, {.capacity_bytes = 3 * kNodeSlots});
  Namespace& world = **house.manager.open(spec);
  EXPECT_CALL(fluxon, local_fast_put_start)
      .WillOnce(Return(fluxon_error(FluxonErrc::network, "local_fast_put_start")))
      .WillRepeatedly(Invoke(&owner, &fakes::FakeOwner::local_fast_put_start));
  EXPECT_FALSE(ingest(house, world, {"0"}).has_value());
  EXPECT_EQ(house.manager.accounted_bytes(), 0U);
}

TEST_F(RoomTest, IsNotMadeOfABlobWhoseLeavesAreThere) {
  House house(*this, {.capacity_bytes = 3 * kNodeSlots});
  Namespace& world = **house.manager.open(spec);
  ASSERT_TRUE(ingest(house, world, {"0"}).has_value());
  ASSERT_TRUE(ingest(house, world, {"0", "1"}).has_value());
  settle();
  ASSERT_TRUE(house.manager.make_room(kNodeSlots + kLatentSlot, absorbed)->evicted);
  EXPECT_TRUE(ready(house, "0"));
  EXPECT_FALSE(house.manager.find(node_key(node_key(spec.root, "0"), "1"))->blob().ready);
}

TEST_F(RoomTest, AnIdleWorldGoesAsAWholeWithItsLatentsAndNodes) {
  House house(*this, {.capacity_bytes = 3 * kNodeSlots});
  const WorldSpec other = world_spec(kFullRing, 64, "another world");
  Namespace& idle = **house.manager.open(other);
  fill(house, idle, {"0", "1"});
  house.manager.close(idle);
  ASSERT_TRUE(house.manager.make_room(3 * kNodeSlots, absorbed).has_value());
  EXPECT_EQ(house.manager.accounted_bytes(), 0U);
  EXPECT_EQ(owner.stored_keys(), 0U);
  const ForestCounts left = house.manager.counts().forest;
  EXPECT_EQ(left, ForestCounts{});
  Namespace& again = **house.manager.open(other);
  fill(house, again, {"0"});
  EXPECT_EQ(house.manager.accounted_bytes(), kNodeSlots);
}

TEST_F(RoomTest, AnIdleWorldWhoseLatentsMayNotBeRoutedYetStays) {
  House house(*this, {.capacity_bytes = kNodeSlots});
  Namespace& idle = **house.manager.open(spec);
  EXPECT_CALL(cuda, copy_batch)
      .WillOnce(Invoke(&device, &fakes::FakeCuda::copy_batch))
      .WillRepeatedly(Return(cuda_error(CudaErrc::launch_failure, "copy_batch")));
  EXPECT_EQ(ingest(house, idle, {"0"})->kv, IngestVerdict::failed);
  house.manager.close(idle);
  EXPECT_CALL(fluxon, remove).Times(0);
  EXPECT_FALSE(house.manager.make_room(kNodeSlots, absorbed).has_value());
  EXPECT_EQ(house.manager.accounted_bytes(), kLatentSlot);
}

TEST_F(RoomTest, TheLatentsOfAWorldInUseStay) {
  House house(*this, {.capacity_bytes = 2 * kNodeSlots});
  Namespace& world = **house.manager.open(spec);
  fill(house, world, {"0", "1"});
  EXPECT_FALSE(house.manager.make_room(2 * kNodeSlots, absorbed).has_value());
  EXPECT_EQ(house.manager.accounted_bytes(), 2 * kLatentSlot);
  EXPECT_TRUE(house.manager.find(node_key(spec.root, "0"))->skeleton().ready);
}

TEST_F(RoomTest, ALatentOfAnIdleWorldWhoseRemovalFailsStaysAccountedUntilItIsGone) {
  House house(*this, {.capacity_bytes = kNodeSlots});
  Namespace& idle = **house.manager.open(spec);
  fill(house, idle, {"0"});
  ASSERT_TRUE(house.manager.evict_blob(*house.manager.find(node_key(spec.root, "0")), absorbed).has_value());
  house.manager.close(idle);
  EXPECT_CALL(fluxon, remove)
      .WillOnce(Return(fluxon_error(FluxonErrc::network, "remove")))
      .WillRepeatedly(Invoke(&owner, &fakes::FakeOwner::remove));
  EXPECT_FALSE(house.manager.make_room(kNodeSlots, absorbed).has_value());
  EXPECT_EQ(house.manager.accounted_bytes(), kLatentSlot);
  EXPECT_EQ(owner.held_bytes(), kLatentSlot);
  clock.advance_by(kSettleBound + kSecond);
  std::vector<Error> errors;
  house.manager.pump(errors);
  EXPECT_EQ(house.manager.accounted_bytes(), 0U);
  EXPECT_EQ(owner.held_bytes(), 0U);
}

}  // namespace
}  // namespace holdfast
