#include "holdfast/sim/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/core/time.hpp"
#include "holdfast/sim/strict_json.hpp"
#include "holdfast/sim/trace_builder.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kTimestampMaxMs = 1'000'000'000;  // 11 days
constexpr std::uint64_t kTokensMax = 1ULL << 32;
constexpr std::uint64_t kHashIdMax = (1ULL << 63) - 1;

Result<WorkloadRequest> read_request(std::string_view line, const WorkloadLimits& limits) {
  const JsonLimits json_limits{.bytes_max = limits.line_bytes_max, .depth_max = 4};
  const Result<Json> json = parse_strict_json(line, json_limits);
  if (!json) return json.error();
  WorkloadRequest request;
  JsonFields fields(*json, "$");
  fields.unsigned_field("timestamp", request.timestamp_ms, kTimestampMaxMs, true);
  fields.unsigned_field("input_length", request.input_tokens, kTokensMax, true);
  fields.unsigned_field("output_length", request.output_tokens, kTokensMax, true);
  if (const Json* ids = fields.array_field("hash_ids", limits.request_blocks_max, true); ids != nullptr) {
    for (std::size_t i = 0; i < ids->items.size(); ++i) {
      const auto id = unsigned_item(ids->items[i], kHashIdMax, fmt::format("$.hash_ids[{}]", i));
      if (!id) return id.error();
      request.hash_ids.push_back(*id);
    }
    const std::uint64_t blocks = (request.input_tokens + kWorkloadBlockTokens - 1) / kWorkloadBlockTokens;
    if (request.hash_ids.empty())
      fields.refuse("hash_ids", "is empty");
    else if (request.hash_ids.size() != blocks)
      fields.refuse("hash_ids", fmt::format("has {} ids, but {} tokens are {} blocks of {}", request.hash_ids.size(),
                                            request.input_tokens, blocks, kWorkloadBlockTokens));
  }
  if (Status status = fields.finish(); !status) return status.error();
  return request;
}

Status add_line(std::string_view line, const WorkloadLimits& limits, Workload& workload) {
  const auto refuse = [](std::string reason) { return make_error(Errc::invalid_argument, "read", std::move(reason)); };
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return refuse("empty line");
  if (workload.requests.size() >= limits.requests_max)
    return refuse(fmt::format("more than {} requests", limits.requests_max));
  Result<WorkloadRequest> request = read_request(line, limits);
  if (!request) return request.error();
  if (!workload.requests.empty() && request->timestamp_ms < workload.requests.back().timestamp_ms)
    return refuse(fmt::format("$.timestamp: {} is before the {} of the line above", request->timestamp_ms,
                              workload.requests.back().timestamp_ms));
  workload.blocks += request->hash_ids.size();
  workload.requests.push_back(std::move(*request));
  return {};
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

// Slots for what the store may hold at once, and for the puts under way.
std::uint64_t segment_bytes_for(const Workload& workload, std::uint64_t longest, const WorkloadOptions& options) {
  std::unordered_set<std::uint64_t> unique;
  for (const WorkloadRequest& request : workload.requests)
    unique.insert(request.hash_ids.begin(), request.hash_ids.end());
  const std::uint64_t block_bytes = 2 * slot_bytes(options.value_bytes);
  const std::uint64_t slack = (longest + 64) * block_bytes;
  const std::uint64_t all = unique.size() * block_bytes;
  return (options.capacity_bytes == 0 ? all : std::min(all, options.capacity_bytes)) + slack;
}

}  // namespace

Result<Workload> read_workload(std::string_view text, std::string_view file, const WorkloadLimits& limits) {
  if (text.size() > limits.file_bytes_max)
    return bad_input(file, fmt::format("{} bytes are more than the {} allowed", text.size(), limits.file_bytes_max));
  if (text.empty()) return bad_input(file, "is empty");
  Workload workload;
  std::uint64_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    ++number;
    if (Status status = add_line(text.substr(0, end), limits, workload); !status)
      return bad_input(file, fmt::format("line {}: {}", number, status.error().detail));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return workload;
}

Result<Trace> workload_trace(const Workload& workload, const WorkloadOptions& options) {
  std::uint64_t longest = 1;
  for (const WorkloadRequest& request : workload.requests)
    longest = std::max<std::uint64_t>(longest, request.hash_ids.size());

  TraceBuilder builder("workload");
  const std::uint64_t wanted_bytes = segment_bytes_for(workload, longest, options);
  Trace& trace = builder.trace();
  trace.grant_bytes = std::min(kGrantBytes, round_up(wanted_bytes, kSlotAlignment));
  trace.segment_bytes = round_up(wanted_bytes, trace.grant_bytes);
  trace.capacity_bytes = options.capacity_bytes;
  trace.lower_mark_bytes = options.lower_mark_bytes;
  trace.eviction = options.eviction;

  Geometry geometry;
  geometry.ring_frames = static_cast<std::uint32_t>(longest);
  geometry.kv_token_bytes = {options.value_bytes};
  const std::uint32_t index = builder.geometry(geometry);

  std::uint64_t now_ms = workload.requests.empty() ? 0 : workload.requests.front().timestamp_ms;
  for (const WorkloadRequest& request : workload.requests) {
    if (request.timestamp_ms > now_ms)
      builder.pass_time(static_cast<Nanos>(request.timestamp_ms - now_ms) * kMillisecond);
    now_ms = request.timestamp_ms;
    TraceBuilder::Session session{.world = 1, .geometry = index, .actions = {}};
    for (const std::uint64_t id : request.hash_ids) session.actions.push_back(fmt::format("{}", id));
    const TraceBuilder::Id opened = builder.open(std::move(session));
    builder.resume(opened);
    for (std::size_t block = 0; block < request.hash_ids.size(); ++block) builder.generate(opened);
    builder.close(opened);
  }
  Trace finished = builder.finish();
  if (Status status = validate_trace(finished); !status) return status.error();
  return finished;
}

}  // namespace holdfast::sim
