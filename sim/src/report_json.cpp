#include <algorithm>
#include <nlohmann/json.hpp>

#include "holdfast/sim/report.hpp"
#include "holdfast/sim/text.hpp"
#include "report_json_parts.hpp"

namespace holdfast::sim {
namespace {

using Json = nlohmann::ordered_json;

double seconds(Nanos length_ns) { return static_cast<double>(length_ns) / 1e9; }

Json invariants_of(const Report& report) {
  Json all = Json::object();
  for (std::size_t i = 0; i < kInvariantCount; ++i) {
    const auto invariant = static_cast<Invariant>(i);
    all[std::string(name_of(invariant))] = {{"checked", report.result.checked[i]},
                                            {"violated", report.result.violated[i]},
                                            {"disabled", not_made(report, invariant) == NotMade::switched_off},
                                            {"promise", promise_of(invariant)}};
    if (not_made(report, invariant) == NotMade::not_decidable)
      all[std::string(name_of(invariant))]["decidable"] = false;
  }
  return all;
}

Json transfers_of(const TransferStats& transfers) {
  const std::optional<double> rate = gib_per_second(transfers);
  return {{"operations", transfers.operations},
          {"bytes", transfers.bytes},
          {"virtual_s", seconds(transfers.time_ns)},
          {"gib_per_s", rate ? Json(*rate) : Json()}};
}

Json length_of(const ListLength& length) { return {{"at_end", length.now}, {"peak", length.peak}}; }

Json store_of(const Stats& stats) {
  Json store = Json::object();
  Json& stages = store["stages"];
  for (std::size_t i = 0; i < kStageCount; ++i) {
    const StageStats& stage = stats.stages[i];
    stages[std::string(name_of(static_cast<Stage>(i)))] = {
        {"operations", stage.operations}, {"failures", stage.failures}, {"virtual_s", seconds(stage.time_ns)}};
  }
  store["transfers"] = {{"to_host", transfers_of(stats.to_host)}, {"to_device", transfers_of(stats.to_device)}};
  for (const Counter& counter : counters()) store["counters"][std::string(counter.name)] = stats.*counter.value;
  store["unsettled_keys"] = length_of(stats.unsettled_keys);
  store["quarantined_plans"] = length_of(stats.quarantined_plans);
  store["accounted_bytes_at_end"] = stats.accounted_bytes;
  return store;
}

Json violations_of(const Report& report) {
  Json all = Json::array();
  for (const ReportViolation& violation : report.violations) {
    Json entry = {{"invariant", what_broke(violation)}, {"kind", name_of(violation.kind)}, {"seed", violation.seed}};
    if (!violation.step) {
      entry["step"] = nullptr;
    } else if (*violation.step == kDrainStep) {
      entry["step"] = "drain";
    } else {
      entry["step"] = *violation.step;
    }
    entry["call"] = violation.call;
    entry["message"] = violation.message;
    entry["culprits"] = violation.culprits;
    entry["at_ns"] = violation.at_ns ? Json(*violation.at_ns) : Json();
    entry["trace"] = violation.trace.empty() ? Json() : Json(violation.trace);
    entry["reproduce"] = violation.reproduce;
    entry["cause"] = violation.cause;
    entry["timeline"] = violation.timeline.empty() ? Json() : Json(violation.timeline);
    entry["shrunk"] = Json();
    if (violation.shrunk) {
      const ShrunkTrace& shrunk = *violation.shrunk;
      entry["shrunk"] = {{"seed", shrunk.seed},
                         {"trace", shrunk.trace},
                         {"steps_before", shrunk.steps_before},
                         {"steps", shrunk.steps},
                         {"faults", shrunk.faults},
                         {"choices", shrunk.choices},
                         {"switches", shrunk.switches},
                         {"one_minimal", shrunk.stopped.empty()},
                         {"reproduce", shrunk.reproduce}};
    }
    all.push_back(std::move(entry));
  }
  return all;
}

Json faults_of(const FaultTally& faults) {
  Json all = Json::object();
  for (std::size_t call = 0; call < kCallCount; ++call) {
    Json kinds = Json::object();
    for (std::size_t kind = 0; kind < kFaultKindCount; ++kind) {
      const std::uint64_t count = faults.fired[call][kind];
      if (count > 0) kinds[std::string(name_of(static_cast<FaultKind>(kind)))] = count;
    }
    if (!kinds.empty()) all[std::string(name_of(static_cast<Call>(call)))] = std::move(kinds);
  }
  return all;
}

void add_cells(std::size_t reached, std::span<const LegalCell> not_reached, Json& json) {
  Json& cells = json["cells"];
  cells = {{"legal", kLegalCellCount}, {"reached", reached}};
  cells["not_reached"] = Json::array();
  for (const LegalCell& cell : not_reached) {
    cells["not_reached"].push_back({{"call", name_of(cell.fault.call)},
                                    {"kind", name_of(cell.fault.kind)},
                                    {"code", cell.fault.code},
                                    {"state", name_of(cell.state)}});
  }
}

void add_cells(const FaultTally& faults, Json& json) { add_cells(faults.cells_reached(), fault_gaps(faults), json); }

void add_sweep(const SweepFigures& figures, Json& json) {
  Json& sweep = json["sweep"];
  sweep = {{"depth", figures.depth},
           {"complete", figures.complete},
           {"cases", figures.cases},
           {"pairs", figures.pairs},
           {"fired", figures.fired},
           {"scenarios", figures.scenarios},
           {"without_pairs", figures.without_pairs}};
  sweep["rows"] = Json::array();
  for (const SweepRow& row : figures.rows) {
    Json kinds = Json::object();
    for (std::size_t kind = 0; kind < kFaultKindCount; ++kind) {
      const SweepCounts& counts = row.kinds[kind];
      if (counts.cases == 0) continue;
      kinds[std::string(name_of(static_cast<FaultKind>(kind)))] = {
          {"cases", counts.cases}, {"fired", counts.fired}, {"failed", counts.failed}};
    }
    sweep["rows"].push_back(
        {{"scenario", figures.scenarios[row.trace]}, {"call", name_of(row.call)}, {"kinds", std::move(kinds)}});
  }
  add_cells(figures.cells_reached, figures.gaps, json);
  json["cells"]["never_called"] = names_never_made(figures);
}

}  // namespace

std::string report_json(const Report& report) {
  const CampaignResult& result = report.result;
  constexpr std::array<std::string_view, 4> kVerdicts{"held", "violated", "", "harness-failed"};
  Json json = {{"schema", kReportSchema},
               {"version", program_version()},
               {"verdict", kVerdicts.at(static_cast<std::size_t>(verdict_of(report)))},
               {"command", report.command},
               {"backend", report.backend},
               {"profile", report.profile}};
  json["runtimes"] = Json::array();
  for (const RuntimeInfo& runtime : report.runtimes) {
    json["runtimes"].push_back({{"role", runtime.role},
                                {"name", runtime.name},
                                {"version", runtime.version},
                                {"path", runtime.path},
                                {"sha256", runtime.sha256}});
  }
  json["seeds"] = {{"first", report.seeds.first}, {"last", report.seeds.last}, {"run", result.seeds_run}};
  json["shard"] = {{"index", report.shard.index}, {"count", report.shard.count}};
  if (report.shard.count > 1) {
    json["shard"]["seeds_of_all"] = {{"first", report.seeds_of_all.first}, {"last", report.seeds_of_all.last}};
  }
  json["stopped"] = result.stopped.empty() ? Json() : Json(result.stopped);
  json["steps"] = result.steps;
  json["steps_skipped"] = result.steps_skipped;
  json["runtime_calls"] = result.runtime_calls;
  json["log_events"] = result.log_events;
  json["log_hash"] = hex_text(result.log_hash);
  json["wall_s"] = seconds(result.wall_ns);
  json["virtual_s"] = seconds(result.virtual_ns);
  json["chunks"] = {{"generated", result.chunks_generated}, {"hit", result.chunks_hit}, {"evicted", result.evictions}};
  json["bytes"] = {{"to_host", result.bytes_to_host}, {"to_device", result.bytes_to_device}};
  json["store"] = store_of(result.stats);
  json["exempt_keys"] = result.exempt_keys;
  json["invariants"] = invariants_of(report);
  json["violations"] = violations_of(report);
  json["causes"] = causes_json(report);
  json["failures"] = failures_json(result);
  json["gate_failure"] = report.gate_failure.empty() ? Json() : Json(report.gate_failure);
  json["faults_fired"] = result.faults.total;
  json["faults"] = faults_of(result.faults);
  json["fault_matrix"] = fault_matrix_json(result.faults);
  if (!report.coverage.empty()) {
    json["coverage"] = Json::array();
    for (const CoverageFigures& at : report.coverage) {
      json["coverage"].push_back(
          {{"seeds", at.seeds}, {"corpus", at.corpus}, {"cells", at.cells}, {"marks", at.marks}, {"pairs", at.pairs}});
    }
  }
  json["marks"] = Json::object();
  json["rare_marks"] = Json::array();
  for (std::size_t i = 0; i < kMarkCount; ++i) {
    const auto mark = static_cast<Mark>(i);
    json["marks"][std::string(name_of(mark))] = result.marks.counts[i];
    if (is_rare(mark)) json["rare_marks"].push_back(name_of(mark));
  }
  json["marks_required"] = report.marks_required;
  json["cases"] = notable_cases_json(result);
  json["determinism"] = {{"rechecked", result.rechecked}, {"diverged", result.diverged}};
  if (report.workload) {
    const WorkloadFigures& figures = *report.workload;
    json["workload"] = {{"requests", figures.requests},
                        {"blocks", figures.blocks},
                        {"hit_blocks", figures.hit_blocks},
                        {"capacity_bytes", figures.capacity_bytes},
                        {"footprint_bytes", figures.footprint_bytes}};
  }
  if (report.sweep) {
    add_sweep(*report.sweep, json);
  } else {
    add_cells(result.faults, json);
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace holdfast::sim
