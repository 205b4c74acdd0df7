// The core's mutexes in simulation: within a scheduler's fibers each lock is a point, elsewhere nobody ever waits.
#pragma once

#include <cstdint>

#include "holdfast/core/sync.hpp"
#include "holdfast/sim/scheduler.hpp"

namespace holdfast::sim {

class SimSync {
 public:
  // To lock a mutex twice, or to unlock what one doesn't hold, is a bug in the store and ends the process; so is to
  // lock outside of any fiber what a fiber holds. A fiber that locks what it holds waits for ever.
  class Mutex {
   public:
    explicit Mutex(SimSync& sync) : sync_(sync) { state_.number = sync.mutexes_++; }
    Mutex(const Mutex&) = delete;
    Mutex& operator=(const Mutex&) = delete;

    void lock() {
      if (sync_.in_fiber()) {
        sync_.scheduler_->lock(state_);
      } else if (state_.holder == kNoFiber) {
        state_.holder = MutexState::kOutside;
      } else {
        locked_twice();
      }
    }
    void unlock() {
      if (sync_.in_fiber()) {
        sync_.scheduler_->unlock(state_);
      } else if (state_.holder == MutexState::kOutside) {
        state_.holder = kNoFiber;
      } else {
        not_held();
      }
    }

   private:
    [[noreturn]] void locked_twice() const;
    [[noreturn]] void not_held() const;

    SimSync& sync_;
    MutexState state_;
  };

  SimSync() = default;
  SimSync(const SimSync&) = delete;
  SimSync& operator=(const SimSync&) = delete;

  // For the mutexes made before and after; nullptr for no scheduler. None is held. Those made from here on are numbered
  // from 0.
  void attach(Scheduler* scheduler) {
    scheduler_ = scheduler;
    mutexes_ = 0;
  }

 private:
  [[nodiscard]] bool in_fiber() const { return scheduler_ != nullptr && scheduler_->current() != kNoFiber; }

  Scheduler* scheduler_ = nullptr;
  std::uint64_t mutexes_ = 0;  // made
};
static_assert(Sync<SimSync>);

}  // namespace holdfast::sim
