#include "holdfast/sim/report_compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "holdfast/sim/shrink_failure.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t kToldMax = 20;

struct SeedsOfCause {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};
using Causes = std::map<std::string, SeedsOfCause, std::less<>>;

Causes causes_in(const CampaignResult& result) {
  Causes causes;
  for (const SeedFailure& failure : result.failures) {
    SeedsOfCause& seeds = causes[to_string(target_of(failure))];
    if (seeds.count++ == 0) seeds.first = failure.seed;
  }
  return causes;
}

std::vector<std::string> only_in(const Causes& these, const Causes& others) {
  std::vector<std::string> lines;
  for (const auto& [cause, seeds] : these) {
    if (others.contains(cause)) continue;
    lines.push_back(fmt::format("{} (seed {}{})", printable(cause), seeds.first,
                                seeds.count > 1 ? fmt::format(" and {} more", with_thousands(seeds.count - 1)) : ""));
  }
  return lines;
}

// What `one` reached and `other` did not.
std::vector<std::string> reached_only_by(const Report& one, const Report& other) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < kInvariantCount; ++i) {
    if (one.result.checked[i] > 0 && other.result.checked[i] == 0) {
      lines.push_back(fmt::format("invariant {}", name_of(static_cast<Invariant>(i))));
    }
  }
  for (std::size_t i = 0; i < kMarkCount; ++i) {
    if (one.result.marks.counts[i] > 0 && other.result.marks.counts[i] == 0) {
      lines.push_back(fmt::format("mark {}", name_of(static_cast<Mark>(i))));
    }
  }
  for (std::size_t i = 0; i < kLegalCellCount; ++i) {
    if (one.result.faults.cells[i] == 0 || other.result.faults.cells[i] > 0) continue;
    const LegalCell& cell = legal_cells()[i];
    lines.push_back(fmt::format("fault {} of {}, code {}{}", name_of(cell.fault.kind), name_of(cell.fault.call),
                                cell.fault.code,
                                cell.state == CallState::any ? "" : fmt::format(", {}", name_of(cell.state))));
  }
  return lines;
}

double calls_per_s(const CampaignResult& result) {
  return result.wall_ns == 0 ? 0
                             : static_cast<double>(result.runtime_calls) * 1e9 / static_cast<double>(result.wall_ns);
}

std::string list_text(std::string_view title, const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  std::string text = fmt::format("{}: {}\n", title, with_thousands(lines.size()));
  for (std::size_t i = 0; i < std::min(lines.size(), kToldMax); ++i) {
    text += "  " + wrapped(lines[i], kTextWidth - 4, 4) + '\n';
  }
  if (lines.size() > kToldMax) text += fmt::format("  and {} more\n", lines.size() - kToldMax);
  return text;
}

}  // namespace

ReportComparison compare_reports(const Report& before, const Report& now) {
  ReportComparison comparison;
  const Causes causes_before = causes_in(before.result);
  const Causes causes_now = causes_in(now.result);
  comparison.broken_anew = only_in(causes_now, causes_before);
  comparison.broken_no_more = only_in(causes_before, causes_now);
  comparison.coverage_lost = reached_only_by(before, now);
  comparison.coverage_gained = reached_only_by(now, before);
  comparison.calls_per_s_before = calls_per_s(before.result);
  comparison.calls_per_s_now = calls_per_s(now.result);
  const bool same_seeds = before.seeds.first == now.seeds.first && before.result.seeds_run == now.result.seeds_run;
  comparison.same_log = same_seeds && before.profile == now.profile && before.result.log_hash == now.result.log_hash;
  if (before.profile != now.profile) {
    comparison.notes.push_back(
        fmt::format("the profiles differ: {} and {}", printable(before.profile), printable(now.profile)));
  }
  if (before.backend != now.backend) {
    comparison.notes.push_back(
        fmt::format("the backends differ: {} and {}", printable(before.backend), printable(now.backend)));
  }
  if (!same_seeds) {
    comparison.notes.push_back(fmt::format("the seeds differ: {} from {} and {} from {}",
                                           with_thousands(before.result.seeds_run), before.seeds.first,
                                           with_thousands(now.result.seeds_run), now.seeds.first));
  }
  return comparison;
}

std::string comparison_text(const ReportComparison& comparison) {
  std::string text = "compared with the run before:\n";
  for (const std::string& note : comparison.notes) text += "  " + wrapped(note, kTextWidth - 4, 4) + '\n';
  text += list_text("broken anew", comparison.broken_anew);
  text += list_text("broken no more", comparison.broken_no_more);
  text += list_text("no longer reached", comparison.coverage_lost);
  text += list_text("reached now", comparison.coverage_gained);
  if (comparison.calls_per_s_before > 0 && comparison.calls_per_s_now > 0) {
    text += fmt::format("speed: {} calls/s, was {} ({:+.1f}%)\n",
                        with_thousands(static_cast<std::uint64_t>(comparison.calls_per_s_now)),
                        with_thousands(static_cast<std::uint64_t>(comparison.calls_per_s_before)),
                        100 * (comparison.calls_per_s_now / comparison.calls_per_s_before - 1));
  }
  return text + (comparison.same_log ? "event logs: the same\n" : "event logs: not the same\n");
}

}  // namespace holdfast::sim
