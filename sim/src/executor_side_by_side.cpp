// Steps that take turns: each is a fiber, those of one session come one after the other, and at each runtime call and
// each lock a strategy decides who goes on.
#include <algorithm>

#include "executor_impl.hpp"
#include "holdfast/sim/recorded_strategy.hpp"
#include "lanes.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kHandover = ~0ULL;  // an order between whoever runs all steps and the steps; no mutex's number

std::string what_it_is(const Step& step) {
  return "step " + std::to_string(step.id) + " (" + std::string(name_of(step.kind)) + ")";
}

// Tells of each choice other than the default.
class ToldStrategy final : public Strategy {
 public:
  using Told = std::function<void(const Decision&, FiberId)>;
  ToldStrategy(Strategy& asked, Told told) : asked_(asked), told_(std::move(told)) {}
  [[nodiscard]] bool next_run() override { return true; }
  FiberId choose(const Decision& decision) override {
    const FiberId to = asked_.choose(decision);
    if (to != kNoFiber && to != decision.go_on) told_(decision, to);
    return to;
  }

 private:
  Strategy& asked_;
  Told told_;
};

}  // namespace

// ---- Turns.

void Executor::Impl::Turns::before(Call call) {
  impl_.monitor.comes_to_a_call();
  impl_.scheduler.point({PointKind::call, static_cast<std::uint64_t>(call), name_of(call)});
  impl_.monitor.goes_on();
}
void Executor::Impl::Turns::locked(std::uint64_t mutex) { impl_.hazards.checker().lock(impl_.context.host, mutex); }
void Executor::Impl::Turns::unlocked(std::uint64_t mutex) { impl_.hazards.checker().unlock(impl_.context.host, mutex); }

void Executor::Impl::swap_turn(std::size_t turn) {
  Turn& other = turns[turn];
  std::swap(context.scope(), other.scope);
  injector.swap_step(other.faults);
  monitor.swap_operation(other.operation);
  doing.left_ns = own_time();
  std::swap(doing, other.doing);
  doing.others_ns += own_time() - doing.left_ns;
}

std::uint32_t Executor::Impl::host_of(const Step& step) {
  const auto [found, added] = hosts.try_emplace(lane_of(*trace, step), 0);
  if (added) found->second = hazards.checker().add_host(0);
  return found->second;
}

void Executor::Impl::run_turn(std::size_t turn) {
  if (injector.client_dead()) return;
  Turn& own = turns[turn];
  own.begun = true;
  const Step& step = *own.step;
  Ending ending = perform(step);
  if (!injector.client_dead()) {
    end_step(step, ending);
    return;
  }
  // Whoever else has begun runs out; the dead client answers nothing.
  scheduler.ask_no_more();
  if (died_in != 0) {
    end_step(step, ending);
    return;
  }
  died_in = turn + 1;
  died_with = std::move(ending);
}

// ---- Rounds.

void Executor::Impl::run_side_by_side() {
  // Before anything is known of memory: who may ever touch it.
  for (const Step& step : trace->steps) static_cast<void>(host_of(step));
  for (std::size_t at = 0; at < trace->steps.size();) {
    const Step& first = trace->steps[at];
    if (first.kind == StepKind::restart) {
      run_step(first);
      ++at;
      continue;
    }
    std::vector<const Step*> together;
    do {
      together.push_back(&trace->steps[at++]);
    } while (at < trace->steps.size() && !trace->steps[at].join && trace->steps[at].kind != StepKind::restart);
    while (!together.empty()) together = run_together(together);
    check_accounts();
  }
}

std::vector<const Step*> Executor::Impl::run_together(std::span<const Step* const> steps) {
  HazardChecker& checker = hazards.checker();
  scheduler.reset();
  turns.assign(steps.size(), {});
  died_in = 0;
  std::map<std::uint32_t, FiberId> last_of_lane;
  checker.unlock(context.host, kHandover);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = *steps[i];
    turns[i].step = &step;
    turns[i].scope.host = host_of(step);
    checker.lock(turns[i].scope.host, kHandover);
    const auto [lane, first] = last_of_lane.try_emplace(lane_of(*trace, step), kNoFiber);
    lane->second = scheduler.spawn(what_it_is(step), [this, i] { run_turn(i); }, lane->second);
  }
  scheduler.on_switch([this](FiberId from, FiberId to) {
    if (from != kNoFiber) swap_turn(from);
    if (to != kNoFiber) swap_turn(to);
    if (from != kNoFiber && to != kNoFiber) {
      ++times_switched;
      context.log.event(clock.now_ns(), "turn", std::array{std::uint64_t{turns[to].step->id}},
                        [&] { return what_it_is(*turns[to].step); });
    }
  });
  RecordedStrategy recorded(switches_of(steps));
  GoOn go_on;
  Strategy& asked = result.redundant               ? go_on
                    : options->strategy != nullptr ? *options->strategy
                                                   : static_cast<Strategy&>(recorded);
  ToldStrategy told(asked, [&](const Decision& decision, FiberId to) {
    result.switches.push_back(switch_of(decision, to, steps));
    if (options->on_switch) options->on_switch(result.switches.back());
  });
  const RunEnd end = scheduler.run(told);
  if (end.verdict != RunVerdict::all_ended) {
    context.violate(Invariant::progress, {}, end.report,
                    end.verdict == RunVerdict::deadlock ? "deadlock" : "no progress");
    static_cast<void>(scheduler.run_out());
  }
  context.verdicts.checked(Invariant::progress);
  result.decisions += end.points;
  result.redundant |= scheduler.redundant();
  ++rounds;
  for (const Turn& turn : turns) checker.unlock(turn.scope.host, kHandover);
  checker.lock(context.host, kHandover);
  if (died_in != 0) {
    const std::size_t turn = died_in - 1;
    swap_turn(turn);
    after_death(*steps[turn], died_with);
    end_step(*steps[turn], died_with);
    swap_turn(turn);
  }
  std::vector<const Step*> left;
  for (const Turn& turn : turns) {
    if (!turn.begun) left.push_back(turn.step);
  }
  return left;
}

StepSwitch Executor::Impl::switch_of(const Decision& decision, FiberId to, std::span<const Step* const> steps) const {
  if (decision.from == kNoFiber) return {0, rounds, steps[to]->id};
  return {steps[decision.from]->id, static_cast<std::uint32_t>(decision.nth), steps[to]->id};
}

std::vector<Switch> Executor::Impl::switches_of(std::span<const Step* const> steps) const {
  std::map<std::uint32_t, FiberId> fibers;
  for (std::size_t i = 0; i < steps.size(); ++i) fibers[steps[i]->id] = static_cast<FiberId>(i);
  std::vector<Switch> switches;
  for (const StepSwitch& change : trace->switches) {
    const auto to = fibers.find(change.to);
    if (to == fibers.end()) continue;
    if (change.step == 0) {
      if (change.nth == rounds) switches.push_back({kNoFiber, 0, to->second});
      continue;
    }
    if (const auto from = fibers.find(change.step); from != fibers.end()) {
      switches.push_back({from->second, change.nth, to->second});
    }
  }
  return switches;
}

// ---- What it came to.

std::uint64_t Executor::Impl::end_state() const {
  EventLog state;
  for (const auto& [step, ending] : endings) {
    state.event(0, "step", std::array{std::uint64_t{step}, ending[0], ending[1], ending[2], ending[3]},
                [] { return std::string(); });
  }
  std::vector<std::array<std::uint64_t, 3>> keys;  // in no order of storing
  owner.for_each_stored_key([&](std::string_view key, const fakes::KeyView& view) {
    keys.push_back({hash_of(key), static_cast<std::uint64_t>(view.state), tap.stored_digest(key).value_or(0)});
  });
  std::ranges::sort(keys);
  for (const auto& key : keys) state.event(0, "key", key, [] { return std::string(); });
  const Inspection held = system->inspect();
  state.event(0, "store",
              std::array{held.ready_blobs, held.ready_latents, held.accounted_bytes, held.unsettled, held.quarantined,
                         held.references, held.nodes},
              [] { return std::string(); });
  return state.hash();
}

}  // namespace holdfast::sim
