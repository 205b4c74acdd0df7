// Virtual time: it moves only when somebody advances it, and whatever falls due on the way happens in time order.
#pragma once

#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "holdfast/core/time.hpp"

namespace holdfast::fakes {

inline constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

// Something that happens by itself when time passes: a plan's time-out, a route, a copy.
class TimedActor {
 public:
  virtual ~TimedActor() = default;
  // The earliest instant at which `run_due` has something to do; kNever when there is none.
  [[nodiscard]] virtual Nanos next_due_ns() const = 0;
  // Does everything that is due at `now_ns`. Afterwards next_due_ns() > now_ns. Must not advance the clock.
  virtual void run_due(Nanos now_ns) = 0;
};

// A model of Clock. Actors are run in order of their due time; at one instant, in the order of `add`.
class VirtualClock {
 public:
  [[nodiscard]] Nanos now_ns() const { return now_ns_; }

  // `actor` must outlive the clock or be removed. Not from within `run_due`.
  void add(TimedActor& actor) { actors_.push_back(&actor); }
  void remove(TimedActor& actor) { std::erase(actors_, &actor); }

  // Moves to `instant_ns` (never back), stopping at each due time on the way.
  void advance_to(Nanos instant_ns);
  void advance_by(Nanos length_ns) { advance_to(now_ns_ + length_ns); }
  // For somebody who waits: `instant_ns` has come, or, where there is another way to wait, something may have changed.
  void wait_until(Nanos instant_ns) {
    if (wait_) {
      wait_(instant_ns);
    } else {
      advance_to(instant_ns);
    }
  }
  // Time is somebody else's: `wait` lets it pass, and advances this clock as far as it did.
  void wait_with(std::function<void(Nanos instant_ns)> wait) { wait_ = std::move(wait); }
  // The earliest due time of all actors.
  [[nodiscard]] Nanos next_due_ns() const;
  // Starts again at 0, for the next run in this process.
  void reset() { now_ns_ = 0; }

 private:
  Nanos now_ns_ = 0;
  std::vector<TimedActor*> actors_;
  std::function<void(Nanos)> wait_;
};
static_assert(Clock<VirtualClock>);

}  // namespace holdfast::fakes
