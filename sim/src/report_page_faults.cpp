// Call by kind of fault as a heat map, with what was legal and never fired.
#include <fmt/format.h>

#include <algorithm>

#include "holdfast/sim/text.hpp"
#include "report_page.hpp"

namespace holdfast::sim {
namespace {

std::string_view meaning_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::before:
      return "fails, nothing happened";
    case FaultKind::lost:
      return "it happened, the caller sees a transport error";
    case FaultKind::part:
      return "partly happened";
    case FaultKind::late:
      return "happens or answers later";
    case FaultKind::gone:
      return "the owner restarts just before the call";
    case FaultKind::evict:
      return "the owner evicts just before the call";
    case FaultKind::time:
      return "time passes just before the call";
    case FaultKind::death:
      return "the client dies at the call";
    case FaultKind::lie:
      break;
  }
  return "an answer that no honest runtime gives";
}

// By powers of ten.
std::string heat_of(std::uint64_t count) {
  int level = 1;
  for (std::uint64_t reached = 10; level < 5 && count >= reached; reached *= 10) ++level;
  return fmt::format("h{}", level);
}

PageData cell_entry(const FaultCell& cell, Call call, FaultKind kind) {
  PageData entry;
  const bool parts = cell.legal > 1 && cell.reached < cell.legal && !cell.gap();
  entry.set("class", cell.gap() ? "gap" : cell.fired > 0 ? heat_of(cell.fired) : "none");
  entry.set("count", cell.gap() ? "0" : cell.fired > 0 ? with_thousands(cell.fired) : "");
  entry.set("part", parts ? PageData(fmt::format("{}/{}", cell.reached, cell.legal)) : PageData(false));
  entry.set("title", cell.legal == 0 && cell.fired == 0
                         ? PageData(false)
                         : PageData(fmt::format("{} of {}: fired {} times, in {} of {} states", name_of(kind),
                                                name_of(call), with_thousands(cell.fired), cell.reached, cell.legal)));
  entry.set("spoken", cell.gap()                           ? PageData(" times: legal, never fired")
                      : cell.fired == 0 && cell.legal == 0 ? PageData("not legal")
                                                           : PageData(false));
  return entry;
}

PageData gap_entry(const LegalCell& cell) {
  PageData entry;
  entry.set("call", std::string(name_of(cell.fault.call)));
  entry.set("kind", std::string(name_of(cell.fault.kind)));
  entry.set("code", cell.fault.code == 0 ? std::string() : std::to_string(cell.fault.code));
  entry.set("state", cell.state == CallState::any ? std::string() : std::string(name_of(cell.state)));
  entry.set("note", page_text(cell.fault.note));
  return entry;
}

}  // namespace

bool shows_faults(const Report& report) { return !report.workload || report.result.faults.total > 0; }

void fill_faults(const Report& report, PageData& page) {
  page.set("has_faults", PageData(shows_faults(report)));
  const FaultTally& faults = report.result.faults;
  const FaultMatrix matrix = fault_matrix(faults);
  PageData kinds = page_list();
  for (std::size_t kind = 0; kind < kFaultKindCount; ++kind) {
    PageData entry;
    entry.set("kind", std::string(name_of(static_cast<FaultKind>(kind))));
    entry.set("meaning", std::string(meaning_of(static_cast<FaultKind>(kind))));
    kinds << entry;
  }
  page.set("kinds", kinds);
  PageData rows = page_list();
  std::size_t empty = 0;
  for (std::size_t call = 0; call < kCallCount; ++call) {
    PageData row;
    row.set("call", std::string(name_of(static_cast<Call>(call))));
    PageData cells = page_list();
    bool gap = false;
    for (std::size_t kind = 0; kind < kFaultKindCount; ++kind) {
      const FaultCell& cell = matrix[call][kind];
      gap = gap || cell.reached < cell.legal;
      empty += cell.gap() ? 1 : 0;
      cells << cell_entry(cell, static_cast<Call>(call), static_cast<FaultKind>(kind));
    }
    row.set("cells", cells);
    row.set("gap", PageData(gap));
    rows << row;
  }
  page.set("fault_rows", rows);
  page.set("faults_line",
           fmt::format("{} fired. A legal cell is a call, a kind, a code and a state in which it may strike: {} of {} "
                       "were reached. {} pairs of call and kind never fired.",
                       with_thousands(faults.total), faults.cells_reached(), kLegalCellCount, empty));
  const std::vector<LegalCell> gaps = fault_gaps(faults);
  PageData list = page_list();
  for (const LegalCell& cell : gaps) list << gap_entry(cell);
  page.set("has_gaps", PageData(!gaps.empty()));
  page.set("gaps", list);
  page.set("gaps_title",
           fmt::format("The {} legal {} that no fault has fired in", gaps.size(), gaps.size() == 1 ? "cell" : "cells"));
}

}  // namespace holdfast::sim
