#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "holdfast/sim/coverage.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t kFailedKeptMax = 200;

class CoverageCampaign {
 public:
  CoverageCampaign(const CoverageOptions& options, const SystemFactory& factory, const Profile& profile,
                   const ProgressSink& progress)
      : options_(options), factory_(factory), profile_(profile), progress_(progress) {}

  Result<CoverageResult> run() {
    const SeedRange& seeds = options_.campaign.seeds;
    std::uint64_t first = seeds.first;
    while (first <= seeds.last && !over_) {
      const std::uint64_t left = seeds.last - first + 1;
      const std::uint64_t count = std::min(left, options_.generation_seeds);
      if (auto status = run_generation({first, first + count - 1}); !status) return status.error();
      first += count;
      note_figures(first > seeds.last || over_);
    }
    result_.campaign.wall_ns = clock_.now_ns() - begin_ns_;
    return std::move(result_);
  }

 private:
  Status run_generation(const SeedRange& seeds) {
    CampaignOptions options = options_.campaign;
    options.seeds = seeds;
    options.keep_results = true;
    options.run.keep_calls = true;
    if (options.time_budget_ns > 0) {
      options.time_budget_ns = std::max<Nanos>(1, options.time_budget_ns - (clock_.now_ns() - begin_ns_));
    }
    if (options.failed_seeds_max > 0) options.failed_seeds_max -= failed_seeds_.size();
    const TraceSource source = [&](std::uint64_t seed) {
      return std::make_shared<const Trace>(corpus_.make(seed, profile_));
    };
    const CampaignProgress before{.seeds_run = result_.campaign.seeds_run,
                                  .runtime_calls = result_.campaign.runtime_calls,
                                  .failed_seeds = failed_seeds_.size()};
    auto generation = run_campaign(options, factory_, source, [&](CampaignProgress now) {
      if (!progress_) return;
      now.seeds_run += before.seeds_run;
      now.seeds_all = options_.campaign.seeds.count();
      now.runtime_calls += before.runtime_calls;
      now.failed_seeds += before.failed_seeds;
      now.elapsed_ns = clock_.now_ns() - begin_ns_;
      now.time_budget_ns = options_.campaign.time_budget_ns;
      progress_(now);
    });
    if (!generation) return generation.error();

    // All traces before any is offered: they are made of the corpus as it was.
    std::vector<std::pair<std::shared_ptr<const Trace>, const RunResult*>> ran;
    for (const SeedResult& seed : generation->results) {
      if (seed.run.violations.empty() && seed.divergence.empty()) ran.emplace_back(source(seed.seed), &seed.run);
    }
    for (SeedFailure& failure : generation->failures) {
      failed_seeds_.insert(failure.seed);
      if (!failure.has_trace || result_.failed.contains(failure.seed)) continue;
      failure.has_trace = result_.failed.size() < kFailedKeptMax;
      if (failure.has_trace) result_.failed.emplace(failure.seed, source(failure.seed));
    }
    for (const auto& [trace, run] : ran) corpus_.offer(trace, *run);
    std::vector<SeedResult> results = std::move(generation->results);
    generation->results.clear();
    if (options_.campaign.keep_results) generation->results = std::move(results);
    merge(result_.campaign, std::move(*generation));
    std::string why = why_to_stop(options_.campaign, result_.campaign, failed_seeds_.size());
    over_ = !why.empty() || !result_.campaign.stopped.empty();
    if (!why.empty() && seeds.last < options_.campaign.seeds.last) result_.campaign.stopped = std::move(why);
    return {};
  }

  void note_figures(bool last) {
    const std::uint64_t seeds = result_.campaign.seeds_run;
    if (!last && seeds < next_noted_) return;
    while (next_noted_ <= seeds) next_noted_ *= 2;
    CoverageFigures now = corpus_.figures();
    now.seeds = seeds;
    result_.over_time.push_back(now);
  }

  const CoverageOptions& options_;
  const SystemFactory& factory_;
  const Profile& profile_;
  const ProgressSink& progress_;
  SteadyClock clock_;
  Nanos begin_ns_ = clock_.now_ns();
  CoverageCorpus corpus_;
  std::set<std::uint64_t> failed_seeds_;
  std::uint64_t next_noted_ = 1;
  bool over_ = false;
  CoverageResult result_;
};

}  // namespace

Result<CoverageResult> run_coverage(const CoverageOptions& options, const SystemFactory& factory,
                                    const Profile& profile, const ProgressSink& progress) {
  return CoverageCampaign(options, factory, profile, progress).run();
}

}  // namespace holdfast::sim
