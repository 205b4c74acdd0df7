// Assertions kept in release: a broken invariant of the core itself ends the process, it is never a value.
#pragma once

#include <source_location>

namespace holdfast {

// Prints `what` with its place on stderr and aborts.
[[noreturn]] void broken(const char* what, const std::source_location& where);

inline void check(bool holds, const char* what, const std::source_location& where = std::source_location::current()) {
  if (!holds) [[unlikely]] {
    broken(what, where);
  }
}

}  // namespace holdfast
