// What the scenarios are made of, and the scenarios by file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/sim/trace_builder.hpp"

namespace holdfast::sim::scenario {

using Actions = std::vector<std::string>;
using Id = TraceBuilder::Id;

// Whatever was submitted has been decided, and is where it may be evicted.
inline constexpr Nanos kSettled = kSettleBound + kSecond;
// The puts of a chunk: the latent's comes first; the values' follows, a plan for each of their lengths.
inline constexpr std::uint32_t kLatentPut = 0;
inline constexpr std::uint32_t kFirstGroup = 1;
inline constexpr std::uint32_t kSecondGroup = 2;
inline constexpr std::uint32_t kValues = kFirstGroup;  // where they have one length
// A value of a size class of its own.
inline constexpr std::uint32_t kLargeBytes = 96 << 10;

constexpr std::int32_t code_of(FluxonErrc errc) { return static_cast<std::int32_t>(errc); }
constexpr std::int32_t code_of(CommitCode code) { return static_cast<std::int32_t>(code); }
constexpr std::int32_t code_of(CudaErrc errc) { return static_cast<std::int32_t>(errc); }

// Two layers, K and V of different sizes, skeletons, chunks of two frames.
Geometry rolling(std::uint32_t ring_frames, std::uint32_t sink_frames);
Geometry full_length(std::uint32_t chunks);
// A segment of one registration, so that little is swept of it.
void one_piece(TraceBuilder& trace);
// "0", "1", ... so many.
Actions numbered(std::size_t chunks);

// The routes of the values of a chunk, but not of its latent, come late.
void route_values_late(TraceBuilder& trace, Id generate);

// Opens a session of one world and generates all of its chunks.
Id write_all(TraceBuilder& trace, std::uint32_t geometry, const Actions& actions);
// Opens one, resumes it, and generates so many chunks more. Gives the session.
Id resume_then_generate(TraceBuilder& trace, std::uint32_t geometry, const Actions& actions, std::size_t chunks);

// ---- scenarios_writing.cpp
void abcd(TraceBuilder& trace);
void cold_write(TraceBuilder& trace);
void one_size_write(TraceBuilder& trace);
void mixed_write(TraceBuilder& trace);
void quantised(TraceBuilder& trace);
void repeated_write(TraceBuilder& trace);
void two_writers(TraceBuilder& trace);
void key_in_flight(TraceBuilder& trace);
void adopted_leftover(TraceBuilder& trace);
void leftover_of_another_length(TraceBuilder& trace);
void leftovers(TraceBuilder& trace);
void leftovers_repeated(TraceBuilder& trace);
void failed_copy(TraceBuilder& trace);
void stuck_copy(TraceBuilder& trace);
void dead_context(TraceBuilder& trace);
void old_plan(TraceBuilder& trace);
void lost_reservation(TraceBuilder& trace);
void reserved_full(TraceBuilder& trace);
void no_free_slots(TraceBuilder& trace);
void orphans(TraceBuilder& trace);
void full_of_orphans(TraceBuilder& trace);
void memory_tier(TraceBuilder& trace);

// ---- scenarios_overlapping.cpp
void overlapped(TraceBuilder& trace);
void overlapped_beside(TraceBuilder& trace);
void synchronous_beside(TraceBuilder& trace);
void memory_tier_beside(TraceBuilder& trace);
void overlapped_failures(TraceBuilder& trace);
void overlapped_stuck(TraceBuilder& trace);
void vanished_part(TraceBuilder& trace);

// ---- scenarios_resuming.cpp
void full_hit(TraceBuilder& trace);
void two_of_three(TraceBuilder& trace);
void fork(TraceBuilder& trace);
void full_length_ring(TraceBuilder& trace);
void ring_exactly_full(TraceBuilder& trace);
void rolled(TraceBuilder& trace);
void deep_rolled(TraceBuilder& trace);
void wide_sink(TraceBuilder& trace);
void window_minus_one(TraceBuilder& trace);
void window_exact(TraceBuilder& trace);
void window_plus_one(TraceBuilder& trace);
void large_values(TraceBuilder& trace);
void not_yet_routed(TraceBuilder& trace);
void break_even(TraceBuilder& trace);
void mistaken_layout(TraceBuilder& trace);

// ---- scenarios_losing.cpp
void evict_then_resume(TraceBuilder& trace);
void evict_held(TraceBuilder& trace);
void evict_failed(TraceBuilder& trace);
void evict_early(TraceBuilder& trace);
void make_room(TraceBuilder& trace);
void two_marks(TraceBuilder& trace);
void idle_world(TraceBuilder& trace);
void store_evicts_latent(TraceBuilder& trace);
void store_evicts_between(TraceBuilder& trace);
void damaged(TraceBuilder& trace);
void handle_times_out(TraceBuilder& trace);
void restart_during_put(TraceBuilder& trace);
void restart_before_wait(TraceBuilder& trace);
void restart_during_get(TraceBuilder& trace);
void owner_restart(TraceBuilder& trace);
void hints_above_a_gap(TraceBuilder& trace);
void hints_of_a_snapshot(TraceBuilder& trace);
void many_lost_at_once(TraceBuilder& trace);
void probed_in_turn(TraceBuilder& trace);
void warm_up(TraceBuilder& trace);
void warm_up_cancelled(TraceBuilder& trace);
void registration_refused(TraceBuilder& trace);
void registered_by_others(TraceBuilder& trace);
void snapshot_restart(TraceBuilder& trace);
void torn_snapshot(TraceBuilder& trace);
void snapshot_failed(TraceBuilder& trace);

// ---- scenarios_together.cpp
void put_beside_put(TraceBuilder& trace);
void lookup_beside_commit(TraceBuilder& trace);
void resume_beside_resume(TraceBuilder& trace);
void evict_beside_resume(TraceBuilder& trace);
void evict_beside_hold(TraceBuilder& trace);
void evict_beside_put(TraceBuilder& trace);
void make_room_beside_resume(TraceBuilder& trace);
void make_room_beside_hold(TraceBuilder& trace);
void fork_beside_put(TraceBuilder& trace);
void failed_put_beside_put(TraceBuilder& trace);
void snapshot_beside_put(TraceBuilder& trace);
void pump_beside_put(TraceBuilder& trace);
void pump_beside_pump(TraceBuilder& trace);
void loss_beside_resume(TraceBuilder& trace);
void restart_beside_put(TraceBuilder& trace);
void restart_beside_resume(TraceBuilder& trace);
void warm_up_beside_put(TraceBuilder& trace);
void refused_warm_up_beside_put(TraceBuilder& trace);
void close_beside_put(TraceBuilder& trace);
void pumps_beside_put(TraceBuilder& trace);
void pumps_of_a_stuck_plan(TraceBuilder& trace);
void loss_beside_put(TraceBuilder& trace);
void probe_beside_put(TraceBuilder& trace);
void snapshot_beside_evict(TraceBuilder& trace);
void snapshot_beside_snapshot(TraceBuilder& trace);
void puts_in_little_room(TraceBuilder& trace);
void idle_world_beside_open(TraceBuilder& trace);

}  // namespace holdfast::sim::scenario
