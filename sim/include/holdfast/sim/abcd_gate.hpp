// The A/B/C/D gate: what the acceptance scenario must have shown.
#pragma once

#include <cstdint>
#include <string>

#include "holdfast/sim/executor.hpp"

namespace holdfast::sim {

struct AbcdVerdict {
  std::string table;    // a line for each session
  std::string failure;  // what did not come out; empty = the gate is passed
};

// A and D ran cold; B hit three chunks and all its 37 frame hashes equal A's; C hit two and all equal D's.
AbcdVerdict judge_abcd(const RunResult& run);

}  // namespace holdfast::sim
