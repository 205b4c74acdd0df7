// A value that is reached only with its mutex held. What was seen of it may be otherwise as soon as `with` returns: a
// check and what relies on it belong into one `with`.
#pragma once

#include <mutex>
#include <utility>

#include "holdfast/core/sync.hpp"

namespace holdfast {

template <class T, Sync S>
class Guarded {
 public:
  template <class... Args>
  explicit Guarded(S& sync, Args&&... args) : mutex_(sync), value_(std::forward<Args>(args)...) {}

  // Calls `use(value)` under the lock. `use` makes no runtime call and keeps no reference.
  template <class Use>
  decltype(auto) with(Use&& use) {
    const std::scoped_lock lock(mutex_);
    return std::forward<Use>(use)(value_);
  }
  template <class Use>
  decltype(auto) with(Use&& use) const {
    const std::scoped_lock lock(mutex_);
    return std::forward<Use>(use)(std::as_const(value_));
  }

 private:
  mutable typename S::Mutex mutex_;
  T value_;
};

}  // namespace holdfast
