// What an answer of the Fluxon runtime must be before anything is built on it. Lists are checked where they are read:
// see plan_blob.hpp.
#pragma once

#include <cstdint>
#include <span>

#include "holdfast/core/fluxon_runtime.hpp"

namespace holdfast {

inline constexpr std::uint64_t kSegmentBytesMax = 1ULL << 46;  // of one mapping; more is no machine's memory

// BackendUnavailable when nothing is mounted; BadAnswer when a mapping is null, empty, longer than kSegmentBytesMax or
// past the end of the address space.
[[nodiscard]] Status check_segments(std::span<const Segment> segments);

// BadAnswer when the counts do not fit `keys` keys and `groups` groups, or contradict each other. Such an answer's
// handle must still be cancelled.
[[nodiscard]] Status check_get_start(const GetStart& start, std::uint64_t keys, std::uint64_t groups);

}  // namespace holdfast
