// Makes reports for the browser tests: report_maker DIR. Each directory in DIR has a report of real runs, of the
// project's own store or of one with planted bugs.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

#include "../hasty_system.hpp"
#include "holdfast/sim/failure_traces.hpp"
#include "holdfast/sim/files.hpp"
#include "holdfast/sim/generator.hpp"
#include "holdfast/sim/report.hpp"

namespace holdfast::sim {
namespace {

// What somebody may have written into a trace.
const std::string kHostile =
    "</pre></svg><script>window.hostile = 1</script><img src=x onerror='window.hostile = 2'> {{/causes}} {{{style}}} "
    "\"quoted\" 'too' & ]]> --> \x1b[31m \xff\xfe\x80 \xe2\x80\xae" +
    std::string(5000, 'A');
constexpr std::uint32_t kWays = 6;  // in which it goes wrong

void must(const Status& status) {
  if (status) return;
  fmt::print(stderr, "report_maker: {}\n", to_string(status.error()));
  std::exit(2);
}

Trace hasty_trace(std::uint64_t seed) {
  return made_hasty(generate(seed, *profile_named("default")), Haste(1 + seed % kWays));
}

Trace hostile_trace(std::uint64_t seed) {
  Trace trace = hasty_trace(seed);
  trace.name = kHostile;
  for (Step& step : trace.steps) {
    for (std::string& action : step.actions) {
      action = "\"<img src=x onerror='window.hostile = 3'>" + std::to_string(action.size()) + "\"";
    }
  }
  return trace;
}

void make(const std::string& out, const SystemFactory& factory, const TraceSource& source, SeedRange seeds,
          const std::string& name, const std::string& words) {
  must(make_directory(out + "/failures"));
  CampaignOptions campaign;
  campaign.seeds = seeds;
  campaign.failed_seeds_max = 0;
  campaign.recheck = {1, 50};
  auto result = run_campaign(campaign, factory, source);
  if (!result) must(result.error());
  Report report;
  report.command = words;
  report.profile = name;
  report.runtimes = probe_fake_backend().runtimes;
  report.seeds = seeds;
  report.result = std::move(*result);
  FailureTracesOptions options;
  options.out = out;
  options.source = source;
  options.factory = factory;
  options.shrink_budget_ns = 20 * kSecond;
  auto traces = write_failure_traces(report.result, options);
  if (!traces) must(traces.error());
  ViolationSources sources;
  sources.trace = [](const SeedFailure& failure) { return fmt::format("failures/{}.trace.json", failure.seed); };
  sources.reproduce = [](const SeedFailure& failure) {
    return fmt::format("holdfast replay out/failures/{}.trace.json", failure.seed);
  };
  sources.shrunk = [&](const SeedFailure& failure) -> std::optional<ShrunkTrace> {
    const auto found = traces->shrunk.find(failure.seed);
    return found == traces->shrunk.end() ? std::nullopt : std::optional(found->second);
  };
  sources.timeline = [&](const SeedFailure& failure) {
    const auto found = traces->timelines.find(failure.seed);
    return found == traces->timelines.end() ? std::string() : found->second;
  };
  sources.story = [&](const SeedFailure& failure) -> std::shared_ptr<const FailureStory> {
    const auto found = traces->stories.find(failure.seed);
    return found == traces->stories.end() ? nullptr : found->second;
  };
  report.violations = list_violations(report.result, sources);
  must(write_report(out, report));
}

TraceSource each(const std::function<Trace(std::uint64_t)>& trace) {
  return [trace](std::uint64_t seed) { return std::make_shared<const Trace>(trace(seed)); };
}

int make_all(const std::string& directory) {
  const auto plain = [](std::uint64_t seed) { return generate(seed, *profile_named("default")); };
  make(directory + "/held", make_production_system, each(plain), {1, 300}, "default", "holdfast run --seeds 1-300");
  make(directory + "/violated", hasty_system(), each(hasty_trace), {1, 240}, "default", "holdfast run --seeds 1-240");
  make(directory + "/hostile", hasty_system(kHostile), each(hostile_trace), {1, 12}, kHostile, kHostile);
  return 0;
}

}  // namespace
}  // namespace holdfast::sim

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: report_maker DIR\n", stderr);
    return 2;
  }
  return holdfast::sim::make_all(argv[1]);
}
