#include "recheck.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace holdfast::sim {
namespace {

// Starting a process costs as much as running about eight seeds: with this many it is a tenth of the second runs.
constexpr std::uint32_t kRunsOfAFreshProcessMax = 32;

bool same_log(const RunResult& one, const RunResult& other) {
  return one.log_hash == other.log_hash && one.log_events == other.log_events;
}

// Of all that a run found but the log: what differs first.
std::string_view different_finding(const RunResult& one, const RunResult& other) {
  const auto told = [](const Violation& violation) {
    return std::tie(violation.invariant, violation.step, violation.call, violation.message, violation.at_ns);
  };
  if (!std::equal(one.violations.begin(), one.violations.end(), other.violations.begin(), other.violations.end(),
                  [&](const Violation& a, const Violation& b) { return told(a) == told(b); })) {
    return "the violations";
  }
  if (one.checked != other.checked) return "the number of checks";
  if (one.marks.counts != other.marks.counts) return "the marks";
  if (one.faults.fired != other.faults.fired) return "the faults that fired";
  if (one.frame_hashes != other.frame_hashes) return "the hashes of output frames";
  if (one.session_chunks_hit != other.session_chunks_hit) return "the chunks hit";
  if (one.runtime_calls != other.runtime_calls || one.steps != other.steps ||
      one.steps_skipped != other.steps_skipped || one.virtual_ns != other.virtual_ns ||
      one.bytes_to_host != other.bytes_to_host || one.bytes_to_device != other.bytes_to_device ||
      one.exempt_keys != other.exempt_keys || one.evictions != other.evictions) {
    return "the totals";
  }
  if (one.stats != other.stats) return "what the store says of itself";
  if (one.end_state != other.end_state) return "the end states";
  return {};
}

// "in step 17 generate": the last step that began before the event.
std::string place_of(const std::vector<std::string>& log, std::size_t event) {
  constexpr std::string_view kStep = " ms  step ";
  constexpr std::string_view kEnd = " ms  step end";
  constexpr std::string_view kDrain = " ms  drain";
  for (std::size_t i = std::min(event + 1, log.size()); i-- > 0;) {
    if (log[i].find(kDrain) != std::string::npos) return "in the drain";
    const std::size_t at = log[i].find(kStep);
    if (at != std::string::npos && log[i].find(kEnd) == std::string::npos) {
      return "in step " + log[i].substr(at + kStep.size());
    }
  }
  return "before the first step";
}

std::string first_difference(const RunResult& plain, const RunResult& other, std::string_view where) {
  const auto [a, b] = std::mismatch(plain.log.begin(), plain.log.end(), other.log.begin(), other.log.end());
  if (a == plain.log.end() && b == other.log.end()) {
    return fmt::format(
        "the logs of {} events read the same, but their hashes differ {}: something is hashed that is "
        "not said",
        plain.log.size(), where);
  }
  const auto event = static_cast<std::size_t>(a - plain.log.begin());
  const auto text = [](auto at, auto end) { return at == end ? std::string("(the log ends)") : *at; };
  return fmt::format("event {}, {}, was\n  {}\nand {}, {},\n  {}", event + 1, place_of(plain.log, event),
                     text(a, plain.log.end()), where, place_of(other.log, event), text(b, other.log.end()));
}

std::string difference(const RunResult& plain, const RunResult& other, std::string_view where) {
  if (!same_log(plain, other)) return first_difference(plain, other, where);
  const std::string_view finding = different_finding(plain, other);
  if (finding.empty()) return {};
  return fmt::format("all {} events were the same, but {} differed {}", plain.log_events, finding, where);
}

bool same(const RunResult& one, const RunResult& other) {
  return same_log(one, other) && different_finding(one, other).empty();
}

constexpr std::string_view kSameProcess = "when run again in the same process";
constexpr std::string_view kFreshProcess = "when run again in a fresh process";
constexpr std::string_view kOnDevice = "on the device";

SystemFactory over_fake_device(SystemFactory factory) {
  factory.make_device = {};
  return factory;
}

}  // namespace

Recheck::Recheck(const CampaignOptions& options, const SystemFactory& factory, std::function<void(WorkerPhase)> enter)
    : options_(options), factory_(factory), enter_(std::move(enter)) {
  if (options_.fresh_program.empty()) return;
  fresh_ = std::make_unique<FreshRunner>(FreshRunner::Options{options_.fresh_program, options_.recheck_perturbation + 1,
                                                              options_.run.disabled, kRunsOfAFreshProcessMax});
}

RunOptions Recheck::options_of(bool keep_log) const {
  RunOptions run;
  run.disabled = options_.run.disabled;
  run.keep_log = keep_log;
  run.keep_end_state = options_.run.keep_end_state;
  return run;
}

Recheck::Answer Recheck::run(const Trace& trace, const RunResult& first, Executor& executor) {
  enter_(WorkerPhase::rechecking);
  if (!perturbed_) {
    perturbed_ = std::make_unique<Executor>(factory_, perturbation_numbered(options_.recheck_perturbation));
  }
  const RunResult again = perturbed_->run(trace, options_of(false));
  if (!same(first, again)) return explain(Place::same_process, trace, first, again, executor);
  if (!fresh_) return {};
  enter_(WorkerPhase::rechecking_fresh);
  const FreshAnswer fresh = fresh_->run(write_trace(trace));
  if (!fresh.unreadable.empty()) return {"what is written of the trace cannot be read: " + fresh.unreadable, false};
  if (!same(first, fresh.run)) return explain(Place::fresh_process, trace, first, fresh.run, executor);
  return {};
}

// The logs are kept as text only now, so every run is made once more; what differs is looked for where it was seen.
Recheck::Answer Recheck::explain(Place place, const Trace& trace, const RunResult& first, const RunResult& again,
                                 Executor& executor) {
  enter_(WorkerPhase::rechecking);
  const RunResult plain = executor.run(trace, options_of(true));
  enter_(WorkerPhase::rechecking);
  const RunResult perturbed = perturbed_->run(trace, options_of(true));
  std::string found;
  if (place == Place::same_process) found = difference(plain, perturbed, kSameProcess);
  if (found.empty() && fresh_) {
    enter_(WorkerPhase::rechecking_fresh);
    found = difference(plain, fresh_->run_logged(write_trace(trace)).run, kFreshProcess);
  }
  if (found.empty()) found = difference(plain, perturbed, kSameProcess);
  if (!found.empty()) return {std::move(found), false};
  return {fmt::format("log hash {:016x} of the first run, {:016x} {}; more runs with the log kept were all the same: "
                      "what a run does depends on what ran before it",
                      first.log_hash, again.log_hash, place == Place::same_process ? kSameProcess : kFreshProcess),
          true};
}

// ---- Beside the fake.

BesideFake::BesideFake(const CampaignOptions& options, const SystemFactory& factory,
                       std::function<void(WorkerPhase)> enter)
    : options_(options),
      enter_(std::move(enter)),
      fake_(over_fake_device(factory), perturbation_numbered(options.perturbation)) {}

RunOptions BesideFake::options_of(bool keep_log) const {
  RunOptions run;
  run.disabled = options_.run.disabled;
  run.keep_log = keep_log;
  run.keep_end_state = true;
  return run;
}

std::string BesideFake::run(const Trace& trace, const RunResult& real, Executor& executor) {
  enter_(WorkerPhase::rechecking);
  const RunResult fake = fake_.run(trace, options_of(false));
  if (same(fake, real)) return {};
  enter_(WorkerPhase::rechecking);
  const RunResult fake_told = fake_.run(trace, options_of(true));
  enter_(WorkerPhase::rechecking);
  const std::string found = difference(fake_told, executor.run(trace, options_of(true)), kOnDevice);
  if (!found.empty()) return "the fake is not the device: " + found;
  return fmt::format(
      "the fake is not the device: log hash {:016x} of the fake, {:016x} on the device; more runs with "
      "the log kept were the same: what the device does is not the same each time",
      fake.log_hash, real.log_hash);
}

}  // namespace holdfast::sim
