#include "command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <filesystem>
#include <limits>

#include "holdfast/sim/failure_traces.hpp"
#include "holdfast/sim/files.hpp"
#include "holdfast/sim/fresh_process.hpp"
#include "holdfast/sim/generator.hpp"
#include "holdfast/sim/progress.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

namespace options = boost::program_options;

std::vector<std::string> option_names(const CommandSpec& spec) {
  std::vector<std::string> names{"--help"};
  for (const OptionSpec& option : spec.options) names.push_back("--" + option.name);
  return names;
}

const OptionSpec* spec_of(const CommandSpec& spec, const std::string& name) {
  const auto found = std::find_if(spec.options.begin(), spec.options.end(),
                                  [&](const OptionSpec& option) { return option.name == name; });
  return found == spec.options.end() ? nullptr : &*found;
}

options::options_description description_of(const CommandSpec& spec) {
  options::options_description description;
  description.add_options()("help,h", "this text");
  for (const OptionSpec& option : spec.options) {
    if (option.kind == OptionSpec::Kind::flag) {
      description.add_options()(option.name.c_str(), option.help.c_str());
    } else {
      description.add_options()(option.name.c_str(), options::value<std::vector<std::string>>(), option.help.c_str());
    }
  }
  return description;
}

// Traces of an earlier run into the same directory would pass for this one's.
void remove_old_traces(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    const std::size_t digits = name.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string::npos) continue;
    const std::string kind = name.substr(digits);
    if (kind == ".trace.json" || kind == ".min.trace.json" || kind == ".timeline.json") {
      std::filesystem::remove(entry.path(), error);
    }
  }
}

}  // namespace

std::string help_text(const CommandSpec& spec) {
  std::string text = fmt::format("usage: holdfast {} {}\n\n{}\n\noptions:\n", spec.name, spec.usage,
                                 wrapped(spec.about, kTextWidth, 0));
  Table table({Table::Align::left, Table::Align::left});
  for (const OptionSpec& option : spec.options) {
    table.add({fmt::format("--{}{}{}", option.name, option.argument.empty() ? "" : " ", option.argument), option.help});
  }
  table.add({"--help", "this text"});
  text += table.text(2);
  if (!spec.examples.empty()) text += "\nexamples:\n";
  for (const auto& [what, line] : spec.examples) text += fmt::format("  # {}\n  {}\n", what, line);
  return text;
}

Result<Arguments> Arguments::parse(const CommandSpec& spec, const std::vector<std::string>& words) {
  const std::string place = "holdfast " + spec.name;
  const auto unknown = [&](const std::string& word) {
    return refusal(place,
                   fmt::format("there is no option '{}'{}", printable(word), did_you_mean(word, option_names(spec))));
  };
  Arguments arguments;
  try {
    namespace style = options::command_line_style;
    const auto parsed = options::command_line_parser(words)
                            .options(description_of(spec))
                            .style(style::unix_style & ~style::allow_guessing & ~style::allow_sticky)
                            .allow_unregistered()
                            .run();
    for (const auto& option : parsed.options) {
      if (option.unregistered) return unknown(option.original_tokens.at(0));
      if (option.position_key >= 0) {
        const std::string& word = option.value.at(0);
        if (spec.operand.empty()) {
          return refusal(place, fmt::format("takes no operand, but was given '{}'", printable(word)));
        }
        if (!arguments.operands_.empty() && !spec.many_operands) {
          return refusal(place, fmt::format("takes one {}, but was given '{}' and '{}'", spec.operand,
                                            printable(arguments.operands_.front()), printable(word)));
        }
        arguments.operands_.push_back(word);
        continue;
      }
      const OptionSpec* known = spec_of(spec, option.string_key);
      std::vector<std::string>& values = arguments.values_[option.string_key];
      if (!values.empty() && (known == nullptr || known->kind != OptionSpec::Kind::repeated)) {
        return refusal(place, fmt::format("--{} is said twice; say it once", option.string_key));
      }
      values.push_back(option.value.empty() ? std::string() : option.value.at(0));
    }
  } catch (const options::error& error) {
    return refusal(place, printable(error.what()));
  }
  return arguments;
}

std::optional<std::string> Arguments::value(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second.front();
}

std::vector<std::string> Arguments::values(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

OptionSpec disable_option() {
  return {"disable", OptionSpec::Kind::repeated, "INVARIANT",
          "switch a check off; may be repeated. The report says so, and nothing else of that invariant"};
}
OptionSpec seed_option() {
  return {"seed", OptionSpec::Kind::value, "N", "the trace that today's generator makes of seed N"};
}
OptionSpec profile_option() {
  return {"profile", OptionSpec::Kind::value, "NAME", "of --seed (default 'default'; holdfast list profiles)"};
}
OptionSpec out_option() { return {"out", OptionSpec::Kind::value, "DIR", std::string(kOutHelp)}; }
OptionSpec keep_going_option() {
  return {"keep-going", OptionSpec::Kind::flag, "", "do not stop when 10 seeds have failed"};
}
OptionSpec stop_at_option() {
  return {"stop-at", OptionSpec::Kind::value, "INVARIANT",
          "stop at the first violation of INVARIANT, however many seeds have failed otherwise; 'any' stops at the "
          "first failure of any kind"};
}
OptionSpec quiet_option() { return {"quiet", OptionSpec::Kind::flag, "", "no progress on standard error"}; }
OptionSpec hang_limit_option() {
  return {"hang-limit", OptionSpec::Kind::value, "TIME", "real time after which one run counts as hung (default 60s)"};
}

Result<Invariant> invariant_of(const std::string& option, const std::string& name) {
  if (const auto invariant = invariant_named(name)) return *invariant;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kInvariantCount; ++i) names.emplace_back(name_of(static_cast<Invariant>(i)));
  return refusal(option, fmt::format("there is no invariant '{}'{} (holdfast list invariants)", printable(name),
                                     did_you_mean(name, names)));
}

Status stop_as_asked(const Arguments& arguments, CampaignOptions& options) {
  if (arguments.has("keep-going")) options.failed_seeds_max = 0;
  const auto name = arguments.value("stop-at");
  if (!name) return {};
  if (arguments.has("keep-going")) return refusal("--stop-at", "and --keep-going exclude each other; leave one out");
  options.failed_seeds_max = *name == "any" ? 1 : 0;
  if (*name == "any") return {};
  auto invariant = invariant_of("--stop-at", *name);
  if (!invariant) return invariant.error();
  options.stop_at = *invariant;
  return {};
}

Result<std::vector<Invariant>> disabled_of(const Arguments& arguments) {
  std::vector<Invariant> disabled;
  for (const std::string& name : arguments.values("disable")) {
    auto invariant = invariant_of("--disable", name);
    if (!invariant) return invariant.error();
    if (std::find(disabled.begin(), disabled.end(), *invariant) == disabled.end()) disabled.push_back(*invariant);
  }
  return disabled;
}

Result<Nanos> hang_limit_of(const Arguments& arguments, Nanos otherwise_ns) {
  const auto text = arguments.value("hang-limit");
  return text ? parse_duration("--hang-limit", *text) : Result<Nanos>(otherwise_ns);
}

std::string disable_words(const std::vector<Invariant>& disabled) {
  std::string words;
  for (const Invariant invariant : disabled) words += fmt::format(" --disable {}", name_of(invariant));
  return words;
}

std::string report_words(const Report& report) {
  const std::string backend = report.backend == "fake" ? "" : " --backend " + shell_word(report.backend);
  return backend + disable_words(report.disabled);
}

void print_start(const Report& report) {
  fmt::print("holdfast {}, backend {}\n{}", program_version(), printable(report.backend),
             runtimes_text(report.runtimes));
  for (const Invariant invariant : report.undecidable) {
    fmt::print("{}: not decidable, this backend cannot be looked into\n", name_of(invariant));
  }
  for (const Invariant invariant : report.disabled) {
    fmt::print("WARNING: {} is SWITCHED OFF (--disable)\n", name_of(invariant));
  }
  std::fflush(stdout);
}

Result<Trace> trace_of(const Arguments& arguments, std::string_view command) {
  const auto seed_text = arguments.value("seed");
  const auto& file = arguments.operand();
  if (file && seed_text) return refusal(command, "takes a FILE or --seed N, not both");
  if (!file && !seed_text) return refusal(command, "wants a trace FILE, or --seed N");
  if (file) {
    if (arguments.has("profile")) return refusal("--profile", "belongs to --seed; a trace file has its own content");
    const TraceLimits limits;
    auto text = read_input_file(*file, limits.file_bytes_max);
    if (!text) return text.error();
    auto trace = read_trace(*text, *file, limits);
    if (!trace) return refusal(command, explain(trace.error()));
    return trace;
  }
  auto seed = parse_count("--seed", *seed_text, 1, std::numeric_limits<std::uint64_t>::max() / 2);
  if (!seed) return seed.error();
  const std::string name = arguments.value("profile").value_or("default");
  const Profile* profile = profile_named(name);
  if (profile == nullptr) {
    std::vector<std::string> names;
    for (const Profile& known : profiles()) names.emplace_back(known.name);
    return refusal("--profile", fmt::format("there is no profile '{}'{} (holdfast list profiles)", printable(name),
                                            did_you_mean(name, names)));
  }
  if (profile->coverage_guided) {
    return refusal("--seed", fmt::format("is not enough: a seed of {} depends on what the seeds before it reached; "
                                         "replay the trace that it left behind",
                                         name));
  }
  return generate(*seed, *profile);
}

Status prepare_output(const std::string& out) {
  if (out.empty()) return {};
  if (auto status = make_directory(out + "/failures"); !status) return refusal("--out", explain(status.error()));
  remove_old_traces(out + "/failures");
  return {};
}

Status carry_out(const CampaignJob& asked, Report& report) {
  CampaignJob job = asked;
  Progress progress(stderr, progress_style(stderr, job.quiet));
  CampaignOptions options = job.options;
  options.fresh_program = {"/proc/self/exe", std::string(kFreshProcessCommand)};
  if (job.backend != "fake") options.fresh_program.push_back(std::string(kFreshBackend) + job.backend);
  const ProgressSink sink = [&](const CampaignProgress& now) { progress.update(now); };
  auto result = job.campaign ? job.campaign(options, sink) : run_campaign(options, job.factory, job.source, sink);
  progress.finish();
  if (!result) return result.error();
  report.result = std::move(*result);

  if (job.out.empty() && !report.result.failures.empty()) {
    job.out = kTracesWithoutOut;
    if (auto status = make_directory(job.out + "/failures"); !status) {
      fmt::print(stderr, "no traces are written: {}\n", printable(explain(status.error())));
      job.out.clear();
    }
  }
  FailureTraces traces;
  if (!job.out.empty()) {
    FailureTracesOptions traces_options;
    traces_options.out = job.out;
    traces_options.source = job.source;
    traces_options.factory = job.factory;
    traces_options.disabled = job.options.run.disabled;
    traces_options.hang_limit_ns = job.options.hang_limit_ns;
    traces_options.shrink_budget_ns = job.shrink_budget_ns;
    traces_options.progress = [&](std::uint64_t seed, const ShrinkProgress& now) {
      progress.show(progress_line(fmt::format("seed {}", seed), now), now.elapsed_ns);
    };
    auto made = write_failure_traces(report.result, traces_options);
    progress.finish();
    if (!made) return made.error();
    traces = std::move(*made);
    for (const std::string& note : traces.notes) fmt::print(stderr, "{}\n", printable(note));
  }
  ViolationSources sources;
  sources.trace = [&](const SeedFailure& failure) {
    return traces.written.contains(failure.seed) ? fmt::format("failures/{}.trace.json", failure.seed) : std::string();
  };
  sources.reproduce = [&](const SeedFailure& failure) {
    const std::string words =
        traces.written.contains(failure.seed)
            ? fmt::format("holdfast replay {}",
                          shell_word(fmt::format("{}/failures/{}.trace.json", job.out, failure.seed)))
            : job.replay_words(failure.seed);
    return words + report_words(report);
  };
  sources.shrunk = [&](const SeedFailure& failure) -> std::optional<ShrunkTrace> {
    const auto found = traces.shrunk.find(failure.seed);
    if (found == traces.shrunk.end()) return std::nullopt;
    ShrunkTrace shrunk = found->second;
    shrunk.reproduce += report_words(report);
    return shrunk;
  };
  sources.timeline = [&](const SeedFailure& failure) {
    const auto found = traces.timelines.find(failure.seed);
    return found == traces.timelines.end() ? std::string() : found->second;
  };
  sources.story = [&](const SeedFailure& failure) -> std::shared_ptr<const FailureStory> {
    const auto found = traces.stories.find(failure.seed);
    return found == traces.stories.end() ? nullptr : found->second;
  };
  report.violations = list_violations(report.result, sources);
  return {};
}

Result<ExitStatus> conclude(const std::string& out, const Report& report) {
  if (!out.empty()) {
    if (auto status = write_report(out, report); !status) return status.error();
  }
  fmt::print("\n{}", summary_text(report, may_colour(stdout)));
  if (!out.empty()) fmt::print("report: {}/report.html\n", printable(out));
  return verdict_of(report);
}

}  // namespace holdfast::sim
