// Parts of a trace drawn at random, for whoever writes traces or changes them: each fits where it is put.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "holdfast/sim/rng.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

// Bits: by Call, by FaultKind.
using CallSet = std::uint32_t;
using FaultKindSet = std::uint32_t;
constexpr CallSet bit_of(Call call) { return 1U << static_cast<unsigned>(call); }
constexpr FaultKindSet bit_of(FaultKind kind) { return 1U << static_cast<unsigned>(kind); }
constexpr CallSet set_of(std::initializer_list<Call> calls) {
  CallSet set = 0;
  for (const Call call : calls) set |= bit_of(call);
  return set;
}
static_assert(kCallCount < 32 && kFaultKindCount < 32);
inline constexpr CallSet kAllCalls = (1U << kCallCount) - 1;
// Without lies, which only the hostile profile tells.
inline constexpr FaultKindSet kAllFaultKinds = ((1U << kFaultKindCount) - 1) & ~bit_of(FaultKind::lie);

inline constexpr CallSet kRegistration =
    set_of({Call::wait_local_segments_ready, Call::host_register, Call::host_unregister, Call::pointer_attributes});
inline constexpr CallSet kPutCalls =
    set_of({Call::local_fast_put_start, Call::local_fast_put_commit, Call::commit_wait, Call::put_abort, Call::remove});
inline constexpr CallSet kGetCalls =
    set_of({Call::get_start, Call::get_transfer, Call::cancel_get_transfer, Call::release_views});
inline constexpr CallSet kDeviceCalls = set_of(
    {Call::copy_batch, Call::stream_synchronize, Call::pointer_attributes, Call::host_register, Call::host_unregister,
     Call::event_create, Call::event_record, Call::stream_wait, Call::event_query, Call::event_synchronize});
inline constexpr CallSet kFileCalls =
    set_of({Call::file_read, Call::file_write, Call::file_sync, Call::file_rename, Call::file_remove});
template <class T>
T any_of(Rng& rng, std::initializer_list<T> items) {
  return items.begin()[rng.below(items.size())];
}

// The calls that a store may make in such a step.
CallSet calls_of(StepKind kind);
// True when little of what a run is about goes on after it: the client, the context or all values are gone.
bool is_drastic(const LegalFault& legal);
// How late, how much time, which keys or copies.
std::uint64_t draw_fault_arg(const LegalFault& legal, Rng& rng);
std::uint64_t draw_choice_arg(ChoiceKind kind, Rng& rng);

// A step to be put before the step at `place`; its id is the caller's. Nothing where it would have nothing to be about.
std::optional<Step> draw_step(const Trace& trace, std::size_t place, StepKind kind, Rng& rng);

}  // namespace holdfast::sim
