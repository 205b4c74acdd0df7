// What a device's link is good for. The simulator declares it; the device part, or its stub in a build without the
// toolkit, defines it when the program is linked.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "holdfast/core/result.hpp"

namespace holdfast::sim {

struct DeviceBenchOptions {
  std::uint32_t repetitions = 5;
  std::uint64_t segment_bytes = 8ULL << 30;          // of bench_registration
  std::function<void(const std::string&)> progress;  // may be empty
};

// Moves values of many sizes between registered host memory and the first device: rates against one big copy in the
// same run, and what is left of it behind the whole store. Gives tables to be printed. NoDevice with the reason; the
// runtime's own errors.
Result<std::string> bench_copies(const DeviceBenchOptions& options);

// Makes a segment of shared memory ready: registered untouched, touched by many threads before, and on huge pages where
// the system gives them; both mappings. As bench_copies.
Result<std::string> bench_registration(const DeviceBenchOptions& options);

}  // namespace holdfast::sim
