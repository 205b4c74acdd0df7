// holdfast sweep: every call of a scenario fails in every legal way.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "backend_choice.hpp"
#include "command_line.hpp"
#include "holdfast/sim/scenarios.hpp"
#include "holdfast/sim/sweep.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

using Kind = OptionSpec::Kind;

constexpr std::uint64_t kDepthMax = 2;
// What a scenario may have of pairs to be swept in pairs without being named.
constexpr std::uint64_t kShortPairsMax = 85'000;

CommandSpec spec() {
  CommandSpec spec;
  spec.name = "sweep";
  spec.summary = "fail every call of scenarios in every legal way, one at a time or in pairs";
  spec.usage = "[SCENARIO...] [options]";
  spec.about =
      "Runs each scenario once to list its calls, and then once for each call and each way in which the fault table "
      "lets it fail: errors, lost answers, partial and late effects, evictions and restarts of the owner, time that "
      "passes, and the client's death with a restart from the last snapshot; each once and for good. Without a "
      "scenario all are swept; then every legal cell of the table (call, kind, code, state) must be reached.";
  spec.operand = "SCENARIO";
  spec.many_operands = true;
  spec.options = {
      {"depth", Kind::value, "N",
       "1 (default), or 2: pairs too, each call of a run with a first fault failing from there on. Without a scenario "
       "only the short ones are swept in pairs"},
      {"cases", Kind::value, "A-B", "run only cases A to B, numbered as in the failures"},
      backend_option(),
      require_device_option(),
      {"require-marks", Kind::flag, "", "fail when a mark, rare or not, was never reached (holdfast list marks)"},
  };
  add_campaign_options(spec);
  spec.examples = {
      {"everything, every legal cell and every mark", "holdfast sweep --require-marks"},
      {"what can go wrong in a write, twice", "holdfast sweep cold_write --depth 2"},
      {"one case again, step by step", "holdfast sweep cold_write --cases 17-17 --out out"},
  };
  return spec;
}

Result<std::vector<Trace>> traces_of(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const Scenario& scenario : scenarios()) all.emplace_back(scenario.name);
  std::vector<Trace> traces;
  const std::vector<std::string>& chosen = names.empty() ? all : names;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (std::find(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(i), chosen[i]) !=
        chosen.begin() + static_cast<std::ptrdiff_t>(i)) {
      return refusal("holdfast sweep", fmt::format("'{}' is said twice; say it once", printable(chosen[i])));
    }
    auto trace = scenario_named(chosen[i]);
    if (!trace) {
      return refusal("holdfast sweep", fmt::format("there is no scenario '{}'{} (holdfast list scenarios)",
                                                   printable(chosen[i]), did_you_mean(chosen[i], all)));
    }
    traces.push_back(std::move(*trace));
  }
  return traces;
}

struct Asked {
  SweepOptions sweep;
  CampaignJob job;
};

Result<Asked> asked_of(const Arguments& arguments) {
  auto job = campaign_job_of(arguments);
  if (!job) return job.error();
  Asked asked{{}, std::move(*job)};
  asked.job.options.run.keep_calls = true;
  asked.sweep.jobs = asked.job.options.jobs;
  asked.sweep.hang_limit_ns = asked.job.options.hang_limit_ns;
  if (const auto text = arguments.value("depth")) {
    auto depth = parse_count("--depth", *text, 1, kDepthMax);
    if (!depth) return depth.error();
    asked.sweep.depth = static_cast<std::uint32_t>(*depth);
  }
  if (arguments.operands().empty()) asked.sweep.pairs_max = kShortPairsMax;
  return asked;
}

std::string command_of(const Arguments& arguments, const std::string& cases) {
  std::string words = "holdfast sweep";
  for (const std::string& name : arguments.operands()) words += " " + shell_word(name);
  if (const auto depth = arguments.value("depth")) words += " --depth " + shell_word(*depth);
  if (!cases.empty()) words += " --cases " + cases;
  return words;
}

SweepFigures figures_of(const SweepPlan& plan, const SweepTally& tally, const Report& report,
                        const SweepOptions& options) {
  SweepFigures figures;
  figures.depth = options.depth;
  figures.cases = plan.cases();
  for (std::size_t i = 0; i < plan.traces(); ++i) {
    figures.scenarios.push_back(plan.name(i));
    figures.pairs += plan.pairs(i);
    if (plan.too_long_for_pairs(i)) figures.without_pairs.push_back(plan.name(i));
  }
  figures.complete = plan.traces() == scenarios().size() && report.result.seeds_run == plan.cases();
  figures.fired = tally.fired();
  figures.rows = tally.rows();
  judge_cells(report.result.faults, tally, figures);
  return figures;
}

Result<ExitStatus> sweep_main(const Arguments& arguments) {
  auto asked = asked_of(arguments);
  if (!asked) return asked.error();
  auto backend = backend_choice_of(arguments);
  if (!backend) return backend.error();
  if (backend->ended) return *backend->ended;
  auto traces = traces_of(arguments.operands());
  if (!traces) return traces.error();
  std::optional<SeedRange> part;
  if (const auto text = arguments.value("cases")) {
    auto parsed = parse_seeds("--cases", *text);
    if (!parsed) return parsed.error();
    part = *parsed;
  }
  CampaignJob& job = asked->job;
  // What there is to fail is asked of the fakes, whatever it is then tried on.
  const auto plan = SweepPlan::make(std::move(*traces), asked->sweep, make_production_system);
  if (!plan) return plan.error();
  const SeedRange cases = part.value_or(SeedRange{1, plan->cases()});
  if (cases.last > plan->cases()) {
    return refusal("--cases", fmt::format("{} is more than the {} cases that there are", cases.last, plan->cases()));
  }
  if (auto status = prepare_output(job.out); !status) return status.error();

  Report report;
  report.profile =
      arguments.operands().empty() ? "all scenarios" : fmt::format("{}", fmt::join(arguments.operands(), ", "));
  report.disabled = job.options.run.disabled;
  run_against(*backend, job, report);
  report.marks_required = arguments.has("require-marks");
  print_start(report);
  report.seeds = cases;
  report.command = command_of(arguments, part ? *arguments.value("cases") : std::string());
  report.command += campaign_words(arguments, report);

  SweepTally tally(*plan);
  job.options.seeds = cases;
  job.options.on_result = [&](const SeedResult& result) { tally.add(result); };
  job.source = [&](std::uint64_t number) { return plan->trace(number); };
  job.replay_words = [&](std::uint64_t number) { return command_of(arguments, fmt::format("{0}-{0}", number)); };
  if (auto status = carry_out(job, report); !status) return status.error();
  tally.add_failures(report.result.failures);
  report.sweep = figures_of(*plan, tally, report, asked->sweep);
  if (report.sweep->complete && !report.sweep->gaps.empty()) {
    report.gate_failure = fmt::format("{} legal cells were reached by no scenario", report.sweep->gaps.size());
  }
  fmt::print("\n{}", sweep_tables(*report.sweep));
  return conclude(job.out, report);
}

}  // namespace

Command sweep_command() { return {spec(), sweep_main}; }

}  // namespace holdfast::sim
