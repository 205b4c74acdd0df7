// Faults that no episode asked for. At two levels: a site (a call, a kind, a code) is active in few runs, and fires
// often in those; and in clusters: many calls fail over a few neighbouring steps.
#pragma once

#include "holdfast/sim/generator.hpp"
#include "holdfast/sim/rng.hpp"
#include "holdfast/sim/trace_builder.hpp"
#include "random_parts.hpp"

namespace holdfast::sim {

// Adds to the faults of `trace`, which has all its steps. What is not in `calls` and `kinds` is left out.
void scatter_faults(TraceBuilder& trace, const FaultSites& sites, CallSet calls, FaultKindSet kinds, Rng rng);

}  // namespace holdfast::sim
