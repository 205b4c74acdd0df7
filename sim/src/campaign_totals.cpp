// What the runs of a campaign add up to.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "holdfast/sim/campaign.hpp"

namespace holdfast::sim {
namespace {

template <class Counts>
void add_up(Counts& into, const Counts& from) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
}

template <class Items>
void append(Items& into, Items from) {
  into.insert(into.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// Those with most of it; of equal ones the first.
template <class Measure>
void keep_most(std::vector<NotableCase>& into, const std::vector<NotableCase>& from, Measure measure) {
  into.insert(into.end(), from.begin(), from.end());
  std::ranges::sort(into, [&](const NotableCase& one, const NotableCase& other) {
    return one.*measure != other.*measure ? one.*measure > other.*measure : one.seed < other.seed;
  });
  if (into.size() > kNotableCasesMax) into.resize(kNotableCasesMax);
}

}  // namespace

std::string_view name_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::violation:
      return "violation";
    case FailureKind::crash:
      return "crash";
    case FailureKind::hang:
      return "hang";
    case FailureKind::divergence:
      break;
  }
  return "divergence";
}

CampaignResult result_of(SeedResult seed, bool keep_result) {
  CampaignResult result;
  const RunResult& run = seed.run;
  result.seeds_run = 1;
  result.rechecked = seed.rechecked ? 1 : 0;
  result.diverged = seed.divergence.empty() ? 0 : 1;
  result.checked = run.checked;
  for (const Violation& violation : run.violations) ++result.violated[static_cast<std::size_t>(violation.invariant)];
  result.marks = run.marks;
  result.faults = run.faults;
  result.log_hash = (run.log_hash ^ seed.seed * 0x9E37'79B9'7F4A'7C15ULL) * 0xD6E8'FEB8'6659'FD93ULL;
  result.log_events = run.log_events;
  result.runtime_calls = run.runtime_calls;
  result.steps = run.steps;
  result.steps_skipped = run.steps_skipped;
  result.virtual_ns = run.virtual_ns;
  result.chunks_hit = run.chunks_hit;
  result.chunks_generated = run.chunks_generated;
  result.evictions = run.evictions;
  result.bytes_to_host = run.bytes_to_host;
  result.bytes_to_device = run.bytes_to_device;
  result.stats = run.stats;
  result.exempt_keys = run.exempt_keys;
  result.peak_rss_bytes = seed.peak_rss_bytes;
  const NotableCase notable{seed.seed, seed.wall_ns, run.runtime_calls, run.steps, run.virtual_ns};
  result.slowest.push_back(notable);
  result.longest.push_back(notable);
  if (!run.violations.empty()) {
    result.failures.push_back({seed.seed, FailureKind::violation, run.violations, {}, true});
  }
  if (!seed.divergence.empty()) {
    result.failures.push_back({seed.seed, FailureKind::divergence, {}, seed.divergence, true});
  }
  if (keep_result) result.results.push_back(std::move(seed));
  return result;
}

void merge(CampaignResult& into, CampaignResult from) {
  into.seeds_run += from.seeds_run;
  into.rechecked += from.rechecked;
  into.diverged += from.diverged;
  add_up(into.checked, from.checked);
  add_up(into.violated, from.violated);
  add_up(into.marks.counts, from.marks.counts);
  for (std::size_t call = 0; call < kCallCount; ++call) add_up(into.faults.fired[call], from.faults.fired[call]);
  add_up(into.faults.cells, from.faults.cells);
  into.faults.total += from.faults.total;
  into.log_hash += from.log_hash;
  into.log_events += from.log_events;
  into.runtime_calls += from.runtime_calls;
  into.steps += from.steps;
  into.steps_skipped += from.steps_skipped;
  into.virtual_ns += from.virtual_ns;
  into.chunks_hit += from.chunks_hit;
  into.chunks_generated += from.chunks_generated;
  into.evictions += from.evictions;
  into.bytes_to_host += from.bytes_to_host;
  into.bytes_to_device += from.bytes_to_device;
  into.stats += from.stats;
  into.exempt_keys += from.exempt_keys;
  keep_most(into.slowest, from.slowest, &NotableCase::wall_ns);
  keep_most(into.longest, from.longest, &NotableCase::runtime_calls);
  append(into.failures, std::move(from.failures));
  append(into.results, std::move(from.results));
  if (!from.stopped.empty()) into.stopped = std::move(from.stopped);
  into.interrupted = into.interrupted || from.interrupted;
  into.wall_ns += from.wall_ns;
  into.peak_rss_bytes = std::max(into.peak_rss_bytes, from.peak_rss_bytes);
}

std::string why_to_stop(const CampaignOptions& options, const CampaignResult& result, std::uint64_t failed_seeds) {
  if (result.diverged > 0) {
    return fmt::format("seed {} went another way when it was run again", result.failures.back().seed);
  }
  if (options.failed_seeds_max > 0 && failed_seeds >= options.failed_seeds_max) {
    return fmt::format("{} seeds failed; --keep-going runs them all", failed_seeds);
  }
  if (options.stop_at && result.violated[static_cast<std::size_t>(*options.stop_at)] > 0) {
    return fmt::format("{} was violated, as --stop-at asks", name_of(*options.stop_at));
  }
  return {};
}

}  // namespace holdfast::sim
