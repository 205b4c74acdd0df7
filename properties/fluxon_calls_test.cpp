// Owners against the Plan contract, by their calls alone: what can be asked of an owner that nobody can look into.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "owner_kinds.hpp"

namespace holdfast::fakes {
namespace {

using CallNames = std::vector<std::string_view>;
using GroupLens = std::vector<std::uint32_t>;

constexpr std::uint64_t kCallBytes = 300;
constexpr std::uint64_t kCallGrant = 4 * kSlotAlignment;

std::uint8_t* byte_at(std::uintptr_t address) { return reinterpret_cast<std::uint8_t*>(address); }
std::vector<std::byte> filled(std::uint8_t fill) { return std::vector<std::byte>(kCallBytes, std::byte{fill}); }
template <class T>
FluxonErrc failure_of(const Result<T>& result) {
  EXPECT_FALSE(result.has_value()) << "it succeeded";
  if (result) return {};
  EXPECT_EQ(result.error().origin, Origin::fluxon);
  return static_cast<FluxonErrc>(result.error().code);
}

class FluxonCallsTest : public testing::TestWithParam<OwnerKind> {
 protected:
  static OwnerOptions two_grants() {
    OwnerOptions options;
    options.grant_bytes = kCallGrant;
    options.segment_bytes = 2 * kCallGrant;
    return options;
  }
  Segment segment() { return owner.wait_local_segments_ready().value().front(); }
  PlanPtr start(const CallNames& names, std::uint64_t bytes = kCallBytes) {
    const auto plan = owner.local_fast_put_start(names, bytes, {});
    EXPECT_TRUE(plan.has_value()) << to_string(plan.error());
    return plan.value_or(PlanPtr{});
  }
  // The blob, as a reader checks it; `side`: where the addresses must lie.
  std::vector<std::uintptr_t> addresses_of(PlanPtr plan, std::size_t count, std::uintptr_t side) {
    EXPECT_NE(plan.address, 0U);
    EXPECT_EQ(plan.address % 8, 0U);
    const auto* words = reinterpret_cast<const std::uint64_t*>(plan.address);
    EXPECT_EQ(words[0], kPlanMagic);
    EXPECT_EQ(words[1], count);
    std::vector<std::uintptr_t> addresses(words + 2, words + 2 + count);
    for (const std::uintptr_t address : addresses) EXPECT_LE(address - side + kCallBytes, segment().len);
    return addresses;
  }
  std::vector<std::int32_t> commit(PlanPtr plan) {
    return owner.local_fast_put_commit(plan).value().wait(kPutStartWaitLimit).value();
  }
  void store(std::string_view name, std::uint8_t fill) {
    const PlanPtr plan = start({name});
    std::memset(byte_at(addresses_of(plan, 1, segment().write_ptr).front()), fill, kCallBytes);
    EXPECT_EQ(commit(plan), std::vector<std::int32_t>{0});
  }
  GetStart look(const CallNames& names, const GroupLens& groups = {}, bool best_effort = true) {
    return owner.get_start(names, best_effort, groups).value();
  }
  // Tries until what the owner does by itself has been done: by the clock it was given, or in real time.
  template <class Try>
  bool sooner_or_later(Try&& attempt) {
    for (int tries = 0; tries < 200; ++tries) {
      if (attempt()) return true;
      clock.advance_by(10 * kMillisecond);
      if (!owner.powers().shows_inside) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  VirtualClock clock;
  std::unique_ptr<OwnerUnderTest> under_test = GetParam().make(clock, two_grants());
  Owner& owner = under_test->owner();
};

TEST_P(FluxonCallsTest, OneSegmentAtTwoAddressesWithTheSameBytes) {
  const auto segments = owner.wait_local_segments_ready().value();
  ASSERT_EQ(segments.size(), 1U);
  EXPECT_TRUE(segments[0].segment_label == "external_owner:0" || segments[0].segment_label == "cpu:0");
  EXPECT_EQ(segments[0].len, two_grants().segment_bytes);
  EXPECT_NE(segments[0].generation, 0U);
  EXPECT_FALSE(segments[0].node_id.empty());
  const PlanPtr plan = start({"a"});
  const std::uintptr_t address = addresses_of(plan, 1, segments[0].write_ptr).front();
  *byte_at(address) = 42;
  EXPECT_EQ(*byte_at(segments[0].read_ptr + (address - segments[0].write_ptr)), 42);
  EXPECT_TRUE(owner.put_abort(plan).has_value());
}

TEST_P(FluxonCallsTest, APutPlanHasASlotOfItsOwnForEachKeyAndNoneCrossesAGrant) {
  const PlanPtr plan = start({"a", "b", "c", "d", "e"});
  const auto addresses = addresses_of(plan, 5, segment().write_ptr);
  const std::set<std::uintptr_t> different(addresses.begin(), addresses.end());
  EXPECT_EQ(different.size(), 5U);
  std::uintptr_t before = 0;
  for (const std::uintptr_t address : different) {
    EXPECT_GE(address - before, slot_bytes(kCallBytes));
    before = address;
    const std::uint64_t first = address - segment().write_ptr;
    EXPECT_EQ(first / kCallGrant, (first + kCallBytes - 1) / kCallGrant);
  }
  EXPECT_TRUE(owner.put_abort(plan).has_value());
}

TEST_P(FluxonCallsTest, WhatIsCommittedIsReadableAtOnceOnTheReadSide) {
  store("a", 1);
  store("b", 2);
  const GetStart found = look({"b", "a"});
  EXPECT_TRUE(found.all_hit);
  const PlanPtr plan = owner.get_transfer(found.handle, 2).value();
  const auto addresses = addresses_of(plan, 2, segment().read_ptr);
  EXPECT_EQ(byte_at(addresses[0])[kCallBytes - 1], 2);
  EXPECT_EQ(*byte_at(addresses[1]), 1);
  EXPECT_TRUE(owner.release_views(plan).has_value());
  EXPECT_EQ(failure_of(owner.release_views(plan)), FluxonErrc::invalid_argument);
}

TEST_P(FluxonCallsTest, PutStartRefusesWhatTheContractCallsInvalid) {
  const CallNames two{"a", "b"};
  EXPECT_EQ(failure_of(owner.local_fast_put_start({}, kCallBytes, {})), FluxonErrc::invalid_argument);
  EXPECT_EQ(failure_of(owner.local_fast_put_start(two, 0, {})), FluxonErrc::invalid_argument);
  EXPECT_EQ(failure_of(owner.local_fast_put_start(two, kMaxValueBytes + 1, {})), FluxonErrc::invalid_argument);
  const std::vector<std::uint8_t> mask{1};
  EXPECT_EQ(failure_of(owner.local_fast_put_start(two, kCallBytes, {.mask = mask, .put_group_lens = {}})),
            FluxonErrc::invalid_argument);
  const GroupLens groups{1, 2};
  EXPECT_EQ(failure_of(owner.local_fast_put_start(two, kCallBytes, {.mask = {}, .put_group_lens = groups})),
            FluxonErrc::invalid_argument);
}

TEST_P(FluxonCallsTest, UnderTheRejectFlagsAKeyIsWrittenByOneAndOnce) {
  const PlanPtr plan = start({"a"});
  const CallNames both{"new", "a"};
  EXPECT_EQ(failure_of(owner.local_fast_put_start(both, kCallBytes, {})), FluxonErrc::key_being_written);
  EXPECT_EQ(commit(plan), std::vector<std::int32_t>{0});
  EXPECT_EQ(failure_of(owner.local_fast_put_start(both, kCallBytes, {})), FluxonErrc::key_already_exists);
  EXPECT_EQ(look({"new"}).raw_prefix_hit_len, 0U);
  EXPECT_TRUE(owner.put_abort(start({"new"})).has_value()) << "nothing was reserved of it";
}

TEST_P(FluxonCallsTest, APlanEndsOnce) {
  const PlanPtr aborted = start({"a"});
  EXPECT_TRUE(owner.put_abort(aborted).has_value());
  EXPECT_EQ(failure_of(owner.put_abort(aborted)), FluxonErrc::invalid_argument);
  EXPECT_EQ(failure_of(owner.local_fast_put_commit(aborted)), FluxonErrc::invalid_argument);
  EXPECT_EQ(look({"a"}).raw_prefix_hit_len, 0U);
  const PlanPtr committed = start({"a"});
  EXPECT_EQ(commit(committed), std::vector<std::int32_t>{0});
  EXPECT_EQ(failure_of(owner.put_abort(committed)), FluxonErrc::invalid_argument);
  EXPECT_TRUE(look({"a"}).all_hit);
}

TEST_P(FluxonCallsTest, AFutureIsWaitedForOnce) {
  auto future = owner.local_fast_put_commit(start({"a", "b"})).value();
  EXPECT_EQ(future.wait(kPutStartWaitLimit).value(), (std::vector<std::int32_t>{0, 0}));
  EXPECT_FALSE(future.wait(0).has_value());
}

TEST_P(FluxonCallsTest, SlotsAreClaimedAllOrNothing) {
  const CallNames seven{"1", "2", "3", "4", "5", "6", "7"};
  const PlanPtr most = start(seven);
  const CallNames two{"a", "b"};
  EXPECT_EQ(failure_of(owner.local_fast_put_start(two, kCallBytes, {})), FluxonErrc::network);
  EXPECT_TRUE(owner.put_abort(start({"a"})).has_value()) << "the last slot is free, and neither key reserved";
  EXPECT_TRUE(owner.put_abort(most).has_value());
}

TEST_P(FluxonCallsTest, GetStartTellsThePrefixInKeysAndInWholeGroups) {
  store("a", 1);
  store("b", 2);
  store("c", 3);
  const GetStart found = look({"a", "b", "c", "x"}, {2, 2});
  EXPECT_EQ(found.raw_prefix_hit_len, 3U);
  EXPECT_EQ(found.transferable_len, 2U);
  EXPECT_EQ(found.prefix_hit_groups, 1U);
  EXPECT_EQ(found.first_miss_index, 3U);
  EXPECT_EQ(found.first_miss_group, 1U);
  EXPECT_FALSE(found.all_hit);
  EXPECT_TRUE(owner.cancel_get_transfer(found.handle).has_value());
  const GetStart nothing = look({"a", "x"}, {1, 1}, false);
  EXPECT_EQ(nothing.raw_prefix_hit_len, 1U);
  EXPECT_EQ(nothing.transferable_len, 0U);
  EXPECT_TRUE(owner.cancel_get_transfer(nothing.handle).has_value());
  const CallNames one{"a"};
  EXPECT_EQ(failure_of(owner.get_start({}, true, {})), FluxonErrc::invalid_argument);
  for (const GroupLens& groups : {GroupLens{2}, GroupLens{1, 0}}) {
    EXPECT_EQ(failure_of(owner.get_start(one, true, groups)), FluxonErrc::invalid_argument);
  }
}

TEST_P(FluxonCallsTest, AHandleLivesThroughABadLengthAndEndsOnce) {
  store("a", 1);
  store("b", 2);
  store("c", 3);
  const GetHandle handle = look({"a", "b", "c"}, {1, 2}).handle;
  for (const std::uint64_t length : {0U, 2U, 4U}) {
    EXPECT_EQ(failure_of(owner.get_transfer(handle, length)), FluxonErrc::invalid_argument) << length;
  }
  const PlanPtr plan = owner.get_transfer(handle, 1).value();
  EXPECT_EQ(*byte_at(addresses_of(plan, 1, segment().read_ptr).front()), 1);
  EXPECT_EQ(failure_of(owner.cancel_get_transfer(handle)), FluxonErrc::invalid_argument);
  EXPECT_TRUE(owner.release_views(plan).has_value());
  const GetHandle missed = look({"x"}).handle;
  EXPECT_TRUE(owner.cancel_get_transfer(missed).has_value());
  EXPECT_EQ(failure_of(owner.cancel_get_transfer(missed)), FluxonErrc::invalid_argument);
}

TEST_P(FluxonCallsTest, ARemovedKeyIsGoneAndItsBytesStayForWhoHoldsThem) {
  store("a", 7);
  const PlanPtr plan = owner.get_transfer(look({"a"}).handle, 1).value();
  const std::uintptr_t address = addresses_of(plan, 1, segment().read_ptr).front();
  EXPECT_TRUE(sooner_or_later([&] { return owner.remove("a").has_value(); })) << "once it is routed";
  EXPECT_EQ(look({"a"}).raw_prefix_hit_len, 0U);
  store("a", 8);
  EXPECT_EQ(*byte_at(address), 7);
  EXPECT_TRUE(owner.release_views(plan).has_value());
  EXPECT_EQ(failure_of(owner.remove("never stored")), FluxonErrc::key_not_found);
}

TEST_P(FluxonCallsTest, SlotsOfWhatWasRemovedAreUsedAgain) {
  for (int round = 0; round < 20; ++round) {
    store("a", static_cast<std::uint8_t>(round));
    EXPECT_EQ(owner.get("a").value(), filled(static_cast<std::uint8_t>(round)));
    EXPECT_TRUE(sooner_or_later([&] { return owner.remove("a").has_value(); }));
  }
}

TEST_P(FluxonCallsTest, WholeValuesArePutAndGotAndOverwritten) {
  EXPECT_EQ(failure_of(owner.get("a")), FluxonErrc::key_not_found);
  EXPECT_TRUE(owner.put("a", filled(1)).has_value());
  EXPECT_EQ(owner.get("a").value(), filled(1));
  EXPECT_TRUE(owner.put("a", filled(2)).has_value());
  EXPECT_EQ(owner.get("a").value(), filled(2));
}

TEST_P(FluxonCallsTest, AClosedClientsCallsAnswerGeneral) {
  store("a", 1);
  owner.close();
  const CallNames one{"a"};
  EXPECT_EQ(failure_of(owner.get_start(one, true, {})), FluxonErrc::general);
  EXPECT_EQ(failure_of(owner.local_fast_put_start(one, kCallBytes, {})), FluxonErrc::general);
  EXPECT_EQ(failure_of(owner.get("a")), FluxonErrc::general);
}

INSTANTIATE_TEST_SUITE_P(Contract, FluxonCallsTest, testing::ValuesIn(all_owner_kinds()), name_of_kind);

}  // namespace
}  // namespace holdfast::fakes
