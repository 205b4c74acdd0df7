// Answers that no honest runtime gives. Only the hostile profile has them: against them the store promises a clear
// error, no crash, no wrong bytes and no leak of its own, as far as anybody could tell a lie from the truth.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "holdfast/core/result.hpp"
#include "holdfast/sim/calls.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

// The code of a fault of kind `lie`. Its `arg` chooses where and how much.
enum class Lie : std::int32_t {
  bad_magic = 1,
  count_too_large,
  count_too_small,
  null_plan,
  misaligned_plan,
  null_address,
  foreign_address,       // outside of every segment, or on the other mapping
  misaligned_address,    // within a segment, not at a slot's beginning
  doubled_address,       // two values in one slot
  address_past_the_end,  // of the segment
  no_segment,
  null_segment,
  empty_segment,
  endless_segment,
  counts_past_the_keys,
  contradictory_counts,
  unknown_handle,
  too_few_codes,
  too_many_codes,
  no_codes,
  unheard_of_code,
  stored_without_bound,  // an unknown outcome is decided long after the settle bound
  unheard_of_error,
  not_done,  // said to be done, and was not
  garbage,   // other bytes than were written
};

struct LegalLie {
  Call call;
  Lie lie;
  // What the store must tell of it; code 0: nobody could notice.
  Origin origin;
  std::int32_t code;
  std::string_view told_as;  // the call that its error names
  std::string_view note;
};
std::span<const LegalLie> legal_lies();
const LegalLie* find_lie(Call call, std::int32_t code);

inline constexpr std::int32_t kUnheardOfError = 9999;
inline constexpr std::int32_t kUnheardOfCode = 12345;
inline constexpr Nanos kWithoutBound = 120 * kMinute;  // at most so long until a key is stored

// True when one of its faults is a lie.
[[nodiscard]] bool is_hostile(const Trace& trace);
// Adds lies at calls of the trace's steps, drawn from `seed`.
void add_lies(Trace& trace, std::uint64_t seed);

}  // namespace holdfast::sim
