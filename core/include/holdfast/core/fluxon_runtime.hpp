// The Fluxon runtime the core is given: nine Plan calls, and whole-value bytes. A model answers as the Plan contract
// says; the core relies on nothing else.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/result.hpp"
#include "holdfast/core/time.hpp"

namespace holdfast {

// Error numbers of the Plan API (Origin::fluxon).
enum class FluxonErrc : std::int32_t {
  general = 1000,  // a closed client too
  invalid_argument = 1001,
  timeout = 1002,
  resource_exhausted = 1003,
  backend_unavailable = 2001,
  store_closed = 3001,
  key_not_found = 4000,
  key_already_exists = 4001,
  value_too_large = 4003,
  key_being_written = 4004,
  network = 7000,  // whatever has no number of its own: a transport failure
  transfer_block_failed = 7002,
};

// Per-key codes of a commit (Origin::fluxon_key). 0 = stored, and readable from this owner.
// `-117` and `-118` say "not stored"; every other non-zero code leaves the outcome unknown.
enum class CommitCode : std::int32_t {
  stored = 0,
  unknown = -103,
  owner_restarted = -117,
  reservation_gone = -118,
  timeout = -608,  // this and other -6xx: transport
};
enum class KeyOutcome : std::uint8_t { stored, not_stored, unknown };
[[nodiscard]] KeyOutcome outcome_of(std::int32_t commit_code);

[[nodiscard]] Error fluxon_error(FluxonErrc errc, std::string_view call, std::string detail = {});
[[nodiscard]] bool is_fluxon(const Error& error, FluxonErrc errc);

inline constexpr std::uint64_t kPlanMagic = 0x4658'504c'414e'5631;  // "FXPLANV1"
inline constexpr std::uint64_t kSlotAlignment = 4096;               // a slot is align_up(max(value_len, 4 KiB), 4 KiB)
inline constexpr std::uint64_t kGrantBytes = 512ULL << 20;          // slots are carved from grants and never cross two
inline constexpr std::uint64_t kMaxValueBytes = 512ULL << 20;
inline constexpr std::uint64_t kMaxPutGroupKeys = 4096;
inline constexpr Nanos kPutStartWaitLimit = 30 * kSecond;  // how long put_start waits for a free slot
inline constexpr Nanos kPlanTimeout = 30 * kMinute;        // after this the owner frees a plan's slots
inline constexpr Nanos kHandleTimeout = 360 * kSecond;     // handles that needed a transfer
inline constexpr Nanos kSettleBound = 60 * kSecond;        // every submitted commit is decided within this

// Bytes that a value of `value_bytes` takes from a segment.
[[nodiscard]] constexpr std::uint64_t slot_bytes(std::uint64_t value_bytes) {
  const std::uint64_t at_least = value_bytes < kSlotAlignment ? kSlotAlignment : value_bytes;
  return (at_least + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

// An owner's mapping, at two addresses in this process; both show the same bytes, `read_ptr` is often read-only.
struct Segment {
  std::string segment_label;  // "external_owner:0", or "cpu:0" on an owner
  std::uintptr_t write_ptr = 0;
  std::uintptr_t read_ptr = 0;
  std::uint64_t len = 0;         // bytes
  std::uint64_t generation = 0;  // the owner's start time in seconds
  std::string node_id;
};

// The address of a plan's table of u64 words in this process. After the plan ended the same address may be another's.
struct PlanPtr {
  std::uintptr_t address = 0;
  friend bool operator==(PlanPtr, PlanPtr) = default;
};

// Numbers start again at 1 with each owner generation.
struct GetHandle {
  std::uint64_t number = 0;
  friend bool operator==(GetHandle, GetHandle) = default;
};

struct GetStart {
  GetHandle handle;
  std::uint64_t raw_prefix_hit_len = 0;  // consecutive keys found
  std::uint64_t transferable_len = 0;    // keys in whole groups of that prefix
  std::uint64_t prefix_hit_groups = 0;
  std::uint64_t first_miss_index = 0;  // == number of keys when all hit
  std::uint64_t first_miss_group = 0;  // == number of groups when all hit
  bool all_hit = false;
};

struct PutOptions {
  bool reject_if_exists = true;         // KeyAlreadyExists 4001 instead of overwriting
  bool reject_if_being_written = true;  // KeyBeingWritten 4004 instead of overwriting
  bool write_through = false;
  std::span<const std::uint8_t> mask;             // empty, or one flag a key
  std::span<const std::uint32_t> put_group_lens;  // empty, or groups that add up to the number of keys
};

// Views of keys that the callee copies if it needs them after the call.
using Keys = std::span<const std::string_view>;

// `wait` gives one code per key, in key order. It consumes the future, except when it fails with Timeout 1002: then
// `limit_ns` passed, the work goes on, and it may be waited for again. Any other failure, a second wait among them,
// leaves every outcome unknown. Dropping a future abandons nothing: the work goes on unobserved.
template <class F>
concept CommitFuture = std::movable<F> && requires(F& future, Nanos limit_ns) {
  { future.wait(limit_ns) } -> std::same_as<Result<std::vector<std::int32_t>>>;
};

// All calls may run concurrently. Failures carry Origin::fluxon and a FluxonErrc.
template <class R>
concept FluxonRuntime =
    CommitFuture<typename R::Future> &&
    requires(R& fluxon, Keys keys, std::uint64_t value_len, const PutOptions& options, PlanPtr plan, GetHandle handle,
             bool prefix_best_effort, std::span<const std::uint32_t> atomic_group_lens, std::uint64_t prefix_len,
             std::string_view key, std::span<const std::byte> bytes) {
      // The live segments. May wait for ever while nothing is mounted.
      { fluxon.wait_local_segments_ready() } -> std::same_as<Result<std::vector<Segment>>>;
      // Claims one slot of `value_len` bytes per key, all or nothing; waits up to 30 s for free slots, then 7000.
      // No key twice in one call: undefined in the owner.
      { fluxon.local_fast_put_start(keys, value_len, options) } -> std::same_as<Result<PlanPtr>>;
      // Ends the plan, also when the call fails: never to be aborted afterwards. Its blob must not be read any more.
      { fluxon.local_fast_put_commit(plan) } -> std::same_as<Result<typename R::Future>>;
      // Ends a put plan, also when it fails. Never after commit was submitted.
      { fluxon.put_abort(plan) } -> std::same_as<Status>;
      // Pins the found prefix. The handle of a miss must still be cancelled. No groups = one group.
      { fluxon.get_start(keys, prefix_best_effort, atomic_group_lens) } -> std::same_as<Result<GetStart>>;
      // Consumes the handle and gives a read plan, unless it fails with InvalidArgument 1001: then the handle lives.
      { fluxon.get_transfer(handle, prefix_len) } -> std::same_as<Result<PlanPtr>>;
      // Ends a handle, also when it fails; never to be tried again.
      { fluxon.cancel_get_transfer(handle) } -> std::same_as<Status>;
      // Ends a read plan, also when it fails; never to be tried again.
      { fluxon.release_views(plan) } -> std::same_as<Status>;
      // Drops the route. 4000: absent, or stored but not yet routed.
      { fluxon.remove(key) } -> std::same_as<Status>;
      // Whole values, copied in and out by the runtime.
      { fluxon.put(key, bytes) } -> std::same_as<Status>;
      { fluxon.get(key) } -> std::same_as<Result<std::vector<std::byte>>>;
    };

}  // namespace holdfast
