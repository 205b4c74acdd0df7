// Situations that a campaign must have met: a check that never saw its situation has shown nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace holdfast::sim {

// X(identifier, "name", rare). Rare ones are shown, and required of the sweep instead of the default profile.
#define HOLDFAST_MARKS(X)                                                                        \
  X(put_one_size, "put of one size", false)                                                      \
  X(put_three_sizes, "put of three sizes", false)                                                \
  X(put_ready_node, "put of a ready node moves nothing", false)                                  \
  X(put_written_elsewhere, "4004 from another writer", false)                                    \
  X(put_key_in_flight, "4001 of a key in flight", false)                                         \
  X(put_exists_adopted, "4001 then adopted", false)                                              \
  X(put_refused_unsettled, "put refused: unsettled", false)                                      \
  X(second_plan_refused, "plan started, second plan of the same put refused", false)             \
  X(abort_nothing_submitted, "abort with nothing submitted", false)                              \
  X(abort_after_partial_batch, "abort after a partly submitted batch, drained first", false)     \
  X(abort_after_later_wait, "synchronize failed once, later wait permits the abort", false)      \
  X(plan_quarantined, "plan quarantined", true)                                                  \
  X(quarantine_torn_down, "quarantine ended by tear-down", true)                                 \
  X(commit_one_key_nonzero, "commit: one key non-zero among many", false)                        \
  X(commit_transport_stored, "commit: transport code, stored", false)                            \
  X(commit_transport_not_stored, "commit: transport code, not stored", false)                    \
  X(future_failed_stored, "future failed, stored", false)                                        \
  X(future_past_patience, "future later than the caller's patience", false)                      \
  X(leftovers_removed, "first group committed, second failed: leftovers removed", false)         \
  X(leftover_removal_repeated, "leftover removal answered 4000 and was repeated", false)         \
  X(removal_lost_repeated, "removal lost, repeated", false)                                      \
  X(leftover_adopted, "leftover adopted by a later put", false)                                  \
  X(plan_aborted_for_age, "plan aborted for its age", true)                                      \
  X(slot_freed_under_plan, "slot freed by the plan time-out under a live plan", true)            \
  X(put_start_lost_returned, "lost put_start answer, keys come back after the time-out", true)   \
  X(full_hit, "full hit", false)                                                                 \
  X(partial_prefix_cancelled, "partial prefix cancelled", false)                                 \
  X(shorter_prefix, "retry with a shorter prefix succeeded", false)                              \
  X(retry_exhausted, "retry exhausted, cold", false)                                             \
  X(latent_missing, "latent missing, blob there", false)                                         \
  X(blob_missing, "blob missing, latent there", false)                                           \
  X(transfer_not_found, "transfer 4000 after a full start", false)                               \
  X(transfer_refused, "transfer refused for a wrong length, handle then cancelled", false)       \
  X(ring_failed_after_latents, "ring failure after latents: session left cold", false)           \
  X(scales_restored, "scale tensors restored with their chunks", false)                          \
  X(ring_full_length, "full-length ring", false)                                                 \
  X(ring_exactly_full, "ring exactly full", false)                                               \
  X(ring_just_rolled, "just rolled", false)                                                      \
  X(ring_deep_rolled, "deep rolled", false)                                                      \
  X(sink_wider_than_chunk, "sink wider than a chunk", false)                                     \
  X(chunk_not_dividing, "chunk not dividing the window", false)                                  \
  X(fork_resumed, "fork resumed", false)                                                         \
  X(break_even_refused, "break-even refused a short prefix", false)                              \
  X(handle_timed_out, "handle timed out", false)                                                 \
  X(length_differs, "stored length differs from the layout, refused", false)                     \
  X(evicted, "evict", false)                                                                     \
  X(evict_refused_pinned, "evict refused: pinned", false)                                        \
  X(evict_refused_referenced, "evict refused: referenced", false)                                \
  X(eviction_failed_retried, "eviction's removal failed, blob not served, tried again", false)   \
  X(store_evicted_ready, "store evicted under a ready flag", false)                              \
  X(hint_confirmed, "a hint asked for by itself: there", false)                                  \
  X(hint_gone, "a hint asked for before a put: gone", false)                                     \
  X(probed_gone, "the periodic probe found a value gone", false)                                 \
  X(corrupt_found, "values that are not what was put: found by a read, withdrawn", false)        \
  X(store_evicted_between, "store evicted between start and transfer", false)                    \
  X(restart_during_put, "owner restarted during put", false)                                     \
  X(restart_before_wait, "owner restarted between commit and wait", false)                       \
  X(restart_during_get, "owner restarted during get", false)                                     \
  X(restart_with_plan_open, "owner restarted with a plan open", false)                           \
  X(stale_not_used, "stale plan and stale handle not used", false)                               \
  X(registered_read_only, "segment registered read-only", false)                                 \
  X(second_mapping_refused, "second mapping refused, addresses translated", false)               \
  X(registration_rolled_back, "registration failed at a later piece, rolled back", false)        \
  X(warm_up_cancelled, "warm-up cancelled between two pieces, rolled back", false)               \
  X(restart_resumed_warm, "snapshot, death, restart, resumed warm", false)                       \
  X(restart_resumed_cold, "snapshot, death, restart, resumed cold", false)                       \
  X(torn_snapshot_refused, "torn snapshot refused", false)                                       \
  X(death_during_put, "death during a put", false)                                               \
  X(death_during_get, "death during a get", false)                                               \
  X(death_during_remove, "death during a removal", false)                                        \
  X(death_during_snapshot, "death during a snapshot", false)                                     \
  X(two_faults_in_step, "two faults in one step", false)                                         \
  X(fault_fired_again, "a fault that stays fired again", false)                                  \
  X(clean_up_failed, "clean-up after a failure failed as well", false)                           \
  X(restart_after_failure, "owner restarted after a failed call of the same step", false)        \
  X(restarted_twice, "owner restarted twice in one step", false)                                 \
  X(death_after_failure, "death after a failed call of the same step", false)                    \
  X(death_with_quarantine, "death with a plan or views quarantined", false)                      \
  X(death_in_restart, "death again in the restart", false)                                       \
  X(context_dead_plan_open, "device context dead with a plan open", false)                       \
  X(large_values_copied, "values of a copy engine's size copied", false)                         \
  X(batches_overlapped, "a batch submitted while another of its operation was in flight", false) \
  X(copied_beside_the_engine, "copies on a stream that waits for the engine's", false)           \
  X(event_refused, "no memory for an event: its batch is waited for by the stream", false)

enum class Mark : std::uint8_t {
#define HOLDFAST_MARK_ENUM(id, name, rare) id,
  HOLDFAST_MARKS(HOLDFAST_MARK_ENUM)
#undef HOLDFAST_MARK_ENUM
};
#define HOLDFAST_MARK_COUNT(id, name, rare) +1
inline constexpr std::size_t kMarkCount = 0 HOLDFAST_MARKS(HOLDFAST_MARK_COUNT);
#undef HOLDFAST_MARK_COUNT

std::string_view name_of(Mark mark);
bool is_rare(Mark mark);

struct MarkCounts {
  std::array<std::uint64_t, kMarkCount> counts{};
  void reach(Mark mark) { ++counts[static_cast<std::size_t>(mark)]; }
};

}  // namespace holdfast::sim
