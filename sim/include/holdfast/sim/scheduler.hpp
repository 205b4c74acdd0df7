// Runs several fibers in one thread, one at a time: which one goes on is decided at named points, by a strategy.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/sim/fiber.hpp"
#include "holdfast/sim/strategy.hpp"

namespace holdfast::sim {

enum class PointKind : std::uint8_t { begin, call, lock };

// What a fiber does next, up to where it comes to another.
struct Point {
  PointKind kind = PointKind::begin;
  std::uint64_t object = 0;  // the number of the mutex, or of the call
  std::string_view name{};   // outlives the run
};

// Who holds a mutex. The mutex is SimSync's.
struct MutexState {
  static constexpr FiberId kOutside = kNoFiber - 1;  // held outside of any fiber

  std::uint64_t number = 0;
  FiberId holder = kNoFiber;
};

struct SchedulerOptions {
  // A run that passes more points makes no progress.
  std::uint64_t points_max = 1'000'000;
  std::size_t stack_bytes = Fiber::kStackBytes;
};

enum class RunVerdict : std::uint8_t {
  all_ended,
  deadlock,     // some haven't ended, and each of them waits for a mutex
  no_progress,  // too many points
};

struct RunEnd {
  RunVerdict verdict = RunVerdict::all_ended;
  std::string report;          // who waits for what, held by whom; empty when all ended
  std::uint64_t points = 0;    // passed since the reset; a fiber's beginning is one
  std::uint64_t switches = 0;  // from one fiber to another, since the reset
};

// For one thread. Keep it from run to run: its stacks are used again.
//
// A run: `reset`, `spawn` some fibers, `run` them once or several times, see that all have ended. A fiber is at its
// first point before it begins. One that is about to lock a mutex held by another can't go on until it is free.
class Scheduler {
 public:
  // Told before the thread goes over from one fiber to another; kNoFiber is whoever called `run`.
  using OnSwitch = std::function<void(FiberId from, FiberId to)>;

  explicit Scheduler(const SchedulerOptions& options = {}) : options_(options) {}

  // ---- Outside of any fiber.

  // Everything counts from 0 again. Fibers that have not ended are forgotten: what their frames own is leaked.
  void reset();
  void on_switch(OnSwitch told) { on_switch_ = std::move(told); }
  // Until all have ended, none can go on or too many points were passed. Those that are left stay where they are: for
  // another `run`, `run_out` or `reset`. Throws what a fiber's body throws, at once.
  RunEnd run(Strategy& strategy);
  // Lets what is left run to its end, one after another. Where each waits for another, mutexes exclude nobody any more:
  // for what is dead anyway. It may pass as many points as a run.
  RunEnd run_out();

  // ---- Outside or inside of a fiber.

  // `name` is for reports: "fiber 3" when empty.
  FiberId spawn(std::string name, std::function<void()> body);
  // May go over to another fiber. Outside of any fiber it does nothing.
  void point(const Point& point) {
    if (current_ != kNoFiber) arrive(point, nullptr);
  }
  // For the rest of this `run` no strategy is asked: each fiber goes on by default.
  void ask_no_more() { strategy_ = nullptr; }

  // The one that runs; kNoFiber outside.
  [[nodiscard]] FiberId current() const { return current_; }
  // Those that have not ended, ascending.
  [[nodiscard]] std::span<const FiberId> alive() const { return alive_; }
  [[nodiscard]] bool can_go_on(FiberId fiber) const;
  // Of one that has not ended. While it runs, what it does.
  [[nodiscard]] const Point& pending(FiberId fiber) const { return state(fiber).pending; }
  // Numbers of mutexes, in order of locking.
  [[nodiscard]] std::span<const std::uint64_t> held(FiberId fiber) const { return state(fiber).held; }
  [[nodiscard]] const std::string& name(FiberId fiber) const { return state(fiber).name; }
  // Where strategies chose otherwise than by default, since the reset.
  [[nodiscard]] const std::vector<Switch>& choices() const { return choices_; }
  // The strategy said so of this run.
  [[nodiscard]] bool redundant() const { return redundant_; }

  // ---- For SimSync, inside of a fiber.

  void lock(MutexState& mutex);
  void unlock(MutexState& mutex);

 private:
  struct State {
    Scheduler* scheduler = nullptr;
    FiberId id = kNoFiber;
    std::string name;
    std::function<void()> body;
    std::unique_ptr<Fiber> fiber;  // while it has not ended
    Point pending;
    const MutexState* awaited = nullptr;  // the mutex that `pending` locks
    std::vector<std::uint64_t> held;
    std::uint64_t decisions = 0;
  };

  [[nodiscard]] const State& state(FiberId fiber) const;
  [[nodiscard]] bool can_go_on(const State& state) const;
  static Fiber& run_body(void* state);
  Fiber& end_of(State& state);
  void arrive(const Point& point, const MutexState* awaited);
  void find_runnable();
  // Who goes on after `from`; kNoFiber: the run stops here.
  FiberId decide(FiberId from);
  FiberId ask(const Decision& decision);
  Fiber& go_over_to(FiberId to);
  RunEnd run_with(Strategy* strategy);
  [[nodiscard]] std::string what_stands_still() const;
  [[nodiscard]] std::string what_it_waits_for(const State& state) const;

  SchedulerOptions options_;
  OnSwitch on_switch_;
  Fiber outside_;                               // whoever called `run`
  std::vector<std::unique_ptr<Fiber>> spare_;   // stacks without a body
  std::vector<std::unique_ptr<State>> states_;  // by number
  std::vector<FiberId> alive_;
  std::vector<FiberId> runnable_;
  std::vector<Switch> choices_;

  Strategy* strategy_ = nullptr;  // nobody is asked when it is null
  FiberId current_ = kNoFiber;
  bool redundant_ = false;
  bool running_out_ = false;
  bool mutexes_void_ = false;  // exclude nobody
  RunVerdict verdict_ = RunVerdict::all_ended;
  std::exception_ptr thrown_;
  std::uint64_t decisions_ = 0;
  std::uint64_t decisions_outside_ = 0;
  std::uint64_t decisions_max_ = 0;
  std::uint64_t switches_ = 0;
};

}  // namespace holdfast::sim
