// A plan's table of u64 words, read and validated before any of its addresses is used.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holdfast/core/fluxon_runtime.hpp"

namespace holdfast {

// A put plan's addresses lie in a segment's `write_ptr` mapping, a read plan's in its `read_ptr` mapping.
enum class PlanSide : std::uint8_t { write, read };

struct PlanBlobRequest {
  PlanPtr plan;
  PlanSide side = PlanSide::write;
  // The length in bytes of each value, in key order: the table itself has none.
  std::span<const std::uint64_t> value_bytes;
  std::span<const Segment> live;
};

// Whether the pointer's table is that of a plan of so many values: BadPlanBlob when it is null or not 8-byte aligned,
// or when its magic or count is another.
[[nodiscard]] Status check_plan_table(PlanPtr plan, std::uint64_t values);

// The address of each value in key order. BadPlanBlob when the table is none, or when a value is null, not whole
// inside one live segment, not at the beginning of a slot (4 KiB from the segment's base), or in another one's slot.
// The table must still be the plan's: not after a commit, an abort or a release.
[[nodiscard]] Result<std::vector<std::uintptr_t>> decode_plan_blob(const PlanBlobRequest& request);

}  // namespace holdfast
