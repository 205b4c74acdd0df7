// Request traces of real services in the Mooncake format, and the simulation trace that replays one.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "holdfast/core/result.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

// A hash id stands for a block of tokens and all that comes before it: equal ids, equal prefixes.
inline constexpr std::uint64_t kWorkloadBlockTokens = 512;

struct WorkloadRequest {
  std::uint64_t timestamp_ms = 0;
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::vector<std::uint64_t> hash_ids;  // one per block of the input, the last one perhaps in part
};

struct Workload {
  std::vector<WorkloadRequest> requests;
  std::uint64_t blocks = 0;  // of all requests
};

struct WorkloadLimits {
  std::uint64_t file_bytes_max = 256ULL << 20;
  std::uint64_t line_bytes_max = 1ULL << 20;
  std::uint64_t requests_max = 100'000;
  std::uint64_t request_blocks_max = 4096;
};

// One JSON object a line: timestamp (ms), input_length, output_length, hash_ids. `file` is only named in errors; they
// say file, line and reason. Refuses an empty file, empty lines, other fields, time that goes back, and a number of
// hash ids that is not that of the input's blocks.
Result<Workload> read_workload(std::string_view text, std::string_view file, const WorkloadLimits& limits = {});

struct WorkloadOptions {
  std::uint64_t capacity_bytes = 0;    // of slots; 0 = none
  std::uint64_t lower_mark_bytes = 0;  // room is made down to here; 0 = the capacity
  Eviction eviction = Eviction::lru;
  std::uint32_t value_bytes = 256;  // K, and V, of a block
};

// Each request opens a session, resumes on its longest ready prefix, generates the rest and closes. Every block has a
// step of its own to be generated; those that were resumed are skipped. Refused when it exceeds a trace's bounds.
Result<Trace> workload_trace(const Workload& workload, const WorkloadOptions& options = {});

}  // namespace holdfast::sim
