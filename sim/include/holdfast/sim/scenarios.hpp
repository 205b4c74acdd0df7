// Traces written by hand: the acceptance scenario, and small situations to sweep, to explore and to learn from.
#pragma once

#include <span>
#include <string_view>

#include "holdfast/core/result.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

struct Scenario {
  std::string_view name;
  std::string_view about;  // one line
};
// One step after the other.
std::span<const Scenario> scenarios();
// Sessions whose last steps may take turns, to be explored.
std::span<const Scenario> scenarios_together();

// "abcd" has four sessions of three chunks, in order of opening:
//   A runs cold and writes; B has A's actions and resumes all of them; C shares two chunks with A, then differs, and
//   resumes two; D has C's actions and runs cold, because it never resumes.
// A chunk has 3 latent frames. A causal decoder makes 4 output frames of each, and 1 more of the first frame of all:
// 13 + 12 + 12 = 37 output frames. B's frames must equal A's, C's must equal D's.
Result<Trace> scenario_named(std::string_view name);

}  // namespace holdfast::sim
