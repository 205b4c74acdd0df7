#include "holdfast/sim/scenarios.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "holdfast/sim/strict_json.hpp"
#include "scenario_parts.hpp"

namespace holdfast::sim {
namespace scenario {

Geometry rolling(std::uint32_t ring_frames, std::uint32_t sink_frames) {
  Geometry geometry;
  geometry.n_layers = 2;
  geometry.frames_per_chunk = 2;
  geometry.frame_tokens = 2;
  geometry.ring_frames = ring_frames;
  geometry.sink_frames = sink_frames;
  geometry.full_length = false;
  geometry.kv_token_bytes = {96, 160};
  geometry.latent_bytes = 192;
  geometry.timesteps = 3;
  return geometry;
}

Geometry full_length(std::uint32_t chunks) {
  Geometry geometry = rolling(0, 0);
  geometry.full_length = true;
  geometry.ring_frames = chunks * geometry.frames_per_chunk;
  return geometry;
}

void one_piece(TraceBuilder& trace) { trace.trace().grant_bytes = trace.trace().segment_bytes; }

Actions numbered(std::size_t chunks) {
  Actions actions;
  for (std::size_t i = 0; i < chunks; ++i) actions.push_back(std::to_string(i));
  return actions;
}

void route_values_late(TraceBuilder& trace, Id generate) {
  // The latent's put is the first; the values' has a plan for each of their two lengths.
  for (const std::uint32_t put : {1U, 2U}) {
    trace.choice({generate, Call::local_fast_put_commit, put, ChoiceKind::route_after,
                  static_cast<std::uint64_t>(30 * kSecond)});
  }
}

Id write_all(TraceBuilder& trace, std::uint32_t geometry, const Actions& actions) {
  const Id session = trace.open({.world = 1, .geometry = geometry, .actions = actions});
  for (std::size_t i = 0; i < actions.size(); ++i) trace.generate(session);
  return session;
}

Id resume_then_generate(TraceBuilder& trace, std::uint32_t geometry, const Actions& actions, std::size_t chunks) {
  const Id session = trace.open({.world = 1, .geometry = geometry, .actions = actions});
  trace.resume(session);
  for (std::size_t i = 0; i < chunks; ++i) trace.generate(session);
  return session;
}

}  // namespace scenario

namespace {

struct Entry {
  Scenario scenario;
  void (*build)(TraceBuilder&);
};

constexpr auto kEntries = std::to_array<Entry>({
    {{"abcd", "A writes, B resumes it all, C forks after two chunks, D is C cold; 37 output frames each"},
     scenario::abcd},

    {{"cold_write", "one session writes one chunk"}, scenario::cold_write},
    {{"one_size_write", "K, V and latent of one length, in a single put each"}, scenario::one_size_write},
    {{"mixed_write", "values of three lengths in one put, one of them of 96 KiB"}, scenario::mixed_write},
    {{"quantised", "K and V with their scales, in a ring that rolls: written, resumed, evicted, written again"},
     scenario::quantised},
    {{"repeated_write", "a second session generates a chunk that is ready already"}, scenario::repeated_write},
    {{"two_writers", "another writer has the node's keys, then it is ours to write"}, scenario::two_writers},
    {{"key_in_flight", "a key exists that nobody can read yet"}, scenario::key_in_flight},
    {{"adopted_leftover", "a put's outcome was unknown; a later put finds all its keys, and adopts them"},
     scenario::adopted_leftover},
    {{"leftover_of_another_length", "a put in doubt had values of another length: a later one does not adopt them"},
     scenario::leftover_of_another_length},
    {{"leftovers", "the second group of a put fails: what the first one stored is removed"}, scenario::leftovers},
    {{"leftovers_repeated", "the same, and the removals find nothing yet: they are repeated"},
     scenario::leftovers_repeated},
    {{"failed_copy", "a batch is submitted in part, a wait fails once; the plans are aborted"}, scenario::failed_copy},
    {{"stuck_copy", "no wait succeeds: the plans are quarantined, and let go later"}, scenario::stuck_copy},
    {{"dead_context", "the device context dies during a put; only its tear-down ends the quarantine"},
     scenario::dead_context},
    {{"old_plan", "a wait outlasts the plan's age limit, another one the owner's time-out"}, scenario::old_plan},
    {{"lost_reservation", "the answer of a put's start is lost; its keys come back after the time-out"},
     scenario::lost_reservation},
    {{"reserved_full", "the same in a segment that is full by then"}, scenario::reserved_full},
    {{"no_free_slots", "a put finds the segment full, of values that nobody evicts"}, scenario::no_free_slots},
    {{"orphans", "a new client finds values that the last one stored, and of which it does not know"},
     scenario::orphans},
    {{"full_of_orphans", "the same, and they fill the segment"}, scenario::full_of_orphans},
    {{"memory_tier", "the generic tier store: write, resume, evict, resume"}, scenario::memory_tier},

    {{"overlapped", "one batch is copied while the next one's plans are started, in a write and in a resume"},
     scenario::overlapped},
    {{"overlapped_beside", "the same on a stream of the copies' own, ordered with the engine's by events"},
     scenario::overlapped_beside},
    {{"synchronous_beside", "a batch at a time, on a stream of the copies' own"}, scenario::synchronous_beside},
    {{"memory_tier_beside", "the generic tier store, with copies on a stream of their own"},
     scenario::memory_tier_beside},
    {{"overlapped_failures", "overlapped puts: no memory for an event, a failed record, a failed wait, a refused plan"},
     scenario::overlapped_failures},
    {{"overlapped_stuck", "an overlapped put whose second group no wait covers: its event is asked later"},
     scenario::overlapped_stuck},
    {{"vanished_part", "a value vanishes when the first chunk of a resume is being copied already"},
     scenario::vanished_part},

    {{"full_hit", "a second session resumes everything, in a full-length ring"}, scenario::full_hit},
    {{"two_of_three", "two of three chunks are there: they are resumed, and the third is written"},
     scenario::two_of_three},
    {{"fork", "a second session resumes two chunks and then differs by an action's type only"}, scenario::fork},
    {{"full_length_ring", "a full-length ring is resumed half full, and filled"}, scenario::full_length_ring},
    {{"ring_exactly_full", "the frames resumed are exactly those of the ring"}, scenario::ring_exactly_full},
    {{"rolled", "a session resumes into a ring that has just rolled"}, scenario::rolled},
    {{"deep_rolled", "a session resumes into a ring that has rolled several times"}, scenario::deep_rolled},
    {{"wide_sink", "a sink of three frames, chunks of two"}, scenario::wide_sink},
    {{"window_minus_one", "a chunk less than a window is resumed"}, scenario::window_minus_one},
    {{"window_exact", "exactly a window is resumed"}, scenario::window_exact},
    {{"window_plus_one", "a chunk more than a window is resumed"}, scenario::window_plus_one},
    {{"large_values", "values of 96 KiB are written and resumed"}, scenario::large_values},
    {{"not_yet_routed", "a chunk is resumed and evicted before the master has its routes"}, scenario::not_yet_routed},
    {{"break_even", "a short prefix is refused, a longer one resumed"}, scenario::break_even},
    {{"mistaken_layout", "a caller's layout is not what its world was stored with"}, scenario::mistaken_layout},

    {{"evict_then_resume", "one blob evicted, one lost by the store, then a resume and new chunks"},
     scenario::evict_then_resume},
    {{"evict_held", "evictions of a pinned and of a referenced blob are refused"}, scenario::evict_held},
    {{"evict_failed", "a removal fails: the blob is not served, and evicted later"}, scenario::evict_failed},
    {{"evict_early", "evicted so soon that the removals find nothing, and are repeated"}, scenario::evict_early},
    {{"make_room", "a put under pressure evicts first"}, scenario::make_room},
    {{"two_marks", "a put over the upper mark makes room down to the lower one; what was found stays longer"},
     scenario::two_marks},
    {{"idle_world", "what is left of a world that nobody uses goes as a whole, to make room"}, scenario::idle_world},
    {{"store_evicts_latent", "the store loses a latent whose blob is there"}, scenario::store_evicts_latent},
    {{"store_evicts_between", "the store evicts a value between the start of a get and its transfer"},
     scenario::store_evicts_between},
    {{"damaged", "values change where they lie: they are found corrupt, withdrawn and written again"},
     scenario::damaged},
    {{"handle_times_out", "a get's transfer comes after its handle's time-out"}, scenario::handle_times_out},
    {{"restart_during_put", "the owner restarts with a plan open"}, scenario::restart_during_put},
    {{"restart_before_wait", "the owner restarts between a commit and its wait"}, scenario::restart_before_wait},
    {{"restart_during_get", "the owner restarts between the start of a get and its transfer"},
     scenario::restart_during_get},
    {{"owner_restart", "the owner restarts between a write and a resume"}, scenario::owner_restart},
    {{"hints_above_a_gap", "the owner restarts, and all that is written again lies above a gap"},
     scenario::hints_above_a_gap},
    {{"hints_of_a_snapshot", "a snapshot's blob is gone, and lies above a gap"}, scenario::hints_of_a_snapshot},
    {{"many_lost_at_once", "the owner restarts, and a long path has windows of one chunk"},
     scenario::many_lost_at_once},
    {{"probed_in_turn", "the periodic probe comes to two worlds, of each of which something is gone"},
     scenario::probed_in_turn},
    {{"warm_up", "a segment of two pieces, mapped twice, is registered before the first put"}, scenario::warm_up},
    {{"warm_up_cancelled", "a warm-up is cancelled in either mapping and leaves nothing; then one makes a put free"},
     scenario::warm_up_cancelled},
    {{"registration_refused", "no memory at the second piece: rolled back; then the second mapping is refused"},
     scenario::registration_refused},
    {{"registered_by_others", "somebody registered the whole segment, then a part of the next one"},
     scenario::registered_by_others},
    {{"snapshot_restart", "the client dies after a snapshot and more writes, and resumes both"},
     scenario::snapshot_restart},
    {{"snapshot_failed", "a snapshot cannot be synced: its file is removed, and the next one is written"},
     scenario::snapshot_failed},
    {{"torn_snapshot", "the snapshot is read short: it is refused, and the next one is whole"},
     scenario::torn_snapshot},
});

constexpr auto kTogether = std::to_array<Entry>({
    {{"put_beside_put", "two sessions write one chunk"}, scenario::put_beside_put},
    {{"lookup_beside_commit", "a session resumes what another is writing"}, scenario::lookup_beside_commit},
    {{"resume_beside_resume", "two sessions resume one chunk"}, scenario::resume_beside_resume},
    {{"evict_beside_resume", "a blob is evicted while a session resumes it"}, scenario::evict_beside_resume},
    {{"evict_beside_hold", "a blob is evicted while references to it are taken"}, scenario::evict_beside_hold},
    {{"evict_beside_put", "a blob is evicted while a session writes it again"}, scenario::evict_beside_put},
    {{"make_room_beside_resume", "room is made while a session resumes"}, scenario::make_room_beside_resume},
    {{"make_room_beside_hold", "room is made while references are taken"}, scenario::make_room_beside_hold},
    {{"fork_beside_put", "two sessions write different chunks behind one"}, scenario::fork_beside_put},
    {{"failed_put_beside_put", "a put fails while another session writes the same chunk"},
     scenario::failed_put_beside_put},
    {{"snapshot_beside_put", "a snapshot is taken during a put, and a new client starts from it"},
     scenario::snapshot_beside_put},
    {{"pump_beside_put", "a key in doubt is settled while a session writes it again"}, scenario::pump_beside_put},
    {{"pump_beside_pump", "two settle one key"}, scenario::pump_beside_pump},
    {{"loss_beside_resume", "two sessions find out that the store lost a blob"}, scenario::loss_beside_resume},
    {{"restart_beside_put", "the owner restarts while two sessions write"}, scenario::restart_beside_put},
    {{"restart_beside_resume", "the owner restarts while two sessions resume"}, scenario::restart_beside_resume},
    {{"warm_up_beside_put", "segments are registered by two at once"}, scenario::warm_up_beside_put},
    {{"refused_warm_up_beside_put", "a registration is rolled back while a put needs it"},
     scenario::refused_warm_up_beside_put},
    {{"close_beside_put", "a session ends while another writes into its world"}, scenario::close_beside_put},
    {{"pumps_beside_put", "two settle a key while a session writes it again"}, scenario::pumps_beside_put},
    {{"pumps_of_a_stuck_plan", "two end what a stuck copy held back"}, scenario::pumps_of_a_stuck_plan},
    {{"loss_beside_put", "two find out that the store lost a blob, and one writes it again"},
     scenario::loss_beside_put},
    {{"probe_beside_put", "the periodic probe finds a blob gone while a session writes it again"},
     scenario::probe_beside_put},
    {{"snapshot_beside_evict", "a snapshot is taken during an eviction, and a new client starts from it"},
     scenario::snapshot_beside_evict},
    {{"snapshot_beside_snapshot", "two snapshots are taken, and a new client starts from one"},
     scenario::snapshot_beside_snapshot},
    {{"puts_in_little_room", "two sessions write, and there is room for one"}, scenario::puts_in_little_room},
    {{"idle_world_beside_open", "a world is let go while a session opens it and writes"},
     scenario::idle_world_beside_open},
});

template <std::size_t kCount>
constexpr std::array<Scenario, kCount> names_of(const std::array<Entry, kCount>& entries) {
  std::array<Scenario, kCount> all{};
  for (std::size_t i = 0; i < kCount; ++i) all[i] = entries[i].scenario;
  return all;
}
constexpr auto kScenarios = names_of(kEntries);
constexpr auto kScenariosTogether = names_of(kTogether);

}  // namespace

std::span<const Scenario> scenarios() { return kScenarios; }
std::span<const Scenario> scenarios_together() { return kScenariosTogether; }

Result<Trace> scenario_named(std::string_view name) {
  const auto named = [&](const Entry& entry) { return entry.scenario.name == name; };
  const Entry* found = std::ranges::find_if(kEntries, named);
  if (found == kEntries.end()) found = std::ranges::find_if(kTogether, named);
  if (found == kTogether.end())
    return make_error(Errc::not_found, "scenario_named", fmt::format("there is no scenario {}", quoted_json(name)));
  TraceBuilder builder{std::string(name)};
  found->build(builder);
  return builder.finish();
}

}  // namespace holdfast::sim
