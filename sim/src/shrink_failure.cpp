#include "holdfast/sim/shrink_failure.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "campaign_worker.hpp"
#include "forked_child.hpp"
#include "holdfast/sim/shrink.hpp"
#include "holdfast/sim/text.hpp"
#include "stop_signals.hpp"

namespace holdfast::sim {
namespace {

constexpr Nanos kListenNs = 50 * kMillisecond;
constexpr Nanos kToldEveryNs = 100 * kMillisecond;
constexpr std::int64_t kSlowerMax = 20;  // than the trace's own run, and not yet hung

// What a child says of its runs.
constexpr char kFails = 'y';
constexpr char kHolds = 'n';
constexpr char kEndless = 'h';  // and ends
constexpr char kOver = '.';     // finished, or out of time

Nanos real_now_ns() { return SteadyClock{}.now_ns(); }

Error shrinking_failed(std::string detail) {
  Error error;
  error.origin = Origin::file_system;
  error.code = ECHILD;
  error.call = "shrink";
  error.detail = std::move(detail);
  return error;
}

// The first line that says something, without numbers.
std::string last_words(const std::string& complaints) {
  std::size_t at = 0;
  while (at < complaints.size()) {
    const std::size_t end = std::min(complaints.find('\n', at), complaints.size());
    const std::string_view line = std::string_view(complaints).substr(at, end - at);
    if (std::ranges::any_of(line, [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }))
      return kinds_in(line);
    at = end + 1;
  }
  return {};
}

FailureTarget crash_of(const ForkedChild::Ending& ending) {
  return {FailureKind::crash, {}, {}, ending.how + ", " + last_words(ending.complaints)};
}

// A child hangs when it has worked so long, or slept ten times as long, without a word.
class HangWatch {
 public:
  HangWatch(const ForkedChild& child, Nanos limit_ns) : child_(child), limit_ns_(limit_ns) { heard(); }
  void heard() {
    heard_ns_ = real_now_ns();
    worked_ns_ = child_.processor_time_ns();
  }
  [[nodiscard]] bool hangs() const {
    return child_.processor_time_ns() - worked_ns_ > limit_ns_ || real_now_ns() - heard_ns_ > 10 * limit_ns_;
  }

 private:
  const ForkedChild& child_;
  Nanos limit_ns_;
  Nanos heard_ns_ = 0;
  Nanos worked_ns_ = 0;
};

FailureTarget hang_of(const std::string& why) { return {FailureKind::hang, {}, {}, kinds_in(why)}; }

struct Observation {
  std::optional<FailureTarget> failure;  // the first; nothing: it held
  std::vector<Violation> violations;
  std::string message;  // of a crash or a hang
  Nanos worked_ns = 0;
};

class FailureShrinker {
 public:
  FailureShrinker(const Trace& trace, const SystemFactory& factory, const ShrinkOptions& options)
      : trace_(trace), factory_(factory), options_(options), begin_ns_(real_now_ns()), shrinker_(trace) {
    run_.disabled = options.disabled;
  }

  Result<ShrunkFailure> run() {
    auto first = observe(trace_, options_.hang_limit_ns);
    if (!first) return first.error();
    if (!first->failure) return ShrunkFailure{};
    target_ = *first->failure;
    limit_ns_ = std::max(options_.hang_limit_ns, kSlowerMax * first->worked_ns);
    if (target_.kind == FailureKind::hang) limit_ns_ = options_.hang_limit_ns;
    // A child that finds the time over says so at once.
    while (stopped_.empty() && shrinker_.proposal() != nullptr) {
      if (auto status = run_child(); !status) return status.error();
    }
    tell(true);
    auto last = observe(shrinker_.smallest(), limit_ns_);
    if (!last) return last.error();
    return result(*last);
  }

 private:
  [[nodiscard]] bool time_is_over() const { return real_now_ns() - begin_ns_ >= options_.time_budget_ns; }

  // One run in a process of its own.
  Result<Observation> observe(const Trace& trace, Nanos limit_ns) {
    auto child = ForkedChild::start([&](ForkedChild::Link& link) {
      Executor executor(factory_);
      SeedResult seed;
      RunOptions run = run_;
      run.on_endless = [&](const std::string& why) {
        link.send(encode_message(WorkerMessage::endless, why));
        _exit(0);
      };
      seed.run = executor.run(trace, run);
      link.send(encode_message(WorkerMessage::result, encode_result(seed)));
    });
    if (!child) return child.error();
    std::string bytes;
    Observation seen;
    bool hung = false;
    const HangWatch watch(**child, limit_ns);
    for (auto heard = ForkedChild::Heard::silence; heard != ForkedChild::Heard::end && !hung;) {
      heard = (*child)->listen(bytes, kListenNs);
      hung = heard == ForkedChild::Heard::silence && watch.hangs();
      if (heard != ForkedChild::Heard::end) seen.worked_ns = (*child)->processor_time_ns();
    }
    const ForkedChild::Ending ending = (*child)->bury(hung);
    const auto message = take_message(bytes);
    if (message && message->kind == WorkerMessage::endless) {
      seen.failure = hang_of(message->body);
      seen.message = message->body;
    } else if (message) {
      auto seed = decode_result(message->body);
      if (!seed) return shrinking_failed("a child sent what is no result");
      seen.violations = std::move(seed->run.violations);
      const auto wanted = std::ranges::find_if(seen.violations, [&](const Violation& violation) {
        return !options_.invariant || violation.invariant == *options_.invariant;
      });
      if (wanted != seen.violations.end()) seen.failure = target_of(*wanted);
    } else if (hung) {
      seen.failure = hang_of({});
      seen.message = fmt::format("no end within {} of processor time", seconds_text(limit_ns));
    } else {
      seen.failure = crash_of(ending);
      seen.message = ending.how + (ending.complaints.empty() ? "" : "; it had written:\n" + ending.complaints);
    }
    return seen;
  }

  // In the child: goes on where the parent is, and says how each run ended.
  void try_all(ForkedChild::Link& link) {
    Executor executor(factory_);
    RunOptions run = run_;
    run.on_endless = [&](const std::string& why) {
      link.send(kEndless + why);
      _exit(0);
    };
    while (const Trace* candidate = shrinker_.proposal()) {
      if (time_is_over()) break;
      ForkedChild::Link::forget_complaints();
      const RunResult result = executor.run(*candidate, run);
      const bool fails = find_target(result.violations, target_) != nullptr;
      link.send(std::string_view(fails ? &kFails : &kHolds, 1));
      shrinker_.decide(fails);
    }
    link.send(std::string_view(&kOver, 1));
  }

  // One child, as long as it lives. What it says is done here as well; the run that it dies of is decided here.
  Status run_child() {
    auto started = ForkedChild::start([&](ForkedChild::Link& link) { try_all(link); });
    if (!started) return started.error();
    ForkedChild& child = **started;
    HangWatch watch(child, limit_ns_);
    while (stopped_.empty()) {
      std::string bytes;
      const ForkedChild::Heard heard = child.listen(bytes, kListenNs);
      const auto said = follow(bytes);
      if (!said) return said.error();
      tell(false);
      if (*said == Said::endless || shrinker_.proposal() == nullptr) return {};
      if (*said == Said::over) {
        stopped_ = fmt::format("the time of {} was over", seconds_text(options_.time_budget_ns));
      } else if (signals_.arrived()) {
        stopped_ = kShrinkInterrupted;
      } else if (heard == ForkedChild::Heard::bytes) {
        watch.heard();
      } else if (heard == ForkedChild::Heard::end) {
        decide_on_death(crash_of(child.bury(false)));
        return {};
      } else if (watch.hangs()) {
        static_cast<void>(child.bury(true));
        decide_on_death(hang_of({}));
        return {};
      }
    }
    return {};
  }

  enum class Said : std::uint8_t { results, endless, over };
  Result<Said> follow(std::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == kOver) return Said::over;
      if (shrinker_.proposal() == nullptr) return shrinking_failed("a child ran what it was not told to");
      if (bytes[i] == kEndless) {
        decide_on_death(hang_of(std::string(bytes.substr(i + 1))));
        return Said::endless;
      }
      shrinker_.decide(bytes[i] == kFails);
    }
    return Said::results;
  }

  void decide_on_death(const FailureTarget& death) { shrinker_.decide(death == target_); }

  void tell(bool last) {
    const Nanos now = real_now_ns();
    if (!options_.progress || (!last && now - told_ns_ < kToldEveryNs)) return;
    told_ns_ = now;
    options_.progress({trace_.steps.size(), shrinker_.smallest().steps.size(), shrinker_.tried(), now - begin_ns_});
  }

  Result<ShrunkFailure> result(const Observation& last) {
    ShrunkFailure shrunk;
    shrunk.failed = true;
    shrunk.target = target_;
    shrunk.trace = shrinker_.smallest();
    shrunk.stopped = stopped_;
    shrunk.one_minimal = stopped_.empty() && shrinker_.finished();
    shrunk.tried = shrinker_.tried();
    shrunk.kept = shrinker_.kept();
    shrunk.elapsed_ns = real_now_ns() - begin_ns_;
    shrunk.message = last.message;
    if (target_.kind == FailureKind::violation) {
      const Violation* violation = find_target(last.violations, target_);
      if (violation != nullptr) shrunk.violation = *violation;
    }
    const bool again = target_.kind == FailureKind::violation ? shrunk.violation.has_value() : last.failure == target_;
    if (!again) {
      return shrinking_failed(
          fmt::format("a trace of {} steps failed among others, but not as the first run of a process ({}): what a run "
                      "does depends on what ran before it",
                      shrunk.trace.steps.size(), to_string(target_)));
    }
    return shrunk;
  }

  const Trace& trace_;
  const SystemFactory& factory_;
  const ShrinkOptions& options_;
  StopSignals signals_;
  RunOptions run_;
  Nanos begin_ns_;
  Nanos told_ns_ = 0;
  Nanos limit_ns_ = 0;
  FailureTarget target_;
  Shrinker shrinker_;
  std::string stopped_;
};

}  // namespace

std::string to_string(const FailureTarget& target) {
  if (target.kind == FailureKind::violation) {
    return fmt::format("{}{}{}, {}", name_of(target.invariant), target.call.empty() ? "" : " at ", target.call,
                       target.culprits);
  }
  return fmt::format("{}{}{}", name_of(target.kind), target.culprits.empty() ? "" : ": ", target.culprits);
}

FailureTarget target_of(const Violation& violation) {
  return {FailureKind::violation, violation.invariant, violation.call, violation.culprits};
}

FailureTarget target_of(const SeedFailure& failure) {
  if (!failure.violations.empty()) return target_of(failure.violations.front());
  return {failure.kind, {}, {}, kinds_in(failure.message)};
}

const Violation* find_target(const std::vector<Violation>& violations, const FailureTarget& target) {
  const auto found =
      std::ranges::find_if(violations, [&](const Violation& violation) { return target_of(violation) == target; });
  return found == violations.end() ? nullptr : &*found;
}

Result<ShrunkFailure> shrink_failure(const Trace& trace, const SystemFactory& factory, const ShrinkOptions& options) {
  return FailureShrinker(trace, factory, options).run();
}

}  // namespace holdfast::sim
