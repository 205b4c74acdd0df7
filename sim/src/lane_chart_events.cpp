// Swim-lanes as trace events, for Perfetto and chrome://tracing.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "holdfast/sim/lane_chart.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

using EventsJson = nlohmann::ordered_json;

constexpr int kProcess = 1;

EventsJson meta(const char* name, std::size_t track, EventsJson args) {
  return {{"name", name}, {"ph", "M"}, {"pid", kProcess}, {"tid", track}, {"args", std::move(args)}};
}

EventsJson args_of(const LaneChart& chart, std::uint32_t column, const std::string& detail) {
  return {{"virtual_ns", chart.columns[column].at_ns},
          {"virtual_time", virtual_time_text(chart.columns[column].at_ns)},
          {"what", printable(detail.empty() ? chart.columns[column].text : detail)}};
}

// The first words of a mark's label are its call or kind.
std::string name_of_mark(const std::string& label) { return printable(label.substr(0, label.find(": "))); }

}  // namespace

std::string lane_chart_trace_events(const LaneChart& chart, const std::string& title) {
  EventsJson events = EventsJson::array();
  events.push_back(meta("process_name", 0, {{"name", printable(title)}}));
  std::string name;  // of the lanes that are of one thing
  std::size_t more = 0;
  for (std::size_t i = 0; i < chart.lanes.size(); ++i) {
    const ChartLane& lane = chart.lanes[i];
    const std::size_t track = i + 1;
    more = lane.name.empty() ? more + 1 : 1;
    if (!lane.name.empty()) name = lane.name;
    events.push_back(
        meta("thread_name", track, {{"name", printable(more == 1 ? name : fmt::format("{} ({})", name, more))}}));
    events.push_back(meta("thread_sort_index", track, {{"sort_index", track}}));
    for (const ChartSpan& span : lane.spans) {
      EventsJson args = args_of(chart, span.first, span.detail);
      args["virtual_end_ns"] = chart.columns[span.last].at_ns;
      if (span.not_ended) args["ended"] = false;
      if (span.culprit) args["culprit"] = true;
      EventsJson event = {{"name", printable(span.label)},
                          {"ph", "X"},
                          {"ts", span.first},
                          {"dur", span.last - span.first + 1},
                          {"pid", kProcess},
                          {"tid", track},
                          {"args", std::move(args)}};
      if (span.culprit) event["cname"] = "terrible";
      events.push_back(std::move(event));
    }
    for (const ChartMark& mark : lane.marks) {
      EventsJson event = {{"name", name_of_mark(mark.label)},
                          {"ph", "X"},
                          {"ts", mark.column},
                          {"dur", 1},
                          {"pid", kProcess},
                          {"tid", track},
                          {"args", args_of(chart, mark.column, mark.label)}};
      if (mark.kind == ChartMarkKind::violation || mark.kind == ChartMarkKind::fault) {
        event["ph"] = "i";
        event["s"] = mark.kind == ChartMarkKind::violation ? "g" : "t";
        event.erase("dur");
        event["cname"] = mark.kind == ChartMarkKind::violation ? "terrible" : "bad";
      } else if (mark.kind == ChartMarkKind::failed_call) {
        event["cname"] = "bad";
      }
      events.push_back(std::move(event));
    }
  }
  // One event a line, so that two files compare well.
  std::string text = "{\"displayTimeUnit\": \"ns\",\n\"otherData\": " +
                     EventsJson{{"what", printable(title)},
                                {"axis",
                                 "a microsecond is one moment of the run, in order; args.virtual_ns is the "
                                 "virtual time"}}
                         .dump(-1, ' ', false, EventsJson::error_handler_t::replace) +
                     ",\n\"traceEvents\": [\n";
  for (std::size_t i = 0; i < events.size(); ++i) {
    text += events[i].dump(-1, ' ', false, EventsJson::error_handler_t::replace);
    text += i + 1 < events.size() ? ",\n" : "\n";
  }
  return text + "]}\n";
}

}  // namespace holdfast::sim
