// Request traces: read strictly, and turned into a trace whose hits can be counted without the program.
#include "holdfast/sim/workload.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/sim/rng.hpp"

namespace holdfast::sim {
namespace {

using testing::HasSubstr;

constexpr std::string_view kGood = R"({"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}
{"timestamp": 27, "input_length": 1100, "output_length": 0, "hash_ids": [0, 1, 2]}
)";

std::string refusal_of_lines(std::string_view text, const WorkloadLimits& limits = {}) {
  const Result<Workload> workload = read_workload(text, "requests.jsonl", limits);
  return workload ? "accepted" : to_string(workload.error());
}

// What an unlimited cache hits, counted from the ids alone: the leading ids of each request that were seen before.
std::uint64_t count_prefix_hits(const Workload& workload) {
  std::set<std::uint64_t> seen;
  std::uint64_t hits = 0;
  for (const WorkloadRequest& request : workload.requests) {
    const auto first_new = std::ranges::find_if(request.hash_ids, [&](std::uint64_t id) { return !seen.contains(id); });
    hits += static_cast<std::uint64_t>(first_new - request.hash_ids.begin());
    seen.insert(request.hash_ids.begin(), request.hash_ids.end());
  }
  return hits;
}

// The same from the trace's steps: the leading actions of each session that an earlier one had, in a trie of actions.
std::uint64_t count_trace_hits(const Trace& trace) {
  std::map<std::pair<std::uint64_t, std::string>, std::uint64_t> children;
  std::uint64_t hits = 0;
  for (const Step& step : trace.steps) {
    if (step.kind != StepKind::open) continue;
    std::uint64_t node = 0;
    bool leading = true;
    for (const std::string& action : step.actions) {
      const auto [child, fresh] = children.try_emplace({node, action}, children.size() + 1);
      leading = leading && !fresh;
      hits += leading ? 1 : 0;
      node = child->second;
    }
  }
  return hits;
}

// Conversations that grow: each request repeats one's blocks and adds some.
std::string generated_requests(std::uint64_t seed, std::size_t count) {
  Rng rng(seed);
  std::vector<std::vector<std::uint64_t>> conversations{{0}};
  std::uint64_t next_id = 1;
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::uint64_t> ids = conversations[rng.below(conversations.size())];
    ids.resize(1 + rng.below(ids.size()));
    for (std::uint64_t more = rng.below(4); more > 0; --more) ids.push_back(next_id++);
    text += fmt::format(R"({{"timestamp": {}, "input_length": {}, "output_length": {}, "hash_ids": [{}]}})", i * 3,
                        ids.size() * kWorkloadBlockTokens - rng.below(kWorkloadBlockTokens), rng.below(900),
                        fmt::join(ids, ", "));
    text += '\n';
    conversations.push_back(std::move(ids));
  }
  return text;
}

TEST(Workload, RequestsAreRead) {
  const Result<Workload> workload = read_workload(kGood, "requests.jsonl");
  ASSERT_TRUE(workload) << to_string(workload.error());
  ASSERT_EQ(workload->requests.size(), 2U);
  EXPECT_EQ(workload->blocks, 5U);
  EXPECT_EQ(workload->requests[1].timestamp_ms, 27U);
  EXPECT_EQ(workload->requests[1].input_tokens, 1100U);
  EXPECT_EQ(workload->requests[0].output_tokens, 5U);
  EXPECT_EQ(workload->requests[1].hash_ids, (std::vector<std::uint64_t>{0, 1, 2}));
}

TEST(Workload, TheLastLineNeedsNoEnd) { EXPECT_EQ(refusal_of_lines(kGood.substr(0, kGood.size() - 1)), "accepted"); }

struct MalformedLine {
  std::string name;
  std::string second_line;
  std::string line_and_reason;
};
void PrintTo(const MalformedLine& malformed, std::ostream* out) { *out << malformed.name; }

class MalformedWorkload : public testing::TestWithParam<MalformedLine> {};

TEST_P(MalformedWorkload, IsRefusedWithFileLineAndReason) {
  const std::string first(kGood.substr(0, kGood.find('\n') + 1));
  EXPECT_THAT(refusal_of_lines(first + GetParam().second_line + "\n"),
              HasSubstr("requests.jsonl: " + GetParam().line_and_reason));
}

INSTANTIATE_TEST_SUITE_P(
    Workload, MalformedWorkload,
    testing::Values(
        MalformedLine{"no_json", "hello", "line 2: line 1, column 1"},
        MalformedLine{"empty_line", "  ", "line 2: empty line"},
        MalformedLine{"cut_short", R"({"timestamp": 1, "input_length": 5)", "line 2: line 1, column"},
        MalformedLine{"two_objects", "{} {}", "line 2: line 1, column"},
        MalformedLine{"no_object", "[1]", "line 2: $: is an array, not an object"},
        MalformedLine{"nested", R"({"timestamp": [[[[1]]]]})", "line 2: $.timestamp[0][0][0]: nested deeper than 4"},
        MalformedLine{"missing", R"({"timestamp": 1, "input_length": 5, "hash_ids": [0]})",
                      "line 2: $.output_length: is missing"},
        MalformedLine{"unknown",
                      R"({"timestamp": 1, "input_length": 5, "output_length": 1, "hash_ids": [0], "user": 1})",
                      "line 2: $: unknown field \"user\""},
        MalformedLine{"twice", R"({"timestamp": 1, "timestamp": 1})", "line 2: $: duplicate key \"timestamp\""},
        MalformedLine{"negative", R"({"timestamp": -1, "input_length": 5, "output_length": 1, "hash_ids": [0]})",
                      "line 2: $.timestamp: is a negative number"},
        MalformedLine{"fraction", R"({"timestamp": 1, "input_length": 5.5, "output_length": 1, "hash_ids": [0]})",
                      "line 2: $.input_length: \"5.5\" is no whole number"},
        MalformedLine{"late", R"({"timestamp": 1000000001, "input_length": 5, "output_length": 1, "hash_ids": [0]})",
                      "line 2: $.timestamp: 1000000001 is above"},
        MalformedLine{"text_id", R"({"timestamp": 1, "input_length": 5, "output_length": 1, "hash_ids": ["0"]})",
                      "line 2: $.hash_ids[0]: is a string"},
        MalformedLine{"huge_id",
                      R"({"timestamp": 1, "input_length": 5, "output_length": 1, "hash_ids": [9223372036854775808]})",
                      "line 2: $.hash_ids[0]: 9223372036854775808 is above"},
        MalformedLine{"no_ids", R"({"timestamp": 1, "input_length": 0, "output_length": 1, "hash_ids": []})",
                      "line 2: $.hash_ids: is empty"},
        MalformedLine{"contradictory", R"({"timestamp": 1, "input_length": 513, "output_length": 1, "hash_ids": [0]})",
                      "line 2: $.hash_ids: has 1 ids, but 513 tokens are 2 blocks of 512"},
        MalformedLine{"invalid_utf8", "{\"time\xFFstamp\": 1}", "line 2: line 1, column"}),
    [](const testing::TestParamInfo<MalformedLine>& param) { return param.param.name; });

TEST(Workload, TimeThatGoesBackIsRefused) {
  const std::string second(kGood.substr(kGood.find('\n') + 1));
  EXPECT_THAT(refusal_of_lines(second + std::string(kGood)),
              HasSubstr("requests.jsonl: line 2: $.timestamp: 0 is before the 27 of the line above"));
}

TEST(Workload, AnEmptyFileIsRefused) { EXPECT_THAT(refusal_of_lines(""), HasSubstr("requests.jsonl: is empty")); }

TEST(Workload, WhatExceedsABoundIsRefused) {
  EXPECT_THAT(refusal_of_lines(kGood, {.file_bytes_max = 10}), HasSubstr("bytes are more than the 10 allowed"));
  EXPECT_THAT(refusal_of_lines(kGood, {.line_bytes_max = 10}),
              HasSubstr("line 1: 77 bytes are more than the 10 allowed"));
  EXPECT_THAT(refusal_of_lines(kGood, {.requests_max = 1}), HasSubstr("line 2: more than 1 requests"));
  EXPECT_THAT(refusal_of_lines(kGood, {.request_blocks_max = 2}),
              HasSubstr("line 2: $.hash_ids: has 3 items, more than 2"));
}

TEST(WorkloadTrace, EachRequestOpensResumesGeneratesAndCloses) {
  const Result<Trace> trace = workload_trace(*read_workload(kGood, "requests.jsonl"));
  ASSERT_TRUE(trace) << to_string(trace.error());
  std::vector<StepKind> kinds;
  for (const Step& step : trace->steps) kinds.push_back(step.kind);
  using enum StepKind;
  EXPECT_EQ(kinds, (std::vector<StepKind>{open, resume, generate, generate, close, pass_time, open, resume, generate,
                                          generate, generate, close}));
  EXPECT_EQ(trace->steps[5].amount, static_cast<std::uint64_t>(27 * kMillisecond));
  EXPECT_EQ(trace->steps[6].actions, (std::vector<std::string>{"0", "1", "2"}));
}

TEST(WorkloadTrace, ItsPrefixesAreThoseOfTheRequests) {
  const Result<Workload> workload = read_workload(generated_requests(5, 400), "requests.jsonl");
  ASSERT_TRUE(workload) << to_string(workload.error());
  const Result<Trace> trace = workload_trace(*workload);
  ASSERT_TRUE(trace) << to_string(trace.error());
  const std::uint64_t hits = count_prefix_hits(*workload);
  EXPECT_GT(hits, workload->blocks / 4);
  EXPECT_LT(hits, workload->blocks);
  EXPECT_EQ(count_trace_hits(*trace), hits);
}

TEST(WorkloadTrace, WithoutACapacityEveryBlockHasItsSlots) {
  const Result<Workload> workload = read_workload(generated_requests(6, 100), "requests.jsonl");
  std::set<std::uint64_t> unique;
  for (const WorkloadRequest& request : workload->requests)
    unique.insert(request.hash_ids.begin(), request.hash_ids.end());
  const Result<Trace> trace = workload_trace(*workload);
  EXPECT_GE(trace->segment_bytes, unique.size() * 2 * slot_bytes(256));
  EXPECT_EQ(trace->capacity_bytes, 0U);
}

TEST(WorkloadTrace, ACapacityBoundsTheSegment) {
  const Result<Workload> workload = read_workload(generated_requests(7, 2'000), "requests.jsonl");
  const Result<Trace> all = workload_trace(*workload);
  const Result<Trace> some = workload_trace(*workload, {.capacity_bytes = 1 << 20});
  EXPECT_EQ(some->capacity_bytes, 1U << 20);
  EXPECT_LT(some->segment_bytes, all->segment_bytes);
}

TEST(WorkloadTrace, MoreStepsThanATraceMayHaveAreRefused) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += R"({"timestamp": 0, "input_length": 2097152, "output_length": 1, "hash_ids": [)";
    for (int id = 0; id < 4096; ++id) text += fmt::format("{}{}", id == 0 ? "" : ",", id);
    text += "]}\n";
  }
  const Result<Trace> trace = workload_trace(*read_workload(text, "requests.jsonl"));
  ASSERT_FALSE(trace);
  EXPECT_THAT(to_string(trace.error()), HasSubstr("$.steps: more than 1000000"));
}

}  // namespace
}  // namespace holdfast::sim
