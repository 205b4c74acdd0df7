#include "holdfast/fakes/fluxon_owner.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <utility>

#include "fluxon_owner_state.hpp"
#include "hex_offset.hpp"

namespace holdfast::fakes {
namespace {

constexpr std::size_t kFirstHandleSlots = 64;

// The earliest on top of a heap; what was added first goes first.
bool later(const auto& left, const auto& right) {
  return left.due_ns != right.due_ns ? left.due_ns > right.due_ns : left.order > right.order;
}

}  // namespace

FakeOwner::FakeOwner(Arena& arena, VirtualClock& clock, const OwnerOptions& options)
    : FakeOwner(arena, arena, clock, options) {}

FakeOwner::FakeOwner(SegmentMemory& segments, Arena& heap, VirtualClock& clock, const OwnerOptions& options)
    : state_(std::make_unique<State>(segments, heap, clock)) {
  reset(options);
  clock.add(*this);
}

FakeOwner::~FakeOwner() { state_->clock.remove(*this); }

void FakeOwner::reset(const OwnerOptions& options) {
  State& state = *state_;
  state.options = options;
  state.options.grant_bytes = std::min(options.grant_bytes, options.segment_bytes);
  state.clear();
  state.pools.resize(std::max<std::size_t>(state.pools.size(), options.mappings));
  state.pool_incarnation.assign(state.pools.size(), 0);
  for (std::unique_ptr<SlotPool>& pool : state.pools) {
    if (pool == nullptr) continue;
    if (pool->region().bytes >= options.segment_bytes) {
      pool->reset(state.slot_options(), state.memory);
    } else {
      state.memory.unmap_segment(pool->region());
      pool.reset();
    }
  }
  state.incarnation = 0;
  state.generation = options.first_generation;
  state.begin_incarnation();
}

// Everything but the mappings is as at the start.
void FakeOwner::State::clear() {
  keys.clear();
  for (std::uint32_t id = 0; id < values.end(); ++id) values[id].use = 0;
  for (std::uint32_t id = 0; id < commits.end(); ++id) commits[id].live = false;
  values.clear();
  plans.clear();
  handles.clear();
  commits.clear();
  blobs.reset();
  stored = plan_timeouts = handle_timeouts = {};
  dropping.clear();
  orphaned_pins.clear();
  handle_by_number.assign(kFirstHandleSlots, kNone);
  events.clear();
  event_order = plan_number = handle_number = batch_number = 0;
  commit_choice.reset();
  get_start_choice.reset();
  abort_choice.reset();
  release_pins_choice = cancel_pins_choice = false;
  release_delay_choice_ns.reset();
  mounted_at_ns = 0;
  client = Client::alive;
  ++client_number;
  connected = true;
  live_plans = live_handles = undecided_commits = pins = prepared_slots = stored_keys = stored_bytes = held_bytes = 0;
  value_damages = 0;
  incidents.clear();
}

void FakeOwner::State::begin_incarnation() {
  ++incarnation;
  const std::size_t mapping = (incarnation - 1) % options.mappings;
  if (pools[mapping] == nullptr) {
    pools[mapping] = std::make_unique<SlotPool>(memory.map_segment(options.segment_bytes), slot_options());
  } else if (pool_incarnation[mapping] != 0) {
    pools[mapping]->recycle();
  }
  pool_incarnation[mapping] = incarnation;
  pool = pools[mapping].get();
}

Result<std::uint32_t> FakeOwner::State::end_of_plan(PlanPtr plan, std::string_view call) {
  if (Status can = usable(call); !can) return std::move(can.error());
  const std::uint32_t id = blobs.mark(plan.address);
  if (id == kStaleBlob) {
    blobs.set_mark(plan.address, kNone);
    return kNone;
  }
  if (id == kNone || plans[id].stage != PlanStage::open) {
    return fluxon_error(FluxonErrc::invalid_argument, call, "not an open plan");
  }
  --live_plans;
  return id;
}

Status FakeOwner::State::usable(std::string_view call) const {
  if (client == Client::closed) return fluxon_error(FluxonErrc::general, call, "the client is closed");
  if (client == Client::dead) return fluxon_error(FluxonErrc::store_closed, call, "the client is gone");
  return {};
}

Status FakeOwner::State::reachable(std::string_view call) const {
  if (clock.now_ns() < mounted_at_ns && client == Client::alive) {
    return fluxon_error(FluxonErrc::backend_unavailable, call, "not mounted");
  }
  return usable(call);
}

void FakeOwner::State::collect_damage() {
  for (const Damage& damage : pool->damages()) {
    Incident incident;
    incident.kind = damage.free_slot ? IncidentKind::free_slot_written : IncidentKind::red_zone_written;
    incident.found_at_ns = clock.now_ns();
    incident.where = "seg g" + std::to_string(incarnation) + hex_offset(damage.slot_offset);
    incident.slot_offset = damage.slot_offset;
    incident.first_wrong_byte = damage.first_wrong_byte;
    if (damage.last_key != kNone) incident.last_key = keys[damage.last_key].name;
    incident.last_plan = damage.last_plan;
    incidents.push_back(std::move(incident));
  }
  pool->damages().clear();
  for (const std::uint32_t key : pool->dropped_keys()) keys.unrefer(key);
  pool->dropped_keys().clear();
}

void FakeOwner::State::add_incident(IncidentKind kind, const Plan& plan) {
  Incident incident;
  incident.kind = kind;
  incident.found_at_ns = clock.now_ns();
  incident.last_plan = plan.number;
  if (!plan.names.empty()) incident.last_key = plan.names.front();
  incidents.push_back(std::move(incident));
}

Result<std::vector<Segment>> FakeOwner::wait_local_segments_ready() {
  constexpr std::string_view kCall = "wait_local_segments_ready";
  State& state = *state_;
  while (state.client == State::Client::alive && state.clock.now_ns() < state.mounted_at_ns) {
    if (state.mounted_at_ns == kNever) return fluxon_error(FluxonErrc::timeout, kCall, "never mounted");
    state.clock.wait_until(state.mounted_at_ns);
  }
  if (Status usable = state.usable(kCall); !usable) return std::move(usable.error());
  state.connected = true;
  return std::vector<Segment>{segment()};
}

void FakeOwner::choose_next_commit(CommitChoice choice) { state_->commit_choice = std::move(choice); }
void FakeOwner::choose_next_get_start(GetStartChoice choice) { state_->get_start_choice = choice; }
void FakeOwner::choose_next_abort(AbortChoice choice) { state_->abort_choice = choice; }
void FakeOwner::choose_next_release_pins() { state_->release_pins_choice = true; }
void FakeOwner::choose_next_release_drops_after(Nanos delay_ns) { state_->release_delay_choice_ns = delay_ns; }
void FakeOwner::choose_next_cancel_pins() { state_->cancel_pins_choice = true; }
void FakeOwner::mount_at(Nanos instant_ns) { state_->mounted_at_ns = instant_ns; }

std::optional<KeyView> FakeOwner::peek(std::string_view key) const {
  const std::uint32_t id = state_->keys.find(key);
  if (id == kNone) return std::nullopt;
  const KeyTable::Key& known = state_->keys[id];
  if (known.stored != kNone) return state_->view(known.stored);
  if (known.prepared != kNone) return state_->view(known.prepared);
  return std::nullopt;
}

std::optional<PlanView> FakeOwner::plan(PlanPtr plan_ptr) const {
  const std::uint32_t id = state_->blobs.mark(plan_ptr.address);
  if (id == kNone || id == State::kStaleBlob) return std::nullopt;
  const Plan& plan = state_->plans[id];
  PlanView view;
  view.kind = plan.kind;
  view.number = plan.number;
  view.generation = plan.generation;
  view.keys = plan.names;
  view.addresses = plan.addresses;
  view.value_bytes = plan.value_bytes;
  view.started_at_ns = plan.started_at_ns;
  view.expired = plan.expired;
  view.committing = plan.stage == PlanStage::committing;
  return view;
}

std::optional<std::uint64_t> FakeOwner::transferable(GetHandle handle) const {
  const std::uint32_t id = state_->find_handle(handle);
  if (id == kNone) return std::nullopt;
  return state_->handles[id].values.size();
}

bool FakeOwner::has_room(std::uint64_t count, std::uint64_t value_bytes) const {
  return state_->pool->has_room(count, value_bytes);
}

Segment FakeOwner::segment() const {
  const DualRegion& region = state_->pool->region();
  return {"external_owner:0", region.write_base, region.read_base, state_->pool->segment_bytes(),
          state_->generation, "node-0"};
}

std::uint64_t FakeOwner::generation() const { return state_->generation; }
std::uint64_t FakeOwner::incarnation() const { return state_->incarnation; }
std::uint64_t FakeOwner::live_plans() const { return state_->live_plans; }
std::uint64_t FakeOwner::live_handles() const { return state_->live_handles; }
std::uint64_t FakeOwner::undecided_commits() const { return state_->undecided_commits; }
std::uint64_t FakeOwner::holders() const { return state_->pins; }
std::uint64_t FakeOwner::prepared_slots() const { return state_->prepared_slots; }
std::uint64_t FakeOwner::stored_keys() const { return state_->stored_keys; }
std::uint64_t FakeOwner::stored_bytes() const { return state_->stored_bytes; }
std::uint64_t FakeOwner::held_bytes() const { return state_->held_bytes; }
std::uint64_t FakeOwner::damages() const { return state_->value_damages; }

void FakeOwner::visit_stored_keys(StoredVisitor visitor, void* context) const {
  for (std::uint32_t at = state_->stored.first; at != kNone; at = state_->values[at].link.after) {
    visitor(context, state_->keys[state_->values[at].key].name, state_->view(at));
  }
}

Place FakeOwner::place_of(std::uintptr_t address) const {
  if (state_->blobs.contains(address)) return {Place::Kind::plan_blob, 0, false, state_->blobs.offset(address)};
  for (std::size_t mapping = 0; mapping < state_->pools.size(); ++mapping) {
    const SlotPool* pool = state_->pools[mapping].get();
    const std::uint64_t incarnation = state_->pool_incarnation[mapping];
    if (pool == nullptr || incarnation == 0) continue;
    const DualRegion& region = pool->region();
    if (address - region.write_base < pool->segment_bytes()) {
      return {Place::Kind::segment, incarnation, false, address - region.write_base};
    }
    if (address - region.read_base < pool->segment_bytes()) {
      return {Place::Kind::segment, incarnation, true, address - region.read_base};
    }
  }
  return {};
}

void FakeOwner::check_all_slots() {
  state_->pool->check_all();
  state_->collect_damage();
}

std::vector<Incident> FakeOwner::take_incidents() { return std::exchange(state_->incidents, {}); }
bool FakeOwner::has_incidents() const { return !state_->incidents.empty(); }

void FakeOwner::State::add_event(Event event) {
  event.order = ++event_order;
  events.push_back(event);
  std::push_heap(events.begin(), events.end(),
                 [](const Event& left, const Event& right) { return later(left, right); });
}

Nanos FakeOwner::next_due_ns() const {
  const State& state = *state_;
  Nanos due_ns = kNever;
  if (!state.events.empty()) due_ns = state.events.front().due_ns;
  if (!state.dropping.empty()) due_ns = std::min(due_ns, state.plans[state.dropping.front()].drop_at_ns);
  if (state.plan_timeouts.first != kNone) {
    due_ns = std::min(due_ns, state.plans[state.plan_timeouts.first].started_at_ns + kPlanTimeout);
  }
  if (state.handle_timeouts.first != kNone) {
    due_ns = std::min(due_ns, state.handles[state.handle_timeouts.first].times_out_at_ns);
  }
  return due_ns;
}

void FakeOwner::run_due(Nanos now_ns) {
  State& state = *state_;
  while (!state.events.empty() && state.events.front().due_ns <= now_ns) {
    const Event event = state.events.front();
    std::pop_heap(state.events.begin(), state.events.end(),
                  [](const Event& left, const Event& right) { return later(left, right); });
    state.events.pop_back();
    state.run_event(event);
  }
  while (!state.dropping.empty() && state.plans[state.dropping.front()].drop_at_ns <= now_ns) {
    const std::uint32_t id = state.dropping.front();
    state.dropping.pop_front();
    state.drop_pins(id);
  }
  while (state.plan_timeouts.first != kNone &&
         state.plans[state.plan_timeouts.first].started_at_ns + kPlanTimeout <= now_ns) {
    state.expire_plan(state.plan_timeouts.first);
  }
  while (state.handle_timeouts.first != kNone && state.handles[state.handle_timeouts.first].times_out_at_ns <= now_ns) {
    state.time_out_handle(state.handle_timeouts.first);
  }
}

void FakeOwner::State::run_event(const Event& event) {
  switch (event.kind) {
    case Event::Kind::end_commit: {
      CommitRecord& commit = commits[event.record];
      --undecided_commits;
      end_plan(std::exchange(commit.plan, kNone));
      --commit.events;
      end_if_unused(event.record);
      break;
    }
    case Event::Kind::route_commit: {
      CommitRecord& commit = commits[event.record];
      for (const ValueRef ref : commit.values) route_value(ref);
      --commit.events;
      end_if_unused(event.record);
      break;
    }
    case Event::Kind::store_value:
      store_value(event.record, true);
      add_event({event.due_ns + event.route_after_ns, 0, Event::Kind::route_value, event.record, event.use, 0});
      break;
    case Event::Kind::route_value:
      route_value({event.record, event.use});
      break;
    case Event::Kind::drop_orphans: {
      std::vector<std::uint32_t> waiting = std::exchange(orphaned_pins, {});
      for (const std::uint32_t id : waiting) {
        if (plans[id].drop_at_ns <= event.due_ns) {
          drop_pins(id);
        } else {
          orphaned_pins.push_back(id);
        }
      }
      break;
    }
  }
}

}  // namespace holdfast::fakes
