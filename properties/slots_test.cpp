// Slot memory of the fake owner: carving, reuse, poison and red zones.
#include "holdfast/fakes/slots.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace holdfast::fakes {
namespace {

constexpr std::uint64_t kPage = 4096;

class SlotsTest : public testing::Test {
 protected:
  static constexpr SlotOptions kOptions{.segment_bytes = 8 * kPage, .grant_bytes = 4 * kPage, .overwrite_checks = true};
  std::uint8_t* bytes(SlotId slot) { return reinterpret_cast<std::uint8_t*>(pool.write_address(slot)); }
  std::uint64_t offset(SlotId slot) { return pool.write_address(slot) - region.write_base; }

  Arena arena;
  DualRegion region = arena.map_dual(kOptions.segment_bytes);
  SlotPool pool{region, kOptions};
};

TEST_F(SlotsTest, TheSlotLetGoLastIsHandedOutFirst) {
  const SlotId first = pool.claim(256);
  const SlotId second = pool.claim(256);
  pool.release(first);
  pool.release(second);
  EXPECT_EQ(pool.claim(256), second);
  EXPECT_EQ(pool.claim(256), first);
}

TEST_F(SlotsTest, AValueTakesWholePagesAndNeverCrossesTwoGrants) {
  // Three pages each: one to a grant, the fourth page stays unused.
  EXPECT_EQ(offset(pool.claim(2 * kPage + 1)), 0U);
  EXPECT_EQ(offset(pool.claim(2 * kPage + 1)), 4 * kPage);
  EXPECT_FALSE(pool.has_room(1, 2 * kPage + 1));
  EXPECT_FALSE(pool.has_room(1, 1)) << "a grant has slots of one size";
}

TEST_F(SlotsTest, AGrantThatIsWhollyFreeIsCarvedAnewForAnotherSize) {
  std::vector<SlotId> small;
  for (int count = 0; count < 8; ++count) small.push_back(pool.claim(1));
  EXPECT_FALSE(pool.has_room(1, kPage + 1));
  for (std::size_t at = 1; at < 4; ++at) pool.release(small[at]);
  EXPECT_FALSE(pool.has_room(1, kPage + 1)) << "one slot of the first grant is in use";
  pool.release(small[0]);
  EXPECT_TRUE(pool.has_room(2, kPage + 1));
  EXPECT_FALSE(pool.has_room(3, kPage + 1));
  EXPECT_EQ(offset(pool.claim(kPage + 1)), 0U);
  EXPECT_EQ(offset(pool.claim(kPage + 1)), 2 * kPage);
  EXPECT_FALSE(pool.has_room(1, 1)) << "what was carved anew is no room for the old size";
}

TEST_F(SlotsTest, RoomCountsFreeSlotsUntouchedSlotsAndEmptyGrants) {
  EXPECT_TRUE(pool.has_room(8, 1));
  EXPECT_FALSE(pool.has_room(9, 1));
  const SlotId slot = pool.claim(1);
  EXPECT_TRUE(pool.has_room(7, 1));
  EXPECT_FALSE(pool.has_room(8, 1));
  pool.release(slot);
  EXPECT_TRUE(pool.has_room(8, 1));
}

TEST_F(SlotsTest, AWriteToAFreeSlotIsFoundWhenItIsHandedOut) {
  const SlotId slot = pool.claim(256);
  pool.tag(slot, 7, 3);
  pool.release(slot);
  bytes(slot)[100] = 1;
  EXPECT_EQ(pool.claim(256), slot);
  ASSERT_EQ(pool.damages().size(), 1U);
  const Damage& damage = pool.damages().front();
  EXPECT_TRUE(damage.free_slot);
  EXPECT_EQ(damage.slot_offset, 0U);
  EXPECT_EQ(damage.first_wrong_byte, 100U);
  EXPECT_EQ(damage.last_key, 7U);
  EXPECT_EQ(damage.last_plan, 3U);
}

TEST_F(SlotsTest, AWriteToAFreeSlotIsFoundWhenItsGrantIsCarvedAnew) {
  const SlotId slot = pool.claim(256);
  const SlotId other = pool.claim(kPage + 1);
  pool.tag(slot, 7, 3);
  pool.release(slot);
  bytes(slot)[0] = 1;
  pool.claim(kPage + 1);
  pool.claim(kPage + 1);
  ASSERT_EQ(pool.damages().size(), 1U);
  EXPECT_EQ(pool.damages().front().last_key, 7U);
  EXPECT_EQ(pool.dropped_keys(), std::vector<std::uint32_t>{7U});
  EXPECT_FALSE(pool.has_room(1, 256)) << "its untouched slots went with it";
  pool.release(other);
}

TEST_F(SlotsTest, AnUndisturbedSlotIsNotDamaged) {
  for (int round = 0; round < 3; ++round) {
    const SlotId slot = pool.claim(300);
    std::memset(bytes(slot), round, 300);
    pool.check_red_zone(slot);
    pool.release(slot);
  }
  pool.check_all();
  EXPECT_TRUE(pool.damages().empty());
}

TEST_F(SlotsTest, AWriteBehindTheValueIsFoundAndReportedOnce) {
  const SlotId slot = pool.claim(256);
  bytes(slot)[256] = 1;
  pool.check_red_zone(slot);
  pool.check_red_zone(slot);
  ASSERT_EQ(pool.damages().size(), 1U);
  EXPECT_FALSE(pool.damages().front().free_slot);
  EXPECT_EQ(pool.damages().front().first_wrong_byte, 256U);
}

TEST_F(SlotsTest, TheLastByteOfTheRedZoneIsWatched) {
  const SlotId slot = pool.claim(256);
  bytes(slot)[256 + kRedZoneBytes - 1] = 1;
  pool.check_red_zone(slot);
  EXPECT_EQ(pool.damages().size(), 1U);
}

TEST_F(SlotsTest, AValueThatFillsItsSlotHasNoRedZoneInTheNextOne) {
  const SlotId first = pool.claim(kPage);
  const SlotId second = pool.claim(kPage);
  std::memset(bytes(second), 1, kPage);
  pool.check_red_zone(first);
  pool.release(first);
  EXPECT_TRUE(pool.damages().empty());
  EXPECT_EQ(bytes(second)[0], 1);
}

TEST_F(SlotsTest, CheckingAllFindsWhatNoClaimWouldFind) {
  const SlotId free = pool.claim(256);
  const SlotId used = pool.claim(256);
  pool.release(free);
  bytes(free)[1] = 1;
  bytes(used)[256] = 1;
  pool.check_all();
  EXPECT_EQ(pool.damages().size(), 2U);
}

TEST_F(SlotsTest, WithoutChecksNothingIsWrittenAndNothingReported) {
  SlotPool unchecked(arena.map_dual(8 * kPage), {8 * kPage, 4 * kPage, false});
  const SlotId slot = unchecked.claim(256);
  auto* at = reinterpret_cast<std::uint8_t*>(unchecked.write_address(slot));
  EXPECT_EQ(at[256], 0);
  at[256] = 1;
  unchecked.release(slot);
  EXPECT_EQ(at[0], 0);
  unchecked.claim(256);
  EXPECT_TRUE(unchecked.damages().empty());
}

TEST_F(SlotsTest, ARecycledMappingIsFreeAndWhatWasWrittenMeanwhileIsForgiven) {
  const SlotId used = pool.claim(256);
  const SlotId free = pool.claim(256);
  pool.release(free);
  bytes(free)[0] = 1;
  bytes(used)[0] = 1;
  pool.recycle();
  EXPECT_TRUE(pool.has_room(8, 256));
  for (int count = 0; count < 8; ++count) pool.claim(256);
  EXPECT_TRUE(pool.damages().empty());
}

TEST_F(SlotsTest, ARecycledMappingIsWatchedAgain) {
  const SlotId used = pool.claim(256);
  pool.recycle();
  bytes(used)[0] = 1;
  EXPECT_EQ(pool.claim(256), used);
  EXPECT_EQ(pool.damages().size(), 1U);
}

TEST_F(SlotsTest, AResetPoolIsAsIfNewForItsNewSizes) {
  const SlotId slot = pool.claim(5000);
  std::memset(bytes(slot), 1, 8192);
  pool.reset({8 * kPage, 2 * kPage, true}, arena);
  for (std::uint64_t at = 0; at < 8 * kPage; ++at) {
    ASSERT_EQ(reinterpret_cast<const std::uint8_t*>(region.read_base)[at], 0) << at;
  }
  EXPECT_TRUE(pool.has_room(4, 5000));
  EXPECT_FALSE(pool.has_room(5, 5000));
  EXPECT_EQ(offset(pool.claim(5000)), 0U);
  EXPECT_TRUE(pool.damages().empty());
}

}  // namespace
}  // namespace holdfast::fakes
