// Scenarios of sessions that run side by side: first what they build on, then the steps that take turns.
#include "scenario_parts.hpp"

namespace holdfast::sim::scenario {
namespace {

// A chunk is a latent, and K and V of one length: two puts, few calls.
std::uint32_t small(TraceBuilder& trace) {
  one_piece(trace);
  Geometry geometry;
  geometry.ring_frames = 4;
  geometry.full_length = false;
  geometry.kv_token_bytes = {64};
  geometry.latent_bytes = 96;
  return trace.geometry(geometry);
}

Id open(TraceBuilder& trace, std::uint32_t geometry, const Actions& actions) {
  return trace.open({.world = 1, .geometry = geometry, .actions = actions});
}

// The outcome of the second put, of K and V, is unknown.
void lose_values(TraceBuilder& trace, Id generate) {
  trace.fault({generate, Call::commit_wait, kValues, FaultKind::lost, code_of(CommitCode::timeout), 0, false});
}

// Two sessions resume a blob that the store has lost. Gives the second one.
Id two_find_a_loss(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  const Id writer = write_all(trace, g, numbered(1));
  const Id reader = open(trace, g, numbered(1));
  const Id again = open(trace, g, numbered(1));
  trace.pass_time(kSettled);
  trace.store_evict_blob(writer, 0);
  trace.together();
  trace.resume(reader);
  trace.resume(again);
  return again;
}

constexpr std::uint64_t kSlotsOfAChunk = 3;

}  // namespace

void put_beside_put(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  const Id first = open(trace, g, numbered(1));
  const Id second = open(trace, g, numbered(1));
  trace.warm_up();
  trace.together();
  trace.generate(first);
  trace.generate(second);
}

void lookup_beside_commit(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  const Id writer = open(trace, g, numbered(2));
  const Id reader = open(trace, g, numbered(2));
  trace.generate(writer);
  trace.together();
  trace.generate(writer);
  trace.resume(reader);
}

void evict_beside_resume(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  const Id writer = write_all(trace, g, numbered(1));
  const Id reader = open(trace, g, numbered(1));
  trace.pass_time(kSettled);
  trace.together();
  trace.resume(reader);
  trace.evict(writer, 0);
}

void evict_beside_hold(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  const Id writer = write_all(trace, g, numbered(1));
  const Id reader = open(trace, g, numbered(1));
  trace.pass_time(kSettled);
  trace.together();
  trace.hold(reader);
  trace.evict(writer, 0);
}

void evict_beside_put(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  const Id writer = write_all(trace, g, numbered(1));
  const Id again = open(trace, g, numbered(1));
  trace.pass_time(kSettled);
  trace.together();
  trace.evict(writer, 0);
  trace.generate(again);
}

void make_room_beside_resume(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  trace.trace().capacity_bytes = 2 * kSlotsOfAChunk * kSlotAlignment;
  write_all(trace, g, numbered(2));
  const Id reader = open(trace, g, numbered(2));
  trace.pass_time(kSettled);
  trace.together();
  trace.resume(reader);
  trace.make_room(kSlotsOfAChunk * kSlotAlignment);
}

void make_room_beside_hold(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  trace.trace().capacity_bytes = kSlotsOfAChunk * kSlotAlignment;
  write_all(trace, g, numbered(1));
  const Id reader = open(trace, g, numbered(1));
  trace.pass_time(kSettled);
  trace.together();
  trace.hold(reader);
  trace.make_room(kSlotAlignment);
}

void fork_beside_put(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  const Id writer = open(trace, g, {"0", "1"});
  const Id forked = open(trace, g, {"0", "\"1\""});
  trace.generate(writer);
  trace.resume(forked);
  trace.together();
  trace.generate(writer);
  trace.generate(forked);
}

void snapshot_beside_put(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  const Id writer = open(trace, g, numbered(1));
  trace.warm_up();
  trace.together();
  trace.generate(writer);
  trace.snapshot();
  trace.restart();
  resume_then_generate(trace, g, numbered(1), 0);
}

void pump_beside_put(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  const Id first = open(trace, g, numbered(1));
  const Id again = open(trace, g, numbered(1));
  lose_values(trace, trace.generate(first));
  trace.pass_time(kSettled);
  trace.together();
  trace.pump();
  trace.generate(again);
}

void pump_beside_pump(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  lose_values(trace, trace.generate(open(trace, g, numbered(1))));
  trace.pass_time(kSettled);
  trace.together();
  trace.pump();
  trace.pump();
}

void loss_beside_resume(TraceBuilder& trace) { static_cast<void>(two_find_a_loss(trace)); }

void restart_beside_put(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  const Id first = open(trace, g, numbered(1));
  const Id second = open(trace, g, {"7"});
  trace.warm_up();
  trace.together();
  trace.generate(first);
  trace.owner_restart();
  trace.generate(second);
}

void restart_beside_resume(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  write_all(trace, g, numbered(1));
  const Id first = open(trace, g, numbered(1));
  const Id second = open(trace, g, numbered(1));
  trace.together();
  trace.resume(first);
  trace.owner_restart();
  trace.resume(second);
}

void warm_up_beside_put(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  const Id writer = open(trace, g, numbered(1));
  trace.together();
  trace.warm_up();
  trace.generate(writer);
}

void refused_warm_up_beside_put(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  trace.trace().grant_bytes = trace.trace().segment_bytes / 2;
  const Id writer = open(trace, g, numbered(1));
  trace.together();
  constexpr std::uint32_t kSecondPiece = 1;
  trace.fault({trace.warm_up(), Call::host_register, kSecondPiece, FaultKind::before,
               code_of(CudaErrc::memory_allocation), 0, false});
  trace.generate(writer);
}

void close_beside_put(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  const Id writer = open(trace, g, numbered(1));
  const Id other = open(trace, g, numbered(1));
  trace.warm_up();
  trace.together();
  trace.generate(writer);
  trace.close(other);
}

void failed_put_beside_put(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  const Id first = open(trace, g, numbered(1));
  const Id second = open(trace, g, numbered(1));
  trace.warm_up();
  trace.together();
  trace.fault({trace.generate(first), Call::commit_wait, kValues, FaultKind::before,
               code_of(CommitCode::reservation_gone), 0, false});
  trace.generate(second);
}

void resume_beside_resume(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  write_all(trace, g, numbered(1));
  const Id first = open(trace, g, numbered(1));
  const Id second = open(trace, g, numbered(1));
  trace.together();
  trace.resume(first);
  trace.resume(second);
}

void pumps_beside_put(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  const Id again = open(trace, g, numbered(1));
  lose_values(trace, trace.generate(open(trace, g, numbered(1))));
  trace.pass_time(kSettled);
  trace.together();
  trace.pump();
  trace.pump();
  trace.generate(again);
}

void pumps_of_a_stuck_plan(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  trace.fault({trace.generate(open(trace, g, numbered(1))), Call::stream_synchronize, kValues, FaultKind::before,
               code_of(CudaErrc::launch_failure), 0, true});
  trace.together();
  trace.pump();
  trace.pump();
}

void loss_beside_put(TraceBuilder& trace) { trace.generate(two_find_a_loss(trace)); }

void probe_beside_put(TraceBuilder& trace) {
  trace.trace().pump_probes = 1;
  const std::uint32_t g = small(trace);
  const Id writer = write_all(trace, g, numbered(1));
  const Id again = open(trace, g, numbered(1));
  trace.pass_time(kSettled);
  trace.store_evict_blob(writer, 0);
  trace.together();
  trace.pump();
  trace.resume(again);
  trace.generate(again);
}

void snapshot_beside_evict(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  const Id writer = write_all(trace, g, numbered(1));
  trace.pass_time(kSettled);
  trace.together();
  trace.evict(writer, 0);
  trace.snapshot();
  trace.restart();
  resume_then_generate(trace, g, numbered(1), 0);
}

void snapshot_beside_snapshot(TraceBuilder& trace) {
  trace.trace().seed = 1;  // what was not synced is lost at the restart
  const std::uint32_t g = small(trace);
  write_all(trace, g, numbered(1));
  trace.together();
  trace.snapshot();
  trace.snapshot();
  trace.restart();
  resume_then_generate(trace, g, numbered(1), 0);
}

void idle_world_beside_open(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  trace.trace().capacity_bytes = 2 * kSlotsOfAChunk * kSlotAlignment;
  const Id writer = write_all(trace, g, numbered(1));
  trace.pass_time(kSettled);
  trace.evict(writer, 0);
  trace.close(writer);
  trace.together();
  trace.make_room(2 * kSlotsOfAChunk * kSlotAlignment);
  trace.generate(open(trace, g, numbered(1)));
}

void puts_in_little_room(TraceBuilder& trace) {
  const std::uint32_t g = small(trace);
  trace.trace().capacity_bytes = kSlotsOfAChunk * kSlotAlignment;
  const Id first = open(trace, g, {"0"});
  const Id second = open(trace, g, {"1"});
  trace.warm_up();
  trace.together();
  trace.generate(first);
  trace.generate(second);
}

}  // namespace holdfast::sim::scenario
