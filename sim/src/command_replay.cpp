// holdfast replay: one trace again.
#include <fmt/format.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <utility>

#include "backend_choice.hpp"
#include "command_line.hpp"
#include "holdfast/sim/files.hpp"
#include "holdfast/sim/lane_chart.hpp"
#include "holdfast/sim/log_text.hpp"
#include "holdfast/sim/progress.hpp"
#include "holdfast/sim/record_run.hpp"
#include "holdfast/sim/text.hpp"
#include "step_through.hpp"

namespace holdfast::sim {
namespace {

using Kind = OptionSpec::Kind;

CommandSpec spec() {
  CommandSpec spec;
  spec.name = "replay";
  spec.summary = "run one trace again: a file that a failure left behind, or a seed";
  spec.usage = "FILE | --seed N [--profile NAME] [options]";
  spec.about =
      "Replaying a trace gives the same event log, byte for byte, on any machine; the log hash shows it. Each replay "
      "runs three times, the others with another layout of memory, hash order and locale, the last in a fresh process "
      "that reads the trace's text, and says when they differ. "
      "The trace runs in a child process, so that a crash has a verdict too; under a debugger, follow the child ('set "
      "follow-fork-mode child' in gdb) and give a long --hang-limit.";
  spec.operand = "FILE";
  spec.options = {
      seed_option(),
      profile_option(),
      {"log", Kind::flag, "", "print the event log"},
      {"steps", Kind::flag, "", "print a line after each step, as it happens"},
      {"step", Kind::flag, "", "afterwards go through it on the terminal, forward and back, one key each"},
      {"timeline", Kind::value, "FILE",
       "write what happened as swim-lanes to FILE, for ui.perfetto.dev or chrome://tracing"},
      {"write", Kind::value, "FILE", "first write the trace to FILE"},
      {"perturb", Kind::value, "N",
       "run with perturbation N, then with N+1 and N+2 (default 0, which changes nothing)"},
      backend_option(),
      require_device_option(),
      hang_limit_option(),
      disable_option(),
  };
  spec.examples = {
      {"what a campaign left behind", "holdfast replay out/failures/17.trace.json --steps"},
      {"a seed, with everything that happened", "holdfast replay --seed 17 --log"},
      {"the same as swim-lanes", "holdfast replay --seed 17 --timeline 17.timeline.json"},
      {"the trace of a seed, to be edited", "holdfast replay --seed 17 --write 17.trace.json"},
  };
  return spec;
}

// The run once more, moment by moment.
Status show_moments(const Arguments& arguments, const Trace& trace, const RecordOptions& recording) {
  const auto run = record_run(trace, make_production_system, recording);
  if (!run) return run.error();
  ChartOptions every;
  every.every_moment = true;
  const LaneChart chart = make_lane_chart(trace, *run, every);
  if (const auto file = arguments.value("timeline")) {
    if (auto status = write_output_file(*file, lane_chart_trace_events(chart, trace.name)); !status) {
      return refusal("--timeline", explain(status.error()));
    }
    fmt::print("timeline written to {}\n", printable(*file));
  }
  if (arguments.has("step")) step_through(chart, may_colour(stdout));
  return {};
}

Result<ExitStatus> replay_main(const Arguments& arguments) {
  auto trace = trace_of(arguments, "holdfast replay");
  if (!trace) return trace.error();
  auto backend = backend_choice_of(arguments);
  if (!backend) return backend.error();
  if (backend->ended) return *backend->ended;
  CampaignJob job;
  job.quiet = true;
  auto hang_limit = hang_limit_of(arguments);
  if (!hang_limit) return hang_limit.error();
  auto disabled = disabled_of(arguments);
  if (!disabled) return disabled.error();
  if (const auto text = arguments.value("perturb")) {
    auto number = parse_count("--perturb", *text, 0, 1'000'000'000);
    if (!number) return number.error();
    job.options.perturbation = *number;
  }
  if (const auto file = arguments.value("write")) {
    if (auto status = write_output_file(*file, write_trace(*trace)); !status) {
      return refusal("--write", explain(status.error()));
    }
    fmt::print("trace written to {}\n", printable(*file));
  }
  const bool plain_seed = trace->seed < std::numeric_limits<std::uint64_t>::max() / 2;
  const std::uint64_t seed = plain_seed ? trace->seed : 0;
  job.options.seeds = {seed, seed};
  job.options.hang_limit_ns = *hang_limit;
  job.options.recheck = {1, 1};
  job.options.recheck_perturbation = job.options.perturbation + 1;
  job.options.keep_results = true;
  job.options.run.disabled = *disabled;
  job.options.run.keep_log = arguments.has("log");
  if (arguments.has("steps")) {
    job.options.run.on_step = [](const std::string& line) {
      std::fputs((printable(line) + "\n").c_str(), stdout);
      std::fflush(stdout);
    };
  }
  auto shared = std::make_shared<const Trace>(std::move(*trace));
  job.source = [&](std::uint64_t) { return shared; };
  std::string command = arguments.operand() ? fmt::format("holdfast replay {}", shell_word(*arguments.operand()))
                                            : fmt::format("holdfast replay --seed {} --profile {}", seed,
                                                          arguments.value("profile").value_or("default"));
  job.replay_words = [&](std::uint64_t) { return command; };

  Report report;
  report.profile = printable(shared->name);
  report.seeds = job.options.seeds;
  report.disabled = *disabled;
  run_against(*backend, job, report);
  report.command = command + report_words(report);
  print_start(report);
  fmt::print("trace: {}\n", report.profile);
  std::fflush(stdout);
  if (auto status = carry_out(job, report); !status) return status.error();
  for (const SeedResult& result : report.result.results) {
    for (const std::string& line : result.run.log) fmt::print("{}\n", log_line_text(line, may_colour(stdout)));
    // Of this run alone, so that it can be compared with what a file or another machine says.
    report.result.log_hash = result.run.log_hash;
  }
  if (arguments.has("timeline") || arguments.has("step")) {
    if (auto status = show_moments(arguments, *shared, {*disabled, *hang_limit}); !status) return status.error();
  }
  return conclude({}, report);
}

}  // namespace

Command replay_command() { return {spec(), replay_main}; }

}  // namespace holdfast::sim
