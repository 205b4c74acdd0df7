#include "report_json_parts.hpp"

#include <map>
#include <vector>

#include "holdfast/sim/failure_story.hpp"
#include "holdfast/sim/shrink_failure.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

using PartJson = nlohmann::ordered_json;

PartJson span_json(const LaneChart& chart, const ChartSpan& span) {
  PartJson json = {{"kind", kSpanKinds.at(static_cast<std::size_t>(span.kind))},
                   {"first", chart.first + span.first + 1},
                   {"last", chart.first + span.last + 1},
                   {"label", printable(span.label)},
                   {"detail", printable(span.detail)}};
  if (span.begun_before) json["begun_before"] = true;
  if (span.not_ended) json["ended"] = false;
  if (span.culprit) json["culprit"] = true;
  return json;
}

PartJson lanes_json(const LaneChart& chart) {
  PartJson json = {{"columns", PartJson::array()}, {"lanes", PartJson::array()}};
  for (std::size_t i = 0; i < chart.columns.size(); ++i) {
    const ChartColumn& column = chart.columns[i];
    json["columns"].push_back(
        {{"number", chart.first + i + 1},
         {"at_ns", column.at_ns},
         {"step", column.step == kDrainStep ? PartJson(step_name(column)) : PartJson(column.step)},
         {"what", printable(column.text)}});
  }
  json["left_out_after"] = chart.left_out_after;
  json["broken_at"] = chart.broken_at ? PartJson(chart.first + *chart.broken_at + 1) : PartJson();
  for (const ChartLane& lane : chart.lanes) {
    PartJson spans = PartJson::array();
    for (const ChartSpan& span : lane.spans) spans.push_back(span_json(chart, span));
    PartJson marks = PartJson::array();
    for (const ChartMark& mark : lane.marks) {
      marks.push_back({{"kind", kMarkKinds.at(static_cast<std::size_t>(mark.kind))},
                       {"column", chart.first + mark.column + 1},
                       {"label", printable(mark.label)}});
    }
    json["lanes"].push_back({{"kind", kLaneKinds.at(static_cast<std::size_t>(lane.kind))},
                             {"name", printable(lane.name)},
                             {"spans", std::move(spans)},
                             {"marks", std::move(marks)}});
  }
  return json;
}

PartJson cases_json(const std::vector<NotableCase>& cases) {
  PartJson json = PartJson::array();
  for (const NotableCase& notable : cases) {
    json.push_back({{"seed", notable.seed},
                    {"wall_s", static_cast<double>(notable.wall_ns) / 1e9},
                    {"runtime_calls", notable.runtime_calls},
                    {"steps", notable.steps},
                    {"virtual_s", static_cast<double>(notable.virtual_ns) / 1e9}});
  }
  return json;
}

}  // namespace

nlohmann::ordered_json causes_json(const Report& report) {
  PartJson json = PartJson::array();
  for (const FailureCause& cause : causes_of(report)) {
    const ReportViolation& first = *cause.violations.front();
    PartJson entry = {{"cause", cause.cause},     {"invariant", what_broke(first)}, {"cases", cause.seeds},
                      {"first_seed", first.seed}, {"story", PartJson::array()},     {"story_of_seed", nullptr},
                      {"timeline", nullptr},      {"swim_lanes", nullptr}};
    if (first.story != nullptr) {
      for (const std::string& sentence : first.story->sentences) entry["story"].push_back(printable(sentence));
      entry["story_of_seed"] = first.story->seed;
      if (!first.story->timeline_file.empty()) entry["timeline"] = first.story->timeline_file;
      entry["swim_lanes"] = lanes_json(first.story->chart);
    }
    json.push_back(std::move(entry));
  }
  return json;
}

nlohmann::ordered_json failures_json(const CampaignResult& result) {
  std::map<std::string, std::size_t, std::less<>> known;  // by the target, as text
  PartJson json = PartJson::array();
  for (const SeedFailure& failure : result.failures) {
    const FailureTarget target = target_of(failure);
    const auto [at, is_new] = known.emplace(to_string(target), json.size());
    if (is_new) {
      json.push_back({{"kind", name_of(failure.kind)},
                      {"invariant", failure.violations.empty() ? PartJson() : PartJson(name_of(target.invariant))},
                      {"call", printable(target.call)},
                      {"culprits", printable(target.culprits)},
                      {"seeds", PartJson::array()}});
    }
    json[at->second]["seeds"].push_back(failure.seed);
  }
  return json;
}

nlohmann::ordered_json fault_matrix_json(const FaultTally& faults) {
  const FaultMatrix matrix = fault_matrix(faults);
  PartJson json = PartJson::object();
  for (std::size_t call = 0; call < kCallCount; ++call) {
    PartJson kinds = PartJson::object();
    for (std::size_t kind = 0; kind < kFaultKindCount; ++kind) {
      const FaultCell& cell = matrix[call][kind];
      if (cell.legal == 0 && cell.fired == 0) continue;
      kinds[std::string(name_of(static_cast<FaultKind>(kind)))] = {
          {"fired", cell.fired}, {"legal_cells", cell.legal}, {"reached_cells", cell.reached}};
    }
    json[std::string(name_of(static_cast<Call>(call)))] = std::move(kinds);
  }
  return json;
}

nlohmann::ordered_json notable_cases_json(const CampaignResult& result) {
  return {{"slowest", cases_json(result.slowest)}, {"longest", cases_json(result.longest)}};
}

}  // namespace holdfast::sim
