// holdfast run: many seeds of a profile, or one scenario.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <thread>

#include "backend_choice.hpp"
#include "command_line.hpp"
#include "holdfast/sim/abcd_gate.hpp"
#include "holdfast/sim/coverage.hpp"
#include "holdfast/sim/files.hpp"
#include "holdfast/sim/generator.hpp"
#include "holdfast/sim/scenarios.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

using Kind = OptionSpec::Kind;

constexpr std::uint64_t kSeedsDefault = 1000;
constexpr std::uint64_t kSeedsOfABudget = 1'000'000'000'000;  // more than any budget lets run

CommandSpec spec() {
  CommandSpec spec;
  spec.name = "run";
  spec.summary = "simulate many seeds, or a scenario, with every promise checked";
  spec.usage = "[--seeds A-B | --time-budget TIME | --scenario NAME] [options]";
  spec.about =
      "Each seed stands for a trace of sessions, faults and choices, which the production core runs against the "
      "runtimes while every promise is checked. Seeds run in child processes: a crash or a hang is the verdict of its "
      "seed, and the rest goes on. The first thing a failure leaves behind is its trace, which 'holdfast replay' runs "
      "again.";
  spec.operand = "";
  spec.options = {
      {"seeds", Kind::value, "A-B", "seeds A to B, or N for 1-N (default 1-1000; with --time-budget alone, all)"},
      {"time-budget", Kind::value, "TIME", "begin no more seeds after this real time, like 10m"},
      {"profile", Kind::value, "NAME",
       "what traces look like (default 'default'; holdfast list profiles). Of 'coverage' a seed depends on those "
       "before it, and each shard begins anew"},
      {"scenario", Kind::value, "NAME",
       "run this one trace instead of seeds (holdfast list scenarios); abcd is a gate"},
      {"shard", Kind::value, "I/N",
       "run the I-th of N blocks of the seeds, I from 1. Without it a Slurm array, a Kubernetes indexed job (with "
       "JOB_COMPLETIONS), TEST_SHARD_INDEX or GTEST_SHARD_INDEX decides. With N > 1 the output goes to "
       "DIR/shard-I-of-N"},
      backend_option(),
      require_device_option(),
      {"require-marks", Kind::flag, "", "fail when a mark that is not rare was never reached (holdfast list marks)"},
  };
  add_campaign_options(spec);
  spec.examples = {
      {"the usual check, before a commit", "holdfast run --seeds 1-20000"},
      {"all night, with a report", "holdfast run --time-budget 8h --keep-going --out out"},
      {"the A/B/C/D gate", "holdfast run --scenario abcd"},
      {"traces that reach what none has reached yet", "holdfast run --profile coverage --time-budget 10m --out out"},
      {"the second of eight machines", "holdfast run --seeds 1-1000000 --shard 2/8 --out out"},
  };
  return spec;
}

std::vector<std::string> names_of_profiles() {
  std::vector<std::string> names;
  for (const Profile& profile : profiles()) names.emplace_back(profile.name);
  return names;
}

std::vector<std::string> names_of_scenarios() {
  std::vector<std::string> names;
  for (const Scenario& scenario : scenarios()) names.emplace_back(scenario.name);
  return names;
}

Result<ExitStatus> run_scenario(const Arguments& arguments, const BackendChoice& backend, const std::string& name) {
  for (const char* other : {"seeds", "profile", "shard", "time-budget", "require-marks"}) {
    if (arguments.has(other)) {
      return refusal("--scenario", fmt::format("is one trace, to which --{} does not apply; leave one out", other));
    }
  }
  auto trace = scenario_named(name);
  if (!trace) {
    return refusal("--scenario", fmt::format("there is no scenario '{}'{} (holdfast list scenarios)", printable(name),
                                             did_you_mean(name, names_of_scenarios())));
  }
  auto job = campaign_job_of(arguments);
  if (!job) return job.error();
  std::string command = fmt::format("holdfast run --scenario {}", name);
  job->options.seeds = {1, 1};
  job->options.jobs = 1;
  job->options.keep_results = true;
  if (!arguments.has("recheck")) job->options.recheck = {1, 1};
  auto shared = std::make_shared<const Trace>(std::move(*trace));
  job->source = [&](std::uint64_t) { return shared; };
  job->replay_words = [&](std::uint64_t) { return command; };

  Report report;
  report.profile = fmt::format("scenario {}", name);
  report.seeds = job->options.seeds;
  report.disabled = job->options.run.disabled;
  run_against(backend, *job, report);
  report.command = command + campaign_words(arguments, report);
  if (auto status = prepare_output(job->out); !status) return status.error();
  print_start(report);
  if (auto status = carry_out(*job, report); !status) return status.error();
  if (name == "abcd" && !report.result.results.empty()) {
    AbcdVerdict verdict = judge_abcd(report.result.results.front().run);
    fmt::print("\n{}", verdict.table);
    if (!verdict.failure.empty()) report.gate_failure = "A/B/C/D: " + verdict.failure;
  }
  return conclude(job->out, report);
}

// Bazel counts a test that ignores sharding as broken; touching this file says that it does not.
void acknowledge_sharding(const Environment& environment) {
  if (const auto file = environment("TEST_SHARD_STATUS_FILE")) static_cast<void>(write_output_file(*file, ""));
}

// A seed means nothing without all before it in its range.
void guide_by_coverage(CampaignJob& job, const Profile& profile, Report& report) {
  auto failed = std::make_shared<std::map<std::uint64_t, std::shared_ptr<const Trace>>>();
  job.campaign = [failed, &profile, &report, factory = job.factory](
                     const CampaignOptions& options, const ProgressSink& progress) -> Result<CampaignResult> {
    auto result = run_coverage({.campaign = options}, factory, profile, progress);
    if (!result) return result.error();
    *failed = std::move(result->failed);
    report.coverage = std::move(result->over_time);
    return std::move(result->campaign);
  };
  job.source = [failed](std::uint64_t seed) { return failed->at(seed); };
  job.replay_words = [first = report.seeds.first, &profile](std::uint64_t seed) {
    return fmt::format("holdfast run --seeds {}-{} --profile {}", first, seed, profile.name);
  };
}

Result<ExitStatus> run_seeds(const Arguments& arguments, const BackendChoice& backend) {
  auto job = campaign_job_of(arguments);
  if (!job) return job.error();
  const std::string profile_name = arguments.value("profile").value_or("default");
  const Profile* profile = profile_named(profile_name);
  if (profile == nullptr) {
    return refusal("--profile", fmt::format("there is no profile '{}'{} (holdfast list profiles)",
                                            printable(profile_name), did_you_mean(profile_name, names_of_profiles())));
  }
  SeedRange seeds{1, job->options.time_budget_ns > 0 ? kSeedsOfABudget : kSeedsDefault};
  if (const auto text = arguments.value("seeds")) {
    auto parsed = parse_seeds("--seeds", *text);
    if (!parsed) return parsed.error();
    seeds = *parsed;
  }
  const Environment environment = process_environment();
  auto shard =
      arguments.has("shard") ? parse_shard("--shard", *arguments.value("shard")) : shard_from_environment(environment);
  if (!shard) return shard.error();
  const auto own = seeds_of_shard(seeds, *shard);

  Report report;
  report.profile = profile_name;
  report.shard = *shard;
  report.seeds_of_all = seeds;
  report.disabled = job->options.run.disabled;
  run_against(backend, *job, report);
  report.marks_required = arguments.has("require-marks");
  if (shard->count > 1 && !job->out.empty()) job->out += fmt::format("/shard-{}-of-{}", shard->index, shard->count);
  if (own) {
    if (auto status = prepare_output(job->out); !status) return status.error();
  }
  print_start(report);
  if (shard->count > 1) {
    acknowledge_sharding(environment);
    fmt::print("shard {} of {}, by {}\n", shard->index, shard->count, shard->from);
  }
  if (!own) {
    fmt::print("SKIPPED: {} seeds in {} shards leave none for this one\n", seeds.count(), shard->count);
    return ExitStatus::skipped;
  }
  report.seeds = *own;
  job->options.seeds = *own;
  job->source = [&](std::uint64_t seed) { return std::make_shared<const Trace>(generate(seed, *profile)); };
  job->replay_words = [&](std::uint64_t seed) {
    return fmt::format("holdfast replay --seed {} --profile {}", seed, profile_name);
  };
  if (profile->coverage_guided) guide_by_coverage(*job, *profile, report);
  if (auto status = carry_out(*job, report); !status) return status.error();
  const std::uint64_t last = std::max(own->first, own->first + report.result.seeds_run - 1);
  report.command = fmt::format("holdfast run --seeds {}-{} --profile {}{}", own->first, last, profile_name,
                               campaign_words(arguments, report));
  return conclude(job->out, report);
}

Result<ExitStatus> run_main(const Arguments& arguments) {
  auto backend = backend_choice_of(arguments);
  if (!backend) return backend.error();
  if (backend->ended) return *backend->ended;
  const auto scenario = arguments.value("scenario");
  return scenario ? run_scenario(arguments, *backend, *scenario) : run_seeds(arguments, *backend);
}

}  // namespace

Command run_command() { return {spec(), run_main}; }

}  // namespace holdfast::sim
