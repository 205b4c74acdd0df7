#include "holdfast/sim/workload.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "readers.hpp"

namespace holdfast::fuzz {
namespace {

std::string broken_rule(const sim::Workload& workload) {
  if (workload.requests.empty()) return "accepted without a request";
  std::uint64_t blocks = 0;
  std::uint64_t now_ms = 0;
  for (const sim::WorkloadRequest& request : workload.requests) {
    if (request.timestamp_ms < now_ms) return "accepted though time goes back";
    now_ms = request.timestamp_ms;
    const std::uint64_t ids = request.hash_ids.size();
    if (ids == 0 || request.input_tokens > ids * sim::kWorkloadBlockTokens ||
        request.input_tokens <= (ids - 1) * sim::kWorkloadBlockTokens) {
      return fmt::format("accepted with {} ids for {} tokens", ids, request.input_tokens);
    }
    blocks += ids;
  }
  return blocks == workload.blocks ? "" : fmt::format("{} blocks were counted, {} are there", workload.blocks, blocks);
}

std::string write_workload(const sim::Workload& workload) {
  std::string text;
  for (const sim::WorkloadRequest& request : workload.requests) {
    text += fmt::format(R"({{"timestamp": {}, "input_length": {}, "output_length": {}, "hash_ids": [{}]}})",
                        request.timestamp_ms, request.input_tokens, request.output_tokens,
                        fmt::join(request.hash_ids, ", "));
    text += '\n';
  }
  return text;
}

bool same(const sim::WorkloadRequest& a, const sim::WorkloadRequest& b) {
  return a.timestamp_ms == b.timestamp_ms && a.input_tokens == b.input_tokens && a.output_tokens == b.output_tokens &&
         a.hash_ids == b.hash_ids;
}

}  // namespace

Verdict read_as_workload(std::string_view bytes) {
  const Result<sim::Workload> workload = sim::read_workload(bytes, "input");
  if (!workload) {
    if (!workload.error().detail.starts_with("input: ")) return {false, "a refusal that does not name the file"};
    return {};
  }
  if (std::string broken = broken_rule(*workload); !broken.empty()) return {true, std::move(broken)};
  const Result<sim::Workload> again = sim::read_workload(write_workload(*workload), "written");
  if (!again) return {true, "what was written is refused: " + to_string(again.error())};
  if (!std::ranges::equal(again->requests, workload->requests, same)) return {true, "what was written reads otherwise"};

  // A fraction of the blocks, so that the capacity bounds the segment.
  const sim::WorkloadOptions limited{.capacity_bytes = 1 << 16};
  for (const sim::WorkloadOptions& options : {sim::WorkloadOptions{}, limited}) {
    const Result<sim::Trace> trace = sim::workload_trace(*workload, options);
    if (!trace) continue;
    const Result<sim::Trace> read = sim::read_trace(sim::write_trace(*trace), "its trace");
    if (!read) return {true, "its trace is refused: " + to_string(read.error())};
    if (*read != *trace) return {true, "its trace reads otherwise"};
  }
  return {true, {}};
}

}  // namespace holdfast::fuzz
