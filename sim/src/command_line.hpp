// Parsing of one command's options, the same for all commands; and what commands share.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/result.hpp"
#include "holdfast/sim/campaign.hpp"
#include "holdfast/sim/report.hpp"

namespace holdfast::sim {

struct OptionSpec {
  enum class Kind : std::uint8_t { flag, value, repeated };
  std::string name;  // without the dashes
  Kind kind = Kind::value;
  std::string argument;  // "N", "FILE"; empty for a flag
  std::string help;
};

struct CommandSpec {
  std::string name;
  std::string summary;  // one line, for the list of commands
  std::string usage;    // what follows the command's name
  std::string about;    // a paragraph that teaches
  std::vector<OptionSpec> options;
  std::vector<std::pair<std::string, std::string>> examples;  // what for, command line
  std::string operand;                                        // "FILE"; empty when the command takes none
  bool many_operands = false;
};

// Every command has --help.
std::string help_text(const CommandSpec& spec);

class Arguments {
 public:
  // Bad input for what is unknown (with the nearest names), said twice, or lacks its value.
  static Result<Arguments> parse(const CommandSpec& spec, const std::vector<std::string>& words);

  [[nodiscard]] bool has(const std::string& name) const { return values_.contains(name); }
  [[nodiscard]] std::optional<std::string> value(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> values(const std::string& name) const;
  [[nodiscard]] std::optional<std::string> operand() const {
    return operands_.empty() ? std::nullopt : std::optional(operands_.front());
  }
  [[nodiscard]] const std::vector<std::string>& operands() const { return operands_; }

 private:
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> operands_;
};

// Each gives the exit status. An error of Errc::invalid_argument is bad usage or input; any other a failure of the
// harness.
using CommandMain = Result<ExitStatus> (*)(const Arguments&);
struct Command {
  CommandSpec spec;
  CommandMain main;
};
Command run_command();
Command replay_command();
Command shrink_command();
Command workload_command();
Command sweep_command();
Command explore_command();
Command bench_command();
Command list_command();
Command report_command();
Command completion_command();
// In the order of the help.
std::vector<Command> all_commands();

// ---- What several commands take.
inline constexpr std::string_view kOutHelp =
    "write report.json, report.html, junit.xml, and failures/SEED.trace.json and .timeline.json to DIR; without it "
    "only "
    "the latter are written, to holdfast-failures";
OptionSpec disable_option();
OptionSpec seed_option();
OptionSpec profile_option();
OptionSpec out_option();
OptionSpec keep_going_option();
OptionSpec stop_at_option();
OptionSpec quiet_option();
OptionSpec hang_limit_option();
Result<std::vector<Invariant>> disabled_of(const Arguments& arguments);
Result<Nanos> hang_limit_of(const Arguments& arguments, Nanos otherwise_ns = kMinute);
// Sets what ends the campaign early, by --keep-going and --stop-at.
Status stop_as_asked(const Arguments& arguments, CampaignOptions& options);
// By name; `option` is only named in the refusal.
Result<Invariant> invariant_of(const std::string& option, const std::string& name);
// " --disable X" for each.
std::string disable_words(const std::vector<Invariant>& disabled);
// With " --backend plugin:FILE" where it is not the fake one.
std::string report_words(const Report& report);

// The trace of the operand FILE or of --seed.
Result<Trace> trace_of(const Arguments& arguments, std::string_view command);

// Makes `out` (when not empty), before the work, so that a directory that cannot be had is bad usage.
Status prepare_output(const std::string& out);

// Where the traces of failures go without --out.
inline constexpr std::string_view kTracesWithoutOut = "holdfast-failures";

// Runs a campaign of the report's seeds with progress on standard error, fills `report` with what it found and writes
// the traces of what failed.
struct CampaignJob {
  CampaignOptions options;
  TraceSource source;
  SystemFactory factory = make_production_system;
  std::string backend = "fake";  // by the name of which a fresh process makes the factory's owner
  std::string out;
  bool quiet = false;
  Nanos shrink_budget_ns = 0;  // real time in which the traces of failures are shrunk; 0 = they are not
  // Runs the campaign; when empty, run_campaign does, over `source`.
  std::function<Result<CampaignResult>(const CampaignOptions&, const ProgressSink&)> campaign;
  // The command that runs one seed again when there is no trace file.
  std::function<std::string(std::uint64_t seed)> replay_words;
};
// What every campaign takes: --jobs, --out, when to stop, --recheck, --hang-limit, shrinking, --disable, --quiet; and
// --time-budget where the command has it.
void add_campaign_options(CommandSpec& spec);
Result<CampaignJob> campaign_job_of(const Arguments& arguments);
// Those that decide what is found, for the command that runs it again.
std::string campaign_words(const Arguments& arguments, const Report& report);

Status carry_out(const CampaignJob& job, Report& report);
// Writes the reports to `out` (when not empty), prints the summary and gives the exit status.
Result<ExitStatus> conclude(const std::string& out, const Report& report);
// "fluxon fake owner ..." and what is switched off, loudly.
void print_start(const Report& report);

}  // namespace holdfast::sim
