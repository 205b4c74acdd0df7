#include "holdfast/core/capacity.hpp"

#include <fmt/format.h>

namespace holdfast {

Status validate_marks(const CapacityMarks& marks) {
  if (marks.lower_bytes == 0 || (marks.limited() && marks.lower_bytes <= marks.upper_bytes)) return {};
  if (!marks.limited()) {
    return make_error(
        Errc::invalid_argument, "validate_marks",
        fmt::format("a lower mark of {} bytes wants an upper one: the capacity has no limit", marks.lower_bytes));
  }
  return make_error(Errc::invalid_argument, "validate_marks",
                    fmt::format("the lower mark of {} bytes is above the upper one of {}: give at most that much",
                                marks.lower_bytes, marks.upper_bytes));
}

}  // namespace holdfast
