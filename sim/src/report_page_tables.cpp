// The sections that are plain tables: invariants, marks, workload, sweep, store, cases, determinism.
#include <fmt/format.h>

#include <algorithm>

#include "holdfast/sim/lane_chart.hpp"
#include "holdfast/sim/text.hpp"
#include "report_page.hpp"

namespace holdfast::sim {
namespace {

PageData cases_of(const std::vector<NotableCase>& cases) {
  PageData rows = page_list();
  for (const NotableCase& notable : cases) {
    PageData row;
    row.set("seed", std::to_string(notable.seed));
    row.set("wall", virtual_time_text(notable.wall_ns / kMicrosecond * kMicrosecond));
    row.set("calls", with_thousands(notable.runtime_calls));
    row.set("steps", with_thousands(notable.steps));
    row.set("virtual", virtual_time_text(notable.virtual_ns));
    rows << row;
  }
  return rows;
}

PageData case_table(std::string_view caption, const std::vector<NotableCase>& cases) {
  PageData table;
  table.set("caption", std::string(caption));
  table.set("cases", cases_of(cases));
  return table;
}

}  // namespace

void fill_invariants(const Report& report, PageData& page) {
  const CampaignResult& result = report.result;
  PageData rows = page_list();
  std::size_t quiet = 0;
  std::size_t broken = 0;
  for (std::size_t i = 0; i < kInvariantCount; ++i) {
    const auto invariant = static_cast<Invariant>(i);
    const NotMade why = not_made(report, invariant);
    const bool never = why != NotMade::no || result.checked[i] == 0;
    quiet += never ? 1 : 0;
    broken += result.violated[i] > 0 ? 1 : 0;
    PageData row;
    row.set("name", std::string(name_of(invariant)));
    row.set("promise", std::string(promise_of(invariant)));
    row.set("quiet", PageData(never));
    row.set("checked", why == NotMade::switched_off    ? "switched off"
                       : why == NotMade::not_decidable ? "not decidable"
                       : never                         ? "never checked"
                                                       : with_thousands(result.checked[i]));
    row.set("violated", with_thousands(result.violated[i]));
    row.set("class", result.violated[i] > 0 ? "bad" : "");
    rows << row;
  }
  page.set("invariants", rows);
  page.set("invariants_line",
           fmt::format("{} of {} were checked, {} were violated. Only checks are counted that could have failed; "
                       "'never checked' means that the situation did not occur.",
                       kInvariantCount - quiet, kInvariantCount, broken));
}

void fill_marks(const Report& report, PageData& page) {
  const MarkCounts& marks = report.result.marks;
  PageData list = page_list();
  for (std::size_t i = 0; i < kMarkCount; ++i) {
    const auto mark = static_cast<Mark>(i);
    PageData entry;
    entry.set("name", std::string(name_of(mark)));
    entry.set("count", marks.counts[i] == 0 ? "never" : with_thousands(marks.counts[i]));
    entry.set("missed", PageData(marks.counts[i] == 0));
    entry.set("rare", PageData(is_rare(mark)));
    list << entry;
  }
  page.set("marks", list);
  const auto missed = static_cast<std::size_t>(std::ranges::count(marks.counts, std::uint64_t{0}));
  page.set("marks_line",
           fmt::format("{} of {} situations that a campaign should have met were met{}.", kMarkCount - missed,
                       kMarkCount, report.marks_required ? ", and this one had to meet those that are not rare" : ""));
}

void fill_workload(const Report& report, PageData& page) {
  page.set("has_workload", PageData(report.workload.has_value()));
  if (!report.workload) return;
  const WorkloadFigures& figures = *report.workload;
  const double rate =
      figures.blocks == 0 ? 0.0 : static_cast<double>(figures.hit_blocks) / static_cast<double>(figures.blocks);
  PageData facts = page_list();
  facts << page_fact(
      "Hit rate", fmt::format("{:.3f}", rate),
      fmt::format("{} of {} blocks", with_thousands(figures.hit_blocks), with_thousands(figures.blocks)));
  facts << page_fact("Requests", with_thousands(figures.requests));
  facts << page_fact("Capacity",
                     figures.capacity_bytes == 0 ? std::string("no limit") : bytes_text(figures.capacity_bytes));
  facts << page_fact("Footprint", bytes_text(figures.footprint_bytes), "of all different blocks");
  facts << page_fact("Evicted", with_thousands(report.result.evictions), "blobs");
  facts << page_fact("To the host", bytes_text(report.result.bytes_to_host));
  facts << page_fact("To the device", bytes_text(report.result.bytes_to_device));
  page.set("workload_facts", facts);
}

void fill_sweep(const Report& report, PageData& page) {
  page.set("has_sweep", PageData(report.sweep.has_value()));
  if (!report.sweep) return;
  const SweepFigures& figures = *report.sweep;
  page.set("sweep_line",
           fmt::format("{} scenarios, {} cases, {} of them pairs; faults fired in {}. Of {} legal cells {} were "
                       "reached, {} are of calls that this store never makes, {} are left.",
                       figures.scenarios.size(), with_thousands(figures.cases), with_thousands(figures.pairs),
                       with_thousands(figures.fired), kLegalCellCount, figures.cells_reached, figures.never_made.size(),
                       figures.gaps.size()));
  page.set("sweep", page_text(sweep_tables(figures)));
}

void fill_store(const Report& report, PageData& page) {
  const std::string text = store_text(report);
  page.set("has_store", PageData(!text.empty()));
  page.set("store", page_text(text));
}

bool shows_cases(const Report& report) { return report.result.seeds_run > 1; }

void fill_cases(const Report& report, PageData& page) {
  page.set("has_cases", PageData(shows_cases(report)));
  PageData tables = page_list();
  tables << case_table("Slowest", report.result.slowest);
  tables << case_table("Longest", report.result.longest);
  page.set("case_tables", tables);
}

void fill_determinism(const Report& report, PageData& page) {
  const CampaignResult& result = report.result;
  const bool unsure = result.rechecked == 0;
  page.set("determinism_class", result.diverged > 0 ? "bad" : unsure ? "soft" : "good");
  page.set("determinism_line",
           unsure ? std::string("No case was run again.")
                  : fmt::format("{} {} run again in the same process and in a fresh one, with other addresses, heap "
                                "contents, hash seeds and locale: {}.",
                                with_thousands(result.rechecked), result.rechecked == 1 ? "case was" : "cases were",
                                result.diverged == 0 ? std::string("no event log differed")
                                                     : fmt::format("{} differed", with_thousands(result.diverged))));
  PageData facts = page_list();
  facts << page_fact("Hash of all event logs", hex_text(result.log_hash));
  facts << page_fact("Events", with_thousands(result.log_events));
  page.set("determinism_facts", facts);
}

}  // namespace holdfast::sim
