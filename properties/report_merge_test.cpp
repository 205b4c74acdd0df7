// Reports are read back whole, merged only where they belong together, and compared by what changed.
#include "holdfast/sim/report_merge.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "hasty_system.hpp"
#include "holdfast/sim/failure_traces.hpp"
#include "holdfast/sim/files.hpp"
#include "holdfast/sim/generator.hpp"
#include "holdfast/sim/report_compare.hpp"
#include "holdfast/sim/report_read.hpp"
#include "temporary_directory.hpp"

namespace holdfast::sim {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class ReportMerge : public ::testing::Test {
 protected:
  // Each seed goes wrong in a way of its own.
  Report broken(SeedRange seeds) {
    static_cast<void>(make_directory(directory_.path("failures")));
    FailureTracesOptions options;
    options.out = directory_.path();
    options.factory = hasty_system();
    options.source = [](std::uint64_t seed) {
      return std::make_shared<const Trace>(made_hasty(generate(seed, *profile_named("default")), Haste(1 + seed % 6)));
    };
    CampaignOptions campaign;
    campaign.seeds = seeds;
    campaign.failed_seeds_max = 0;
    Report report;
    report.command = fmt::format("holdfast run --seeds {}-{} --jobs 2", seeds.first, seeds.last);
    report.profile = "default";
    report.runtimes = probe_fake_backend().runtimes;
    report.seeds = seeds;
    report.result = run_campaign(campaign, options.factory, options.source).value();
    const FailureTraces traces = write_failure_traces(report.result, options).value();
    report.violations = list_violations(
        report.result,
        {.trace = [](const SeedFailure& failure) { return fmt::format("failures/{}.trace.json", failure.seed); },
         .reproduce = [](const SeedFailure& failure) { return fmt::format("holdfast replay {}", failure.seed); },
         .timeline = [&](const SeedFailure& failure) { return traces.timelines.at(failure.seed); },
         .story = [&](const SeedFailure& failure) -> std::shared_ptr<const FailureStory> {
           const auto story = traces.stories.find(failure.seed);
           return story == traces.stories.end() ? nullptr : story->second;
         }});
    return report;
  }
  // Of one seed, in two shards or more; nothing was run.
  static Report shard(std::uint64_t index, std::uint64_t count, SeedRange all) {
    Report report;
    report.command = "holdfast run --seeds 1-2 --profile default";
    report.profile = "default";
    report.shard = {index, count, {}};
    report.seeds_of_all = all;
    report.seeds = seeds_of_shard(all, report.shard).value();
    report.result.seeds_run = report.seeds.count();
    return report;
  }
  std::string written(const std::string& text) {
    const std::string file = directory_.path("report.json");
    EXPECT_TRUE(write_output_file(file, text));
    return file;
  }
  static std::string why_not(std::vector<Report> reports) {
    const auto merged = merge_reports(std::move(reports));
    return merged ? "merged" : to_string(merged.error());
  }

  TemporaryDirectory directory_;
};

TEST_F(ReportMerge, AReportIsReadBackAsItWasWritten) {
  const Report report = broken({1, 40});
  ASSERT_THAT(report.violations, Not(IsEmpty()));
  const std::string text = report_json(report);
  const auto again = read_report(written(text), "");
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(report_json(*again), text);
  EXPECT_EQ(report_html(*again), report_html(report));
}

TEST_F(ReportMerge, WhatLiesBesideAReportIsStillFoundFromElsewhere) {
  const auto read = read_report(written(report_json(broken({1, 12}))), "shard-1-of-2/");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->violations.front().trace.find("shard-1-of-2/failures/"), 0U);
  EXPECT_EQ(read->violations.front().timeline.find("shard-1-of-2/failures/"), 0U);
  EXPECT_THAT(report_html(*read), HasSubstr("&quot;holdfast-trace/1&quot;"));
}

TEST_F(ReportMerge, WhatIsNoReportIsRefused) {
  const json whole = json::parse(report_json(broken({1, 12})));
  const auto refused = [&](const json& damaged) { return !read_report(written(damaged.dump()), ""); };
  EXPECT_FALSE(refused(whole));
  for (const auto& [name, value] : whole.items()) {
    if (name == "version" || name == "fault_matrix" || name == "rare_marks") continue;
    json without = whole;
    without.erase(name);
    EXPECT_TRUE(refused(without)) << name;
  }
  json outside = whole;
  outside["causes"][0]["swim_lanes"]["lanes"][0]["marks"][0]["column"] = 5000;
  EXPECT_TRUE(refused(outside));
  json backwards = whole;
  backwards["seeds"]["last"] = 0;
  EXPECT_TRUE(refused(backwards));
  json negative = whole;
  negative["wall_s"] = -1;
  EXPECT_TRUE(refused(negative));
}

TEST_F(ReportMerge, PartsAddUpToTheWhole) {
  const Report whole = broken({1, 40});
  auto merged = merge_reports({broken({21, 40}), broken({1, 20})});
  ASSERT_TRUE(merged) << to_string(merged.error());
  merged->result.wall_ns = whole.result.wall_ns;
  merged->result.slowest = whole.result.slowest;
  for (NotableCase& notable : merged->result.longest) {
    notable.wall_ns = std::ranges::find(whole.result.longest, notable.seed, &NotableCase::seed)->wall_ns;
  }
  // A cause's story is that of its first seed, in both.
  EXPECT_EQ(report_json(*merged), report_json(whole));
}

TEST_F(ReportMerge, AMissingShardIsNamed) {
  const SeedRange all{1, 10};
  EXPECT_EQ(why_not({shard(1, 3, all), shard(2, 3, all), shard(3, 3, all)}), "merged");
  EXPECT_THAT(why_not({shard(1, 3, all), shard(3, 3, all)}), HasSubstr("shard 2 of 3 is missing"));
  EXPECT_THAT(why_not({shard(2, 3, all)}), HasSubstr("shard 1, 3 of 3 is missing"));
  // A shard that has no seeds writes nothing.
  EXPECT_EQ(why_not({shard(1, 3, {1, 2}), shard(2, 3, {1, 2})}), "merged");
}

TEST_F(ReportMerge, WhatDoesNotBelongTogetherIsRefused) {
  const SeedRange all{1, 10};
  EXPECT_THAT(why_not({shard(1, 2, all), shard(1, 2, all), shard(2, 2, all)}), HasSubstr("count twice"));
  EXPECT_THAT(why_not({shard(1, 2, all), shard(2, 2, {1, 30})}), HasSubstr("different runs"));
  Report other = shard(2, 2, all);
  other.profile = "swarm";
  EXPECT_THAT(why_not({shard(1, 2, all), other}), HasSubstr("different profiles: default and swarm"));
  other = shard(2, 2, all);
  other.disabled = {Invariant::exact_bytes};
  EXPECT_THAT(why_not({shard(1, 2, all), other}), HasSubstr("switched off"));
}

TEST_F(ReportMerge, TheCommandOfAllRunsAllSeeds) {
  EXPECT_EQ(merge_reports({shard(1, 2, {1, 10}), shard(2, 2, {1, 10})}).value().command,
            "holdfast run --seeds 1-10 --profile default");
}

TEST_F(ReportMerge, AComparisonSaysWhatChanged) {
  const auto failure = [](std::uint64_t seed, Invariant invariant) {
    return SeedFailure{seed, FailureKind::violation, {{invariant, 4, "remove", "", 5, "evict: key"}}, {}, true};
  };
  Report before = shard(1, 1, {1, 10});
  Report now = before;
  before.result.failures = {failure(1, Invariant::exact_bytes), failure(2, Invariant::one_terminal)};
  now.result.failures = {failure(1, Invariant::exact_bytes), failure(3, Invariant::pinned_stays),
                         failure(4, Invariant::pinned_stays)};
  before.result.checked[0] = 5;
  before.result.marks.reach(Mark::full_hit);
  now.result.faults.cells[0] = 1;
  before.result.runtime_calls = now.result.runtime_calls = 1000;
  before.result.wall_ns = kSecond;
  now.result.wall_ns = 2 * kSecond;
  const ReportComparison comparison = compare_reports(before, now);
  ASSERT_THAT(comparison.broken_anew, SizeIs(1));
  EXPECT_EQ(comparison.broken_anew.front(), "pinned-stays at remove, evict: key (seed 3 and 1 more)");
  ASSERT_THAT(comparison.broken_no_more, SizeIs(1));
  EXPECT_THAT(comparison.broken_no_more.front(), HasSubstr("one-terminal"));
  EXPECT_THAT(comparison.coverage_lost, SizeIs(2));
  EXPECT_THAT(comparison.coverage_lost, Contains("mark full hit"));
  EXPECT_THAT(comparison.coverage_gained, SizeIs(1));
  EXPECT_TRUE(comparison.same_log);
  EXPECT_THAT(comparison_text(comparison), HasSubstr("speed: 500 calls/s, was 1,000 (-50.0%)"));
  now.result.log_hash = 7;
  EXPECT_FALSE(compare_reports(before, now).same_log);
  now.profile = "swarm";
  EXPECT_THAT(compare_reports(before, now).notes, SizeIs(1));
}

}  // namespace
}  // namespace holdfast::sim
