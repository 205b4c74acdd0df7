#include <fmt/format.h>

#include <algorithm>

#include "holdfast/sim/report.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

std::string coloured(std::string_view text, std::string_view code, bool colour) {
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::string per(std::uint64_t count, std::uint64_t of) {
  return of == 0 ? "0" : fmt::format("{:.1f}", static_cast<double>(count) / static_cast<double>(of));
}

std::string per_second(std::uint64_t count, Nanos length_ns) {
  const double seconds = std::max(static_cast<double>(length_ns) / 1e9, 1e-9);
  return with_thousands(static_cast<std::uint64_t>(static_cast<double>(count) / seconds));
}

std::string invariants_text(const Report& report) {
  using Align = Table::Align;
  Table table({Align::left, Align::right, Align::right, Align::left});
  table.add({"invariant", "checked", "violated", ""});
  for (std::size_t i = 0; i < kInvariantCount; ++i) {
    const auto invariant = static_cast<Invariant>(i);
    const NotMade why = not_made(report, invariant);
    const char* note = "";
    if (why == NotMade::switched_off) {
      note = "SWITCHED OFF";
    } else if (why == NotMade::not_decidable) {
      note = "not decidable";
    } else if (report.result.violated[i] > 0) {
      note = "VIOLATED";
    } else if (report.result.checked[i] == 0) {
      note = "never checked";
    }
    table.add({std::string(name_of(invariant)), with_thousands(report.result.checked[i]),
               with_thousands(report.result.violated[i]), note});
  }
  return table.text();
}

std::string marks_text(const Report& report) {
  const CampaignResult& result = report.result;
  std::size_t reached = 0;
  std::size_t rare_missing = 0;
  for (std::size_t i = 0; i < kMarkCount; ++i) {
    if (result.marks.counts[i] > 0) {
      ++reached;
    } else if (is_rare(static_cast<Mark>(i))) {
      ++rare_missing;
    }
  }
  std::string text = fmt::format("{} of {} reached", reached, kMarkCount);
  if (rare_missing > 0) text += fmt::format(", {} rare ones not", rare_missing);
  const std::vector<Mark> missing = missing_marks(report);
  if (!missing.empty()) text += fmt::format(", {} others not (holdfast list marks)", missing.size());
  return text;
}

std::string workload_text(const WorkloadFigures& figures, const CampaignResult& result) {
  using Align = Table::Align;
  Table table({Align::left, Align::left});
  const double rate =
      figures.blocks == 0 ? 0 : static_cast<double>(figures.hit_blocks) / static_cast<double>(figures.blocks);
  table.add({"requests", with_thousands(figures.requests)});
  table.add({"blocks", fmt::format("{}, {} of them hit (rate {:.3f})", with_thousands(figures.blocks),
                                   with_thousands(figures.hit_blocks), rate)});
  table.add({"capacity", figures.capacity_bytes == 0
                             ? fmt::format("no limit; the footprint is {}", bytes_text(figures.footprint_bytes))
                             : fmt::format("{} of a footprint of {}", bytes_text(figures.capacity_bytes),
                                           bytes_text(figures.footprint_bytes))});
  table.add({"evictions", with_thousands(result.evictions)});
  table.add({"moved", fmt::format("{} to the host, {} to the device", bytes_text(result.bytes_to_host),
                                  bytes_text(result.bytes_to_device))});
  table.add({"runtime calls", with_thousands(result.runtime_calls)});
  table.add({"time", seconds_text(result.wall_ns)});
  table.add({"peak memory", bytes_text(result.peak_rss_bytes)});
  return table.text();
}

void add_sweep(Table& table, const SweepFigures& figures, const CampaignResult& result) {
  std::string scenarios = with_thousands(figures.scenarios.size());
  if (figures.depth > 1) {
    scenarios += fmt::format(", {} of them in pairs", figures.scenarios.size() - figures.without_pairs.size());
  }
  table.add({"scenarios", scenarios});
  const double minutes = std::max(static_cast<double>(result.wall_ns) / 6e10, 1e-9);
  table.add({"sweep",
             fmt::format("{} cases, {} of them pairs; fired in {}; {} cases a minute", with_thousands(figures.cases),
                         with_thousands(figures.pairs), with_thousands(figures.fired),
                         with_thousands(static_cast<std::uint64_t>(static_cast<double>(result.seeds_run) / minutes)))});
  table.add(
      {"cells", fmt::format("{} of {} reached; {} are of calls that this store never makes, {} are left",
                            figures.cells_reached, kLegalCellCount, figures.never_made.size(), figures.gaps.size())});
}

std::string campaign_text(const Report& report) {
  using Align = Table::Align;
  const CampaignResult& result = report.result;
  Table table({Align::left, Align::left});
  const char* const unit = report.sweep ? "case" : "seed";
  if (report.sweep) add_sweep(table, *report.sweep, result);
  const std::string range = report.seeds.first == report.seeds.last
                                ? fmt::format("{}", report.seeds.first)
                                : fmt::format("{}-{}", report.seeds.first, report.seeds.last);
  table.add(
      {fmt::format("{}s", unit),
       fmt::format(
           "{} run of {}{}", with_thousands(result.seeds_run), range,
           report.shard.count > 1 ? fmt::format(" (shard {} of {})", report.shard.index, report.shard.count) : "")});
  if (!result.stopped.empty()) table.add({"stopped", result.stopped});
  table.add({"runtime calls", fmt::format("{} ({} per {})", with_thousands(result.runtime_calls),
                                          per(result.runtime_calls, result.seeds_run), unit)});
  table.add({"faults fired", fmt::format("{} ({} per {})", with_thousands(result.faults.total),
                                         per(result.faults.total, result.seeds_run), unit)});
  table.add({"steps", fmt::format("{} ({} skipped), {} of virtual time", with_thousands(result.steps),
                                  with_thousands(result.steps_skipped), seconds_text(result.virtual_ns))});
  if (!report.sweep) {
    table.add({"fault cells", fmt::format("{} of {} reached", result.faults.cells_reached(), kLegalCellCount)});
  }
  table.add({"marks", marks_text(report)});
  if (!report.coverage.empty()) {
    const CoverageFigures& last = report.coverage.back();
    table.add(
        {"coverage", fmt::format("{} traces kept for {} cells, {} marks and {} pairs", with_thousands(last.corpus),
                                 last.cells, last.marks, with_thousands(last.pairs))});
  }
  table.add({"determinism", result.rechecked == 0
                                ? fmt::format("no {} was run again", unit)
                                : fmt::format("{} {}s run again, here and in fresh processes; {} differed",
                                              with_thousands(result.rechecked), unit, result.diverged)});
  table.add({"speed", fmt::format("{} {}s/s, {} calls/s, {} in all", per_second(result.seeds_run, result.wall_ns), unit,
                                  per_second(result.runtime_calls, result.wall_ns), seconds_text(result.wall_ns))});
  table.add({"log hash", hex_text(result.log_hash)});
  return table.text();
}

std::string violation_text(const ReportViolation& violation, bool colour) {
  std::string text = coloured(what_broke(violation), "1;31", colour) + fmt::format(": seed {}", violation.seed);
  if (violation.step) {
    text += *violation.step == kDrainStep ? std::string(", in the drain") : fmt::format(", step {}", *violation.step);
  }
  if (!violation.call.empty()) text += ", " + violation.call;
  if (violation.at_ns) text += fmt::format(", at {:.6f} s", static_cast<double>(*violation.at_ns) / 1e9);
  if (violation.invariant) {
    text += fmt::format("\n  promise    {}", wrapped(promise_of(*violation.invariant), kTextWidth - 13, 13));
  }
  text += fmt::format("\n  happened   {}", wrapped(violation.message, kTextWidth - 13, 13));
  text += fmt::format("\n  reproduce  {}\n", violation.reproduce);
  if (violation.shrunk) {
    const ShrunkTrace& shrunk = *violation.shrunk;
    const std::string other = shrunk.seed == violation.seed ? "" : fmt::format(" (seed {}, alike)", shrunk.seed);
    text += fmt::format("  shrunk     {}{}\n             {}\n", describe(shrunk), other, shrunk.reproduce);
  }
  return text;
}

}  // namespace

std::string runtimes_text(const std::vector<RuntimeInfo>& runtimes) {
  Table table({Table::Align::left, Table::Align::left});
  for (const RuntimeInfo& runtime : runtimes) {
    std::string text = runtime.version.empty() ? runtime.name : fmt::format("{} {}", runtime.name, runtime.version);
    if (!runtime.path.empty()) text += fmt::format(" {} sha256:{}", runtime.path, runtime.sha256);
    table.add({runtime.role, text});
  }
  return table.text();
}

std::string summary_text(const Report& report, bool colour) {
  std::string text = invariants_text(report) + '\n';
  text += report.workload ? workload_text(*report.workload, report.result) : campaign_text(report);
  const std::string store = store_text(report);
  if (!store.empty()) text += '\n' + store;
  constexpr std::size_t kShownMax = 10;
  for (std::size_t i = 0; i < std::min(report.violations.size(), kShownMax); ++i) {
    text += '\n' + violation_text(report.violations[i], colour);
  }
  if (report.violations.size() > kShownMax) {
    text += fmt::format("\n{} more are in the report (--out DIR).\n", report.violations.size() - kShownMax);
  }
  if (report.marks_required) {
    for (const Mark mark : missing_marks(report)) {
      text += fmt::format("\nmark never reached: {}", name_of(mark));
    }
    if (!missing_marks(report).empty()) text += '\n';
  }
  for (const Invariant invariant : report.disabled) {
    text += '\n' + coloured(fmt::format("{} was SWITCHED OFF: this run says nothing of it.", name_of(invariant)),
                            "1;33", colour);
  }
  if (!report.disabled.empty()) text += '\n';
  const bool held = verdict_of(report) == ExitStatus::held;
  return text + '\n' + coloured(verdict_line(report), held ? "1;32" : "1;31", colour) + '\n';
}

}  // namespace holdfast::sim
