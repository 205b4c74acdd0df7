// What the tests of the Plan contract share: an owner of one kind after the other, with small grants, and one line for
// each call.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "owner_kinds.hpp"

namespace holdfast::fakes {

using Names = std::vector<std::string_view>;
using Codes = std::vector<std::int32_t>;
using Groups = std::vector<std::uint32_t>;

inline constexpr std::uint64_t kValueBytes = 256;

// The number of a failure; 0 of a success.
template <class T>
std::int32_t errc_of(const Result<T>& result) {
  return result.has_value() ? 0 : result.error().code;
}
inline std::int32_t number(FluxonErrc errc) { return static_cast<std::int32_t>(errc); }

inline std::uint8_t* bytes_at(std::uintptr_t address) { return reinterpret_cast<std::uint8_t*>(address); }

// The blob as a reader sees it.
inline std::vector<std::uint64_t> words_of(PlanPtr plan, std::uint64_t keys) {
  std::vector<std::uint64_t> words(keys + 2);
  std::memcpy(words.data(), bytes_at(plan.address), words.size() * 8);
  return words;
}

class OwnerTest : public testing::TestWithParam<OwnerKind> {
 protected:
  void SetUp() override {
    if (!owner.powers().shows_inside || !owner.powers().takes_choices) {
      GTEST_SKIP() << "not decidable: this owner cannot be looked into";
    }
  }
  // Two grants of four small slots.
  static OwnerOptions small() {
    OwnerOptions options;
    options.grant_bytes = 4 * kSlotAlignment;
    options.segment_bytes = 2 * options.grant_bytes;
    options.first_generation = 100;
    return options;
  }

  PlanPtr start(const Names& names, std::uint64_t value_bytes = kValueBytes) {
    const Result<PlanPtr> plan = owner.local_fast_put_start(names, value_bytes, {});
    EXPECT_TRUE(plan.has_value()) << to_string(plan.error());
    return plan.value_or(PlanPtr{});
  }
  std::vector<std::uintptr_t> addresses_of(PlanPtr plan) {
    const PlanView view = owner.plan(plan).value();
    return {view.addresses.begin(), view.addresses.end()};
  }
  std::int32_t start_fails(const Names& names, std::uint64_t value_bytes = kValueBytes,
                           const PutOptions& options = {}) {
    return errc_of(owner.local_fast_put_start(names, value_bytes, options));
  }
  FluxonBackend::Future commit(PlanPtr plan) { return std::move(owner.local_fast_put_commit(plan).value()); }
  Codes codes_of(PlanPtr plan, Nanos limit_ns = 0) { return commit(plan).wait(limit_ns).value(); }
  // Keys whose every byte is `fill`, readable but not routed.
  void store(const Names& names, std::uint8_t fill = 1, std::uint64_t value_bytes = kValueBytes) {
    const PlanPtr plan = start(names, value_bytes);
    for (const std::uintptr_t address : addresses_of(plan)) std::memset(bytes_at(address), fill, value_bytes);
    EXPECT_EQ(codes_of(plan), Codes(names.size(), 0));
  }
  void store_and_route(const Names& names, std::uint8_t fill = 1, std::uint64_t value_bytes = kValueBytes) {
    store(names, fill, value_bytes);
    clock.advance_by(25 * kMillisecond);
  }
  GetStart look(const Names& names, const Groups& groups = {}, bool best_effort = true) {
    const Result<GetStart> found = owner.get_start(names, best_effort, groups);
    EXPECT_TRUE(found.has_value()) << to_string(found.error());
    return found.value_or(GetStart{});
  }
  PlanPtr read(const Names& names) { return owner.get_transfer(look(names).handle, names.size()).value(); }
  std::optional<KeyState> state_of(std::string_view key) {
    const std::optional<KeyView> view = owner.peek(key);
    return view ? std::optional(view->state) : std::nullopt;
  }
  std::vector<IncidentKind> incident_kinds() {
    std::vector<IncidentKind> kinds;
    for (const Incident& incident : owner.take_incidents()) kinds.push_back(incident.kind);
    return kinds;
  }
  // Nothing is left of what a client did but the values it stored.
  void expect_at_rest() {
    EXPECT_EQ(owner.live_plans(), 0U);
    EXPECT_EQ(owner.live_handles(), 0U);
    EXPECT_EQ(owner.undecided_commits(), 0U);
    EXPECT_EQ(owner.holders(), 0U);
    EXPECT_EQ(owner.prepared_slots(), 0U);
    EXPECT_EQ(owner.held_bytes(), owner.stored_keys() * kSlotAlignment);
    owner.check_all_slots();
    EXPECT_FALSE(owner.has_incidents());
  }

  VirtualClock clock;
  std::unique_ptr<OwnerUnderTest> under_test = GetParam().make(clock, small());
  Owner& owner = under_test->owner();
};

}  // namespace holdfast::fakes
