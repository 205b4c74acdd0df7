#include "holdfast/sim/injector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <tuple>
#include <utility>

#include "holdfast/sim/lies.hpp"
#include "holdfast/sim/rng.hpp"
#include "injector_impl.hpp"

namespace holdfast::sim {
namespace {

constexpr CudaErrc kContextIsDestroyed{709};

constexpr std::uint32_t call_bit(Call call) { return 1U << static_cast<unsigned>(call); }
static_assert(kCallCount <= 32);

}  // namespace

Injector::Impl::Impl(RunContext& run, FluxonBackend& fluxon_below, CudaBackend& cuda_below, FileBackend& files_below,
                     fakes::Owner& fake_owner, fakes::FakeCuda& fake_device)
    : context(run),
      below_fluxon(fluxon_below),
      below_cuda(cuda_below),
      below_files(files_below),
      owner(fake_owner),
      device(fake_device),
      liar(make_liar(fluxon_below)),
      fluxon(make_fluxon()),
      cuda(make_cuda()),
      files(make_files()) {}

template <class Point>
void Injector::Impl::ByStep<Point>::load(const std::vector<Point>& from) {
  points = &from;
  here = {};
  order.resize(from.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {},
                           [&](std::uint32_t i) { return std::tuple(from[i].step, from[i].call, from[i].nth); });
}

template <class Point>
std::uint32_t Injector::Impl::ByStep<Point>::enter(std::uint32_t step) {
  here = {};
  if (order.empty()) return 0;
  here = std::ranges::equal_range(order, step, {}, [&](std::uint32_t i) { return (*points)[i].step; });
  std::uint32_t mask = 0;
  for (const std::uint32_t i : here) mask |= call_bit((*points)[i].call);
  return mask;
}

void Injector::Impl::load(const Trace& trace) {
  faults_.load(trace.faults);
  std::erase_if(faults_.order, [&](std::uint32_t i) {
    const FaultPoint& point = trace.faults[i];
    if (point.kind == FaultKind::lie) return find_lie(point.call, point.code) == nullptr;
    return !is_legal(point.call, point.kind, point.code);
  });
  choices_.load(trace.choices);
  begin_step();
}

void Injector::Impl::reset() {
  fired.clear();
  dead = false;
  context_dead = false;
  strangers.clear();
  strangers_seen.clear();
  faults_.order.clear();
  choices_.order.clear();
  entered_ = false;
}

void Injector::Impl::find_step() {
  entered_ = true;
  entered_step_ = context.step;
  entered_faults_on_ = context.faults_on;
  fault_mask_ = faults_.enter(context.step);
  if (!context.faults_on) fault_mask_ = 0;
  choice_mask_ = choices_.enter(context.step);
}

Injector::Impl::Arrival Injector::Impl::arrive_at_fault(Call call, std::uint32_t nth, const Subject& subject) {
  Arrival arrival;
  due_lie = nullptr;
  struck_in(state_of(call, subject));
  for (const std::uint32_t i : faults_.here) {
    const FaultPoint& point = (*faults_.points)[i];
    if (!matches(point, call, nth)) continue;
    switch (point.kind) {
      case FaultKind::before:
      case FaultKind::lost:
      case FaultKind::part:
        if (arrival.fault == nullptr && due_lie == nullptr) arrival.fault = &point;
        break;
      case FaultKind::late:
        // What is late is not the answer: the event is, or the drop of the holders.
        if (call == Call::event_query || call == Call::release_views) {
          if (arrival.fault == nullptr) arrival.fault = &point;
          break;
        }
        fire(point, Origin::core, 0, fmt::format("{} ns", point.arg));
        if (point.arg % 2 == 0) {
          context.inject_time(static_cast<Nanos>(point.arg));
        } else {
          arrival.after_ns += static_cast<Nanos>(point.arg);
        }
        break;
      case FaultKind::gone:
        if (!owner.powers().takes_choices) break;
        fire(point, Origin::core, 0);
        restart_owner(name_of(call));
        break;
      case FaultKind::evict:
        if (evict(point.arg, subject.keys)) fire(point, Origin::core, 0);
        break;
      case FaultKind::time:
        fire(point, Origin::core, 0, fmt::format("{} ns", point.arg));
        context.inject_time(static_cast<Nanos>(point.arg));
        break;
      case FaultKind::death:
        arrival.fault = &point;
        arrival.dead = true;
        die(point);
        return arrival;
      case FaultKind::lie:
        if (arrival.fault == nullptr && due_lie == nullptr) due_lie = &point;
        break;
    }
  }
  return arrival;
}

Injector::Impl::FutureFaults Injector::Impl::faults_of_future(std::uint32_t nth) {
  FutureFaults due;
  const auto take = [](const FaultPoint*& into, const FaultPoint& point) {
    if (into == nullptr) into = &point;
  };
  for (const std::uint32_t i : faults_.here) {
    const FaultPoint& point = (*faults_.points)[i];
    if (!matches(point, Call::commit_wait, nth)) continue;
    switch (point.kind) {
      case FaultKind::before:
      case FaultKind::lost:
      case FaultKind::part:
        if (due.lie == nullptr) take(due.fate, point);
        break;
      case FaultKind::late:
        take(due.late, point);
        break;
      case FaultKind::gone:
        take(due.gone, point);
        break;
      case FaultKind::evict:
        take(due.evict, point);
        break;
      case FaultKind::time:
        take(due.time, point);
        break;
      case FaultKind::death:
        take(due.death, point);
        break;
      case FaultKind::lie:
        if (due.fate == nullptr) take(due.lie, point);
        break;
    }
  }
  return due;
}

const Choice* Injector::Impl::choice_at(Call call, std::uint32_t nth, std::span<const ChoiceKind> kinds) {
  for (const std::uint32_t i : choices_.here) {
    const Choice& choice = (*choices_.points)[i];
    if (choice.call == call && choice.nth == nth && std::ranges::find(kinds, choice.kind) != kinds.end()) {
      return &choice;
    }
  }
  return nullptr;
}

void Injector::Impl::fire(const FaultPoint& point, Origin origin, std::int32_t code, std::string subject) {
  const auto ordinal = static_cast<std::uint32_t>(context.faults.total);
  if (context.on_moment) {
    context.tell({.kind = MomentKind::fault,
                  .of_call = true,
                  .call = point.call,
                  .fault = point.kind,
                  .code = code,
                  .text = subject});
  }
  ++context.faults.fired[static_cast<std::size_t>(point.call)][static_cast<std::size_t>(point.kind)];
  ++context.faults.total;
  count_cell(point, struck_);
  context.log.event(context.clock.now_ns(), "fault",
                    std::array{static_cast<std::uint64_t>(point.step), static_cast<std::uint64_t>(point.call),
                               static_cast<std::uint64_t>(point.nth), static_cast<std::uint64_t>(point.kind),
                               static_cast<std::uint64_t>(static_cast<std::int64_t>(code))},
                    [&] {
                      return fmt::format("{} of {} {}{}{}{}{}", name_of(point.kind), name_of(point.call), point.nth,
                                         code == 0 ? "" : ", seen as ",
                                         code == 0 ? std::string() : std::to_string(code), subject.empty() ? "" : ": ",
                                         subject);
                    });
  mark_combination(point, code);
  fired.push_back({ordinal, point, origin, code, std::move(subject)});
}

// What the faults of one step come to together.
void Injector::Impl::mark_combination(const FaultPoint& point, std::int32_t code) {
  MarkCounts& marks = context.marks;
  if (!fired.empty()) marks.reach(Mark::two_faults_in_step);
  if (std::ranges::any_of(fired, [&](const FiredFault& other) { return other.point == point; })) {
    marks.reach(Mark::fault_fired_again);
  }
  const bool clean_up = point.call == Call::put_abort || point.call == Call::cancel_get_transfer ||
                        point.call == Call::release_views || point.call == Call::remove ||
                        point.call == Call::host_unregister || point.call == Call::file_remove;
  if (code != 0 && clean_up && failed_in_step(point)) marks.reach(Mark::clean_up_failed);
  if (point.kind == FaultKind::death && failed_in_step(point)) marks.reach(Mark::death_after_failure);
  if (point.kind == FaultKind::gone && failed_in_step(point)) marks.reach(Mark::restart_after_failure);
}

bool Injector::Impl::failed_in_step(const FaultPoint& besides) const {
  return std::ranges::any_of(
      fired, [&](const FiredFault& other) { return other.code != 0 && other.point.call != besides.call; });
}

void Injector::Impl::count_cell(const FaultPoint& point, CallState state) {
  const auto index = cell_index(point.call, point.kind, point.code, state);
  if (index) ++context.faults.cells[*index];
}

CallState Injector::Impl::state_of(Call call, const Subject& subject) const {
  using enum CallState;
  switch (call) {
    case Call::wait_local_segments_ready:
      return owner.incarnation() == 1 ? first : after_restart;
    case Call::local_fast_put_start: {
      const CallState keys = state_of_keys(subject.keys);
      if (owner.has_room(subject.keys.size(), subject.value_bytes)) return keys;
      constexpr auto kNoSlots = static_cast<unsigned>(absent_no_slots) - static_cast<unsigned>(absent);
      return static_cast<CallState>(static_cast<unsigned>(keys) + kNoSlots);
    }
    case Call::remove: {
      const CallState key = state_of_keys(subject.keys);
      return key == reserved ? absent : key;  // nothing that a removal could find
    }
    case Call::get_start: {
      std::size_t there = 0;
      for (const std::string_view key : subject.keys) {
        const auto view = owner.peek(key);
        if (view && view->state == fakes::KeyState::local_visible) return not_routed;
        if (view && view->state == fakes::KeyState::committed) ++there;
      }
      return there == subject.keys.size() ? all : there > 0 ? some : none;
    }
    case Call::get_transfer: {
      const auto values = owner.transferable(subject.handle);
      return values && subject.prefix_len < *values ? shorter_prefix : whole_prefix;
    }
    case Call::host_register: {
      const Segment* mapping = mapping_of(subject.host);
      const bool read_side = mapping != nullptr && subject.host - mapping->read_ptr < mapping->len;
      return read_side ? read_mapping : write_mapping;
    }
    case Call::copy_batch:
      return std::ranges::any_of(subject.copies, [](const Copy& copy) { return copy.bytes >= kLargeValueBytes; })
                 ? large_values
                 : small_values;
    default:
      return any;
  }
}

CallState Injector::Impl::state_of_keys(Keys keys) const {
  auto state = CallState::absent;
  for (const std::string_view key : keys) {
    const auto view = owner.peek(key);
    if (!view) continue;
    const auto here =
        static_cast<CallState>(static_cast<unsigned>(CallState::reserved) + static_cast<unsigned>(view->state));
    state = std::max(state, here);
  }
  return state;
}

void Injector::Impl::die(const FaultPoint& point) {
  const bool file = point.call >= Call::file_read;
  const bool runtime = point.call >= Call::host_register && !file;
  fire(point,
       file      ? Origin::file_system
       : runtime ? Origin::cuda
                 : Origin::fluxon,
       file      ? EIO
       : runtime ? static_cast<std::int32_t>(kContextIsDestroyed)
                 : static_cast<std::int32_t>(FluxonErrc::store_closed));
  if (context.step_kind == StepKind::generate) context.marks.reach(Mark::death_during_put);
  if (context.step_kind == StepKind::resume) context.marks.reach(Mark::death_during_get);
  if (context.step_kind == StepKind::snapshot) context.marks.reach(Mark::death_during_snapshot);
  if (point.call == Call::remove || context.step_kind == StepKind::evict || context.step_kind == StepKind::make_room) {
    context.marks.reach(Mark::death_during_remove);
  }
  end_client();
}

void Injector::Impl::end_client() {
  dead = true;
  due_lie = nullptr;
  strangers.clear();
  strangers_seen.clear();
  // A copy that a real device lets come to its end does so before its memory is another's.
  device.client_died();
  owner.client_died();
}

void Injector::Impl::restart_owner(std::string_view because) {
  if (!owner.powers().takes_choices) return;
  if (owner.live_plans() > 0) context.marks.reach(Mark::restart_with_plan_open);
  if (++in_step.owner_restarts == 2) context.marks.reach(Mark::restarted_twice);
  if (context.step_kind == StepKind::generate) context.marks.reach(Mark::restart_during_put);
  if (context.step_kind == StepKind::resume) context.marks.reach(Mark::restart_during_get);
  if (!mappings.empty() && owner.incarnation() >= mappings.size()) {
    const Segment& next = mappings[owner.incarnation() % mappings.size()];
    // Others that map the segment know that a registration must end first.
    std::erase_if(strangers, [&](const Stranger& stranger) {
      const bool here = mapping_of(stranger.base) == &next && !device.in_flight(next.write_ptr, next.len);
      if (here) static_cast<void>(device.host_unregister(stranger.base));
      return here;
    });
    device.remapped(next.write_ptr, next.len);
    device.remapped(next.read_ptr, next.len);
  }
  owner.restart();
  context.log.event(context.clock.now_ns(), "owner restart", std::array{owner.incarnation()}, [&] {
    return fmt::format("incarnation {}{}{}", owner.incarnation(), because.empty() ? "" : ", just before ", because);
  });
}

const Segment* Injector::Impl::mapping_of(std::uintptr_t address) const {
  for (const Segment& mapping : mappings) {
    if (address - mapping.write_ptr < mapping.len || address - mapping.read_ptr < mapping.len) return &mapping;
  }
  return nullptr;
}

bool Injector::Impl::evict(std::uint64_t seed, Keys keys) {
  std::uint64_t evicted = 0;
  for (const std::string_view key : keys) evicted += owner.evict(key) ? 1 : 0;
  if (seed != 0 || keys.empty()) {
    const std::vector<std::string> others = owner.evictable_keys();
    Rng rng(seed);
    for (const std::string& key : others) {
      if (rng.ratio(1, 4)) evicted += owner.evict(key) ? 1 : 0;
    }
    if (evicted == 0 && !others.empty()) evicted += owner.evict(others[rng.below(others.size())]) ? 1 : 0;
  }
  if (evicted == 0) return false;
  context.log.event(context.clock.now_ns(), "owner evicts", std::array{evicted},
                    [&] { return fmt::format("{} values", evicted); });
  return true;
}

Error Injector::Impl::fluxon_failure(Call call, std::int32_t code, std::string_view detail) {
  return fluxon_error(static_cast<FluxonErrc>(code), name_of(call), std::string(detail));
}

Error Injector::Impl::cuda_failure(Call call, std::int32_t code, std::string_view detail) {
  return cuda_error(static_cast<CudaErrc>(code), name_of(call), std::string(detail));
}

Error Injector::Impl::file_failure(Call call, std::int32_t code, const std::string& path) {
  Error error;
  error.origin = Origin::file_system;
  error.code = code;
  error.call = name_of(call).substr(std::string_view("file_").size());
  error.detail = path + (code == ENOSPC ? ": no space left on device" : ": input/output error");
  return error;
}

Error Injector::Impl::dead_fluxon(Call call) {
  return fluxon_error(FluxonErrc::store_closed, name_of(call), "the store is closed");
}
Error Injector::Impl::dead_cuda(Call call) {
  return cuda_error(kContextIsDestroyed, name_of(call), "context is destroyed");
}
Error Injector::Impl::dead_file(Call call, const std::string& path) { return file_failure(call, EIO, path); }

Injector::Injector(RunContext& context, FluxonBackend& fluxon, CudaBackend& cuda, FileBackend& files,
                   fakes::Owner& owner, fakes::FakeCuda& device)
    : impl_(std::make_unique<Impl>(context, fluxon, cuda, files, owner, device)) {}
Injector::~Injector() = default;

void Injector::load(const Trace& trace) { impl_->load(trace); }

FluxonBackend& Injector::fluxon() { return *impl_->fluxon; }
CudaBackend& Injector::cuda() { return *impl_->cuda; }
FileBackend& Injector::files() { return *impl_->files; }

const std::vector<FiredFault>& Injector::fired() const { return impl_->fired; }
void Injector::begin_step() { impl_->begin_step(); }
void Injector::swap_step(StepFaults& others) { std::swap(impl_->in_step, others); }
bool Injector::client_dead() const { return impl_->dead; }

void Injector::new_incarnation() {
  if (!impl_->dead) impl_->end_client();
  impl_->dead = false;
  impl_->owner.new_client();
}

bool Injector::context_dead() const { return impl_->context_dead || impl_->device.context_dead(); }
void Injector::tear_down() {
  impl_->context_dead = false;
  impl_->strangers.clear();
  impl_->strangers_seen.clear();
}
void Injector::expect_mappings(std::vector<Segment> mappings) { impl_->mappings = std::move(mappings); }
void Injector::end_faults() {
  std::erase_if(impl_->strangers, [&](const Impl::Stranger& stranger) {
    // Of an older mapping nobody relies on it. Under a copy even a stranger holds on.
    const Segment* mapping = impl_->mapping_of(stranger.base);
    const bool stale = stranger.incarnation != impl_->owner.incarnation() && mapping != nullptr &&
                       !impl_->device.in_flight(mapping->write_ptr, mapping->len) &&
                       !impl_->device.in_flight(mapping->read_ptr, mapping->len);
    const bool ends = !stranger.whole || stale;
    if (ends) static_cast<void>(impl_->device.host_unregister(stranger.base));
    return ends;
  });
}
void Injector::restart_owner() { impl_->restart_owner(""); }
void Injector::reset() { impl_->reset(); }

}  // namespace holdfast::sim
