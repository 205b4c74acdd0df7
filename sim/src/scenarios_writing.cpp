// Scenarios of puts: what is written, refused, in doubt, left over.
#include "scenario_parts.hpp"

namespace holdfast::sim::scenario {
namespace {}  // namespace

// The layers of the real model and its ring: 7 frames, of which 3 are sink. Tokens and heads are scaled down.
void abcd(TraceBuilder& trace) {
  Geometry geometry;
  geometry.n_layers = 40;
  geometry.frames_per_chunk = 3;
  geometry.frame_tokens = 2;
  geometry.ring_frames = 7;
  geometry.sink_frames = 3;
  geometry.full_length = false;
  geometry.kv_token_bytes = {128};
  geometry.latent_bytes = 384;
  geometry.timesteps = 4;
  trace.trace().segment_bytes = 4ULL << 20;
  trace.trace().grant_bytes = 1ULL << 20;
  const std::uint32_t g = trace.geometry(geometry);
  const Actions shared{"\"forward\"", "\"left\"", "\"forward\""};
  const Actions forked{"\"forward\"", "\"left\"", "\"right\""};
  trace.warm_up();
  write_all(trace, g, shared);
  resume_then_generate(trace, g, shared, 0);
  resume_then_generate(trace, g, forked, 1);
  write_all(trace, g, forked);
}

void cold_write(TraceBuilder& trace) {
  one_piece(trace);
  write_all(trace, trace.geometry(rolling(5, 1)), numbered(1));
}

void one_size_write(TraceBuilder& trace) {
  one_piece(trace);
  Geometry geometry = rolling(5, 1);
  geometry.kv_token_bytes = {48};
  geometry.latent_bytes = 192;
  write_all(trace, trace.geometry(geometry), numbered(1));
}

void mixed_write(TraceBuilder& trace) {
  // A grant for each of the slot sizes.
  trace.trace().segment_bytes = 3 * trace.trace().grant_bytes;
  Geometry geometry = full_length(1);
  geometry.frames_per_chunk = 1;
  geometry.frame_tokens = 1;
  geometry.ring_frames = 1;
  geometry.kv_token_bytes = {64, 5000, kLargeBytes};
  const std::uint32_t g = trace.geometry(geometry);
  write_all(trace, g, numbered(1));
  resume_then_generate(trace, g, numbered(1), 0);
}

void quantised(TraceBuilder& trace) {
  trace.trace().batches_in_flight = 2;
  one_piece(trace);
  Geometry geometry = rolling(5, 1);
  geometry.scale_token_bytes = 16;
  const std::uint32_t g = trace.geometry(geometry);
  const Actions actions = numbered(4);
  const Id writer = write_all(trace, g, actions);
  trace.pass_time(kSettled);
  resume_then_generate(trace, g, actions, 0);
  trace.pass_time(kSecond);  // until its holders have dropped
  trace.evict(writer, 3);
  trace.store_evict_blob(writer, 2);
  trace.snapshot();
  trace.restart();
  trace.pass_time(kSettled);
  resume_then_generate(trace, g, actions, 2);
}

void repeated_write(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(5, 1));
  write_all(trace, g, numbered(1));
  write_all(trace, g, numbered(1));
}

void two_writers(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(5, 1));
  const Id first = trace.open({.world = 1, .geometry = g, .actions = numbered(2)});
  const Id second = trace.open({.world = 1, .geometry = g, .actions = numbered(2)});
  const Id refused = trace.generate(first);
  trace.fault({refused, Call::local_fast_put_start, kLatentPut, FaultKind::before,
               code_of(FluxonErrc::key_being_written), 0, false});
  trace.fault({refused, Call::local_fast_put_start, kSecondGroup, FaultKind::before,
               code_of(FluxonErrc::key_being_written), 0, false});
  trace.generate(second);
  trace.generate(first);
  trace.generate(second);
}

void key_in_flight(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(5, 1));
  const Id session = trace.open({.world = 1, .geometry = g, .actions = numbered(1)});
  trace.fault({trace.generate(session), Call::local_fast_put_start, kFirstGroup, FaultKind::before,
               code_of(FluxonErrc::key_already_exists), 0, false});
  trace.pass_time(kSettled);
  trace.pump();
  write_all(trace, g, numbered(1));
}

void leftover_of_another_length(TraceBuilder& trace) {
  one_piece(trace);
  Geometry geometry = full_length(1);
  geometry.latent_bytes = 0;
  Geometry mistaken = geometry;
  for (std::uint32_t& bytes : mistaken.kv_token_bytes) bytes += 16;
  const std::uint32_t g = trace.geometry(geometry);
  const std::uint32_t other = trace.geometry(mistaken);
  const Id session = trace.open_mistaken({.world = 1, .geometry = other, .actions = numbered(1)}, g);
  const Id doubtful = trace.generate(session);
  for (const std::uint32_t group : {0U, 1U}) {
    trace.fault({doubtful, Call::commit_wait, group, FaultKind::lost, code_of(CommitCode::timeout), 0, false});
  }
  trace.pass_time(kSettled);
  write_all(trace, g, numbered(1));
}

void adopted_leftover(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(5, 1));
  const Id session = trace.open({.world = 1, .geometry = g, .actions = numbered(1)});
  const Id doubtful = trace.generate(session);
  for (const std::uint32_t put : {kFirstGroup, kSecondGroup}) {
    trace.fault({doubtful, Call::commit_wait, put, FaultKind::lost, code_of(CommitCode::timeout), 0, false});
  }
  write_all(trace, g, numbered(1));
  trace.pass_time(kSettled);
  write_all(trace, g, numbered(1));
}

namespace {

Id fail_second_group(TraceBuilder& trace, std::uint32_t geometry) {
  const Id step = trace.generate(trace.open({.world = 1, .geometry = geometry, .actions = numbered(1)}));
  trace.fault(
      {step, Call::commit_wait, kSecondGroup, FaultKind::before, code_of(CommitCode::reservation_gone), 0, false});
  return step;
}

}  // namespace

void leftovers(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(5, 1));
  const Id step = fail_second_group(trace, g);
  // By then the first group has its routes, or the removals would find nothing.
  trace.choice(
      {step, Call::local_fast_put_commit, kSecondGroup, ChoiceKind::answer_after, static_cast<std::uint64_t>(kSecond)});
  write_all(trace, g, numbered(1));
}

void leftovers_repeated(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(5, 1));
  const Id step = fail_second_group(trace, g);
  trace.choice({step, Call::local_fast_put_commit, kFirstGroup, ChoiceKind::route_after,
                static_cast<std::uint64_t>(5 * kSecond)});
  trace.pass_time(kSettled);
  trace.pump();
  write_all(trace, g, numbered(1));
}

void failed_copy(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(5, 1));
  const Id session = trace.open({.world = 1, .geometry = g, .actions = numbered(2)});
  constexpr std::uint64_t kSomeCopies = 1;
  const Id partly = trace.generate(session);
  trace.fault({partly, Call::copy_batch, 1, FaultKind::part, code_of(CudaErrc::launch_failure), kSomeCopies, false});
  const Id unwaited = trace.generate(session);
  trace.fault({unwaited, Call::stream_synchronize, 1, FaultKind::before, code_of(CudaErrc::launch_failure), 0, false});
  write_all(trace, g, numbered(2));
}

void stuck_copy(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(5, 1));
  const Id session = trace.open({.world = 1, .geometry = g, .actions = numbered(1)});
  trace.fault({trace.generate(session), Call::stream_synchronize, 1, FaultKind::before,
               code_of(CudaErrc::launch_failure), 0, true});
  write_all(trace, g, numbered(1));
  trace.pump();
  write_all(trace, g, numbered(1));
}

void dead_context(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(5, 1));
  const Id session = trace.open({.world = 1, .geometry = g, .actions = numbered(1)});
  trace.fault({trace.generate(session), Call::stream_synchronize, 1, FaultKind::before,
               code_of(CudaErrc::illegal_address), 0, false});
  trace.pump();
  resume_then_generate(trace, g, numbered(1), 0);
}

void old_plan(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(5, 1));
  const auto generate_slowly = [&](std::uint32_t wait, Nanos late_ns) {
    const Id session = trace.open({.world = 1, .geometry = g, .actions = numbered(1)});
    trace.fault({trace.generate(session), Call::stream_synchronize, wait, FaultKind::late, 0,
                 static_cast<std::uint64_t>(late_ns), false});
  };
  generate_slowly(1, kPlanTimeout - 5 * kMinute);
  // The latent is there by now, so the wait for the values is the first.
  generate_slowly(0, kPlanTimeout + kMinute);
  write_all(trace, g, numbered(1));
}

namespace {

// Without latents a chunk takes four slots, in two plans of two.
constexpr std::uint64_t kValueSlots = 4;

Geometry values_only(std::uint32_t n_layers) {
  Geometry geometry = rolling(4, 0);
  geometry.n_layers = n_layers;
  geometry.latent_bytes = 0;
  return geometry;
}

// Two slots of something that is where it may be evicted.
void fill_two_slots(TraceBuilder& trace) {
  write_all(trace, trace.geometry(values_only(1)), numbered(1));
  trace.pass_time(kSecond);
}

}  // namespace

void lost_reservation(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(5, 1));
  const Id session = trace.open({.world = 1, .geometry = g, .actions = numbered(1)});
  trace.fault({trace.generate(session), Call::local_fast_put_start, kSecondGroup, FaultKind::lost,
               code_of(FluxonErrc::network), 0, false});
  trace.pass_time(kSecond);
  write_all(trace, g, numbered(1));
  trace.pass_time(kPlanTimeout + kMinute);
  write_all(trace, g, numbered(1));
}

void reserved_full(TraceBuilder& trace) {
  trace.trace().segment_bytes = (kValueSlots + 2) * kSlotAlignment;
  one_piece(trace);
  fill_two_slots(trace);
  const std::uint32_t g = trace.geometry(values_only(2));
  const Id session = trace.open({.world = 1, .geometry = g, .actions = numbered(1)});
  trace.fault({trace.generate(session), Call::local_fast_put_start, 1, FaultKind::lost, code_of(FluxonErrc::network), 0,
               false});
  write_all(trace, g, numbered(1));
}

void no_free_slots(TraceBuilder& trace) {
  // A chunk of a latent and four values, and the next latent.
  trace.trace().segment_bytes = (kValueSlots + 2) * kSlotAlignment;
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(4, 0));
  const Id session = trace.open({.world = 1, .geometry = g, .actions = numbered(2)});
  trace.generate(session);
  trace.pass_time(kSettled);
  trace.generate(session);
  trace.evict(session, 0);
  trace.pump();
  write_all(trace, g, numbered(1));
}

void orphans(TraceBuilder& trace) {
  one_piece(trace);
  fill_two_slots(trace);
  const std::uint32_t g = trace.geometry(values_only(2));
  const Id step = trace.generate(trace.open({.world = 1, .geometry = g, .actions = numbered(1)}));
  for (const std::uint32_t put : {0U, 1U}) {
    trace.choice(
        {step, Call::local_fast_put_commit, put, ChoiceKind::route_after, static_cast<std::uint64_t>(30 * kSecond)});
  }
  trace.restart();
  write_all(trace, g, numbered(1));
  trace.pass_time(kSettled);
  write_all(trace, g, numbered(1));
}

void full_of_orphans(TraceBuilder& trace) {
  trace.trace().segment_bytes = (kValueSlots + 2) * kSlotAlignment;
  orphans(trace);
}

void memory_tier(TraceBuilder& trace) {
  trace.trace().in_memory_store = true;
  const std::uint32_t g = trace.geometry(rolling(4, 0));
  const Id session = write_all(trace, g, numbered(2));
  resume_then_generate(trace, g, numbered(2), 0);
  trace.evict(session, 1);
  resume_then_generate(trace, g, numbered(2), 1);
  trace.snapshot();
  trace.restart();
  resume_then_generate(trace, g, numbered(2), 1);
}

}  // namespace holdfast::sim::scenario
