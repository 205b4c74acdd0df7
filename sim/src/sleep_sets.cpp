#include "holdfast/sim/sleep_sets.hpp"

#include <algorithm>

#include "holdfast/sim/scheduler.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kMutexBits = 63;
constexpr Footprint kRuntime = Footprint{1} << kMutexBits;

// A mutex that is held needs no bit: nobody else who can go on is about to lock it.
Footprint footprint_of(const Point& point) {
  switch (point.kind) {
    case PointKind::begin:
      return 0;
    case PointKind::call:
      return kRuntime;
    case PointKind::lock:
      break;
  }
  return Footprint{1} << (point.object % kMutexBits);
}

}  // namespace

bool SleepSets::next_run() {
  count_run();
  cut_ = false;
  if (exhausted_ || diverged_) return false;
  exhausted_ = !path_.next_leaf();
  running_ = !exhausted_;
  return running_;
}

void SleepSets::count_run() {
  if (!running_ || diverged_) return;
  running_ = false;
  ++(cut_ ? redundant_ : schedules_);
}

FiberId SleepSets::choose(const Decision& decision) {
  if (cut_ || diverged_) return kNoFiber;
  // Who was asleep may have gone on unasked, and its number may be another's now.
  if (decision.from == kNoFiber) asleep_.clear();
  choices_.clear();
  const auto consider = [&](FiberId fiber) {
    if (std::ranges::find(asleep_, fiber, &Choosable::fiber) != asleep_.end()) return;
    choices_.push_back({fiber, footprint_of(decision.scheduler.pending(fiber))});
  };
  consider(decision.go_on);
  for (const FiberId fiber : decision.runnable) {
    if (fiber != decision.go_on) consider(fiber);
  }
  if (choices_.empty()) {
    cut_ = true;
    return kNoFiber;
  }
  if (!path_.step(asleep_, choices_)) {
    diverged_ = true;
    return kNoFiber;
  }
  const Choosable chosen = path_.chosen();
  // What depends on the choice may do something else after it.
  asleep_.clear();
  for (const Choosable& done : path_.done()) {
    if ((done.footprint & chosen.footprint) == 0) asleep_.push_back(done);
  }
  return chosen.fiber;
}

}  // namespace holdfast::sim
