// Runs one trace: phase one with faults, phase two without, every promise checked after every call and step.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "holdfast/fakes/arena.hpp"
#include "holdfast/fakes/cuda_device.hpp"
#include "holdfast/fakes/owner.hpp"
#include "holdfast/sim/event_log.hpp"
#include "holdfast/sim/invariants.hpp"
#include "holdfast/sim/marks.hpp"
#include "holdfast/sim/moments.hpp"
#include "holdfast/sim/run_context.hpp"
#include "holdfast/sim/strategy.hpp"
#include "holdfast/sim/system_under_test.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

struct RunOptions {
  bool keep_log = false;                            // keep the event log as text
  bool keep_calls = false;                          // list the calls of phase one
  std::vector<Invariant> disabled;                  // checks switched off
  std::function<void(const std::string&)> on_step;  // a line after each step, when set
  MomentSink on_moment;                             // what happens, as it happens, when set
  // An operation of the store makes runtime calls without end. Must not return; when not set, the process aborts.
  std::function<void(const std::string&)> on_endless;
  // Steps run side by side, and this one decides who goes on, instead of the trace's switches. Outlives the run; a run
  // of it is under way.
  Strategy* strategy = nullptr;
  std::function<void(const StepSwitch&)> on_switch;  // as soon as it chose so
  bool keep_end_state = false;
};

// What must not show in a log: a run repeated with another perturbation has the same log hash.
struct Perturbation {
  std::uint64_t arena_shift_pages = 0;
  std::uint64_t hash_seed = 0;
  std::uint8_t heap_fill = 0;      // mallopt(M_PERTURB), when not 0
  std::uint64_t heap_shuffle = 0;  // when not 0: small blocks lie in another order in memory
  bool other_locale = false;       // a locale with another decimal point, where the system has one
};

struct RunResult {
  std::vector<Violation> violations;
  std::array<std::uint64_t, kInvariantCount> checked{};
  MarkCounts marks;
  FaultTally faults;
  std::uint64_t log_hash = 0;
  std::uint64_t log_events = 0;
  std::vector<std::string> log;   // when kept
  std::vector<CallRecord> calls;  // of phase one, in order, when kept
  std::uint64_t runtime_calls = 0;
  // Where steps ran side by side: the switches made, as in a trace; how many decisions there were; and that nothing new
  // came of it, as the strategy said.
  std::vector<StepSwitch> switches;
  std::uint64_t decisions = 0;
  bool redundant = false;
  // A hash of what each step came to, what is stored and what the store holds, before the drain; when kept.
  std::uint64_t end_state = 0;
  std::uint64_t steps = 0;          // executed
  std::uint64_t steps_skipped = 0;  // made no sense where they stood
  Nanos virtual_ns = 0;
  // What was reused and moved, for workloads and scenarios.
  std::uint64_t chunks_hit = 0, chunks_generated = 0, evictions = 0;
  std::uint64_t bytes_to_host = 0, bytes_to_device = 0;
  // What the store says of itself, of all its incarnations; phase two's own puts and resumes are left out.
  Stats stats;
  std::uint64_t exempt_keys = 0;                         // known to the store but not to the snapshot after a restart
  std::vector<std::vector<std::uint64_t>> frame_hashes;  // per session in order of opening, one per output frame
  std::vector<std::uint64_t> session_chunks_hit;         // per session, as frame_hashes; phase two comes last
};

// Makes the owner that runs are made against; it adds itself to `clock`. Both outlive it. May throw.
using OwnerFactory = std::function<std::unique_ptr<fakes::Owner>(fakes::Arena& arena, fakes::VirtualClock& clock)>;

// The same of the device, which is a fake one that may carry out on a real one what it decides.
using DeviceFactory = std::function<std::unique_ptr<fakes::FakeCuda>(fakes::Arena& arena, fakes::VirtualClock& clock,
                                                                     const fakes::DeviceOptions& options)>;

// What is put under test: a store of any kind, and the owner and the device that it has.
struct SystemFactory {
  using Make = std::function<std::unique_ptr<SystemUnderTest>(Ports&, ClaimListener&, const SystemOptions&)>;

  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, SystemFactory> && std::constructible_from<Make, F>)
  SystemFactory(F&& make_system) : make(std::forward<F>(make_system)) {}
  std::unique_ptr<SystemUnderTest> operator()(Ports& ports, ClaimListener& claims, const SystemOptions& options) const {
    return make(ports, claims, options);
  }

  Make make;
  OwnerFactory make_owner{};    // empty: the fake one
  DeviceFactory make_device{};  // empty: the fake one
  bool beside_fake = false;     // each run is made over the fake device as well, and both must be the same
};

// Owns an arena, an owner and a device, and uses them again for run after run; one per process or thread.
class Executor {
 public:
  explicit Executor(SystemFactory factory, const Perturbation& perturbation = {});
  ~Executor();
  // `trace` must be valid (validate_trace).
  RunResult run(const Trace& trace, const RunOptions& options = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::sim
