// The first screen: the verdict, what was run, and how to run it again.
#include <fmt/format.h>

#include <algorithm>

#include "holdfast/sim/text.hpp"
#include "report_page.hpp"

namespace holdfast::sim {
namespace {

std::string_view sign_of(ExitStatus status) { return status == ExitStatus::held ? "\u2714" : "\u2718"; }

std::string runtime_text(const RuntimeInfo& runtime) {
  std::string text = runtime.version.empty() ? runtime.name : fmt::format("{} {}", runtime.name, runtime.version);
  if (!runtime.path.empty()) text += fmt::format(" {} sha256:{}", runtime.path, runtime.sha256);
  return text;
}

PageData facts_of(const Report& report) {
  const CampaignResult& result = report.result;
  PageData facts = page_list();
  facts << page_fact("Backend", report.backend);
  facts << page_fact("Version", fmt::format("holdfast {}", program_version()));
  for (const RuntimeInfo& runtime : report.runtimes) facts << page_fact(runtime.role, runtime_text(runtime));
  const std::string shard =
      report.shard.count > 1 ? fmt::format("shard {} of {}", report.shard.index, report.shard.count) : std::string();
  facts << page_fact("Profile", report.profile, shard);
  if (!report.workload) {
    facts << page_fact(report.sweep ? "Cases" : "Seeds", with_thousands(result.seeds_run),
                       fmt::format("of {}-{}", report.seeds.first, report.seeds.last));
  }
  if (!result.stopped.empty()) facts << page_fact("Stopped", result.stopped);
  facts << page_fact("Runtime calls", with_thousands(result.runtime_calls),
                     fmt::format("in {} steps", with_thousands(result.steps)));
  facts << page_fact("Faults injected", with_thousands(result.faults.total),
                     fmt::format("in {} of {} legal cells", result.faults.cells_reached(), kLegalCellCount));
  facts << page_fact(
      "Chunks", fmt::format("{} generated", with_thousands(result.chunks_generated)),
      fmt::format("{} hit, {} evicted", with_thousands(result.chunks_hit), with_thousands(result.evictions)));
  facts << page_fact("Moved", fmt::format("{} to the host", bytes_text(result.bytes_to_host)),
                     fmt::format("{} to the device", bytes_text(result.bytes_to_device)));
  facts << page_fact("Time", seconds_text(result.wall_ns),
                     fmt::format("{} of virtual time", seconds_text(result.virtual_ns)));
  return facts;
}

PageData section(std::string_view id, std::string_view name, std::string_view count = {},
                 std::string_view count_class = {}) {
  PageData entry;
  entry.set("id", page_text(id));
  entry.set("name", page_text(name));
  entry.set("count", page_text_if(count));
  entry.set("class", page_text(count_class));
  return entry;
}

PageData sections_of(const Report& report) {
  const CampaignResult& result = report.result;
  PageData sections = page_list();
  if (!report.violations.empty()) {
    sections << section("violations", "Violations", with_thousands(result.failures.size()), "bad");
  }
  if (report.workload) sections << section("workload", "Workload");
  const auto never = std::ranges::count(result.checked, std::uint64_t{0});
  sections << section("invariants", "Invariants", never == 0 ? "" : fmt::format("{} never checked", never), "warn");
  // A workload is no campaign: nobody expects it to meet everything.
  const std::size_t gaps = report.workload ? 0 : kLegalCellCount - result.faults.cells_reached();
  if (shows_faults(report)) {
    sections << section("faults", "Faults", gaps == 0 ? "" : fmt::format("{} gaps", gaps), "warn");
  }
  const auto missed = report.workload ? 0 : std::ranges::count(result.marks.counts, std::uint64_t{0});
  sections << section("marks", "Marks", missed == 0 ? "" : fmt::format("{} never reached", missed), "warn");
  if (report.sweep) sections << section("sweep", "Sweep");
  if (!store_text(report).empty()) sections << section("store", "Store");
  if (shows_cases(report)) sections << section("cases", "Cases");
  sections << section("determinism", "Determinism", result.diverged == 0 ? "" : with_thousands(result.diverged), "bad");
  return sections;
}

}  // namespace

void fill_summary(const Report& report, PageData& page) {
  const ExitStatus verdict = verdict_of(report);
  page.set("verdict", page_text(verdict_line(report)));
  page.set("class", verdict == ExitStatus::held ? "held" : "violated");
  page.set("sign", std::string(sign_of(verdict)));
  page.set("first_section", report.violations.empty() ? "invariants" : "violations");
  page.set("command", page_text(report.command));
  PageData notes = page_list();
  for (const Invariant invariant : report.disabled) {
    notes << PageData{"note", fmt::format("{} was switched off: this run says nothing of it.", name_of(invariant))};
  }
  page.set("notes", notes);
  page.set("facts", facts_of(report));
  page.set("sections", sections_of(report));
}

}  // namespace holdfast::sim
