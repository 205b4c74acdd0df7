// What a stage, a transfer and their sums are: the counts by themselves.
#include "holdfast/core/stats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "stats_words.hpp"

namespace holdfast {
namespace {

using testing::ElementsAre;

TEST(Stats, OneOperationCountsOnceInAStageHoweverOftenItComesBackThere) {
  Stats spent;
  spent.spend(Stage::put_wait, 3 * kSecond, false);
  spent.spend(Stage::put_wait, 4 * kSecond, true);
  spent.spend(Stage::put_wait, 5 * kSecond, true);
  EXPECT_THAT(stages_in(spent), ElementsAre("put_wait 1, 1 failed, 12 s"));
}

// Every field of one value differs from every other's.
Stats numbered(std::uint64_t from) {
  Stats stats;
  for (StageStats& stage : stats.stages) {
    stage = {from, from + 1, static_cast<Nanos>(from + 2)};
    from += 3;
  }
  stats.to_host = {from, from + 1, static_cast<Nanos>(from + 2)};
  stats.to_device = {from + 3, from + 4, static_cast<Nanos>(from + 5)};
  from += 6;
  for (const Counter& counter : counters()) stats.*counter.value = from++;
  stats.unsettled_keys = {from, from + 1};
  stats.quarantined_plans = {from + 2, from + 3};
  stats.accounted_bytes = from + 4;
  return stats;
}

TEST(Stats, AddUpFieldByFieldAndOfPeaksTheLargestStays) {
  const Stats one = numbered(1);
  const Stats other = numbered(1000);
  Stats sum = one;
  sum += other;
  for (std::size_t i = 0; i < kStageCount; ++i) {
    EXPECT_EQ(sum.stages[i].operations, one.stages[i].operations + other.stages[i].operations);
    EXPECT_EQ(sum.stages[i].failures, one.stages[i].failures + other.stages[i].failures);
    EXPECT_EQ(sum.stages[i].time_ns, one.stages[i].time_ns + other.stages[i].time_ns);
  }
  for (const auto transfers : {&Stats::to_host, &Stats::to_device}) {
    EXPECT_EQ((sum.*transfers).operations, (one.*transfers).operations + (other.*transfers).operations);
    EXPECT_EQ((sum.*transfers).bytes, (one.*transfers).bytes + (other.*transfers).bytes);
    EXPECT_EQ((sum.*transfers).time_ns, (one.*transfers).time_ns + (other.*transfers).time_ns);
  }
  for (const Counter& counter : counters()) {
    EXPECT_EQ(sum.*counter.value, one.*counter.value + other.*counter.value) << counter.name;
  }
  for (const auto length : {&Stats::unsettled_keys, &Stats::quarantined_plans}) {
    EXPECT_EQ((sum.*length).now, (one.*length).now + (other.*length).now);
    EXPECT_EQ((sum.*length).peak, (other.*length).peak);
  }
  EXPECT_EQ(sum.accounted_bytes, one.accounted_bytes + other.accounted_bytes);
  Stats reversed = other;
  reversed += one;
  EXPECT_EQ(reversed, sum);
}

// So that no counter is left out of the sums, the reports and the metrics.
TEST(Stats, EveryCounterIsListedOnce) {
  constexpr std::size_t kOthers =
      sizeof(Stats::stages) + 2 * sizeof(TransferStats) + 2 * sizeof(ListLength) + sizeof(Stats::accounted_bytes);
  EXPECT_EQ(kOthers + counters().size() * sizeof(std::uint64_t), sizeof(Stats));
  Stats stats;
  for (const Counter& counter : counters()) ++(stats.*counter.value);
  for (const Counter& counter : counters()) EXPECT_EQ(stats.*counter.value, 1U) << counter.name;
}

TEST(Stats, ARateIsToldOnlyWhereTimePassed) {
  EXPECT_FALSE(gib_per_second({1, 1 << 30, 0}).has_value());
  EXPECT_DOUBLE_EQ(*gib_per_second({1, 3ULL << 30, 2 * kSecond}), 1.5);
}

TEST(TransferMeter, AnOperationLastsFromItsFirstSubmissionToItsLastLanding) {
  TransferMeter meter;
  EXPECT_EQ(meter.total(), TransferStats{});
  meter.arrived(0, 1, 99);  // nothing was submitted
  EXPECT_EQ(meter.total(), TransferStats{});
  meter.arrived(100, 20, 50);
  meter.arrived(200, 10, 30);
  meter.arrived(0, 1, 99);
  EXPECT_EQ(meter.total(), (TransferStats{1, 300, 40}));
}

}  // namespace
}  // namespace holdfast
