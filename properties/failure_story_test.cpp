// What is told and drawn of a failure: that the moments of a run are all there, the lanes right, the story plain.
#include "holdfast/sim/failure_story.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "hasty_system.hpp"
#include "holdfast/sim/generator.hpp"
#include "holdfast/sim/trace_builder.hpp"

namespace holdfast::sim {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;

// A session of two chunks, in the world of the haste.
Trace two_chunks(Haste haste) {
  TraceBuilder builder("two chunks");
  const std::uint32_t geometry = builder.geometry({});
  const auto session = builder.open({.world = 1, .geometry = geometry, .actions = {"1", "2"}});
  builder.generate(session);
  builder.generate(session);
  return made_hasty(builder.finish(), haste);
}

RecordedRun recorded(const Trace& trace, const SystemFactory& factory = hasty_system()) {
  RecordedRun run;
  RunOptions options;
  options.on_moment = [&](Moment moment) { run.moments.push_back(std::move(moment)); };
  run.violations = Executor(factory).run(trace, options).violations;
  return run;
}

FailureStory story_of(Haste haste) {
  const Trace trace = two_chunks(haste);
  const RecordedRun run = recorded(trace);
  EXPECT_THAT(run.violations, Not(IsEmpty()));
  return tell_story(trace, run, target_of(run.violations.front()));
}

std::vector<ChartSpan> spans_of(const LaneChart& chart, SpanKind kind) {
  std::vector<ChartSpan> spans;
  for (const ChartLane& lane : chart.lanes) {
    for (const ChartSpan& span : lane.spans) {
      if (span.kind == kind) spans.push_back(span);
    }
  }
  return spans;
}

// On each track an event lies within the one before it, or behind it.
void expect_nested(const std::string& text) {
  const json file = json::parse(text);
  std::map<int, std::vector<std::pair<std::uint64_t, std::uint64_t>>> tracks;
  for (const json& event : file.at("traceEvents")) {
    EXPECT_THAT((std::vector<std::string>{"M", "X", "i"}), Contains(event.at("ph").get<std::string>()));
    if (event.at("ph") != "X") continue;
    const auto begin = event.at("ts").get<std::uint64_t>();
    tracks[event.at("tid").get<int>()].emplace_back(begin, begin + event.at("dur").get<std::uint64_t>());
  }
  EXPECT_THAT(tracks, Not(IsEmpty()));
  for (auto& [track, events] : tracks) {
    std::ranges::sort(events, [](const auto& one, const auto& other) {
      return one.first != other.first ? one.first < other.first : one.second > other.second;
    });
    std::vector<std::uint64_t> open;  // the ends of those that an event may lie in
    for (const auto& [begin, end] : events) {
      while (!open.empty() && open.back() <= begin) open.pop_back();
      ASSERT_TRUE(open.empty() || end <= open.back()) << "track " << track << ", at " << begin;
      open.push_back(end);
    }
  }
}

TEST(Moments, BeingToldOfThemChangesNothing) {
  Executor executor(make_production_system);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Trace trace = generate(seed, *profile_named("default"));
    const RunResult plain = executor.run(trace);
    std::uint64_t told = 0;
    RunOptions options;
    options.on_moment = [&](const Moment&) { ++told; };
    const RunResult watched = executor.run(trace, options);
    EXPECT_EQ(watched.log_hash, plain.log_hash);
    EXPECT_EQ(watched.checked, plain.checked);
    EXPECT_GE(told, plain.log_events);
    EXPECT_EQ(executor.run(trace).log_hash, plain.log_hash);
  }
}

TEST(Moments, WhatBeginsToLiveEndsOnce) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    std::map<Thing, int> alive;
    for (const Moment& moment : recorded(generate(seed, *profile_named("faulty"))).moments) {
      if (moment.kind == MomentKind::opened) {
        EXPECT_EQ(alive[moment.thing]++, 0) << to_string(moment.thing);
      } else if (moment.kind == MomentKind::closed) {
        EXPECT_EQ(alive[moment.thing]--, 1) << to_string(moment.thing);
      }
    }
    for (const auto& [thing, times] : alive) EXPECT_EQ(times, 0) << to_string(thing) << " of seed " << seed;
  }
}

TEST(RecordRun, TellsInAnotherProcessWhatItTellsInThisOne) {
  const Trace trace = two_chunks(Haste::aborts_under_a_copy);
  const RecordedRun here = recorded(trace);
  const auto there = record_run(trace, hasty_system(), {});
  ASSERT_TRUE(there);
  EXPECT_EQ(there->broken_off, "");
  ASSERT_EQ(there->moments.size(), here.moments.size());
  for (std::size_t i = 0; i < here.moments.size(); ++i) {
    const Moment& one = here.moments[i];
    const Moment& other = there->moments[i];
    EXPECT_EQ(std::tie(other.kind, other.at_ns, other.step, other.of_call, other.call, other.fault, other.code,
                       other.thing, other.places, other.culprits, other.text),
              std::tie(one.kind, one.at_ns, one.step, one.of_call, one.call, one.fault, one.code, one.thing, one.places,
                       one.culprits, one.text));
  }
  ASSERT_EQ(there->violations.size(), here.violations.size());
}

TEST(RecordRun, OfACrashItTellsUpToThere) {
  const auto run = record_run(two_chunks(Haste::crashes), hasty_system(), {});
  ASSERT_TRUE(run);
  EXPECT_THAT(run->broken_off, HasSubstr("signal 6"));
  ASSERT_THAT(run->moments, Not(IsEmpty()));
  EXPECT_EQ(run->moments.back().call, Call::copy_batch);
}

TEST(RecordRun, OfAHangItTellsUpToThere) {
  const SystemFactory hangs = [](Ports& ports, ClaimListener& listener, const SystemOptions& options) {
    class Hangs final : public ForwardingSystem {
     public:
      using ForwardingSystem::ForwardingSystem;
      Result<IngestOutcome> chunk_finalized(SessionId) override {
        for (volatile bool forever = true; forever;) continue;
        return IngestOutcome{};
      }
    };
    return std::make_unique<Hangs>(make_production_system(ports, listener, options));
  };
  RecordOptions options;
  options.hang_limit_ns = 100 * kMillisecond;
  const auto run = record_run(two_chunks(Haste::none), hangs, options);
  ASSERT_TRUE(run);
  EXPECT_THAT(run->broken_off, HasSubstr("no end"));
  EXPECT_EQ(run->moments.back().kind, MomentKind::operation);
}

TEST(Story, OfAPlanAbortedUnderACopyNamesBothAndHowTheyBegan) {
  const FailureStory story = story_of(Haste::aborts_under_a_copy);
  ASSERT_GE(story.sentences.size(), 4U);
  EXPECT_THAT(story.sentences[0],
              MatchesRegex("Put plan ([0-9]+) was aborted at 0 ms \\(#[0-9]+\\), by the put of chunk 1 of session 1 "
                           "\\(step 2\\), while batch [0-9]+ with copy 1 into its slot 1 may still have been in "
                           "flight: no successful wait covers it\\."));
  EXPECT_THAT(story.sentences[1], MatchesRegex("Put plan [0-9]+ began at 0 ms \\(#[0-9]+\\) with local_fast_put_start "
                                               "of the put of chunk 1 of session 1 \\(step 2\\): 1 key,.*"));
  EXPECT_THAT(story.sentences[2], MatchesRegex("Batch [0-9]+ was submitted at 0 ms \\(#[0-9]+\\) by the put of chunk 1 "
                                               "of session 1 \\(step 2\\): 1 copy to the host on stream 1\\."));
  EXPECT_EQ(story.sentences.back(), "No fault had been injected before that.");
}

TEST(Story, OfAPlanEndedTwiceNamesTheFirstEnd) {
  EXPECT_THAT(
      story_of(Haste::aborts_twice).sentences[0],
      MatchesRegex("put_abort was called at 0 ms \\(#[0-9]+\\), by the put of chunk 1 of session 1 \\(step 2\\), "
                   "for put plan [0-9]+, which had ended already: by put_abort at 0 ms \\(#[0-9]+\\), by .*"));
}

TEST(Story, OfAPlanThatNeverEndedTellsWhereItBegan) {
  const FailureStory story = story_of(Haste::forgets_a_plan);
  EXPECT_THAT(story.sentences[0], HasSubstr("in the drain: put plan"));
  EXPECT_THAT(story.sentences, Contains(MatchesRegex("Put plan [0-9]+ began at 0 ms .* of the put of chunk 1 .*")));
  // What comes before the first step has its number, and is no drain.
  EXPECT_EQ(step_name(story.chart.columns.front()), "start");
  EXPECT_EQ(step_name(story.chart.columns.back()), "drain");
}

TEST(Story, OfACrashTellsTheLastThatWasSeen) {
  const Trace trace = two_chunks(Haste::crashes);
  const auto run = record_run(trace, hasty_system(), {});
  ASSERT_TRUE(run);
  const FailureStory story = tell_story(trace, *run, {FailureKind::crash, {}, {}, {}});
  EXPECT_THAT(story.sentences[0], HasSubstr("did not come to its end: the process ended by signal 6"));
  EXPECT_THAT(story.sentences[1], HasSubstr("copy_batch"));
  EXPECT_TRUE(story.chart.broken_at);
}

TEST(Story, TellsOfInjectedFaultsInWords) {
  Trace trace = two_chunks(Haste::aborts_under_a_copy);
  trace.faults.push_back({2, Call::stream_synchronize, 0, FaultKind::late, 0, 2'500'000, false});
  const RecordedRun run = recorded(trace);
  ASSERT_THAT(run.violations, Not(IsEmpty()));
  const FailureStory story = tell_story(trace, run, target_of(run.violations.front()));
  EXPECT_THAT(story.sentences, Contains(MatchesRegex("Injected at 0 ms \\(#[0-9]+\\), in the put of chunk 1 of session "
                                                     "1 \\(step 2\\): late of stream_synchronize, slow\\.")));
  EXPECT_THAT(story.sentences[0], HasSubstr("at 2.5 ms"));
}

TEST(Story, KeepsTheTraceAndSaysWhatItLeftOut) {
  Trace trace = two_chunks(Haste::aborts_under_a_copy);
  EXPECT_EQ(story_of(Haste::aborts_under_a_copy).trace, write_trace(trace));
  const RecordedRun run = recorded(trace);
  trace.name = std::string(250, 'n');
  while (write_trace(trace).size() < 2 * kStoryTraceBytesMax) trace.steps.push_back(trace.steps.back());
  const FailureStory story = tell_story(trace, run, target_of(run.violations.front()));
  EXPECT_LE(story.trace.size(), kStoryTraceBytesMax);
  EXPECT_EQ(story.trace.size() + story.trace_bytes_more, write_trace(trace).size());
}

TEST(LaneChart, HasALaneForEachSessionStreamPlanAndHandle) {
  const Trace trace = two_chunks(Haste::none);
  const LaneChart chart = make_lane_chart(trace, recorded(trace), {});
  std::vector<std::string> names;
  for (const ChartLane& lane : chart.lanes) names.push_back(lane.name);
  for (const char* name : {"session 1", "owner", "stream 1", "plans", "others", "shown ready"}) {
    EXPECT_THAT(names, Contains(name));
  }
  EXPECT_THAT(spans_of(chart, SpanKind::step), SizeIs(testing::Ge(4U)));  // open, two chunks, the drain
  EXPECT_THAT(spans_of(chart, SpanKind::plan), SizeIs(testing::Ge(2U)));
  EXPECT_THAT(spans_of(chart, SpanKind::plan), Each(testing::Field(&ChartSpan::not_ended, false)));
  EXPECT_FALSE(chart.broken_at);
}

TEST(LaneChart, ABatchLastsFromItsSubmissionToTheWait) {
  const Trace trace = two_chunks(Haste::none);
  const LaneChart chart = make_lane_chart(trace, recorded(trace), {});
  const std::vector<ChartSpan> batches = spans_of(chart, SpanKind::batch);
  ASSERT_THAT(batches, Not(IsEmpty()));
  for (const ChartSpan& batch : batches) {
    EXPECT_THAT(chart.columns[batch.first].text, HasSubstr("copy_batch"));
    EXPECT_THAT(chart.columns[batch.last].text, HasSubstr("synchronize"));
  }
}

TEST(LaneChart, MarksTheCulpritsAndWhereThePromiseWasBroken) {
  const FailureStory story = story_of(Haste::aborts_under_a_copy);
  ASSERT_TRUE(story.chart.broken_at);
  EXPECT_THAT(story.chart.columns[*story.chart.broken_at].text, HasSubstr("put_abort"));
  EXPECT_THAT(story.chart.columns[*story.chart.broken_at].text, HasSubstr("BROKEN: "));
  std::vector<std::string> culprits;
  for (const SpanKind kind : {SpanKind::plan, SpanKind::batch}) {
    for (const ChartSpan& span : spans_of(story.chart, kind)) {
      if (span.culprit) culprits.push_back(span.label.substr(0, span.label.rfind(' ')));
    }
  }
  EXPECT_THAT(culprits, testing::ElementsAre("put plan", "batch"));
}

TEST(LaneChart, IsCutToWhatLedToTheViolation) {
  const Trace trace = two_chunks(Haste::forgets_a_plan);
  const RecordedRun run = recorded(trace);
  ChartOptions options;
  options.columns_max = 12;
  options.violation = 0;
  const LaneChart chart = make_lane_chart(trace, run, options);
  EXPECT_THAT(chart.columns, SizeIs(12U));
  EXPECT_GT(chart.first, 0U);
  ASSERT_TRUE(chart.broken_at);
  EXPECT_LT(*chart.broken_at, 12U);
  for (const ChartLane& lane : chart.lanes) {
    EXPECT_TRUE(!lane.spans.empty() || !lane.marks.empty());
    for (const ChartSpan& span : lane.spans) {
      EXPECT_LE(span.first, span.last);
      EXPECT_LT(span.last, 12U);
    }
    for (const ChartMark& mark : lane.marks) EXPECT_LT(mark.column, 12U);
  }
  const std::vector<ChartSpan> plans = spans_of(chart, SpanKind::plan);
  EXPECT_THAT(plans, Contains(testing::Field(&ChartSpan::begun_before, true)));
}

TEST(LaneChart, TraceEventsNestOnEachTrack) {
  ChartOptions options;
  options.every_moment = true;
  for (const char* profile : {"default", "faulty", "side-by-side"}) {
    for (std::uint64_t seed = 1; seed <= 15; ++seed) {
      const Trace trace = generate(seed, *profile_named(profile));
      expect_nested(lane_chart_trace_events(make_lane_chart(trace, recorded(trace), options), "title"));
      ASSERT_FALSE(HasFatalFailure()) << profile << ", seed " << seed;
    }
  }
}

TEST(LaneChart, TraceEventsTellTheVirtualTimeAndTheCulprits) {
  const Trace trace = two_chunks(Haste::aborts_under_a_copy);
  ChartOptions options;
  options.every_moment = true;
  options.violation = 0;
  const json file =
      json::parse(lane_chart_trace_events(make_lane_chart(trace, recorded(trace), options), "<title> \xff"));
  std::size_t culprits = 0;
  std::size_t violations = 0;
  for (const json& event : file.at("traceEvents")) {
    if (event.at("ph") == "M") continue;
    EXPECT_TRUE(event.at("args").at("virtual_ns").is_number_integer());
    culprits += event.at("args").value("culprit", false) ? 1 : 0;
    violations += event.at("ph") == "i" && event.at("s") == "g" ? 1 : 0;
  }
  EXPECT_EQ(culprits, 2U);
  EXPECT_GE(violations, 1U);
}

TEST(LaneChart, AsSvgIsWellFormedWhateverTheNames) {
  Trace trace = two_chunks(Haste::aborts_under_a_copy);
  const std::string hostile = "</title><script>alert('x')</script> \"q\" & \xff \x1b[31m" + std::string(3000, 'A');
  const RecordedRun run = recorded(trace, hasty_system(hostile));
  ChartOptions options;
  options.violation = 0;
  const std::string svg = lane_chart_svg(make_lane_chart(trace, run, options), "name", hostile);
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("style=")));  // which the page's content policy refuses
  std::istringstream text(svg);
  boost::property_tree::ptree tree;
  ASSERT_NO_THROW(boost::property_tree::read_xml(text, tree));
  EXPECT_EQ(tree.get<std::string>("svg.<xmlattr>.aria-labelledby"), "name");
  EXPECT_THAT(tree.get<std::string>("svg.title"), HasSubstr("<script>alert('x')</script>"));
}

TEST(VirtualTime, IsWrittenInTheUnitThatFits) {
  EXPECT_EQ(virtual_time_text(0), "0 ms");
  EXPECT_EQ(virtual_time_text(1'500), "1.5 us");
  EXPECT_EQ(virtual_time_text(1'200'000), "1.2 ms");
  EXPECT_EQ(virtual_time_text(30'250'000'000), "30.25 s");
  EXPECT_EQ(virtual_time_text(1'801'000'000'000), "1,801 s");
}

}  // namespace
}  // namespace holdfast::sim
