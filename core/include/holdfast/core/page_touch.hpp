// Touches the pages of host memory in parts, on as many threads as the caller lends, so that they are there before they
// are pinned: pages that are made within a registration are made one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "holdfast/core/guarded.hpp"
#include "holdfast/core/registration_map.hpp"
#include "holdfast/core/task_executor.hpp"

namespace holdfast {

inline constexpr std::uint64_t kPageBytes = 4096;  // the smallest page; larger ones are touched more than once

// Makes the pages of `range` be there. Called on several threads at once, for ranges that share no byte. Changes none
// of them: they may hold values, and others may be writing there.
using TouchPages = std::function<void(const HostRange& range)>;

// Reads a byte of each page. That makes the pages of shared memory, as writing one would.
void read_pages(const HostRange& range);

struct TouchOptions {
  TaskExecutor* executor = nullptr;  // none: all of it here
  std::size_t helpers_max = 0;       // tasks that touch at the same time, beside the caller
  TouchPages touch = read_pages;
};

// Asked on the caller's own thread, with the bytes touched so far; false: stop.
using TouchGoOn = std::function<bool(std::uint64_t touched_bytes)>;

// One touching of `parts`, shared with the tasks that help. The caller does its share: a task that is never begun, or
// late, costs nothing but its help, and finds nothing left to do.
//
// A helper holds its own lock from before it takes its first part until it takes no more. So nobody touches any more
// once nothing is left to take and each of these locks has been had.
template <Sync S>
class PageTouch {
 public:
  PageTouch(S& sync, std::vector<HostRange> parts, TouchPages touch, std::size_t helpers)
      : parts_(std::move(parts)), touch_(std::move(touch)), done_(sync) {
    for (std::size_t i = 0; i < helpers; ++i) busy_.emplace_back(sync);
  }

  void help(std::size_t helper) {
    const std::scoped_lock busy(busy_[helper]);
    while (touch_one()) {
    }
  }

  // Comes back when nobody touches any more; false: stopped.
  bool touch_all(const TouchGoOn& go_on) {
    bool goes_on = go_on(touched_bytes());
    while (goes_on && touch_one()) goes_on = go_on(touched_bytes());
    if (!goes_on) done_.with([&](Done& done) { done.next_part = parts_.size(); });
    for (typename S::Mutex& busy : busy_) {
      const std::scoped_lock ended(busy);
    }
    return goes_on && go_on(touched_bytes());
  }

 private:
  struct Done {
    std::size_t next_part = 0;
    std::uint64_t touched_bytes = 0;
  };

  bool touch_one() {
    const HostRange* part =
        done_.with([&](Done& done) { return done.next_part < parts_.size() ? &parts_[done.next_part++] : nullptr; });
    if (part == nullptr) return false;
    touch_(*part);
    done_.with([&](Done& done) { done.touched_bytes += part->bytes; });
    return true;
  }
  [[nodiscard]] std::uint64_t touched_bytes() const {
    return done_.with([](const Done& done) { return done.touched_bytes; });
  }

  const std::vector<HostRange> parts_;
  const TouchPages touch_;
  Guarded<Done, S> done_;
  std::deque<typename S::Mutex> busy_;
};

// Without an executor: takes no lock. False: stopped.
bool touch_here(const std::vector<HostRange>& parts, const TouchPages& touch, const TouchGoOn& go_on);

// Touches all of `parts`, unless `go_on` says no: asked before the first part, and after each that the caller touches
// itself, the last one when everything was touched. When it returns nobody touches any more.
template <Sync S>
bool touch_parts(S& sync, std::vector<HostRange> parts, const TouchOptions& options, const TouchGoOn& go_on) {
  const std::size_t helpers = options.executor == nullptr ? 0 : std::min(options.helpers_max, parts.size());
  if (helpers == 0) return touch_here(parts, options.touch, go_on);
  const auto work = std::make_shared<PageTouch<S>>(sync, std::move(parts), options.touch, helpers);
  for (std::size_t i = 0; i < helpers; ++i) options.executor->submit([work, i] { work->help(i); });
  return work->touch_all(go_on);
}

}  // namespace holdfast
