// Swim-lanes of a recorded run: who did what when, one below the other; as SVG for a report, and as a timeline file for
// Perfetto and chrome://tracing.
//
// The axis is order, not time: a column is one moment, since most calls take no virtual time and a time-out takes half
// an hour. Each column knows its virtual time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/core/time.hpp"
#include "holdfast/sim/moments.hpp"
#include "holdfast/sim/record_run.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

struct ChartColumn {
  Nanos at_ns = 0;
  std::uint32_t step = 0;
  std::string text;    // what happened, a line
  bool drain = false;  // of phase two
};

enum class SpanKind : std::uint8_t { step, operation, plan, handle, batch };
struct ChartSpan {
  SpanKind kind{};
  std::uint32_t first = 0;  // columns, both belong to it
  std::uint32_t last = 0;
  bool begun_before = false;  // the first column shown is not its beginning
  bool not_ended = false;
  bool culprit = false;
  std::string label;
  std::string detail;
};

enum class ChartMarkKind : std::uint8_t { call, failed_call, fault, happening, claim, violation };
struct ChartMark {
  ChartMarkKind kind{};
  std::uint32_t column = 0;
  std::string label;
};

enum class LaneKind : std::uint8_t {
  violations,
  faults,
  session,
  store,
  claims,
  owner,
  device,
  stream,
  plans,
  handles,
  files
};
struct ChartLane {
  LaneKind kind{};
  std::string name;              // of the first of several lanes of one thing; empty for the rest
  std::vector<ChartSpan> spans;  // in order; of steps and their operations nested, else apart from each other
  std::vector<ChartMark> marks;  // in order
};

struct LaneChart {
  std::vector<ChartColumn> columns;
  std::uint32_t first = 0;  // the number of the first column, counted from 0 from the beginning of the run
  std::uint64_t left_out_after = 0;
  std::vector<ChartLane> lanes;
  std::optional<std::uint32_t> broken_at;  // the column where the promise was broken, or the run broke off
};

struct ChartOptions {
  // Every moment has a column. Else what says little shares one with what came before, and calls repeated are one.
  bool every_moment = false;
  std::uint32_t columns_max = 0;         // those up to the violation, and a few behind it; 0 = all
  std::optional<std::size_t> violation;  // index into the run's violations: the one that is shown
};

LaneChart make_lane_chart(const Trace& trace, const RecordedRun& run, const ChartOptions& options,
                          std::vector<std::uint32_t>* column_of_moment = nullptr);

// Needs the report's style; `name` is unique in the page and safe in an attribute; `title` is escaped here.
std::string lane_chart_svg(const LaneChart& chart, const std::string& name, const std::string& title);
// Trace-event JSON: a microsecond is a column; `args.virtual_ns` is the virtual time. On each track events nest.
std::string lane_chart_trace_events(const LaneChart& chart, const std::string& title);

// "3", "drain"; "start" before the first step.
std::string step_name(const ChartColumn& column);
// "1.2 ms", "1,801 s".
std::string virtual_time_text(Nanos at_ns);

}  // namespace holdfast::sim
