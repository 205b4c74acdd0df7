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

TEST(FaultTable, EveryEventMayHappenAtEveryCall) {
  for (std::size_t i = 0; i < kCallCount; ++i) {
    for (const FaultKind kind : {FaultKind::gone, FaultKind::evict, FaultKind::time, FaultKind::death}) {
      EXPECT_TRUE(is_legal(static_cast<Call>(i), kind, 0)) << name_of(static_cast<Call>(i)) << " " << name_of(kind);
      EXPECT_TRUE(is_event(kind));
    }
  }
}

TEST(FaultTable, EveryCellIsFoundByItsNamesAndHasALegalFault) {
  for (std::size_t i = 0; i < legal_cells().size(); ++i) {
    const LegalCell& cell = legal_cells()[i];
    EXPECT_EQ(cell_index(cell.fault.call, cell.fault.kind, cell.fault.code, cell.state), i);
    EXPECT_TRUE(is_legal(cell.fault.call, cell.fault.kind, cell.fault.code));
    EXPECT_FALSE(name_of(cell.state).empty());
  }
}

TEST(FaultTable, EveryFaultHasACell) {
  for (const LegalFault& fault : legal_faults()) {
    bool has = false;
    for (std::size_t state = 0; state < kCallStateCount; ++state)
      has |= cell_index(fault.call, fault.kind, fault.code, static_cast<CallState>(state)).has_value();
    EXPECT_TRUE(has) << name_of(fault.call) << " " << name_of(fault.kind);
  }
}

TEST(FaultTable, StatesAreToldApartWhereTheContractSaysSo) {
  EXPECT_TRUE(cell_index(Call::local_fast_put_start, FaultKind::before, 4001, CallState::local_visible_no_slots));
  EXPECT_FALSE(cell_index(Call::local_fast_put_start, FaultKind::lost, 7000, CallState::committed));
  EXPECT_TRUE(cell_index(Call::commit_wait, FaultKind::lost, -608, CallState::decided_later));
  EXPECT_FALSE(cell_index(Call::commit_wait, FaultKind::lost, -608, CallState::not_stored));
  EXPECT_FALSE(cell_index(Call::commit_wait, FaultKind::part, -117, CallState::stored));
  EXPECT_TRUE(cell_index(Call::remove, FaultKind::before, 7000, CallState::committed));
  EXPECT_FALSE(cell_index(Call::remove, FaultKind::before, 7000, CallState::reserved));
  EXPECT_TRUE(cell_index(Call::put_abort, FaultKind::part, 7000, CallState::any));
}

TEST(FaultTable, LatenessAndEventsShowNoErrorOfTheirOwn) {
  for (const LegalFault& legal : legal_faults()) {
    const bool silent = legal.kind == FaultKind::late || is_event(legal.kind);
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
