// What a sweep came to, as tables within 100 columns.
#include <fmt/format.h>

#include <algorithm>

#include "holdfast/sim/sweep.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t kCallWidth = 26;
constexpr std::size_t kKindWidth = 7;
constexpr std::size_t kFiredWidth = 7;
constexpr auto kLegalKindCount = static_cast<std::size_t>(FaultKind::lie);  // the kinds of the fault table

// A shorter prefix is the caller's own choice: none was made where no fault struck one.
bool is_never_made(const LegalCell& cell, const FaultTally& faults) {
  if (cell.state != CallState::shorter_prefix) return false;
  for (std::size_t i = 0; i < kLegalCellCount; ++i) {
    if (legal_cells()[i].state == cell.state && faults.cells[i] > 0) return false;
  }
  return true;
}

using Kinds = std::array<SweepCounts, kFaultKindCount>;

std::string header(std::string_view first) {
  std::string text = fmt::format("{:<{}}", first, kCallWidth);
  for (std::size_t kind = 0; kind < kLegalKindCount; ++kind) {
    text += fmt::format("{:>{}}", name_of(static_cast<FaultKind>(kind)), kKindWidth);
  }
  return text + fmt::format("{:>{}} verdict\n", "fired", kFiredWidth);
}

std::string line(Call call, const Kinds& kinds) {
  std::string text = fmt::format(" {:<{}}", name_of(call), kCallWidth - 1);
  SweepCounts all;
  for (const SweepCounts& counts : std::span(kinds).first<kLegalKindCount>()) {
    text += fmt::format("{:>{}}", counts.cases == 0 ? std::string() : std::to_string(counts.cases), kKindWidth);
    all.fired += counts.fired;
    all.failed += counts.failed;
  }
  text += fmt::format("{:>{}} ", all.fired, kFiredWidth);
  return text + (all.failed == 0 ? std::string("held\n") : fmt::format("FAILED {}\n", all.failed));
}

}  // namespace

std::vector<std::string> names_never_made(const SweepFigures& figures) {
  std::vector<std::string> names;
  for (const LegalCell& cell : figures.never_made) {
    std::string name(name_of(cell.fault.call));
    if (cell.state == CallState::shorter_prefix) name += fmt::format(" ({})", name_of(cell.state));
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

std::string describe(const LegalCell& cell) {
  std::string text = fmt::format("{} {}", name_of(cell.fault.call), name_of(cell.fault.kind));
  if (cell.fault.code != 0) text += fmt::format(" {}", cell.fault.code);
  return cell.state == CallState::any ? text : text + fmt::format(" ({})", name_of(cell.state));
}

void judge_cells(const FaultTally& faults, const SweepTally& tally, SweepFigures& figures) {
  for (std::size_t i = 0; i < kLegalCellCount; ++i) {
    const LegalCell& cell = legal_cells()[i];
    if (faults.cells[i] > 0) {
      ++figures.cells_reached;
    } else if (!tally.was_called(cell.fault.call) || is_never_made(cell, faults)) {
      figures.never_made.push_back(cell);
    } else {
      figures.gaps.push_back(cell);
    }
  }
}

std::string sweep_tables(const SweepFigures& figures) {
  std::string text;
  std::array<Kinds, kCallCount> all{};
  for (std::size_t i = 0; i < figures.rows.size(); ++i) {
    const SweepRow& row = figures.rows[i];
    if (i == 0 || row.trace != figures.rows[i - 1].trace) text += header(figures.scenarios[row.trace]);
    text += line(row.call, row.kinds);
    for (std::size_t kind = 0; kind < kFaultKindCount; ++kind) {
      SweepCounts& sum = all[static_cast<std::size_t>(row.call)][kind];
      sum.cases += row.kinds[kind].cases;
      sum.fired += row.kinds[kind].fired;
      sum.failed += row.kinds[kind].failed;
    }
  }
  if (figures.scenarios.size() > 1) {
    text += header("all scenarios");
    for (std::size_t call = 0; call < kCallCount; ++call) {
      const bool any = std::ranges::any_of(all[call], [](const SweepCounts& counts) { return counts.cases > 0; });
      if (any) text += line(static_cast<Call>(call), all[call]);
    }
  }
  const std::string never = fmt::format("{}", fmt::join(names_never_made(figures), ", "));
  if (!never.empty()) text += "\n" + wrapped("never called by this store here: " + never, kTextWidth, 2) + "\n";
  if (figures.complete && !figures.gaps.empty()) {
    text += "\nlegal, and reached by no scenario:\n";
    for (const LegalCell& cell : figures.gaps) text += "  " + describe(cell) + "\n";
  }
  return text;
}

}  // namespace holdfast::sim
