// Shrinks the trace of a failure, whatever its kind: runs that crash or hang are looked at from outside.
//
// Runs happen in a child process, one after the other, until one of them takes the child along. What is kept fails in
// the same way: the same invariant at the same call with the same kinds of culprit, a crash with the same ending and
// last words, or a hang.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/result.hpp"
#include "holdfast/core/time.hpp"
#include "holdfast/sim/campaign.hpp"
#include "holdfast/sim/executor.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

// What must go on failing.
struct FailureTarget {
  FailureKind kind{};
  Invariant invariant{};  // of a violation
  std::string call;       // of a violation
  std::string culprits;   // of a violation or a crash
  friend bool operator==(const FailureTarget&, const FailureTarget&) = default;
};
// "sync-before-commit at local_fast_put_commit, generate: put plan # and batch to host", "crash: ...", "hang".
std::string to_string(const FailureTarget& target);
FailureTarget target_of(const Violation& violation);
// Of a seed's first violation, or of how it crashed or hung. Two failures of one cause have the same target.
FailureTarget target_of(const SeedFailure& failure);
// The first violation of that kind.
const Violation* find_target(const std::vector<Violation>& violations, const FailureTarget& target);

struct ShrinkProgress {
  std::size_t steps_before = 0;
  std::size_t steps = 0;
  std::uint64_t tried = 0;
  Nanos elapsed_ns = 0;
};

struct ShrinkOptions {
  std::vector<Invariant> disabled;
  std::optional<Invariant> invariant;  // shrink the first violation of this one; empty: the first of all
  Nanos time_budget_ns = 10 * kSecond;
  // Processor time after which one run counts as hung, or a tenth of the real time of one that sleeps; at least twenty
  // times what the trace's own run takes.
  Nanos hang_limit_ns = kSecond;
  std::function<void(const ShrinkProgress&)> progress;  // several times a second
};

inline constexpr std::string_view kShrinkInterrupted = "interrupted by a signal";

struct ShrunkFailure {
  bool failed = false;  // false: the trace holds, and the rest says nothing
  FailureTarget target;
  std::optional<Violation> violation;  // of the smallest trace
  std::string message;                 // of a crash or a hang
  Trace trace;                         // the smallest
  bool one_minimal = false;
  std::string stopped;  // why it is not 1-minimal; empty when it is
  std::uint64_t tried = 0;
  std::uint64_t kept = 0;
  Nanos elapsed_ns = 0;
};

// An error means that the harness failed: no process was to be had, or the smallest trace does not fail when it runs
// first in a process. SIGINT and SIGTERM end it with the smallest so far. The caller has a single thread.
Result<ShrunkFailure> shrink_failure(const Trace& trace, const SystemFactory& factory, const ShrinkOptions& options);

}  // namespace holdfast::sim
