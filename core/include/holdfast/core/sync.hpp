// The mutexes the core takes, as a policy: std in production, the scheduler's in simulation. No atomics elsewhere.
#pragma once

#include <concepts>
#include <mutex>

namespace holdfast {

// A policy object `S` outlives every mutex made from it. `S::Mutex` is constructed from `S&` and is BasicLockable.
template <class S>
concept Sync = requires(typename S::Mutex& mutex) {
  typename S::Mutex;
  requires std::constructible_from<typename S::Mutex, S&>;
  mutex.lock();
  mutex.unlock();
};

// Production: std::mutex.
struct StdSync {
  class Mutex {
   public:
    explicit Mutex(StdSync& /*sync*/) {}
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

   private:
    std::mutex mutex_;
  };
};
static_assert(Sync<StdSync>);

}  // namespace holdfast
