// The violations, by cause: each opens to the promise, the story, the swim-lanes, the trace and the commands.
#include <fmt/format.h>

#include <algorithm>

#include "holdfast/sim/failure_story.hpp"
#include "holdfast/sim/text.hpp"
#include "report_page.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t kOpenMax = 1;      // causes that are open at first
constexpr std::size_t kOthersMax = 200;  // cases that a cause lists
constexpr std::size_t kDrawnMax = 16;    // causes with their story: as many as traces are shrunk, and some

std::string where_of(const ReportViolation& violation) {
  std::string where = fmt::format("seed {}", violation.seed);
  if (violation.step) {
    where += *violation.step == kDrainStep ? std::string(", in the drain") : fmt::format(", step {}", *violation.step);
  }
  if (!violation.call.empty()) where += ", " + violation.call;
  if (violation.at_ns) where += fmt::format(", at {}", virtual_time_text(*violation.at_ns));
  return where;
}

PageData events_of(const LaneChart& chart) {
  PageData events = page_list();
  for (std::uint32_t i = 0; i < chart.columns.size(); ++i) {
    const ChartColumn& column = chart.columns[i];
    PageData event;
    event.set("number", std::to_string(chart.first + i + 1));
    event.set("time", virtual_time_text(column.at_ns));
    event.set("step", step_name(column));
    event.set("text", page_text(column.text));
    event.set("broken", PageData(chart.broken_at == i));
    events << event;
  }
  return events;
}

std::string lanes_line(const FailureStory& story) {
  const LaneChart& chart = story.chart;
  std::string line =
      fmt::format("Of seed {}, one column a moment, in order; virtual time is written where it changes.", story.seed);
  if (chart.first > 0) line += fmt::format(" The first {} columns are left out.", with_thousands(chart.first));
  if (chart.left_out_after > 0) {
    line += fmt::format(" {} columns follow.", with_thousands(chart.left_out_after));
  }
  return line;
}

void fill_story(const FailureStory* story, std::size_t number, PageData& entry) {
  entry.set("has_story", PageData(story != nullptr));
  entry.set("smaller", PageData(false));
  if (story == nullptr) return;
  PageData sentences = page_list();
  for (const std::string& sentence : story->sentences) {
    PageData line;
    line.set("sentence", page_text(sentence));
    sentences << line;
  }
  entry.set("story", sentences);
  entry.set("story_seed", std::to_string(story->seed));
  entry.set("lanes_line", lanes_line(*story));
  entry.set("svg", lane_chart_svg(story->chart, fmt::format("lanes-{}", number),
                                  fmt::format("Swim-lanes of seed {}: {}", story->seed,
                                              story->sentences.empty() ? "" : story->sentences.front())));
  entry.set("events", events_of(story->chart));
  const bool smaller = story->trace_file.find(".min.") != std::string::npos;
  entry.set("smaller", PageData(smaller));
  entry.set("trace_title", page_text(fmt::format("The {}trace{}{}", smaller ? "shrunk " : "",
                                                 story->trace_file.empty() ? "" : ": ", story->trace_file)));
  entry.set("trace", page_text(story->trace));
  entry.set("trace_more", story->trace_bytes_more == 0 ? PageData(false)
                                                       : page_text(fmt::format("{} more are in the file.",
                                                                               bytes_text(story->trace_bytes_more))));
}

PageData commands_of(const ReportViolation& violation) {
  PageData commands = page_list();
  const auto add = [&](const std::string& command) {
    PageData line;
    line.set("command", page_text(command));
    commands << line;
  };
  if (violation.shrunk) add(fmt::format("{}   # {}", violation.shrunk->reproduce, describe(*violation.shrunk)));
  add(violation.reproduce);
  return commands;
}

void fill_others(const FailureCause& cause, PageData& entry) {
  PageData others = page_list();
  const std::size_t listed = std::min(cause.violations.size(), kOthersMax);
  for (std::size_t i = 1; i < listed; ++i) {
    const ReportViolation& violation = *cause.violations[i];
    PageData row;
    row.set("seed", std::to_string(violation.seed));
    row.set("where", page_text(where_of(violation)));
    row.set("command", page_text(violation.reproduce));
    others << row;
  }
  entry.set("has_others", PageData(listed > 1));
  entry.set("others", others);
  entry.set("others_title", fmt::format("{} more {} failed alike", with_thousands(cause.seeds - 1),
                                        cause.seeds == 2 ? "case" : "cases"));
  const std::uint64_t more = cause.seeds - listed;
  entry.set("others_more",
            more == 0 ? PageData(false) : page_text(fmt::format("{} more are not listed.", with_thousands(more))));
}

PageData cause_entry(const FailureCause& cause, std::size_t number) {
  const ReportViolation& first = *cause.violations.front();
  PageData entry;
  entry.set("id", fmt::format("cause-{}", number));
  entry.set("open", PageData(number <= kOpenMax));
  entry.set("what", page_text(what_broke(first)));
  entry.set("seeds", fmt::format("{} {}", with_thousands(cause.seeds), cause.seeds == 1 ? "case" : "cases"));
  entry.set("where", page_text(where_of(first)));
  entry.set("promise", first.invariant ? page_text(promise_of(*first.invariant)) : PageData(false));
  entry.set("message", page_text(first.message));
  fill_story(number <= kDrawnMax ? first.story.get() : nullptr, number, entry);
  entry.set("commands", commands_of(first));
  entry.set("timeline", page_text_if(first.timeline));
  fill_others(cause, entry);
  return entry;
}

}  // namespace

void fill_violations(const Report& report, PageData& page) {
  page.set("has_violations", PageData(!report.violations.empty()));
  const std::vector<FailureCause> causes = causes_of(report);
  PageData list = page_list();
  for (std::size_t i = 0; i < causes.size(); ++i) list << cause_entry(causes[i], i + 1);
  page.set("causes", list);
  const std::size_t failures = report.result.failures.size();
  page.set("causes_line",
           fmt::format("{} failed {}, by {} {}: what broke, at which call, and the kinds of what met there.",
                       with_thousands(failures), failures == 1 ? "case" : "cases", causes.size(),
                       causes.size() == 1 ? "cause" : "causes"));
}

}  // namespace holdfast::sim
