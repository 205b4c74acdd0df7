// What a campaign leaves behind: originals, and the smallest trace of each kind of failure.
#include "holdfast/sim/failure_traces.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "holdfast/sim/files.hpp"
#include "holdfast/sim/generator.hpp"
#include "temporary_directory.hpp"
#include "troubled_system.hpp"

namespace holdfast::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::shared_ptr<const Trace> source(std::uint64_t seed) {
  return std::make_shared<const Trace>(generate(seed, *profile_named("default")));
}

class FailureTracesTest : public ::testing::Test {
 protected:
  FailureTracesTest() { static_cast<void>(make_directory(directory_.path("failures"))); }

  // The first seeds that fail with the planted bugs.
  CampaignResult campaign(Planted planted, std::uint64_t failed) {
    options_.out = directory_.path();
    options_.source = source;
    options_.factory = system_with(planted);
    CampaignOptions campaign;
    campaign.seeds = {1, 200};
    campaign.failed_seeds_max = failed;
    campaign.recheck = {0, 1};
    auto result = run_campaign(campaign, options_.factory, source);
    EXPECT_TRUE(result) << to_string(result.error());
    return result.value_or(CampaignResult{});
  }
  FailureTraces written(const CampaignResult& result) {
    auto traces = write_failure_traces(result, options_);
    EXPECT_TRUE(traces) << to_string(traces.error());
    return traces.value_or(FailureTraces{});
  }
  Trace trace_in(const std::string& name) {
    const auto text = read_input_file(directory_.path(name), 1 << 24);
    EXPECT_TRUE(text);
    auto trace = read_trace(text.value_or(""), name);
    EXPECT_TRUE(trace);
    return trace.value_or(Trace{});
  }

  TemporaryDirectory directory_;
  FailureTracesOptions options_;
};

TEST_F(FailureTracesTest, TheFirstOfAKindIsShrunkAndServesTheOthers) {
  options_.shrink_budget_ns = kMinute;
  const CampaignResult result = campaign({Trouble::breaks_promise, Trouble::none}, 2);
  ASSERT_THAT(result.failures, SizeIs(2));
  const std::uint64_t first = result.failures[0].seed;
  const std::uint64_t second = result.failures[1].seed;
  const FailureTraces traces = written(result);
  EXPECT_THAT(traces.written, ElementsAre(first, second));
  ASSERT_THAT(traces.shrunk, SizeIs(2));
  EXPECT_EQ(traces.shrunk.at(second).seed, first);
  const ShrunkTrace& shrunk = traces.shrunk.at(first);
  EXPECT_EQ(shrunk.trace, "failures/" + std::to_string(first) + ".min.trace.json");
  EXPECT_EQ(shrunk.steps_before, source(first)->steps.size());
  EXPECT_EQ(shrunk.steps, 5U);
  EXPECT_EQ(shrunk.stopped, "");
  EXPECT_EQ(trace_in(shrunk.trace).steps.size(), 5U);
  EXPECT_EQ(trace_in("failures/" + std::to_string(first) + ".trace.json"), *source(first));
  const std::string one = std::to_string(first);
  const std::string other = std::to_string(second);
  EXPECT_THAT(directory_.entries("failures"),
              UnorderedElementsAre(one + ".trace.json", one + ".min.trace.json", one + ".timeline.json",
                                   other + ".trace.json", other + ".timeline.json"));
  EXPECT_EQ(traces.timelines.at(second), "failures/" + other + ".timeline.json");
  ASSERT_THAT(traces.stories, SizeIs(2));
  EXPECT_EQ(traces.stories.at(second), traces.stories.at(first));
  EXPECT_EQ(traces.stories.at(first)->trace_file, shrunk.trace);
  EXPECT_EQ(traces.stories.at(first)->timeline_file, traces.timelines.at(first));
}

TEST_F(FailureTracesTest, EachKindIsShrunkByItself) {
  options_.shrink_budget_ns = kMinute;
  const CampaignResult result = campaign({Trouble::breaks_promise, Trouble::breaks_promise}, 20);
  std::set<std::size_t> steps;
  for (const auto& [seed, shrunk] : written(result).shrunk) steps.insert(shrunk.steps);
  EXPECT_THAT(steps, ElementsAre(1U, 5U));
}

TEST_F(FailureTracesTest, ACrashIsShrunkToo) {
  options_.shrink_budget_ns = kMinute;
  const CampaignResult result = campaign({Trouble::none, Trouble::aborts}, 1);
  ASSERT_THAT(result.failures, SizeIs(1));
  EXPECT_EQ(result.failures[0].kind, FailureKind::crash);
  const FailureTraces traces = written(result);
  ASSERT_THAT(traces.shrunk, SizeIs(1));
  EXPECT_EQ(traces.shrunk.begin()->second.steps, 1U);
  ASSERT_THAT(traces.stories, SizeIs(1));
  EXPECT_THAT(traces.stories.begin()->second->sentences.front(), HasSubstr("signal 6"));
}

TEST_F(FailureTracesTest, WithoutABudgetTheOriginalsTellTheStory) {
  const FailureTraces traces = written(campaign({Trouble::breaks_promise, Trouble::none}, 2));
  EXPECT_THAT(traces.written, SizeIs(2));
  EXPECT_THAT(traces.shrunk, IsEmpty());
  EXPECT_THAT(directory_.entries("failures"), SizeIs(4));
  ASSERT_THAT(traces.stories, SizeIs(2));
  EXPECT_EQ(traces.stories.begin()->second->trace_file,
            "failures/" + std::to_string(*traces.written.begin()) + ".trace.json");
}

TEST_F(FailureTracesTest, AFailureThatDoesNotComeAgainIsNotedAndLosesNothing) {
  const CampaignResult result = campaign({Trouble::breaks_promise, Trouble::none}, 1);
  options_.shrink_budget_ns = kMinute;
  options_.factory = make_production_system;
  const FailureTraces traces = written(result);
  EXPECT_THAT(traces.written, SizeIs(1));
  EXPECT_THAT(traces.shrunk, IsEmpty());
  EXPECT_THAT(traces.notes, SizeIs(1));
}

TEST(ShrunkBeside, IsNamedAfterTheOriginal) {
  EXPECT_EQ(shrunk_beside("out/failures/17.trace.json"), "out/failures/17.min.trace.json");
  EXPECT_EQ(shrunk_beside("some"), "some.min.trace.json");
}

}  // namespace
}  // namespace holdfast::sim
