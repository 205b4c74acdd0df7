// Handles, read plans, removal, and whole values read.
#include <algorithm>
#include <cstring>

#include "fluxon_owner_state.hpp"

namespace holdfast::fakes {

std::uint32_t FakeOwner::State::find_handle(GetHandle handle) const {
  const std::uint32_t id = handle_by_number[handle.number & (handle_by_number.size() - 1)];
  return id != kNone && handles[id].number == handle.number ? id : kNone;
}

// A number of this generation takes the place of the same number of an earlier one.
void FakeOwner::State::enter_handle(std::uint32_t id) {
  const std::uint64_t number = handles[id].number;
  std::size_t mask = handle_by_number.size() - 1;
  for (std::uint32_t there = handle_by_number[number & mask]; there != kNone; there = handle_by_number[number & mask]) {
    if (handles[there].stage == HandleStage::stale && handles[there].number == number) {
      end_handle(there);
      break;
    }
    std::vector<std::uint32_t> before(2 * handle_by_number.size(), kNone);
    std::swap(before, handle_by_number);
    mask = handle_by_number.size() - 1;
    for (const std::uint32_t other : before) {
      if (other != kNone) handle_by_number[handles[other].number & mask] = other;
    }
  }
  handle_by_number[number & mask] = id;
}

void FakeOwner::State::end_handle(std::uint32_t id) {
  Handle& handle = handles[id];
  handle_by_number[handle.number & (handle_by_number.size() - 1)] = kNone;
  if (handle.stage == HandleStage::open) {
    --live_handles;
    if (handle.needs_transfer) handle_timeouts.remove(handles, id);
  }
  handle.stage = HandleStage::none;
  handle.values.clear();
  handles.give(id);
}

void FakeOwner::State::time_out_handle(std::uint32_t id) {
  Handle& handle = handles[id];
  handle_timeouts.remove(handles, id);
  --live_handles;
  handle.stage = HandleStage::timed_out;
  unpin_all(handle.values);
}

Result<GetStart> FakeOwner::get_start(Keys keys, bool prefix_best_effort,
                                      std::span<const std::uint32_t> atomic_group_lens) {
  constexpr std::string_view kCall = "get_start";
  State& state = *state_;
  if (Status reachable = state.reachable(kCall); !reachable) return std::move(reachable.error());
  state.connected = true;
  if (keys.empty()) return fluxon_error(FluxonErrc::invalid_argument, kCall, "no keys");
  std::uint64_t grouped = 0;
  for (const std::uint32_t len : atomic_group_lens) {
    if (len == 0) return fluxon_error(FluxonErrc::invalid_argument, kCall, "an empty group");
    grouped += len;
  }
  if (!atomic_group_lens.empty() && grouped != keys.size()) {
    return fluxon_error(FluxonErrc::invalid_argument, kCall, "groups do not add up to the keys");
  }
  const GetStartChoice choice = std::exchange(state.get_start_choice, std::nullopt).value_or(GetStartChoice{});

  const std::uint32_t id = state.handles.take();
  Handle& handle = state.handles[id];
  handle.stage = HandleStage::open;
  handle.needs_transfer = choice.needs_transfer;
  handle.number = ++state.handle_number;
  handle.values.clear();
  handle.group_ends.clear();

  for (const std::string_view name : keys) {
    if (choice.failing_key_index == handle.values.size()) break;
    const std::uint32_t key = state.keys.find(name);
    if (key == kNone || state.keys[key].stored == kNone) break;
    handle.values.push_back(state.keys[key].stored);
  }
  GetStart answer;
  answer.handle = {handle.number};
  answer.raw_prefix_hit_len = handle.values.size();
  answer.first_miss_index = handle.values.size();
  answer.all_hit = handle.values.size() == keys.size();
  std::uint64_t end = 0;
  const std::size_t groups = std::max<std::size_t>(atomic_group_lens.size(), 1);
  for (std::size_t group = 0; group < groups; ++group) {
    end += atomic_group_lens.empty() ? keys.size() : atomic_group_lens[group];
    if (end > handle.values.size()) break;
    handle.group_ends.push_back(end);
  }
  answer.first_miss_group = handle.group_ends.size();
  if (!prefix_best_effort && !answer.all_hit) handle.group_ends.clear();
  answer.prefix_hit_groups = handle.group_ends.size();
  answer.transferable_len = handle.group_ends.empty() ? 0 : handle.group_ends.back();
  handle.values.resize(answer.transferable_len);
  for (const std::uint32_t value : handle.values) state.pin(value);

  state.enter_handle(id);
  ++state.live_handles;
  handle.times_out_at_ns = kNever;
  if (handle.needs_transfer) {
    handle.times_out_at_ns = state.clock.now_ns() + kHandleTimeout;
    state.handle_timeouts.append(state.handles, id);
  }
  return answer;
}

Result<PlanPtr> FakeOwner::get_transfer(GetHandle number, std::uint64_t prefix_len) {
  constexpr std::string_view kCall = "get_transfer";
  State& state = *state_;
  if (Status usable = state.usable(kCall); !usable) return std::move(usable.error());
  const std::uint32_t id = state.find_handle(number);
  if (id == kNone) return fluxon_error(FluxonErrc::invalid_argument, kCall, "no such handle");
  Handle& handle = state.handles[id];
  if (handle.stage == HandleStage::stale) {
    state.end_handle(id);
    return fluxon_error(FluxonErrc::backend_unavailable, kCall, "the owner restarted");
  }
  if (std::find(handle.group_ends.begin(), handle.group_ends.end(), prefix_len) == handle.group_ends.end()) {
    return fluxon_error(FluxonErrc::invalid_argument, kCall, "not a length that ends a transferable group");
  }
  if (handle.stage == HandleStage::timed_out) {
    state.end_handle(id);
    return fluxon_error(FluxonErrc::key_not_found, kCall, "the handle timed out");
  }
  const std::uint32_t plan_id = state.open_plan(PlanKind::read, prefix_len);
  if (plan_id == kNone) {
    state.unpin_all(handle.values);
    state.end_handle(id);
    return fluxon_error(FluxonErrc::resource_exhausted, kCall, "no memory for the plan blob");
  }
  Plan& plan = state.plans[plan_id];
  for (std::uint64_t at = 0; at < handle.values.size(); ++at) {
    const std::uint32_t value = handle.values[at];
    if (at >= prefix_len) {
      state.unpin(value);
      continue;
    }
    plan.values.push_back(value);
    plan.names.push_back(state.keys[state.values[value].key].name);
    plan.addresses.push_back(state.pool->read_address(state.values[value].slot));
  }
  plan.value_bytes = state.values[plan.values.front()].value_bytes;
  state.write_blob(plan);
  state.end_handle(id);
  return PlanPtr{plan.blob};
}

Status FakeOwner::cancel_get_transfer(GetHandle number) {
  constexpr std::string_view kCall = "cancel_get_transfer";
  State& state = *state_;
  if (Status usable = state.usable(kCall); !usable) return usable;
  const std::uint32_t id = state.find_handle(number);
  if (id == kNone) return fluxon_error(FluxonErrc::invalid_argument, kCall, "no such handle");
  Handle& handle = state.handles[id];
  const bool open = handle.stage == HandleStage::open;
  const bool pins_stay = open && std::exchange(state.cancel_pins_choice, false);
  if (pins_stay) {
    state.hand_pins_to_orphan(handle.values);
  } else {
    state.unpin_all(handle.values);
  }
  state.end_handle(id);
  if (pins_stay) return fluxon_error(FluxonErrc::network, kCall, "its pins may stay until the client leaves");
  return {};
}

Status FakeOwner::release_views(PlanPtr plan_ptr) {
  constexpr std::string_view kCall = "release_views";
  State& state = *state_;
  const Result<std::uint32_t> ending = state.end_of_plan(plan_ptr, kCall);
  if (!ending) return ending.error();
  const std::uint32_t id = *ending;
  if (id == kNone) return {};
  Plan& plan = state.plans[id];
  if (plan.kind == PlanKind::put) {
    state.add_incident(IncidentKind::release_of_put_plan, plan);
    state.free_blob(plan);
    plan.stage = PlanStage::orphaned;
    if (plan.expired) state.end_plan(id);
    return {};
  }
  state.free_blob(plan);
  if (std::exchange(state.release_pins_choice, false)) {
    state.orphan_pins(id);
    return fluxon_error(FluxonErrc::network, kCall, "its pins may stay until the client leaves");
  }
  const Nanos delay_ns =
      std::exchange(state.release_delay_choice_ns, std::nullopt).value_or(state.options.holder_drop_delay_ns);
  if (delay_ns == 0) {
    state.drop_pins(id);
  } else {
    plan.stage = PlanStage::dropping;
    plan.drop_at_ns = state.clock.now_ns() + delay_ns;
    state.dropping.push_back(id);
  }
  return {};
}

void FakeOwner::State::drop_pins(std::uint32_t id) {
  unpin_all(plans[id].values);
  end_plan(id);
}

void FakeOwner::State::orphan_pins(std::uint32_t id) {
  plans[id].stage = PlanStage::orphaned;
  plans[id].drop_at_ns = kNever;
  orphaned_pins.push_back(id);
}

// The pins of a handle outlive it as those of a read plan that nobody can name.
void FakeOwner::State::hand_pins_to_orphan(std::vector<std::uint32_t>& ids) {
  if (ids.empty()) return;
  const std::uint32_t id = plans.take();
  Plan& plan = plans[id];
  plan.kind = PlanKind::read;
  plan.blob = 0;
  plan.keys.clear();
  plan.values.clear();
  std::swap(plan.values, ids);
  orphan_pins(id);
}

Status FakeOwner::remove(std::string_view key) {
  constexpr std::string_view kCall = "remove";
  State& state = *state_;
  if (Status reachable = state.reachable(kCall); !reachable) return reachable;
  state.connected = true;
  const std::uint32_t id = state.keys.find(key);
  const std::uint32_t value = id == kNone ? kNone : state.keys[id].stored;
  // What has no route yet is not found, and appears later.
  if (value == kNone || state.values[value].state != ValueState::committed) {
    return fluxon_error(FluxonErrc::key_not_found, kCall, std::string(key));
  }
  state.drop_route(value);
  return {};
}

Result<std::vector<std::byte>> FakeOwner::get(std::string_view key) {
  constexpr std::string_view kCall = "get";
  State& state = *state_;
  if (Status reachable = state.reachable(kCall); !reachable) return std::move(reachable.error());
  state.connected = true;
  const std::uint32_t id = state.keys.find(key);
  const std::uint32_t value = id == kNone ? kNone : state.keys[id].stored;
  if (value == kNone) return fluxon_error(FluxonErrc::key_not_found, kCall, std::string(key));
  const auto* bytes = reinterpret_cast<const std::byte*>(state.pool->read_address(state.values[value].slot));
  return std::vector<std::byte>(bytes, bytes + state.values[value].value_bytes);
}

}  // namespace holdfast::fakes
