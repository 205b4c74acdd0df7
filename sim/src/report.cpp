#include "holdfast/sim/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "holdfast/sim/files.hpp"
#include "holdfast/sim/shrink_failure.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t kListedMax = 500;
constexpr std::size_t kListedOfSeedMax = 4;
constexpr std::size_t kMessageBytesMax = 8000;

}  // namespace

std::string_view program_version() { return HOLDFAST_VERSION; }

BackendProbe probe_fake_backend() {
  BackendProbe probe;
  probe.usable = true;
  const std::string version(program_version());
  probe.runtimes.push_back({"fluxon", "fake owner", version, "", ""});
  probe.runtimes.push_back({"cuda", "fake device", version, "", ""});
  return probe;
}

std::vector<Invariant> undecidable_for(const fakes::OwnerPowers& powers) {
  // What answers that got lost have left goes with the client, whose end it must be told of.
  std::vector<Invariant> all;
  if (!powers.shows_inside || !powers.takes_choices) all.push_back(Invariant::quiescent_baseline);
  // What is stored, and its bytes.
  if (!powers.shows_inside) {
    all.insert(all.end(), {Invariant::ready_after_commit, Invariant::capacity_bound, Invariant::index_agrees});
  }
  return all;
}

NotMade not_made(const Report& report, Invariant invariant) {
  if (std::ranges::find(report.disabled, invariant) != report.disabled.end()) return NotMade::switched_off;
  if (std::ranges::find(report.undecidable, invariant) != report.undecidable.end()) return NotMade::not_decidable;
  return NotMade::no;
}

std::string_view what_broke(const ReportViolation& violation) {
  return violation.invariant ? name_of(*violation.invariant) : name_of(violation.kind);
}

std::string describe(const ShrunkTrace& shrunk) {
  const auto some = [](std::size_t count, std::string_view what) {
    return count == 0 ? fmt::format("no {}", what) : fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  const std::string switches =
      shrunk.switches == 0 ? "" : fmt::format("{} switch{}, ", shrunk.switches, shrunk.switches == 1 ? "" : "es");
  return fmt::format("{} of {} steps, {}, {}, {}{}", shrunk.steps, shrunk.steps_before, some(shrunk.faults, "fault"),
                     some(shrunk.choices, "choice"), switches,
                     shrunk.stopped.empty() ? "1-minimal" : fmt::format("not 1-minimal: {}", shrunk.stopped));
}

std::vector<ReportViolation> list_violations(const CampaignResult& result, const ViolationSources& sources) {
  std::vector<ReportViolation> list;
  for (const SeedFailure& failure : result.failures) {
    ReportViolation entry;
    entry.kind = failure.kind;
    entry.seed = failure.seed;
    entry.trace = sources.trace(failure);
    entry.reproduce = sources.reproduce(failure);
    if (sources.shrunk) entry.shrunk = sources.shrunk(failure);
    entry.cause = printable(to_string(target_of(failure)), kMessageBytesMax);
    if (sources.timeline) entry.timeline = sources.timeline(failure);
    if (sources.story) entry.story = sources.story(failure);
    if (failure.kind != FailureKind::violation) {
      entry.message = printable(failure.message, kMessageBytesMax);
      list.push_back(entry);
    }
    for (std::size_t i = 0; i < std::min(failure.violations.size(), kListedOfSeedMax); ++i) {
      const Violation& violation = failure.violations[i];
      entry.invariant = violation.invariant;
      entry.step = violation.step;
      entry.call = printable(violation.call);
      entry.message = printable(violation.message, kMessageBytesMax);
      entry.culprits = printable(violation.culprits, kMessageBytesMax);
      entry.at_ns = violation.at_ns;
      list.push_back(entry);
    }
    if (list.size() >= kListedMax) break;
  }
  return list;
}

std::vector<FailureCause> causes_of(const Report& report) {
  std::map<std::string, std::set<std::uint64_t>, std::less<>> seeds;
  for (const SeedFailure& failure : report.result.failures) {
    seeds[printable(to_string(target_of(failure)), kMessageBytesMax)].insert(failure.seed);
  }
  std::vector<FailureCause> causes;
  for (const ReportViolation& violation : report.violations) {
    auto cause = std::ranges::find(causes, violation.cause, &FailureCause::cause);
    if (cause == causes.end()) {
      causes.push_back({violation.cause, violation.kind, violation.invariant, 0, {}});
      cause = causes.end() - 1;
      const auto counted = seeds.find(violation.cause);
      cause->seeds = counted == seeds.end() ? 1 : counted->second.size();
    }
    const bool known = !cause->violations.empty() && cause->violations.back()->seed == violation.seed;
    if (!known) cause->violations.push_back(&violation);
  }
  return causes;
}

FaultMatrix fault_matrix(const FaultTally& faults) {
  FaultMatrix matrix{};
  for (std::size_t call = 0; call < kCallCount; ++call) {
    for (std::size_t kind = 0; kind < kFaultKindCount; ++kind) matrix[call][kind].fired = faults.fired[call][kind];
  }
  for (std::size_t i = 0; i < kLegalCellCount; ++i) {
    const LegalFault& fault = legal_cells()[i].fault;
    FaultCell& cell = matrix[static_cast<std::size_t>(fault.call)][static_cast<std::size_t>(fault.kind)];
    ++cell.legal;
    if (faults.cells[i] > 0) ++cell.reached;
  }
  return matrix;
}

std::vector<LegalCell> fault_gaps(const FaultTally& faults) {
  std::vector<LegalCell> gaps;
  for (std::size_t i = 0; i < kLegalCellCount; ++i) {
    if (faults.cells[i] == 0) gaps.push_back(legal_cells()[i]);
  }
  return gaps;
}

std::vector<Mark> missing_marks(const Report& report) {
  std::vector<Mark> missing;
  for (std::size_t i = 0; i < kMarkCount; ++i) {
    const auto mark = static_cast<Mark>(i);
    if (report.result.marks.counts[i] > 0 || (is_rare(mark) && !report.sweep)) continue;
    missing.push_back(mark);
  }
  return missing;
}

ExitStatus verdict_of(const Report& report) {
  const CampaignResult& result = report.result;
  if (result.diverged > 0) return ExitStatus::harness_failed;
  if (!result.failures.empty() || !report.gate_failure.empty()) return ExitStatus::violated;
  if (result.interrupted || result.seeds_run == 0) return ExitStatus::harness_failed;
  if (report.marks_required && !missing_marks(report).empty()) return ExitStatus::violated;
  return ExitStatus::held;
}

std::string verdict_line(const Report& report) {
  const CampaignResult& result = report.result;
  std::uint64_t broken = 0;
  std::uint64_t crashed = 0;
  std::uint64_t hung = 0;
  for (const SeedFailure& failure : result.failures) {
    broken += failure.kind == FailureKind::violation ? 1 : 0;
    crashed += failure.kind == FailureKind::crash ? 1 : 0;
    hung += failure.kind == FailureKind::hang ? 1 : 0;
  }
  if (result.diverged > 0 && report.backend == "both") return "HARNESS FAILED: the fake did what the device does not";
  if (result.diverged > 0) return "HARNESS FAILED: a run is not deterministic";
  if (!result.failures.empty()) {
    std::string what;
    const auto part = [&](std::uint64_t count, std::string_view words) {
      if (count == 0) return;
      what += what.empty() ? " " : ", ";
      what += fmt::format("{} of {} {} {}", with_thousands(count), with_thousands(result.seeds_run),
                          result.seeds_run == 1 ? "case" : "cases", words);
    };
    part(broken, "broke a promise");
    part(crashed, "crashed");
    part(hung, "hung");
    return "VIOLATED:" + what;
  }
  if (!report.gate_failure.empty()) return "VIOLATED: " + report.gate_failure;
  if (result.interrupted) return "HARNESS FAILED: interrupted before its end";
  if (result.seeds_run == 0) return "HARNESS FAILED: nothing was run";
  const std::size_t missing = report.marks_required ? missing_marks(report).size() : 0;
  if (missing > 0) return fmt::format("VIOLATED: {} required marks were never reached", missing);
  return "HELD: no promise was broken";
}

Status write_report(const std::string& directory, const Report& report) {
  if (auto status = write_output_file(directory + "/report.json", report_json(report)); !status) return status;
  if (auto status = write_output_file(directory + "/junit.xml", junit_xml(report)); !status) return status;
  return write_output_file(directory + "/report.html", report_html(report));
}

}  // namespace holdfast::sim
