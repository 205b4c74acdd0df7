// The options of every command that runs a campaign.
#include <algorithm>
#include <iterator>
#include <thread>

#include "command_line.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

using Kind = OptionSpec::Kind;

constexpr std::uint64_t kJobsMax = 1024;
constexpr Nanos kShrinkBudget = 10 * kSecond;

Status shrink_as_asked(const Arguments& arguments, CampaignJob& job) {
  job.shrink_budget_ns = arguments.has("no-shrink") ? 0 : kShrinkBudget;
  const auto text = arguments.value("shrink-budget");
  if (!text) return {};
  if (arguments.has("no-shrink")) return refusal("--shrink-budget", "and --no-shrink exclude each other");
  auto budget = parse_duration("--shrink-budget", *text);
  if (!budget) return budget.error();
  job.shrink_budget_ns = *budget;
  return {};
}

}  // namespace

void add_campaign_options(CommandSpec& spec) {
  const std::vector<OptionSpec> options{
      {"jobs", Kind::value, "N", "worker processes (default: one per core)"},
      out_option(),
      keep_going_option(),
      stop_at_option(),
      {"recheck", Kind::value, "SHARE",
       "share of the cases run again, in the same process and in a fresh one, both perturbed; their event logs must be "
       "equal (default 1/20)"},
      hang_limit_option(),
      {"shrink-budget", Kind::value, "TIME",
       "real time in which the first failure of each kind is shrunk and written beside the original, with --out "
       "(default 10s)"},
      {"no-shrink", Kind::flag, "", "leave the traces of failures as they are"},
      disable_option(),
      quiet_option(),
  };
  spec.options.insert(spec.options.end(), options.begin(), options.end());
}

Result<CampaignJob> campaign_job_of(const Arguments& arguments) {
  CampaignJob job;
  job.out = arguments.value("out").value_or("");
  job.quiet = arguments.has("quiet");
  auto hang_limit = hang_limit_of(arguments);
  if (!hang_limit) return hang_limit.error();
  job.options.hang_limit_ns = *hang_limit;
  auto disabled = disabled_of(arguments);
  if (!disabled) return disabled.error();
  job.options.run.disabled = *disabled;
  if (const auto text = arguments.value("recheck")) {
    auto share = parse_share("--recheck", *text);
    if (!share) return share.error();
    job.options.recheck = *share;
  }
  if (auto status = shrink_as_asked(arguments, job); !status) return status.error();
  job.options.jobs = std::clamp(std::thread::hardware_concurrency(), 1U, static_cast<unsigned>(kJobsMax));
  if (const auto text = arguments.value("jobs")) {
    auto jobs = parse_count("--jobs", *text, 1, kJobsMax);
    if (!jobs) return jobs.error();
    job.options.jobs = static_cast<std::uint32_t>(*jobs);
  }
  if (const auto text = arguments.value("time-budget")) {
    auto budget = parse_duration("--time-budget", *text);
    if (!budget) return budget.error();
    job.options.time_budget_ns = *budget;
  }
  if (auto status = stop_as_asked(arguments, job.options); !status) return status.error();
  return job;
}

std::string campaign_words(const Arguments& arguments, const Report& report) {
  std::string words;
  if (const auto share = arguments.value("recheck")) words += " --recheck " + shell_word(*share);
  if (report.marks_required) words += " --require-marks";
  if (arguments.has("keep-going")) words += " --keep-going";
  if (const auto name = arguments.value("stop-at")) words += " --stop-at " + shell_word(*name);
  return words + report_words(report);
}

}  // namespace holdfast::sim
