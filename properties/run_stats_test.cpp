// What a store says of itself, through a run and a campaign: it agrees with what the harness saw, adds up, and is
// compared when a run is repeated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "forwarding_system.hpp"
#include "holdfast/sim/campaign.hpp"
#include "holdfast/sim/generator.hpp"
#include "holdfast/sim/report.hpp"
#include "holdfast/sim/scenarios.hpp"
#include "stats_words.hpp"

namespace holdfast::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

RunResult run_of(const Trace& trace) {
  Executor executor(make_production_system);
  return executor.run(trace);
}

TEST(RunStats, OfTheAcceptanceScenarioAreKnownInAdvance) {
  const RunResult result = run_of(*scenario_named("abcd"));
  const Stats& stats = result.stats;
  // A writes three chunks, C one; B hits three, C two; D finds all of its chunks ready.
  EXPECT_EQ(stats.hit_chunks, 5U);
  EXPECT_EQ(stats.puts_stored, 8U) << "of four chunks, a latent and the values";
  EXPECT_EQ(stats.reads_restored, 4U) << "of two resumes, the latents and the window";
  EXPECT_EQ(stats.to_host, (TransferStats{8, result.bytes_to_host, 0}));
  EXPECT_EQ(stats.to_device, (TransferStats{4, result.bytes_to_device, 0}));
  EXPECT_EQ(stats.at(Stage::publish).operations, 8U + 2U);
  EXPECT_EQ(stats.quarantined_plans, ListLength{});
}

// The harness counts hits and bytes by itself, from what it asked for and got.
TEST(RunStats, AgreeWithTheHarnessWhereNothingWentWrong) {
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const RunResult result = run_of(generate(seed, *profile_named("calm")));
    EXPECT_EQ(result.stats.hit_chunks, result.chunks_hit) << seed;
    if (result.stats.reads_incomplete + result.stats.reads_failed + result.stats.puts_failed > 0) continue;
    ++compared;
    EXPECT_EQ(result.stats.to_host.bytes, result.bytes_to_host) << seed;
    EXPECT_EQ(result.stats.to_device.bytes, result.bytes_to_device) << seed;
  }
  EXPECT_GE(compared, 30U);
}

TEST(RunStats, AreThoseOfAllIncarnations) {
  Trace trace = *scenario_named("abcd");
  const Stats before = run_of(trace).stats;
  Step restart;
  restart.kind = StepKind::restart;
  for (const Step& step : trace.steps) restart.id = std::max(restart.id, step.id + 1);
  trace.steps.push_back(restart);
  const Stats after = run_of(trace).stats;
  ASSERT_GT(before.accounted_bytes, 0U);
  EXPECT_EQ(after.accounted_bytes, 0U) << "what a dead store accounted for is not its successor's";
  EXPECT_EQ(after.puts_stored, before.puts_stored);
  EXPECT_EQ(after.hit_chunks, before.hit_chunks);
}

// Says more of itself than it did.
class Boaster final : public ForwardingSystem {
 public:
  Boaster(std::unique_ptr<SystemUnderTest> inner, const Stats& boast)
      : ForwardingSystem(std::move(inner)), boast_(boast) {}
  [[nodiscard]] Inspection inspect() const override {
    Inspection inspection = ForwardingSystem::inspect();
    inspection.stats += boast_;
    return inspection;
  }

 private:
  Stats boast_;
};

TEST(RunStats, OfACampaignAreTheSumOfItsRuns) {
  CampaignOptions options;
  options.seeds = {1, 40};
  options.jobs = 2;
  options.recheck = {0, 1};
  options.keep_results = true;
  const auto source = [](std::uint64_t seed) {
    return std::make_shared<const Trace>(generate(seed, *profile_named("default")));
  };
  // As if something were left over at the end.
  const SystemFactory factory = [](Ports& ports, ClaimListener& listener, const SystemOptions& system) {
    Stats boast;
    boast.unsettled_keys.now = 2;
    boast.quarantined_plans.now = 3;
    return std::make_unique<Boaster>(make_production_system(ports, listener, system), boast);
  };
  const auto campaign = run_campaign(options, factory, source);
  ASSERT_TRUE(campaign);
  ASSERT_THAT(campaign->results, SizeIs(40));
  Stats sum;
  for (const SeedResult& seed : campaign->results) {
    Executor executor(factory);
    const RunResult alone = executor.run(*source(seed.seed));
    EXPECT_EQ(seed.run.stats, alone.stats) << seed.seed;
    sum += alone.stats;
  }
  EXPECT_EQ(campaign->stats, sum);
  for (std::size_t i = 0; i < kStageCount; ++i) {
    const auto stage = static_cast<Stage>(i);
    EXPECT_GT(sum.at(stage).operations, 0U) << name_of(stage);
    EXPECT_GE(sum.at(stage).operations, sum.at(stage).failures) << name_of(stage);
    EXPECT_GE(sum.at(stage).time_ns, 0) << name_of(stage);
  }
}

TEST(RunStats, ThatDifferWhenARunIsRepeatedAreADivergence) {
  CampaignOptions options;
  options.seeds = {1, 1};
  options.recheck = {1, 1};
  const SystemFactory factory = [](Ports& ports, ClaimListener& listener, const SystemOptions& system) {
    Stats boast;
    boast.hit_chunks = system.hash_seed;  // another one in every process
    return std::make_unique<Boaster>(make_production_system(ports, listener, system), boast);
  };
  const auto result = run_campaign(options, factory, [](std::uint64_t seed) {
    return std::make_shared<const Trace>(generate(seed, *profile_named("calm")));
  });
  ASSERT_TRUE(result);
  ASSERT_THAT(result->failures, SizeIs(1));
  EXPECT_EQ(result->failures.front().kind, FailureKind::divergence);
  EXPECT_THAT(result->failures.front().message, HasSubstr("what the store says of itself"));
}

// ---- In the reports.

Report report_with_stats() {
  Report report;
  report.command = "holdfast run";
  report.seeds = {1, 1};
  report.result.seeds_run = 1;
  Stats& stats = report.result.stats;
  stats.at(Stage::put_copy) = {7, 2, 1'500 * kMillisecond};
  stats.at(Stage::read_copy) = {1, 0, 0};
  stats.to_host = {7, 3ULL << 30, 2 * kSecond};
  stats.to_device = {1, 4096, 0};
  std::uint64_t next = 11;
  for (const Counter& counter : counters()) stats.*counter.value = next++;
  stats.unsettled_keys = {1, 12};
  stats.quarantined_plans = {0, 3};
  stats.accounted_bytes = 8192;
  return report;
}

TEST(StatsReport, TheJsonHasEveryStageCounterDirectionAndList) {
  const auto store = nlohmann::json::parse(report_json(report_with_stats()))["store"];
  EXPECT_THAT(store["stages"], SizeIs(kStageCount));
  EXPECT_EQ(store["stages"]["put_copy"]["operations"], 7);
  EXPECT_EQ(store["stages"]["put_copy"]["failures"], 2);
  EXPECT_EQ(store["stages"]["put_copy"]["virtual_s"], 1.5);
  EXPECT_EQ(store["transfers"]["to_host"]["bytes"], 3ULL << 30);
  EXPECT_EQ(store["transfers"]["to_host"]["virtual_s"], 2.0);
  EXPECT_EQ(store["transfers"]["to_host"]["gib_per_s"], 1.5);
  EXPECT_EQ(store["transfers"]["to_device"]["bytes"], 4096);
  EXPECT_TRUE(store["transfers"]["to_device"]["gib_per_s"].is_null()) << "no time passed";
  EXPECT_THAT(store["counters"], SizeIs(counters().size()));
  EXPECT_EQ(store["counters"]["puts_stored"], 11);
  EXPECT_EQ(store["counters"]["settled_keys"], 25);
  EXPECT_EQ(store["unsettled_keys"]["at_end"], 1);
  EXPECT_EQ(store["unsettled_keys"]["peak"], 12);
  EXPECT_EQ(store["quarantined_plans"]["peak"], 3);
  EXPECT_EQ(store["accounted_bytes_at_end"], 8192);
}

TEST(StatsReport, TheTextHasTheStagesThatSomethingCameTo) {
  Report report = report_with_stats();
  const std::string text = summary_text(report, false);
  EXPECT_THAT(text, HasSubstr("put_copy            7       2        1.50 s  3.0 GiB, 1.5 GiB/s"));
  EXPECT_THAT(text, HasSubstr("read_copy           1       0        0.00 s  4.0 KiB"));
  EXPECT_THAT(text, Not(HasSubstr("read_end")));
  EXPECT_THAT(text, HasSubstr(R"(
puts               11 stored, 12 adopted, 13 elsewhere, 14 failed, 15 without room
reads              16 restored, 17 incomplete, 18 corrupt, 19 failed
chunks hit         20
blobs evicted      21, 22 B
withdrawn          23 blobs, 24 latents
unsettled keys     12 at most, 1 at the end; 25 settled
quarantined plans  3 at most, 0 at the end
)"));
  report.workload = WorkloadFigures{};
  EXPECT_THAT(summary_text(report, false), HasSubstr("3.0 GiB, 1.5 GiB/s"));
  EXPECT_THAT(report_html(report), HasSubstr("3.0 GiB, 1.5 GiB/s"));
  report.sweep.emplace();
  EXPECT_EQ(store_text(report), "") << "a sweep runs each trace many times";
  report.sweep.reset();
  report.result.stats = {};
  EXPECT_THAT(summary_text(report, false), Not(HasSubstr("operations")));
  EXPECT_THAT(report_html(report), Not(HasSubstr("<h2>Store</h2>")));
}

}  // namespace
}  // namespace holdfast::sim
