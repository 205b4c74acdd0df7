// Verdicts: what is switched off is neither counted nor violated, and a flood of violations stays bounded.
#include "holdfast/sim/invariants.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace holdfast::sim {
namespace {

constexpr auto index_of(Invariant invariant) { return static_cast<std::size_t>(invariant); }

TEST(Invariants, EachNameIsItsOwnAndHasAPromise) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kInvariantCount; ++i) {
    const auto invariant = static_cast<Invariant>(i);
    EXPECT_TRUE(names.insert(name_of(invariant)).second);
    EXPECT_EQ(invariant_named(name_of(invariant)), invariant);
    EXPECT_FALSE(promise_of(invariant).empty());
  }
  EXPECT_EQ(name_of(Invariant::ready_after_commit), "ready-after-commit");
  EXPECT_EQ(name_of(Invariant::quiescent_baseline), "quiescent-baseline");
  EXPECT_EQ(invariant_named("no-hazards"), std::nullopt);
}

TEST(Verdicts, ChecksAndViolationsAreKept) {
  Verdicts verdicts;
  verdicts.checked(Invariant::one_terminal);
  verdicts.checked(Invariant::one_terminal, 4);
  EXPECT_TRUE(verdicts.held());
  verdicts.violated({Invariant::one_terminal, 3, "put_abort", "twice", 5});
  EXPECT_FALSE(verdicts.held());
  EXPECT_EQ(verdicts.checks()[index_of(Invariant::one_terminal)], 5U);
  ASSERT_EQ(verdicts.violations().size(), 1U);
  EXPECT_EQ(verdicts.violations()[0].call, "put_abort");
}

TEST(Verdicts, WhatIsDisabledIsNeitherCountedNorViolated) {
  Verdicts verdicts;
  verdicts.disable(Invariant::exact_bytes);
  verdicts.checked(Invariant::exact_bytes);
  verdicts.violated({Invariant::exact_bytes, 1, "", "", 0});
  EXPECT_TRUE(verdicts.held());
  EXPECT_EQ(verdicts.checks()[index_of(Invariant::exact_bytes)], 0U);
}

TEST(Verdicts, AFloodOfViolationsStaysBounded) {
  Verdicts verdicts;
  for (std::uint32_t i = 0; i < 1'000; ++i) verdicts.violated({Invariant::exact_bytes, i, "", "", 0});
  EXPECT_EQ(verdicts.violations().size(), 32U);
  EXPECT_EQ(verdicts.violations().front().step, 0U);
}

TEST(Verdicts, ResetKeepsWhatIsDisabled) {
  Verdicts verdicts;
  verdicts.disable(Invariant::exact_bytes);
  verdicts.checked(Invariant::one_terminal);
  verdicts.violated({Invariant::one_terminal, 1, "", "", 0});
  verdicts.reset();
  EXPECT_TRUE(verdicts.held());
  EXPECT_EQ(verdicts.checks()[index_of(Invariant::one_terminal)], 0U);
  verdicts.violated({Invariant::exact_bytes, 1, "", "", 0});
  EXPECT_TRUE(verdicts.held());
}

}  // namespace
}  // namespace holdfast::sim
