#include "holdfast/sim/lane_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "holdfast/sim/text.hpp"
#include "lanes.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint32_t kColumnsBehindMax = 8;  // the violation
constexpr std::size_t kLookAhead = 16;          // from what a call opened or broke to the call itself
constexpr std::size_t kLineMax = 400;

bool is_owner_call(Call call) { return call <= Call::get; }
bool is_file_call(Call call) { return call >= Call::file_read; }

// Calls that say little where they succeed.
bool says_little(const Moment& moment) {
  if (moment.code != 0) return false;
  return moment.call == Call::pointer_attributes || moment.call == Call::event_create ||
         moment.call == Call::event_destroy || moment.call == Call::event_query;
}

bool stands_beside(MomentKind kind) {
  return kind == MomentKind::opened || kind == MomentKind::closed || kind == MomentKind::violated;
}

std::string line_of(const Moment& moment) {
  std::string line;
  switch (moment.kind) {
    case MomentKind::call:
      line = std::string(name_of(moment.call));
      if (!moment.text.empty()) line += ": " + moment.text;
      if (moment.code != 0) line += fmt::format(" -> {}", moment.code);
      break;
    case MomentKind::fault:
      line = fmt::format("fault: {} of {}", name_of(moment.fault), name_of(moment.call));
      if (moment.code != 0) line += fmt::format(", seen as {}", moment.code);
      if (!moment.text.empty()) line += ": " + moment.text;
      break;
    case MomentKind::step:
      line = "step " + moment.text + " begins";
      break;
    case MomentKind::step_end:
      line = "step " + moment.text;
      break;
    case MomentKind::operation:
    case MomentKind::operation_end:
      line = "operation " + moment.text;
      break;
    case MomentKind::turn:
      line = "goes on: " + moment.text;
      break;
    case MomentKind::claim:
      line = "shown ready: " + moment.text;
      break;
    case MomentKind::withdrawal:
      line = "withdrawn: " + moment.text;
      break;
    case MomentKind::drain:
      line = "the drain begins: no more faults";
      break;
    case MomentKind::violated:
      line = "BROKEN: " + moment.text;
      break;
    case MomentKind::happening:
    case MomentKind::opened:
    case MomentKind::closed:
      line = moment.text;
      break;
  }
  return printable(line, kLineMax);
}

// What goes into which column.
class Columns {
 public:
  Columns(const std::vector<Moment>& moments, bool every_moment) : moments_(moments), every_moment_(every_moment) {
    of_.assign(moments.size(), 0);
    for (std::size_t i = 0; i < moments.size(); ++i) {
      if (!stands_beside(moments[i].kind)) place(i);
    }
    for (std::size_t i = 0; i < moments.size(); ++i) {
      if (stands_beside(moments[i].kind)) place_beside(i);
    }
    for (std::size_t i = 0; i < moments.size(); ++i) {
      if (moments[i].kind == MomentKind::violated) columns_[of_[i]].text += "; " + line_of(moments[i]);
    }
  }
  [[nodiscard]] std::uint32_t of(std::size_t moment) const { return of_[moment]; }
  [[nodiscard]] const std::vector<std::uint32_t>& all() const { return of_; }
  std::vector<ChartColumn> take() { return std::move(columns_); }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(columns_.size()); }
  // The call that a moment stands beside; null when none is near.
  [[nodiscard]] const Moment* call_of(std::size_t moment) const {
    const auto found = call_beside(moment);
    return found ? &moments_[*found] : nullptr;
  }

 private:
  [[nodiscard]] bool has_no_column(const Moment& moment) const {
    if (every_moment_) return false;
    return moment.kind == MomentKind::operation || moment.kind == MomentKind::operation_end ||
           moment.kind == MomentKind::turn || (moment.kind == MomentKind::call && says_little(moment));
  }

  void place(std::size_t index) {
    const Moment& moment = moments_[index];
    if (!columns_.empty() && has_no_column(moment)) {
      of_[index] = count() - 1;
      return;
    }
    if (!every_moment_ && repeats(moment)) {
      ++times_;
      columns_.back().text = fmt::format("{} ({} times)", first_line_, times_);
      of_[index] = count() - 1;
      return;
    }
    times_ = 1;
    first_line_ = line_of(moment);
    last_ = &moment;
    of_[index] = count();
    drain_ = drain_ || moment.kind == MomentKind::drain;
    columns_.push_back({moment.at_ns, moment.step, first_line_, drain_});
  }
  [[nodiscard]] bool repeats(const Moment& moment) const {
    return last_ != nullptr && moment.kind == MomentKind::call && last_->kind == MomentKind::call &&
           moment.call == last_->call && moment.code == last_->code && moment.step == last_->step &&
           moment.at_ns == last_->at_ns && moment.thing == last_->thing && moment.thing.kind == ThingKind::none;
  }

  // The call is logged after what it opens, and before or after what it closes.
  [[nodiscard]] std::optional<std::size_t> call_beside(std::size_t index) const {
    const Moment& moment = moments_[index];
    if (!moment.of_call) return std::nullopt;
    const auto is_it = [&](const Moment& other) {
      return other.kind == MomentKind::call && other.call == moment.call && other.step == moment.step;
    };
    const auto ends_it = [](const Moment& other) {
      return other.kind == MomentKind::step || other.kind == MomentKind::step_end || other.kind == MomentKind::turn;
    };
    // What it closes comes right behind the call in the log, but for others that it closes too.
    for (std::size_t back = index; moment.kind == MomentKind::closed && back-- > 0;) {
      if (is_it(moments_[back])) return back;
      if (moments_[back].kind != MomentKind::closed) break;
    }
    for (std::size_t on = index + 1; on < std::min(moments_.size(), index + kLookAhead); ++on) {
      if (is_it(moments_[on])) return on;
      if (ends_it(moments_[on])) break;
    }
    return std::nullopt;
  }
  void place_beside(std::size_t index) {
    if (const auto call = call_beside(index)) {
      of_[index] = of_[*call];
      return;
    }
    // Beside what came before it.
    for (std::size_t back = index; back-- > 0;) {
      if (stands_beside(moments_[back].kind)) continue;
      of_[index] = of_[back];
      return;
    }
    if (columns_.empty())
      columns_.push_back({moments_[index].at_ns, moments_[index].step, line_of(moments_[index]), drain_});
  }

  const std::vector<Moment>& moments_;
  bool every_moment_;
  std::vector<std::uint32_t> of_;
  std::vector<ChartColumn> columns_;
  const Moment* last_ = nullptr;
  std::string first_line_;
  std::uint32_t times_ = 1;
  bool drain_ = false;
};

// Spans of one sort on as few lanes as they need, so that none overlaps another of its lane.
class Packed {
 public:
  void add(ChartSpan span) { spans_.push_back(std::move(span)); }
  std::vector<std::vector<ChartSpan>> lanes() {
    std::ranges::stable_sort(spans_, {}, &ChartSpan::first);
    std::vector<std::vector<ChartSpan>> lanes;
    for (ChartSpan& span : spans_) {
      const auto free = std::ranges::find_if(
          lanes, [&](const std::vector<ChartSpan>& lane) { return lane.back().last < span.first; });
      if (free != lanes.end()) {
        free->push_back(std::move(span));
      } else {
        lanes.emplace_back();
        lanes.back().push_back(std::move(span));
      }
    }
    return lanes;
  }

 private:
  std::vector<ChartSpan> spans_;
};

class Maker {
 public:
  Maker(const Trace& trace, const RecordedRun& run, const ChartOptions& options)
      : trace_(trace), run_(run), options_(options), columns_(run.moments, options.every_moment) {}

  LaneChart make(std::vector<std::uint32_t>* column_of_moment) {
    std::size_t violations = 0;
    for (std::size_t i = 0; i < run_.moments.size(); ++i) {
      const Moment& moment = run_.moments[i];
      if (moment.kind != MomentKind::violated) continue;
      if (options_.violation && violations++ != *options_.violation) continue;
      chart_.broken_at = columns_.of(i);
      culprits_ = moment.culprits;
      break;
    }
    for (std::size_t i = 0; i < run_.moments.size(); ++i) add(i, run_.moments[i]);
    end_all();
    if (!chart_.broken_at && !run_.broken_off.empty() && columns_.count() > 0) {
      chart_.broken_at = columns_.count() - 1;
      marks_[LaneKind::violations].push_back({ChartMarkKind::violation, columns_.count() - 1, run_.broken_off});
    }
    assemble();
    if (column_of_moment != nullptr) *column_of_moment = columns_.all();
    chart_.columns = columns_.take();
    if (options_.columns_max > 0) cut();
    return std::move(chart_);
  }

 private:
  struct Open {
    ChartSpan span;
    std::uint32_t stream = 0;  // of a batch
  };

  void add(std::size_t index, const Moment& moment) {
    const std::uint32_t column = columns_.of(index);
    switch (moment.kind) {
      case MomentKind::call:
        add_call(moment, column);
        break;
      case MomentKind::step:
        open_steps_[moment.step] = {SpanKind::step, column, column, false, true, false, moment.text, {}};
        break;
      case MomentKind::step_end:
        end_operation(moment.step, column, {});
        end_step(moment.step, column, moment.text);
        break;
      case MomentKind::operation:
        end_operation(moment.step, column == 0 ? 0 : column - 1, {});  // one that its client's death broke off
        open_operations_[moment.step] = {SpanKind::operation, column, column, false, true, false, moment.text, {}};
        break;
      case MomentKind::operation_end:
        end_operation(moment.step, column, moment.text);
        break;
      case MomentKind::turn:
        break;
      case MomentKind::fault:
        marks_[LaneKind::faults].push_back({ChartMarkKind::fault, column, line_of(moment)});
        break;
      case MomentKind::happening:
        marks_[LaneKind::owner].push_back({ChartMarkKind::happening, column, line_of(moment)});
        break;
      case MomentKind::claim:
      case MomentKind::withdrawal:
        marks_[LaneKind::claims].push_back({ChartMarkKind::claim, column, line_of(moment)});
        break;
      case MomentKind::drain:
        open_steps_[moment.step] = {SpanKind::step, column, column, false, true, false, "drain", {}};
        break;
      case MomentKind::opened:
        open(index, moment, column);
        break;
      case MomentKind::closed:
        close(moment, column);
        break;
      case MomentKind::violated:
        marks_[LaneKind::violations].push_back({ChartMarkKind::violation, column, line_of(moment)});
        break;
    }
  }

  void add_call(const Moment& moment, std::uint32_t column) {
    if (!options_.every_moment && says_little(moment)) return;
    const ChartMark mark{moment.code == 0 ? ChartMarkKind::call : ChartMarkKind::failed_call, column, line_of(moment)};
    std::vector<ChartMark>& lane = moment.thing.kind == ThingKind::stream ? stream_marks_[moment.thing.number]
                                   : is_owner_call(moment.call)           ? marks_[LaneKind::owner]
                                   : is_file_call(moment.call)            ? marks_[LaneKind::files]
                                                                          : marks_[LaneKind::device];
    if (!lane.empty() && lane.back().column == column) return;  // the same again
    lane.push_back(mark);
  }

  void open(std::size_t index, const Moment& moment, std::uint32_t column) {
    Open opened;
    opened.span.kind = moment.thing.kind == ThingKind::batch    ? SpanKind::batch
                       : moment.thing.kind == ThingKind::handle ? SpanKind::handle
                                                                : SpanKind::plan;
    opened.span.first = opened.span.last = column;
    opened.span.not_ended = true;
    opened.span.culprit = std::ranges::find(culprits_, moment.thing) != culprits_.end();
    opened.span.label = to_string(moment.thing);
    opened.span.detail = printable(moment.text, kLineMax);
    const Moment* call = columns_.call_of(index);
    if (call != nullptr && call->thing.kind == ThingKind::stream) opened.stream = call->thing.number;
    open_things_.insert_or_assign(moment.thing, std::move(opened));
  }
  void close(const Moment& moment, std::uint32_t column) {
    const auto found = open_things_.find(moment.thing);
    if (found == open_things_.end()) return;
    Open& opened = found->second;
    opened.span.last = std::max(column, opened.span.first);
    opened.span.not_ended = false;
    const std::string by = moment.of_call ? std::string(name_of(moment.call)) : printable(moment.text, kLineMax);
    opened.span.detail += fmt::format("; {} by {}", opened.span.kind == SpanKind::batch ? "covered" : "ended", by);
    finish(moment.thing, opened);
    open_things_.erase(found);
  }
  void finish(const Thing& thing, Open& opened) {
    if (thing.kind == ThingKind::batch) {
      streams_[opened.stream].add(std::move(opened.span));
    } else {
      (thing.kind == ThingKind::handle ? handles_ : plans_).add(std::move(opened.span));
    }
  }

  void end_step(std::uint32_t step, std::uint32_t column, const std::string& text) {
    const auto found = open_steps_.find(step);
    if (found == open_steps_.end()) return;
    found->second.last = column;
    found->second.not_ended = false;
    found->second.detail = printable(text, kLineMax);
    lane_of_step(step).push_back(std::move(found->second));
    open_steps_.erase(found);
  }
  void end_operation(std::uint32_t step, std::uint32_t column, const std::string& text) {
    const auto found = open_operations_.find(step);
    if (found == open_operations_.end()) return;
    found->second.last = column;
    found->second.not_ended = false;
    found->second.detail = printable(text, kLineMax);
    if (options_.every_moment) lane_of_step(step).push_back(std::move(found->second));
    open_operations_.erase(found);
  }
  void end_all() {
    const std::uint32_t last = columns_.count() == 0 ? 0 : columns_.count() - 1;
    while (!open_operations_.empty()) end_operation(open_operations_.begin()->first, last, {});
    while (!open_steps_.empty()) end_step(open_steps_.begin()->first, last, {});
    for (auto& [thing, opened] : open_things_) {
      opened.span.last = last;
      finish(thing, opened);
    }
  }

  // 0: of no session.
  [[nodiscard]] std::uint32_t session_of(std::uint32_t step) const {
    const auto found = std::ranges::find(trace_.steps, step, &Step::id);
    if (found == trace_.steps.end()) return 0;
    const std::uint32_t lane = lane_of(trace_, *found);
    const auto open = std::ranges::find(trace_.steps, lane, &Step::id);
    return open != trace_.steps.end() && open->kind == StepKind::open ? lane : 0;
  }
  std::vector<ChartSpan>& lane_of_step(std::uint32_t step) {
    const std::uint32_t session = session_of(step);
    if (session != 0) return sessions_[session];
    return others_[step];
  }

  void lane(LaneKind kind, std::string name, std::vector<ChartSpan> spans, std::vector<ChartMark> marks) {
    // What encloses comes first.
    std::ranges::stable_sort(spans, [](const ChartSpan& one, const ChartSpan& other) {
      return one.first != other.first ? one.first < other.first : one.last > other.last;
    });
    std::ranges::stable_sort(marks, {}, &ChartMark::column);
    chart_.lanes.push_back({kind, std::move(name), std::move(spans), std::move(marks)});
  }
  void marked(LaneKind kind, const char* name) {
    if (!marks_[kind].empty()) lane(kind, name, {}, std::move(marks_[kind]));
  }
  void packed(LaneKind kind, const std::string& name, Packed& spans, std::vector<ChartMark> marks) {
    std::vector<std::vector<ChartSpan>> lanes = spans.lanes();
    if (lanes.empty() && !marks.empty()) lanes.emplace_back();
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      lane(kind, i == 0 ? name : "", std::move(lanes[i]), std::exchange(marks, {}));
    }
  }

  void assemble() {
    marked(LaneKind::violations, "violation");
    marked(LaneKind::faults, "faults");
    for (auto& [session, spans] : sessions_) {
      lane(LaneKind::session, fmt::format("session {}", session), std::move(spans), {});
    }
    // Steps of no session may run side by side; each brings its operations along.
    std::vector<std::pair<std::uint32_t, std::vector<ChartSpan>>> rows;  // the last column of each
    for (auto& [step, spans] : others_) {
      const std::uint32_t first = std::ranges::min_element(spans, {}, &ChartSpan::first)->first;
      const std::uint32_t last = std::ranges::max_element(spans, {}, &ChartSpan::last)->last;
      const auto free = std::ranges::find_if(rows, [&](const auto& row) { return row.first < first; });
      auto& row = free != rows.end() ? *free : rows.emplace_back();
      row.first = last;
      std::ranges::move(spans, std::back_inserter(row.second));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      lane(LaneKind::store, i == 0 ? "others" : "", std::move(rows[i].second), {});
    }
    marked(LaneKind::claims, "shown ready");
    marked(LaneKind::owner, "owner");
    marked(LaneKind::device, "device");
    for (const auto& [stream, marks] : stream_marks_) streams_[stream];
    for (auto& [stream, batches] : streams_) {
      packed(LaneKind::stream, stream == 0 ? "some stream" : fmt::format("stream {}", stream), batches,
             std::move(stream_marks_[stream]));
    }
    packed(LaneKind::plans, "plans", plans_, {});
    packed(LaneKind::handles, "handles", handles_, {});
    marked(LaneKind::files, "files");
  }

  // Leaves the columns up to the violation, and a few.
  void cut() {
    const auto count = static_cast<std::uint32_t>(chart_.columns.size());
    if (count == 0) return;
    const std::uint32_t end = chart_.broken_at ? std::min(count, *chart_.broken_at + 1 + kColumnsBehindMax) : count;
    const std::uint32_t begin = end > options_.columns_max ? end - options_.columns_max : 0;
    chart_.first = begin;
    chart_.left_out_after = count - end;
    chart_.columns.erase(chart_.columns.begin() + end, chart_.columns.end());
    chart_.columns.erase(chart_.columns.begin(), chart_.columns.begin() + begin);
    if (chart_.broken_at) *chart_.broken_at -= begin;
    for (ChartLane& lane : chart_.lanes) {
      std::erase_if(lane.spans, [&](const ChartSpan& span) { return span.last < begin || span.first >= end; });
      for (ChartSpan& span : lane.spans) {
        span.begun_before = span.first < begin;
        span.first = span.begun_before ? 0 : span.first - begin;
        if (span.last >= end) span.not_ended = true;
        span.last = std::min(span.last, end - 1) - begin;
      }
      std::erase_if(lane.marks, [&](const ChartMark& mark) { return mark.column < begin || mark.column >= end; });
      for (ChartMark& mark : lane.marks) mark.column -= begin;
    }
    std::string name;  // of the lanes that are of one thing
    std::erase_if(chart_.lanes, [&](ChartLane& lane) {
      if (!lane.name.empty()) name = std::exchange(lane.name, {});
      if (lane.spans.empty() && lane.marks.empty()) return true;
      lane.name = std::exchange(name, {});
      return false;
    });
  }

  const Trace& trace_;
  const RecordedRun& run_;
  const ChartOptions& options_;
  Columns columns_;
  LaneChart chart_;
  std::vector<Thing> culprits_;
  std::map<std::uint32_t, ChartSpan> open_steps_;       // by step
  std::map<std::uint32_t, ChartSpan> open_operations_;  // by step
  std::map<Thing, Open> open_things_;
  std::map<std::uint32_t, std::vector<ChartSpan>> sessions_;  // by the id of its open step
  std::map<std::uint32_t, std::vector<ChartSpan>> others_;    // by step
  std::map<LaneKind, std::vector<ChartMark>> marks_;
  std::map<std::uint32_t, Packed> streams_;
  std::map<std::uint32_t, std::vector<ChartMark>> stream_marks_;
  Packed plans_;
  Packed handles_;
};

}  // namespace

LaneChart make_lane_chart(const Trace& trace, const RecordedRun& run, const ChartOptions& options,
                          std::vector<std::uint32_t>* column_of_moment) {
  return Maker(trace, run, options).make(column_of_moment);
}

std::string step_name(const ChartColumn& column) {
  if (column.step == kDrainStep) return column.drain ? "drain" : "start";
  return std::to_string(column.step);
}

std::string virtual_time_text(Nanos at_ns) {
  const auto trimmed = [](double value, std::string_view unit) {
    std::string text = fmt::format("{:.3f}", value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return fmt::format("{} {}", text, unit);
  };
  if (at_ns == 0) return "0 ms";
  if (at_ns < kMillisecond) return trimmed(static_cast<double>(at_ns) / 1e3, "us");
  if (at_ns < kSecond) return trimmed(static_cast<double>(at_ns) / 1e6, "ms");
  if (at_ns < 1000 * kSecond) return trimmed(static_cast<double>(at_ns) / 1e9, "s");
  return with_thousands(static_cast<std::uint64_t>(at_ns / kSecond)) + " s";
}

}  // namespace holdfast::sim
