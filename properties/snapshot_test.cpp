#include "holdfast/core/snapshot.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/hash.hpp"

namespace holdfast {
namespace {

using testing::_;
using testing::HasSubstr;
using testing::InSequence;
using testing::Return;

constexpr BlobRecord kSavedBlob{.nbytes = 800, .slot_bytes = 32768, .shape = {4}, .committed_at_ns = 5};
constexpr SkeletonRecord kSavedSkeleton{.nbytes = 30, .committed_at_ns = 6};

NodeKey root_numbered(std::uint8_t number) {
  NodeKey key;
  key.digest[0] = number;
  return key;
}

// Two worlds: a chain of three with a fork, and one node with a latent only.
void fill(Forest& forest) {
  Namespace& first = forest.touch_namespace({.root = root_numbered(2), .sink_chunks = 1});
  Node* a = forest.get_or_create(*first.root(), "1");
  Node* b = forest.get_or_create(*a, "\"\xc3\xa9\"");
  Node* c = forest.get_or_create(*b, "3");
  Node* fork = forest.get_or_create(*a, "4");
  for (Node* node : {a, b, c, fork}) {
    forest.set_skeleton_ready(*node, kSavedSkeleton);
    forest.set_blob_ready(*node, kSavedBlob);
  }
  forest.withdraw_blob(*b);
  Namespace& second = forest.touch_namespace({.root = root_numbered(1)});
  forest.set_skeleton_ready(*forest.get_or_create(*second.root(), "1"), kSavedSkeleton);
}

std::string filled_snapshot() {
  Forest forest({});
  fill(forest);
  return encode_snapshot(take_snapshot(forest));
}

// A header that is right for `content`, so that only the content can be wrong.
std::string with_header(std::string_view content, std::uint64_t worlds, std::uint64_t nodes) {
  return fmt::format(
             "{{\"bytes\":{},\"nodes\":{},\"schema\":\"holdfast-snapshot\",\"version\":1,\"worlds\":{},\"xxh3\":"
             "\"{:016x}\"}}\n",
             content.size(), nodes, worlds, hash64(content, 0)) +
         std::string(content);
}

void expect_snapshot_refused(std::string_view bytes, const std::string& place_and_reason,
                             const SnapshotLimits& limits = {}) {
  const Result<Snapshot> snapshot = decode_snapshot(bytes, limits);
  ASSERT_FALSE(snapshot) << place_and_reason;
  EXPECT_TRUE(snapshot.error().is(Errc::bad_snapshot));
  EXPECT_THAT(snapshot.error().detail, HasSubstr(place_and_reason));
}

TEST(Snapshot, WhatWasReadyIsReadyAgainAndNotConfirmed) {
  Forest restored({.hash_seed = 9});
  restore_snapshot(decode_snapshot(filled_snapshot()).value(), 77, restored);

  const Namespace* first = restored.find_namespace(root_numbered(2));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->sink_chunks(), 1U);
  EXPECT_EQ(first->sessions(), 0U);
  const Node* a = restored.find_child(*first->root(), "1");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->blob(), (BlobState{.nbytes = 800,
                                  .slot_bytes = 32768,
                                  .committed_at_ns = 77,
                                  .shape = {4},
                                  .present = true,
                                  .ready = true,
                                  .confirmed = false}));
  EXPECT_EQ(a->skeleton(), (SkeletonState{.nbytes = 30, .committed_at_ns = 77, .ready = true, .confirmed = false}));
  const Node* b = restored.find_child(*a, "\"\xc3\xa9\"");
  ASSERT_NE(b, nullptr);
  EXPECT_FALSE(b->blob().present);
  EXPECT_TRUE(b->skeleton().ready);
  EXPECT_TRUE(restored.find_child(*b, "3")->blob().ready);
  EXPECT_TRUE(restored.find_child(*a, "4")->blob().ready);
  EXPECT_EQ(restored.counts().nodes, 5U);
  EXPECT_EQ(restored.counts().namespaces, 2U);
}

TEST(Snapshot, EncodingWhatWasRestoredGivesTheSameState) {
  Forest restored({});
  restore_snapshot(decode_snapshot(filled_snapshot()).value(), 0, restored);
  Forest again({});
  const std::string second = encode_snapshot(take_snapshot(restored));
  restore_snapshot(decode_snapshot(second).value(), 0, again);
  EXPECT_EQ(encode_snapshot(take_snapshot(again)), second);
}

TEST(Snapshot, TheSameForestGivesTheSameBytesWhateverTheHashSeed) {
  Forest other({.hash_seed = 12345});
  fill(other);
  EXPECT_EQ(encode_snapshot(take_snapshot(other)), filled_snapshot());
}

TEST(Snapshot, AnEmptyForestIsASnapshotToo) {
  EXPECT_TRUE(decode_snapshot(encode_snapshot(take_snapshot(Forest({})))).value().worlds.empty());
}

TEST(Snapshot, WithNothingReadyBelowANodeIsLeftOut) {
  Forest forest({});
  Namespace& world = forest.touch_namespace({.root = root_numbered(1)});
  Node* kept = forest.get_or_create(*world.root(), "kept");
  EXPECT_FALSE(forest.get_or_create(*kept, "left out")->blob().ready);
  forest.set_blob_ready(*forest.get_or_create(*kept, "ready"), kSavedBlob);
  forest.set_blob_ready(*forest.get_or_create(*world.root(), "withdrawn"), kSavedBlob);
  forest.withdraw_blob(*forest.get_or_create(*world.root(), "withdrawn"));
  forest.touch_namespace({.root = root_numbered(2)});
  const Snapshot snapshot = decode_snapshot(encode_snapshot(take_snapshot(forest))).value();
  ASSERT_EQ(snapshot.worlds.size(), 1U);
  ASSERT_EQ(snapshot.worlds[0].nodes.size(), 2U);
  EXPECT_EQ(snapshot.worlds[0].nodes[0].action, "kept");
  EXPECT_EQ(snapshot.worlds[0].nodes[1].action, "ready");
  EXPECT_EQ(snapshot.worlds[0].nodes[1].parent, 0);
}

TEST(Snapshot, TheOrderOfEvictionSurvives) {
  Forest forest({});
  Namespace& world = forest.touch_namespace({.root = root_numbered(1)});
  std::vector<Node*> nodes;
  for (int i = 0; i < 5; ++i) {
    nodes.push_back(forest.get_or_create(*world.root(), std::to_string(i)));
    forest.set_blob_ready(*nodes.back(), kSavedBlob);
  }
  forest.touch(*nodes[1]);
  forest.touch(*nodes[0]);
  Forest restored({});
  restore_snapshot(decode_snapshot(encode_snapshot(take_snapshot(forest))).value(), 0, restored);
  std::string order;
  while (Node* victim = restored.first_evictable()) {
    order += victim->action();
    restored.forget_blob(*victim);
  }
  EXPECT_EQ(order, "23410");
}

TEST(Snapshot, ARestoreLeavesWhatTheForestAlreadyHas) {
  Forest forest({});
  Namespace& world = forest.open_namespace({.root = root_numbered(2), .sink_chunks = 1});
  Node* a = forest.get_or_create(*world.root(), "1");
  forest.set_blob_ready(*a, {.nbytes = 1, .slot_bytes = 4096, .shape = {1}});
  restore_snapshot(decode_snapshot(filled_snapshot()).value(), 0, forest);
  EXPECT_EQ(a->blob().nbytes, 1U);
  EXPECT_TRUE(a->blob().confirmed);
  EXPECT_TRUE(a->skeleton().ready);
}

TEST(SnapshotRefusal, EveryCutOffFileIsRefused) {
  const std::string bytes = filled_snapshot();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_snapshot(std::string_view(bytes).substr(0, length))) << length;
  }
}

TEST(SnapshotRefusal, EveryChangedByteIsRefused) {
  std::string bytes = filled_snapshot();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int flip : {0x01, 0x20, 0x80}) {
      const char before = bytes[at];
      bytes[at] = static_cast<char>(before ^ flip);
      EXPECT_FALSE(decode_snapshot(bytes)) << at << " " << flip;
      bytes[at] = before;
    }
  }
}

RC_GTEST_PROP(SnapshotRefusal, AnyBytesAreRefused, (const std::string& bytes)) {
  RC_ASSERT(!decode_snapshot(bytes).has_value());
  RC_ASSERT(!decode_snapshot(with_header(bytes, 1, 0)).has_value());
}

TEST(SnapshotRefusal, WhatIsNotASnapshotIsRefused) {
  expect_snapshot_refused("", "line 1: the file ends within it, 0 bytes in");
  expect_snapshot_refused("no newline", "line 1: the file ends within it, 10 bytes in");
  expect_snapshot_refused("\n", "line 1: byte");
  expect_snapshot_refused("not JSON\n", "line 1: byte 2: not JSON");
  expect_snapshot_refused("{}\n", "line 1: member schema is missing");
  expect_snapshot_refused("[]\n", "line 1: an array where an object is expected");
  expect_snapshot_refused("7\n", "line 1: a plain value where an object is expected");
  expect_snapshot_refused("{\"schema\":\"other\"}\n", "member schema: this is not a snapshot of this program");
  expect_snapshot_refused("{\"schema\":7}\n", "member schema is not a string");
  expect_snapshot_refused("{\"schema\":\"holdfast-snapshot\",\"version\":3}\n",
                          "member version: 3, but this program reads 1 and 2");
  expect_snapshot_refused("{\"schema\":\"holdfast-snapshot\",\"version\":0}\n",
                          "member version: 0, but this program reads 1");
  expect_snapshot_refused("{\"schema\":\"holdfast-snapshot\",\"version\":-1}\n", "member version: a negative number");
  expect_snapshot_refused("{\"schema\":\"holdfast-snapshot\",\"version\":1}\n", "member bytes is missing");
}

TEST(SnapshotRefusal, WhatTheHeaderSaysOfTheRestHasToBeTrue) {
  const std::string bytes = filled_snapshot();
  expect_snapshot_refused(bytes.substr(0, bytes.size() - 1), "cut short, or more than one file");
  expect_snapshot_refused(bytes + bytes, "cut short, or more than one file");
  std::string damaged = bytes;
  damaged[damaged.size() - 10] ^= 1;
  expect_snapshot_refused(damaged, "member xxh3: the bytes that follow have another checksum: damaged");
  expect_snapshot_refused(with_header("", 1, 0), "line 2: the file ends within it");
  expect_snapshot_refused(with_header("", 0, 1), "line 1: member nodes: 1 more than the worlds have");
  expect_snapshot_refused(with_header("{}\n", 0, 0), "line 2: 3 bytes too many");
}

TEST(SnapshotRefusal, OversizedFilesAreRefused) {
  const std::string bytes = filled_snapshot();
  SnapshotLimits limits;
  limits.bytes_max = bytes.size();
  EXPECT_TRUE(decode_snapshot(bytes, limits));
  limits.bytes_max = bytes.size() - 1;
  expect_snapshot_refused(bytes, fmt::format("{} bytes are more than {}", bytes.size(), bytes.size() - 1), limits);
  limits = {};
  limits.nodes_max = 4;
  expect_snapshot_refused(bytes, "line 1: member nodes: 5 is above 4", limits);
  limits = {};
  limits.line_bytes_max = 150;
  expect_snapshot_refused(bytes, "line 5: longer than 150 bytes", limits);
}

TEST(SnapshotRefusal, ALineOfTheLimitIsReadAndOneByteMoreIsRefused) {
  const std::string bytes = encode_snapshot(take_snapshot(Forest({})));
  SnapshotLimits limits;
  limits.line_bytes_max = bytes.size() - 1;
  EXPECT_TRUE(decode_snapshot(bytes, limits));
  expect_snapshot_refused(bytes.substr(0, bytes.size() - 1), "line 1: the file ends within it", limits);
  --limits.line_bytes_max;
  expect_snapshot_refused(bytes, fmt::format("line 1: longer than {} bytes", limits.line_bytes_max), limits);
}

TEST(SnapshotRefusal, DeepNestingIsRefusedBeforeItIsTakenIn) {
  std::string objects;
  for (int i = 0; i < 500'000; ++i) objects += "{\"a\":";
  SnapshotLimits limits;
  limits.line_bytes_max = 16 << 20;
  expect_snapshot_refused(objects + "\n", "member a.a: an object nested too deeply is not expected", limits);
  expect_snapshot_refused(std::string(1'000'000, '[') + "\n", "an array where an object is expected", limits);
  expect_snapshot_refused(with_header("{\"root\":" + std::string(1'000'000, '[') + "\n", 1, 0),
                          "line 2: member root: an array is not expected", limits);
}

const NodeKey kRoot = root_numbered(1);

std::string world_line(std::uint64_t nodes) {
  return fmt::format("{{\"nodes\":{},\"root\":\"{}\",\"sink_chunks\":0}}\n", nodes, to_hex(kRoot));
}

std::string node_line(const NodeKey& key, std::string_view action, std::string_view more = {}, std::uint64_t used = 0) {
  return fmt::format("{{\"action\":\"{}\",\"key\":\"{}\",{}\"used\":{}}}\n", to_hex(action), to_hex(key), more, used);
}

TEST(SnapshotRefusal, ContradictionsAreRefused) {
  const NodeKey key = node_key(kRoot, "1");
  const std::string good = node_line(key, "1", R"("latent":{"bytes":1},)");
  EXPECT_TRUE(decode_snapshot(with_header(world_line(1) + good, 1, 1)));

  struct Case {
    std::string content;
    std::uint64_t worlds;
    std::uint64_t nodes;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {world_line(2) + good + good, 1, 2, "line 4: member key: a second node with it"},
      {world_line(1) + good + world_line(1), 2, 1, "line 4: member nodes: 1 is above 0"},
      {world_line(1) + good + world_line(0), 2, 1, "line 4: member root: a second one"},
      {world_line(1) + node_line(node_key(kRoot, "2"), "1"), 1, 1,
       "line 3: member key: not the key of this parent and action"},
      {world_line(1) + node_line(key, "1", "\"parent\":0,"), 1, 1,
       "line 3: member parent: 0 is not among the 0 nodes before it"},
      {world_line(2) + good + node_line(node_key(key, "2"), "2", "\"parent\":1,"), 1, 2,
       "line 4: member parent: 1 is not among the 1 nodes before it"},
      {world_line(2) + good + node_line(node_key(key, "2"), "2"), 1, 2, "line 4: member key: not the key"},
      {world_line(2) + good, 1, 2, "line 4: the file ends within it"},
      {world_line(2) + good, 1, 1, "line 2: member nodes: 2 is above 1"},
      {world_line(1) + good, 1, 2, "line 1: member nodes: 1 more than the worlds have"},
  };
  for (const Case& each : cases)
    expect_snapshot_refused(with_header(each.content, each.worlds, each.nodes), each.reason);
}

// What the fields say may be sound: we would have written it otherwise, or not at all.
TEST(SnapshotRefusal, WhatIsNeverWrittenIsRefused) {
  constexpr std::string_view kLatent = R"("latent":{"bytes":1},)";
  constexpr std::string_view kLatentBelow = R"("latent":{"bytes":1},"parent":0,)";
  const NodeKey a = node_key(kRoot, "a");
  const NodeKey b = node_key(kRoot, "b");
  const NodeKey below = node_key(a, "c");
  const std::string line_a = node_line(a, "a", kLatent);
  const std::string line_b = node_line(b, "b", kLatent);
  const std::string line_below = node_line(below, "c", kLatentBelow);
  EXPECT_TRUE(decode_snapshot(with_header(world_line(3) + line_a + line_b + line_below, 1, 3)));
  EXPECT_TRUE(decode_snapshot(with_header(world_line(2) + node_line(a, "a") + line_below, 1, 2)));
  EXPECT_TRUE(decode_snapshot(
      with_header(world_line(2) + node_line(a, "a", {}, 2) + node_line(below, "c", kLatentBelow, 1), 1, 2)));
  const std::string earlier_world =
      fmt::format("{{\"nodes\":1,\"root\":\"{}\",\"sink_chunks\":0}}\n", to_hex(root_numbered(0))) +
      node_line(node_key(root_numbered(0), "a"), "a", kLatent);

  struct Case {
    std::string content;
    std::uint64_t worlds;
    std::uint64_t nodes;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {" " + world_line(1) + line_a, 1, 1, "line 2: byte 1: not how this program writes it"},
      {world_line(1) + "{ " + line_a.substr(1), 1, 1, "line 3: byte 2: not how this program writes it"},
      {world_line(1) +
           fmt::format("{{\"key\":\"{}\",\"action\":\"61\",\"latent\":{{\"bytes\":1}},\"used\":0}}\n", to_hex(a)),
       1, 1, "line 3: member action: not in order"},
      {world_line(1) + R"({"action":"6\u0031")" + line_a.substr(std::string_view(R"({"action":"61")").size()), 1, 1,
       "line 3: byte 13: not how this program writes it"},
      {world_line(0), 1, 0, "line 2: member nodes: a world without nodes is not written"},
      {world_line(1) + line_a + earlier_world, 2, 2, "line 4: member root: before that of the world above"},
      {world_line(1) + node_line(a, "a"), 1, 1, "line 3: a node with nothing ready in its subtree is not written"},
      {world_line(2) + node_line(a, "a") + line_b, 1, 2, "line 3: a node with nothing ready in its subtree"},
      {world_line(3) + line_a + line_below + line_b, 1, 3, "line 5: member parent: before that of the node above"},
      {world_line(2) + node_line(a, "a", kLatent, 7) + node_line(b, "b", kLatent, 7), 1, 2,
       "line 4: member used: a second node with it"},
      {world_line(2) + node_line(a, "a", kLatent, 1) + node_line(below, "c", kLatentBelow, 2), 1, 2,
       "line 4: member used: above that of its parent"},
  };
  for (const Case& each : cases)
    expect_snapshot_refused(with_header(each.content, each.worlds, each.nodes), each.reason);

  const std::string written = with_header(world_line(1) + line_a, 1, 1);
  expect_snapshot_refused("{ " + written.substr(1), "line 1: byte 2: not how this program writes it");
}

TEST(SnapshotRefusal, MembersOfTheWrongKindAreRefused) {
  const std::string key = to_hex(node_key(kRoot, "1"));
  const std::vector<std::pair<std::string, std::string>> lines = {
      {"{\"action\":\"31\",\"key\":\"" + key + "\"}", "member used is missing"},
      {"{\"action\":\"31\",\"key\":\"" + key + "\",\"used\":\"1\"}", "member used is not an unsigned number"},
      {"{\"action\":\"31\",\"key\":\"" + key + "\",\"used\":1.5}", "member used: a fraction is not expected"},
      {"{\"action\":\"31\",\"key\":\"" + key + "\",\"used\":1e400}", "not JSON"},
      {"{\"action\":\"31\",\"key\":\"" + key + "\",\"used\":null}", "member used: null is not expected"},
      {"{\"action\":\"31\",\"key\":\"" + key + "\",\"used\":true}", "member used: a boolean is not expected"},
      {"{\"action\":\"31\",\"key\":\"" + key + "\",\"used\":{}}", "member used is missing"},
      {"{\"action\":\"31\",\"key\":\"" + key + "\",\"used\":18446744073709551616}", "a fraction is not expected"},
      {"{\"action\":\"31\",\"action\":\"31\",\"key\":\"" + key + "\",\"used\":1}", "member action: a second value"},
      {"{\"action\":\"31\",\"key\":\"" + key + "\",\"used\":1,\"x\":1}", "unexpected member x"},
      {"{\"action\":\"31\",\"key\":\"" + key + "\",\"used\":1,\"x\":{}}", "unexpected member x"},
      {"{\"action\":\"31\",\"key\":\"" + key + "\",\"used\":1,\"kv.bytes\":1}", "a name with a point"},
      {"{\"action\":\"31\",\"key\":\"" + key + "\",\"used\":1,\"kv\":{}}", "member kv.bytes is missing"},
      {"{\"action\":\"31\",\"key\":\"" + key + "\",\"used\":1,\"kv\":{},\"kv\":{}}", "member kv: a second value"},
      {"{\"action\":\"31\",\"key\":\"" + key + "\",\"used\":1,\"latent\":{\"bytes\":1,\"x\":2}}",
       "unexpected member latent.x"},
      {"{\"action\":\"31\",\"key\":\"" + key + "\",\"used\":1,\"latent\":{\"bytes\":18446744073709551615}}",
       "member latent.bytes: 18446744073709551615 is above"},
      {"{\"action\":\"31\",\"key\":\"" + key + "\",\"used\":1,\"kv\":{\"bytes\":1,\"layers\":2049,\"slot_bytes\":1}}",
       "member kv.layers: 2049 is above 2048"},
      {"{\"action\":\"3\",\"key\":\"" + key + "\",\"used\":1}", "member action: 1 characters: not an even number"},
      {"{\"action\":\"3G\",\"key\":\"" + key + "\",\"used\":1}", "member action: character 1 is not"},
      {"{\"action\":\"31\",\"key\":\"00\",\"used\":1}", "member key: 2 characters: a digest has 64"},
      {"{\"action\":\"31\",\"key\":\"" + std::string(64, 'A') + "\",\"used\":1}", "member key: character 0 is not"},
      {"{\"action\":\"31\",\"key\":\"" + key + "\",\"used\":1} {}", "not JSON"},
      {"", "byte"},
      {"{\"\xff\":1}", "not JSON"},
  };
  for (const auto& [line, reason] : lines) {
    expect_snapshot_refused(with_header(world_line(1) + line + "\n", 1, 1), "line 3: ");
    expect_snapshot_refused(with_header(world_line(1) + line + "\n", 1, 1), reason);
  }
}

TEST(SnapshotRefusal, SumsThatWouldOverflowAreRefused) {
  const std::uint64_t half = 1ULL << 59;
  const auto line = [&](std::string_view action) {
    return node_line(node_key(kRoot, action), action,
                     fmt::format("\"kv\":{{\"bytes\":{},\"layers\":1,\"slot_bytes\":{}}},", half, half));
  };
  EXPECT_TRUE(decode_snapshot(with_header(world_line(2) + line("1") + line("2"), 1, 2)));
  expect_snapshot_refused(with_header(world_line(3) + line("1") + line("2") + line("3"), 1, 3),
                          "line 5: member kv.bytes");
}

class MockFiles {
 public:
  MOCK_METHOD(Result<std::string>, read, (const std::string& path, std::uint64_t bytes_max));
  MOCK_METHOD(Status, write, (const std::string& path, const std::string& bytes));
  MOCK_METHOD(Status, sync, (const std::string& path));
  MOCK_METHOD(Status, rename, (const std::string& from, const std::string& to));
  MOCK_METHOD(Status, remove, (const std::string& path));
};
static_assert(FileSystem<MockFiles>);

Error errno_error(int code, std::string_view call) {
  Error error;
  error.origin = Origin::file_system;
  error.code = code;
  error.call = call;
  return error;
}

TEST(SnapshotFile, IsWrittenBesideSyncedRenamedAndItsFolderSynced) {
  testing::StrictMock<MockFiles> files;
  InSequence order;
  EXPECT_CALL(files, write("dir/s.json.tmp", "bytes"));
  EXPECT_CALL(files, sync("dir/s.json.tmp"));
  EXPECT_CALL(files, rename("dir/s.json.tmp", "dir/s.json"));
  EXPECT_CALL(files, sync("dir"));
  EXPECT_TRUE(write_snapshot(files, "dir/s.json", "bytes"));
}

TEST(SnapshotFile, TheFolderOfAPathIsKnown) {
  EXPECT_EQ(folder_of("a/b/c"), "a/b");
  EXPECT_EQ(folder_of("c"), ".");
  EXPECT_EQ(folder_of("/c"), "/");
}

TEST(SnapshotFile, AFailedWriteSyncOrRenameLeavesTheOldFileAndNoTemporaryOne) {
  for (const std::string_view failing : {"write", "sync", "rename"}) {
    testing::NiceMock<MockFiles> files;
    const auto answer = [&](std::string_view call) {
      return call == failing ? Status(errno_error(ENOSPC, call)) : Status();
    };
    ON_CALL(files, write).WillByDefault([&](auto&&...) { return answer("write"); });
    ON_CALL(files, sync).WillByDefault([&](const std::string& path) {
      EXPECT_EQ(path, "dir/s.json.tmp");
      return answer("sync");
    });
    ON_CALL(files, rename).WillByDefault([&](auto&&...) { return answer("rename"); });
    EXPECT_CALL(files, remove("dir/s.json.tmp"));
    const Status written = write_snapshot(files, "dir/s.json", "bytes");
    ASSERT_FALSE(written) << failing;
    EXPECT_TRUE(written.error().is(Errc::file_failed));
    EXPECT_TRUE(mentions(written.error(), Origin::file_system, ENOSPC));
    EXPECT_TRUE(written.error().suppressed.empty());
  }
}

TEST(SnapshotFile, AFailedCleanUpIsToldBesideTheFailure) {
  testing::NiceMock<MockFiles> files;
  EXPECT_CALL(files, write).WillOnce(Return(Status(errno_error(ENOSPC, "write"))));
  EXPECT_CALL(files, remove).WillOnce(Return(Status(errno_error(EIO, "remove"))));
  const Status written = write_snapshot(files, "s", "bytes");
  ASSERT_EQ(written.error().suppressed.size(), 1U);
  EXPECT_EQ(written.error().suppressed[0].code, EIO);
}

TEST(SnapshotFile, AFailedSyncOfTheFolderIsAnError) {
  testing::NiceMock<MockFiles> files;
  EXPECT_CALL(files, sync("s.tmp"));
  EXPECT_CALL(files, sync(".")).WillOnce(Return(Status(errno_error(EIO, "sync"))));
  EXPECT_CALL(files, remove).Times(0);
  EXPECT_TRUE(write_snapshot(files, "s", "bytes").error().is(Errc::file_failed));
}

TEST(SnapshotFile, AMissingFileIsAnEmptyForestAndOtherFailuresAreErrors) {
  testing::NiceMock<MockFiles> files;
  EXPECT_CALL(files, read("s", _))
      .WillOnce(Return(Result<std::string>(errno_error(ENOENT, "read"))))
      .WillOnce(Return(Result<std::string>(errno_error(EACCES, "read"))))
      .WillOnce(Return(Result<std::string>(errno_error(EFBIG, "read"))));
  EXPECT_TRUE(read_snapshot(files, "s").value().worlds.empty());
  EXPECT_TRUE(read_snapshot(files, "s").error().is(Errc::file_failed));
  EXPECT_TRUE(mentions(read_snapshot(files, "s").error(), Origin::file_system, EFBIG));
}

TEST(SnapshotFile, ADamagedFileIsRefusedWithItsName) {
  testing::NiceMock<MockFiles> files;
  EXPECT_CALL(files, read).WillOnce(Return(Result<std::string>("{}\n")));
  const Result<Snapshot> snapshot = read_snapshot(files, "dir/s.json");
  ASSERT_FALSE(snapshot);
  EXPECT_TRUE(snapshot.error().is(Errc::bad_snapshot));
  EXPECT_THAT(snapshot.error().detail, HasSubstr("dir/s.json: line 1: "));
}

TEST(SnapshotFile, SurvivesOnARealFileSystem) {
  std::string folder = (std::filesystem::temp_directory_path() / "holdfast-snapshot-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  PosixFileSystem files;
  const std::string path = folder + "/snapshot";
  EXPECT_TRUE(read_snapshot(files, path).value().worlds.empty());
  const std::string bytes = filled_snapshot();
  ASSERT_TRUE(write_snapshot(files, path, bytes));
  EXPECT_EQ(read_snapshot(files, path).value().worlds.size(), 2U);
  EXPECT_FALSE(std::filesystem::exists(temporary_path(path)));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace holdfast
