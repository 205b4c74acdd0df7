// The runtimes that the store under test is given: the top of the chain of layers, or a backend itself.
#pragma once

#include "holdfast/core/backend.hpp"
#include "holdfast/fakes/virtual_clock.hpp"
#include "holdfast/sim/sim_sync.hpp"

namespace holdfast::sim {

struct Ports {
  FluxonBackend& fluxon;
  CudaBackend& cuda;
  FileBackend& files;
  fakes::VirtualClock& clock;
  SimSync& sync;
};

}  // namespace holdfast::sim
