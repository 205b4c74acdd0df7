// holdfast workload: a real service's request trace.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "command_line.hpp"
#include "holdfast/core/capacity.hpp"
#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/sim/files.hpp"
#include "holdfast/sim/text.hpp"
#include "holdfast/sim/workload.hpp"

namespace holdfast::sim {
namespace {

using Kind = OptionSpec::Kind;

CommandSpec spec() {
  CommandSpec spec;
  spec.name = "workload";
  spec.summary = "replay a real request trace: hit rate, evictions, bytes moved, every promise checked";
  spec.usage = "FILE [--capacity BYTES|SHARE] [--eviction NAME] [options]";
  spec.about =
      "Each request resumes on its longest ready prefix and generates the rest, as a session of its own. A block of "
      "512 "
      "tokens is a chunk of one layer with values of 256 bytes; the capacity counts slots, as the store pays for them. "
      "The format 'mooncake' is one JSON object a line: timestamp (ms), input_length, output_length, hash_ids.";
  spec.operand = "FILE";
  spec.options = {
      {"format", Kind::value, "NAME", "of the file: mooncake (the default, and the only one)"},
      {"capacity", Kind::value, "SIZE",
       "bytes the manager may hold, like 64MiB, or a share of all different blocks, like 25% (default: no limit)"},
      {"lower-mark", Kind::value, "SIZE",
       "bytes or a share, as above: a put that needs room makes it down to here (default: the capacity)"},
      {"eviction", Kind::value, "NAME",
       "which blob goes first: lru, the least recently used, or frequency, the least often used too (default lru)"},
      out_option(),
      {"hang-limit", Kind::value, "TIME", "real time after which it counts as hung (default 10m)"},
      disable_option(),
      quiet_option(),
  };
  spec.examples = {
      {"without a limit", "holdfast workload conversation_trace.jsonl"},
      {"with a quarter of its footprint", "holdfast workload conversation_trace.jsonl --capacity 25%"},
      {"what was found often stays longer", "holdfast workload trace.jsonl --capacity 5% --eviction frequency"},
  };
  return spec;
}

std::uint64_t footprint_bytes(const Workload& workload, std::uint32_t value_bytes) {
  std::unordered_set<std::uint64_t> different;
  for (const WorkloadRequest& request : workload.requests) {
    different.insert(request.hash_ids.begin(), request.hash_ids.end());
  }
  return different.size() * 2 * slot_bytes(value_bytes);
}

Result<Workload> read_file(const Arguments& arguments) {
  const auto& file = arguments.operand();
  if (!file) return refusal("holdfast workload", "wants a FILE");
  const std::string format = arguments.value("format").value_or("mooncake");
  const std::vector<std::string> formats{"mooncake"};
  if (format != "mooncake") {
    return refusal("--format", fmt::format("there is no format '{}'{}; there is mooncake", printable(format),
                                           did_you_mean(format, formats)));
  }
  const WorkloadLimits limits;
  auto text = read_input_file(*file, limits.file_bytes_max);
  if (!text) return text.error();
  auto workload = read_workload(*text, *file, limits);
  if (!workload) return refusal("holdfast workload", explain(workload.error()));
  return workload;
}

Result<Capacity> capacity_of(const Arguments& arguments, std::string_view option) {
  const auto text = arguments.value(std::string(option));
  if (!text) return Capacity{};
  return parse_capacity("--" + std::string(option), *text);
}

std::uint64_t bytes_of(const Capacity& capacity, std::uint64_t footprint_bytes) {
  if (!capacity.share) return capacity.bytes;
  return std::max<std::uint64_t>(1, footprint_bytes * capacity.share->numerator / capacity.share->denominator);
}

Result<Eviction> eviction_of(const Arguments& arguments) {
  const std::string name = arguments.value("eviction").value_or(std::string(name_of(Eviction::lru)));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kEvictionCount; ++i) {
    const auto eviction = static_cast<Eviction>(i);
    if (name_of(eviction) == name) return eviction;
    names.emplace_back(name_of(eviction));
  }
  return refusal("--eviction", fmt::format("there is no order '{}'{}; there are lru and frequency", printable(name),
                                           did_you_mean(name, names)));
}

Result<ExitStatus> workload_main(const Arguments& arguments) {
  CampaignJob job;
  job.out = arguments.value("out").value_or("");
  job.quiet = arguments.has("quiet");
  auto disabled = disabled_of(arguments);
  if (!disabled) return disabled.error();
  auto hang_limit = hang_limit_of(arguments, 10 * kMinute);
  if (!hang_limit) return hang_limit.error();
  auto capacity = capacity_of(arguments, "capacity");
  if (!capacity) return capacity.error();
  auto lower_mark = capacity_of(arguments, "lower-mark");
  if (!lower_mark) return lower_mark.error();
  auto eviction = eviction_of(arguments);
  if (!eviction) return eviction.error();
  auto workload = read_file(arguments);
  if (!workload) return workload.error();

  WorkloadOptions options;
  WorkloadFigures figures;
  figures.requests = workload->requests.size();
  figures.blocks = workload->blocks;
  figures.footprint_bytes = footprint_bytes(*workload, options.value_bytes);
  options.capacity_bytes = figures.capacity_bytes = bytes_of(*capacity, figures.footprint_bytes);
  options.lower_mark_bytes = bytes_of(*lower_mark, figures.footprint_bytes);
  options.eviction = *eviction;
  if (Status valid = validate_marks({options.capacity_bytes, options.lower_mark_bytes}); !valid) {
    return refusal("--lower-mark", valid.error().detail);
  }
  auto trace = workload_trace(*workload, options);
  if (!trace) return refusal("holdfast workload", explain(trace.error()));

  std::string command = fmt::format("holdfast workload {}", shell_word(*arguments.operand()));
  for (const char* option : {"capacity", "lower-mark", "eviction"}) {
    if (const auto value = arguments.value(option)) command += fmt::format(" --{} {}", option, shell_word(*value));
  }
  job.options.seeds = {1, 1};
  job.options.hang_limit_ns = *hang_limit;
  job.options.recheck = {0, 1};
  job.options.keep_results = true;
  job.options.run.disabled = *disabled;
  auto shared = std::make_shared<const Trace>(std::move(*trace));
  job.source = [&](std::uint64_t) { return shared; };
  job.replay_words = [&](std::uint64_t) { return command; };
  Report report;
  report.command = command + disable_words(*disabled);
  report.profile = fmt::format("workload {}", printable(*arguments.operand()));
  report.runtimes = probe_fake_backend().runtimes;
  report.seeds = job.options.seeds;
  report.disabled = *disabled;
  if (auto status = prepare_output(job.out); !status) return status.error();
  print_start(report);
  if (auto status = carry_out(job, report); !status) return status.error();
  for (const SeedResult& result : report.result.results) {
    // The sessions after the requests' own are phase two's.
    const std::vector<std::uint64_t>& hits = result.run.session_chunks_hit;
    const std::size_t requests = std::min<std::size_t>(hits.size(), figures.requests);
    figures.hit_blocks =
        std::accumulate(hits.begin(), hits.begin() + static_cast<std::ptrdiff_t>(requests), std::uint64_t{0});
  }
  report.workload = figures;
  return conclude(job.out, report);
}

}  // namespace

Command workload_command() { return {spec(), workload_main}; }

}  // namespace holdfast::sim
