// The fault injector: the only place where faults live. It offers exactly what the fault table allows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/fakes/cuda_device.hpp"
#include "holdfast/fakes/fluxon_owner.hpp"
#include "holdfast/fakes/memory_files.hpp"
#include "holdfast/sim/run_context.hpp"

namespace holdfast::sim {

// A fault that fired. The error that the caller saw is marked only here; to the core it looks real.
struct FiredFault {
  std::uint32_t ordinal = 0;
  FaultPoint point;
  Origin origin = Origin::fluxon;
  std::int32_t code = 0;  // as the caller sees it; 0 when it sees no error (late, gone, evict)
  std::string subject;    // the key, plan ordinal or range it struck
};

class Injector {
 public:
  // The layers below are the tap's; the fakes themselves serve for the environment's choices and events.
  Injector(RunContext& context, FluxonBackend& fluxon, CudaBackend& cuda, FileBackend& files, fakes::FakeOwner& owner,
           fakes::FakeCuda& device);
  ~Injector();

  // Takes the faults and choices of `trace`, which outlives the run.
  void load(const Trace& trace);

  FluxonBackend& fluxon();
  CudaBackend& cuda();
  FileBackend& files();

  // All faults fired in the current step, in order. Cleared by `begin_step`.
  [[nodiscard]] const std::vector<FiredFault>& fired() const;
  void begin_step();
  // The client is dead: every call answers StoreClosed (or its like) without effect, until `new_incarnation`.
  [[nodiscard]] bool client_dead() const;
  void new_incarnation();
  // A sticky error was injected: every CUDA call fails until `tear_down`.
  [[nodiscard]] bool context_dead() const;
  void tear_down();
  void reset();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::sim
