// Faults and choices at the calls to the owner.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "holdfast/sim/lies.hpp"
#include "holdfast/sim/rng.hpp"
#include "injector_impl.hpp"

namespace holdfast::sim {
namespace {

constexpr std::string_view kTransport = "transport failure: connection reset by peer";
constexpr std::string_view kClosedText = "the store is closed";

constexpr std::int32_t fluxon_code(FluxonErrc errc) { return static_cast<std::int32_t>(errc); }

std::string_view fluxon_worded(std::int32_t code) {
  switch (static_cast<FluxonErrc>(code)) {
    case FluxonErrc::invalid_argument:
      return "invalid argument";
    case FluxonErrc::backend_unavailable:
      return "not mounted";
    case FluxonErrc::store_closed:
      return kClosedText;
    case FluxonErrc::key_not_found:
      return "key not found";
    case FluxonErrc::key_already_exists:
      return "key already exists";
    case FluxonErrc::key_being_written:
      return "key is being written";
    case FluxonErrc::network:
      return kTransport;
    default:
      return "failed";
  }
}

bool is_transport(std::int32_t commit_code) { return commit_code <= -600 && commit_code > -700; }

// What becomes of each key, as the fault's kind, code and seed say.
void choose_fates(const FaultPoint& point, std::size_t count, std::vector<fakes::KeyChoice>& keys) {
  using Fate = fakes::KeyChoice::Fate;
  // A failing future tells no codes; the owner's own bookkeeping then has the outcome as unknown.
  const std::int32_t code = point.code < 0 ? point.code : static_cast<std::int32_t>(CommitCode::unknown);
  const bool unknown = outcome_of(point.code) == KeyOutcome::unknown;
  Rng rng(point.arg);
  const auto later = [&] { return static_cast<Nanos>(rng.between(1, 60)) * kSecond; };
  keys.assign(count, {});
  switch (point.kind) {
    case FaultKind::before:
      for (fakes::KeyChoice& key : keys) key = {Fate::not_stored, code, 0};
      break;
    case FaultKind::lost:
      for (fakes::KeyChoice& key : keys) {
        const bool is_later = point.arg % 2 == 1 && rng.ratio(1, 2);
        key = {is_later ? Fate::stored_later : Fate::stored, code, is_later ? later() : 0};
      }
      break;
    default: {
      const std::uint64_t surely = rng.below(count);
      for (std::size_t i = 0; i < count; ++i) {
        if (i != surely && rng.ratio(1, 2)) continue;
        const Fate fate = unknown ? static_cast<Fate>(rng.below(3)) : Fate::not_stored;
        keys[i] = {fate, code, fate == Fate::stored_later ? later() : 0};
      }
    }
  }
}

}  // namespace

// A future with what is due at it.
struct Injector::Impl::Pending final : PendingCommit {
  Impl& injector;
  FluxonBackend::Future below;
  FutureFaults due;
  // Of the keys that the fate leaves without code 0: by KeyChoice::Fate, whether there is one.
  std::array<bool, 3> fates{};

  Pending(Impl& impl, FluxonBackend::Future future) : injector(impl), below(std::move(future)) {}

  [[nodiscard]] bool some(fakes::KeyChoice::Fate fate) const { return fates[static_cast<std::size_t>(fate)]; }

  Result<std::vector<std::int32_t>> wait(Nanos limit_ns) override {
    if (injector.dead) return dead_fluxon(Call::commit_wait);
    injector.struck_in(CallState::any);
    if (due.time != nullptr) {
      const FaultPoint& point = *std::exchange(due.time, nullptr);
      injector.fire(point, Origin::core, 0, std::to_string(point.arg) + " ns");
      injector.context.inject_time(static_cast<Nanos>(point.arg));
    }
    if (due.death != nullptr) {
      injector.die(*std::exchange(due.death, nullptr));
      return dead_fluxon(Call::commit_wait);
    }
    if (due.gone != nullptr && injector.owner.powers().takes_choices) {
      injector.fire(*std::exchange(due.gone, nullptr), Origin::core, 0);
      injector.context.marks.reach(Mark::restart_before_wait);
      injector.restart_owner(name_of(Call::commit_wait));
    }
    if (due.evict != nullptr) {
      const FaultPoint& point = *std::exchange(due.evict, nullptr);
      if (injector.evict(point.arg, {})) injector.fire(point, Origin::core, 0);
    }
    auto answer = below.wait(limit_ns);
    const bool past_patience = !answer && is_fluxon(answer.error(), FluxonErrc::timeout);
    if (due.late != nullptr) {
      injector.fire(*std::exchange(due.late, nullptr), past_patience ? Origin::fluxon : Origin::core,
                    past_patience ? fluxon_code(FluxonErrc::timeout) : 0);
    }
    if (past_patience) return answer;
    if (due.lie != nullptr) return injector.lie_about(*std::exchange(due.lie, nullptr), std::move(answer));
    if (due.fate == nullptr) return answer;
    return tell(*std::exchange(due.fate, nullptr), std::move(answer));
  }

  // The fate of each key is a cell of its own.
  void fire_fate(const FaultPoint& point, Origin origin) {
    using Fate = fakes::KeyChoice::Fate;
    constexpr std::array kStates{std::pair(Fate::stored, CallState::stored),
                                 std::pair(Fate::not_stored, CallState::not_stored),
                                 std::pair(Fate::stored_later, CallState::decided_later)};
    bool fired = false;
    for (const auto& [fate, state] : kStates) {
      if (!some(fate)) continue;
      injector.struck_in(state);
      if (fired) {
        injector.count_cell(point, state);
      } else {
        injector.fire(point, origin, point.code);
      }
      fired = true;
    }
  }

  Result<std::vector<std::int32_t>> tell(const FaultPoint& point, Result<std::vector<std::int32_t>> answer) {
    using Fate = fakes::KeyChoice::Fate;
    MarkCounts& marks = injector.context.marks;
    if (point.code > 0) {  // the future fails
      if (answer) return answer;
      fire_fate(point, Origin::fluxon);
      if (point.kind == FaultKind::lost) marks.reach(Mark::future_failed_stored);
      return fluxon_failure(Call::commit_wait, point.code, "the commit's task was cancelled");
    }
    // An owner restart, or the plan time-out, may have decided otherwise.
    if (!answer || std::ranges::find(*answer, point.code) == answer->end()) return answer;
    fire_fate(point, Origin::fluxon_key);
    if (is_transport(point.code)) {
      if (some(Fate::stored)) marks.reach(Mark::commit_transport_stored);
      if (some(Fate::not_stored) || some(Fate::stored_later)) marks.reach(Mark::commit_transport_not_stored);
    }
    return answer;
  }
};

struct Injector::Impl::Fluxon final : FluxonBackend {
  Impl& injector;
  std::vector<fakes::KeyChoice> spare_fates;

  explicit Fluxon(Impl& impl) : injector(impl) {}

  [[nodiscard]] FluxonBackend& below() const { return *injector.liar; }

  // The caller sees the fault's own code.
  Error told(const FaultPoint& point, std::string_view detail = {}, std::string subject = {}) {
    injector.fire(point, Origin::fluxon, point.code, std::move(subject));
    return fluxon_failure(point.call, point.code, detail.empty() ? fluxon_worded(point.code) : detail);
  }

  Result<std::vector<Segment>> wait_local_segments_ready() override {
    const Arrival arrival = injector.arrive(Call::wait_local_segments_ready);
    if (arrival.dead) return dead_fluxon(Call::wait_local_segments_ready);
    if (arrival.fault != nullptr) return told(*arrival.fault);
    auto answer = below().wait_local_segments_ready();
    injector.leave(arrival);
    return answer;
  }

  Result<PlanPtr> local_fast_put_start(Keys keys, std::uint64_t value_len, const PutOptions& options) override {
    const Arrival arrival = injector.arrive(Call::local_fast_put_start, {.keys = keys, .value_bytes = value_len});
    if (arrival.dead) return dead_fluxon(Call::local_fast_put_start);
    if (arrival.fault != nullptr) {
      const FaultPoint& point = *arrival.fault;
      if (point.kind == FaultKind::lost) {
        static_cast<void>(below().local_fast_put_start(keys, value_len, options));
        return told(point, kTransport);
      }
      const bool no_slot = point.code == fluxon_code(FluxonErrc::network);
      if (no_slot) injector.context.clock.advance_by(kPutStartWaitLimit);
      return told(point, no_slot ? "no free slots for 30 s" : fluxon_worded(point.code),
                  keys.empty() ? std::string() : std::string(keys.front()));
    }
    auto answer = below().local_fast_put_start(keys, value_len, options);
    injector.leave(arrival);
    return answer;
  }

  Result<Future> local_fast_put_commit(PlanPtr plan) override {
    const Arrival arrival = injector.arrive(Call::local_fast_put_commit);
    if (arrival.dead) return dead_fluxon(Call::local_fast_put_commit);
    if (arrival.fault != nullptr) return told(*arrival.fault);

    const bool chosen = injector.may_be_faulty(Call::commit_wait) || injector.has_choices(Call::local_fast_put_commit);
    FutureFaults due;
    const std::uint32_t nth = injector.context.calls_in_step[static_cast<std::size_t>(Call::commit_wait)];
    if (chosen) due = choose_commit(plan, nth);
    auto answer = below().local_fast_put_commit(plan);
    if (!answer) {
      if (chosen) injector.owner.choose_next_commit({});
      return answer;
    }
    ++injector.context.calls_in_step[static_cast<std::size_t>(Call::commit_wait)];
    if (injector.context.keep_calls) injector.keep(Call::commit_wait, nth);
    auto pending = std::make_unique<Pending>(injector, std::move(*answer));
    pending->due = due;
    if (due.fate != nullptr) {
      for (const fakes::KeyChoice& key : spare_fates) {
        if (key.code != 0) pending->fates[static_cast<std::size_t>(key.fate)] = true;
      }
    }
    injector.leave(arrival);
    return Future(std::move(pending));
  }

  FutureFaults choose_commit(PlanPtr plan, std::uint32_t nth) {
    using enum ChoiceKind;
    FutureFaults due;
    if (injector.may_be_faulty(Call::commit_wait)) due = injector.faults_of_future(nth);
    const std::uint32_t commit_nth = injector.current_nth(Call::local_fast_put_commit);
    const auto choice_of = [&](ChoiceKind kind) {
      return injector.choice_at(Call::local_fast_put_commit, commit_nth, std::array{kind});
    };
    fakes::CommitChoice choice;
    if (due.fate != nullptr) {
      const auto view = injector.owner.plan(plan);
      if (view && !view->addresses.empty() && !view->expired) {
        choose_fates(*due.fate, view->addresses.size(), spare_fates);
        choice.keys = spare_fates;
        choice.future_fails = due.fate->code > 0;
      } else {
        due.fate = nullptr;
      }
    }
    if (const Choice* at = choice_of(answer_after)) choice.answer_after_ns = static_cast<Nanos>(at->arg);
    if (const Choice* at = choice_of(route_after)) choice.route_after_ns = static_cast<Nanos>(at->arg);
    if (due.lie != nullptr && due.lie->code == static_cast<std::int32_t>(Lie::stored_without_bound)) {
      store_without_bound(*due.lie, plan, choice);
    }
    if (due.late != nullptr) choice.answer_after_ns = static_cast<Nanos>(due.late->arg);
    // Within the settle bound a key is decided for good, its route included.
    const Nanos route_ns = choice.route_after_ns.value_or(fakes::OwnerOptions{}.route_after_ns);
    for (fakes::KeyChoice& key : choice.keys) {
      if (choice.without_bound) break;
      key.stored_after_ns = std::min(key.stored_after_ns, std::max<Nanos>(kSettleBound - route_ns, 0));
    }
    injector.owner.choose_next_commit(std::move(choice));
    return due;
  }

  void store_without_bound(const FaultPoint& point, PlanPtr plan, fakes::CommitChoice& choice) {
    const auto view = injector.owner.plan(plan);
    if (!view || view->expired) return;
    Rng rng(point.arg);
    choice.without_bound = true;
    for (std::size_t i = 0; i < view->addresses.size(); ++i) {
      choice.keys.push_back({fakes::KeyChoice::Fate::stored_later, static_cast<std::int32_t>(CommitCode::timeout),
                             static_cast<Nanos>(rng.below(static_cast<std::uint64_t>(kWithoutBound)))});
    }
  }

  Status put_abort(PlanPtr plan) override {
    const Arrival arrival = injector.arrive(Call::put_abort);
    if (arrival.dead) return dead_fluxon(Call::put_abort);
    if (arrival.fault != nullptr) {
      const FaultPoint& point = *arrival.fault;
      if (point.kind != FaultKind::lost) {
        const auto view = injector.owner.plan(plan);
        const std::uint64_t count = view ? view->addresses.size() : 0;
        const std::uint64_t first = point.kind == FaultKind::before || count < 2 ? 0 : 1 + point.arg % (count - 1);
        if (count != 0 && view->kind == fakes::PlanKind::put) injector.owner.choose_next_abort({first});
      }
      static_cast<void>(below().put_abort(plan));
      return told(point);
    }
    auto answer = below().put_abort(plan);
    injector.leave(arrival);
    return answer;
  }

  Result<GetStart> get_start(Keys keys, bool prefix_best_effort,
                             std::span<const std::uint32_t> atomic_group_lens) override {
    const Arrival arrival = injector.arrive(Call::get_start, {.keys = keys});
    if (arrival.dead) return dead_fluxon(Call::get_start);
    if (arrival.fault != nullptr && arrival.fault->kind == FaultKind::before) return told(*arrival.fault);

    fakes::GetStartChoice choice;
    if (injector.has_choices(Call::get_start)) {
      constexpr std::array kKinds{ChoiceKind::needs_transfer};
      choice.needs_transfer =
          injector.choice_at(Call::get_start, injector.current_nth(Call::get_start), kKinds) != nullptr;
    }
    const bool part = arrival.fault != nullptr && arrival.fault->kind == FaultKind::part && !keys.empty();
    if (part) choice.failing_key_index = arrival.fault->arg % keys.size();
    const bool chosen = choice.needs_transfer || part;
    if (chosen) injector.owner.choose_next_get_start(choice);
    auto answer = below().get_start(keys, prefix_best_effort, atomic_group_lens);
    if (chosen && !answer) injector.owner.choose_next_get_start({});
    if (arrival.fault != nullptr && arrival.fault->kind == FaultKind::lost) return told(*arrival.fault);
    // A key before it may be missing by itself.
    if (part && answer && answer->raw_prefix_hit_len == *choice.failing_key_index) {
      injector.fire(*arrival.fault, Origin::core, 0, std::string(keys[*choice.failing_key_index]));
    }
    injector.leave(arrival);
    return answer;
  }

  Result<PlanPtr> get_transfer(GetHandle handle, std::uint64_t prefix_len) override {
    const Arrival arrival = injector.arrive(Call::get_transfer, {.handle = handle, .prefix_len = prefix_len});
    if (arrival.dead) return dead_fluxon(Call::get_transfer);
    if (arrival.fault != nullptr) {
      const FaultPoint& point = *arrival.fault;
      if (point.kind == FaultKind::lost) {
        static_cast<void>(below().get_transfer(handle, prefix_len));
        return told(point);
      }
      if (point.code == fluxon_code(FluxonErrc::invalid_argument)) return told(point);
      // The handle is consumed without a plan.
      if (point.kind == FaultKind::part) return vanished(point, handle, prefix_len);
      static_cast<void>(below().cancel_get_transfer(handle));
      return told(point);
    }
    auto answer = below().get_transfer(handle, prefix_len);
    injector.leave(arrival);
    return answer;
  }

  // One value of the prefix is evicted between start and transfer.
  Error vanished(const FaultPoint& point, GetHandle handle, std::uint64_t prefix_len) {
    std::string key;
    if (const auto plan = below().get_transfer(handle, prefix_len)) {
      const auto view = injector.owner.plan(*plan);
      if (view && !view->keys.empty()) key = view->keys[point.arg % view->keys.size()];
      static_cast<void>(below().release_views(*plan));
      // Its holders drop a little later; the key goes once they have.
      injector.context.inject_time(kHolderDrop);
      if (injector.owner.evict(key)) {
        injector.context.marks.reach(Mark::store_evicted_between);
        injector.context.log.event(injector.context.clock.now_ns(), "owner evicts", std::array{std::uint64_t{1}},
                                   [&] { return key; });
      }
    }
    return told(point, {}, std::move(key));
  }
  static constexpr Nanos kHolderDrop = kMillisecond;

  Status cancel_get_transfer(GetHandle handle) override {
    const Arrival arrival = injector.arrive(Call::cancel_get_transfer);
    if (arrival.dead) return dead_fluxon(Call::cancel_get_transfer);
    if (arrival.fault != nullptr) {
      if (arrival.fault->kind == FaultKind::before) injector.owner.choose_next_cancel_pins();
      static_cast<void>(below().cancel_get_transfer(handle));
      return told(*arrival.fault);
    }
    auto answer = below().cancel_get_transfer(handle);
    injector.leave(arrival);
    return answer;
  }

  Status release_views(PlanPtr plan) override {
    const Arrival arrival = injector.arrive(Call::release_views);
    if (arrival.dead) return dead_fluxon(Call::release_views);
    if (arrival.fault == nullptr) return below().release_views(plan);
    const FaultPoint& point = *arrival.fault;
    const auto view = injector.owner.plan(plan);
    const bool drops_holders = view && view->kind == fakes::PlanKind::read;
    if (point.kind == FaultKind::late) {
      if (!drops_holders) return below().release_views(plan);
      injector.owner.choose_next_release_drops_after(static_cast<Nanos>(point.arg));
      injector.fire(point, Origin::core, 0, std::to_string(point.arg) + " ns until the holders drop");
      return below().release_views(plan);
    }
    if (point.kind == FaultKind::before && drops_holders) injector.owner.choose_next_release_pins();
    static_cast<void>(below().release_views(plan));
    return told(point);
  }

  Status remove(std::string_view key) override {
    const Arrival arrival = injector.arrive(Call::remove, {.keys = std::span(&key, 1)});
    if (arrival.dead) return dead_fluxon(Call::remove);
    if (arrival.fault != nullptr) {
      if (arrival.fault->kind == FaultKind::lost) static_cast<void>(below().remove(key));
      return told(*arrival.fault, {}, std::string(key));
    }
    auto answer = below().remove(key);
    injector.leave(arrival);
    return answer;
  }

  Status put(std::string_view key, std::span<const std::byte> bytes) override {
    const Arrival arrival = injector.arrive(Call::put, {.keys = std::span(&key, 1)});
    if (arrival.dead) return dead_fluxon(Call::put);
    if (arrival.fault != nullptr) {
      if (arrival.fault->kind == FaultKind::lost) static_cast<void>(below().put(key, bytes));
      return told(*arrival.fault, {}, std::string(key));
    }
    auto answer = below().put(key, bytes);
    injector.leave(arrival);
    return answer;
  }

  Result<std::vector<std::byte>> get(std::string_view key) override {
    const Arrival arrival = injector.arrive(Call::get, {.keys = std::span(&key, 1)});
    if (arrival.dead) return dead_fluxon(Call::get);
    if (arrival.fault != nullptr) return told(*arrival.fault, {}, std::string(key));
    auto answer = below().get(key);
    injector.leave(arrival);
    return answer;
  }
};

std::unique_ptr<FluxonBackend> Injector::Impl::make_fluxon() { return std::make_unique<Fluxon>(*this); }

}  // namespace holdfast::sim
