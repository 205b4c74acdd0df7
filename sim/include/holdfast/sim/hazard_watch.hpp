// Tells the hazard checker what crosses the seam to the backends: whatever these are, fakes or a real runtime's host
// side. What it finds are violations of no-hazard.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "holdfast/core/backend.hpp"
#include "holdfast/sim/hazard_checker.hpp"
#include "holdfast/sim/run_context.hpp"

namespace holdfast::sim {

// Stands where the calls really happen, below what injects faults: a wait that only seemed to succeed, or a copy that
// was never submitted, does not get here. Plans are known by their blobs, so the owner's backend must be honest.
class HazardWatch {
 public:
  HazardWatch(RunContext& context, FluxonBackend& fluxon, CudaBackend& cuda, HazardChecker::Namer namer);
  ~HazardWatch();

  FluxonBackend& fluxon();
  CudaBackend& cuda();

  // ---- The engine's work, in the order of its stream, by the host that runs.
  void kernel(StreamRef stream, std::span<const RangeAccess> accesses);
  void free_device(StreamRef stream, const MemoryRange& memory);

  // The client's process or the device's context is gone: what was in flight has ended, plans and registrations too.
  void all_ended();
  // A new run. Does nothing from here on when the check is switched off.
  void reset();

  // For locks and for hosts that begin.
  [[nodiscard]] HazardChecker& checker();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::sim
