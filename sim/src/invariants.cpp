#include "holdfast/sim/invariants.hpp"

#include <utility>

namespace holdfast::sim {
namespace {

struct Promise {
  std::string_view name;
  std::string_view promise;
};

constexpr std::array<Promise, kInvariantCount> kPromises{{
    {"ready-after-commit",
     "a blob is ready only after code 0 for every key from its own futures, or by adoption; and its stored bytes equal "
     "the source"},
    {"sync-before-commit",
     "no plan is committed while a copy into it may be in flight, nor after a wait for one has failed"},
    {"abort-after-sync",
     "no plan is aborted or released, no handle's memory let go and no segment unregistered while a copy into or out "
     "of "
     "it may be in flight"},
    {"no-publish-on-failure", "a failed or abandoned operation adds no claim and alters none; it may only withdraw"},
    {"one-terminal", "each plan, handle and view ends exactly once, by the right kind of call, in its own generation"},
    {"validated-batch",
     "no copy is submitted before the whole batch is valid, and each lies inside its tensors and inside one live "
     "registration"},
    {"no-hazard",
     "no two accesses to the same bytes, one a write, without an ordering edge, whether or not the timing showed it"},
    {"whole-window", "only complete windows and groups are restored, in key order, never at the wrong frame"},
    {"exact-bytes", "a resumed ring, its latents and every output frame hash equal the cold run's"},
    {"namespace-isolation", "no byte crosses worlds, layouts or formats"},
    {"pinned-stays", "eviction never takes a pinned, referenced or unsettled blob, and always leaves the skeleton"},
    {"capacity-bound",
     "what is accounted covers what is held, and more only by what is in doubt or was evicted unseen; no put starts "
     "that goes over the limit"},
    {"index-agrees",
     "what a get did not find is withdrawn, exactly that and not more, and an owner that has gone is believed nothing"},
    {"restart-safe",
     "after death at any call and a restart from the last snapshot a resume is right or cold, never wrong"},
    {"error-told",
     "every fault that fired ends in exactly one disposition, and errors keep their causes and the failures of their "
     "clean-up"},
    {"progress",
     "every operation ends within its bound in virtual time, and never do all sessions wait for one another"},
    {"quiescent-baseline",
     "after the drain nothing is live, referenced, in flight, unsettled or reserved, and what quarantine holds is "
     "listed"},
}};

}  // namespace

std::string_view name_of(Invariant invariant) { return kPromises.at(static_cast<std::size_t>(invariant)).name; }
std::string_view promise_of(Invariant invariant) { return kPromises.at(static_cast<std::size_t>(invariant)).promise; }

std::optional<Invariant> invariant_named(std::string_view name) {
  for (std::size_t i = 0; i < kInvariantCount; ++i)
    if (kPromises[i].name == name) return static_cast<Invariant>(i);
  return std::nullopt;
}

void Verdicts::violated(Violation violation) {
  if (!enabled(violation.invariant)) return;
  if (violations_.size() < kKeptMax) violations_.push_back(std::move(violation));
}

void Verdicts::reset() {
  checked_.fill(0);
  violations_.clear();
}

}  // namespace holdfast::sim
