// Checksums of values: what a put takes, what a read compares, what becomes of what is corrupt, and what a snapshot
// keeps.
#include "holdfast/core/value_checksum.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "holdfast/core/snapshot.hpp"
#include "plan_store_fixture.hpp"
#include "session_fixture.hpp"

namespace holdfast {
namespace {

using testing::_;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::uint64_t checksum_of(const std::vector<std::string>& values) {
  std::vector<std::uint64_t> sums;
  for (const std::string& value : values) sums.push_back(checksum_of_value(std::as_bytes(std::span(value))));
  return fold_checksums(sums);
}

TEST(ValueChecksum, OrderCountAndBytesOfTheValuesAllTell) {
  const std::uint64_t sum = checksum_of({"a", "bc"});
  EXPECT_EQ(checksum_of({"a", "bc"}), sum);
  EXPECT_NE(checksum_of({"bc", "a"}), sum);
  EXPECT_NE(checksum_of({"a"}), sum);
  EXPECT_NE(checksum_of({"a", "bd"}), sum);
  EXPECT_NE(checksum_of({"ab", "c"}), sum);
}

PlanOptions with_checksums(PlanOptions options) {
  options.checksums = true;
  return options;
}

class ChecksumsInTheStoreTest : public PlanTierStoreTest {
 protected:
  ChecksumsInTheStoreTest() : PlanTierStoreTest(with_checksums(plan_options())) {}

  ReadOutcome read_expecting(const std::vector<std::string>& names, const std::vector<DeviceTensor>& targets,
                             const std::vector<GroupChecksum>& checksums) {
    const std::vector<std::string_view> keys(names.begin(), names.end());
    std::vector<std::uint64_t> value_bytes;
    std::vector<ReadCopy> copies;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      value_bytes.push_back(targets[i].bytes);
      copies.push_back({i, 0, i, 0, targets[i].bytes});
    }
    const std::vector<std::uint32_t> groups(checksums.size(),
                                            static_cast<std::uint32_t>(names.size() / checksums.size()));
    return store.restore({keys, value_bytes, groups, targets, copies, false, checksums}, stream, absorbed);
  }
};

TEST_F(PlanTierStoreTest, APutTakesNoChecksumUnlessAsked) {
  const Result<PutReceipt> receipt = put({"a"}, {tensor(512)});
  ASSERT_TRUE(receipt.has_value());
  EXPECT_EQ(receipt->checksum, std::nullopt);
}

TEST_F(ChecksumsInTheStoreTest, APutTellsTheChecksumOfWhatItsCopiesBroughtInKeyOrder) {
  // Two sizes: two plans, whose values alternate.
  const std::vector<DeviceTensor> values{tensor(512, 1), tensor(256, 2), tensor(512, 3)};
  const Result<PutReceipt> receipt = put({"a", "b", "c"}, values);
  ASSERT_TRUE(receipt.has_value());
  EXPECT_EQ(receipt->checksum, checksum_of({bytes_of(values[0]), bytes_of(values[1]), bytes_of(values[2])}));
}

TEST_F(ChecksumsInTheStoreTest, ACorruptGroupIsNamedAndNothingIsCopied) {
  std::vector<GroupChecksum> checksums;
  for (const std::vector<std::string>& names : {std::vector<std::string>{"a", "b"}, {"c", "d"}, {"e", "f"}}) {
    checksums.push_back(put(names, {tensor(512, 1), tensor(512, 2)}).value().checksum);
  }
  settle();
  ASSERT_TRUE(owner.damage("d", 511));
  std::vector<DeviceTensor> targets;
  for (std::uint8_t i = 0; i < 6; ++i) targets.push_back(tensor(512, static_cast<std::uint8_t>(100 + i)));
  const std::string before = bytes_of(targets[0]) + bytes_of(targets[3]);
  EXPECT_CALL(cuda, copy_batch(_, _, _)).Times(0);
  const ReadOutcome outcome = read_expecting({"a", "b", "c", "d", "e", "f"}, targets, checksums);
  EXPECT_EQ(outcome.verdict, ReadVerdict::corrupt);
  EXPECT_THAT(outcome.corrupt_groups, ElementsAre(1));
  EXPECT_TRUE(outcome.error.is(Errc::corrupt)) << to_string(outcome.error);
  EXPECT_THAT(outcome.error.detail, HasSubstr("1 of 3 groups are not what was put, first c"));
  EXPECT_FALSE(outcome.targets_touched);
  EXPECT_EQ(bytes_of(targets[0]) + bytes_of(targets[3]), before);
  EXPECT_TRUE(nothing_open());
}

TEST_F(ChecksumsInTheStoreTest, AGroupWithoutAKnownChecksumIsNotCompared) {
  const GroupChecksum of_b =
      put({"a"}, {tensor(512, 1)}).has_value() ? put({"b"}, {tensor(512, 2)}).value().checksum : GroupChecksum();
  settle();
  ASSERT_TRUE(owner.damage("a", 0));
  EXPECT_EQ(read_expecting({"a", "b"}, {tensor(512), tensor(512)}, {std::nullopt, of_b}).verdict,
            ReadVerdict::restored);
}

TEST_F(ChecksumsInTheStoreTest, AdoptedValuesHaveTheChecksumOfWhatWasFound) {
  const DeviceTensor value = tensor(512, 1);
  choose_codes({static_cast<std::int32_t>(CommitCode::timeout)});
  ASSERT_FALSE(put({"a"}, {value}).has_value());
  clock.advance_by(kSettleBound + kSecond);
  const Result<PutReceipt> again = put({"a"}, {value});
  ASSERT_TRUE(again.has_value()) << to_string(again.error());
  ASSERT_EQ(again->verdict, PutVerdict::adopted);
  EXPECT_EQ(again->checksum, checksum_of({bytes_of(value)}));
}

TEST_F(ChecksumsInTheStoreTest, ALeftoverThatIsNotWhatWasPutIsRemovedAndPutAnew) {
  const DeviceTensor value = tensor(512, 1);
  choose_codes({static_cast<std::int32_t>(CommitCode::timeout)});
  ASSERT_FALSE(put({"a"}, {value}).has_value());
  clock.advance_by(kSettleBound + kSecond);
  ASSERT_TRUE(owner.damage("a", 3));
  const Result<PutReceipt> again = put({"a"}, {value});
  ASSERT_TRUE(again.has_value()) << to_string(again.error());
  EXPECT_EQ(again->verdict, PutVerdict::stored);
  EXPECT_EQ(stored("a"), bytes_of(value));
  EXPECT_TRUE(
      std::any_of(absorbed.begin(), absorbed.end(), [](const Error& error) { return error.is(Errc::corrupt); }));
}

TEST_F(ChecksumsInTheStoreTest, WhatWasGivenUpAfterItHadBeenReadyIsNeverAdopted) {
  const DeviceTensor value = tensor(512, 1);
  ASSERT_TRUE(put({"a"}, {value}).has_value());
  const std::vector<std::string_view> keys{"a"};
  const std::vector<std::uint64_t> value_bytes{512};
  store.queue_removal({keys, value_bytes, clock.now_ns()});
  clock.advance_by(kSettleBound + kSecond);
  EXPECT_EQ(put({"a"}, {value}).value().verdict, PutVerdict::stored);
}

class ChecksumsOfSessionsTest : public SessionTest {
 protected:
  ChecksumsOfSessionsTest() : SessionTest(with_checksums(plan_options())) {
    Session cold = open(spec);
    generate_all(cold, actions);
    cold_contents = cold.engine->contents();
    settle();
  }
  std::string value_key(std::size_t chunks, std::string_view which) {
    const std::vector<std::string> path(actions.begin(), actions.begin() + static_cast<std::ptrdiff_t>(chunks));
    return to_hex(node(spec, path)->key()) + std::string(which);
  }

  const WorldSpec spec = world_spec(kFullRing);
  const std::vector<std::string> actions{"0", "1", "2"};
  decltype(std::declval<TestEngine>().contents()) cold_contents;
};

TEST_F(ChecksumsOfSessionsTest, ACorruptChunkIsWithdrawnAloneAndTheShorterPrefixIsUsed) {
  ASSERT_TRUE(owner.damage(value_key(3, ":kv:L1:v"), 3));
  Session warm = open(spec);
  const Result<ResumeReceipt> receipt = resume(warm, actions);
  ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
  EXPECT_EQ(receipt->matched_chunks, 2U);
  EXPECT_EQ(receipt->retries, 1U);
  EXPECT_TRUE(ready(spec, {"0"}));
  EXPECT_TRUE(ready(spec, {"0", "1"}));
  EXPECT_FALSE(ready(spec, actions));
  EXPECT_TRUE(node(spec, actions)->skeleton().ready);
  EXPECT_TRUE(nothing_open());
}

TEST_F(ChecksumsOfSessionsTest, ACorruptLatentIsWithdrawnAloneAndItsValuesStay) {
  ASSERT_TRUE(owner.damage(value_key(2, ":lat"), 3));
  Session warm = open(spec);
  const Result<ResumeReceipt> receipt = resume(warm, actions);
  ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
  EXPECT_EQ(receipt->matched_chunks, 1U);
  EXPECT_FALSE(node(spec, {"0", "1"})->skeleton().ready);
  EXPECT_TRUE(node(spec, actions)->skeleton().ready);
  EXPECT_TRUE(ready(spec, {"0", "1"}));
}

TEST_F(ChecksumsOfSessionsTest, CorruptValuesAreRemovedAndNeverAdopted) {
  ASSERT_TRUE(owner.damage(value_key(3, ":kv:L0:k"), 0));
  Session warm = open(spec);
  ASSERT_EQ(resume(warm, actions).value().matched_chunks, 2U);
  clock.advance_by(kSettleBound + kSecond);
  const Result<IngestReceipt> again = generate(warm, actions.back());
  ASSERT_TRUE(again.has_value()) << to_string(again.error());
  EXPECT_EQ(again->kv, IngestVerdict::stored);
  Session third = open(spec);
  ASSERT_EQ(resume(third, actions).value().matched_chunks, 3U);
  EXPECT_EQ(third.engine->contents(), cold_contents);
}

TEST_F(ChecksumsOfSessionsTest, ReadsThatFindSomethingCorruptAreCountedApart) {
  ASSERT_TRUE(owner.damage(value_key(3, ":kv:L1:v"), 3));
  const Stats before = manager.stats();
  Session warm = open(spec);
  ASSERT_EQ(resume(warm, actions).value().matched_chunks, 2U);
  const Stats after = manager.stats();
  EXPECT_EQ(after.reads_corrupt - before.reads_corrupt, 1U);
  EXPECT_EQ(after.withdrawn_blobs - before.withdrawn_blobs, 1U);
  EXPECT_EQ(after.reads_incomplete + after.reads_failed, before.reads_incomplete + before.reads_failed);
}

TEST_F(ChecksumsOfSessionsTest, ThePumpRemovesWhatIsCorrupt) {
  const std::string key = value_key(3, ":kv:L0:k");
  ASSERT_TRUE(owner.damage(key, 0));
  Session warm = open(spec);
  ASSERT_EQ(resume(warm, actions).value().matched_chunks, 2U);
  clock.advance_by(kSettleBound + kSecond);
  std::vector<Error> errors;
  manager.pump(errors);
  EXPECT_THAT(errors, IsEmpty());
  EXPECT_EQ(stored(key), "");
  EXPECT_EQ(manager.counts().unsettled, 0U);
}

constexpr std::uint64_t kLargeChecksum = std::numeric_limits<std::uint64_t>::max();

std::string snapshot_with(const GroupChecksum& of_blob, const GroupChecksum& of_skeleton) {
  Forest forest({});
  Node& node = *forest.get_or_create(*forest.touch_namespace({}).root(), "1");
  forest.set_blob_ready(node, {.nbytes = 8, .slot_bytes = 4096, .shape = {1}, .checksum = of_blob});
  forest.set_skeleton_ready(node, {.nbytes = 4, .checksum = of_skeleton});
  return encode_snapshot(take_snapshot(forest));
}

TEST(ChecksumsInSnapshots, AreThereAgain) {
  Forest restored({});
  restore_snapshot(decode_snapshot(snapshot_with(kLargeChecksum, 7)).value(), 0, restored);
  const Node& node = *restored.namespaces().front()->root()->first_child();
  EXPECT_EQ(node.blob().checksum(), kLargeChecksum);
  EXPECT_EQ(node.skeleton().checksum(), 7U);
}

TEST(ChecksumsInSnapshots, AreWrittenAsTheFormatSays) {
  const std::string bytes = snapshot_with(kLargeChecksum, std::nullopt);
  EXPECT_THAT(bytes, HasSubstr("\"version\":2,"));
  EXPECT_THAT(bytes, HasSubstr("\"kv\":{\"bytes\":8,\"layers\":1,\"slot_bytes\":4096,\"xxh3\":18446744073709551615},"
                               "\"latent\":{\"bytes\":4},"));
}

TEST(ChecksumsInSnapshots, AFileWithoutAnyIsOfTheFirstVersionAndStillLoads) {
  const std::string bytes = snapshot_with(std::nullopt, std::nullopt);
  EXPECT_THAT(bytes, HasSubstr("\"version\":1,"));
  const Snapshot snapshot = decode_snapshot(bytes).value();
  EXPECT_EQ(snapshot.worlds.front().nodes.front().blob.checksum, std::nullopt);
}

TEST(ChecksumsInSnapshots, AVersionThatTheRestIsNotOfIsRefused) {
  const auto refused = [](std::string bytes, std::string_view version, std::string_view other) {
    bytes.replace(bytes.find(version), version.size(), other);
    const Result<Snapshot> snapshot = decode_snapshot(bytes);
    return snapshot ? "" : snapshot.error().detail;
  };
  EXPECT_THAT(refused(snapshot_with(1, {}), "\"version\":2", "\"version\":1"),
              HasSubstr("with checksums or scales has 2"));
  EXPECT_THAT(refused(snapshot_with({}, {}), "\"version\":1", "\"version\":2"),
              HasSubstr("without checksums and scales has 1"));
}

}  // namespace
}  // namespace holdfast
