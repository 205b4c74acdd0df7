#include "holdfast/sim/sleep_sets.hpp"

#include <algorithm>

#include "holdfast/sim/scheduler.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kMutexBits = 63;
constexpr Footprint kRuntime = Footprint{1} << kMutexBits;

Footprint mutex_bit(std::uint64_t number) { return Footprint{1} << (number % kMutexBits); }

}  // namespace

Footprint pending_footprint(const Scheduler& scheduler, FiberId fiber) {
  const Point& pending = scheduler.pending(fiber);
  Footprint footprint = 0;
  if (pending.kind == PointKind::lock) footprint |= mutex_bit(pending.object);
  if (pending.kind == PointKind::call) footprint |= kRuntime;
  for (const std::uint64_t held : scheduler.held(fiber)) footprint |= mutex_bit(held);
  return footprint;
}

bool SleepSets::next_run() {
  count_run();
  asleep_.clear();
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
  choices_.clear();
  const auto consider = [&](FiberId fiber) {
    if (std::ranges::find(asleep_, fiber, &Choosable::fiber) != asleep_.end()) return;
    choices_.push_back({fiber, pending_footprint(decision.scheduler, fiber)});
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
