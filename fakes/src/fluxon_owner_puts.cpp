// Put plans and commits.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fluxon_owner_state.hpp"

namespace holdfast::fakes {
namespace {

Status valid_put(Keys keys, std::uint64_t value_len, const PutOptions& options, std::uint64_t grant_bytes) {
  static constexpr std::string_view kCall = "local_fast_put_start";
  const auto refuse = [](std::string detail) {
    return fluxon_error(FluxonErrc::invalid_argument, kCall, std::move(detail));
  };
  if (keys.empty()) return refuse("no keys");
  if (value_len == 0) return refuse("value length 0");
  if (value_len > std::min(kMaxValueBytes, grant_bytes)) return refuse("value longer than a grant");
  if (!options.mask.empty() && options.mask.size() != keys.size()) return refuse("mask does not fit the keys");
  if (options.put_group_lens.empty()) {
    if (keys.size() > kMaxPutGroupKeys) return refuse("more than 4096 keys in one put group");
    return {};
  }
  std::uint64_t grouped = 0;
  for (const std::uint32_t len : options.put_group_lens) {
    if (len == 0) return refuse("an empty put group");
    if (len > kMaxPutGroupKeys) return refuse("more than 4096 keys in one put group");
    grouped += len;
  }
  if (grouped != keys.size()) return refuse("put groups do not add up to the keys");
  return {};
}

void require_possible(const KeyChoice& choice, bool without_bound) {
  const bool stored = choice.fate != KeyChoice::Fate::not_stored;
  const KeyOutcome told = outcome_of(choice.code);
  const bool possible = (told == KeyOutcome::stored       ? stored
                         : told == KeyOutcome::not_stored ? !stored
                                                          : true) &&
                        choice.stored_after_ns >= 0 && (without_bound || choice.stored_after_ns <= kSettleBound);
  if (possible) return;
  std::fprintf(stderr, "choose_next_commit: no owner answers %d with this fate\n", static_cast<int>(choice.code));
  std::abort();
}

}  // namespace

Status FakeOwner::State::wait_for_slots(std::uint64_t count, std::uint64_t value_bytes, Nanos deadline_ns,
                                        std::string_view call) {
  const std::uint64_t incarnation_before = incarnation;
  const std::uint64_t client_before = client_number;
  while (!pool->has_room(count, value_bytes)) {
    if (clock.now_ns() >= deadline_ns) {
      return fluxon_error(FluxonErrc::network, "local_fast_put_start", "no free slots for 30 s");
    }
    clock.wait_until(std::min(clock.next_due_ns(), deadline_ns));
    if (Status still = usable(call); !still) return still;
    if (client_number != client_before) return fluxon_error(FluxonErrc::store_closed, call, "the client is gone");
    if (incarnation != incarnation_before) {
      return fluxon_error(FluxonErrc::backend_unavailable, call, "the owner restarted");
    }
  }
  return {};
}

std::uint32_t FakeOwner::State::open_plan(PlanKind kind, std::uint64_t count) {
  const std::uint32_t id = plans.take();
  Plan& plan = plans[id];
  plan.blob = blobs.take(count + 2, id);
  if (plan.blob == 0) {
    plan.stage = PlanStage::none;
    plans.give(id);
    return kNone;
  }
  plan.kind = kind;
  plan.stage = PlanStage::open;
  plan.expired = false;
  plan.number = ++plan_number;
  plan.generation = generation;
  plan.started_at_ns = clock.now_ns();
  plan.drop_at_ns = kNever;
  plan.values.clear();
  plan.keys.clear();
  plan.names.clear();
  plan.addresses.clear();
  ++live_plans;
  return id;
}

void FakeOwner::State::write_blob(const Plan& plan) {
  auto* words = reinterpret_cast<std::uint64_t*>(plan.blob);
  words[0] = kPlanMagic;
  words[1] = plan.addresses.size();
  std::copy(plan.addresses.begin(), plan.addresses.end(), words + 2);
}

void FakeOwner::State::free_blob(Plan& plan, std::uint32_t mark) {
  if (plan.blob != 0) blobs.give(plan.blob, mark);
  plan.blob = 0;
}

// Gives the slots of keys [first, last) back, unless the plan time-out already did.
void FakeOwner::State::unreserve_from(Plan& plan, std::uint64_t first, std::uint64_t last) {
  if (plan.expired) return;
  for (std::uint64_t at = first; at < last; ++at) unreserve_value(plan.values[at], false);
  plan.values.erase(plan.values.begin() + static_cast<std::ptrdiff_t>(first),
                    plan.values.begin() + static_cast<std::ptrdiff_t>(last));
}

void FakeOwner::State::end_plan(std::uint32_t id) {
  Plan& plan = plans[id];
  free_blob(plan);
  for (const std::uint32_t key : plan.keys) keys.unrefer(key);
  plan.keys.clear();
  plan.values.clear();
  plan.stage = PlanStage::none;
  plans.give(id);
}

void FakeOwner::State::expire_plan(std::uint32_t id) {
  Plan& plan = plans[id];
  unreserve_from(plan, 0, plan.values.size());
  plan_timeouts.remove(plans, id);
  plan.expired = true;
  if (plan.stage == PlanStage::orphaned) end_plan(id);
}

// A key that is merely in flight answers like a stored one.
Status FakeOwner::State::refusal(const KeyTable::Key& key, const PutOptions& put) {
  constexpr std::string_view kCall = "local_fast_put_start";
  if (put.reject_if_exists && (key.stored != kNone || key.committing > 0)) {
    return fluxon_error(FluxonErrc::key_already_exists, kCall, key.name);
  }
  if (put.reject_if_being_written && key.writing > 0) {
    return fluxon_error(FluxonErrc::key_being_written, kCall, key.name);
  }
  return {};
}

Status FakeOwner::State::refusal(const Plan& plan, const PutOptions& put) {
  Status none;
  for (const std::uint32_t key : plan.keys) {
    if (none) none = refusal(keys[key], put);
  }
  return none;
}

// The plan of a put that does not start, unless a restart has ended it, or the client's end orphaned it, meanwhile.
void FakeOwner::State::give_up_start(std::uint32_t id, std::uint64_t number) {
  if (plans[id].number != number || plans[id].stage == PlanStage::none) return;
  if (plans[id].stage == PlanStage::open) --live_plans;
  end_plan(id);
}

Result<PlanPtr> FakeOwner::local_fast_put_start(Keys keys, std::uint64_t value_len, const PutOptions& options) {
  constexpr std::string_view kCall = "local_fast_put_start";
  State& state = *state_;
  if (Status reachable = state.reachable(kCall); !reachable) return std::move(reachable.error());
  if (!std::exchange(state.connected, true)) {
    return fluxon_error(FluxonErrc::backend_unavailable, kCall, "the owner restarted");
  }
  if (Status valid = valid_put(keys, value_len, options, state.options.grant_bytes); !valid) {
    return std::move(valid.error());
  }
  const std::uint32_t id = state.open_plan(PlanKind::put, keys.size());
  if (id == kNone) return fluxon_error(FluxonErrc::resource_exhausted, kCall, "no memory for the plan blob");
  Plan& plan = state.plans[id];
  plan.value_bytes = value_len;

  const std::uint64_t number = plan.number;
  Status ready;
  const std::uint64_t batch = ++state.batch_number;
  for (const std::string_view name : keys) {
    const std::uint32_t key_id = state.keys.refer(name);
    plan.keys.push_back(key_id);
    KeyTable::Key& key = state.keys[key_id];
    plan.names.push_back(key.name);
    if (std::exchange(key.batch, batch) == batch) {
      state.add_incident(IncidentKind::duplicate_key, plan);
      state.incidents.back().last_key = key.name;
      ready = fluxon_error(FluxonErrc::invalid_argument, kCall, "one key twice");
      break;
    }
    if (ready) ready = state.refusal(key, options);
  }
  const Nanos deadline_ns = state.clock.now_ns() + kPutStartWaitLimit;
  while (ready && !state.pool->has_room(keys.size(), value_len)) {
    ready = state.wait_for_slots(keys.size(), value_len, deadline_ns, kCall);
    // Others may have put one of the keys meanwhile.
    if (ready) ready = state.refusal(plan, options);
  }
  if (!ready) {
    state.give_up_start(id, number);
    return std::move(ready.error());
  }
  for (const std::uint32_t key : plan.keys) {
    const std::uint32_t value = state.reserve_value(key, value_len, plan.number);
    plan.values.push_back(value);
    plan.addresses.push_back(state.pool->write_address(state.values[value].slot));
  }
  plan.started_at_ns = state.clock.now_ns();
  state.plan_timeouts.append(state.plans, id);
  state.write_blob(plan);
  return PlanPtr{plan.blob};
}

Result<FakeOwner::Future> FakeOwner::local_fast_put_commit(PlanPtr plan_ptr) {
  constexpr std::string_view kCall = "local_fast_put_commit";
  State& state = *state_;
  if (Status usable = state.usable(kCall); !usable) return std::move(usable.error());
  const std::uint32_t plan_id = state.blobs.mark(plan_ptr.address);
  if (plan_id == State::kStaleBlob) {
    return fluxon_error(FluxonErrc::backend_unavailable, kCall, "the owner restarted");
  }
  if (plan_id == kNone || state.plans[plan_id].kind != PlanKind::put || state.plans[plan_id].stage != PlanStage::open) {
    return fluxon_error(FluxonErrc::invalid_argument, kCall, "not an open put plan");
  }
  const Nanos now_ns = state.clock.now_ns();
  const std::optional<CommitChoice> choice = std::exchange(state.commit_choice, std::nullopt);
  Plan& plan = state.plans[plan_id];
  const std::uint32_t commit_id = state.commits.take();
  CommitRecord& commit = state.commits[commit_id];
  commit.serial = ++state.commit_serial;
  commit.live = commit.future_held = true;
  commit.waited = false;
  commit.fails = choice && choice->future_fails;
  commit.events = 0;
  commit.plan = plan_id;
  commit.client = state.client_number;
  commit.answer_at_ns = now_ns + (choice ? choice->answer_after_ns : 0);
  commit.route_after_ns =
      choice ? choice->route_after_ns.value_or(state.options.route_after_ns) : state.options.route_after_ns;
  commit.values.clear();
  commit.codes.assign(plan.addresses.size(), 0);

  if (plan.expired) {
    commit.codes.assign(plan.addresses.size(), static_cast<std::int32_t>(CommitCode::reservation_gone));
  } else {
    state.plan_timeouts.remove(state.plans, plan_id);
    for (std::size_t at = 0; at < plan.values.size(); ++at) {
      const std::uint32_t value = plan.values[at];
      state.pool->check_red_zone(state.values[value].slot);
      ++state.keys[plan.keys[at]].committing;
      const KeyChoice key = choice && at < choice->keys.size() ? choice->keys[at] : KeyChoice{};
      require_possible(key, choice && choice->without_bound);
      commit.codes[at] = key.code;
      switch (key.fate) {
        case KeyChoice::Fate::stored:
          state.store_value(value, true);
          commit.values.push_back({value, state.values[value].use});
          break;
        case KeyChoice::Fate::not_stored:
          state.unreserve_value(value, true);
          break;
        case KeyChoice::Fate::stored_later:
          if (key.code == 0) commit.answer_at_ns = std::max(commit.answer_at_ns, now_ns + key.stored_after_ns);
          state.add_event({now_ns + key.stored_after_ns, 0, Event::Kind::store_value, value, state.values[value].use,
                           commit.route_after_ns});
          break;
      }
    }
    if (!state.pool->damages().empty()) state.collect_damage();
    plan.values.clear();
  }
  --state.live_plans;
  ++state.undecided_commits;
  plan.stage = PlanStage::committing;
  if (!commit.values.empty()) {
    ++commit.events;
    state.add_event({now_ns + commit.route_after_ns, 0, Event::Kind::route_commit, commit_id, 0, 0});
  }
  ++commit.events;
  if (commit.answer_at_ns > now_ns) {
    state.add_event({commit.answer_at_ns, 0, Event::Kind::end_commit, commit_id, 0, 0});
  } else {
    state.run_event({now_ns, 0, Event::Kind::end_commit, commit_id, 0, 0});
  }
  return Future(std::make_unique<Commit>(state, commit_id, commit.serial));
}

Status FakeOwner::put_abort(PlanPtr plan_ptr) {
  constexpr std::string_view kCall = "put_abort";
  State& state = *state_;
  const Result<std::uint32_t> ending = state.end_of_plan(plan_ptr, kCall);
  if (!ending) return ending.error();
  const std::uint32_t id = *ending;
  if (id == kNone) return {};
  Plan& plan = state.plans[id];
  if (plan.kind == PlanKind::read) {
    state.add_incident(IncidentKind::abort_of_read_plan, plan);
    state.unpin_all(plan.values);
    state.end_plan(id);
    return {};
  }
  const std::optional<AbortChoice> choice = std::exchange(state.abort_choice, std::nullopt);
  if (choice && !plan.expired && choice->first_reserved_key_index < plan.values.size()) {
    state.unreserve_from(plan, 0, choice->first_reserved_key_index);
    state.free_blob(plan);
    plan.stage = PlanStage::orphaned;
  } else {
    if (!plan.expired) state.plan_timeouts.remove(state.plans, id);
    state.unreserve_from(plan, 0, plan.values.size());
    state.end_plan(id);
  }
  if (choice) return fluxon_error(FluxonErrc::network, kCall, "some reservations may stay until the plan time-out");
  return {};
}

Result<std::vector<std::int32_t>> FakeOwner::State::wait(std::uint32_t id, std::uint64_t serial, Nanos limit_ns) {
  constexpr std::string_view kCall = "future.wait";
  // Another run may have fewer records.
  const Nanos began_ns = clock.now_ns();
  const Nanos limit_at_ns = began_ns + std::min(std::max<Nanos>(limit_ns, 0), kNever - began_ns);
  bool waited = false;
  for (;;) {
    const bool known = id < commits.end() && commits[id].live && commits[id].serial == serial;
    if (!known || commits[id].client != client_number || client == Client::dead) {
      return fluxon_error(FluxonErrc::store_closed, kCall, "its client is gone");
    }
    if (client == Client::closed) return fluxon_error(FluxonErrc::general, kCall, "the client is closed");
    if (commits[id].waited) return fluxon_error(FluxonErrc::general, kCall, "this future has been waited for");
    if (commits[id].answer_at_ns <= clock.now_ns()) break;
    if (waited && clock.now_ns() >= limit_at_ns) return fluxon_error(FluxonErrc::timeout, kCall, "not decided yet");
    clock.wait_until(std::min(commits[id].answer_at_ns, limit_at_ns));
    waited = true;
  }
  CommitRecord& commit = commits[id];
  commit.waited = true;
  if (commit.fails) return fluxon_error(FluxonErrc::general, kCall, "the commit was cancelled");
  return std::move(commit.codes);
}

void FakeOwner::State::drop_future(std::uint32_t id, std::uint64_t serial) {
  if (id >= commits.end() || !commits[id].live || commits[id].serial != serial) return;
  commits[id].future_held = false;
  end_if_unused(id);
}

void FakeOwner::State::end_if_unused(std::uint32_t id) {
  CommitRecord& commit = commits[id];
  if (commit.future_held || commit.events > 0) return;
  commit.live = false;
  commits.give(id);
}

Status FakeOwner::put(std::string_view key, std::span<const std::byte> bytes) {
  constexpr std::string_view kCall = "put";
  State& state = *state_;
  if (Status reachable = state.reachable(kCall); !reachable) return reachable;
  if (!std::exchange(state.connected, true)) {
    return fluxon_error(FluxonErrc::backend_unavailable, kCall, "the owner restarted");
  }
  if (bytes.empty()) return fluxon_error(FluxonErrc::invalid_argument, kCall, "no bytes");
  if (bytes.size() > std::min(kMaxValueBytes, state.options.grant_bytes)) {
    return fluxon_error(FluxonErrc::value_too_large, kCall, "longer than a grant");
  }
  const Nanos deadline_ns = state.clock.now_ns() + kPutStartWaitLimit;
  if (Status room = state.wait_for_slots(1, bytes.size(), deadline_ns, kCall); !room) return room;
  const std::uint32_t id = state.keys.refer(key);
  const std::uint32_t value = state.reserve_value(id, bytes.size(), 0);
  state.keys.unrefer(id);
  std::memcpy(reinterpret_cast<void*>(state.pool->write_address(state.values[value].slot)), bytes.data(), bytes.size());
  state.store_value(value, false);
  state.add_event({state.clock.now_ns() + state.options.route_after_ns, 0, Event::Kind::route_value, value,
                   state.values[value].use, 0});
  return {};
}

}  // namespace holdfast::fakes
