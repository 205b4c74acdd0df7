#include "holdfast/sim/failure_story.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t kFaultsToldMax = 6;
constexpr std::size_t kFailedWaitsToldMax = 3;
constexpr std::size_t kSentenceMax = 600;

std::string_view verb_of(Call call) {
  switch (call) {
    case Call::local_fast_put_commit:
      return "committed";
    case Call::put_abort:
      return "aborted";
    case Call::release_views:
      return "released";
    default:
      return "ended";
  }
}

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

// The number of elements of the list that the text ends with: a path of actions. 0 = it ends with none.
std::size_t path_length(std::string_view text) {
  const std::size_t begin = text.find('[');
  if (begin == std::string_view::npos) return 0;
  const auto list = nlohmann::json::parse(text.substr(begin), nullptr, false);
  return list.is_array() ? list.size() : 0;
}

std::string_view note_of(Call call, FaultKind kind, std::int32_t code) {
  for (const LegalFault& legal : legal_faults()) {
    if (legal.call == call && legal.kind == kind && legal.code == code) return legal.note;
  }
  for (const LegalFault& legal : legal_faults()) {
    if (legal.call == call && legal.kind == kind) return legal.note;
  }
  return kind == FaultKind::lie ? "an answer that no honest runtime gives" : "";
}

class Teller {
 public:
  Teller(const Trace& trace, const RecordedRun& run, const LaneChart& chart, std::vector<std::uint32_t> columns)
      : trace_(trace), run_(run), chart_(chart), columns_(std::move(columns)) {}

  std::vector<std::string> tell(std::optional<std::size_t> at) {
    at_ = at.value_or(run_.moments.size());
    if (at) {
      tell_violation(run_.moments[*at]);
    } else {
      tell_broken_off();
    }
    tell_faults();
    return std::move(sentences_);
  }

 private:
  void say(const std::string& sentence) { sentences_.push_back(printable(sentence, kSentenceMax)); }

  [[nodiscard]] std::string when(std::size_t moment) const {
    return fmt::format("at {} (#{})", virtual_time_text(run_.moments[moment].at_ns), columns_[moment] + 1);
  }

  [[nodiscard]] std::string deed(std::size_t moment) const {
    const std::uint32_t step = run_.moments[moment].step;
    const auto found = std::ranges::find(trace_.steps, step, &Step::id);
    if (found == trace_.steps.end()) return drained_before(moment) ? "the drain" : "the start";
    const std::string which = fmt::format(" (step {})", step);
    switch (found->kind) {
      case StepKind::generate: {
        const std::size_t chunk = chunk_of(moment);
        return (chunk == 0 ? fmt::format("the put of session {}", found->of)
                           : fmt::format("the put of chunk {} of session {}", chunk, found->of)) +
               which;
      }
      case StepKind::resume:
        return fmt::format("the resume of session {}", found->of) + which;
      case StepKind::open:
        return fmt::format("the opening of session {}", step) + which;
      case StepKind::close:
        return fmt::format("the end of session {}", found->of) + which;
      default:
        return fmt::format("{}", name_of(found->kind)) + which;
    }
  }
  [[nodiscard]] bool drained_before(std::size_t moment) const {
    const auto end = run_.moments.begin() + static_cast<std::ptrdiff_t>(moment);
    return std::any_of(run_.moments.begin(), end, [](const Moment& m) { return m.kind == MomentKind::drain; });
  }
  // Which chunk the step's operation puts, from 1.
  [[nodiscard]] std::size_t chunk_of(std::size_t moment) const {
    for (std::size_t i = moment; i-- > 0;) {
      const Moment& before = run_.moments[i];
      if (before.step != run_.moments[moment].step) continue;
      if (before.kind == MomentKind::operation) return path_length(before.text);
      if (before.kind == MomentKind::step) break;
    }
    return 0;
  }

  [[nodiscard]] std::optional<std::size_t> last_of(MomentKind kind, const Thing& thing) const {
    for (std::size_t i = at_; i-- > 0;) {
      if (run_.moments[i].kind == kind && run_.moments[i].thing == thing) return i;
    }
    return std::nullopt;
  }

  void tell_violation(const Moment& broken) {
    const Thing* plan = culprit(broken, {ThingKind::put_plan, ThingKind::read_plan});
    const Thing* handle = culprit(broken, {ThingKind::handle});
    const Thing* batch = culprit(broken, {ThingKind::batch});
    const bool ends = broken.of_call && (broken.call == Call::local_fast_put_commit || broken.call == Call::put_abort ||
                                         broken.call == Call::release_views);
    const Thing* ended = plan != nullptr ? plan : handle;
    if (ends && plan != nullptr && batch != nullptr) {
      say(fmt::format("{} was {} {}, by {}, while {} {} may still have been in flight: no successful wait covers it.",
                      capital(to_string(*plan)), verb_of(broken.call), when(at_), deed(at_), to_string(*batch),
                      place_text(*batch, *plan)));
    } else if (broken.of_call && ended != nullptr && batch == nullptr && last_of(MomentKind::closed, *ended)) {
      const std::size_t closed = *last_of(MomentKind::closed, *ended);
      const Moment& end = run_.moments[closed];
      say(fmt::format("{} was called {}, by {}, for {}, which had ended already: by {} {}, by {}.",
                      name_of(broken.call), when(at_), deed(at_), to_string(*ended),
                      end.of_call ? std::string(name_of(end.call)) : end.text, when(closed), deed(closed)));
    } else {
      say(fmt::format("{}, in {}{}: {}.", capital(when(at_)), deed(at_),
                      broken.of_call ? fmt::format(", at {}", name_of(broken.call)) : "", broken.text));
    }
    for (const Thing& thing : broken.culprits) tell_birth(thing);
  }
  static const Thing* culprit(const Moment& broken, std::initializer_list<ThingKind> kinds) {
    const auto found = std::ranges::find_if(broken.culprits, [&](const Thing& thing) {
      return thing.number != 0 && std::ranges::find(kinds, thing.kind) != kinds.end();
    });
    return found == broken.culprits.end() ? nullptr : &*found;
  }
  [[nodiscard]] std::string place_text(const Thing& batch, const Thing& plan) const {
    const auto submitted = last_of(MomentKind::opened, batch);
    if (!submitted) return "with copies of it";
    const auto& places = run_.moments[*submitted].places;
    const auto place = std::ranges::find(places, plan.number, &CopyPlace::plan);
    if (place == places.end()) return "with copies of it";
    return fmt::format("with copy {} {} its slot {}", place->copy, plan.kind == ThingKind::put_plan ? "into" : "out of",
                       place->slot);
  }

  void tell_birth(const Thing& thing) {
    const auto born = last_of(MomentKind::opened, thing);
    if (!born) return;
    const Moment& moment = run_.moments[*born];
    if (thing.kind == ThingKind::batch) {
      say(fmt::format("{} was submitted {} by {}: {}.", capital(to_string(thing)), when(*born), deed(*born),
                      moment.text));
      tell_failed_waits(*born);
      return;
    }
    say(fmt::format("{} began {} with {} of {}: {}.", capital(to_string(thing)), when(*born), name_of(moment.call),
                    deed(*born), moment.text));
  }
  // After the submission, of its step.
  void tell_failed_waits(std::size_t submitted) {
    std::size_t told = 0;
    for (std::size_t i = submitted + 1; i < at_ && told < kFailedWaitsToldMax; ++i) {
      const Moment& moment = run_.moments[i];
      if (moment.kind != MomentKind::call || moment.code == 0 || moment.step != run_.moments[submitted].step) continue;
      if (moment.call < Call::copy_batch || moment.call > Call::stream_synchronize) continue;
      say(fmt::format("{} failed {} with {}: {}.", capital(std::string(name_of(moment.call))), when(i), moment.code,
                      moment.text));
      ++told;
    }
  }

  void tell_broken_off() {
    say(fmt::format("The run did not come to its end: {}.",
                    run_.broken_off.empty() ? "nobody knows why" : run_.broken_off));
    for (std::size_t i = run_.moments.size(); i-- > 0;) {
      const Moment& moment = run_.moments[i];
      if (moment.kind == MomentKind::opened || moment.kind == MomentKind::closed) continue;
      say(fmt::format("The last that was seen of it, {}, in {}: {}.", when(i), deed(i),
                      columns_[i] < chart_.first + chart_.columns.size() && columns_[i] >= chart_.first
                          ? chart_.columns[columns_[i] - chart_.first].text
                          : moment.text));
      return;
    }
  }

  void tell_faults() {
    std::vector<std::size_t> fired;
    for (std::size_t i = 0; i < at_; ++i) {
      if (run_.moments[i].kind == MomentKind::fault) fired.push_back(i);
    }
    if (fired.empty()) {
      say("No fault had been injected before that.");
      return;
    }
    const std::size_t left_out = fired.size() > kFaultsToldMax ? fired.size() - kFaultsToldMax : 0;
    if (left_out > 0) say(fmt::format("{} faults had been injected before these:", left_out));
    for (std::size_t i = left_out; i < fired.size(); ++i) {
      const Moment& fault = run_.moments[fired[i]];
      const std::string_view note = note_of(fault.call, fault.fault, fault.code);
      say(fmt::format("Injected {}, in {}: {} of {}{}{}.", when(fired[i]), deed(fired[i]), name_of(fault.fault),
                      name_of(fault.call), note.empty() ? "" : fmt::format(", {}", note),
                      fault.code == 0 ? "" : fmt::format(" (seen as {})", fault.code)));
    }
  }

  const Trace& trace_;
  const RecordedRun& run_;
  const LaneChart& chart_;
  std::vector<std::uint32_t> columns_;
  std::size_t at_ = 0;
  std::vector<std::string> sentences_;
};

}  // namespace

FailureStory tell_story(const Trace& trace, const RecordedRun& run, const FailureTarget& target) {
  FailureStory story;
  std::optional<std::size_t> which;   // of the run's violations
  std::optional<std::size_t> moment;  // that tells of it
  if (target.kind == FailureKind::violation) {
    const Violation* violation = find_target(run.violations, target);
    if (violation != nullptr) which = static_cast<std::size_t>(violation - run.violations.data());
  }
  std::size_t violations = 0;
  for (std::size_t i = 0; which && i < run.moments.size(); ++i) {
    if (run.moments[i].kind == MomentKind::violated && violations++ == *which) moment = i;
  }
  ChartOptions options;
  options.columns_max = kStoryColumnsMax;
  options.violation = which;
  std::vector<std::uint32_t> columns;
  story.chart = make_lane_chart(trace, run, options, &columns);
  story.sentences = Teller(trace, run, story.chart, std::move(columns)).tell(moment);
  story.trace = write_trace(trace);
  if (story.trace.size() > kStoryTraceBytesMax) {
    const std::size_t end = story.trace.rfind('\n', kStoryTraceBytesMax);
    const std::size_t kept = end == std::string::npos ? kStoryTraceBytesMax : end;
    story.trace_bytes_more = story.trace.size() - kept;
    story.trace.resize(kept);
  }
  return story;
}

}  // namespace holdfast::sim
