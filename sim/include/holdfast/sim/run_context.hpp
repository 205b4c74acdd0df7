// What one run shares between its layers: where it stands, and what it has counted.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/fakes/virtual_clock.hpp"
#include "holdfast/sim/calls.hpp"
#include "holdfast/sim/event_log.hpp"
#include "holdfast/sim/invariants.hpp"
#include "holdfast/sim/marks.hpp"
#include "holdfast/sim/moments.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

struct FaultTally {
  std::array<std::array<std::uint64_t, kFaultKindCount>, kCallCount> fired{};
  std::array<std::uint64_t, kLegalCellCount> cells{};  // as `legal_cells`; a fault may strike keys in several states
  std::uint64_t total = 0;
  [[nodiscard]] std::size_t cells_reached() const {
    return static_cast<std::size_t>(std::ranges::count_if(cells, [](std::uint64_t count) { return count > 0; }));
  }
};

// The nth (from 0) such call of its step. The nth commit_wait is the future of the nth commit accepted in it.
struct CallRecord {
  std::uint32_t step = 0;
  Call call{};
  std::uint32_t nth = 0;
  friend bool operator==(const CallRecord&, const CallRecord&) = default;
};

// What belongs to the step that runs; steps that run side by side take turns with it.
struct StepScope {
  std::uint32_t step = 0;  // its id; kDrainStep in phase two
  StepKind step_kind{};
  std::uint32_t host = 0;                                 // the thread or fiber of the store that runs
  std::array<std::uint32_t, kCallCount> calls_in_step{};  // nth of the next call; counted by the injector
};

struct RunContext : StepScope {
  explicit RunContext(fakes::VirtualClock& run_clock) : clock(run_clock) {}

  fakes::VirtualClock& clock;
  EventLog log{};
  Verdicts verdicts{};
  MarkCounts marks{};
  FaultTally faults{};
  std::uint64_t runtime_calls = 0;                       // across the top seam; a batch is one
  std::function<void(const std::string&)> on_endless{};  // see RunOptions; stays

  // Set: each moment of the run is told as it happens. What it is about, and the log's events by `watch_log`.
  MomentSink on_moment{};
  Thing about{};  // what the call is about that the log is told of next

  bool faults_on = true;  // phase one
  Nanos injected_ns = 0;  // virtual time that passed because a fault said so
  bool keep_calls = false;
  std::vector<CallRecord> calls{};  // when kept, of phase one, in order

  [[nodiscard]] StepScope& scope() { return *this; }
  void begin_step(std::uint32_t id, StepKind kind) {
    step = id;
    step_kind = kind;
    calls_in_step.fill(0);
  }
  // A fault lets time pass.
  void inject_time(Nanos length) {
    clock.advance_by(length);
    injected_ns += length;
  }
  // `culprits`: kinds, without numbers; the step's is added. `who`: the same, by name.
  void violate(Invariant invariant, std::string_view call, std::string message, std::string_view culprits,
               std::vector<Thing> who = {});
  // Where somebody asked for moments, and only then.
  void tell(Moment moment) {
    moment.at_ns = clock.now_ns();
    moment.step = step;
    on_moment(std::move(moment));
  }
  // Tells `sink` of what happens from now on; an empty one is told nothing.
  void watch(MomentSink sink);
  void reset();
};

}  // namespace holdfast::sim
