#include "holdfast/sim/report_read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "holdfast/sim/failure_story.hpp"
#include "holdfast/sim/files.hpp"
#include "holdfast/sim/strict_json.hpp"
#include "report_json_parts.hpp"

namespace holdfast::sim {
namespace {

using ReadJson = nlohmann::json;

constexpr std::uint64_t kReportBytesMax = 256ULL << 20;
constexpr std::uint64_t kShardsMax = 1'000'000;
constexpr std::size_t kStoryColumnsReadMax = 10'000;

std::uint64_t count(const ReadJson& json, const char* key) { return json.at(key).get<std::uint64_t>(); }
std::string text(const ReadJson& json, const char* key) {
  const ReadJson& value = json.at(key);
  return value.is_null() ? std::string() : value.get<std::string>();
}
Nanos length_ns(const ReadJson& json, const char* key) {
  const double seconds = json.at(key).get<double>();
  if (!(seconds >= 0 && seconds < 9e9)) throw std::out_of_range(fmt::format("'{}' is no length of time", key));
  return std::llround(seconds * 1e9);
}
SeedRange seeds_in(const ReadJson& json) {
  const SeedRange seeds{count(json, "first"), count(json, "last")};
  if (seeds.first == 0 || seeds.last < seeds.first) throw std::out_of_range("its seeds end before they begin");
  return seeds;
}
template <class Kind, std::size_t size>
Kind kind_of(const std::array<std::string_view, size>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) throw std::out_of_range(fmt::format("'{}' is no kind", name));
  return static_cast<Kind>(found - names.begin());
}
FailureKind failure_kind(const std::string& name) {
  for (const FailureKind kind :
       {FailureKind::violation, FailureKind::crash, FailureKind::hang, FailureKind::divergence}) {
    if (name_of(kind) == name) return kind;
  }
  throw std::out_of_range(fmt::format("'{}' is no kind of failure", name));
}
Invariant invariant_in(const ReadJson& json) {
  const auto invariant = invariant_named(json.get<std::string>());
  if (!invariant) throw std::out_of_range("an invariant that this version does not know");
  return *invariant;
}

class Reader {
 public:
  Reader(const ReadJson& json, std::string directory, std::string prefix)
      : json_(json), directory_(std::move(directory)), prefix_(std::move(prefix)) {}

  Report read() {
    if (text(json_, "schema") != kReportSchema)
      throw std::out_of_range(fmt::format("its schema is not {}", kReportSchema));
    report_.command = text(json_, "command");
    report_.backend = text(json_, "backend");
    report_.profile = text(json_, "profile");
    for (const ReadJson& runtime : json_.at("runtimes")) {
      report_.runtimes.push_back({text(runtime, "role"), text(runtime, "name"), text(runtime, "version"),
                                  text(runtime, "path"), text(runtime, "sha256")});
    }
    report_.seeds = seeds_in(json_.at("seeds"));
    report_.shard.index = count(json_.at("shard"), "index");
    report_.shard.count = count(json_.at("shard"), "count");
    if (report_.shard.index == 0 || report_.shard.index > report_.shard.count || report_.shard.count > kShardsMax) {
      throw std::out_of_range("it is of no shard that there can be");
    }
    if (report_.shard.count > 1) {
      report_.seeds_of_all = seeds_in(json_.at("shard").at("seeds_of_all"));
    }
    report_.marks_required = json_.at("marks_required").get<bool>();
    report_.gate_failure = text(json_, "gate_failure");
    read_counts();
    read_invariants();
    read_faults();
    read_marks();
    read_store();
    read_cases("slowest", report_.result.slowest);
    read_cases("longest", report_.result.longest);
    for (const ReadJson& violation : json_.at("violations")) read_violation(violation);
    for (const ReadJson& failures : json_.at("failures")) read_failures(failures);
    std::ranges::stable_sort(report_.result.failures, {}, &SeedFailure::seed);
    for (const ReadJson& cause : json_.at("causes")) read_story(cause);
    if (json_.contains("workload")) {
      const ReadJson& workload = json_.at("workload");
      report_.workload =
          WorkloadFigures{count(workload, "requests"), count(workload, "blocks"), count(workload, "hit_blocks"),
                          count(workload, "capacity_bytes"), count(workload, "footprint_bytes")};
    }
    return std::move(report_);
  }

 private:
  void read_counts() {
    CampaignResult& result = report_.result;
    result.seeds_run = count(json_.at("seeds"), "run");
    result.stopped = text(json_, "stopped");
    result.steps = count(json_, "steps");
    result.steps_skipped = count(json_, "steps_skipped");
    result.runtime_calls = count(json_, "runtime_calls");
    result.log_events = count(json_, "log_events");
    result.log_hash = std::stoull(text(json_, "log_hash"), nullptr, 16);
    result.wall_ns = length_ns(json_, "wall_s");
    result.virtual_ns = length_ns(json_, "virtual_s");
    result.chunks_generated = count(json_.at("chunks"), "generated");
    result.chunks_hit = count(json_.at("chunks"), "hit");
    result.evictions = count(json_.at("chunks"), "evicted");
    result.bytes_to_host = count(json_.at("bytes"), "to_host");
    result.bytes_to_device = count(json_.at("bytes"), "to_device");
    result.exempt_keys = count(json_, "exempt_keys");
    result.rechecked = count(json_.at("determinism"), "rechecked");
    result.diverged = count(json_.at("determinism"), "diverged");
    result.interrupted = text(json_, "verdict") == "harness-failed" && result.diverged == 0 && result.seeds_run > 0;
  }
  void read_invariants() {
    for (const auto& [name, told] : json_.at("invariants").items()) {
      const Invariant invariant = invariant_in(name);
      report_.result.checked[static_cast<std::size_t>(invariant)] = count(told, "checked");
      report_.result.violated[static_cast<std::size_t>(invariant)] = count(told, "violated");
      if (told.at("disabled").get<bool>()) report_.disabled.push_back(invariant);
      if (!told.value("decidable", true)) report_.undecidable.push_back(invariant);
    }
  }
  void read_faults() {
    FaultTally& faults = report_.result.faults;
    faults.total = count(json_, "faults_fired");
    for (const auto& [call_name, kinds] : json_.at("faults").items()) {
      for (const auto& [kind_name, fired] : kinds.items()) {
        const auto call = call_named(call_name);
        const auto kind = fault_kind_named(kind_name);
        if (!call || !kind) throw std::out_of_range("a fault that this version does not know");
        faults.fired[static_cast<std::size_t>(*call)][static_cast<std::size_t>(*kind)] = fired.get<std::uint64_t>();
      }
    }
    faults.cells.fill(1);
    for (const ReadJson& gap : json_.at("cells").at("not_reached")) {
      const auto is_it = [&](const LegalCell& cell) {
        return name_of(cell.fault.call) == text(gap, "call") && name_of(cell.fault.kind) == text(gap, "kind") &&
               cell.fault.code == gap.at("code").get<std::int32_t>() && name_of(cell.state) == text(gap, "state");
      };
      const auto cells = legal_cells();
      const auto found = std::ranges::find_if(cells, is_it);
      if (found == cells.end()) throw std::out_of_range("a legal cell that this version does not know");
      faults.cells[static_cast<std::size_t>(found - cells.begin())] = 0;
    }
  }
  void read_marks() {
    std::map<std::string, std::size_t, std::less<>> known;
    for (std::size_t i = 0; i < kMarkCount; ++i) known.emplace(name_of(static_cast<Mark>(i)), i);
    for (const auto& [name, times] : json_.at("marks").items()) {
      const auto mark = known.find(name);
      if (mark == known.end()) throw std::out_of_range("a mark that this version does not know");
      report_.result.marks.counts[mark->second] = times.get<std::uint64_t>();
    }
  }
  static void read_transfers(const ReadJson& told, TransferStats& transfers) {
    transfers = {count(told, "operations"), count(told, "bytes"), length_ns(told, "virtual_s")};
  }
  static void read_length(const ReadJson& told, ListLength& length) {
    length = {count(told, "at_end"), count(told, "peak")};
  }
  void read_store() {
    Stats& stats = report_.result.stats;
    const ReadJson& store = json_.at("store");
    for (std::size_t i = 0; i < kStageCount; ++i) {
      const ReadJson& stage = store.at("stages").at(std::string(name_of(static_cast<Stage>(i))));
      stats.stages[i] = {count(stage, "operations"), count(stage, "failures"), length_ns(stage, "virtual_s")};
    }
    read_transfers(store.at("transfers").at("to_host"), stats.to_host);
    read_transfers(store.at("transfers").at("to_device"), stats.to_device);
    for (const Counter& counter : counters()) {
      stats.*counter.value = count(store.at("counters"), std::string(counter.name).c_str());
    }
    read_length(store.at("unsettled_keys"), stats.unsettled_keys);
    read_length(store.at("quarantined_plans"), stats.quarantined_plans);
    stats.accounted_bytes = count(store, "accounted_bytes_at_end");
  }
  void read_cases(const char* which, std::vector<NotableCase>& cases) {
    for (const ReadJson& told : json_.at("cases").at(which)) {
      cases.push_back({count(told, "seed"), length_ns(told, "wall_s"), count(told, "runtime_calls"),
                       count(told, "steps"), length_ns(told, "virtual_s")});
    }
    if (cases.size() > kNotableCasesMax) cases.resize(kNotableCasesMax);
  }

  [[nodiscard]] std::string rebased(const std::string& path) const { return path.empty() ? path : prefix_ + path; }

  void read_violation(const ReadJson& told) {
    ReportViolation violation;
    violation.kind = failure_kind(text(told, "kind"));
    if (violation.kind == FailureKind::violation) violation.invariant = invariant_in(told.at("invariant"));
    violation.seed = count(told, "seed");
    const ReadJson& step = told.at("step");
    if (step.is_string()) {
      violation.step = kDrainStep;
    } else if (!step.is_null()) {
      violation.step = step.get<std::uint32_t>();
    }
    violation.call = text(told, "call");
    violation.message = text(told, "message");
    violation.culprits = text(told, "culprits");
    if (!told.at("at_ns").is_null()) violation.at_ns = told.at("at_ns").get<Nanos>();
    violation.trace = rebased(text(told, "trace"));
    violation.reproduce = text(told, "reproduce");
    violation.cause = text(told, "cause");
    violation.timeline = rebased(text(told, "timeline"));
    if (const ReadJson& shrunk = told.at("shrunk"); !shrunk.is_null()) {
      ShrunkTrace trace;
      trace.seed = count(shrunk, "seed");
      trace.trace = rebased(text(shrunk, "trace"));
      trace.steps_before = count(shrunk, "steps_before");
      trace.steps = count(shrunk, "steps");
      trace.faults = count(shrunk, "faults");
      trace.choices = count(shrunk, "choices");
      trace.switches = count(shrunk, "switches");
      if (!shrunk.at("one_minimal").get<bool>()) trace.stopped = "the time was over";
      trace.reproduce = text(shrunk, "reproduce");
      violation.shrunk = std::move(trace);
    }
    report_.violations.push_back(std::move(violation));
  }
  void read_failures(const ReadJson& told) {
    SeedFailure failure;
    failure.kind = failure_kind(text(told, "kind"));
    if (failure.kind == FailureKind::violation) {
      Violation violation;
      violation.invariant = invariant_in(told.at("invariant"));
      violation.call = text(told, "call");
      violation.culprits = text(told, "culprits");
      failure.violations.push_back(std::move(violation));
    } else {
      failure.message = text(told, "culprits");
    }
    for (const ReadJson& seed : told.at("seeds")) {
      failure.seed = seed.get<std::uint64_t>();
      report_.result.failures.push_back(failure);
    }
  }

  void read_story(const ReadJson& cause) {
    if (cause.at("swim_lanes").is_null()) return;
    auto story = std::make_shared<FailureStory>();
    story->seed = count(cause, "story_of_seed");
    story->timeline_file = rebased(text(cause, "timeline"));
    for (const ReadJson& sentence : cause.at("story")) story->sentences.push_back(sentence.get<std::string>());
    story->chart = chart_of(cause.at("swim_lanes"));
    const std::string name = text(cause, "cause");
    for (ReportViolation& violation : report_.violations) {
      if (violation.cause != name) continue;
      if (story->trace_file.empty()) add_trace(violation, *story);
      violation.story = story;
    }
  }
  // As text, where it still lies beside the report.
  void add_trace(const ReportViolation& violation, FailureStory& story) const {
    story.trace_file = violation.shrunk ? violation.shrunk->trace : violation.trace;
    if (story.trace_file.size() <= prefix_.size()) return;
    const std::string inside = story.trace_file.substr(prefix_.size());
    if (inside.starts_with('/') || inside.find("..") != std::string::npos) return;
    auto trace = read_input_file(directory_ + "/" + inside, kReportBytesMax);
    if (!trace) return;
    story.trace = std::move(*trace);
    if (story.trace.size() <= kStoryTraceBytesMax) return;
    story.trace_bytes_more = story.trace.size() - kStoryTraceBytesMax;
    story.trace.resize(kStoryTraceBytesMax);
  }
  static LaneChart chart_of(const ReadJson& told) {
    LaneChart chart;
    const ReadJson& columns = told.at("columns");
    if (columns.size() > kStoryColumnsReadMax) throw std::out_of_range("too many columns");
    for (const ReadJson& column : columns) {
      const ReadJson& step = column.at("step");
      chart.columns.push_back({column.at("at_ns").get<Nanos>(),
                               step.is_string() ? kDrainStep : step.get<std::uint32_t>(), text(column, "what"),
                               step == "drain"});
    }
    chart.first = columns.empty() ? 0 : columns.front().at("number").get<std::uint32_t>() - 1;
    chart.left_out_after = count(told, "left_out_after");
    // Whatever the file says, a place in the chart.
    const auto place = [&](const ReadJson& number) {
      const std::uint64_t at = number.get<std::uint64_t>() - 1 - chart.first;
      if (at >= chart.columns.size()) throw std::out_of_range("a column that the swim-lanes do not have");
      return static_cast<std::uint32_t>(at);
    };
    if (!told.at("broken_at").is_null()) chart.broken_at = place(told.at("broken_at"));
    for (const ReadJson& lane_told : told.at("lanes")) {
      ChartLane lane{kind_of<LaneKind>(kLaneKinds, text(lane_told, "kind")), text(lane_told, "name"), {}, {}};
      for (const ReadJson& span_told : lane_told.at("spans")) {
        ChartSpan span;
        span.kind = kind_of<SpanKind>(kSpanKinds, text(span_told, "kind"));
        span.first = place(span_told.at("first"));
        span.last = place(span_told.at("last"));
        if (span.last < span.first) throw std::out_of_range("a span that ends before it begins");
        span.label = text(span_told, "label");
        span.detail = text(span_told, "detail");
        span.begun_before = span_told.value("begun_before", false);
        span.not_ended = !span_told.value("ended", true);
        span.culprit = span_told.value("culprit", false);
        lane.spans.push_back(std::move(span));
      }
      for (const ReadJson& mark : lane_told.at("marks")) {
        lane.marks.push_back(
            {kind_of<ChartMarkKind>(kMarkKinds, text(mark, "kind")), place(mark.at("column")), text(mark, "label")});
      }
      chart.lanes.push_back(std::move(lane));
    }
    return chart;
  }

  const ReadJson& json_;
  std::string directory_;
  std::string prefix_;
  Report report_;
};

}  // namespace

Result<Report> read_report(const std::string& file, const std::string& prefix) {
  auto content = read_input_file(file, kReportBytesMax);
  if (!content) return content.error();
  try {
    const ReadJson json = ReadJson::parse(*content);
    return Reader(json, std::filesystem::path(file).parent_path().string(), prefix).read();
  } catch (const std::exception& error) {
    return bad_input(file, fmt::format("is no report.json of this version: {}", error.what()));
  }
}

}  // namespace holdfast::sim
