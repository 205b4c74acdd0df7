// What the command line and the environment may say, and what each wrong word is told.
#include "holdfast/sim/arguments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>

namespace holdfast::sim {
namespace {

using ::testing::HasSubstr;

template <class T>
void expect_refused(const Result<T>& result, const std::string& words) {
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().is(Errc::invalid_argument));
  EXPECT_THAT(result.error().detail, HasSubstr(words));
}

Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

TEST(Seeds, AreARangeOrACount) {
  EXPECT_EQ(parse_seeds("--seeds", "17-40").value(), (SeedRange{17, 40}));
  EXPECT_EQ(parse_seeds("--seeds", "100").value(), (SeedRange{1, 100}));
  EXPECT_EQ(parse_seeds("--seeds", "5-5").value().count(), 1U);
}

TEST(Seeds, CountFromOneAndGoUp) {
  for (const char* text : {"", "0", "0-9", "x", "1-", "-5", "1-2-3", "1.5", " 1", "99999999999999999999"}) {
    expect_refused(parse_seeds("--seeds", text), "wants seeds");
  }
  expect_refused(parse_seeds("--seeds", "9-3"), "say 3-9");
}

TEST(Duration, HasAUnit) {
  EXPECT_EQ(parse_duration("--t", "250ms").value(), 250 * kMillisecond);
  EXPECT_EQ(parse_duration("--t", "1.5s").value(), 1500 * kMillisecond);
  EXPECT_EQ(parse_duration("--t", "10m").value(), 10 * kMinute);
  EXPECT_EQ(parse_duration("--t", "2h").value(), 120 * kMinute);
  for (const char* text : {"", "10", "s", "-1s", "0s", "1e3s", "1.2.3s", "10 s", "10d", "99999999999h"}) {
    expect_refused(parse_duration("--t", text), "with its unit");
  }
}

TEST(Share, IsAFractionAPercentageOrAWhole) {
  EXPECT_EQ(parse_share("--s", "1/20").value(), (Share{1, 20}));
  EXPECT_EQ(parse_share("--s", "5%").value(), (Share{5000, 100'000}));
  EXPECT_EQ(parse_share("--s", "0").value(), (Share{0, 1}));
  EXPECT_EQ(parse_share("--s", "1").value(), (Share{1, 1}));
  for (const char* text : {"", "2", "3/2", "1/0", "101%", "%", "a/b", "-1/2"}) {
    expect_refused(parse_share("--s", text), "a share");
  }
}

TEST(CapacityArgument, IsBytesOrAShareOfTheFootprint) {
  EXPECT_EQ(parse_capacity("--c", "1048576").value().bytes, 1ULL << 20);
  EXPECT_EQ(parse_capacity("--c", "10GiB").value().bytes, 10ULL << 30);
  EXPECT_EQ(parse_capacity("--c", "0.5KiB").value().bytes, 512U);
  EXPECT_EQ(parse_capacity("--c", "25%").value().share.value(), (Share{25'000, 100'000}));
  for (const char* text : {"", "0", "0%", "10GB", "GiB", "-1", "1e9", "101%"}) {
    expect_refused(parse_capacity("--c", text), "more than 0");
  }
}

TEST(ShardArgument, CountsFromOne) {
  EXPECT_EQ(parse_shard("--shard", "2/8").value().index, 2U);
  EXPECT_EQ(parse_shard("--shard", "8/8").value().count, 8U);
  expect_refused(parse_shard("--shard", "0/8"), "from 1 to N");
  expect_refused(parse_shard("--shard", "9/8"), "from 1 to N");
  for (const char* text : {"", "2", "/", "2/", "a/b"}) expect_refused(parse_shard("--shard", text), "I/N");
}

TEST(ShardEnvironment, IsAllOfItWhenNobodySaysAnything) {
  const Shard shard = shard_from_environment(environment_of({})).value();
  EXPECT_EQ(shard.index, 1U);
  EXPECT_EQ(shard.count, 1U);
}

TEST(ShardEnvironment, IsReadFromEachBatchSystem) {
  const std::vector<std::map<std::string, std::string>> environments{
      {{"SLURM_ARRAY_TASK_ID", "12"}, {"SLURM_ARRAY_TASK_COUNT", "8"}, {"SLURM_ARRAY_TASK_MIN", "10"}},
      {{"SLURM_ARRAY_TASK_ID", "14"},
       {"SLURM_ARRAY_TASK_COUNT", "8"},
       {"SLURM_ARRAY_TASK_MIN", "10"},
       {"SLURM_ARRAY_TASK_STEP", "2"}},
      {{"JOB_COMPLETION_INDEX", "2"}, {"JOB_COMPLETIONS", "8"}},
      {{"TEST_SHARD_INDEX", "2"}, {"TEST_TOTAL_SHARDS", "8"}},
      {{"GTEST_SHARD_INDEX", "2"}, {"GTEST_TOTAL_SHARDS", "8"}}};
  for (const auto& environment : environments) {
    const auto shard = shard_from_environment(environment_of(environment));
    ASSERT_TRUE(shard) << to_string(shard.error());
    EXPECT_EQ(shard->index, 3U) << shard->from;
    EXPECT_EQ(shard->count, 8U) << shard->from;
  }
}

TEST(ShardEnvironment, ContradictionsAreRefusedWithARemedy) {
  const std::vector<std::map<std::string, std::string>> environments{
      {{"JOB_COMPLETION_INDEX", "2"}},
      {{"TEST_SHARD_INDEX", "8"}, {"TEST_TOTAL_SHARDS", "8"}},
      {{"TEST_SHARD_INDEX", "x"}, {"TEST_TOTAL_SHARDS", "8"}},
      {{"GTEST_SHARD_INDEX", "0"}, {"GTEST_TOTAL_SHARDS", "0"}},
      {{"SLURM_ARRAY_TASK_ID", "5"}, {"SLURM_ARRAY_TASK_COUNT", "8"}, {"SLURM_ARRAY_TASK_MIN", "10"}},
      {{"SLURM_ARRAY_TASK_ID", "97"}, {"SLURM_ARRAY_TASK_COUNT", "3"}, {"SLURM_ARRAY_TASK_MIN", "1"}}};
  for (const auto& environment : environments) {
    expect_refused(shard_from_environment(environment_of(environment)), "--shard I/N overrides it");
  }
}

RC_GTEST_PROP(ShardSeeds, TogetherCoverEachSeedOnce, ()) {
  const SeedRange all{*rc::gen::inRange<std::uint64_t>(1, 1000), 0};
  const std::uint64_t count = *rc::gen::inRange<std::uint64_t>(1, 500);
  const std::uint64_t shards = *rc::gen::inRange<std::uint64_t>(1, 60);
  std::uint64_t next = all.first;
  for (std::uint64_t index = 1; index <= shards; ++index) {
    const auto own = seeds_of_shard({all.first, all.first + count - 1}, Shard{index, shards, ""});
    if (!own) continue;
    RC_ASSERT(own->first == next);
    RC_ASSERT(own->count() >= 1U);
    RC_ASSERT(own->count() <= count / shards + 1);
    next = own->last + 1;
  }
  RC_ASSERT(next == all.first + count);
}

}  // namespace
}  // namespace holdfast::sim
