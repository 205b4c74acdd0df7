#include "holdfast/sim/failure_traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "holdfast/sim/files.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t kTracesMax = 100;
constexpr std::size_t kKindsMax = 8;
constexpr Nanos kHangLimit = kSecond;  // of a run that is shrunk
constexpr Nanos kRecordLimit = 10 * kSecond;
constexpr std::size_t kStepsToldMax = 2000;
constexpr std::string_view kSuffix = ".trace.json";

std::string kind_of(const SeedFailure& failure) { return to_string(target_of(failure)); }

bool can_be_shrunk(const SeedFailure& failure) { return failure.has_trace && failure.kind != FailureKind::divergence; }

class TraceWriter {
 public:
  TraceWriter(const CampaignResult& result, const FailureTracesOptions& options) : result_(result), options_(options) {
    for (const SeedFailure& failure : result.failures) {
      if (can_be_shrunk(failure) && first_of_kind_.size() < kKindsMax)
        first_of_kind_.emplace(kind_of(failure), &failure);
    }
  }

  Result<FailureTraces> write() {
    if (auto status = write_originals(); !status) return status.error();
    if (options_.shrink_budget_ns > 0 && !result_.interrupted) {
      if (auto status = shrink_firsts(); !status) return status.error();
    }
    if (!result_.interrupted && !interrupted_) {
      if (auto status = record_all(); !status) return status.error();
    }
    return std::move(traces_);
  }

 private:
  [[nodiscard]] bool is_first_of_kind(const SeedFailure& failure) const {
    return std::ranges::any_of(first_of_kind_, [&](const auto& first) { return first.second == &failure; });
  }

  Status write_originals() {
    for (const SeedFailure& failure : result_.failures) {
      const bool one_too_many = traces_.written.size() >= kTracesMax && !is_first_of_kind(failure);
      if (!failure.has_trace || one_too_many || traces_.written.contains(failure.seed)) continue;
      const std::string file = fmt::format("{}/failures/{}{}", options_.out, failure.seed, kSuffix);
      if (auto status = write_output_file(file, write_trace(*options_.source(failure.seed))); !status) return status;
      traces_.written.insert(failure.seed);
    }
    return {};
  }

  Status shrink_firsts() {
    Nanos left_ns = options_.shrink_budget_ns;
    auto left = static_cast<Nanos>(first_of_kind_.size());
    for (const SeedFailure& failure : result_.failures) {
      if (!is_first_of_kind(failure)) continue;
      Nanos spent_ns = 0;
      if (auto status = shrink_one(failure, left_ns / left--, spent_ns); !status) return status;
      left_ns = std::max<Nanos>(left_ns - spent_ns, kMillisecond);
      if (interrupted_) break;
    }
    for (const SeedFailure& failure : result_.failures) {
      const auto first = first_of_kind_.find(kind_of(failure));
      if (first == first_of_kind_.end()) continue;
      const auto shrunk = traces_.shrunk.find(first->second->seed);
      if (shrunk != traces_.shrunk.end()) traces_.shrunk.emplace(failure.seed, shrunk->second);
    }
    return {};
  }

  Status shrink_one(const SeedFailure& failure, Nanos budget_ns, Nanos& spent_ns) {
    const auto trace = options_.source(failure.seed);
    ShrinkOptions shrinking;
    shrinking.disabled = options_.disabled;
    shrinking.hang_limit_ns = std::min(options_.hang_limit_ns, kHangLimit);
    shrinking.time_budget_ns = budget_ns;
    if (options_.progress) {
      shrinking.progress = [&](const ShrinkProgress& now) { options_.progress(failure.seed, now); };
    }
    const auto shrunk = shrink_failure(*trace, options_.factory, shrinking);
    // No reason to lose the campaign's report: the original is there.
    if (!shrunk || !shrunk->failed) {
      traces_.notes.push_back(fmt::format("seed {} was not shrunk: {}", failure.seed,
                                          shrunk ? "its trace holds when it runs by itself" : explain(shrunk.error())));
      return {};
    }
    spent_ns = shrunk->elapsed_ns;
    interrupted_ = shrunk->stopped == kShrinkInterrupted;
    ShrunkTrace entry;
    entry.seed = failure.seed;
    entry.trace = fmt::format("failures/{}.min{}", failure.seed, kSuffix);
    entry.steps_before = trace->steps.size();
    entry.steps = shrunk->trace.steps.size();
    entry.faults = shrunk->trace.faults.size();
    entry.choices = shrunk->trace.choices.size();
    entry.switches = shrunk->trace.switches.size();
    entry.stopped = shrunk->stopped;
    const std::string file = fmt::format("{}/{}", options_.out, entry.trace);
    entry.reproduce = fmt::format("holdfast replay {}", shell_word(file));
    traces_.shrunk.emplace(failure.seed, std::move(entry));
    smallest_.emplace(failure.seed, std::make_shared<const Trace>(shrunk->trace));
    return write_shrunk_trace(file, *trace, shrunk->trace);
  }

  // A run that diverges tells another story each time.
  Status record_all() {
    for (const SeedFailure& failure : result_.failures) {
      if (!can_be_shrunk(failure) || !traces_.written.contains(failure.seed)) continue;
      if (traces_.timelines.contains(failure.seed)) continue;
      if (auto status = record_one(failure); !status) return status;
    }
    for (const SeedFailure& failure : result_.failures) {
      const auto first = first_of_kind_.find(kind_of(failure));
      if (first == first_of_kind_.end()) continue;
      const auto story = traces_.stories.find(first->second->seed);
      if (story != traces_.stories.end()) traces_.stories.emplace(failure.seed, story->second);
    }
    return {};
  }

  Status record_one(const SeedFailure& failure) {
    std::shared_ptr<const Trace> trace = options_.source(failure.seed);
    std::string trace_file = fmt::format("failures/{}{}", failure.seed, kSuffix);
    if (const auto smaller = smallest_.find(failure.seed); smaller != smallest_.end()) {
      trace = smaller->second;
      trace_file = traces_.shrunk.at(failure.seed).trace;
    }
    if (trace->steps.size() > kStepsToldMax) return {};
    RecordOptions recording;
    recording.disabled = options_.disabled;
    recording.hang_limit_ns = std::min(options_.hang_limit_ns, kRecordLimit);
    const auto run = record_run(*trace, options_.factory, recording);
    if (!run) {
      traces_.notes.push_back(fmt::format("seed {} has no timeline: {}", failure.seed, explain(run.error())));
      return {};
    }
    const FailureTarget target = target_of(failure);
    const std::string file = fmt::format("failures/{}.timeline.json", failure.seed);
    ChartOptions every;
    every.every_moment = true;
    if (const Violation* violation = find_target(run->violations, target)) {
      every.violation = static_cast<std::size_t>(violation - run->violations.data());
    }
    const std::string title = fmt::format("{}: {}", printable(trace->name), to_string(target));
    const LaneChart chart = make_lane_chart(*trace, *run, every);
    if (auto status =
            write_output_file(fmt::format("{}/{}", options_.out, file), lane_chart_trace_events(chart, title));
        !status) {
      return status;
    }
    traces_.timelines.emplace(failure.seed, file);
    if (!is_first_of_kind(failure)) return {};
    auto story = std::make_shared<FailureStory>(tell_story(*trace, *run, target));
    story->seed = failure.seed;
    story->trace_file = std::move(trace_file);
    story->timeline_file = file;
    traces_.stories.emplace(failure.seed, std::move(story));
    return {};
  }

  const CampaignResult& result_;
  const FailureTracesOptions& options_;
  std::map<std::uint64_t, std::shared_ptr<const Trace>> smallest_;  // by seed
  std::map<std::string, const SeedFailure*> first_of_kind_;
  bool interrupted_ = false;
  FailureTraces traces_;
};

}  // namespace

Result<FailureTraces> write_failure_traces(const CampaignResult& result, const FailureTracesOptions& options) {
  return TraceWriter(result, options).write();
}

Status write_shrunk_trace(const std::string& file, const Trace& original, Trace shrunk) {
  shrunk.name = original.name + ", shrunk";
  return write_output_file(file, write_trace(shrunk));
}

std::string shrunk_beside(const std::string& file) {
  std::string stem = file;
  if (stem.ends_with(kSuffix)) stem.resize(stem.size() - kSuffix.size());
  return stem + ".min" + std::string(kSuffix);
}

std::string progress_line(std::string_view what, const ShrinkProgress& now) {
  return fmt::format("shrinking {}: {} of {} steps, {} tried, {}", what, with_thousands(now.steps),
                     with_thousands(now.steps_before), with_thousands(now.tried), seconds_text(now.elapsed_ns));
}

}  // namespace holdfast::sim
