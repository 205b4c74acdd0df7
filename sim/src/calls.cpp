#include "holdfast/sim/calls.hpp"

#include <algorithm>
#include <cerrno>

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/fluxon_runtime.hpp"

namespace holdfast::sim {
namespace {

constexpr std::array<std::string_view, kCallCount> kCallNames{
    "wait_local_segments_ready",
    "local_fast_put_start",
    "local_fast_put_commit",
    "commit_wait",
    "put_abort",
    "get_start",
    "get_transfer",
    "cancel_get_transfer",
    "release_views",
    "remove",
    "put",
    "get",
    "host_register",
    "host_unregister",
    "copy_batch",
    "event_create",
    "event_record",
    "stream_wait",
    "event_query",
    "event_synchronize",
    "event_destroy",
    "stream_synchronize",
    "pointer_attributes",
    "file_read",
    "file_write",
    "file_sync",
    "file_rename",
    "file_remove",
};

constexpr std::array<std::string_view, kFaultKindCount> kFaultKindNames{
    "before", "lost", "part", "late", "gone", "evict", "death",
};

constexpr std::int32_t code_of(FluxonErrc errc) { return static_cast<std::int32_t>(errc); }
constexpr std::int32_t code_of(CommitCode code) { return static_cast<std::int32_t>(code); }
constexpr std::int32_t code_of(CudaErrc errc) { return static_cast<std::int32_t>(errc); }

constexpr std::int32_t kNetwork = code_of(FluxonErrc::network);
constexpr std::int32_t kClosed = code_of(FluxonErrc::store_closed);
constexpr std::int32_t kInvalid = code_of(FluxonErrc::invalid_argument);
constexpr std::int32_t kNotFound = code_of(FluxonErrc::key_not_found);
constexpr std::int32_t kLaunch = code_of(CudaErrc::launch_failure);
constexpr std::int32_t kSticky = code_of(CudaErrc::illegal_address);
constexpr std::int32_t kValue = code_of(CudaErrc::invalid_value);

// The events that are nobody's call, each possible at any call to an owner or a device.
constexpr LegalFault gone(Call call, std::string_view note = "the owner restarts just before") {
  return {call, FaultKind::gone, 0, note};
}
constexpr LegalFault evict(Call call) { return {call, FaultKind::evict, 0, "the owner evicts what it may"}; }
constexpr LegalFault death(Call call) { return {call, FaultKind::death, 0, "the client dies here"}; }

// Where the code is 0, the caller sees no error of this fault's own.
constexpr auto kLegalFaults = std::to_array<LegalFault>({
    {Call::wait_local_segments_ready, FaultKind::before, code_of(FluxonErrc::backend_unavailable), "not mounted"},
    {Call::wait_local_segments_ready, FaultKind::before, kNetwork, "transport failure"},
    {Call::wait_local_segments_ready, FaultKind::late, 0, "mounted after a while"},
    gone(Call::wait_local_segments_ready, "another generation is mounted"),
    evict(Call::wait_local_segments_ready),
    death(Call::wait_local_segments_ready),

    {Call::local_fast_put_start, FaultKind::before, kInvalid, "refused"},
    {Call::local_fast_put_start, FaultKind::before, code_of(FluxonErrc::key_already_exists),
     "a key exists, or is merely in flight"},
    {Call::local_fast_put_start, FaultKind::before, code_of(FluxonErrc::key_being_written), "another writer has a key"},
    {Call::local_fast_put_start, FaultKind::before, kNetwork, "no free slot within 30 s"},
    {Call::local_fast_put_start, FaultKind::before, kClosed, "the client is closed"},
    {Call::local_fast_put_start, FaultKind::lost, kNetwork, "keys and slots reserved until the plan time-out"},
    {Call::local_fast_put_start, FaultKind::late, 0, "waits for slots, up to 30 s"},
    gone(Call::local_fast_put_start),
    evict(Call::local_fast_put_start),
    death(Call::local_fast_put_start),

    {Call::local_fast_put_commit, FaultKind::before, kInvalid, "refused, the plan lives"},
    {Call::local_fast_put_commit, FaultKind::before, kClosed, "the client is closed"},
    gone(Call::local_fast_put_commit, "the owner restarts with the plan open"),
    evict(Call::local_fast_put_commit),
    death(Call::local_fast_put_commit),

    {Call::commit_wait, FaultKind::before, kNetwork, "the future failed, nothing stored"},
    {Call::commit_wait, FaultKind::before, code_of(CommitCode::timeout), "transport code for all, nothing stored"},
    {Call::commit_wait, FaultKind::before, code_of(CommitCode::unknown), "unknown for all, nothing stored"},
    {Call::commit_wait, FaultKind::before, code_of(CommitCode::owner_restarted), "-117 for all, nothing stored"},
    {Call::commit_wait, FaultKind::before, code_of(CommitCode::reservation_gone), "-118 for all, nothing stored"},
    {Call::commit_wait, FaultKind::lost, kNetwork, "the future failed, all stored"},
    {Call::commit_wait, FaultKind::lost, code_of(CommitCode::timeout), "transport code for all, all stored"},
    {Call::commit_wait, FaultKind::lost, code_of(CommitCode::unknown), "unknown for all, all stored"},
    {Call::commit_wait, FaultKind::part, code_of(CommitCode::timeout),
     "some keys transport, each stored, not or later"},
    {Call::commit_wait, FaultKind::part, code_of(CommitCode::unknown), "some keys unknown, each stored, not or later"},
    {Call::commit_wait, FaultKind::part, code_of(CommitCode::owner_restarted), "some keys -117, not stored"},
    {Call::commit_wait, FaultKind::part, code_of(CommitCode::reservation_gone), "some keys -118, not stored"},
    {Call::commit_wait, FaultKind::late, 0, "answers later, perhaps past the caller's patience"},
    gone(Call::commit_wait, "the owner restarts between commit and wait"),
    evict(Call::commit_wait),
    death(Call::commit_wait),

    {Call::put_abort, FaultKind::before, kNetwork, "ended, all slots reserved until the plan time-out"},
    {Call::put_abort, FaultKind::lost, kNetwork, "ended"},
    {Call::put_abort, FaultKind::part, kNetwork, "ended, some slots reserved until the plan time-out"},
    {Call::put_abort, FaultKind::late, 0, "slow"},
    gone(Call::put_abort),
    evict(Call::put_abort),
    death(Call::put_abort),

    {Call::get_start, FaultKind::before, kNetwork, "transport failure"},
    {Call::get_start, FaultKind::before, kClosed, "the client is closed"},
    {Call::get_start, FaultKind::lost, kNetwork, "pinned until the client leaves"},
    {Call::get_start, FaultKind::part, 0, "a key fails by itself, which looks like a miss"},
    {Call::get_start, FaultKind::late, 0, "slow"},
    gone(Call::get_start, "reconnects, and misses"),
    evict(Call::get_start),
    death(Call::get_start),

    {Call::get_transfer, FaultKind::before, kInvalid, "refused, the handle lives"},
    {Call::get_transfer, FaultKind::before, kNetwork, "transport failure, the handle is consumed"},
    {Call::get_transfer, FaultKind::lost, kNetwork, "the handle is consumed, pinned until the client leaves"},
    {Call::get_transfer, FaultKind::part, kNotFound, "a value of the prefix vanished, the handle is consumed"},
    {Call::get_transfer, FaultKind::late, 0, "slow, perhaps past the handle time-out"},
    gone(Call::get_transfer, "the handle is stale"),
    evict(Call::get_transfer),
    death(Call::get_transfer),

    {Call::cancel_get_transfer, FaultKind::before, kNetwork, "gone all the same, pinned until the client leaves"},
    {Call::cancel_get_transfer, FaultKind::lost, kNetwork, "gone"},
    {Call::cancel_get_transfer, FaultKind::late, 0, "slow"},
    gone(Call::cancel_get_transfer, "succeeds"),
    evict(Call::cancel_get_transfer),
    death(Call::cancel_get_transfer),

    {Call::release_views, FaultKind::before, kNetwork, "pinned until the client leaves"},
    {Call::release_views, FaultKind::lost, kNetwork, "released"},
    {Call::release_views, FaultKind::late, 0, "slow"},
    gone(Call::release_views),
    evict(Call::release_views),
    death(Call::release_views),

    {Call::remove, FaultKind::before, kNetwork, "transport failure, not done"},
    {Call::remove, FaultKind::lost, kNetwork, "transport failure, done"},
    {Call::remove, FaultKind::lost, kNotFound, "retried inside: the first try worked"},
    {Call::remove, FaultKind::late, 0, "slow"},
    gone(Call::remove, "reconnects, and misses"),
    evict(Call::remove),
    death(Call::remove),

    {Call::put, FaultKind::before, kNetwork, "transport failure, not done"},
    {Call::put, FaultKind::lost, kNetwork, "transport failure, done"},
    {Call::put, FaultKind::late, 0, "slow"},
    gone(Call::put),
    evict(Call::put),
    death(Call::put),

    {Call::get, FaultKind::before, kNetwork, "transport failure"},
    {Call::get, FaultKind::late, 0, "slow"},
    gone(Call::get, "reconnects, and misses"),
    evict(Call::get),
    death(Call::get),

    {Call::host_register, FaultKind::before, code_of(CudaErrc::host_memory_already_registered),
     "already registered: whole, a part, or of another generation"},
    {Call::host_register, FaultKind::before, kValue, "invalid value: as for a read-only mapping"},
    {Call::host_register, FaultKind::before, code_of(CudaErrc::not_supported),
     "not supported: as for a read-only mapping"},
    {Call::host_register, FaultKind::before, code_of(CudaErrc::memory_allocation),
     "no memory: at the k-th piece by nth"},
    {Call::host_register, FaultKind::before, kSticky, "the device context is dead"},
    {Call::host_register, FaultKind::late, 0, "slow"},
    gone(Call::host_register),
    evict(Call::host_register),
    death(Call::host_register),

    {Call::host_unregister, FaultKind::before, kValue, "refused: at the k-th piece by nth"},
    gone(Call::host_unregister),
    evict(Call::host_unregister),
    death(Call::host_unregister),

    {Call::copy_batch, FaultKind::before, kValue, "invalid, no copy submitted"},
    {Call::copy_batch, FaultKind::before, kLaunch, "launch failure, no copy submitted"},
    {Call::copy_batch, FaultKind::before, kSticky, "the device context is dead"},
    {Call::copy_batch, FaultKind::part, kLaunch, "launch failure, any subset in flight"},
    gone(Call::copy_batch, "the owner restarts with the plan open"),
    evict(Call::copy_batch),
    death(Call::copy_batch),

    {Call::event_create, FaultKind::before, code_of(CudaErrc::memory_allocation), "no memory"},
    death(Call::event_create),

    {Call::event_record, FaultKind::before, kLaunch, "an earlier asynchronous error"},
    {Call::event_record, FaultKind::before, kSticky, "the device context is dead"},
    gone(Call::event_record),
    evict(Call::event_record),
    death(Call::event_record),

    {Call::stream_wait, FaultKind::before, kLaunch, "an earlier asynchronous error"},
    {Call::stream_wait, FaultKind::before, kSticky, "the device context is dead"},
    gone(Call::stream_wait),
    evict(Call::stream_wait),
    death(Call::stream_wait),

    {Call::event_query, FaultKind::before, kLaunch, "an earlier asynchronous error"},
    {Call::event_query, FaultKind::before, kSticky, "the device context is dead"},
    {Call::event_query, FaultKind::late, 0, "not ready for long"},
    gone(Call::event_query),
    evict(Call::event_query),
    death(Call::event_query),

    {Call::event_synchronize, FaultKind::before, kLaunch, "an earlier asynchronous error, once"},
    {Call::event_synchronize, FaultKind::before, kSticky, "the device context is dead"},
    {Call::event_synchronize, FaultKind::late, 0, "slow"},
    gone(Call::event_synchronize),
    evict(Call::event_synchronize),
    death(Call::event_synchronize),

    death(Call::event_destroy),

    {Call::stream_synchronize, FaultKind::before, kLaunch, "an earlier asynchronous error, once"},
    {Call::stream_synchronize, FaultKind::before, kSticky, "the device context is dead"},
    {Call::stream_synchronize, FaultKind::late, 0, "slow"},
    gone(Call::stream_synchronize),
    evict(Call::stream_synchronize),
    death(Call::stream_synchronize),

    {Call::pointer_attributes, FaultKind::before, kValue, "an error"},
    gone(Call::pointer_attributes),
    evict(Call::pointer_attributes),
    death(Call::pointer_attributes),

    {Call::file_read, FaultKind::before, EIO, "I/O error"},
    {Call::file_read, FaultKind::part, 0, "short read"},
    {Call::file_read, FaultKind::late, 0, "slow"},
    death(Call::file_read),

    {Call::file_write, FaultKind::before, ENOSPC, "no space"},
    {Call::file_write, FaultKind::before, EIO, "I/O error"},
    {Call::file_write, FaultKind::lost, EIO, "written all the same"},
    {Call::file_write, FaultKind::part, ENOSPC, "torn write"},
    {Call::file_write, FaultKind::late, 0, "slow"},
    death(Call::file_write),

    {Call::file_sync, FaultKind::before, EIO, "I/O error"},
    {Call::file_sync, FaultKind::lost, EIO, "synced all the same"},
    {Call::file_sync, FaultKind::late, 0, "slow"},
    death(Call::file_sync),

    {Call::file_rename, FaultKind::before, EIO, "I/O error"},
    {Call::file_rename, FaultKind::lost, EIO, "renamed all the same"},
    {Call::file_rename, FaultKind::late, 0, "slow"},
    death(Call::file_rename),

    {Call::file_remove, FaultKind::before, EIO, "I/O error"},
    {Call::file_remove, FaultKind::lost, EIO, "removed all the same"},
    {Call::file_remove, FaultKind::late, 0, "slow"},
    death(Call::file_remove),
});

template <class Enum, std::size_t kCount>
std::optional<Enum> find_name(const std::array<std::string_view, kCount>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view name_of(Call call) { return kCallNames.at(static_cast<std::size_t>(call)); }
std::optional<Call> call_named(std::string_view name) { return find_name<Call>(kCallNames, name); }

std::string_view name_of(FaultKind kind) { return kFaultKindNames.at(static_cast<std::size_t>(kind)); }
std::optional<FaultKind> fault_kind_named(std::string_view name) { return find_name<FaultKind>(kFaultKindNames, name); }

std::span<const LegalFault> legal_faults() { return kLegalFaults; }

bool is_legal(Call call, FaultKind kind, std::int32_t code) {
  return std::ranges::any_of(kLegalFaults, [&](const LegalFault& legal) {
    return legal.call == call && legal.kind == kind && legal.code == code;
  });
}

}  // namespace holdfast::sim
