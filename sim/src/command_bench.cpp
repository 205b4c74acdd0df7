// holdfast bench: what the simulator costs on this machine.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "bench_cases.hpp"
#include "command_line.hpp"
#include "holdfast/sim/device_bench.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

using Kind = OptionSpec::Kind;

constexpr std::uint64_t kRepetitionsMax = 1'000;
constexpr std::string_view kCopyGroup = "copy";
constexpr std::string_view kRegisterGroup = "register";
constexpr std::uint64_t kSegmentGibMax = 64;

CommandSpec spec() {
  CommandSpec spec;
  spec.name = "bench";
  spec.summary = "what the simulator costs on this machine, side by side in one run";
  spec.usage = "[GROUP...] [options]";
  spec.about =
      "Runs each case several times, one case after the other and then from the beginning, and prints medians. Groups "
      "are 'sim' (runtime calls simulated and checked in a second, and what the parts of a seed cost), 'growth' "
      "(what a step costs in a large forest), 'shrink', 'workload' and 'store' (the core's own work, value by value); "
      "without one, all of these. Times are of the processor, on one core. 'copy' moves values of many sizes between "
      "host and device, and through the whole store, against one big copy; 'register' makes a segment of shared memory "
      "ready, untouched, "
      "touched and on huge pages. Both need a device, and are a run of their own.";
  spec.operand = "GROUP";
  spec.many_operands = true;
  spec.options = {
      {"repetitions", Kind::value, "N", "how often each case is measured (default 5)"},
      {"min-time", Kind::value, "TIME", "of one measurement (default 500ms)"},
      {"gib", Kind::value, "N", "of 'register': the segment's length in GiB, 1 to 64 (default 8)"},
      quiet_option(),
  };
  spec.examples = {{"all figures", "holdfast bench"}, {"a quick look", "holdfast bench sim --min-time 100ms"}};
  return spec;
}

// Medians of the repetitions, by the name of the case.
class Medians final : public benchmark::BenchmarkReporter {
 public:
  struct Told {
    double ns = 0;  // of processor time, an iteration
    std::map<std::string, double> counters;
    std::string error;
  };

  explicit Medians(bool quiet) : quiet_(quiet) {}

  bool ReportContext(const Context& /*context*/) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.error_occurred) told_[run.run_name.function_name].error = run.error_message;
      // One measurement has no median.
      const bool only = run.run_type == Run::RT_Iteration && run.repetitions == 1;
      if (!only && (run.run_type != Run::RT_Aggregate || run.aggregate_name != "median")) continue;
      Told& told = told_[run.run_name.function_name];
      told.ns = run.GetAdjustedCPUTime();
      for (const auto& [name, counter] : run.counters) told.counters[name] = counter.value;
      if (!quiet_) fmt::print(stderr, "measured: {}\n", run.run_name.function_name);
    }
  }
  [[nodiscard]] const std::map<std::string, Told>& told() const { return told_; }

 private:
  bool quiet_;
  std::map<std::string, Told> told_;
};

std::string duration_text(double ns) {
  constexpr double kThousand = 1e3;
  for (const char* unit : {"ns", "us", "ms"}) {
    if (ns < kThousand) return fmt::format("{:.3g} {}", ns, unit);
    ns /= kThousand;
  }
  return fmt::format("{:.3g} s", ns);
}

std::string counters_text(const std::map<std::string, double>& counters) {
  std::string text;
  for (const auto& [name, value] : counters) {
    const std::string number =
        value >= 100 ? with_thousands(static_cast<std::uint64_t>(value)) : fmt::format("{:.1f}", value);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number, name);
  }
  return text;
}

// Ratios of figures of this run: what they are of another machine's says less.
void print_ratios(const std::map<std::string, Medians::Told>& told) {
  const auto ns = [&](std::string_view name) {
    const auto found = told.find(std::string(name));
    return found == told.end() ? 0.0 : found->second.ns;
  };
  const auto seeds = told.find("seeds of the default profile");
  if (seeds != told.end() && seeds->second.ns > 0) {
    const double log_ns = ns("  one event of the log") * seeds->second.counters.at(kEvents);
    fmt::print("\nof the time of a seed, making its trace is {:.1f}% and its log {:.1f}%\n",
               100 * ns("  of which making the trace") / seeds->second.ns, 100 * log_ns / seeds->second.ns);
  }
  const double small = ns("a step in a forest of 1,000 nodes"), large = ns("a step in a forest of 1,000,000 nodes");
  if (large > 0) fmt::print("a step in the large forest costs {} more\n", duration_text(std::max(0.0, large - small)));
  const auto core = told.find(std::string(kCoreCase));
  const auto hand = told.find(std::string(kByHandCase));
  if (core != told.end() && hand != told.end()) {
    fmt::print("of the time of a value, the core's own work is {:.0f} ns\n",
               std::max(0.0, core->second.counters.at(kNsAValue) - hand->second.counters.at(kNsAValue)));
  }
}

Result<ExitStatus> bench_device(const Arguments& arguments, std::uint32_t repetitions) {
  const std::string& group = arguments.operands().front();
  if (arguments.operands().size() > 1) {
    return refusal("holdfast bench",
                   "'copy' and 'register' are runs of their own: give one of them, and no other group");
  }
  if (arguments.has("min-time")) {
    return refusal("--min-time", "means nothing to '" + group + "', which moves a fixed number of bytes");
  }
  DeviceBenchOptions options;
  options.repetitions = repetitions;
  if (!arguments.has("quiet")) {
    options.progress = [](const std::string& done) { fmt::print(stderr, "measured: {}\n", done); };
  }
  if (const auto text = arguments.value("gib")) {
    auto gib = parse_count("--gib", *text, 1, kSegmentGibMax);
    if (!gib) return gib.error();
    options.segment_bytes = *gib << 30;
  }
  const Result<std::string> tables = group == kCopyGroup ? bench_copies(options) : bench_registration(options);
  if (!tables && is_cuda(tables.error(), CudaErrc::no_device)) {
    fmt::print(stderr, "holdfast: skipped: {}\n", to_string(tables.error()));
    return ExitStatus::skipped;
  }
  if (!tables) return tables.error();
  fmt::print("{}", *tables);
  return ExitStatus::held;
}

Result<ExitStatus> bench_main(const Arguments& arguments) {
  std::uint64_t repetitions = 5;
  Nanos min_time_ns = kSecond / 2;
  if (const auto text = arguments.value("repetitions")) {
    auto value = parse_count("--repetitions", *text, 1, kRepetitionsMax);
    if (!value) return value.error();
    repetitions = *value;
  }
  if (const auto text = arguments.value("min-time")) {
    auto value = parse_duration("--min-time", *text);
    if (!value) return value.error();
    min_time_ns = *value;
  }
  const auto of_a_device = [](const std::string& group) { return group == kCopyGroup || group == kRegisterGroup; };
  if (std::ranges::any_of(arguments.operands(), of_a_device)) {
    return bench_device(arguments, static_cast<std::uint32_t>(repetitions));
  }
  std::vector<std::string> groups;
  const std::vector<BenchCase> cases = bench_cases();
  for (const BenchCase& each : cases) {
    if (std::ranges::find(groups, each.group) == groups.end()) groups.emplace_back(each.group);
  }
  groups.emplace_back(kCopyGroup);
  groups.emplace_back(kRegisterGroup);
  for (const std::string& group : arguments.operands()) {
    if (std::ranges::find(groups, group) == groups.end()) {
      return refusal("holdfast bench", fmt::format("there is no group '{}'{}; there are: {}", printable(group),
                                                   did_you_mean(group, groups), fmt::join(groups, ", ")));
    }
  }
  const auto wanted = [&](const BenchCase& each) {
    const std::vector<std::string>& asked = arguments.operands();
    return asked.empty() || std::ranges::find(asked, each.group) != asked.end();
  };
  for (const BenchCase& each : cases) {
    if (!wanted(each)) continue;
    benchmark::RegisterBenchmark(std::string(each.name).c_str(), each.run)
        ->Repetitions(static_cast<int>(repetitions))
        ->MinTime(static_cast<double>(min_time_ns) / static_cast<double>(kSecond))
        ->Unit(benchmark::kNanosecond)
        ->ReportAggregatesOnly();
  }
  std::string program = "holdfast";
  // A repetition of one case comes after one of another: what the machine does meanwhile meets all of them.
  std::string interleave = "--benchmark_enable_random_interleaving=true";
  std::array words{program.data(), interleave.data()};
  int count = static_cast<int>(words.size());
  benchmark::Initialize(&count, words.data());
  Medians medians(arguments.has("quiet"));
  benchmark::RunSpecifiedBenchmarks(&medians);

  Table table({Table::Align::left, Table::Align::right, Table::Align::left});
  table.add({"median of " + std::to_string(repetitions), "once", ""});
  for (const BenchCase& each : cases) {
    if (!wanted(each)) continue;
    const auto found = medians.told().find(std::string(each.name));
    if (found == medians.told().end()) return make_error(Errc::incomplete, "bench", std::string(each.name));
    if (!found->second.error.empty()) return make_error(Errc::incomplete, "bench", found->second.error);
    table.add({std::string(each.name), duration_text(found->second.ns), counters_text(found->second.counters)});
  }
  fmt::print("{}", table.text());
  print_ratios(medians.told());
  return ExitStatus::held;
}

}  // namespace

Command bench_command() { return {spec(), bench_main}; }

}  // namespace holdfast::sim
