// The runtimes that the store under test is given: the top of the chain of layers, or a backend itself.
#pragma once

#include "holdfast/core/backend.hpp"
#include "holdfast/core/sync.hpp"
#include "holdfast/fakes/virtual_clock.hpp"

namespace holdfast::sim {

// One thread, no waiting: a mutex taken twice is a bug in the store and ends the process.
struct SimSync {
  class Mutex {
   public:
    explicit Mutex(SimSync& /*sync*/) {}
    void lock();
    void unlock();

   private:
    bool held_ = false;
  };
};
static_assert(Sync<SimSync>);

struct Ports {
  FluxonBackend& fluxon;
  CudaBackend& cuda;
  FileBackend& files;
  fakes::VirtualClock& clock;
  SimSync& sync;
};

}  // namespace holdfast::sim
