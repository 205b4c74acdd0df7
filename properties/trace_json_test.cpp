// A trace file comes from anywhere: whatever is wrong with one is refused with file, place and reason, and whatever is
// right comes back as it was written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include "holdfast/sim/generator.hpp"
#include "holdfast/sim/strict_json.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {
namespace {

using testing::HasSubstr;

// A small trace with something of everything, one part a line.
struct Text {
  std::string schema = R"("schema": "holdfast-trace/1")";
  std::string memory = R"("segment_bytes": 1048576, "grant_bytes": 262144)";
  std::string geometry =
      R"({"n_layers": 2, "frames_per_chunk": 2, "frame_tokens": 1, "ring_frames": 5, "sink_frames": 1,)"
      R"( "full_length": false, "kv_token_bytes": [64, 96]})";
  std::string open = R"({"id": 1, "kind": "open", "world": 1, "actions": ["0", "\"0\""]})";
  std::string more_steps = R"({"id": 2, "kind": "generate", "of": 1}, {"id": 3, "kind": "resume", "of": 1})";
  std::string fault = R"({"step": 2, "call": "commit_wait", "kind": "lost", "code": -608})";
  std::string choice = R"({"step": 2, "call": "copy_batch", "kind": "copy_order", "arg": 7})";
  std::string tail;

  [[nodiscard]] std::string all() const {
    return "{" + schema + ",\n" + memory + ",\n\"geometries\": [" + geometry + "],\n\"steps\": [" + open + ", " +
           more_steps + "],\n\"faults\": [" + fault + "],\n\"choices\": [" + choice + "]}" + tail;
  }
};

std::string refusal(std::string_view text, const TraceLimits& limits = {}) {
  const Result<Trace> trace = read_trace(text, "bad.trace.json", limits);
  return trace ? "accepted" : to_string(trace.error());
}

TEST(TraceJson, ASmallTraceIsRead) {
  const Result<Trace> trace = read_trace(Text{}.all(), "good.trace.json");
  ASSERT_TRUE(trace) << to_string(trace.error());
  ASSERT_EQ(trace->steps.size(), 3U);
  EXPECT_EQ(trace->steps[0].actions, (std::vector<std::string>{"0", "\"0\""}));
  EXPECT_EQ(trace->steps[1].of, 1U);
  ASSERT_EQ(trace->faults.size(), 1U);
  EXPECT_EQ(trace->faults[0],
            (FaultPoint{.step = 2, .call = Call::commit_wait, .kind = FaultKind::lost, .code = -608}));
  ASSERT_EQ(trace->choices.size(), 1U);
  EXPECT_EQ(trace->choices[0].arg, 7U);
}

struct Malformed {
  std::string name;
  std::function<void(Text&)> break_it;
  std::string place_and_reason;
};
void PrintTo(const Malformed& malformed, std::ostream* out) { *out << malformed.name; }

class MalformedTrace : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedTrace, IsRefusedWithFilePlaceAndReason) {
  Text text;
  GetParam().break_it(text);
  const std::string told = refusal(text.all());
  EXPECT_THAT(told, HasSubstr("bad.trace.json: "));
  EXPECT_THAT(told, HasSubstr(GetParam().place_and_reason));
}

constexpr std::string_view kGeometryHead = R"({"n_layers": 1, "frames_per_chunk": )";

const auto kMalformed = testing::Values(
    // Syntax.
    Malformed{"trailing_garbage", [](Text& t) { t.tail = " x"; }, "line 6, column"},
    Malformed{"two_values", [](Text& t) { t.tail = "{}"; }, "line 6, column"},
    Malformed{"unquoted_key", [](Text& t) { t.schema = "schema: 1"; }, "line 1, column"},
    Malformed{"invalid_utf8", [](Text& t) { t.open = "{\"id\": 1, \"kind\": \"op\xFF\"}"; }, "line 4, column"},
    Malformed{"control_character", [](Text& t) { t.open = "{\"id\": 1, \"kind\": \"o\x01\"}"; }, "line 4, column"},
    Malformed{"nesting", [](Text& t) { t.choice = std::string(17, '[') + std::string(17, ']'); },
              "nested deeper than 16"},
    Malformed{"deep_nesting", [](Text& t) { t.choice = std::string(1'000'000, '['); }, "nested deeper than 16"},
    Malformed{"duplicate_key", [](Text& t) { t.fault = R"({"step": 2, "step": 2})"; },
              "$.faults[0]: duplicate key \"step\""},
    // Fields.
    Malformed{"future_schema", [](Text& t) { t.schema = R"("schema": "holdfast-trace/2")"; },
              "$.schema: \"holdfast-trace/2\" is a version that this program cannot read"},
    Malformed{"foreign_schema", [](Text& t) { t.schema = R"("schema": "holdfast-report/1")"; }, "is not a trace"},
    Malformed{"no_schema", [](Text& t) { t.schema = R"("name": "x")"; }, "$.schema: is missing"},
    Malformed{"schema_of_a_wrong_type", [](Text& t) { t.schema = R"("schema": 1)"; }, "$.schema: is a number"},
    Malformed{"unknown_field", [](Text& t) { t.schema += R"(, "speed": 1)"; }, "$: unknown field \"speed\""},
    Malformed{"unknown_step_field", [](Text& t) { t.open = R"({"id": 1, "kind": "pump", "off": 1})"; },
              "$.steps[0]: unknown field \"off\""},
    Malformed{"missing_field", [](Text& t) { t.memory = R"("segment_bytes": 1048576)"; },
              "$.grant_bytes: is missing"},
    Malformed{"step_is_no_object", [](Text& t) { t.open = "7"; }, "$.steps[0]: is a number, not an object"},
    Malformed{"text_for_a_number", [](Text& t) { t.open = R"({"id": "1", "kind": "pump"})"; },
              "$.steps[0].id: is a string"},
    Malformed{"negative", [](Text& t) { t.open = R"({"id": -1, "kind": "pump"})"; }, "$.steps[0].id: is a negative"},
    Malformed{"fraction", [](Text& t) { t.open = R"({"id": 1.5, "kind": "pump"})"; }, "$.steps[0].id: \"1.5\" is no"},
    Malformed{"exponent", [](Text& t) { t.open = R"({"id": 1e0, "kind": "pump"})"; }, "$.steps[0].id: \"1e0\" is no"},
    Malformed{"above_32_bits", [](Text& t) { t.open = R"({"id": 4294967296, "kind": "pump"})"; },
              "$.steps[0].id: 4294967296 is above 4294967295"},
    Malformed{"above_64_bits", [](Text& t) { t.schema += R"(, "seed": 18446744073709551616)"; }, "$.seed: "},
    Malformed{"code_above_32_bits",
              [](Text& t) { t.fault = R"({"step": 2, "call": "get", "kind": "lost", "code": -4294967296})"; },
              "$.faults[0].code: "},
    Malformed{"flag_of_a_wrong_type", [](Text& t) { t.schema += R"(, "in_memory_store": 1)"; },
              "$.in_memory_store: is a number, not a boolean"},
    Malformed{"too_many_batches", [](Text& t) { t.schema += R"(, "batches_in_flight": 65)"; },
              "$.batches_in_flight: 65 is above 64"},
    Malformed{"unknown_kind", [](Text& t) { t.open = R"({"id": 1, "kind": "explode"})"; },
              "$.steps[0].kind: unknown name \"explode\""},
    Malformed{"unknown_call", [](Text& t) { t.fault = R"({"step": 2, "call": "putt", "kind": "lost"})"; },
              "$.faults[0].call: unknown name \"putt\""},
    Malformed{"action_is_no_string", [](Text& t) { t.open = R"({"id": 1, "kind": "open", "actions": [0]})"; },
              "$.steps[0].actions[0]: is no string"},
    // What must fit together.
    Malformed{"duplicate_id", [](Text& t) { t.more_steps = R"({"id": 1, "kind": "pump"})"; },
              "$.steps[1].id: 1 is another step's id"},
    Malformed{"reserved_id", [](Text& t) { t.more_steps = R"({"id": 4294967295, "kind": "pump"})"; },
              "$.steps[1].id: 4294967295 is reserved"},
    Malformed{"field_of_another_kind", [](Text& t) { t.more_steps = R"({"id": 2, "kind": "pump", "depth": 3})"; },
              "$.steps[1].depth: does not belong to a step pump"},
    Malformed{"damage_that_nobody_could_find",
              [](Text& t) { t.more_steps = R"({"id": 2, "kind": "store_evict", "of": 1, "amount": 2})"; },
              "$.steps[1].amount: "},
    Malformed{"no_session", [](Text& t) { t.more_steps = R"({"id": 2, "kind": "resume"})"; },
              "$.steps[1].of: is missing"},
    Malformed{"a_session_that_is_none",
              [](Text& t) { t.more_steps = R"({"id": 2, "kind": "pump"}, {"id": 3, "kind": "resume", "of": 2})"; },
              "$.steps[2].of: step 2 is a step pump, not open"},
    Malformed{"a_hold_that_is_none", [](Text& t) { t.more_steps = R"({"id": 2, "kind": "unhold", "of": 1})"; },
              "$.steps[1].of: step 1 is a step open, not hold"},
    Malformed{"a_session_that_comes_later",
              [](Text& t) { std::swap(t.open, t.more_steps = R"({"id": 2, "kind": "resume", "of": 1})"); },
              "$.steps[0].of: step 1 comes later"},
    Malformed{"no_such_geometry",
              [](Text& t) { t.open = R"({"id": 1, "kind": "open", "geometry": 1, "actions": ["0"]})"; },
              "$.steps[0].geometry: there is no geometry 1"},
    Malformed{"no_actions", [](Text& t) { t.open = R"({"id": 1, "kind": "open", "actions": []})"; },
              "$.steps[0].actions: is missing or empty"},
    Malformed{"action_is_no_json", [](Text& t) { t.open = R"({"id": 1, "kind": "open", "actions": ["left"]})"; },
              "$.steps[0].actions[0]: is no JSON"},
    Malformed{"action_with_a_space", [](Text& t) { t.open = R"({"id": 1, "kind": "open", "actions": ["[1, 2]"]})"; },
              "$.steps[0].actions[0]: is not canonical JSON; that is \"[1,2]\""},
    Malformed{"action_with_a_leading_zero", [](Text& t) { t.open = R"({"id": 1, "kind": "open", "actions": ["01"]})"; },
              "$.steps[0].actions[0]: is no JSON"},
    Malformed{"fault_at_no_step", [](Text& t) { t.fault = R"({"step": 9, "call": "remove", "kind": "late"})"; },
              "$.faults[0].step: there is no step 9"},
    Malformed{"illegal_fault", [](Text& t) { t.fault = R"({"step": 2, "call": "remove", "kind": "part"})"; },
              "$.faults[0]: part with code 0 is no legal fault of remove"},
    Malformed{"illegal_code",
              [](Text& t) { t.fault = R"({"step": 2, "call": "commit_wait", "kind": "lost", "code": -118})"; },
              "$.faults[0]: lost with code -118 is no legal fault of commit_wait"},
    Malformed{"two_fates_at_a_call",
              [](Text& t) { t.fault += R"(, {"step": 2, "call": "commit_wait", "kind": "before", "code": -608})"; },
              "$.faults[1]: another one is at the same place"},
    Malformed{"late_beyond_all_bounds",
              [](Text& t) { t.fault = R"({"step": 2, "call": "remove", "kind": "late", "arg": 3600000000001})"; },
              "$.faults[0].arg: 3600000000001 is not in"},
    Malformed{"put_start_later_than_it_may_wait",
              [](Text& t) {
                t.fault = R"({"step": 2, "call": "local_fast_put_start", "kind": "late", "arg": 30000000001})";
              },
              "$.faults[0].arg: 30000000001 is not in"},
    Malformed{"choice_of_another_call",
              [](Text& t) { t.choice = R"({"step": 2, "call": "get_start", "kind": "copy_order"})"; },
              "$.choices[0]: copy_order is no choice of get_start"},
    Malformed{"two_choices_for_a_batch",
              [](Text& t) { t.choice += R"(, {"step": 2, "call": "copy_batch", "kind": "copy_at_submit"})"; },
              "$.choices[1]: another one is at the same place"},
    Malformed{"route_later_than_the_settle_bound",
              [](Text& t) {
                t.choice = R"({"step": 2, "call": "local_fast_put_commit", "kind": "route_after", "arg": 60000000001})";
              },
              "$.choices[0].arg: 60000000001 is not in"},
    Malformed{"time_beyond_all_bounds",
              [](Text& t) { t.more_steps = R"({"id": 2, "kind": "pass_time", "amount": 18446744073709551615},
                                               {"id": 3, "kind": "pass_time", "amount": 18446744073709551615})"; },
              "$.steps[1].amount: more than"},
    // Bounds and geometry.
    Malformed{"no_geometry", [](Text& t) { t.geometry.clear(); }, "$.geometries: is empty"},
    Malformed{"odd_segment", [](Text& t) { t.memory = R"("segment_bytes": 5000, "grant_bytes": 4096)"; },
              "$.segment_bytes: 5000 is no multiple of 4096"},
    Malformed{"huge_segment", [](Text& t) { t.memory = R"("segment_bytes": 17592186044416, "grant_bytes": 4096)"; },
              "$.segment_bytes: 17592186044416 is above"},
    Malformed{"no_grant", [](Text& t) { t.memory = R"("segment_bytes": 4096, "grant_bytes": 0)"; },
              "$.grant_bytes: 0 is not in"},
    Malformed{"no_frames",
              [](Text& t) {
                t.geometry = std::string(kGeometryHead) +
                             R"(0, "frame_tokens": 1, "ring_frames": 2, "kv_token_bytes": [1]})";
              },
              "$.geometries[0].frames_per_chunk: 0 is not in 1 to"},
    Malformed{"no_sizes",
              [](Text& t) {
                t.geometry = std::string(kGeometryHead) +
                             R"(1, "frame_tokens": 1, "ring_frames": 2, "kv_token_bytes": []})";
              },
              "$.geometries[0].kv_token_bytes: 0 is not in 1 to 3"},
    Malformed{"four_sizes",
              [](Text& t) {
                t.geometry = std::string(kGeometryHead) +
                             R"(1, "frame_tokens": 1, "ring_frames": 2, "kv_token_bytes": [1, 2, 3, 4]})";
              },
              "$.geometries[0].kv_token_bytes: has 4 items, more than 3"},
    Malformed{"a_size_of_zero",
              [](Text& t) {
                t.geometry = std::string(kGeometryHead) +
                             R"(1, "frame_tokens": 1, "ring_frames": 2, "kv_token_bytes": [0]})";
              },
              "$.geometries[0].kv_token_bytes[0]: 0 is not in 1 to"},
    Malformed{"sink_longer_than_the_ring",
              [](Text& t) {
                t.geometry = std::string(kGeometryHead) +
                             R"(1, "frame_tokens": 1, "ring_frames": 2, "sink_frames": 3, "kv_token_bytes": [1]})";
              },
              "$.geometries[0].sink_frames: 3 is not in 0 to 2"},
    Malformed{"ring_that_cannot_roll",
              [](Text& t) {
                t.geometry = std::string(kGeometryHead) +
                             R"(3, "frame_tokens": 1, "ring_frames": 5, "sink_frames": 3, "full_length": false,
                                "kv_token_bytes": [1]})";
              },
              "$.geometries[0]: a rolling ring of 5 frames of which 3 are sink cannot take chunks of 3"},
    Malformed{"full_length_ring_too_short",
              [](Text& t) {
                t.geometry = std::string(kGeometryHead) +
                             R"(2, "frame_tokens": 1, "ring_frames": 3, "kv_token_bytes": [1]})";
              },
              "$.steps[0].geometry: a full-length ring of 3 frames is too short for 4 frames"},
    Malformed{"value_above_a_grant",
              [](Text& t) {
                t.geometry = std::string(kGeometryHead) +
                             R"(1, "frame_tokens": 1024, "ring_frames": 2, "kv_token_bytes": [257]})";
              },
              "$.geometries[0].kv_token_bytes[0]: a value of 263168 bytes fits into no grant of 262144"},
    Malformed{"ring_above_the_bound",
              [](Text& t) {
                t.geometry = std::string(kGeometryHead) +
                             R"(1, "frame_tokens": 1024, "ring_frames": 1048576, "kv_token_bytes": [64]})";
              },
              "$.geometries[0]: a ring of"});

INSTANTIATE_TEST_SUITE_P(TraceJson, MalformedTrace, kMalformed,
                         [](const testing::TestParamInfo<Malformed>& param) { return param.param.name; });

TEST(TraceJson, EveryTruncationIsRefused) {
  const std::string text = Text{}.all();
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_NE(refusal(std::string_view(text).substr(0, length)), "accepted") << length;
}

TEST(TraceJson, AnOversizeFileIsRefusedBeforeItIsRead) {
  TraceLimits limits;
  limits.file_bytes_max = 100;
  EXPECT_THAT(refusal(Text{}.all(), limits), HasSubstr("bytes are more than the 100 allowed"));
}

TEST(TraceJson, CountsBeyondTheirBoundsAreRefused) {
  const std::string text = Text{}.all();
  EXPECT_THAT(refusal(text, {.steps_max = 2}), HasSubstr("$.steps: has 3 items, more than 2"));
  EXPECT_THAT(refusal(text, {.faults_max = 0}), HasSubstr("$.faults: has 1 items, more than 0"));
  EXPECT_THAT(refusal(text, {.sessions_max = 0}), HasSubstr("$.steps[0]: more than 0 sessions"));
  EXPECT_THAT(refusal(text, {.actions_max = 1}), HasSubstr("$.steps[0].actions: has 2 items, more than 1"));
}

std::string side_by_side(const std::string& steps, const TraceLimits& limits) {
  Text text;
  text.more_steps = steps;
  text.fault = text.choice = "";
  text.tail = "";
  std::string all = text.all();
  all.insert(all.size() - 1, R"(, "switches": [{"step": 1, "nth": 0, "to": 2}])");
  return refusal(all, limits);
}

TEST(TraceJson, StepsSideBySideAreBounded) {
  const std::string pumps = R"({"id": 2, "kind": "pump"}, {"id": 3, "kind": "pump"}, {"id": 4, "kind": "pump"})";
  EXPECT_EQ(side_by_side(pumps, {}), "accepted");
  EXPECT_THAT(side_by_side(pumps, {.side_by_side_steps_max = 3}), HasSubstr("$.steps: more than 3 run side by side"));
  EXPECT_THAT(side_by_side(pumps, {.round_steps_max = 3}),
              AllOf(HasSubstr("$.steps[3]: runs beside 3 others"), HasSubstr("\"join\": true")));
  EXPECT_THAT(side_by_side(pumps, {.lanes_max = 3}), HasSubstr("$.steps[3]: more than 3 sessions and steps of no"));
}

TEST(TraceJson, AJoinAndARestartBeginAnotherRound) {
  const TraceLimits limits{.round_steps_max = 2};
  const std::string last = R"({"id": 4, "kind": "pump"})";
  EXPECT_EQ(side_by_side(R"({"id": 2, "kind": "pump"}, {"id": 3, "kind": "pump", "join": true}, )" + last, limits),
            "accepted");
  EXPECT_EQ(side_by_side(R"({"id": 2, "kind": "pump"}, {"id": 3, "kind": "restart"}, )" + last, limits), "accepted");
}

TEST(TraceJson, AByteOrderMarkIsRefused) {
  EXPECT_THAT(refusal("\xEF\xBB\xBF" + Text{}.all()), HasSubstr("line 1, column 1: byte order mark"));
}

TEST(TraceJson, AStepWhoseSessionWasTakenAwayIsValid) {
  Text text;
  text.open = R"({"id": 9, "kind": "pump"})";
  EXPECT_EQ(refusal(text.all()), "accepted");
}

TEST(TraceJson, AnEventMayComeOnTopOfAFate) {
  Text text;
  text.fault += R"(, {"step": 2, "call": "commit_wait", "kind": "late", "arg": 5})";
  EXPECT_EQ(refusal(text.all()), "accepted");
}

TEST(TraceJson, AnActionMayBeAnyCanonicalJson) {
  Text text;
  text.open = R"({"id": 1, "kind": "open", "world": 1, "actions": ["{\"a\":[1.5,null],\"b\":\"ä\"}", "-3"]})";
  EXPECT_EQ(refusal(text.all()), "accepted");
}

TEST(TraceJson, WhatIsDefaultIsNotWritten) {
  Trace trace;
  trace.geometries.emplace_back();
  trace.steps.push_back({.id = 1, .kind = StepKind::pump, .actions = {}});
  trace.faults.push_back({.step = 1, .call = Call::remove, .kind = FaultKind::late});
  EXPECT_EQ(write_trace(trace), R"({
  "schema": "holdfast-trace/1",
  "segment_bytes": 1048576,
  "grant_bytes": 262144,
  "geometries": [
    {"n_layers": 1, "frames_per_chunk": 1, "frame_tokens": 1, "ring_frames": 1, "kv_token_bytes": [256]}
  ],
  "steps": [
    {"id": 1, "kind": "pump"}
  ],
  "faults": [
    {"step": 1, "call": "remove", "kind": "late"}
  ]
}
)");
}

TEST(TraceJson, NamesAreEscaped) {
  Trace trace;
  trace.name = "quote \" backslash \\ line\n";
  trace.geometries.emplace_back();
  const Result<Trace> back = read_trace(write_trace(trace), "x");
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(back->name, trace.name);
}

RC_GTEST_PROP(TraceJson, WhatIsWrittenReadsBackTheSame, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const Profile& profile = profiles()[*rc::gen::inRange<std::size_t>(0, profiles().size())];
  const Trace trace = generate(seed, profile);
  const std::string text = write_trace(trace);
  const Result<Trace> back = read_trace(text, "x");
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == trace);
  RC_ASSERT(write_trace(*back) == text);
}

RC_GTEST_PROP(TraceJson, AChangedByteIsReadOrRefusedAndNeverMore, ()) {
  std::string text = write_trace(generate(*rc::gen::inRange<std::uint64_t>(0, 64), profiles()[0]));
  const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
  text[at] = static_cast<char>(*rc::gen::inRange(0, 256));
  const Result<Trace> back = read_trace(text, "changed.json");
  if (back) {
    RC_ASSERT(validate_trace(*back).has_value());
  } else {
    RC_ASSERT(to_string(back.error()).find("changed.json: ") != std::string::npos);
  }
}

TEST(StrictJson, ValuesBeyondTheBoundAreRefused) {
  const auto parsed = parse_strict_json("[1,2,3]", {.values_max = 3});
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().detail, HasSubstr("more than 3 values"));
}

TEST(StrictJson, FieldsBeyondTheBoundAreRefused) {
  const auto parsed = parse_strict_json(R"({"a": 1, "b": 2})", {.fields_max = 1});
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().detail, HasSubstr("more than 1 fields"));
}

TEST(StrictJson, TheDepthOfTheInputDoesNotReachTheStack) {
  const std::string deep(50'000'000, '[');
  EXPECT_FALSE(parse_strict_json(deep, {.depth_max = 100}));
}

}  // namespace
}  // namespace holdfast::sim
