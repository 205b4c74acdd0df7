// Owners against the Plan contract: segments, put plans, commits; one test a promise.
#include "holdfast/fakes/fluxon_owner.hpp"

#include "fluxon_owner_fixture.hpp"

namespace holdfast::fakes {
namespace {

using Fate = KeyChoice::Fate;

// ---- Segments

TEST_P(OwnerTest, OneSegmentIsReadyUnderTheContractsLabel) {
  const std::vector<Segment> segments = owner.wait_local_segments_ready().value();
  ASSERT_EQ(segments.size(), 1U);
  EXPECT_EQ(segments[0].segment_label, "external_owner:0");
  EXPECT_EQ(segments[0].len, small().segment_bytes);
  EXPECT_EQ(segments[0].generation, 100U);
  EXPECT_FALSE(segments[0].node_id.empty());
}

TEST_P(OwnerTest, BothAddressesOfTheSegmentShowTheSameBytes) {
  const Segment segment = owner.segment();
  EXPECT_NE(segment.write_ptr, segment.read_ptr);
  *bytes_at(segment.write_ptr + 5) = 42;
  EXPECT_EQ(*bytes_at(segment.read_ptr + 5), 42);
}

TEST_P(OwnerTest, SegmentsAreWaitedForUntilTheyAreMounted) {
  owner.mount_at(7 * kSecond);
  EXPECT_EQ(start_fails({"a"}), number(FluxonErrc::backend_unavailable));
  EXPECT_TRUE(owner.wait_local_segments_ready().has_value());
  EXPECT_EQ(clock.now_ns(), 7 * kSecond);
  EXPECT_EQ(start_fails({"a"}), 0);
}

TEST_P(OwnerTest, WhatWasBegunCanEndAlthoughNothingIsMounted) {
  store({"a"});
  const PlanPtr written = start({"b"});
  const PlanPtr view = read({"a"});
  const GetHandle handle = look({"a"}).handle;
  owner.mount_at(kNever);
  EXPECT_TRUE(owner.put_abort(written).has_value());
  EXPECT_TRUE(owner.release_views(view).has_value());
  EXPECT_TRUE(owner.cancel_get_transfer(handle).has_value());
  EXPECT_EQ(errc_of(owner.remove("a")), number(FluxonErrc::backend_unavailable));
  EXPECT_EQ(errc_of(owner.get("a")), number(FluxonErrc::backend_unavailable));
}

TEST_P(OwnerTest, AMountThatNeverComesIsTold) {
  owner.mount_at(kNever);
  EXPECT_EQ(errc_of(owner.wait_local_segments_ready()), number(FluxonErrc::timeout));
  EXPECT_EQ(clock.now_ns(), 0);
}

// ---- The plan blob

TEST_P(OwnerTest, APutPlanIsATableOfWriteAddressesInKeyOrder) {
  const PlanPtr plan = start({"a", "b"});
  EXPECT_EQ(plan.address % 8, 0U);
  EXPECT_EQ(words_of(plan, 2), (std::vector<std::uint64_t>{kPlanMagic, 2, owner.peek("a")->write_address,
                                                           owner.peek("b")->write_address}));
  EXPECT_EQ(owner.place_of(words_of(plan, 2)[2]).kind, Place::Kind::segment);
  EXPECT_FALSE(owner.place_of(words_of(plan, 2)[2]).read_side);
}

TEST_P(OwnerTest, AReadPlanIsATableOfReadAddressesInKeyOrder) {
  store({"a"}, 1);
  store({"b"}, 2);
  const std::vector<std::uint64_t> words = words_of(read({"b", "a"}), 2);
  EXPECT_EQ(words,
            (std::vector<std::uint64_t>{kPlanMagic, 2, owner.peek("b")->read_address, owner.peek("a")->read_address}));
  EXPECT_TRUE(owner.place_of(words[2]).read_side);
  EXPECT_EQ(*bytes_at(words[2]), 2);
  EXPECT_EQ(*bytes_at(words[3]), 1);
}

TEST_P(OwnerTest, AFreedBlobIsScribbledOverAndItsAddressIsTheNextPlans) {
  const PlanPtr aborted = start({"a"});
  EXPECT_TRUE(owner.put_abort(aborted).has_value());
  EXPECT_NE(words_of(aborted, 1)[0], kPlanMagic);
  EXPECT_EQ(start({"b", "c"}), aborted);
  const PlanPtr other = start({"d"});
  EXPECT_TRUE(owner.put_abort(other).has_value());
  EXPECT_TRUE(owner.put_abort(aborted).has_value());
  EXPECT_EQ(start({"e"}), aborted) << "what was freed last is used first";
}

TEST_P(OwnerTest, ACommitsBlobIsFreedWithoutAnyWait) {
  const PlanPtr plan = start({"a"});
  const FluxonBackend::Future future = commit(plan);
  EXPECT_FALSE(owner.plan(plan).has_value());
  EXPECT_EQ(start({"b"}), plan);
}

TEST_P(OwnerTest, AReleasedPlansAddressesAreInvalidAtOnce) {
  store({"a"});
  const PlanPtr plan = read({"a"});
  EXPECT_TRUE(owner.release_views(plan).has_value());
  EXPECT_NE(words_of(plan, 1)[0], kPlanMagic);
  EXPECT_FALSE(owner.plan(plan).has_value());
}

// ---- put_start

TEST_P(OwnerTest, PutStartRefusesWhatTheContractCallsInvalid) {
  const std::int32_t invalid = number(FluxonErrc::invalid_argument);
  EXPECT_EQ(start_fails({}), invalid);
  EXPECT_EQ(start_fails({"a"}, 0), invalid);
  EXPECT_EQ(start_fails({"a"}, small().grant_bytes + 1), invalid);
  const std::vector<std::uint8_t> mask{1, 1};
  EXPECT_EQ(start_fails({"a"}, kValueBytes, {.mask = mask, .put_group_lens = {}}), invalid);
  for (const Groups& groups : {Groups{1}, Groups{3}, Groups{2, 0}}) {
    EXPECT_EQ(start_fails({"a", "b"}, kValueBytes, {.mask = {}, .put_group_lens = groups}), invalid);
  }
  EXPECT_EQ(owner.live_plans(), 0U);
  EXPECT_FALSE(owner.peek("a").has_value());
}

TEST_P(OwnerTest, PutStartTakesAMaskAndGroupsThatFit) {
  const std::vector<std::uint8_t> mask{1, 0};
  const Groups groups{1, 1};
  EXPECT_EQ(start_fails({"a", "b"}, kValueBytes, {.write_through = true, .mask = mask, .put_group_lens = groups}), 0);
}

TEST_P(OwnerTest, APutGroupHasAtMost4096Keys) {
  OwnerOptions options = small();
  options.grant_bytes = options.segment_bytes = 5000 * kSlotAlignment;
  owner.reset(options);
  std::vector<std::string> texts;
  for (int at = 0; at < 4097; ++at) texts.push_back(std::to_string(at));
  Names names(texts.begin(), texts.end());
  EXPECT_EQ(start_fails(names), number(FluxonErrc::invalid_argument));
  const Groups uneven{4097};
  EXPECT_EQ(start_fails(names, kValueBytes, {.mask = {}, .put_group_lens = uneven}),
            number(FluxonErrc::invalid_argument));
  const Groups halves{4096, 1};
  EXPECT_EQ(start_fails(names, kValueBytes, {.mask = {}, .put_group_lens = halves}), 0);
}

TEST_P(OwnerTest, SlotsAreClaimedAllOrNothing) {
  store({"1", "2", "3", "4", "5", "6", "7"});
  EXPECT_EQ(start_fails({"a", "b"}), number(FluxonErrc::network));
  EXPECT_FALSE(owner.peek("a").has_value());
  EXPECT_EQ(start_fails({"a"}), 0);
}

TEST_P(OwnerTest, WithoutAFreeSlotPutStartWaits30SecondsAndFailsAsNetwork) {
  owner.choose_next_commit({.keys = {}, .route_after_ns = kPutStartWaitLimit - 1});
  store({"1", "2", "3", "4", "5", "6", "7", "8"});
  EXPECT_EQ(start_fails({"a"}), number(FluxonErrc::network));
  EXPECT_EQ(clock.now_ns(), kPutStartWaitLimit);
}

TEST_P(OwnerTest, ASlotFreedInTheLastMomentIsTaken) {
  start({"1", "2", "3", "4", "5", "6", "7", "8"});
  clock.advance_to(kPlanTimeout - kPutStartWaitLimit);
  EXPECT_EQ(start_fails({"a"}), 0);
  EXPECT_EQ(clock.now_ns(), kPlanTimeout);
}

TEST_P(OwnerTest, PutStartGoesOnAsSoonAsASlotIsFree) {
  store_and_route({"1", "2", "3", "4", "5", "6", "7", "8"});
  const PlanPtr plan = read({"1"});
  EXPECT_TRUE(owner.remove("1").has_value());
  EXPECT_TRUE(owner.release_views(plan).has_value());
  const Nanos released_at_ns = clock.now_ns();
  start({"a"});
  EXPECT_EQ(clock.now_ns(), released_at_ns + small().holder_drop_delay_ns);
}

TEST_P(OwnerTest, TheDropOfHoldersMayTakeAsLongAsIsChosen) {
  store_and_route({"1"});
  owner.choose_next_release_drops_after(kMinute);
  const PlanPtr plan = read({"1"});
  EXPECT_TRUE(owner.release_views(plan).has_value());
  clock.advance_by(kMinute - 1);
  EXPECT_EQ(owner.holders(), 1U);
  clock.advance_by(1);
  EXPECT_EQ(owner.holders(), 0U);
  EXPECT_TRUE(owner.release_views(read({"1"})).has_value());  // the next one as always
  clock.advance_by(small().holder_drop_delay_ns);
  EXPECT_EQ(owner.holders(), 0U);
}

TEST_P(OwnerTest, ThereIsRoomAsLongAsAPutWouldNotWait) {
  start({"1", "2", "3", "4", "5", "6"});
  EXPECT_TRUE(owner.has_room(2, 1));
  EXPECT_FALSE(owner.has_room(3, 1));
}

TEST_P(OwnerTest, ALiveHandleTellsWhatItCanTransfer) {
  store_and_route({"1", "2"});
  const GetHandle handle = look({"1", "2", "3"}, {1, 1, 1}).handle;
  EXPECT_EQ(owner.transferable(handle), 2U);
  EXPECT_TRUE(owner.cancel_get_transfer(handle).has_value());
  EXPECT_EQ(owner.transferable(handle), std::nullopt);
}

TEST_P(OwnerTest, AStoredKeyIsRefusedAndAReservedOneToo) {
  store({"stored"});
  start({"reserved"});
  EXPECT_EQ(start_fails({"new", "stored"}), number(FluxonErrc::key_already_exists));
  EXPECT_EQ(start_fails({"new", "reserved"}), number(FluxonErrc::key_being_written));
  EXPECT_FALSE(owner.peek("new").has_value());
}

TEST_P(OwnerTest, AKeyMerelyInFlightCanAnswerAlreadyExists) {
  owner.choose_next_commit({.keys = {{Fate::stored_later, -103, kSecond}}, .route_after_ns = {}});
  const FluxonBackend::Future future = commit(start({"a"}));
  EXPECT_EQ(start_fails({"a"}), number(FluxonErrc::key_already_exists));
  EXPECT_EQ(look({"a"}).raw_prefix_hit_len, 0U) << "it does not prove that the value is readable";
}

TEST_P(OwnerTest, WithoutTheRejectFlagsAPutOverwrites) {
  store({"a"}, 1);
  const PutOptions overwriting{
      .reject_if_exists = false, .reject_if_being_written = false, .mask = {}, .put_group_lens = {}};
  const Names name{"a"};
  const PlanPtr plan = owner.local_fast_put_start(name, kValueBytes, overwriting).value();
  std::memset(bytes_at(addresses_of(plan)[0]), 2, kValueBytes);
  EXPECT_EQ(owner.get("a").value().front(), std::byte{1}) << "until the commit the old value stays";
  EXPECT_EQ(codes_of(plan), Codes{0});
  EXPECT_EQ(owner.get("a").value(), std::vector<std::byte>(kValueBytes, std::byte{2}));
  EXPECT_EQ(owner.stored_keys(), 1U);
  expect_at_rest();
}

TEST_P(OwnerTest, OneKeyTwiceInABatchIsDamage) {
  EXPECT_EQ(start_fails({"a", "b", "a"}), number(FluxonErrc::invalid_argument));
  const std::vector<Incident> incidents = owner.take_incidents();
  ASSERT_EQ(incidents.size(), 1U);
  EXPECT_EQ(incidents[0].kind, IncidentKind::duplicate_key);
  EXPECT_EQ(incidents[0].last_key, "a");
  expect_at_rest();
}

TEST_P(OwnerTest, ALostPlanKeepsItsKeysAndSlotsUntilThePlanTimeOut) {
  start({"a"});
  clock.advance_by(kPlanTimeout - 1);
  EXPECT_EQ(start_fails({"a"}), number(FluxonErrc::key_being_written));
  EXPECT_EQ(owner.held_bytes(), kSlotAlignment);
  clock.advance_by(1);
  EXPECT_EQ(owner.held_bytes(), 0U);
  EXPECT_EQ(start_fails({"a"}), 0);
}

// ---- Commit

TEST_P(OwnerTest, ACommittedKeyIsReadableAtOnceAndRoutedALittleLater) {
  const PlanPtr plan = start({"a"});
  EXPECT_EQ(state_of("a"), KeyState::prepared);
  FluxonBackend::Future future = commit(plan);
  EXPECT_EQ(state_of("a"), KeyState::local_visible);
  EXPECT_TRUE(look({"a"}).all_hit) << "also before the code is seen";
  EXPECT_EQ(future.wait(0).value(), Codes{0});
  clock.advance_by(25 * kMillisecond - 1);
  EXPECT_EQ(state_of("a"), KeyState::local_visible);
  clock.advance_by(1);
  EXPECT_EQ(state_of("a"), KeyState::committed);
}

TEST_P(OwnerTest, ACommitsWorkRunsAlthoughNobodyWaits) {
  owner.choose_next_commit({.keys = {{Fate::stored_later, 0, kSecond}}, .route_after_ns = {}});
  {
    const FluxonBackend::Future dropped = commit(start({"a"}));
  }
  clock.advance_by(kSecond + 25 * kMillisecond);
  EXPECT_EQ(state_of("a"), KeyState::committed);
  expect_at_rest();
}

TEST_P(OwnerTest, OnlyAnOpenPutPlanCanBeCommitted) {
  store({"a"});
  const std::int32_t invalid = number(FluxonErrc::invalid_argument);
  EXPECT_EQ(errc_of(owner.local_fast_put_commit({0})), invalid);
  EXPECT_EQ(errc_of(owner.local_fast_put_commit(read({"a"}))), invalid);
  owner.choose_next_commit({.keys = {}, .answer_after_ns = kSecond, .route_after_ns = {}});
  const PlanPtr plan = start({"b"});
  const FluxonBackend::Future future = commit(plan);
  EXPECT_EQ(errc_of(owner.local_fast_put_commit(plan)), invalid) << "committing";
  clock.advance_by(kSecond);
  EXPECT_EQ(errc_of(owner.local_fast_put_commit(plan)), invalid) << "ended";
}

TEST_P(OwnerTest, EveryKeyOfACommitHasItsOwnFate) {
  owner.choose_next_commit({.keys = {{}, {Fate::not_stored, -103}, {Fate::stored, -608}}, .route_after_ns = {}});
  EXPECT_EQ(codes_of(start({"a", "b", "c", "d"})), (Codes{0, -103, -608, 0}));
  EXPECT_EQ(state_of("a"), KeyState::local_visible);
  EXPECT_EQ(state_of("b"), std::nullopt);
  EXPECT_EQ(state_of("c"), KeyState::local_visible) << "unknown may mean stored";
  EXPECT_EQ(owner.held_bytes(), 3 * kSlotAlignment) << "a stored-nothing outcome frees the slot";
  expect_at_rest();
}

TEST_P(OwnerTest, AnUnknownKeyCanAppearWithinTheSettleBound) {
  owner.choose_next_commit({.keys = {{Fate::stored_later, -103, kSettleBound}}, .route_after_ns = {}});
  EXPECT_EQ(codes_of(start({"a"})), Codes{-103});
  clock.advance_by(kSettleBound - 1);
  EXPECT_EQ(look({"a"}).raw_prefix_hit_len, 0U);
  clock.advance_by(1);
  EXPECT_EQ(look({"a"}).raw_prefix_hit_len, 1U);
  EXPECT_EQ(errc_of(owner.remove("a")), number(FluxonErrc::key_not_found));
  clock.advance_by(25 * kMillisecond);
  EXPECT_EQ(errc_of(owner.remove("a")), 0);
}

TEST_P(OwnerTest, CodeZeroIsNotAnsweredBeforeTheKeyIsStored) {
  owner.choose_next_commit({.keys = {{}, {Fate::stored_later, 0, kSecond}}, .route_after_ns = {}});
  FluxonBackend::Future future = commit(start({"a", "b"}));
  EXPECT_EQ(future.wait(kMinute).value(), (Codes{0, 0}));
  EXPECT_EQ(clock.now_ns(), kSecond);
  EXPECT_EQ(state_of("b"), KeyState::local_visible);
}

TEST_P(OwnerTest, AWaitEndsAtItsLimitAndTheFutureLives) {
  owner.choose_next_commit({.keys = {}, .answer_after_ns = 10 * kSecond, .route_after_ns = {}});
  FluxonBackend::Future future = commit(start({"a"}));
  EXPECT_EQ(errc_of(future.wait(4 * kSecond)), number(FluxonErrc::timeout));
  EXPECT_EQ(clock.now_ns(), 4 * kSecond);
  EXPECT_EQ(future.wait(6 * kSecond).value(), Codes{0});
  EXPECT_EQ(clock.now_ns(), 10 * kSecond);
}

TEST_P(OwnerTest, ASecondWaitFails) {
  FluxonBackend::Future future = commit(start({"a"}));
  EXPECT_TRUE(future.wait(0).has_value());
  EXPECT_EQ(errc_of(future.wait(0)), number(FluxonErrc::general));
}

TEST_P(OwnerTest, AFailedFutureTellsNoCodesAlthoughTheKeysAreStored) {
  owner.choose_next_commit({.keys = {}, .future_fails = true, .route_after_ns = {}});
  FluxonBackend::Future future = commit(start({"a"}));
  EXPECT_EQ(errc_of(future.wait(0)), number(FluxonErrc::general));
  EXPECT_EQ(state_of("a"), KeyState::local_visible);
}

TEST_P(OwnerTest, FuturesResolveOutOfOrder) {
  owner.choose_next_commit({.keys = {}, .answer_after_ns = 10 * kSecond, .route_after_ns = {}});
  FluxonBackend::Future slow = commit(start({"a"}));
  FluxonBackend::Future fast = commit(start({"b"}));
  EXPECT_EQ(fast.wait(0).value(), Codes{0});
  EXPECT_EQ(slow.wait(10 * kSecond).value(), Codes{0});
}

TEST_P(OwnerTest, ARouteCanTakeLong) {
  owner.choose_next_commit({.keys = {}, .route_after_ns = 40 * kSecond});
  EXPECT_EQ(codes_of(start({"a"})), Codes{0});
  clock.advance_by(40 * kSecond - 1);
  EXPECT_EQ(state_of("a"), KeyState::local_visible);
  clock.advance_by(1);
  EXPECT_EQ(state_of("a"), KeyState::committed);
}

TEST_P(OwnerTest, ARouteMeantForAnOverwrittenValueRoutesNoOther) {
  store({"a"});
  EXPECT_TRUE(owner.put("a", std::vector<std::byte>(1)).has_value());
  clock.advance_by(10 * kMillisecond);
  store({"b"});
  clock.advance_by(15 * kMillisecond);
  EXPECT_EQ(state_of("a"), KeyState::committed);
  EXPECT_EQ(state_of("b"), KeyState::local_visible);
}

TEST_P(OwnerTest, AChoiceHoldsForOneCommit) {
  owner.choose_next_commit({.keys = {{Fate::not_stored, -103}}, .route_after_ns = {}});
  EXPECT_EQ(codes_of(start({"a"})), Codes{-103});
  EXPECT_EQ(codes_of(start({"b"})), Codes{0});
}

TEST_P(OwnerTest, NoOwnerSaysStoredOfWhatIsNot) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  owner.choose_next_commit({.keys = {{Fate::not_stored, 0}}, .route_after_ns = {}});
  EXPECT_DEATH((void)owner.local_fast_put_commit(start({"a"})), "no owner answers 0");
}

TEST_P(OwnerTest, PastThePlanTimeOutASlotIsAnothersAndACommitSaysReservationGone) {
  const PlanPtr plan = start({"a", "b"});
  const std::uintptr_t address = addresses_of(plan)[1];
  clock.advance_by(kPlanTimeout);
  EXPECT_EQ(words_of(plan, 2)[0], kPlanMagic) << "the plan pointer still works";
  EXPECT_TRUE(owner.plan(plan)->expired);
  EXPECT_EQ(addresses_of(start({"c"}))[0], address);
  EXPECT_EQ(codes_of(plan), (Codes{-118, -118}));
  EXPECT_EQ(state_of("a"), std::nullopt);
  EXPECT_FALSE(owner.plan(plan).has_value());
}

TEST_P(OwnerTest, ACopyBehindItsValueIsFoundAtTheCommit) {
  const PlanPtr plan = start({"a", "b"});
  bytes_at(addresses_of(plan)[1])[kValueBytes + 3] = 1;
  codes_of(plan);
  const std::vector<Incident> incidents = owner.take_incidents();
  ASSERT_EQ(incidents.size(), 1U);
  EXPECT_EQ(incidents[0].kind, IncidentKind::red_zone_written);
  EXPECT_EQ(incidents[0].where, "seg g1+0x1000");
  EXPECT_EQ(incidents[0].slot_offset, 0x1000U);
  EXPECT_EQ(incidents[0].first_wrong_byte, kValueBytes + 3);
  EXPECT_EQ(incidents[0].last_key, "b");
  EXPECT_EQ(incidents[0].last_plan, 1U);
}

TEST_P(OwnerTest, ACopyIntoAnEndedPlanIsFoundWhenItsSlotIsHandedOut) {
  const PlanPtr plan = start({"late"});
  const std::uintptr_t address = addresses_of(plan)[0];
  EXPECT_TRUE(owner.put_abort(plan).has_value());
  *bytes_at(address) = 1;
  EXPECT_FALSE(owner.has_incidents());
  EXPECT_EQ(addresses_of(start({"next"}))[0], address);
  const std::vector<Incident> incidents = owner.take_incidents();
  ASSERT_EQ(incidents.size(), 1U);
  EXPECT_EQ(to_string(incidents[0]), "free slot written at seg g1+0x0, first wrong byte 0, last key late, last plan 1");
}

// ---- Abort

TEST_P(OwnerTest, AnAbortFreesReservationsAndSlots) {
  EXPECT_TRUE(owner.put_abort(start({"a", "b"})).has_value());
  expect_at_rest();
  EXPECT_EQ(start_fails({"a", "b"}), 0);
}

TEST_P(OwnerTest, AFailedAbortEndsThePlanAndLeavesKeysReservedUntilThePlanTimeOut) {
  const PlanPtr plan = start({"a", "b", "c"});
  owner.choose_next_abort({.first_reserved_key_index = 1});
  EXPECT_EQ(errc_of(owner.put_abort(plan)), number(FluxonErrc::network));
  EXPECT_EQ(owner.live_plans(), 0U);
  EXPECT_EQ(errc_of(owner.put_abort(plan)), number(FluxonErrc::invalid_argument));
  EXPECT_EQ(state_of("a"), std::nullopt);
  EXPECT_EQ(start_fails({"b"}), number(FluxonErrc::key_being_written));
  EXPECT_EQ(owner.prepared_slots(), 2U);
  clock.advance_by(kPlanTimeout);
  expect_at_rest();
}

TEST_P(OwnerTest, ACommittingPlanCannotBeAborted) {
  owner.choose_next_commit({.keys = {}, .answer_after_ns = kSecond, .route_after_ns = {}});
  const PlanPtr plan = start({"a"});
  FluxonBackend::Future future = commit(plan);
  EXPECT_TRUE(owner.plan(plan)->committing);
  EXPECT_EQ(errc_of(owner.put_abort(plan)), number(FluxonErrc::invalid_argument));
  EXPECT_EQ(future.wait(kSecond).value(), Codes{0});
}

TEST_P(OwnerTest, AbortingAReadPlanDropsItsHoldersWhichIsDamage) {
  store({"a"});
  EXPECT_TRUE(owner.put_abort(read({"a"})).has_value());
  EXPECT_EQ(owner.holders(), 0U);
  EXPECT_EQ(incident_kinds(), std::vector{IncidentKind::abort_of_read_plan});
  expect_at_rest();
}

INSTANTIATE_TEST_SUITE_P(Contract, OwnerTest, testing::ValuesIn(all_owner_kinds()), name_of_kind);

}  // namespace
}  // namespace holdfast::fakes
