// A Sync for one thread that plays two: another session's step runs at a chosen moment of an operation, so that a check
// and the act that relies on it are torn apart the first time, not the first time it happens.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "holdfast/core/check.hpp"
#include "holdfast/core/sync.hpp"

namespace holdfast {

// A moment: a lock is about to be taken, or was just let go, and no other is held.
class SteppingSync {
 public:
  class Mutex {
   public:
    explicit Mutex(SteppingSync& sync) : sync_(sync) {}
    void lock() {
      sync_.pass_moment();
      check(!held_, "a mutex is locked by the thread that holds it: on a real machine this waits for ever");
      held_ = true;
      ++sync_.held_;
    }
    void unlock() {
      held_ = false;
      --sync_.held_;
      sync_.pass_moment();
    }

   private:
    SteppingSync& sync_;
    bool held_ = false;
  };

  // `step` runs once, at the moment of this number counted from now; it passes moments of its own freely.
  void step_at(std::uint64_t moment, std::function<void()> step) {
    moments_left_ = moment;
    step_ = std::move(step);
  }
  // False: the step has not run, and does not any more.
  bool stepped() { return !std::exchange(step_, nullptr); }

 private:
  void pass_moment() {
    if (held_ > 0 || !step_) return;
    if (moments_left_-- > 0) return;
    std::exchange(step_, nullptr)();
  }

  std::uint64_t held_ = 0;
  std::uint64_t moments_left_ = 0;
  std::function<void()> step_;
};
static_assert(Sync<SteppingSync>);

}  // namespace holdfast
