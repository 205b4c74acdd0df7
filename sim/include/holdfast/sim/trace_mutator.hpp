// Changes traces that have run: the same trace, what it did, and a seed give the same other trace, which is valid.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "holdfast/sim/rng.hpp"
#include "holdfast/sim/run_context.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

struct RanTrace {
  std::shared_ptr<const Trace> trace;
  // Of each step and call the last one that it made: those from 0 to its `nth` were.
  std::vector<CallRecord> last_calls;
};
// `calls` as RunResult has them.
std::vector<CallRecord> last_calls_of(std::span<const CallRecord> calls);

// A few changes at `parent`: steps added, removed, moved or doubled, the end of `other` in place of its own, faults and
// choices at calls that it made, amounts, sizes. A `wanted` fault comes first, where there is such a call.
Trace mutate(const RanTrace& parent, const RanTrace& other, const LegalFault* wanted, Rng rng);

}  // namespace holdfast::sim
