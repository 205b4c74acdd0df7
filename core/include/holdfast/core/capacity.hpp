// How much of a store a manager may hold, and how far it makes room.
#pragma once

#include <cstdint>

#include "holdfast/core/result.hpp"

namespace holdfast {

// In bytes of slots, as the store pays for them.
struct CapacityMarks {
  std::uint64_t upper_bytes = 0;  // no put starts that would go over it; 0 = no limit
  std::uint64_t lower_bytes = 0;  // a put that would go over the upper mark makes room down to here; 0 = the upper mark

  [[nodiscard]] bool limited() const { return upper_bytes != 0; }
  // So many bytes fit beside what is held.
  [[nodiscard]] bool fits(std::uint64_t held_bytes, std::uint64_t bytes) const {
    return !limited() || (held_bytes <= upper_bytes && bytes <= upper_bytes - held_bytes);
  }
  // As little is held as room is made down to.
  [[nodiscard]] bool is_low(std::uint64_t held_bytes) const { return lower_bytes == 0 || held_bytes <= lower_bytes; }
};

// InvalidArgument: a lower mark above the upper one, or without one.
[[nodiscard]] Status validate_marks(const CapacityMarks& marks);

}  // namespace holdfast
