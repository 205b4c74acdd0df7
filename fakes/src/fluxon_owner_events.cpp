// What happens to an owner and its client without a call: evictions, restarts, deaths.
#include "fluxon_owner_state.hpp"

namespace holdfast::fakes {

bool FakeOwner::evict(std::string_view key) {
  State& state = *state_;
  const std::uint32_t id = state.keys.find(key);
  const std::uint32_t value = id == kNone ? kNone : state.keys[id].stored;
  if (value == kNone || state.values[value].state != ValueState::committed || state.values[value].holders > 0) {
    return false;
  }
  state.drop_route(value);
  return true;
}

bool FakeOwner::damage(std::string_view key, std::uint64_t draw) {
  State& state = *state_;
  const std::uint32_t id = state.keys.find(key);
  if (id == kNone || state.keys[id].stored == kNone) return false;
  Value& value = state.values[state.keys[id].stored];
  if (value.state != ValueState::committed || value.holders > 0 || value.damaged) return false;
  auto* bytes = reinterpret_cast<std::uint8_t*>(state.pool->write_address(value.slot));
  bytes[draw % value.value_bytes] ^= static_cast<std::uint8_t>(1U << (draw / value.value_bytes % 8));
  value.damaged = true;
  ++state.value_damages;
  return true;
}

void FakeOwner::restart(std::uint64_t generation_step) {
  State& state = *state_;
  // The slots are not let go one by one: the old pages keep their bytes.
  for (std::uint32_t id = 0; id < state.values.end(); ++id) {
    Value& value = state.values[id];
    if (value.state == ValueState::free) continue;
    KeyTable::Key& key = state.keys[value.key];
    key.stored = key.prepared = kNone;
    key.writing = key.committing = 0;
    value.state = ValueState::free;
    ++value.use;
    state.values.give(id);
  }
  for (std::uint32_t id = 0; id < state.plans.end(); ++id) {
    Plan& plan = state.plans[id];
    if (plan.stage == PlanStage::none) continue;
    state.free_blob(plan, plan.stage == PlanStage::open ? State::kStaleBlob : kNone);
    state.end_plan(id);
  }
  for (std::uint32_t id = 0; id < state.handles.end(); ++id) {
    Handle& handle = state.handles[id];
    if (handle.stage == HandleStage::none) continue;
    handle.stage = HandleStage::stale;
    handle.values.clear();
  }
  const Nanos now_ns = state.clock.now_ns();
  for (std::uint32_t id = 0; id < state.commits.end(); ++id) {
    CommitRecord& commit = state.commits[id];
    if (!commit.live) continue;
    if (commit.answer_at_ns > now_ns) {
      commit.answer_at_ns = now_ns;
      commit.codes.assign(commit.codes.size(), static_cast<std::int32_t>(CommitCode::owner_restarted));
    }
    commit.plan = kNone;
    commit.events = 0;
    state.end_if_unused(id);
  }
  state.stored = state.plan_timeouts = state.handle_timeouts = {};
  state.dropping.clear();
  state.orphaned_pins.clear();
  state.events.clear();
  state.live_plans = state.live_handles = state.undecided_commits = 0;
  state.pins = state.prepared_slots = state.stored_keys = state.stored_bytes = state.held_bytes = 0;
  state.handle_number = 0;
  state.connected = false;
  state.generation += generation_step;
  state.begin_incarnation();
}

void FakeOwner::State::end_client(Client how) {
  if (client != Client::alive) return;
  client = how;
  const Nanos reclaim_at_ns = clock.now_ns() + options.dead_client_reclaim_ns;
  for (std::uint32_t id = 0; id < handles.end(); ++id) {
    if (handles[id].stage == HandleStage::none) continue;
    hand_pins_to_orphan(handles[id].values);
    end_handle(id);
  }
  for (std::uint32_t id = 0; id < plans.end(); ++id) {
    Plan& plan = plans[id];
    if (plan.stage == PlanStage::none) continue;
    free_blob(plan);  // it lay on the client's heap
    if (plan.stage != PlanStage::open) continue;
    if (plan.kind == PlanKind::read) {
      orphan_pins(id);
    } else {
      plan.stage = PlanStage::orphaned;
      if (plan.expired) end_plan(id);
    }
  }
  live_plans = 0;
  bool pinned = false;
  for (const std::uint32_t id : orphaned_pins) {
    if (plans[id].drop_at_ns != kNever) continue;
    plans[id].drop_at_ns = reclaim_at_ns;
    pinned = true;
  }
  if (pinned) add_event({reclaim_at_ns, 0, Event::Kind::drop_orphans, 0, 0, 0});
}

void FakeOwner::client_died() { state_->end_client(State::Client::dead); }
void FakeOwner::close() { state_->end_client(State::Client::closed); }

void FakeOwner::new_client() {
  State& state = *state_;
  state.end_client(State::Client::dead);
  state.client = State::Client::alive;
  ++state.client_number;
  state.connected = true;
  // What a restart left of the old client's plans and handles is unknown to this one.
  state.blobs.replace_marks(State::kStaleBlob, kNone);
  for (std::uint32_t id = 0; id < state.handles.end(); ++id) {
    if (state.handles[id].stage != HandleStage::none) state.end_handle(id);
  }
}

}  // namespace holdfast::fakes
