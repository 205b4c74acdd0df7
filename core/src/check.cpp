#include "holdfast/core/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace holdfast {

void broken(const char* what, const std::source_location& where) {
  std::fprintf(stderr, "holdfast: broken invariant: %s (%s:%u, %s)\n", what, where.file_name(),
               static_cast<unsigned>(where.line()), where.function_name());
  std::abort();
}

}  // namespace holdfast
