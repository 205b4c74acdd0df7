#include "fault_sites.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/fluxon_runtime.hpp"

namespace holdfast::sim {
namespace {

constexpr std::int32_t kStickyError = static_cast<std::int32_t>(CudaErrc::illegal_address);
constexpr std::uint32_t kPersistentOneIn = 6;
constexpr std::uint32_t kNthMax = 8;
constexpr std::uint32_t kBurstStepsMax = 3;
constexpr std::uint32_t kBurstsMax = 3;

constexpr CallSet kTransportCalls = kPutCalls | kGetCalls | set_of({Call::wait_local_segments_ready});
constexpr CallSet kCleanUpCalls = set_of({Call::put_abort, Call::remove, Call::cancel_get_transfer, Call::release_views,
                                          Call::host_unregister, Call::file_remove, Call::stream_synchronize,
                                          Call::event_synchronize, Call::event_query, Call::event_destroy});

// Half of all calls are the first of their step.
std::uint32_t draw_nth(Rng& rng) {
  std::uint32_t nth = 0;
  while (nth < kNthMax && rng.ratio(1, 2)) ++nth;
  return nth;
}

struct Site {
  const LegalFault* legal = nullptr;
  std::uint32_t one_in = 1;  // of its chances it fires in
};

class Scatterer {
 public:
  Scatterer(TraceBuilder& trace, CallSet calls, FaultKindSet kinds, Rng rng)
      : trace_(trace), calls_(calls), kinds_(kinds), rng_(rng) {}

  void two_levels(const FaultSites& sites) {
    if (!chance(sites.eventful)) return;
    std::vector<Site> active;
    for (const LegalFault& legal : legal_faults()) {
      if (!allowed(legal) || !chance(sites.active)) continue;
      if (is_drastic(legal) && !chance(sites.drastic)) continue;
      active.push_back({&legal, is_drastic(legal) ? 16 : any_of<std::uint32_t>(rng_, {2, 3, 4, 8})});
    }
    if (active.empty()) return;
    for (const Step& step : trace_.trace().steps) {
      const CallSet made = calls_of(step.kind);
      for (const Site& site : active) {
        if ((made & bit_of(site.legal->call)) == 0 || !rng_.ratio(1, site.one_in)) continue;
        add(step.id, *site.legal, draw_nth(rng_), kPersistentOneIn);
      }
    }
  }

  void bursts(const FaultSites& sites) {
    if (!chance(sites.burst)) return;
    std::vector<std::size_t> places;
    const std::vector<Step>& steps = trace_.trace().steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (calls_of(steps[i].kind) != 0) places.push_back(i);
    }
    if (places.empty()) return;
    const std::uint64_t bursts = 1 + rng_.below(kBurstsMax);
    for (std::uint64_t i = 0; i < bursts; ++i) {
      const std::size_t first = rng_.below(places.size());
      const std::size_t count = std::min<std::size_t>(places.size() - first, 1 + rng_.below(kBurstStepsMax));
      std::vector<std::uint32_t> ids;
      for (std::size_t at = first; at < first + count; ++at) ids.push_back(steps[places[at]].id);
      burst(ids, steps[places[first]].kind);
    }
  }

 private:
  void burst(const std::vector<std::uint32_t>& ids, StepKind first) {
    constexpr FaultKindSet kFates = bit_of(FaultKind::before) | bit_of(FaultKind::lost) | bit_of(FaultKind::part);
    switch (rng_.below(7)) {
      case 0:
        return all_fail(ids, kTransportCalls);
      case 1:
        return all_fail(ids, kDeviceCalls);
      case 2:
        return all_fail(ids, kFileCalls);
      case 3:
        // Something fails, and so does its clean-up, then and later.
        some_fail(ids.front(), calls_of(first) & ~kCleanUpCalls, kFates, 1);
        for (const std::uint32_t id : ids) some_fail(id, kCleanUpCalls, kFates, 2);
        return;
      case 4:
        // A new generation right after a failure, and perhaps another one.
        some_fail(ids.front(), calls_of(first), kFates, 1);
        for (const std::uint32_t id : ids) some_fail(id, kAllCalls, bit_of(FaultKind::gone), 1);
        return;
      case 5:
        // A new client right after a failure, and perhaps another one.
        some_fail(ids.front(), calls_of(first), kFates, 1);
        for (const std::uint32_t id : ids) some_fail(id, kAllCalls, bit_of(FaultKind::death), 1);
        return;
      default:
        for (const std::uint32_t id : ids) some_fail(id, kAllCalls, kAllFaultKinds, 3);
    }
  }

  // Every one of the calls, from some time in the first step on until the last step ends.
  void all_fail(const std::vector<std::uint32_t>& ids, CallSet calls) {
    const std::uint32_t from = draw_nth(rng_);
    for (const std::uint32_t id : ids) {
      for (std::size_t i = 0; i < kCallCount; ++i) {
        const auto call = static_cast<Call>(i);
        if ((calls & bit_of(call)) == 0) continue;
        const LegalFault* legal = pick(bit_of(call), bit_of(FaultKind::before) | bit_of(FaultKind::lost));
        if (legal != nullptr) add(id, *legal, id == ids.front() ? from : 0, 1);
      }
    }
  }

  void some_fail(std::uint32_t id, CallSet calls, FaultKindSet kinds, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const LegalFault* legal = pick(calls & calls_of_step(id), kinds);
      if (legal != nullptr) add(id, *legal, draw_nth(rng_), 2);
    }
  }

  // Nobody, when none fits.
  const LegalFault* pick(CallSet calls, FaultKindSet kinds) {
    fitting_.clear();
    for (const LegalFault& legal : legal_faults()) {
      const bool fits = (calls & bit_of(legal.call)) != 0 && (kinds & bit_of(legal.kind)) != 0 && allowed(legal);
      if (fits && legal.code != kStickyError) fitting_.push_back(&legal);
    }
    return fitting_.empty() ? nullptr : fitting_[rng_.below(fitting_.size())];
  }

  void add(std::uint32_t step, const LegalFault& legal, std::uint32_t nth, std::uint32_t persistent_one_in) {
    FaultPoint point{step, legal.call, nth, legal.kind, legal.code};
    point.arg = draw_fault_arg(legal, rng_);
    point.persistent = rng_.ratio(1, persistent_one_in);
    trace_.fault(point);
  }

  [[nodiscard]] bool allowed(const LegalFault& legal) const {
    return (calls_ & bit_of(legal.call)) != 0 && (kinds_ & bit_of(legal.kind)) != 0;
  }
  [[nodiscard]] CallSet calls_of_step(std::uint32_t id) {
    const auto found = std::ranges::find(trace_.trace().steps, id, &Step::id);
    return calls_of(found->kind);
  }
  bool chance(Ratio ratio) { return rng_.ratio(ratio.numerator, ratio.denominator); }

  TraceBuilder& trace_;
  CallSet calls_;
  FaultKindSet kinds_;
  Rng rng_;  // at most one draw among the arguments of a call: their order differs between compilers
  std::vector<const LegalFault*> fitting_;
};

}  // namespace

void scatter_faults(TraceBuilder& trace, const FaultSites& sites, CallSet calls, FaultKindSet kinds, Rng rng) {
  Scatterer scatterer(trace, calls, kinds, rng);
  scatterer.two_levels(sites);
  scatterer.bursts(sites);
}

}  // namespace holdfast::sim
