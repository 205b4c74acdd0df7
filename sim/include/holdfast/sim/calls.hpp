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
  death,   // the client dies at the call: it has no effect and answers StoreClosed, as does every later one
};
inline constexpr std::size_t kFaultKindCount = 7;
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

}  // namespace holdfast::sim
