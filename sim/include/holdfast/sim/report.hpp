// What a campaign, a replay or a workload found, as one value; and as report.json, junit.xml and report.html.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/result.hpp"
#include "holdfast/sim/backend_factory.hpp"
#include "holdfast/sim/campaign.hpp"
#include "holdfast/sim/coverage.hpp"
#include "holdfast/sim/sweep.hpp"

namespace holdfast::sim {

inline constexpr std::string_view kReportSchema = "holdfast-report/1";
std::string_view program_version();

// The exit status of the program.
enum class ExitStatus : int { held = 0, violated = 1, bad_usage = 2, harness_failed = 3, skipped = 77 };

// A smaller trace that fails in the same way.
struct ShrunkTrace {
  std::uint64_t seed = 0;  // whose trace it was made from; another seed's when that one failed alike
  std::string trace;       // relative to the report
  std::size_t steps_before = 0;
  std::size_t steps = 0;
  std::size_t faults = 0;
  std::size_t choices = 0;
  std::size_t switches = 0;
  std::string stopped;  // why it is not 1-minimal; empty = it is
  std::string reproduce;
};
// "6 of 97 steps, 1 fault, no choice, 1-minimal".
std::string describe(const ShrunkTrace& shrunk);

struct FailureStory;

struct ReportViolation {
  FailureKind kind{};
  std::optional<Invariant> invariant;  // of a violation
  std::uint64_t seed = 0;
  std::optional<std::uint32_t> step;
  std::string call;
  std::string message;
  std::string culprits;        // their kinds
  std::optional<Nanos> at_ns;  // virtual
  std::string trace;           // relative to the report; empty = none was written
  std::string reproduce;       // one command
  std::optional<ShrunkTrace> shrunk;
  std::string cause;                            // of its seed's failure: that of several seeds which failed alike
  std::string timeline;                         // relative to the report; empty = none was written
  std::shared_ptr<const FailureStory> story{};  // of this seed, or of one that failed alike
};
// "sync-before-commit", "crash", "hang", "divergence".
std::string_view what_broke(const ReportViolation& violation);

struct WorkloadFigures {
  std::uint64_t requests = 0;
  std::uint64_t blocks = 0;
  std::uint64_t hit_blocks = 0;
  std::uint64_t capacity_bytes = 0;   // 0 = no limit
  std::uint64_t footprint_bytes = 0;  // of all different blocks
};

// How a check stands that was not made: by the user's wish, or because the backend cannot be looked into.
enum class NotMade : std::uint8_t { no, switched_off, not_decidable };

struct Report {
  std::string command;  // what runs it again, whatever the number of jobs
  std::string backend = "fake";
  std::string profile;  // or the scenario's, trace's or workload's name
  std::vector<RuntimeInfo> runtimes;
  SeedRange seeds;
  Shard shard;
  SeedRange seeds_of_all;  // of all shards, where there are several
  CampaignResult result;
  std::vector<Invariant> disabled;     // by the user
  std::vector<Invariant> undecidable;  // with this backend: neither counted nor violated
  bool marks_required = false;
  std::optional<WorkloadFigures> workload;
  std::optional<SweepFigures> sweep;        // of which rare marks are required too
  std::vector<CoverageFigures> coverage;    // over time, of a coverage-guided campaign
  std::string gate_failure;                 // of a scenario with a gate: what did not come out; empty = all did
  std::vector<ReportViolation> violations;  // bounded; result.violated has them all
};

// The violations of a result, at most `per_seed_max` of one seed, with the command that reproduces each.
// `reproduce` gives the command, `trace` the file, for a seed.
struct ViolationSources {
  std::function<std::string(const SeedFailure&)> trace;
  std::function<std::string(const SeedFailure&)> reproduce;
  std::function<std::optional<ShrunkTrace>(const SeedFailure&)> shrunk{};  // empty: none is
  std::function<std::string(const SeedFailure&)> timeline{};
  std::function<std::shared_ptr<const FailureStory>(const SeedFailure&)> story{};
};
std::vector<ReportViolation> list_violations(const CampaignResult& result, const ViolationSources& sources);

// The seeds that failed alike, and what is known of them.
struct FailureCause {
  std::string cause;
  FailureKind kind{};
  std::optional<Invariant> invariant;
  std::uint64_t seeds = 0;                         // of the result's failures
  std::vector<const ReportViolation*> violations;  // those listed, the first of each seed; never empty
};
// In order of the first seed; pointers into the report.
std::vector<FailureCause> causes_of(const Report& report);

// Of a call and a kind of fault: how often one fired, in how many of the states in which it may strike.
struct FaultCell {
  std::uint64_t fired = 0;
  std::uint32_t legal = 0;  // cells of legal_cells(); 0 = it may not happen
  std::uint32_t reached = 0;
  [[nodiscard]] bool gap() const { return legal > 0 && reached == 0 && fired == 0; }
};
using FaultMatrix = std::array<std::array<FaultCell, kFaultKindCount>, kCallCount>;
FaultMatrix fault_matrix(const FaultTally& faults);
// Legal cells in which no fault fired, in the table's order.
std::vector<LegalCell> fault_gaps(const FaultTally& faults);
NotMade not_made(const Report& report, Invariant invariant);

// Marks that a report requires, or would, and that were never reached: those that are not rare, of a sweep all.
std::vector<Mark> missing_marks(const Report& report);
ExitStatus verdict_of(const Report& report);
// "held", "violated", "harness failed"; one line that says why.
std::string verdict_line(const Report& report);

std::string report_json(const Report& report);
std::string junit_xml(const Report& report);
std::string report_html(const Report& report);
// The table at the end of a run, within 100 columns.
std::string summary_text(const Report& report, bool colour);
// What the store says that it did, as tables; empty where it did nothing, and for a sweep.
std::string store_text(const Report& report);
// "fluxon  fake owner 0.1.0": a line for each runtime in use.
std::string runtimes_text(const std::vector<RuntimeInfo>& runtimes);

// report.json, junit.xml and report.html in `directory`, which is there.
Status write_report(const std::string& directory, const Report& report);

}  // namespace holdfast::sim
