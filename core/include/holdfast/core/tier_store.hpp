// What a manager asks of a store, and how it answers: values put together, restored together, probed and removed.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/copy_stream.hpp"
#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/core/result.hpp"
#include "holdfast/core/stats.hpp"
#include "holdfast/core/tensor.hpp"
#include "holdfast/core/time.hpp"
#include "holdfast/core/value_checksum.hpp"

namespace holdfast {

// Failures after which an operation went on. An operation that fails moves them into its error as suppressed.
using Absorbed = std::vector<Error>;
[[nodiscard]] Error with_suppressed(Error error, Absorbed& absorbed);

enum class PutVerdict : std::uint8_t {
  stored,     // every key answered 0 to its own commit
  adopted,    // every key was readable under one read plan after its settle bound
  elsewhere,  // somebody else has written or is writing a key: nothing was stored, nothing may be published
};

struct PutReceipt {
  PutVerdict verdict = PutVerdict::stored;
  Nanos committed_ns = 0;   // when the last commit had been submitted, or the values were seen readable
  std::uint64_t epoch = 0;  // of the store, in which that was
  // Of all values, in key order, where the store takes checksums.
  GroupChecksum checksum = {};
};

// Part of a value, to a place in a device tensor.
struct ReadCopy {
  std::size_t key = 0;  // index into the request's keys
  std::uint64_t value_offset = 0;
  std::size_t tensor = 0;  // index into the request's tensors
  std::uint64_t tensor_offset = 0;
  std::uint64_t bytes = 0;
};

struct ReadRequest {
  Keys keys;
  std::span<const std::uint64_t> value_bytes;        // of each key, as recorded when it was put
  std::span<const std::uint32_t> atomic_group_lens;  // add up to the number of keys
  std::span<const DeviceTensor> tensors;
  std::span<const ReadCopy> copies;
  bool one_answer = false;                        // all of it by one get: no value may be looked for later than another
  std::span<const GroupChecksum> checksums = {};  // of each atomic group, as its put told; empty: none is known
};

enum class ReadVerdict : std::uint8_t {
  restored,
  incomplete,
  corrupt,  // groups whose checksum is another one: nothing of them was copied
  failed,
};

struct [[nodiscard]] ReadOutcome {
  ReadVerdict verdict = ReadVerdict::failed;
  bool targets_touched = false;  // a copy into the tensors may have been submitted: unless restored, undefined bytes
  Error error;                   // unless restored
  std::uint64_t epoch = 0;       // of the store, when restored
  // Indices of the atomic groups that were found corrupt, in order; also where the verdict is another for what failed
  // besides. Those behind the first batch that has one were not looked at.
  std::vector<std::size_t> corrupt_groups = {};
};

// What a probe found.
struct Presence {
  bool present = false;     // every key is readable
  std::uint64_t epoch = 0;  // of the store, in which it was asked
};

struct RemoveRequest {
  Keys keys;
  std::span<const std::uint64_t> value_bytes;
  Nanos last_commit_ns = 0;
};

struct RemoveOutcome {
  std::uint64_t removed = 0;    // keys that are gone
  std::uint64_t queued = 0;     // keys that may appear yet: they are unsettled now
  std::vector<Error> failures;  // keys whose removal failed: ask again
};

// A store that moves bytes straight between device tensors and its own memory. All calls may run concurrently; the
// caller keeps keys and tensors until they return. The tensors of one call are on one device, the stream's. When a call
// returns, nothing is in flight but what an error calls quarantined; a stream's follower is told of all the same.
// Whatever the end, what an operation took is in `spent`, where nothing was before.
template <class S>
concept PathTierStore = requires(S& store, Keys keys, std::span<const DeviceTensor> tensors, const CopyStream& stream,
                                 const ReadRequest& read, const RemoveRequest& removal,
                                 std::span<const std::uint64_t> value_bytes, Absorbed& absorbed, Stats* spent) {
  // All or nothing, as far as the caller may publish. Unsettled: refused, nothing started. PutFailed: nothing may
  // be published, and what was stored is removed now or later.
  { store.put(keys, tensors, stream, absorbed, spent) } -> std::same_as<Result<PutReceipt>>;
  { store.restore(read, stream, absorbed, spent) } -> std::same_as<ReadOutcome>;
  { store.probe(keys, absorbed) } -> std::same_as<Result<Presence>>;
  // Grows when the store hears that all it had is gone, as when its owner is a new one. What was last written or read
  // in an earlier epoch is but a hint.
  { store.epoch() } -> std::same_as<std::uint64_t>;
  { store.remove(removal, absorbed) } -> std::same_as<RemoveOutcome>;
  // Values that a reader found incomplete, or that a writer of an earlier incarnation may have left: removed later.
  // Makes no call that can wait.
  store.queue_removal(removal);
};

// A store of whole tensors in ordinary memory: its caller takes owned snapshots and gives them away.
template <class S>
concept TensorTierStore = requires(S& store, std::string_view key, std::vector<std::byte> bytes) {
  // Replaces what is there. After a failure the old value, the new one or none may be.
  { store.put_tensor(key, std::move(bytes)) } -> std::same_as<Status>;
  // KeyNotFound 4000 when there is none; a damaged file, see is_damaged_file, is as good as none.
  { store.get_tensor(key) } -> std::same_as<Result<std::vector<std::byte>>>;
  // True when a get would give it now, false when there is none. A failure says neither.
  { store.has_tensor(key) } -> std::same_as<Result<bool>>;
  // Removing what is not there is a success.
  { store.remove_tensor(key) } -> std::same_as<Status>;
};

struct FailedPut {
  std::string key;
  Error error;
};

// One whose put may only have been queued when it succeeded. Publish nothing before a flush has returned without it.
template <class S>
concept QueuedTensorStore = TensorTierStore<S> && requires(S& store) {
  // Does what is queued. Tells of each put that failed since the last flush, once.
  { store.flush() } -> std::same_as<std::vector<FailedPut>>;
};

}  // namespace holdfast
