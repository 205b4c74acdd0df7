#include "holdfast/sim/report_merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

constexpr std::string_view kPlace = "holdfast report";
constexpr std::size_t kViolationsMax = 500;

std::string seeds_of(const Report& report) { return fmt::format("{}-{}", report.seeds.first, report.seeds.last); }

Status belong_together(const Report& one, const Report& other) {
  const auto differ = [&](std::string_view what, const std::string& first, const std::string& second) {
    return refusal(kPlace, fmt::format("seeds {} and {} were run with different {}: {} and {}", seeds_of(one),
                                       seeds_of(other), what, printable(first), printable(second)));
  };
  if (one.backend != other.backend) return differ("backends", one.backend, other.backend);
  if (one.profile != other.profile) return differ("profiles", one.profile, other.profile);
  if (runtimes_text(one.runtimes) != runtimes_text(other.runtimes)) {
    return differ("runtimes", runtimes_text(one.runtimes), runtimes_text(other.runtimes));
  }
  if (one.disabled != other.disabled) return refusal(kPlace, "not all were run with the same checks switched off");
  if (one.shard.count != other.shard.count) {
    return differ("numbers of shards", std::to_string(one.shard.count), std::to_string(other.shard.count));
  }
  const SeedRange& all_of_one = one.seeds_of_all;
  const SeedRange& all_of_other = other.seeds_of_all;
  if (one.shard.count > 1 && (all_of_one.first != all_of_other.first || all_of_one.last != all_of_other.last)) {
    return refusal(kPlace, "these are shards of different runs");
  }
  if (other.seeds.first <= one.seeds.last) {
    return refusal(kPlace,
                   fmt::format("seeds {} and {} overlap: they would count twice", seeds_of(one), seeds_of(other)));
  }
  return {};
}

Status is_whole(const std::vector<Report>& reports) {
  const Report& any = reports.front();
  if (any.shard.count <= 1) return {};
  std::string missing;
  for (std::uint64_t index = 1; index <= any.shard.count; ++index) {
    const auto own = seeds_of_shard(any.seeds_of_all, {index, any.shard.count, {}});
    const auto is_it = [&](const Report& report) {
      return report.shard.index == index && report.seeds.first == own->first && report.seeds.last == own->last;
    };
    if (own && std::ranges::none_of(reports, is_it)) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", index);
  }
  if (missing.empty()) return {};
  return refusal(kPlace, fmt::format("shard {} of {} is missing", missing, any.shard.count));
}

// The command that runs all of it on one machine.
std::string command_of_all(const std::string& command, const Report& all) {
  constexpr std::string_view kOption = "--seeds ";
  const std::size_t at = command.find(kOption);
  if (at == std::string::npos) return command;
  const std::size_t begin = at + kOption.size();
  const std::size_t end = std::min(command.find(' ', begin), command.size());
  return command.substr(0, begin) + seeds_of(all) + command.substr(end);
}

}  // namespace

Result<Report> merge_reports(std::vector<Report> reports) {
  if (reports.empty()) return refusal(kPlace, "there is no report to merge");
  std::ranges::stable_sort(reports, {}, [](const Report& report) { return report.seeds.first; });
  for (std::size_t i = 0; i + 1 < reports.size(); ++i) {
    if (auto status = belong_together(reports[i], reports[i + 1]); !status) return status.error();
  }
  if (auto status = is_whole(reports); !status) return status.error();
  Report all = std::move(reports.front());
  for (std::size_t i = 1; i < reports.size(); ++i) {
    Report& next = reports[i];
    all.seeds.last = next.seeds.last;
    all.marks_required = all.marks_required || next.marks_required;
    if (all.gate_failure.empty()) all.gate_failure = std::move(next.gate_failure);
    merge(all.result, std::move(next.result));
    std::ranges::move(next.violations, std::back_inserter(all.violations));
  }
  if (all.violations.size() > kViolationsMax) all.violations.resize(kViolationsMax);
  all.shard = {};
  all.command = command_of_all(all.command, all);
  return all;
}

}  // namespace holdfast::sim
