#include "holdfast/sim/sweep.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "holdfast/core/check.hpp"

namespace holdfast::sim {
namespace {

FaultPoint point_at(const CallRecord& at, const Way& way) {
  return {at.step, at.call, at.nth, way.kind, way.code, way.arg, way.persistent};
}

// The calls of each trace when it is run; none where it crashed or hung.
Result<std::vector<std::vector<CallRecord>>> calls_of(std::uint64_t count, const TraceSource& source,
                                                      const SweepOptions& options, const SystemFactory& factory) {
  std::vector<std::vector<CallRecord>> calls(count);
  if (count == 0) return calls;
  CampaignOptions campaign;
  campaign.seeds = {1, count};
  campaign.jobs = options.jobs;
  campaign.hang_limit_ns = options.hang_limit_ns;
  campaign.recheck = {0, 1};
  campaign.failed_seeds_max = 0;
  campaign.run.keep_calls = true;
  campaign.on_result = [&](const SeedResult& result) { calls[result.seed - 1] = result.run.calls; };
  const Result<CampaignResult> ran = run_campaign(campaign, factory, source);
  if (!ran) return ran.error();
  if (ran->interrupted)
    return Error{Origin::file_system, EINTR, "sweep", "interrupted while calls were listed", {}, {}};
  return calls;
}

// The second faults that one call gives a pair.
template <class Visit>
void for_each_second(const FaultPoint& first, const CallRecord& at, Visit&& visit) {
  for (const Way& way : plain_ways_of(at.call)) {
    const FaultPoint second = point_at(at, way);
    if (!same_place(first, second)) visit(second);
  }
}

}  // namespace

Trace with_faults(const Trace& trace, std::span<const FaultPoint> faults) {
  Trace made = trace;
  for (const FaultPoint& fault : faults) {
    std::erase_if(made.faults, [&](const FaultPoint& own) { return same_place(own, fault); });
    made.faults.push_back(fault);
  }
  return made;
}

Result<SweepPlan> SweepPlan::make(std::vector<Trace> traces, const SweepOptions& options,
                                  const SystemFactory& factory) {
  SweepPlan plan;
  for (Trace& trace : traces) plan.swept_.emplace_back().trace = std::move(trace);
  if (Status listed = plan.list_singles(options, factory); !listed) return std::move(listed.error());
  if (options.depth >= 2) {
    if (Status listed = plan.list_pairs(options, factory); !listed) return std::move(listed.error());
  }
  for (const Swept& swept : plan.swept_) {
    plan.begins_.push_back(plan.begins_.back() + 1 + swept.singles.size() + swept.pairs());
  }
  return plan;
}

Status SweepPlan::list_singles(const SweepOptions& options, const SystemFactory& factory) {
  const auto calls = calls_of(
      swept_.size(), [&](std::uint64_t seed) { return std::make_shared<const Trace>(swept_[seed - 1].trace); }, options,
      factory);
  if (!calls) return calls.error();
  for (std::size_t i = 0; i < swept_.size(); ++i) {
    for (const CallRecord& at : (*calls)[i]) {
      for (const Way& way : ways_of(at.call)) swept_[i].singles.push_back(point_at(at, way));
    }
    if (options.depth < 2) continue;
    for (const CallRecord& at : (*calls)[i]) {
      for (const Way& way : plain_ways_of(at.call)) swept_[i].firsts.push_back({point_at(at, way), {}, 0});
    }
  }
  return {};
}

Status SweepPlan::list_pairs(const SweepOptions& options, const SystemFactory& factory) {
  std::vector<std::pair<const Trace*, First*>> firsts;
  for (Swept& swept : swept_) {
    // A lower bound of its pairs is known before any of them was run: each first with each later one.
    swept.too_long = options.pairs_max > 0 && swept.firsts.size() * swept.firsts.size() / 2 > options.pairs_max;
    if (swept.too_long) swept.firsts.clear();
    for (First& first : swept.firsts) firsts.emplace_back(&swept.trace, &first);
  }
  auto calls = calls_of(
      firsts.size(),
      [&](std::uint64_t seed) {
        const auto& [trace, first] = firsts[seed - 1];
        return std::make_shared<const Trace>(with_faults(*trace, std::span(&first->fault, 1)));
      },
      options, factory);
  if (!calls) return calls.error();
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    First& first = *firsts[i].second;
    std::vector<CallRecord>& all = (*calls)[i];
    const auto own = std::ranges::find(all, CallRecord{first.fault.step, first.fault.call, first.fault.nth});
    first.calls.assign(own, all.end());
  }
  for (Swept& swept : swept_) {
    for (First& first : swept.firsts) {
      first.begin = swept.pairs_end;
      for (const CallRecord& at : first.calls) {
        for_each_second(first.fault, at, [&](const FaultPoint&) { ++swept.pairs_end; });
      }
    }
  }
  return {};
}

SweepCase SweepPlan::at(std::uint64_t number) const {
  check(number >= 1 && number <= cases(), "a case of the sweep's");
  const auto after = std::ranges::upper_bound(begins_, number - 1);
  SweepCase found;
  found.trace = static_cast<std::size_t>(after - begins_.begin()) - 1;
  const Swept& swept = swept_[found.trace];
  std::uint64_t left = number - 1 - begins_[found.trace];
  if (left == 0) return found;
  --left;
  if (left < swept.singles.size()) {
    found.faults.push_back(swept.singles[left]);
    return found;
  }
  left -= swept.singles.size();
  const auto next = std::ranges::upper_bound(swept.firsts, left, {}, &First::begin);
  const First& first = *(next - 1);
  left -= first.begin;
  found.faults.push_back(first.fault);
  for (const CallRecord& at : first.calls) {
    for_each_second(first.fault, at, [&](const FaultPoint& second) {
      if (left-- == 0) found.faults.push_back(second);
    });
    if (found.faults.size() == 2) break;
  }
  return found;
}

std::shared_ptr<const Trace> SweepPlan::trace(std::uint64_t number) const {
  const SweepCase found = at(number);
  Trace made = with_faults(swept_[found.trace].trace, found.faults);
  made.name += " swept, case " + std::to_string(number);
  return std::make_shared<const Trace>(std::move(made));
}

SweepTally::SweepTally(const SweepPlan& plan) : plan_(plan), counts_(plan.traces()) {}

SweepCounts* SweepTally::counts_of(const SweepCase& at) {
  if (at.faults.empty()) return nullptr;
  const FaultPoint& last = at.faults.back();
  return &counts_[at.trace][static_cast<std::size_t>(last.call)][static_cast<std::size_t>(last.kind)];
}

void SweepTally::add(const SeedResult& result) {
  for (const CallRecord& record : result.run.calls) called_[static_cast<std::size_t>(record.call)] = true;
  const SweepCase at = plan_.at(result.seed);
  SweepCounts* counts = counts_of(at);
  if (counts == nullptr) return;
  ++counts->cases;
  const bool fired = std::ranges::all_of(at.faults, [&](const FaultPoint& fault) {
    return result.run.faults.fired[static_cast<std::size_t>(fault.call)][static_cast<std::size_t>(fault.kind)] > 0;
  });
  if (!fired) return;
  ++counts->fired;
  ++fired_;
}

void SweepTally::add_failures(std::span<const SeedFailure> failures) {
  std::uint64_t last = 0;
  for (const SeedFailure& failure : failures) {
    SweepCounts* counts = counts_of(plan_.at(failure.seed));
    if (counts == nullptr || failure.seed == last) continue;
    last = failure.seed;
    ++counts->failed;
    if (failure.kind == FailureKind::crash || failure.kind == FailureKind::hang) ++counts->cases;
  }
}

std::vector<SweepRow> SweepTally::rows() const {
  std::vector<SweepRow> rows;
  for (std::size_t trace = 0; trace < counts_.size(); ++trace) {
    for (std::size_t call = 0; call < kCallCount; ++call) {
      const auto& kinds = counts_[trace][call];
      if (std::ranges::any_of(kinds, [](const SweepCounts& counts) { return counts.cases > 0; })) {
        rows.push_back({trace, static_cast<Call>(call), kinds});
      }
    }
  }
  return rows;
}

}  // namespace holdfast::sim
