// What happens to an owner without a call: time-outs, evictions, restarts, deaths; and its own runs.
#include "fluxon_owner_fixture.hpp"
#include "holdfast/fakes/fluxon_owner.hpp"
#include "mock_instances.hpp"

namespace holdfast::fakes {
namespace {

using Fate = KeyChoice::Fate;
using OwnerEventsTest = OwnerTest;

// ---- Time-outs

TEST_P(OwnerEventsTest, AHandleThatNeedsATransferTimesOut) {
  store_and_route({"a"});
  owner.choose_next_get_start({.needs_transfer = true, .failing_key_index = {}});
  const GetHandle handle = look({"a"}).handle;
  clock.advance_by(kHandleTimeout - 1);
  EXPECT_EQ(owner.live_handles(), 1U);
  clock.advance_by(1);
  EXPECT_EQ(owner.live_handles(), 0U);
  EXPECT_TRUE(owner.evict("a"));
  EXPECT_EQ(errc_of(owner.get_transfer(handle, 1)), number(FluxonErrc::key_not_found));
  EXPECT_EQ(errc_of(owner.cancel_get_transfer(handle)), number(FluxonErrc::invalid_argument)) << "consumed";
}

TEST_P(OwnerEventsTest, CancellingATimedOutHandleIsANoOp) {
  owner.choose_next_get_start({.needs_transfer = true, .failing_key_index = {}});
  const GetHandle handle = look({"a"}).handle;
  clock.advance_by(kHandleTimeout);
  EXPECT_TRUE(owner.cancel_get_transfer(handle).has_value());
  EXPECT_EQ(errc_of(owner.cancel_get_transfer(handle)), number(FluxonErrc::invalid_argument));
}

TEST_P(OwnerEventsTest, AHandleWhosePrefixIsLocalNeverTimesOut) {
  store({"a"});
  const GetHandle handle = look({"a"}).handle;
  clock.advance_by(100 * kHandleTimeout);
  EXPECT_TRUE(owner.get_transfer(handle, 1).has_value());
}

TEST_P(OwnerEventsTest, AnExpiredPlanEndsWithItsAbort) {
  const PlanPtr plan = start({"a"});
  clock.advance_by(kPlanTimeout);
  EXPECT_EQ(owner.live_plans(), 1U);
  EXPECT_TRUE(owner.put_abort(plan).has_value());
  expect_at_rest();
}

TEST_P(OwnerEventsTest, EndingAnExpiredPlanLeavesOtherTimeOutsAlone) {
  const PlanPtr expired = start({"a"});
  clock.advance_by(kSecond);
  const PlanPtr aborted = start({"b"});
  clock.advance_to(kPlanTimeout);
  const PlanPtr later = start({"c"});
  EXPECT_TRUE(owner.put_abort(aborted).has_value());
  EXPECT_TRUE(owner.put_abort(expired).has_value());
  EXPECT_EQ(owner.next_due_ns(), clock.now_ns() + kPlanTimeout);
  clock.advance_by(kPlanTimeout);
  EXPECT_TRUE(owner.plan(later)->expired);
}

TEST_P(OwnerEventsTest, ASubmittedCommitHasNoPlanTimeOut) {
  owner.choose_next_commit({.keys = {{Fate::stored_later, 0, kSettleBound}}, .route_after_ns = {}});
  const PlanPtr plan = start({"a"});
  clock.advance_by(kPlanTimeout - 1);
  FluxonBackend::Future future = commit(plan);
  EXPECT_EQ(future.wait(kSettleBound).value(), Codes{0});
  EXPECT_EQ(state_of("a"), KeyState::local_visible);
}

// ---- Eviction

TEST_P(OwnerEventsTest, OnlyRoutedKeysThatNobodyHoldsAreEvicted) {
  store_and_route({"held", "free"});
  store({"unrouted"});
  start({"reserved"});
  look({"held"});
  EXPECT_EQ(owner.evictable_keys(), std::vector<std::string>{"free"});
  for (const std::string_view key : {"held", "unrouted", "reserved", "absent"}) EXPECT_FALSE(owner.evict(key)) << key;
  EXPECT_TRUE(owner.evict("free"));
  EXPECT_EQ(look({"free"}).raw_prefix_hit_len, 0U);
  EXPECT_TRUE(owner.evictable_keys().empty());
}

TEST_P(OwnerEventsTest, OnlyRoutedKeysThatNobodyHoldsAreDamagedAndOneByteOfEachOnce) {
  store_and_route({"held", "free"}, 7);
  store({"unrouted"});
  start({"reserved"});
  look({"held"});
  for (const std::string_view key : {"held", "unrouted", "reserved", "absent"}) {
    EXPECT_FALSE(owner.damage(key, 3)) << key;
  }
  EXPECT_TRUE(owner.damage("free", 3));
  EXPECT_FALSE(owner.damage("free", 3));
  const KeyView view = owner.peek("free").value();
  EXPECT_TRUE(view.damaged);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < view.value_bytes; ++i) wrong += bytes_at(view.read_address)[i] == 7 ? 0 : 1;
  EXPECT_EQ(wrong, 1U);
  EXPECT_EQ(owner.damages(), 1U);
}

TEST_P(OwnerEventsTest, WhatIsStoredAnewIsNotDamaged) {
  store_and_route({"a"}, 7);
  ASSERT_TRUE(owner.damage("a", 0));
  ASSERT_TRUE(owner.remove("a").has_value());
  store_and_route({"a"}, 7);
  EXPECT_FALSE(owner.peek("a")->damaged);
}

TEST_P(OwnerEventsTest, StoredKeysAreListedInTheOrderTheyWereStored) {
  store({"c"});
  owner.choose_next_commit({.keys = {{Fate::stored_later, -103, kSecond}}, .route_after_ns = {}});
  codes_of(start({"late"}));
  store_and_route({"b", "a"});
  clock.advance_by(kMinute);
  EXPECT_EQ(owner.evictable_keys(), (std::vector<std::string>{"c", "b", "a", "late"}));
  EXPECT_TRUE(owner.evict("b"));
  store({"b"});
  std::vector<std::string> names;
  owner.for_each_stored_key([&](std::string_view name, const KeyView&) { names.emplace_back(name); });
  EXPECT_EQ(names, (std::vector<std::string>{"c", "a", "late", "b"}));
}

TEST_P(OwnerEventsTest, LeakedHoldersEndInPutsThatWaitAndFail) {
  store_and_route({"1", "2", "3", "4", "5", "6", "7", "8"});
  look({"1", "2", "3", "4", "5", "6", "7", "8"});
  EXPECT_TRUE(owner.evictable_keys().empty());
  EXPECT_EQ(start_fails({"a"}), number(FluxonErrc::network));
}

// ---- Restart of the owner

TEST_P(OwnerEventsTest, ARestartGivesANewGenerationAndMappingAndNothingIsLeft) {
  store({"a"});
  start({"b"});
  read({"a"});
  look({"a"});
  const Segment before = owner.segment();
  owner.restart(5);
  EXPECT_EQ(owner.segment().generation, before.generation + 5);
  EXPECT_NE(owner.segment().write_ptr, before.write_ptr);
  EXPECT_EQ(owner.stored_keys(), 0U);
  expect_at_rest();
  clock.advance_by(kPlanTimeout);
  expect_at_rest();
}

TEST_P(OwnerEventsTest, TwoRestartsWithinOneSecondShareAGeneration) {
  const Segment before = owner.segment();
  owner.restart(0);
  EXPECT_EQ(owner.segment().generation, before.generation);
  EXPECT_NE(owner.segment().write_ptr, before.write_ptr);
  EXPECT_EQ(owner.incarnation(), 2U);
}

TEST_P(OwnerEventsTest, OldPagesStayMappedSoAStaleCopySucceedsSilently) {
  store({"a"}, 9);
  const std::uintptr_t address = owner.peek("a")->write_address;
  owner.restart();
  EXPECT_EQ(*bytes_at(address), 9);
  std::memset(bytes_at(address), 1, kValueBytes);
  look({"a"});
  store({"b"});
  owner.check_all_slots();
  EXPECT_FALSE(owner.has_incidents());
}

TEST_P(OwnerEventsTest, AfterARestartPutStartFailsOnce) {
  owner.restart();
  EXPECT_EQ(start_fails({"a"}), number(FluxonErrc::backend_unavailable));
  EXPECT_EQ(start_fails({"a"}), 0);
}

TEST_P(OwnerEventsTest, GetStartRemoveAndSegmentsReconnectByThemselves) {
  owner.restart();
  EXPECT_EQ(look({"a"}).raw_prefix_hit_len, 0U);
  EXPECT_EQ(start_fails({"a"}), 0);
  owner.restart();
  EXPECT_EQ(errc_of(owner.remove("a")), number(FluxonErrc::key_not_found));
  EXPECT_EQ(start_fails({"a"}), 0);
  owner.restart();
  EXPECT_TRUE(owner.wait_local_segments_ready().has_value());
  EXPECT_EQ(start_fails({"a"}), 0);
}

TEST_P(OwnerEventsTest, AfterARestartAnOldPlanCannotBeCommittedAndAbortingItIsHarmless) {
  const PlanPtr plan = start({"a"});
  owner.restart();
  EXPECT_EQ(errc_of(owner.local_fast_put_commit(plan)), number(FluxonErrc::backend_unavailable));
  EXPECT_TRUE(owner.put_abort(plan).has_value());
  EXPECT_EQ(errc_of(owner.put_abort(plan)), number(FluxonErrc::invalid_argument));
}

TEST_P(OwnerEventsTest, AfterARestartAnOldHandleIsConsumedByATransferAndCancelledWithSuccess) {
  store({"a"});
  const GetHandle first = look({"a"}).handle;
  const GetHandle second = look({"a"}).handle;
  owner.restart();
  EXPECT_EQ(errc_of(owner.get_transfer(first, 1)), number(FluxonErrc::backend_unavailable));
  EXPECT_EQ(errc_of(owner.get_transfer(first, 1)), number(FluxonErrc::invalid_argument));
  EXPECT_TRUE(owner.cancel_get_transfer(second).has_value());
}

TEST_P(OwnerEventsTest, AfterARestartReleasingAnOldPlanIsHarmless) {
  store({"a"});
  const PlanPtr plan = read({"a"});
  owner.restart();
  EXPECT_TRUE(owner.release_views(plan).has_value());
  EXPECT_EQ(errc_of(owner.release_views(plan)), number(FluxonErrc::invalid_argument));
}

TEST_P(OwnerEventsTest, HandleNumbersStartAgainSoAnOldNumberEndsANewHandle) {
  const GetHandle old_handle = look({"a"}).handle;
  EXPECT_EQ(old_handle.number, 1U);
  owner.restart();
  EXPECT_EQ(look({"a"}).handle, old_handle);
  EXPECT_TRUE(owner.cancel_get_transfer(old_handle).has_value());
  EXPECT_EQ(owner.live_handles(), 0U);
}

TEST_P(OwnerEventsTest, AnOldPlansAddressCanBeANewPlans) {
  const PlanPtr old_plan = start({"a"});
  owner.restart();
  look({"a"});
  EXPECT_EQ(start({"a"}), old_plan);
}

TEST_P(OwnerEventsTest, ACommitUndecidedAtARestartSaysOwnerRestarted) {
  owner.choose_next_commit({.keys = {}, .answer_after_ns = 10 * kSecond, .route_after_ns = {}});
  FluxonBackend::Future undecided = commit(start({"a", "b"}));
  FluxonBackend::Future decided = commit(start({"c"}));
  owner.restart();
  EXPECT_EQ(undecided.wait(0).value(), (Codes{-117, -117}));
  EXPECT_EQ(decided.wait(0).value(), Codes{0});
  clock.advance_by(kMinute);
  expect_at_rest();
}

TEST_P(OwnerEventsTest, NothingRollsForwardPastANewGeneration) {
  owner.choose_next_commit({.keys = {{Fate::stored_later, -103, kSecond}}, .route_after_ns = {}});
  codes_of(start({"a"}));
  owner.restart();
  clock.advance_by(kMinute);
  EXPECT_EQ(state_of("a"), std::nullopt);
}

TEST_P(OwnerEventsTest, MappingsAreUsedInTurnAndWatchedAgain) {
  const Segment first = owner.segment();
  store({"a"});
  const std::uintptr_t address = owner.peek("a")->write_address;
  for (int count = 0; count < 3; ++count) owner.restart();
  EXPECT_EQ(owner.segment().write_ptr, first.write_ptr);
  look({"x"});
  EXPECT_EQ(owner.label(address), "seg g4+0x0");
  *bytes_at(address) = 1;
  EXPECT_EQ(addresses_of(start({"b"}))[0], address);
  const std::vector<Incident> incidents = owner.take_incidents();
  ASSERT_EQ(incidents.size(), 1U);
  EXPECT_EQ(incidents[0].last_key, "a");
}

// ---- Death and end of a client

TEST_P(OwnerEventsTest, ADeadClientsSlotsAreFreedAtThePlanTimeOut) {
  const PlanPtr plan = start({"a"});
  owner.client_died();
  owner.new_client();
  EXPECT_EQ(owner.live_plans(), 0U);
  EXPECT_FALSE(owner.plan(plan).has_value());
  EXPECT_NE(words_of(plan, 1)[0], kPlanMagic);
  EXPECT_EQ(start_fails({"a"}), number(FluxonErrc::key_being_written));
  EXPECT_EQ(errc_of(owner.put_abort(plan)), number(FluxonErrc::invalid_argument)) << "unknown to the new client";
  clock.advance_by(kPlanTimeout);
  expect_at_rest();
}

TEST_P(OwnerEventsTest, ADeadClientsCommitsAreDecided) {
  owner.choose_next_commit(
      {.keys = {{Fate::stored_later, 0, kSecond}, {Fate::not_stored, -103}}, .route_after_ns = {}});
  FluxonBackend::Future future = commit(start({"a", "b"}));
  owner.client_died();
  EXPECT_EQ(errc_of(future.wait(kMinute)), number(FluxonErrc::store_closed));
  owner.new_client();
  EXPECT_EQ(errc_of(future.wait(kMinute)), number(FluxonErrc::store_closed));
  clock.advance_by(2 * kSecond);
  EXPECT_EQ(state_of("a"), KeyState::committed);
  EXPECT_EQ(state_of("b"), std::nullopt);
  expect_at_rest();
}

TEST_P(OwnerEventsTest, ADeadClientsPinsDropWithin360Seconds) {
  store_and_route({"a", "b"});
  const GetHandle handle = look({"a"}).handle;
  const PlanPtr plan = read({"b"});
  owner.client_died();
  EXPECT_EQ(owner.live_handles(), 0U);
  owner.new_client();
  EXPECT_EQ(errc_of(owner.cancel_get_transfer(handle)), number(FluxonErrc::invalid_argument));
  EXPECT_EQ(errc_of(owner.release_views(plan)), number(FluxonErrc::invalid_argument));
  EXPECT_EQ(owner.holders(), 2U);
  clock.advance_by(360 * kSecond - 1);
  EXPECT_FALSE(owner.evict("a"));
  clock.advance_by(1);
  EXPECT_TRUE(owner.evict("a"));
  EXPECT_TRUE(owner.evict("b"));
  expect_at_rest();
}

TEST_P(OwnerEventsTest, ANewClientsPinsStayWhenTheOldOnesDrop) {
  store_and_route({"a"});
  read({"a"});
  owner.new_client();
  read({"a"});
  EXPECT_EQ(owner.holders(), 2U);
  clock.advance_by(100 * kSecond);
  owner.client_died();
  clock.advance_by(260 * kSecond);
  EXPECT_EQ(owner.holders(), 1U);
  clock.advance_by(100 * kSecond);
  EXPECT_EQ(owner.holders(), 0U);
}

TEST_P(OwnerEventsTest, ADeadClientsCallsAnswerStoreClosedAndAClosedOnesGeneral) {
  const auto answers = [&] {
    const Names name{"a"};
    return std::vector<std::int32_t>{errc_of(owner.wait_local_segments_ready()),
                                     start_fails(name),
                                     errc_of(owner.local_fast_put_commit({1})),
                                     errc_of(owner.put_abort({1})),
                                     errc_of(owner.get_start(name, true, {})),
                                     errc_of(owner.get_transfer({1}, 1)),
                                     errc_of(owner.cancel_get_transfer({1})),
                                     errc_of(owner.release_views({1})),
                                     errc_of(owner.remove("a")),
                                     errc_of(owner.put("a", std::vector<std::byte>(1))),
                                     errc_of(owner.get("a"))};
  };
  owner.client_died();
  EXPECT_EQ(answers(), std::vector<std::int32_t>(11, number(FluxonErrc::store_closed)));
  owner.new_client();
  owner.close();
  EXPECT_EQ(answers(), std::vector<std::int32_t>(11, number(FluxonErrc::general)));
}

TEST_P(OwnerEventsTest, StoredValuesOutliveTheirClient) {
  store({"a"}, 3);
  owner.close();
  owner.new_client();
  EXPECT_EQ(owner.get("a").value().front(), std::byte{3});
}

// ---- Runs

TEST_P(OwnerEventsTest, AmongManyKeysEachIsFoundAndTheForgottenAreNot) {
  OwnerOptions options = small();
  options.segment_bytes = options.grant_bytes = 400 * kSlotAlignment;
  owner.reset(options);
  std::vector<std::string> names;
  for (int at = 0; at < 600; ++at) names.push_back("key" + std::to_string(at));
  for (int at = 0; at < 400; ++at) store({names[static_cast<std::size_t>(at)]});
  clock.advance_by(kSecond);
  for (std::size_t at = 0; at < 400; at += 2) EXPECT_TRUE(owner.remove(names[at]).has_value());
  for (std::size_t at = 400; at < 600; ++at) store({names[at]});
  for (std::size_t at = 0; at < 600; ++at) EXPECT_EQ(owner.peek(names[at]).has_value(), at % 2 == 1 || at >= 400) << at;
}

TEST_P(OwnerEventsTest, LabelsDoNotDependOnWhereTheArenaLies) {
  Arena elsewhere({.base_shift_pages = 16});
  VirtualClock other_clock;
  FakeOwner other(elsewhere, other_clock, small());
  EXPECT_EQ(owner.label(owner.segment().write_ptr + 0x2000), "seg g1+0x2000");
  EXPECT_EQ(other.label(other.segment().write_ptr + 0x2000), "seg g1+0x2000");
  EXPECT_EQ(other.label(other.segment().read_ptr), "seg g1 read+0x0");
  EXPECT_EQ(other.label(owner.segment().write_ptr), "?");
  EXPECT_EQ(owner.label(start({"a"}).address), "plan+0x0");
}

TEST_P(OwnerEventsTest, AResetOwnerIsAsIfNew) {
  const auto history = [](Owner& on, VirtualClock& time) {
    std::string log;
    const Names names{"a", "b"};
    for (int round = 0; round < 5; ++round) {
      const Result<PlanPtr> plan = on.local_fast_put_start(names, 5000, {});
      log += on.label(plan ? plan->address : 0) + " " + std::to_string(errc_of(plan)) + " ";
      if (plan) {
        const PlanView view = on.plan(*plan).value();
        for (const std::uintptr_t address : view.addresses) {
          log += on.label(address) + "=" + std::to_string(*bytes_at(address)) + " ";
          std::memset(bytes_at(address), round + 1, 5000);
        }
        (void)on.local_fast_put_commit(*plan);
      }
      const Result<GetStart> found = on.get_start(names, true, {});
      log += std::to_string(found->handle.number) + " " + std::to_string(on.held_bytes()) + "\n";
      time.advance_by(kSecond);
      if (round == 2) on.restart();
    }
    return log;
  };
  OwnerOptions options = small();
  options.segment_bytes *= 4;
  VirtualClock fresh_clock;
  const auto another = GetParam().make(fresh_clock, options);
  Owner& fresh = another->owner();
  const std::string expected = history(fresh, fresh_clock);

  history(owner, clock);
  FluxonBackend::Future of_an_earlier_run = commit(start({"more"}));
  start({"left over"});
  start({"left over too"});
  owner.choose_next_commit({.keys = {{Fate::not_stored, -103}}, .route_after_ns = {}});
  owner.close();
  clock.reset();
  owner.reset(options);
  EXPECT_EQ(errc_of(of_an_earlier_run.wait(0)), number(FluxonErrc::store_closed));
  EXPECT_EQ(history(owner, clock), expected);
}

TEST_P(OwnerEventsTest, AMockAnswersAsTheOwnerItDelegatesTo) {
  testing::NiceMock<MockFluxon> mock;
  mock.delegate_to(owner);
  const Names name{"a"};
  EXPECT_EQ(mock.local_fast_put_commit(mock.local_fast_put_start(name, 1, {}).value())->wait(0).value(), Codes{0});
  EXPECT_TRUE(mock.get_start(name, true, {})->all_hit);
  FluxonBackend::Future scripted = future_answering(Codes{-103});
  EXPECT_EQ(scripted.wait(0).value(), Codes{-103});
  EXPECT_EQ(errc_of(scripted.wait(0)), number(FluxonErrc::general));
}

INSTANTIATE_TEST_SUITE_P(Contract, OwnerEventsTest, testing::ValuesIn(all_owner_kinds()), name_of_kind);

}  // namespace
}  // namespace holdfast::fakes
