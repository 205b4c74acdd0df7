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
    "before", "lost", "part", "late", "gone", "evict", "time", "death", "lie",
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

// Where the code is 0, the caller sees no error of this fault's own.
constexpr auto kFaults = std::to_array<LegalFault>({
    {Call::wait_local_segments_ready, FaultKind::before, code_of(FluxonErrc::backend_unavailable), "not mounted"},
    {Call::wait_local_segments_ready, FaultKind::before, kNetwork, "transport failure"},
    {Call::wait_local_segments_ready, FaultKind::late, 0, "mounted after a while"},

    {Call::local_fast_put_start, FaultKind::before, kInvalid, "refused"},
    {Call::local_fast_put_start, FaultKind::before, code_of(FluxonErrc::key_already_exists),
     "a key exists, or is merely in flight"},
    {Call::local_fast_put_start, FaultKind::before, code_of(FluxonErrc::key_being_written), "another writer has a key"},
    {Call::local_fast_put_start, FaultKind::before, kNetwork, "no free slot within 30 s"},
    {Call::local_fast_put_start, FaultKind::before, kClosed, "the client is closed"},
    {Call::local_fast_put_start, FaultKind::lost, kNetwork, "keys and slots reserved until the plan time-out"},
    {Call::local_fast_put_start, FaultKind::late, 0, "waits for slots, up to 30 s"},

    {Call::local_fast_put_commit, FaultKind::before, kInvalid, "refused; it counts as ended"},
    {Call::local_fast_put_commit, FaultKind::before, kClosed, "the client is closed"},

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

    {Call::put_abort, FaultKind::before, kNetwork, "ended, all slots reserved until the plan time-out"},
    {Call::put_abort, FaultKind::lost, kNetwork, "ended"},
    {Call::put_abort, FaultKind::part, kNetwork, "ended, some slots reserved until the plan time-out"},
    {Call::put_abort, FaultKind::late, 0, "slow"},

    {Call::get_start, FaultKind::before, kNetwork, "transport failure"},
    {Call::get_start, FaultKind::before, kClosed, "the client is closed"},
    {Call::get_start, FaultKind::lost, kNetwork, "pinned until the client leaves"},
    {Call::get_start, FaultKind::part, 0, "a key fails by itself, which looks like a miss"},
    {Call::get_start, FaultKind::late, 0, "slow"},

    {Call::get_transfer, FaultKind::before, kInvalid, "refused, the handle lives"},
    {Call::get_transfer, FaultKind::before, kNetwork, "transport failure, the handle is consumed"},
    {Call::get_transfer, FaultKind::lost, kNetwork, "the handle is consumed, pinned until the client leaves"},
    {Call::get_transfer, FaultKind::part, kNotFound, "a value of the prefix vanished, the handle is consumed"},
    {Call::get_transfer, FaultKind::late, 0, "slow, perhaps past the handle time-out"},

    {Call::cancel_get_transfer, FaultKind::before, kNetwork, "gone all the same, pinned until the client leaves"},
    {Call::cancel_get_transfer, FaultKind::lost, kNetwork, "gone"},
    {Call::cancel_get_transfer, FaultKind::late, 0, "slow"},

    {Call::release_views, FaultKind::before, kNetwork, "pinned until the client leaves"},
    {Call::release_views, FaultKind::lost, kNetwork, "released"},
    {Call::release_views, FaultKind::late, 0, "its holders drop later"},

    {Call::remove, FaultKind::before, kNetwork, "transport failure, not done"},
    {Call::remove, FaultKind::lost, kNetwork, "transport failure, done"},
    {Call::remove, FaultKind::lost, kNotFound, "retried inside: the first try worked"},
    {Call::remove, FaultKind::late, 0, "slow"},

    {Call::put, FaultKind::before, kNetwork, "transport failure, not done"},
    {Call::put, FaultKind::lost, kNetwork, "transport failure, done"},
    {Call::put, FaultKind::late, 0, "slow"},

    {Call::get, FaultKind::before, kNetwork, "transport failure"},
    {Call::get, FaultKind::late, 0, "slow"},

    {Call::host_register, FaultKind::before, code_of(CudaErrc::host_memory_already_registered),
     "already registered: whole, a part, or of another generation"},
    {Call::host_register, FaultKind::before, kValue, "invalid value: as for a read-only mapping"},
    {Call::host_register, FaultKind::before, code_of(CudaErrc::not_supported),
     "not supported: as for a read-only mapping"},
    {Call::host_register, FaultKind::before, code_of(CudaErrc::memory_allocation),
     "no memory: at the k-th piece by nth"},
    {Call::host_register, FaultKind::before, kSticky, "the device context is dead"},
    {Call::host_register, FaultKind::late, 0, "slow"},

    {Call::host_unregister, FaultKind::before, kValue, "refused: at the k-th piece by nth"},

    {Call::copy_batch, FaultKind::before, kValue, "invalid, no copy submitted"},
    {Call::copy_batch, FaultKind::before, kLaunch, "launch failure, no copy submitted"},
    {Call::copy_batch, FaultKind::before, kSticky, "the device context is dead"},
    {Call::copy_batch, FaultKind::part, kLaunch, "launch failure, any subset in flight"},

    {Call::event_create, FaultKind::before, code_of(CudaErrc::memory_allocation), "no memory"},

    {Call::event_record, FaultKind::before, kLaunch, "an earlier asynchronous error"},
    {Call::event_record, FaultKind::before, kSticky, "the device context is dead"},

    {Call::stream_wait, FaultKind::before, kLaunch, "an earlier asynchronous error"},
    {Call::stream_wait, FaultKind::before, kSticky, "the device context is dead"},

    {Call::event_query, FaultKind::before, kLaunch, "an earlier asynchronous error"},
    {Call::event_query, FaultKind::before, kSticky, "the device context is dead"},
    {Call::event_query, FaultKind::late, 0, "not ready for long"},

    {Call::event_synchronize, FaultKind::before, kLaunch, "an earlier asynchronous error, once"},
    {Call::event_synchronize, FaultKind::before, kSticky, "the device context is dead"},
    {Call::event_synchronize, FaultKind::late, 0, "slow"},

    {Call::stream_synchronize, FaultKind::before, kLaunch, "an earlier asynchronous error, once"},
    {Call::stream_synchronize, FaultKind::before, kSticky, "the device context is dead"},
    {Call::stream_synchronize, FaultKind::late, 0, "slow"},

    {Call::pointer_attributes, FaultKind::before, kValue, "an error"},

    {Call::file_read, FaultKind::before, EIO, "I/O error"},
    {Call::file_read, FaultKind::part, 0, "short read, or a damaged one"},
    {Call::file_read, FaultKind::late, 0, "slow"},

    {Call::file_write, FaultKind::before, ENOSPC, "no space"},
    {Call::file_write, FaultKind::before, EIO, "I/O error"},
    {Call::file_write, FaultKind::lost, EIO, "written all the same"},
    {Call::file_write, FaultKind::part, ENOSPC, "torn write"},
    {Call::file_write, FaultKind::late, 0, "slow"},

    {Call::file_sync, FaultKind::before, EIO, "I/O error"},
    {Call::file_sync, FaultKind::lost, EIO, "synced all the same"},
    {Call::file_sync, FaultKind::late, 0, "slow"},

    {Call::file_rename, FaultKind::before, EIO, "I/O error"},
    {Call::file_rename, FaultKind::lost, EIO, "renamed all the same"},
    {Call::file_rename, FaultKind::late, 0, "slow"},

    {Call::file_remove, FaultKind::before, EIO, "I/O error"},
    {Call::file_remove, FaultKind::lost, EIO, "removed all the same"},
    {Call::file_remove, FaultKind::late, 0, "slow"},
});

constexpr std::string_view note_of_gone(Call call) {
  switch (call) {
    case Call::wait_local_segments_ready:
      return "another generation is mounted";
    case Call::local_fast_put_commit:
    case Call::copy_batch:
      return "the owner restarts with the plan open";
    case Call::commit_wait:
      return "the owner restarts between commit and wait";
    case Call::get_start:
    case Call::get:
    case Call::remove:
      return "reconnects, and misses";
    case Call::get_transfer:
      return "the handle is stale";
    default:
      return "the owner restarts just before";
  }
}

// The faults of a call, and then what may happen at each.
constexpr std::size_t kEventKindCount = 4;
constexpr auto kLegalFaults = [] {
  std::array<LegalFault, kFaults.size() + kEventKindCount * kCallCount> all{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < kCallCount; ++i) {
    const auto call = static_cast<Call>(i);
    for (const LegalFault& fault : kFaults) {
      if (fault.call == call) all[count++] = fault;
    }
    all[count++] = {call, FaultKind::gone, 0, note_of_gone(call)};
    all[count++] = {call, FaultKind::evict, 0, "the owner evicts what it may"};
    all[count++] = {call, FaultKind::time, 0, "time passes, past handles and plans perhaps"};
    all[count++] = {call, FaultKind::death, 0, "the client dies here"};
  }
  return all;
}();

constexpr std::array<std::string_view, kCallStateCount> kStateNames{
    "any",
    "absent",
    "reserved",
    "local-visible",
    "committed",
    "absent, no slots",
    "reserved, no slots",
    "local-visible, no slots",
    "committed, no slots",
    "stored",
    "not stored",
    "decided later",
    "not routed",
    "all",
    "some",
    "none",
    "whole prefix",
    "shorter prefix",
    "first",
    "after restart",
    "write mapping",
    "read mapping",
    "small values",
    "large values",
};

// From `first` on, that many.
struct States {
  CallState first;
  std::size_t count;
};
constexpr States states_of(const LegalFault& fault) {
  switch (fault.call) {
    case Call::wait_local_segments_ready:
      return {CallState::first, 2};
    case Call::local_fast_put_start:
      // Nothing is reserved where the call would have been refused.
      return {CallState::absent, fault.kind == FaultKind::lost ? 1U : 8U};
    case Call::remove:
      return {CallState::absent, 4};  // less `reserved`
    case Call::commit_wait:
      if (fault.kind == FaultKind::before) return {CallState::not_stored, 1};
      if (fault.kind == FaultKind::lost) return {CallState::stored, 3};  // less `not_stored`
      if (fault.kind != FaultKind::part) return {CallState::any, 1};
      if (fault.code == code_of(CommitCode::owner_restarted) || fault.code == code_of(CommitCode::reservation_gone)) {
        return {CallState::not_stored, 1};
      }
      return {CallState::stored, 3};
    case Call::get_start:
      return {CallState::not_routed, 4};
    case Call::get_transfer:
      return {CallState::whole_prefix, 2};
    case Call::host_register:
      return {CallState::write_mapping, 2};
    case Call::copy_batch:
      return {CallState::small_values, 2};
    default:
      return {CallState::any, 1};
  }
}
constexpr bool is_impossible(const LegalFault& fault, CallState state) {
  return (fault.call == Call::remove && state == CallState::reserved) ||
         (fault.call == Call::commit_wait && fault.kind == FaultKind::lost && state == CallState::not_stored);
}

template <class Visit>
constexpr void for_each_cell(Visit&& visit) {
  for (const LegalFault& fault : kLegalFaults) {
    const States states = states_of(fault);
    for (std::size_t i = 0; i < states.count; ++i) {
      const auto state = static_cast<CallState>(static_cast<std::size_t>(states.first) + i);
      if (!is_impossible(fault, state)) visit(LegalCell{fault, state});
    }
  }
}
constexpr std::size_t kCellsCounted = [] {
  std::size_t count = 0;
  for_each_cell([&](const LegalCell&) { ++count; });
  return count;
}();
static_assert(kCellsCounted == kLegalCellCount);
constexpr auto kLegalCells = [] {
  std::array<LegalCell, kLegalCellCount> all{};
  std::size_t count = 0;
  for_each_cell([&](const LegalCell& cell) { all[count++] = cell; });
  return all;
}();

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

bool is_event(FaultKind kind) {
  return kind == FaultKind::gone || kind == FaultKind::evict || kind == FaultKind::time || kind == FaultKind::death;
}

std::string_view name_of(CallState state) { return kStateNames.at(static_cast<std::size_t>(state)); }

std::span<const LegalCell> legal_cells() { return kLegalCells; }

std::optional<std::size_t> cell_index(Call call, FaultKind kind, std::int32_t code, CallState state) {
  const auto found = std::ranges::find_if(kLegalCells, [&](const LegalCell& cell) {
    return cell.fault.call == call && cell.fault.kind == kind && cell.fault.code == code && cell.state == state;
  });
  if (found == kLegalCells.end()) return std::nullopt;
  return static_cast<std::size_t>(found - kLegalCells.begin());
}

}  // namespace holdfast::sim
