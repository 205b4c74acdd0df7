// The calls across the seams, and the ways in which each may fail: names for traces, faults, reports and marks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace holdfast::sim {

enum class Call : std::uint8_t {
  wait_local_segments_ready,
  local_fast_put_start,
  local_fast_put_commit,
  commit_wait,  // the commit's future
  put_abort,
  get_start,
  get_transfer,
  cancel_get_transfer,
  release_views,
  remove,
  put,
  get,
  host_register,
  host_unregister,
  copy_batch,
  event_create,
  event_record,
  stream_wait,
  event_query,
  event_synchronize,
  event_destroy,
  stream_synchronize,
  pointer_attributes,
  file_read,
  file_write,
  file_sync,
  file_rename,
  file_remove,
};
inline constexpr std::size_t kCallCount = 28;
std::string_view name_of(Call call);
std::optional<Call> call_named(std::string_view name);

enum class FaultKind : std::uint8_t {
  before,  // fails, nothing happened
  lost,    // it happened, the caller sees a transport error
  part,    // partly happened
  late,    // happens or answers after a chosen virtual time
  gone,    // the owner restarts just before the call
  evict,   // the owner evicts what it may just before the call
  time,    // time passes just before the call, perhaps past a handle's or a plan's time-out
  death,   // the client dies at the call: it has no effect and answers StoreClosed, as does every later one
  lie,     // an answer that no honest runtime gives: of no fault table, see lies.hpp
};
inline constexpr std::size_t kFaultKindCount = 9;
std::string_view name_of(FaultKind kind);
std::optional<FaultKind> fault_kind_named(std::string_view name);

// One legal cell of the fault table. `code` is what the caller sees (a FluxonErrc, cudaError_t, errno or commit code).
struct LegalFault {
  Call call;
  FaultKind kind;
  std::int32_t code;
  std::string_view note;
};
// The whole table, in a fixed order.
std::span<const LegalFault> legal_faults();
// True when the table has this (call, kind, code).
bool is_legal(Call call, FaultKind kind, std::int32_t code);
// Gone, evict, time and death: events that are nobody's call, possible at every call.
bool is_event(FaultKind kind);

// How things stood where a fault struck, as far as the fault table tells states apart.
enum class CallState : std::uint8_t {
  any,
  // local_fast_put_start: the first of these that one of its keys is in, and whether slots are free. remove: its key.
  absent,
  reserved,
  local_visible,
  committed,
  absent_no_slots,
  reserved_no_slots,
  local_visible_no_slots,
  committed_no_slots,
  // commit_wait: what becomes of a key that the fault leaves without code 0.
  stored,
  not_stored,
  decided_later,
  // get_start: some key not routed yet; else all keys there, some, none.
  not_routed,
  all,
  some,
  none,
  // get_transfer
  whole_prefix,
  shorter_prefix,
  // wait_local_segments_ready
  first,
  after_restart,
  // host_register
  write_mapping,
  read_mapping,
  // copy_batch: one value of at least kLargeValueBytes, or none.
  small_values,
  large_values,
};
inline constexpr std::size_t kCallStateCount = 24;
inline constexpr std::uint64_t kLargeValueBytes = 96ULL << 10;  // from here on a copy engine beats a kernel
std::string_view name_of(CallState state);

struct LegalCell {
  LegalFault fault;
  CallState state;
};
// Every legal fault in every state in which it may strike; a campaign's coverage is counted in these.
inline constexpr std::size_t kLegalCellCount = 363;
std::span<const LegalCell> legal_cells();
// The place in `legal_cells`; none when there is no such cell.
std::optional<std::size_t> cell_index(Call call, FaultKind kind, std::int32_t code, CallState state);

}  // namespace holdfast::sim
