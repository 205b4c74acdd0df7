// Owners against the Plan contract: handles, read plans, removal, whole values.
#include "fluxon_owner_fixture.hpp"
#include "holdfast/fakes/fluxon_owner.hpp"

namespace holdfast::fakes {
namespace {

using OwnerGetsTest = OwnerTest;

// ---- get_start, get_transfer, cancel, release

TEST_P(OwnerGetsTest, GetStartTellsThePrefixInKeysAndInWholeGroups) {
  store({"a", "b", "c"});
  const GetStart found = look({"a", "b", "c", "x"}, {2, 2});
  EXPECT_EQ(found.raw_prefix_hit_len, 3U);
  EXPECT_EQ(found.transferable_len, 2U);
  EXPECT_EQ(found.prefix_hit_groups, 1U);
  EXPECT_EQ(found.first_miss_index, 3U);
  EXPECT_EQ(found.first_miss_group, 1U);
  EXPECT_FALSE(found.all_hit);
}

TEST_P(OwnerGetsTest, GetStartTellsWhenAllIsThere) {
  store({"a", "b", "c"});
  const GetStart found = look({"a", "b", "c"}, {1, 2});
  EXPECT_EQ(found.raw_prefix_hit_len, 3U);
  EXPECT_EQ(found.transferable_len, 3U);
  EXPECT_EQ(found.prefix_hit_groups, 2U);
  EXPECT_EQ(found.first_miss_index, 3U);
  EXPECT_EQ(found.first_miss_group, 2U);
  EXPECT_TRUE(found.all_hit);
}

TEST_P(OwnerGetsTest, OnlyAPrefixIsFound) {
  store({"b", "c"});
  const GetStart found = look({"a", "b", "c"}, {1, 1, 1});
  EXPECT_EQ(found.raw_prefix_hit_len, 0U);
  EXPECT_EQ(found.first_miss_index, 0U);
  EXPECT_EQ(found.first_miss_group, 0U);
}

TEST_P(OwnerGetsTest, NoGroupsAreOneGroup) {
  store({"a"});
  const GetStart found = look({"a", "x"});
  EXPECT_EQ(found.raw_prefix_hit_len, 1U);
  EXPECT_EQ(found.transferable_len, 0U);
  EXPECT_EQ(owner.holders(), 0U);
}

TEST_P(OwnerGetsTest, WithoutBestEffortItIsAllOrNothing) {
  store({"a", "b"});
  const GetStart found = look({"a", "x"}, {1, 1}, false);
  EXPECT_EQ(found.raw_prefix_hit_len, 1U);
  EXPECT_EQ(found.transferable_len, 0U);
  EXPECT_EQ(found.prefix_hit_groups, 0U);
  EXPECT_EQ(owner.holders(), 0U);
  EXPECT_EQ(look({"a", "b"}, {1, 1}, false).transferable_len, 2U);
}

TEST_P(OwnerGetsTest, AKeyThatFailsByItselfLooksLikeAMiss) {
  store({"a", "b"});
  owner.choose_next_get_start({.failing_key_index = 1});
  EXPECT_EQ(look({"a", "b"}, {1, 1}).raw_prefix_hit_len, 1U);
  EXPECT_EQ(look({"a", "b"}, {1, 1}).raw_prefix_hit_len, 2U);
}

TEST_P(OwnerGetsTest, GetStartRefusesWhatTheContractCallsInvalid) {
  const Names none;
  const Names two{"a", "b"};
  const std::int32_t invalid = number(FluxonErrc::invalid_argument);
  EXPECT_EQ(errc_of(owner.get_start(none, true, {})), invalid);
  for (const Groups& groups : {Groups{0, 2}, Groups{1}, Groups{2, 1}}) {
    EXPECT_EQ(errc_of(owner.get_start(two, true, groups)), invalid);
  }
  EXPECT_EQ(owner.live_handles(), 0U);
}

TEST_P(OwnerGetsTest, TheHandleOfAMissLivesUntilItIsCancelled) {
  const GetStart miss = look({"a"});
  EXPECT_EQ(owner.live_handles(), 1U);
  EXPECT_TRUE(owner.cancel_get_transfer(miss.handle).has_value());
  EXPECT_EQ(owner.live_handles(), 0U);
}

TEST_P(OwnerGetsTest, AHandlePinsThePrefixAndLetsTheSuffixGo) {
  store_and_route({"a", "b"});
  const GetStart found = look({"a", "x", "b"}, {1, 1, 1});
  EXPECT_FALSE(owner.evict("a"));
  EXPECT_TRUE(owner.evict("b"));
  EXPECT_TRUE(owner.cancel_get_transfer(found.handle).has_value());
  EXPECT_TRUE(owner.evict("a"));
}

TEST_P(OwnerGetsTest, ATransferOfABadLengthFailsAndTheHandleLives) {
  store({"a", "b", "c"});
  const GetHandle handle = look({"a", "b", "c", "x"}, {1, 2, 1}).handle;
  for (const std::uint64_t length : {0U, 2U, 4U, 5U}) {
    EXPECT_EQ(errc_of(owner.get_transfer(handle, length)), number(FluxonErrc::invalid_argument)) << length;
  }
  EXPECT_EQ(owner.live_handles(), 1U);
  EXPECT_TRUE(owner.get_transfer(handle, 3).has_value());
}

TEST_P(OwnerGetsTest, ATransferConsumesTheHandleAndLetsTheTailGo) {
  store_and_route({"a", "b", "c"});
  const GetHandle handle = look({"a", "b", "c"}, {1, 2}).handle;
  EXPECT_EQ(owner.holders(), 3U);
  const PlanPtr plan = owner.get_transfer(handle, 1).value();
  EXPECT_EQ(words_of(plan, 1)[1], 1U);
  EXPECT_EQ(owner.holders(), 1U);
  EXPECT_TRUE(owner.evict("b"));
  EXPECT_FALSE(owner.evict("a"));
  EXPECT_EQ(errc_of(owner.get_transfer(handle, 1)), number(FluxonErrc::invalid_argument));
  EXPECT_EQ(errc_of(owner.cancel_get_transfer(handle)), number(FluxonErrc::invalid_argument));
}

TEST_P(OwnerGetsTest, AHandleCancelledTwiceIsUnknown) {
  const GetHandle handle = look({"a"}).handle;
  EXPECT_TRUE(owner.cancel_get_transfer(handle).has_value());
  EXPECT_EQ(errc_of(owner.cancel_get_transfer(handle)), number(FluxonErrc::invalid_argument));
}

TEST_P(OwnerGetsTest, ManyOpenHandlesAreToldApart) {
  store({"a"});
  std::vector<GetHandle> handles;
  for (int count = 0; count < 300; ++count) handles.push_back(look({"a"}).handle);
  for (const GetHandle handle : handles) EXPECT_TRUE(owner.get_transfer(handle, 1).has_value());
  EXPECT_EQ(owner.holders(), 300U);
  EXPECT_EQ(owner.live_handles(), 0U);
}

TEST_P(OwnerGetsTest, HoldersDropALittleAfterTheRelease) {
  store_and_route({"a"});
  EXPECT_TRUE(owner.release_views(read({"a"})).has_value());
  EXPECT_EQ(owner.live_plans(), 0U);
  EXPECT_FALSE(owner.evict("a"));
  clock.advance_by(kMillisecond);
  EXPECT_TRUE(owner.evict("a"));
}

TEST_P(OwnerGetsTest, AReleasedPlanIsUnknown) {
  store({"a"});
  const PlanPtr plan = read({"a"});
  EXPECT_TRUE(owner.release_views(plan).has_value());
  EXPECT_EQ(errc_of(owner.release_views(plan)), number(FluxonErrc::invalid_argument));
}

TEST_P(OwnerGetsTest, ReleasingAPutPlanStrandsItsSlotsWhichIsDamage) {
  const PlanPtr plan = start({"a"});
  EXPECT_TRUE(owner.release_views(plan).has_value());
  EXPECT_EQ(incident_kinds(), std::vector{IncidentKind::release_of_put_plan});
  EXPECT_EQ(errc_of(owner.local_fast_put_commit(plan)), number(FluxonErrc::invalid_argument));
  EXPECT_EQ(owner.prepared_slots(), 1U);
  clock.advance_by(kPlanTimeout);
  expect_at_rest();
}

TEST_P(OwnerGetsTest, AReleaseThatFailsPinsUntilTheClientLeaves) {
  store_and_route({"a"});
  const PlanPtr plan = read({"a"});
  owner.choose_next_release_pins();
  EXPECT_EQ(errc_of(owner.release_views(plan)), number(FluxonErrc::network));
  EXPECT_EQ(owner.live_plans(), 0U);
  clock.advance_by(kPlanTimeout);
  EXPECT_FALSE(owner.evict("a"));
  owner.client_died();
  clock.advance_by(360 * kSecond);
  EXPECT_TRUE(owner.evict("a"));
}

TEST_P(OwnerGetsTest, ACancelThatFailsEndsTheHandleAndPinsUntilTheClientLeaves) {
  store_and_route({"a"});
  const GetHandle handle = look({"a"}).handle;
  owner.choose_next_cancel_pins();
  EXPECT_EQ(errc_of(owner.cancel_get_transfer(handle)), number(FluxonErrc::network));
  EXPECT_EQ(errc_of(owner.cancel_get_transfer(handle)), number(FluxonErrc::invalid_argument));
  clock.advance_by(kPlanTimeout);
  EXPECT_FALSE(owner.evict("a"));
  owner.close();
  clock.advance_by(360 * kSecond);
  EXPECT_TRUE(owner.evict("a"));
}

// ---- remove

TEST_P(OwnerGetsTest, ARemovedKeyIsGoneAndItsSlotFree) {
  store_and_route({"a"});
  EXPECT_TRUE(owner.remove("a").has_value());
  EXPECT_EQ(state_of("a"), std::nullopt);
  EXPECT_EQ(owner.held_bytes(), 0U);
  EXPECT_EQ(errc_of(owner.remove("a")), number(FluxonErrc::key_not_found));
}

TEST_P(OwnerGetsTest, AKeyNotYetRoutedIsNotFoundByRemoveAndAppearsLater) {
  store({"a"});
  EXPECT_EQ(errc_of(owner.remove("a")), number(FluxonErrc::key_not_found));
  clock.advance_by(25 * kMillisecond);
  EXPECT_EQ(state_of("a"), KeyState::committed);
}

TEST_P(OwnerGetsTest, ARemovedValueLivesUntilItsLastHolderIsGone) {
  store_and_route({"a"}, 7);
  const PlanPtr plan = read({"a"});
  const std::uintptr_t address = words_of(plan, 1)[2];
  EXPECT_TRUE(owner.remove("a").has_value());
  EXPECT_EQ(look({"a"}).raw_prefix_hit_len, 0U) << "a miss, although its bytes are held";
  EXPECT_EQ(*bytes_at(address), 7);
  EXPECT_EQ(owner.held_bytes(), kSlotAlignment);
  store({"a"}, 8);
  EXPECT_EQ(*bytes_at(address), 7);
  EXPECT_TRUE(owner.release_views(plan).has_value());
  clock.advance_by(kMillisecond);
  EXPECT_EQ(owner.held_bytes(), kSlotAlignment);
}

// ---- Whole values

TEST_P(OwnerGetsTest, WholeValuesArePutAndGot) {
  const std::vector<std::byte> first(300, std::byte{1});
  const std::vector<std::byte> second(10, std::byte{2});
  EXPECT_EQ(errc_of(owner.get("a")), number(FluxonErrc::key_not_found));
  EXPECT_TRUE(owner.put("a", first).has_value());
  EXPECT_EQ(owner.get("a").value(), first);
  EXPECT_TRUE(owner.put("a", second).has_value()) << "overwrites";
  EXPECT_EQ(owner.get("a").value(), second);
  EXPECT_EQ(owner.held_bytes(), kSlotAlignment);
  EXPECT_EQ(errc_of(owner.remove("a")), number(FluxonErrc::key_not_found)) << "not routed yet";
  clock.advance_by(25 * kMillisecond);
  EXPECT_TRUE(owner.remove("a").has_value());
  expect_at_rest();
}

TEST_P(OwnerGetsTest, AWholeValueIsNeitherEmptyNorLongerThanAGrant) {
  EXPECT_EQ(errc_of(owner.put("a", {})), number(FluxonErrc::invalid_argument));
  const std::vector<std::byte> long_value(small().grant_bytes + 1);
  EXPECT_EQ(errc_of(owner.put("a", long_value)), number(FluxonErrc::value_too_large));
}

INSTANTIATE_TEST_SUITE_P(Contract, OwnerGetsTest, testing::ValuesIn(all_owner_kinds()), name_of_kind);

}  // namespace
}  // namespace holdfast::fakes
