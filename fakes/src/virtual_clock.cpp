#include "holdfast/fakes/virtual_clock.hpp"

#include <algorithm>

namespace holdfast::fakes {

Nanos VirtualClock::next_due_ns() const {
  Nanos due = kNever;
  for (const TimedActor* actor : actors_) due = std::min(due, actor->next_due_ns());
  return due;
}

void VirtualClock::advance_to(Nanos instant_ns) {
  for (Nanos due = next_due_ns(); due <= instant_ns; due = next_due_ns()) {
    now_ns_ = std::max(now_ns_, due);
    for (TimedActor* actor : actors_) {
      if (actor->next_due_ns() <= now_ns_) actor->run_due(now_ns_);
    }
  }
  now_ns_ = std::max(now_ns_, instant_ns);
}

}  // namespace holdfast::fakes
