// Runs a trace in a process of its own and keeps what happened, moment by moment: up to a crash or a hang as well.
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/result.hpp"
#include "holdfast/core/time.hpp"
#include "holdfast/sim/executor.hpp"
#include "holdfast/sim/moments.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

struct RecordOptions {
  std::vector<Invariant> disabled;
  Nanos hang_limit_ns = kSecond;  // processor time, or a tenth of the real time of a run that sleeps
};

struct RecordedRun {
  std::vector<Moment> moments;  // at most kMomentsKeptMax, the last ones
  std::vector<Violation> violations;
  std::string broken_off;  // by a crash or a hang, in words; empty: it ran to its end
};
inline constexpr std::size_t kMomentsKeptMax = 50'000;

// An error means that the harness failed: no process was to be had. The caller has a single thread.
Result<RecordedRun> record_run(const Trace& trace, const SystemFactory& factory, const RecordOptions& options);

}  // namespace holdfast::sim
