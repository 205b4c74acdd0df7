#include "holdfast/sim/scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "holdfast/core/check.hpp"

namespace holdfast::sim {

// ---- Outside of any fiber.

void Scheduler::reset() {
  check(current_ == kNoFiber, "a scheduler is reset by one of its fibers");
  for (const std::unique_ptr<State>& state : states_) {
    if (state->fiber != nullptr) spare_.push_back(std::move(state->fiber));
  }
  states_.clear();
  alive_.clear();
  choices_.clear();
  redundant_ = mutexes_void_ = false;
  thrown_ = nullptr;
  decisions_ = decisions_outside_ = switches_ = 0;
}

RunEnd Scheduler::run(Strategy& strategy) {
  running_out_ = false;
  decisions_max_ = options_.points_max;
  return run_with(&strategy);
}

RunEnd Scheduler::run_out() {
  running_out_ = true;
  decisions_max_ = decisions_ + options_.points_max;
  return run_with(nullptr);
}

RunEnd Scheduler::run_with(Strategy* strategy) {
  check(current_ == kNoFiber, "a scheduler is run by one of its fibers");
  strategy_ = strategy;
  const FiberId first = decide(kNoFiber);
  if (first != kNoFiber) outside_.switch_to(go_over_to(first));
  strategy_ = nullptr;
  if (thrown_ != nullptr) std::rethrow_exception(std::exchange(thrown_, nullptr));
  return {verdict_, what_stands_still(), decisions_, switches_};
}

// ---- Fibers.

FiberId Scheduler::spawn(std::string name, std::function<void()> body) {
  const auto id = static_cast<FiberId>(states_.size());
  auto state = std::make_unique<State>();
  state->scheduler = this;
  state->id = id;
  state->name = name.empty() ? fmt::format("fiber {}", id) : std::move(name);
  state->body = std::move(body);
  if (spare_.empty()) {
    state->fiber = std::make_unique<Fiber>(options_.stack_bytes);
  } else {
    state->fiber = std::move(spare_.back());
    spare_.pop_back();
  }
  state->fiber->start(&Scheduler::run_body, state.get());
  states_.push_back(std::move(state));
  alive_.push_back(id);
  return id;
}

Fiber& Scheduler::run_body(void* state) {
  State& self = *static_cast<State*>(state);
  try {
    self.body();
    self.body = nullptr;  // what it captured ends within the fiber
  } catch (...) {
    self.scheduler->thrown_ = std::current_exception();
  }
  return self.scheduler->end_of(self);
}

Fiber& Scheduler::end_of(State& state) {
  check(state.held.empty() || mutexes_void_ || thrown_ != nullptr, "a fiber ends while it holds a mutex");
  std::erase(alive_, state.id);
  Fiber& next = go_over_to(thrown_ == nullptr ? decide(state.id) : kNoFiber);
  // Nobody can take it before it is left.
  spare_.push_back(std::move(state.fiber));
  return next;
}

const Scheduler::State& Scheduler::state(FiberId fiber) const {
  check(fiber < states_.size(), "there is no fiber of this number");
  return *states_[fiber];
}

bool Scheduler::can_go_on(FiberId fiber) const {
  return std::ranges::binary_search(alive_, fiber) && can_go_on(state(fiber));
}

bool Scheduler::can_go_on(const State& state) const {
  return state.awaited == nullptr || state.awaited->holder == kNoFiber || mutexes_void_;
}

// ---- Decisions.

void Scheduler::arrive(const Point& point, const MutexState* awaited) {
  State& self = *states_[current_];
  self.pending = point;
  self.awaited = awaited;
  const FiberId to = decide(self.id);
  if (to != self.id) self.fiber->switch_to(go_over_to(to));
}

void Scheduler::find_runnable() {
  runnable_.clear();
  for (const FiberId fiber : alive_) {
    if (can_go_on(*states_[fiber])) runnable_.push_back(fiber);
  }
}

FiberId Scheduler::decide(FiberId from) {
  find_runnable();
  if (runnable_.empty()) {
    verdict_ = alive_.empty() ? RunVerdict::all_ended : RunVerdict::deadlock;
    if (alive_.empty() || !running_out_) return kNoFiber;
    mutexes_void_ = true;
    find_runnable();
  }
  if (decisions_ >= decisions_max_) {
    verdict_ = RunVerdict::no_progress;
    return kNoFiber;
  }
  const bool from_can_go_on = std::ranges::find(runnable_, from) != runnable_.end();
  const FiberId go_on = from_can_go_on ? from : runnable_.front();
  const std::uint64_t number = decisions_++;
  const std::uint64_t nth = from == kNoFiber ? decisions_outside_++ : states_[from]->decisions++;
  if (strategy_ == nullptr) return go_on;
  return ask({*this, number, from, nth, from_can_go_on, go_on, runnable_});
}

FiberId Scheduler::ask(const Decision& decision) {
  const FiberId to = strategy_->choose(decision);
  if (to == kNoFiber) {
    redundant_ = true;
    strategy_ = nullptr;
    return decision.go_on;
  }
  check(std::ranges::find(runnable_, to) != runnable_.end(), "a strategy chose a fiber that can't go on");
  if (to != decision.go_on) choices_.push_back({decision.from, decision.nth, to});
  return to;
}

Fiber& Scheduler::go_over_to(FiberId to) {
  if (current_ != kNoFiber && to != kNoFiber) ++switches_;
  if (on_switch_) on_switch_(current_, to);
  current_ = to;
  return to == kNoFiber ? outside_ : *states_[to]->fiber;
}

// ---- Mutexes.

void Scheduler::lock(MutexState& mutex) {
  arrive({PointKind::lock, mutex.number, {}}, &mutex);
  State& self = *states_[current_];
  self.awaited = nullptr;
  if (mutexes_void_) return;
  mutex.holder = current_;
  self.held.push_back(mutex.number);
}

void Scheduler::unlock(MutexState& mutex) {
  if (mutex.holder != current_) {
    check(mutexes_void_, "a mutex is unlocked by a fiber that doesn't hold it");
    return;
  }
  mutex.holder = kNoFiber;
  std::erase(states_[current_]->held, mutex.number);
}

// ---- Words.

std::string Scheduler::what_stands_still() const {
  if (verdict_ == RunVerdict::all_ended) return {};
  std::string text =
      verdict_ == RunVerdict::deadlock ? "deadlock: " : fmt::format("no progress in {} points: ", decisions_);
  for (const FiberId fiber : alive_) {
    if (fiber != alive_.front()) text += "; ";
    text += what_it_waits_for(*states_[fiber]);
  }
  return text;
}

std::string Scheduler::what_it_waits_for(const State& state) const {
  std::string text = state.name;
  if (!state.held.empty()) text += fmt::format(" holds mutex {} and", fmt::join(state.held, ", "));
  const Point& pending = state.pending;
  if (pending.kind == PointKind::begin) return text + " has not begun";
  if (pending.kind == PointKind::call) {
    return text + (pending.name.empty() ? fmt::format(" comes to call {}", pending.object)
                                        : fmt::format(" comes to {}", pending.name));
  }
  const FiberId holder = state.awaited->holder;
  if (holder == kNoFiber) return text + fmt::format(" comes to lock mutex {}", pending.object);
  text += fmt::format(" waits for mutex {}, which ", pending.object);
  if (holder == state.id) return text + "it holds itself";
  if (holder == MutexState::kOutside) return text + "is held outside of any fiber";
  return text + states_[holder]->name + " holds";
}

}  // namespace holdfast::sim
