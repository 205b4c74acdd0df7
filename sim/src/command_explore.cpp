// holdfast explore: the interleavings of sessions that run side by side.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "command_line.hpp"
#include "holdfast/sim/explore.hpp"
#include "holdfast/sim/files.hpp"
#include "holdfast/sim/progress.hpp"
#include "holdfast/sim/scenarios.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

using Kind = OptionSpec::Kind;

constexpr std::uint64_t kPreemptionsMax = 10;
constexpr std::uint64_t kDepthMax = 20;
constexpr std::uint64_t kRunsMax = 1'000'000'000'000;

CommandSpec spec() {
  CommandSpec spec;
  spec.name = "explore";
  spec.summary = "the interleavings of sessions that run side by side";
  spec.usage = "[SCENARIO...] [options]";
  spec.about =
      "Runs each scenario again and again, each time with another interleaving of its last steps: at every runtime "
      "call and every lock another one may go on. Ends at the first that breaks a promise, crashes or hangs, and "
      "leaves its trace, with the switches that it took, shrunk to those that matter. Without a scenario all of them "
      "are explored. A trace FILE (with a '/' or a '.' in its name) is explored too; its own switches are not used.";
  spec.operand = "SCENARIO";
  spec.many_operands = true;
  spec.options = {
      {"strategy", Kind::value, "NAME",
       "dfs (default): every interleaving with at most so many preemptions; sleep-sets: every end state, for small "
       "scenarios; random; pct"},
      {"preemptions", Kind::value, "N", "of dfs: how often a step is left that could go on (default 2)"},
      {"depth", Kind::value, "N", "of pct: how many things must happen in one order (default 3)"},
      {"seed", Kind::value, "N", "of random and pct (default 1)"},
      {"runs", Kind::value, "N", "end after so many (default: 1,000 of random and pct, else all)"},
      {"time-budget", Kind::value, "TIME", "begin no more interleavings of a scenario after this real time, like 10m"},
  };
  add_campaign_options(spec);
  spec.examples = {
      {"all scenarios, all interleavings with up to two preemptions", "holdfast explore"},
      {"one of them with three", "holdfast explore put_beside_put --preemptions 3"},
  };
  return spec;
}

Result<Trace> trace_named(const std::string& name, const std::vector<std::string>& all) {
  if (name.find_first_of("./") != std::string::npos) {
    const TraceLimits limits;
    auto text = read_input_file(name, limits.file_bytes_max);
    if (!text) return text.error();
    auto trace = read_trace(*text, name, limits);
    if (!trace) return refusal("holdfast explore", explain(trace.error()));
    trace->switches.clear();
    if (Status fits = validate_side_by_side(*trace, limits); !fits) {
      return refusal("holdfast explore", fmt::format("{}: {}", printable(name), explain(fits.error())));
    }
    return trace;
  }
  if (std::ranges::find(all, name) == all.end()) {
    return refusal("holdfast explore", fmt::format("there is no scenario '{}'{} (holdfast list scenarios)",
                                                   printable(name), did_you_mean(name, all)));
  }
  return scenario_named(name);
}

Result<std::vector<Trace>> traces_of(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const Scenario& scenario : scenarios_together()) all.emplace_back(scenario.name);
  std::vector<Trace> traces;
  for (const std::string& name : names.empty() ? all : names) {
    auto trace = trace_named(name, all);
    if (!trace) return trace.error();
    traces.push_back(std::move(*trace));
  }
  return traces;
}

std::string names_of(std::initializer_list<ExploreBy> strategies) {
  std::vector<std::string_view> names;
  for (const ExploreBy by : strategies) names.push_back(name_of(by));
  return fmt::format("{}", fmt::join(names, " and "));
}

Result<ExploreOptions> options_of(const Arguments& arguments, const CampaignJob& job) {
  ExploreOptions options;
  options.hang_limit_ns = job.options.hang_limit_ns;
  options.disabled = job.options.run.disabled;
  options.time_budget_ns = job.options.time_budget_ns;
  if (const auto name = arguments.value("strategy")) {
    const auto by = explore_by_named(*name);
    if (!by)
      return refusal("--strategy",
                     fmt::format("there is no strategy '{}'; it is dfs, sleep-sets, random or pct", printable(*name)));
    options.by = *by;
  }
  const auto number = [&](const char* option, std::initializer_list<ExploreBy> of, std::uint64_t least,
                          std::uint64_t most, auto& into) -> Status {
    const auto text = arguments.value(option);
    if (!text) return {};
    if (std::ranges::find(of, options.by) == of.end()) {
      return refusal(fmt::format("--{}", option),
                     fmt::format("means nothing to the strategy {}; it is of {}", name_of(options.by), names_of(of)));
    }
    auto value = parse_count(fmt::format("--{}", option), *text, least, most);
    if (!value) return value.error();
    into = static_cast<std::remove_reference_t<decltype(into)>>(*value);
    return {};
  };
  if (auto status = number("preemptions", {ExploreBy::dfs}, 0, kPreemptionsMax, options.preemptions_max); !status)
    return status.error();
  if (auto status = number("depth", {ExploreBy::pct}, 1, kDepthMax, options.depth); !status) return status.error();
  if (auto status = number("seed", {ExploreBy::random, ExploreBy::pct}, 0,
                           std::numeric_limits<std::uint64_t>::max() / 2, options.seed);
      !status)
    return status.error();
  if (auto status = number("runs", {ExploreBy::dfs, ExploreBy::sleep_sets, ExploreBy::random, ExploreBy::pct}, 1,
                           kRunsMax, options.runs_max);
      !status)
    return status.error();
  return options;
}

std::string how_far(const Exploration& exploration, const ExploreOptions& options) {
  if (exploration.failing) return "BROKEN";
  if (exploration.covered) {
    return options.by == ExploreBy::dfs ? fmt::format("up to {} preemptions", options.preemptions_max)
                                        : "every end state";
  }
  return options.by == ExploreBy::dfs || options.by == ExploreBy::sleep_sets ? "not all" : "by chance";
}

Result<ExitStatus> explore_main(const Arguments& arguments) {
  auto job = campaign_job_of(arguments);
  if (!job) return job.error();
  auto options = options_of(arguments, *job);
  if (!options) return options.error();
  auto traces = traces_of(arguments.operands());
  if (!traces) return traces.error();
  if (auto status = prepare_output(job->out); !status) return status.error();

  Report report;
  report.profile =
      arguments.operands().empty() ? "all scenarios" : fmt::format("{}", fmt::join(arguments.operands(), ", "));
  report.runtimes = probe_fake_backend().runtimes;
  report.disabled = job->options.run.disabled;
  print_start(report);
  std::fflush(stdout);

  using Align = Table::Align;
  Table table({Align::left, Align::right, Align::right, Align::right, Align::right, Align::left});
  table.add({"scenario", "decisions", "interleavings", "end states", "a second", "covered"});
  Progress progress(stderr, progress_style(stderr, job->quiet));
  const SteadyClock clock;
  const Nanos begin_ns = clock.now_ns();
  std::uint64_t diverged = 0;
  std::uint64_t cut = 0;
  for (Trace& trace : *traces) {
    const Nanos started_ns = clock.now_ns();
    auto explored = explore(trace, make_production_system, *options, [&](std::uint64_t interleavings) {
      progress.show(fmt::format("{}: {} interleavings", printable(trace.name), with_thousands(interleavings)),
                    clock.now_ns() - begin_ns);
    });
    if (!explored) return explored.error();
    const double seconds = static_cast<double>(clock.now_ns() - started_ns) / static_cast<double>(kSecond);
    table.add({printable(trace.name), with_thousands(explored->decisions_max), with_thousands(explored->interleavings),
               with_thousands(explored->end_states),
               with_thousands(static_cast<std::uint64_t>(static_cast<double>(explored->interleavings) / seconds)),
               how_far(*explored, *options)});
    diverged += explored->diverged ? 1 : 0;
    cut += explored->cut ? 1 : 0;
    if (explored->failing) trace = std::move(*explored->failing);
  }
  progress.finish();
  fmt::print("\n{}", table.text());
  std::fflush(stdout);

  // Those that failed, and of the others the steps one after the other: the report is of these runs.
  report.seeds = {1, traces->size()};
  report.command = "holdfast explore";
  for (const std::string& name : arguments.operands()) report.command += " " + shell_word(name);
  for (const char* option : {"strategy", "preemptions", "depth", "seed", "runs", "time-budget"}) {
    if (const auto value = arguments.value(option))
      report.command += fmt::format(" --{} {}", option, shell_word(*value));
  }
  job->replay_words = [words = report.command](std::uint64_t) { return words; };
  report.command += campaign_words(arguments, report);
  job->options.seeds = report.seeds;
  job->options.time_budget_ns = 0;
  job->source = [&](std::uint64_t number) { return std::make_shared<const Trace>((*traces)[number - 1]); };
  if (auto status = carry_out(*job, report); !status) return status.error();
  if (diverged > 0) report.gate_failure = fmt::format("{} explorations were not deterministic", diverged);
  if (cut > 0) {
    report.gate_failure = fmt::format(
        "{} failing schedules have more switches than a trace keeps: explore them with fewer steps side by side", cut);
  }
  return conclude(job->out, report);
}

}  // namespace

Command explore_command() { return {spec(), explore_main}; }

}  // namespace holdfast::sim
