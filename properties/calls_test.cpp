// The fault table is what may go wrong: no cell twice, none without a name, events at every call.
#include "holdfast/sim/calls.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string_view>
#include <tuple>

namespace holdfast::sim {
namespace {

TEST(Calls, EachNameIsItsOwn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kCallCount; ++i) {
    const auto call = static_cast<Call>(i);
    EXPECT_TRUE(names.insert(name_of(call)).second) << name_of(call);
    EXPECT_EQ(call_named(name_of(call)), call);
  }
  for (std::size_t i = 0; i < kFaultKindCount; ++i) {
    const auto kind = static_cast<FaultKind>(i);
    EXPECT_TRUE(names.insert(name_of(kind)).second) << name_of(kind);
    EXPECT_EQ(fault_kind_named(name_of(kind)), kind);
  }
  EXPECT_EQ(call_named("local_fast_put"), std::nullopt);
  EXPECT_EQ(fault_kind_named(""), std::nullopt);
}

TEST(FaultTable, NoCellIsThereTwice) {
  std::set<std::tuple<Call, FaultKind, std::int32_t>> cells;
  for (const LegalFault& legal : legal_faults()) {
    EXPECT_TRUE(cells.emplace(legal.call, legal.kind, legal.code).second)
        << name_of(legal.call) << " " << name_of(legal.kind) << " " << legal.code;
    EXPECT_TRUE(is_legal(legal.call, legal.kind, legal.code));
    EXPECT_FALSE(legal.note.empty());
  }
}

TEST(FaultTable, TheClientMayDieAtEveryCall) {
  for (std::size_t i = 0; i < kCallCount; ++i)
    EXPECT_TRUE(is_legal(static_cast<Call>(i), FaultKind::death, 0)) << name_of(static_cast<Call>(i));
}

TEST(FaultTable, LatenessAndEventsShowNoErrorOfTheirOwn) {
  for (const LegalFault& legal : legal_faults()) {
    const bool silent = legal.kind == FaultKind::late || legal.kind == FaultKind::gone ||
                        legal.kind == FaultKind::evict || legal.kind == FaultKind::death;
    if (silent) {
      EXPECT_EQ(legal.code, 0) << name_of(legal.call) << " " << name_of(legal.kind);
    }
  }
}

TEST(FaultTable, ACommitThatIsRefusedOrToldGoneWasNotStored) {
  constexpr std::int32_t kOwnerRestarted = -117;
  constexpr std::int32_t kReservationGone = -118;
  for (const std::int32_t code : {kOwnerRestarted, kReservationGone}) {
    EXPECT_TRUE(is_legal(Call::commit_wait, FaultKind::before, code));
    EXPECT_TRUE(is_legal(Call::commit_wait, FaultKind::part, code));
    EXPECT_FALSE(is_legal(Call::commit_wait, FaultKind::lost, code));
  }
  EXPECT_FALSE(is_legal(Call::local_fast_put_commit, FaultKind::lost, 7000));
  EXPECT_FALSE(is_legal(Call::local_fast_put_start, FaultKind::part, 7000));
}

}  // namespace
}  // namespace holdfast::sim
