// A process started anew that runs traces for a campaign's worker: other addresses, other static initialisation, and no
// history but the few traces that it ran before. This is its side; the worker's is inside the library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "holdfast/sim/executor.hpp"

namespace holdfast::sim {

// How the program itself is told to be one.
inline constexpr std::string_view kFreshProcessCommand = "fresh-process";
// Its first word where runs are made against another owner than the factory's: this, and the backend's name.
inline constexpr std::string_view kFreshBackend = "backend=";

// Runs the traces that arrive as text on standard input, a socket, and answers each there, until the other side has
// gone. `words` are what the worker adds to the program's own: the number of the perturbation, then the names of the
// checks that are switched off. Gives the exit status.
int serve_fresh_runs(const std::vector<std::string>& words, const SystemFactory& factory);

}  // namespace holdfast::sim
