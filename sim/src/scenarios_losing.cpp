// Scenarios of what goes: evictions, restarts of the owner, registrations, the client's death.
#include <cerrno>

#include "scenario_parts.hpp"

namespace holdfast::sim::scenario {
namespace {

std::uint32_t small_ring(TraceBuilder& trace) {
  one_piece(trace);
  return trace.geometry(rolling(5, 1));
}

void gone_at(TraceBuilder& trace, Id step, Call call, std::uint32_t nth) {
  trace.fault({step, call, nth, FaultKind::gone, 0, 0, false});
}

}  // namespace

void evict_then_resume(TraceBuilder& trace) {
  const std::uint32_t g = small_ring(trace);
  const Actions actions = numbered(4);
  const Id writer = write_all(trace, g, actions);
  trace.pass_time(kSettled);
  trace.evict(writer, 3);
  trace.store_evict_blob(writer, 2);
  resume_then_generate(trace, g, actions, 2);
}

void evict_held(TraceBuilder& trace) {
  const std::uint32_t g = small_ring(trace);
  const Id writer = write_all(trace, g, numbered(2));
  trace.pass_time(kSettled);
  const Id hold = trace.hold(writer);
  trace.evict(writer, 0);
  trace.evict(writer, 1);
  trace.unhold(hold);
  trace.evict(writer, 1);
  resume_then_generate(trace, g, numbered(2), 1);
}

void evict_failed(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(4, 0));
  const Id writer = write_all(trace, g, numbered(1));
  trace.pass_time(kSettled);
  trace.fault({trace.evict(writer, 0), Call::remove, 1, FaultKind::before, code_of(FluxonErrc::network), 0, true});
  resume_then_generate(trace, g, numbered(1), 0);
  trace.evict(writer, 0);
}

void evict_early(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(4, 0));
  const Id writer = trace.open({.world = 1, .geometry = g, .actions = numbered(1)});
  route_values_late(trace, trace.generate(writer));
  trace.pass_time(kSecond);
  trace.evict(writer, 0);
  trace.pass_time(kSettled);
  trace.pump();
  trace.evict(writer, 0);
}

void make_room(TraceBuilder& trace) {
  // A chunk takes five slots.
  trace.trace().capacity_bytes = 8 * kSlotAlignment;
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(4, 0));
  const Id writer = trace.open({.world = 1, .geometry = g, .actions = numbered(3)});
  trace.generate(writer);
  trace.pass_time(kSettled);
  trace.generate(writer);
  trace.pass_time(kSettled);
  trace.make_room(4 * kSlotAlignment);
}

void two_marks(TraceBuilder& trace) {
  constexpr std::uint64_t kChunkBytes = 5 * kSlotAlignment;
  trace.trace().capacity_bytes = 3 * kChunkBytes;
  trace.trace().lower_mark_bytes = kChunkBytes;
  trace.trace().eviction = Eviction::frequency;
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(4, 0));
  write_all(trace, g, numbered(3));
  trace.pass_time(kSettled);
  resume_then_generate(trace, g, {"0", "1", "\"2\""}, 1);
}

void idle_world(TraceBuilder& trace) {
  // A chunk takes five slots. The first world's blob goes before its latent, which goes with its world.
  trace.trace().capacity_bytes = 6 * kSlotAlignment;
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(4, 0));
  trace.close(write_all(trace, g, numbered(1)));
  trace.pass_time(kSettled);
  const Id other = trace.open({.world = 2, .geometry = g, .actions = numbered(2)});
  for (int i = 0; i < 2; ++i) {
    trace.generate(other);
    trace.pass_time(kSettled);
  }
}

void store_evicts_latent(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(4, 0));
  const Id writer = write_all(trace, g, numbered(2));
  trace.pass_time(kSettled);
  trace.store_evict_latent(writer, 1);
  resume_then_generate(trace, g, numbered(2), 1);
}

void store_evicts_between(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(4, 0));
  write_all(trace, g, numbered(2));
  trace.pass_time(kSettled);
  const Id reader = trace.open({.world = 1, .geometry = g, .actions = numbered(2)});
  constexpr std::uint64_t kAKeyOfTheSecondChunk = 6;
  trace.fault({trace.resume(reader), Call::get_transfer, kValues, FaultKind::part, code_of(FluxonErrc::key_not_found),
               kAKeyOfTheSecondChunk, false});
  trace.generate(reader);
}

void damaged(TraceBuilder& trace) {
  trace.trace().checksums = true;
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(4, 0));
  const Actions actions = numbered(4);
  const Id writer = write_all(trace, g, actions);
  trace.pass_time(kSettled);
  trace.damage_blob(writer, 3);
  const Id reader = resume_then_generate(trace, g, actions, 1);
  trace.pass_time(kSettled);
  trace.damage_latent(reader, 3);
  trace.snapshot();
  trace.restart();
  trace.pass_time(kSettled);
  resume_then_generate(trace, g, actions, 1);
}

void handle_times_out(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(4, 0));
  write_all(trace, g, numbered(1));
  const Id reader = trace.open({.world = 1, .geometry = g, .actions = numbered(1)});
  const Id step = trace.resume(reader);
  trace.choice({step, Call::get_start, kValues, ChoiceKind::needs_transfer, 0});
  trace.fault({step, Call::get_transfer, kValues, FaultKind::late, 0,
               static_cast<std::uint64_t>(kHandleTimeout + kSecond) & ~1ULL, false});
  resume_then_generate(trace, g, numbered(1), 0);
}

void restart_during_put(TraceBuilder& trace) {
  const std::uint32_t g = small_ring(trace);
  const Id writer = trace.open({.world = 1, .geometry = g, .actions = numbered(2)});
  gone_at(trace, trace.generate(writer), Call::copy_batch, kValues);
  gone_at(trace, trace.generate(writer), Call::local_fast_put_commit, kValues);
  resume_then_generate(trace, g, numbered(2), 2);
}

void restart_before_wait(TraceBuilder& trace) {
  const std::uint32_t g = small_ring(trace);
  const Id writer = trace.open({.world = 1, .geometry = g, .actions = numbered(1)});
  gone_at(trace, trace.generate(writer), Call::commit_wait, kValues);
  trace.pass_time(kSettled);
  resume_then_generate(trace, g, numbered(1), 1);
}

void restart_during_get(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(4, 0));
  write_all(trace, g, numbered(1));
  const Id reader = trace.open({.world = 1, .geometry = g, .actions = numbered(1)});
  gone_at(trace, trace.resume(reader), Call::get_transfer, kValues);
  trace.generate(reader);
  trace.pass_time(kSettled);
  resume_then_generate(trace, g, numbered(1), 1);
}

void owner_restart(TraceBuilder& trace) {
  const std::uint32_t g = small_ring(trace);
  write_all(trace, g, numbered(1));
  trace.owner_restart();
  // Within the settle bound of their commits, keys that are missing count as unsettled.
  trace.pass_time(kSettled);
  resume_then_generate(trace, g, numbered(1), 1);
  trace.pass_time(kSecond);
  resume_then_generate(trace, g, numbered(1), 0);
}

void hints_above_a_gap(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(4, 0));
  const Id writer = write_all(trace, g, numbered(4));
  trace.pass_time(kSettled);
  trace.evict(writer, 1);
  trace.owner_restart();
  resume_then_generate(trace, g, numbered(4), 4);
}

void hints_of_a_snapshot(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(4, 0));
  const Id writer = write_all(trace, g, numbered(3));
  trace.pass_time(kSettled);
  trace.evict(writer, 0);
  trace.snapshot();
  trace.store_evict_blob(writer, 1);
  trace.restart();
  trace.pass_time(kSettled);
  resume_then_generate(trace, g, numbered(3), 3);
}

void many_lost_at_once(TraceBuilder& trace) {
  one_piece(trace);
  Geometry geometry = rolling(2, 0);
  geometry.latent_bytes = 0;
  const std::uint32_t g = trace.geometry(geometry);
  write_all(trace, g, numbered(7));
  trace.pass_time(kSettled);
  trace.owner_restart();
  resume_then_generate(trace, g, numbered(7), 1);
}

void probed_in_turn(TraceBuilder& trace) {
  trace.trace().pump_probes = 1;
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(4, 0));
  const Id first = write_all(trace, g, numbered(2));
  const Id second = trace.open({.world = 2, .geometry = g, .actions = numbered(1)});
  trace.generate(second);
  trace.close(first);
  trace.close(second);
  trace.pass_time(kSettled);
  trace.store_evict_latent(first, 1);
  trace.store_evict_blob(second, 0);
  for (int turn = 0; turn < 4; ++turn) trace.pump();
}

void warm_up(TraceBuilder& trace) {
  trace.trace().grant_bytes = trace.trace().segment_bytes / 2;
  trace.geometry(full_length(1));
  trace.warm_up();
  trace.warm_up();
}

void warm_up_cancelled(TraceBuilder& trace) {
  trace.trace().grant_bytes = trace.trace().segment_bytes / 2;
  const std::uint32_t g = trace.geometry(rolling(4, 0));
  constexpr std::uint64_t kTouched = 4;  // asked once before all, and three times while two parts are touched
  trace.warm_up(kTouched + 2);           // one piece is registered
  trace.warm_up(kTouched + 4);           // three are
  trace.owner_restart();
  trace.warm_up();
  write_all(trace, g, numbered(1));
}

void registration_refused(TraceBuilder& trace) {
  trace.trace().grant_bytes = trace.trace().segment_bytes / 2;
  constexpr std::uint32_t kSecondPiece = 1;
  constexpr std::uint32_t kSecondMapping = 2;
  const std::uint32_t g = trace.geometry(rolling(4, 0));
  write_all(trace, g, numbered(1));
  trace.pass_time(kSettled);
  trace.restart();
  trace.fault({trace.warm_up(), Call::host_register, kSecondPiece, FaultKind::before,
               code_of(CudaErrc::memory_allocation), 0, false});
  trace.fault({trace.warm_up(), Call::host_register, kSecondMapping, FaultKind::before,
               code_of(CudaErrc::memory_allocation), 0, false});
  resume_then_generate(trace, g, numbered(1), 1);
}

void registered_by_others(TraceBuilder& trace) {
  one_piece(trace);
  trace.geometry(full_length(1));
  constexpr std::uint64_t kWhole = 0;
  constexpr std::uint64_t kFirstHalf = 1;
  trace.fault({trace.warm_up(), Call::host_register, 0, FaultKind::before,
               code_of(CudaErrc::host_memory_already_registered), kWhole, false});
  trace.owner_restart();
  trace.fault({trace.warm_up(), Call::host_register, 0, FaultKind::before,
               code_of(CudaErrc::host_memory_already_registered), kFirstHalf, false});
}

void snapshot_restart(TraceBuilder& trace) {
  const std::uint32_t g = small_ring(trace);
  write_all(trace, g, {"0", "1"});
  trace.pass_time(kSettled);
  trace.snapshot();
  write_all(trace, g, {"0", "2"});
  trace.restart();
  resume_then_generate(trace, g, {"0", "1"}, 0);
  resume_then_generate(trace, g, {"0", "2"}, 1);
}

void torn_snapshot(TraceBuilder& trace) {
  const std::uint32_t g = small_ring(trace);
  write_all(trace, g, numbered(1));
  trace.snapshot();
  constexpr std::uint64_t kBytesRead = 40;
  trace.fault({trace.restart(), Call::file_read, 0, FaultKind::part, 0, kBytesRead, false});
  resume_then_generate(trace, g, numbered(1), 1);
  trace.snapshot();
  trace.restart();
  resume_then_generate(trace, g, numbered(1), 0);
}

void snapshot_failed(TraceBuilder& trace) {
  const std::uint32_t g = small_ring(trace);
  write_all(trace, g, numbered(1));
  trace.pass_time(kSettled);
  trace.fault({trace.snapshot(), Call::file_sync, 0, FaultKind::before, EIO, 0, false});
  trace.snapshot();
  trace.restart();
  resume_then_generate(trace, g, numbered(1), 0);
}

}  // namespace holdfast::sim::scenario
