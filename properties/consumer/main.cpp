// Uses a call that is compiled into the library, a concept, and a seam of production.
#include <cstdio>

#include "holdfast/core/backend.hpp"
#include "holdfast/core/file_system.hpp"
#include "holdfast/core/result.hpp"
#include "holdfast/core/runtime.hpp"

namespace {

using Production =
    holdfast::RuntimeOf<holdfast::FluxonBackend, holdfast::CudaBackend, holdfast::SteadyClock, holdfast::StdSync>;
static_assert(holdfast::Runtime<Production>);

}  // namespace

int main() {
  holdfast::PosixFileSystem files;
  const auto missing = files.read("no/such/file", 1);
  if (missing || missing.error().origin != holdfast::Origin::file_system) return 1;
  std::printf("consumer: %s\n", to_string(missing.error()).c_str());
  return 0;
}
