// Phase two: no more faults. Everything must drain to the baseline, and a clean put and resume must succeed.
#include <algorithm>

#include "claim_ledger.hpp"
#include "executor_impl.hpp"
#include "holdfast/sim/lies.hpp"

namespace holdfast::sim {
namespace {

constexpr Nanos kPumpEvery = 10 * kSecond;
constexpr Nanos kSettleWithin = 10 * kMinute;
constexpr Nanos kPastPlanTimeouts = kPlanTimeout + kMinute;
constexpr Nanos kPastReclaim = kHandleTimeout + kMinute;
constexpr std::uint32_t kCleanWorld = 0xFFFF'FF00;
constexpr SessionId kCleanSession = 0xFFFF'FF00;
constexpr std::uint32_t kCleanTries = 2;
constexpr SessionId kAgainSession = 0xFFFF'FE00;
// What is stale is found out, what was in the way is removed, what is missing is written, all of it is resumed.
constexpr std::uint32_t kAgainTries = 4;
constexpr std::size_t kAgainTriesMax = 64;
constexpr std::string_view kUnwrittenAction = "\"never written\"";
constexpr std::size_t kNamedMax = 4;

Geometry clean_geometry() {
  Geometry geometry;
  geometry.ring_frames = 4;
  geometry.latent_bytes = 256;
  geometry.timesteps = 3;
  return geometry;
}

std::uint64_t clean_slot_bytes() { return 2 * (2 * slot_bytes(256) + slot_bytes(256)); }

}  // namespace

void Executor::Impl::drain() {
  context.faults_on = false;
  context.begin_step(kDrainStep, StepKind::pump);
  injector.begin_step();
  context.log.event(clock.now_ns(), "drain", std::array<std::uint64_t, 0>{}, [] { return std::string(); });
  Ending ending;
  check_capacity();
  if (injector.context_dead() || device.context_dead()) {
    tear_down_device();
    static_cast<void>(restart_client(ending));
  }
  injector.end_faults();
  settle();
  close_everything();
  clock.advance_by(kPastPlanTimeouts);
  injector.end_faults();  // now that no copy is in flight any more
  settle();
  // The clean session's work is not the trace's.
  result.stats += system->inspect().stats;
  const RunResult before = totals();
  const MarkCounts marks_before = context.marks;
  check_clean_cycle();
  settle();
  check_index_agrees();
  set_totals(before);
  context.marks = marks_before;

  const Inspection inspection = system->inspect();
  if (inspection.read_only_fallbacks > 0) context.marks.reach(Mark::registered_read_only);
  if (inspection.translated_mappings > 0) context.marks.reach(Mark::second_mapping_refused);
  context.verdicts.checked(Invariant::quiescent_baseline);
  const auto none = [&](std::uint64_t count, std::string_view what) {
    if (count == 0) return;
    context.violate(Invariant::quiescent_baseline, {},
                    "the store still has " + std::to_string(count) + " " + std::string(what) + " after the drain",
                    what);
  };
  none(inspection.references, "references on nodes");
  none(inspection.unsettled, "unsettled keys");
  none(inspection.quarantined, "quarantined plans or views");
  check_store_is_accounted(inspection);
  check_path_again();
  static_cast<void>(operate(Operation::shut_down, ending, [&] { return system->shut_down(); }));
  check_owner_baseline();
}

RunResult Executor::Impl::totals() const {
  RunResult now;
  now.chunks_hit = result.chunks_hit;
  now.chunks_generated = result.chunks_generated;
  now.evictions = result.evictions;
  now.bytes_to_host = result.bytes_to_host;
  now.bytes_to_device = result.bytes_to_device;
  return now;
}

void Executor::Impl::set_totals(const RunResult& to) {
  result.chunks_hit = to.chunks_hit;
  result.chunks_generated = to.chunks_generated;
  result.evictions = to.evictions;
  result.bytes_to_host = to.bytes_to_host;
  result.bytes_to_device = to.bytes_to_device;
}

void Executor::Impl::settle() {
  for (Nanos waited = 0; waited <= kSettleWithin; waited += kPumpEvery) {
    static_cast<void>(pump());
    tap.collect();
    const Inspection now = system->inspect();
    if (now.unsettled == 0 && now.quarantined == 0) return;
    clock.advance_by(kPumpEvery);
  }
}

void Executor::Impl::close_everything() {
  Ending ending;
  for (const auto& [id, hold] : holds) {
    for (const std::uint64_t identity : hold.identities) monitor.unhold(identity);
    monitor.begin(Operation::hold);
    system->unhold(id);
    monitor.end(true);
  }
  holds.clear();
  for (Session& session : sessions) {
    if (session.open) close_session(session, ending);
  }
}

// ---- The clean put and resume.

void Executor::Impl::check_clean_cycle() {
  Ending ending;
  const std::uint64_t need = clean_slot_bytes();
  const std::uint64_t slots_of_grant = trace->grant_bytes / kSlotAlignment;
  if (trace->segment_bytes / trace->grant_bytes * slots_of_grant * kSlotAlignment < need) return;  // even when empty
  const auto has_capacity = [&] {
    if (trace->capacity_bytes == 0) return true;
    static_cast<void>(operate(Operation::make_room, ending, [&] { return system->make_room(need); }));
    settle();
    return system->inspect().accounted_bytes + need <= trace->capacity_bytes;  // else what is left is pinned
  };
  if (!has_capacity()) {
    if (need <= trace->capacity_bytes && book.blobs() > 0) {
      context.violate(Invariant::quiescent_baseline, {},
                      "after the drain nothing is in use, but no room can be made while there are " +
                          std::to_string(book.blobs()) + " blobs",
                      "no room");
    }
    return;
  }
  context.verdicts.checked(Invariant::quiescent_baseline);
  std::string why;
  for (std::uint32_t attempt = 0; attempt < kCleanTries; ++attempt) {
    why = clean_cycle(attempt);
    if (why.empty()) return;
    // The segment may be full of values; the owner, not the store, makes room there.
    for (const std::string& key : owner.evictable_keys()) owner.evict(key);
    clock.advance_by(kSettleBound + kSecond);
    settle();
    if (!has_capacity()) return;
  }
  // Answers that got lost pin values until the client leaves, and a small segment may be full of them.
  if (context.faults.total > 0 && owner.holders() + owner.prepared_slots() > 0) return;
  context.violate(Invariant::quiescent_baseline, {}, "after the drain a clean put and resume failed: " + why,
                  "a clean put and resume");
}

std::string Executor::Impl::clean_cycle(std::uint32_t attempt) {
  Ending ending;
  const Geometry geometry = clean_geometry();
  clean_actions = {"0", "1"};
  clean_step = {};
  clean_step.kind = StepKind::open;
  clean_step.world = kCleanWorld + attempt;
  clean_step.actions = clean_actions;
  std::string why;
  const auto failed = [&](std::string_view what) {
    why = std::string(what);
    for (const Error& error : last_errors) why += "; " + to_string(error);
  };
  last_errors.clear();
  Session* writer = open_session(kCleanSession + 2 * attempt, clean_step, geometry, geometry, ending);
  if (writer == nullptr) {
    failed("the session did not open");
    return why;
  }
  for (std::size_t i = 0; i < clean_actions.size() && why.empty(); ++i) {
    const std::optional<IngestOutcome> outcome = generate_chunk(*writer, ending);
    if (!outcome || outcome->kv != IngestResult::published || outcome->latent != IngestResult::published) {
      failed("chunk " + std::to_string(i) + " was not published");
    }
  }
  close_session(*writer, ending);
  if (!why.empty()) return why;

  Session* reader = open_session(kCleanSession + 2 * attempt + 1, clean_step, geometry, geometry, ending);
  if (reader == nullptr) {
    failed("the second session did not open");
    return why;
  }
  const std::uint32_t matched = resume_session(*reader, ending);
  if (matched != clean_actions.size()) failed(std::to_string(matched) + " of 2 chunks were resumed");
  close_session(*reader, ending);
  return why;
}

// ---- A path of the trace again.

// The last one; rather one that is not stored as a whole.
const Step* Executor::Impl::path_to_try() {
  const Step* found = nullptr;
  for (auto session = sessions.rbegin(); session != sessions.rend(); ++session) {
    const auto step = std::ranges::find(trace->steps, session->id, &Step::id);
    if (step == trace->steps.end() || session->mistaken || session->path.empty()) continue;
    // A mistaken writer's blobs stand in the way of right ones.
    const bool spoilt = std::ranges::any_of(sessions, [&](const Session& other) {
      return other.mistaken && other.generated && other.namespace_id == session->namespace_id;
    });
    if (spoilt) continue;
    if (claimed_chunks(*session) < session->path.size()) return &*step;
    if (found == nullptr) found = &*step;
  }
  return found;
}

// Whatever happened to it, now that all has settled: each of its chunks is stored, and what is stored is resumed.
void Executor::Impl::check_path_again() {
  const Step* step = path_to_try();
  // After a lie anything may be in the way.
  if (step == nullptr || hostile) return;
  context.verdicts.checked(Invariant::quiescent_baseline);
  const RunResult before = totals();
  const MarkCounts marks = context.marks;
  const std::size_t outputs = result.frame_hashes.size();
  const Geometry& geometry = trace->geometries[step->geometry];
  clean_step = *step;
  clean_step.actions.emplace_back(kUnwrittenAction);
  PathAgain again;
  // Each may find one more chunk gone that was thought to be there.
  const auto tries =
      static_cast<std::uint32_t>(std::min<std::size_t>(kAgainTries + step->actions.size(), kAgainTriesMax));
  for (std::uint32_t attempt = 0; attempt < tries; ++attempt) {
    again = path_again(kAgainSession + attempt, geometry);
    if (again.no_room || (again.why.empty() && !again.wrote)) break;
    clock.advance_by(kSettleBound + kSecond);
    settle();
  }
  set_totals(before);
  context.marks = marks;
  result.frame_hashes.resize(outputs);
  result.session_chunks_hit.resize(outputs);
  if (again.no_room || again.why.empty()) return;
  context.violate(Invariant::quiescent_baseline, {},
                  "after the drain a path of the trace, that of step " + std::to_string(step->id) +
                      ", cannot be stored and resumed: " + again.why,
                  "a path of the trace");
}

Executor::Impl::PathAgain Executor::Impl::path_again(SessionId id, const Geometry& geometry) {
  PathAgain again;
  Ending ending;
  Session* session = open_session(id, clean_step, geometry, geometry, ending);
  if (session == nullptr) {
    again.no_room = ending.skipped;  // of the device
    again.why = "the session did not open";
    return again;
  }
  const auto failed = [&](const std::string& what) {
    again.why = what;
    for (const Error& error : last_errors) again.why += "; " + to_string(error);
  };
  last_errors.clear();
  std::uint32_t due = claimed_chunks(*session, true);
  if (due < geometry.break_even_k) due = 0;
  const std::uint32_t matched = resume_session(*session, ending);
  if (matched < due) failed(std::to_string(matched) + " of " + std::to_string(due) + " chunks were resumed");
  StandInEngine& engine = *session->engine;
  while (engine.chunks_done() + 1 < session->path.size() && engine.can_generate()) {
    last_errors.clear();
    const std::optional<IngestOutcome> outcome = generate_chunk(*session, ending);
    if (outcome) last_errors.insert(last_errors.end(), outcome->absorbed.begin(), outcome->absorbed.end());
    const auto is = [&](IngestResult how) { return outcome && (outcome->kv == how || outcome->latent == how); };
    again.wrote |= is(IngestResult::published) || is(IngestResult::adopted);
    if (outcome && !is(IngestResult::elsewhere) && !is(IngestResult::uncached)) continue;
    // The capacity or the segment is full of other values.
    again.no_room |= std::ranges::any_of(last_errors, [](const Error& error) {
      return mentions(error, Origin::core, static_cast<std::int32_t>(Errc::out_of_room)) ||
             mentions(error, Origin::fluxon, static_cast<std::int32_t>(FluxonErrc::network));
    });
    failed("chunk " + std::to_string(engine.chunks_done() - 1) + " was not stored");
  }
  close_session(*session, ending);
  return again;
}

// ---- What is left.

void Executor::Impl::check_index_agrees() {
  // After a lie anything may be believed.
  if (trace->in_memory_store || hostile) return;
  context.verdicts.checked(Invariant::index_agrees);
  if (monitor.claims_not_stored().empty()) return;
  Ending ending;
  begin_clock(Operation::pump);
  monitor.begin(Operation::pump);
  const PumpOutcome outcome = system->probe();
  check_clock();
  monitor.end(true);
  for (const Error& error : outcome.errors) note_error(ending, error);
  const std::vector<std::string> gone = monitor.claims_not_stored();
  if (!gone.empty()) {
    context.violate(Invariant::index_agrees, {},
                    "the store was asked for everything that is claimed, and " + std::to_string(gone.size()) +
                        " claims are left of what it has not, as the " + gone.front(),
                    "claims of what is gone");
  }
  settle();
}

void Executor::Impl::check_store_is_accounted(const Inspection& inspection) {
  std::uint64_t orphans = 0;
  std::string named;
  owner.for_each_stored_key([&](std::string_view key, const fakes::KeyView&) {
    const auto [locator, claim] = parts_of(key);
    const ClaimBook::Node* node = book.find(monitor.identity_of(locator));
    if (node != nullptr && (claim == Claim::kv ? node->kv : node->latent)) return;
    // A successor knows only what the snapshot knew.
    const bool of_this_client = node != nullptr && node->ingested_in == book.incarnation();
    const bool decided_later = undecided_at_death && node != nullptr && node->ingested_before_restart;
    // Removals that were none, and keys that were decided long after they could be.
    if (hostile) {
      ++result.exempt_keys;
      return;
    }
    if (book.incarnation() > 1 && (!of_this_client || decided_later || old_keys.contains(key))) {
      ++result.exempt_keys;
      return;
    }
    if (orphans++ < kNamedMax) {
      named += (named.empty() ? "" : ", ") + std::string(key);
    }
  });
  if (orphans > 0) {
    context.violate(Invariant::quiescent_baseline, {},
                    std::to_string(orphans) + " keys in the owner's store belong to no claim: " + named,
                    "keys of no claim");
  }
  if (trace->in_memory_store || inspection.accounted_bytes == book.claimed_slot_bytes()) return;
  context.violate(
      Invariant::quiescent_baseline, {},
      "the store accounts " + std::to_string(inspection.accounted_bytes) + " bytes, its claims take " +
          std::to_string(book.claimed_slot_bytes()),
      inspection.accounted_bytes > book.claimed_slot_bytes() ? "too many accounted bytes" : "too few accounted bytes");
}

// Answers that got lost pin values until the client leaves; where none was, nothing may be pinned even before.
void Executor::Impl::check_owner_baseline() {
  monitor.check_all_ended();
  clock.advance_by(kSecond);
  if (context.faults.total == 0) tap.check_baseline();
  owner.close();
  clock.advance_by(std::max(kPastReclaim, kPastPlanTimeouts));
  if (hostile) clock.advance_by(kWithoutBound);
  tap.check_baseline();
}

}  // namespace holdfast::sim
