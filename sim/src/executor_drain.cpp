// Phase two: no more faults. Everything must drain to the baseline, and a clean put and resume must succeed.
#include <algorithm>

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
constexpr std::size_t kNamedMax = 4;

Geometry clean_geometry() {
  Geometry geometry;
  geometry.ring_frames = 4;
  geometry.latent_bytes = 256;
  geometry.timesteps = 3;
  return geometry;
}

std::uint64_t clean_slot_bytes() { return 2 * (2 * slot_bytes(256) + slot_bytes(256)); }

// The locator that a key of the owner's store belongs to, and whether it is a blob's.
std::pair<std::string_view, Claim> locator_in(std::string_view key) {
  const bool side = key.ends_with(":k") || key.ends_with(":v");
  const std::size_t layer = key.rfind(":L");
  if (side && layer != std::string_view::npos) return {key.substr(0, layer), Claim::kv};
  return {key, Claim::latent};
}

}  // namespace

void Executor::Impl::drain() {
  context.faults_on = false;
  context.begin_step(kDrainStep, StepKind::pump);
  injector.begin_step();
  context.log.event(clock.now_ns(), "drain", std::array<std::uint64_t, 0>{}, [] { return std::string(); });
  Ending ending;
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
  const RunResult before = totals();
  const MarkCounts marks_before = context.marks;
  check_clean_cycle();
  settle();
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
  const auto has_capacity = [&] {
    if (trace->capacity_bytes == 0) return true;
    static_cast<void>(operate(Operation::make_room, ending, [&] { return system->make_room(need); }));
    settle();
    return system->inspect().accounted_bytes + need <= trace->capacity_bytes;  // else what is left is pinned
  };
  if (!has_capacity()) return;
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

// ---- What is left.

void Executor::Impl::check_store_is_accounted(const Inspection& inspection) {
  std::uint64_t orphans = 0;
  std::string named;
  owner.for_each_stored_key([&](std::string_view key, const fakes::KeyView&) {
    const auto [locator, claim] = locator_in(key);
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
