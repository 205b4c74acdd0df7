// Lets neighbouring steps of a trace run side by side, a few at a time, with switches between them drawn at random.
#pragma once

#include <cstdint>

#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

void add_switches(Trace& trace, std::uint64_t seed);

}  // namespace holdfast::sim
