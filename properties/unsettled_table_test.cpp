// Keys in doubt: what the table refuses, when it believes a removal, and what it counts as held.
#include "holdfast/core/unsettled_table.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace holdfast {
namespace {

class UnsettledTableTest : public testing::Test {
 protected:
  static constexpr Nanos kCommit = 5 * kSecond;
  static constexpr Nanos kBound = kCommit + kSettleBound;

  PutGate gate(std::vector<std::string_view> keys, Nanos now_ns) { return table.gate(keys, now_ns); }

  UnsettledTable table{UnsettledOptions{}};
  const UnsettledKey unknown{512, kCommit, false};
  const UnsettledKey leftover{512, kCommit, true};
};

TEST_F(UnsettledTableTest, APutIsRefusedUntilTheBoundOfItsLastKey) {
  table.add("a", unknown, kCommit);
  EXPECT_EQ(gate({"b"}, kCommit), PutGate::open);
  EXPECT_EQ(gate({"b", "a"}, kBound - 1), PutGate::unsettled);
  EXPECT_EQ(gate({"b", "a"}, kBound), PutGate::leftovers);
}

TEST_F(UnsettledTableTest, WhenTooManyKeysAreInDoubtNoPutBeginsButOneThatSettlesSome) {
  UnsettledOptions options;
  options.keys_max = 2;
  table = UnsettledTable(options);
  const std::vector<std::string_view> other{"b"};
  table.add("a", unknown, kCommit);
  EXPECT_EQ(table.gate(other, kCommit), PutGate::open);
  table.block("quarantined");
  EXPECT_EQ(table.gate(other, kCommit), PutGate::full);
  EXPECT_EQ(gate({"a"}, kBound), PutGate::leftovers);
  EXPECT_EQ(gate({"a"}, kBound - 1), PutGate::unsettled);
  table.unblock("quarantined");
  EXPECT_EQ(table.gate(other, kCommit), PutGate::open);
}

TEST_F(UnsettledTableTest, ItHasKeysInDoubtWhateverTheirBoundAndThoseInQuarantine) {
  table.add("a", unknown, kCommit);
  table.block("b");
  EXPECT_TRUE(table.contains_any(std::vector<std::string_view>{"x", "a"}));
  EXPECT_TRUE(table.contains_any(std::vector<std::string_view>{"b"}));
  EXPECT_FALSE(table.contains_any(std::vector<std::string_view>{"x"}));
}

TEST_F(UnsettledTableTest, ALeftoverIsDueAtOnceAndAnUnknownOutcomeAtItsBound) {
  table.add("left", leftover, kCommit);
  table.add("unknown", unknown, kCommit);
  EXPECT_EQ(table.due(kCommit, 9), std::vector<std::string>{"left"});
  EXPECT_EQ(table.due(kBound, 9), (std::vector<std::string>{"left", "unknown"}));
  EXPECT_EQ(table.due(kBound, 1), std::vector<std::string>{"left"});
}

TEST_F(UnsettledTableTest, ARemovedLeftoverIsSettled) {
  table.add("a", leftover, kCommit);
  EXPECT_TRUE(table.note_removal("a", RemovalAnswer::removed, kCommit));
  EXPECT_FALSE(table.contains("a"));
}

TEST_F(UnsettledTableTest, ARemovalBeforeTheBoundDoesNotSettleAnUnknownOutcome) {
  table.add("a", unknown, kCommit);
  EXPECT_FALSE(table.note_removal("a", RemovalAnswer::removed, kBound - 1));
  EXPECT_FALSE(table.note_removal("a", RemovalAnswer::absent, kBound - 1));
  EXPECT_TRUE(table.contains("a"));
  EXPECT_TRUE(table.note_removal("a", RemovalAnswer::removed, kBound));
}

TEST_F(UnsettledTableTest, ALeftoverThatAnswers4000IsInDoubtUntilItsBound) {
  table.add("a", leftover, kCommit);
  EXPECT_FALSE(table.note_removal("a", RemovalAnswer::absent, kCommit));
  EXPECT_TRUE(table.due(kBound - 1, 9).empty());
  EXPECT_FALSE(table.note_removal("a", RemovalAnswer::removed, kBound - 1)) << "it may have been another's removal";
  EXPECT_TRUE(table.note_removal("a", RemovalAnswer::absent, kBound));
}

TEST_F(UnsettledTableTest, AFailedRemovalIsTriedAgainLaterAndLater) {
  table.add("a", unknown, kCommit);
  Nanos now = kBound;
  for (const Nanos wait : {1, 2, 4, 8, 16, 30, 30}) {
    EXPECT_FALSE(table.note_removal("a", RemovalAnswer::failed, now));
    EXPECT_TRUE(table.due(now + wait * kSecond - 1, 9).empty()) << wait;
    now += wait * kSecond;
    EXPECT_EQ(table.due(now, 9).size(), 1U);
  }
}

TEST_F(UnsettledTableTest, AFailedRemovalOfALeftoverLeavesItInDoubt) {
  table.add("a", leftover, kCommit);
  EXPECT_FALSE(table.note_removal("a", RemovalAnswer::failed, kCommit));
  EXPECT_FALSE(table.note_removal("a", RemovalAnswer::absent, kBound - 1));
  EXPECT_TRUE(table.note_removal("a", RemovalAnswer::absent, kBound));
}

TEST_F(UnsettledTableTest, OnlyWhatIsWholeHereOfTheRightLengthAndPastItsBoundIsAdoptable) {
  table.add("a", unknown, kCommit);
  table.add("b", leftover, kCommit);
  const std::vector<std::string_view> both{"a", "b"};
  const std::vector<std::string_view> more{"a", "b", "c"};
  const std::vector<std::uint64_t> lengths{512, 512, 512};
  const std::vector<std::uint64_t> other{512, 513};
  EXPECT_TRUE(table.adoptable(both, lengths, kBound));
  EXPECT_FALSE(table.adoptable(both, lengths, kBound - 1));
  EXPECT_FALSE(table.adoptable(both, other, kBound));
  EXPECT_FALSE(table.adoptable(more, lengths, kBound));

  UnsettledKey found = unknown;
  found.ours = false;
  table.add(both.back(), found, kCommit);
  EXPECT_FALSE(table.adoptable(both, lengths, kBound)) << "its length was never on record";
}

TEST_F(UnsettledTableTest, ItTellsTheChecksumsThatItWasGiven) {
  table.add("a", {.value_bytes = 10, .checksum = 7}, 0);
  table.add("b", {.value_bytes = 10}, 0);
  const std::vector<std::string_view> keys{"a", "b", "c"};
  EXPECT_THAT(table.checksums_of(keys), testing::ElementsAre(GroupChecksum(7), std::nullopt, std::nullopt));
}

TEST_F(UnsettledTableTest, HeldBytesAreSlotsOfWhatIsHere) {
  table.add("a", unknown, kCommit);
  table.add("b", {5000, kCommit, false}, kCommit);
  EXPECT_EQ(table.held_bytes(), 4096U + 8192U);
  table.add("b", {100, kCommit, false}, kCommit);
  EXPECT_EQ(table.held_bytes(), 2U * 4096U);
  table.forget("a");
  EXPECT_TRUE(table.note_removal("b", RemovalAnswer::removed, kBound));
  EXPECT_EQ(table.held_bytes(), 0U);
}

TEST_F(UnsettledTableTest, ABlockedKeyIsRefusedUntilEveryPlanLetItGo) {
  table.block("a");
  table.block("a");
  EXPECT_EQ(gate({"a"}, kBound * 9), PutGate::unsettled);
  table.unblock("a");
  EXPECT_EQ(gate({"a"}, 0), PutGate::unsettled);
  table.unblock("a");
  EXPECT_EQ(gate({"a"}, 0), PutGate::open);
}

TEST_F(UnsettledTableTest, ALeftoverOfAPutIsRefusedToAnotherPutUntilThatOneHasEnded) {
  const std::vector<std::string_view> keys{"a"};
  table.add("a", unknown, kCommit);
  ASSERT_EQ(gate({"a"}, kBound), PutGate::leftovers);
  table.begin_put(keys);
  EXPECT_EQ(gate({"a"}, kBound), PutGate::unsettled) << "each would remove what the other has stored";
  EXPECT_EQ(gate({"b"}, kBound), PutGate::open);
  table.end_put(keys);
  EXPECT_EQ(gate({"a"}, kBound), PutGate::leftovers);
}

TEST_F(UnsettledTableTest, AKeyThatIsNotBlockedIsNotUnblocked) {
  EXPECT_DEATH(table.unblock("a"), "unblock without block");
}

TEST_F(UnsettledTableTest, ANewCommitOfAKeyStartsItsBoundAgain) {
  table.add("a", unknown, kCommit);
  table.add("a", {512, kBound, false}, kBound);
  EXPECT_EQ(gate({"a"}, kBound), PutGate::unsettled);
  EXPECT_EQ(table.due(kBound, 9).size(), 0U);
  EXPECT_EQ(table.size(), 1U);
}

}  // namespace
}  // namespace holdfast
