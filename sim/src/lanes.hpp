// Which steps come one after the other where steps run side by side.
#pragma once

#include <cstdint>

#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

// Steps of one lane are on one thread: those of a session are, and others are by themselves.
std::uint32_t lane_of(const Trace& trace, const Step& step);

}  // namespace holdfast::sim
