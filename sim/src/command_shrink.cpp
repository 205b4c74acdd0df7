// holdfast shrink: the smallest trace that fails in the same way.
#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "backend_choice.hpp"
#include "command_line.hpp"
#include "holdfast/sim/failure_traces.hpp"
#include "holdfast/sim/progress.hpp"
#include "holdfast/sim/shrink_failure.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

using Kind = OptionSpec::Kind;

constexpr Nanos kHangLimit = kSecond;
constexpr std::string_view kSuffix = ".trace.json";

CommandSpec spec() {
  CommandSpec spec;
  spec.name = "shrink";
  spec.summary = "the smallest trace that fails in the same way as this one";
  spec.usage = "FILE | --seed N [--profile NAME] [options]";
  spec.about =
      "Takes away steps, sessions, faults, choices, switches and actions, and makes geometries and numbers smaller, as "
      "long as the same invariant fails at the same call with the same kinds of culprit, or the run crashes or hangs "
      "in the "
      "same way. The result is 1-minimal unless the time is over first: without any one step, session, fault, choice "
      "or last action of a session it does not fail so any more. It is written beside FILE, NAME.trace.json to "
      "NAME.min.trace.json. Exit status 1 when the trace fails, as of 'holdfast replay'; 0 when it holds, and nothing "
      "is written.";
  spec.operand = "FILE";
  spec.options = {
      seed_option(),
      profile_option(),
      {"out", Kind::value, "FILE", "write the result to FILE"},
      {"time-budget", Kind::value, "TIME", "end after this real time, with the smallest so far (default 60s)"},
      {"invariant", Kind::value, "NAME", "shrink the first violation of this one (default: the first of all)"},
      {"hang-limit", Kind::value, "TIME", "processor time after which one run counts as hung (default 1s)"},
      backend_option(),
      require_device_option(),
      disable_option(),
      quiet_option(),
  };
  spec.examples = {
      {"what a campaign left behind", "holdfast shrink out/failures/17.trace.json"},
      {"a seed, with all the time it takes", "holdfast shrink --seed 17 --time-budget 1h"},
  };
  return spec;
}

std::string change(std::size_t before, std::size_t after) {
  return fmt::format("{} -> {}", with_thousands(before), with_thousands(after));
}

std::string result_text(const Trace& original, const ShrunkFailure& shrunk, const std::string& file,
                        const std::string& reproduce) {
  Table table({Table::Align::left, Table::Align::left});
  table.add({"fails by", printable(to_string(shrunk.target))});
  table.add({"steps", change(original.steps.size(), shrunk.trace.steps.size())});
  table.add({"faults", change(original.faults.size(), shrunk.trace.faults.size())});
  table.add({"choices", change(original.choices.size(), shrunk.trace.choices.size())});
  table.add({"switches", change(original.switches.size(), shrunk.trace.switches.size())});
  table.add({"1-minimal", shrunk.one_minimal ? "yes: without any one of them it does not fail so"
                                             : fmt::format("NOT KNOWN: {}", shrunk.stopped)});
  table.add({"tried", fmt::format("{} traces in {}, {} kept", with_thousands(shrunk.tried),
                                  seconds_text(shrunk.elapsed_ns), with_thousands(shrunk.kept))});
  table.add({"happened", printable(shrunk.violation ? shrunk.violation->message : shrunk.message)});
  table.add({"written to", printable(file)});
  table.add({"reproduce", reproduce});
  return table.text();
}

Result<ShrinkOptions> options_of(const Arguments& arguments) {
  ShrinkOptions options;
  options.time_budget_ns = kMinute;
  auto hang_limit = hang_limit_of(arguments, kHangLimit);
  if (!hang_limit) return hang_limit.error();
  options.hang_limit_ns = *hang_limit;
  auto disabled = disabled_of(arguments);
  if (!disabled) return disabled.error();
  options.disabled = *disabled;
  if (const auto text = arguments.value("time-budget")) {
    auto budget = parse_duration("--time-budget", *text);
    if (!budget) return budget.error();
    options.time_budget_ns = *budget;
  }
  if (const auto name = arguments.value("invariant")) {
    auto invariant = invariant_of("--invariant", *name);
    if (!invariant) return invariant.error();
    options.invariant = *invariant;
  }
  return options;
}

Result<ExitStatus> shrink_main(const Arguments& arguments) {
  auto trace = trace_of(arguments, "holdfast shrink");
  if (!trace) return trace.error();
  auto options = options_of(arguments);
  if (!options) return options.error();
  auto backend = backend_choice_of(arguments);
  if (!backend) return backend.error();
  if (backend->ended) return *backend->ended;
  const std::string file = arguments.value("out").value_or(
      shrunk_beside(arguments.operand().value_or(arguments.value("seed").value_or("") + std::string(kSuffix))));

  Report start;
  start.disabled = options->disabled;
  CampaignJob job;
  job.options.run.disabled = options->disabled;
  run_against(*backend, job, start);
  options->disabled = job.options.run.disabled;
  print_start(start);
  fmt::print("trace: {}, {} steps\n", printable(trace->name), with_thousands(trace->steps.size()));
  std::fflush(stdout);
  Progress progress(stderr, progress_style(stderr, arguments.has("quiet")));
  options->progress = [&](const ShrinkProgress& now) { progress.show(progress_line("it", now), now.elapsed_ns); };
  auto shrunk = shrink_failure(*trace, job.factory, *options);
  progress.finish();
  if (!shrunk) return shrunk.error();
  if (!shrunk->failed) {
    fmt::print("\nHELD: {}; there is nothing to shrink\n",
               options->invariant ? fmt::format("{} was not broken", name_of(*options->invariant))
                                  : std::string("no promise was broken"));
    return ExitStatus::held;
  }
  if (auto status = write_shrunk_trace(file, *trace, shrunk->trace); !status) {
    return refusal("--out", explain(status.error()));
  }
  const std::string reproduce = fmt::format("holdfast replay {}{}", shell_word(file), report_words(start));
  fmt::print("\n{}", result_text(*trace, *shrunk, file, reproduce));
  return ExitStatus::violated;
}

}  // namespace

Command shrink_command() { return {spec(), shrink_main}; }

}  // namespace holdfast::sim
