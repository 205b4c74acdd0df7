#include "holdfast/core/trie.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::InSequence;
using testing::IsEmpty;
using testing::Ref;
using testing::StrictMock;

class MockListener : public TrieListener {
 public:
  MOCK_METHOD(void, on_blob_ready, (const Node& node), (override));
  MOCK_METHOD(void, on_blob_withdrawn, (const Node& node), (override));
  MOCK_METHOD(void, on_skeleton_ready, (const Node& node), (override));
  MOCK_METHOD(void, on_skeleton_withdrawn, (const Node& node), (override));
};

NodeKey root_key(std::uint8_t number) {
  NodeKey key;
  key.digest[0] = number;
  return key;
}

constexpr BlobRecord kBlob{.nbytes = 800, .slot_bytes = 4096, .shape = {4}, .committed_at_ns = 5};
constexpr SkeletonRecord kSkeleton{.nbytes = 30, .committed_at_ns = 6};

// The order in which blobs would be evicted, all else left as it is.
std::vector<const Node*> eviction_order(Forest& forest) {
  std::vector<const Node*> order;
  const auto refuse = [&](const Node& node) {
    order.push_back(&node);
    return false;
  };
  EXPECT_EQ(forest.first_evictable(refuse, std::numeric_limits<std::uint64_t>::max()), nullptr);
  return order;
}

class Trie : public testing::Test {
 protected:
  explicit Trie(std::uint32_t sink_chunks = 0)
      : forest_({.hash_seed = 11}), world_(forest_.open_namespace({.root = root_key(1), .sink_chunks = sink_chunks})) {}

  Node* ready_child(Node& parent, std::string_view action) {
    Node* node = forest_.get_or_create(parent, action);
    forest_.set_blob_ready(*node, kBlob);
    return node;
  }
  std::vector<Node*> ready_chain(const std::vector<std::string_view>& actions) {
    std::vector<Node*> nodes;
    Node* at = world_.root();
    for (const std::string_view action : actions) nodes.push_back(at = ready_child(*at, action));
    return nodes;
  }
  Node* lookup(const std::vector<std::string_view>& actions) { return forest_.lookup(world_, actions); }

  Forest forest_;
  Namespace& world_;
};

class TrieWithSink : public Trie {
 protected:
  TrieWithSink() : Trie(2) {}
};

TEST_F(Trie, LookupOfNothingIsTheVirtualRoot) {
  EXPECT_EQ(lookup({}), world_.root());
  EXPECT_EQ(lookup({"1"}), world_.root());
  EXPECT_EQ(world_.root()->matched_chunks(), 0U);
  EXPECT_EQ(world_.root()->key(), root_key(1));
  EXPECT_TRUE(world_.root()->is_virtual_root());
}

TEST_F(Trie, LookupStopsAtTheFirstActionThatDiffers) {
  const auto chain = ready_chain({"1", "\"1\"", "2"});
  EXPECT_EQ(lookup({"1", "\"1\"", "2"}), chain[2]);
  EXPECT_EQ(lookup({"1", "\"1\"", "2", "3"}), chain[2]);
  EXPECT_EQ(lookup({"1", "\"1\"", "3"}), chain[1]);
  EXPECT_EQ(lookup({"1", "1", "2"}), chain[0]);
  EXPECT_EQ(lookup({"\"1\""}), world_.root());
  EXPECT_EQ(chain[2]->matched_chunks(), 3U);
}

TEST_F(Trie, LookupStopsBeforeABlobThatIsNotReady) {
  const auto chain = ready_chain({"1", "2", "3"});
  forest_.withdraw_blob(*chain[1]);
  EXPECT_EQ(lookup({"1", "2", "3"}), chain[0]);
  forest_.set_blob_ready(*chain[1], kBlob);
  EXPECT_EQ(lookup({"1", "2", "3"}), chain[2]);
}

TEST_F(Trie, ANodesKeyIsOfItsParentAndActionAndFindsIt) {
  Node* node = forest_.get_or_create(*world_.root(), "7");
  EXPECT_EQ(node->key(), node_key(root_key(1), "7"));
  EXPECT_EQ(forest_.find(node->key()), node);
  EXPECT_EQ(forest_.find(root_key(9)), nullptr);
  EXPECT_EQ(forest_.find_child(*world_.root(), "7"), node);
  EXPECT_EQ(forest_.find_child(*node, "7"), nullptr);
}

TEST_F(Trie, GetOrCreateGivesTheSameNodeAgain) {
  Node* first = forest_.get_or_create(*world_.root(), "7");
  EXPECT_EQ(forest_.get_or_create(*world_.root(), "7"), first);
  EXPECT_EQ(forest_.counts().nodes, 1U);
}

TEST_F(Trie, WorldsAreApart) {
  Namespace& other = forest_.open_namespace({.root = root_key(2)});
  const auto chain = ready_chain({"1"});
  const std::vector<std::string_view> actions = {"1"};
  EXPECT_EQ(forest_.lookup(other, actions), other.root());
  EXPECT_NE(forest_.get_or_create(*other.root(), "1")->key(), chain[0]->key());
}

TEST_F(Trie, ARepeatedIngestOfAReadyNodeChangesNothing) {
  Node* node = ready_chain({"1"})[0];
  const ForestCounts before = forest_.counts();
  EXPECT_FALSE(forest_.set_blob_ready(*node, {.nbytes = 1, .slot_bytes = 1, .shape = {1}}));
  EXPECT_EQ(node->blob().nbytes, kBlob.nbytes);
  EXPECT_TRUE(forest_.set_skeleton_ready(*node, kSkeleton));
  EXPECT_FALSE(forest_.set_skeleton_ready(*node, {.nbytes = 1}));
  EXPECT_EQ(node->skeleton().nbytes, kSkeleton.nbytes);
  EXPECT_EQ(forest_.counts().blob_bytes, before.blob_bytes);
}

TEST_F(Trie, AWithdrawnBlobKeepsItsHandleAndItsBytesAccounted) {
  Node* node = ready_chain({"1"})[0];
  EXPECT_TRUE(forest_.withdraw_blob(*node));
  EXPECT_FALSE(forest_.withdraw_blob(*node));
  EXPECT_TRUE(node->blob().present);
  EXPECT_EQ(forest_.counts().blob_bytes, kBlob.nbytes);
  EXPECT_EQ(forest_.counts().ready_blobs, 0U);
  EXPECT_THAT(eviction_order(forest_), ElementsAre(node));
  EXPECT_TRUE(forest_.forget_blob(*node));
  EXPECT_FALSE(forest_.forget_blob(*node));
  EXPECT_EQ(forest_.counts().blob_bytes, 0U);
}

TEST_F(Trie, ForgettingABlobLeavesSkeletonAndStructure) {
  const auto chain = ready_chain({"1", "2"});
  forest_.set_skeleton_ready(*chain[0], kSkeleton);
  forest_.forget_blob(*chain[0]);
  EXPECT_TRUE(chain[0]->skeleton().ready);
  EXPECT_EQ(forest_.find(chain[1]->key()), chain[1]);
  EXPECT_EQ(forest_.counts().nodes, 2U);
}

TEST(TrieListening, IsToldOfEveryChangeOfAReadyFlagOnce) {
  StrictMock<MockListener> listener;
  Forest forest({.listener = &listener});
  Namespace& world = forest.open_namespace({.root = root_key(1)});
  Node* node = forest.get_or_create(*world.root(), "1");
  InSequence order;
  EXPECT_CALL(listener, on_skeleton_ready(Ref(*node)));
  EXPECT_CALL(listener, on_blob_ready(Ref(*node)));
  EXPECT_CALL(listener, on_blob_withdrawn(Ref(*node)));
  EXPECT_CALL(listener, on_blob_ready(Ref(*node)));
  EXPECT_CALL(listener, on_blob_withdrawn(Ref(*node)));
  EXPECT_CALL(listener, on_skeleton_withdrawn(Ref(*node)));
  forest.set_skeleton_ready(*node, kSkeleton);
  forest.set_skeleton_ready(*node, kSkeleton);
  forest.set_blob_ready(*node, kBlob);
  forest.set_blob_ready(*node, kBlob);
  forest.withdraw_blob(*node);
  forest.withdraw_blob(*node);
  forest.set_blob_ready(*node, kBlob);
  forest.confirm_blob(*node);
  forest.forget_blob(*node);
  forest.forget_blob(*node);
  forest.withdraw_skeleton(*node);
  forest.withdraw_skeleton(*node);
}

TEST(TrieListening, DroppingAWorldWithdrawsWhatWasReadyLeavesFirst) {
  StrictMock<MockListener> listener;
  Forest forest({.listener = &listener});
  Namespace& world = forest.touch_namespace({.root = root_key(1), .sink_chunks = 2});
  Node* inner = forest.get_or_create(*world.root(), "1");
  Node* leaf = forest.get_or_create(*inner, "2");
  InSequence order;
  EXPECT_CALL(listener, on_blob_ready(Ref(*inner)));
  EXPECT_CALL(listener, on_skeleton_ready(Ref(*leaf)));
  EXPECT_CALL(listener, on_skeleton_withdrawn(Ref(*leaf)));
  EXPECT_CALL(listener, on_blob_withdrawn(Ref(*inner)));
  forest.set_blob_ready(*inner, kBlob);
  forest.set_skeleton_ready(*leaf, kSkeleton);
  EXPECT_TRUE(forest.drop_namespace(world));
}

TEST_F(Trie, ARestoredFlagIsAHintUntilConfirmed) {
  Node* node = forest_.get_or_create(*world_.root(), "1");
  EXPECT_FALSE(forest_.confirm_blob(*node));
  EXPECT_TRUE(forest_.restore_blob(*node, kBlob));
  EXPECT_TRUE(forest_.restore_skeleton(*node, kSkeleton));
  EXPECT_TRUE(node->blob().ready);
  EXPECT_FALSE(node->blob().confirmed);
  EXPECT_FALSE(node->skeleton().confirmed);
  EXPECT_TRUE(forest_.confirm_blob(*node));
  EXPECT_TRUE(forest_.confirm_skeleton(*node));
  EXPECT_TRUE(node->blob().confirmed);
  EXPECT_TRUE(node->skeleton().confirmed);
  EXPECT_FALSE(forest_.confirm_blob(*node));
}

TEST_F(Trie, TheLeastRecentlyUsedBlobGoesFirst) {
  Node* a = ready_child(*world_.root(), "a");
  Node* b = ready_child(*world_.root(), "b");
  Node* c = ready_child(*world_.root(), "c");
  EXPECT_THAT(eviction_order(forest_), ElementsAre(a, b, c));
  EXPECT_EQ(lookup({"a"}), a);
  EXPECT_THAT(eviction_order(forest_), ElementsAre(b, c, a));
  EXPECT_EQ(forest_.first_evictable(), b);
}

TEST_F(Trie, LeavesGoBeforeInnerNodes) {
  const auto chain = ready_chain({"1", "2", "3"});
  EXPECT_THAT(eviction_order(forest_), ElementsAre(chain[2], chain[1], chain[0]));
  EXPECT_EQ(lookup({"1"}), chain[0]);
  EXPECT_THAT(eviction_order(forest_), ElementsAre(chain[2], chain[1], chain[0]));
  Node* fork = ready_child(*chain[0], "4");
  EXPECT_THAT(eviction_order(forest_), ElementsAre(chain[2], chain[1], fork, chain[0]));
}

TEST_F(Trie, EvictingALeafIsNoUseOfItsAncestors) {
  const auto chain = ready_chain({"1", "2", "3"});
  Node* other = ready_child(*world_.root(), "other");
  forest_.set_being_written(*chain[2], true);
  forest_.withdraw_blob(*chain[2]);
  forest_.forget_blob(*chain[2]);
  forest_.set_being_written(*chain[2], false);
  EXPECT_THAT(eviction_order(forest_), ElementsAre(chain[1], chain[0], other));
}

TEST_F(Trie, AnEvictionThatFailedLeavesLeavesBeforeInnerNodes) {
  const auto chain = ready_chain({"1", "2"});
  forest_.set_being_written(*chain[1], true);
  forest_.withdraw_blob(*chain[1]);
  forest_.set_being_written(*chain[1], false);
  EXPECT_THAT(eviction_order(forest_), ElementsAre(chain[1], chain[0]));
}

TEST_F(Trie, ReleasingAPathIsOneUseOfEachOfItsNodes) {
  const auto chain = ready_chain({"1", "2", "3"});
  Node* other = ready_child(*world_.root(), "other");
  forest_.acquire(chain);
  forest_.release(chain);
  EXPECT_THAT(eviction_order(forest_), ElementsAre(other, chain[2], chain[1], chain[0]));
  const std::uint64_t before = forest_.node_visits();
  forest_.acquire(chain);
  forest_.release(chain);
  EXPECT_LE(forest_.node_visits(), before + 2 * chain.size());
}

TEST_F(TrieWithSink, AWorldIsIdleWhileNobodyUsesItAndNothingOfItCanBeServed) {
  const auto chain = ready_chain({"1", "2"});
  EXPECT_EQ(forest_.longest_idle(), nullptr);
  forest_.close_namespace(world_);
  EXPECT_EQ(forest_.longest_idle(), nullptr) << "it has blobs";
  forest_.forget_blob(*chain[1]);
  forest_.forget_blob(*chain[0]);
  EXPECT_EQ(forest_.longest_idle(), &world_);
  forest_.acquire(std::vector<Node*>{chain[0]});
  EXPECT_EQ(forest_.longest_idle(), nullptr) << "a reference";
  forest_.release(std::vector<Node*>{chain[0]});
  forest_.set_being_written(*chain[0], true);
  EXPECT_EQ(forest_.longest_idle(), nullptr) << "a put";
  forest_.set_being_written(*chain[0], false);
  EXPECT_EQ(forest_.longest_idle(), &world_);
  Namespace& later = forest_.touch_namespace({.root = root_key(9)});
  EXPECT_EQ(forest_.longest_idle(), &world_);
  ASSERT_TRUE(forest_.drop_namespace(world_));
  EXPECT_EQ(forest_.longest_idle(), &later);
  forest_.open_namespace({.root = root_key(9)});
  EXPECT_EQ(forest_.longest_idle(), nullptr);
}

TEST_F(Trie, AReferencedOrWrittenBlobIsNoVictim) {
  const auto chain = ready_chain({"1", "2"});
  forest_.acquire(chain);
  forest_.acquire(std::vector<Node*>{chain[1]});
  EXPECT_TRUE(forest_.check_evictable(*chain[0]).error().is(Errc::in_use));
  EXPECT_EQ(forest_.first_evictable(), nullptr);
  forest_.release(chain);
  EXPECT_THAT(eviction_order(forest_), ElementsAre(chain[0]));
  forest_.release(std::vector<Node*>{chain[1]});
  EXPECT_THAT(eviction_order(forest_), ElementsAre(chain[1], chain[0]));
  forest_.set_being_written(*chain[1], true);
  EXPECT_TRUE(forest_.check_evictable(*chain[1]).error().is(Errc::in_use));
  EXPECT_THAT(eviction_order(forest_), ElementsAre(chain[0]));
  forest_.set_being_written(*chain[1], false);
  EXPECT_TRUE(forest_.check_evictable(*chain[1]));
  EXPECT_THAT(eviction_order(forest_), ElementsAre(chain[1], chain[0]));
}

TEST_F(Trie, ANodeWithoutABlobIsNoVictim) {
  Node* node = forest_.get_or_create(*world_.root(), "1");
  forest_.set_skeleton_ready(*node, kSkeleton);
  EXPECT_TRUE(forest_.check_evictable(*node).error().is(Errc::not_found));
  EXPECT_EQ(forest_.first_evictable(), nullptr);
}

TEST_F(Trie, AVictimInDoubtIsPassedOverWithinBounds) {
  Node* a = ready_child(*world_.root(), "a");
  Node* b = ready_child(*world_.root(), "b");
  const auto not_a = [&](const Node& node) { return &node != a; };
  EXPECT_EQ(forest_.first_evictable(not_a), b);
  EXPECT_EQ(forest_.first_evictable(not_a, 1), nullptr);
}

TEST_F(TrieWithSink, SinkBlobsArePinnedWhileTheWorldHasASession) {
  const auto chain = ready_chain({"1", "2", "3"});
  EXPECT_TRUE(chain[0]->pinned());
  EXPECT_TRUE(chain[1]->pinned());
  EXPECT_FALSE(chain[2]->pinned());
  EXPECT_TRUE(forest_.check_evictable(*chain[1]).error().is(Errc::in_use));
  EXPECT_THAT(eviction_order(forest_), ElementsAre(chain[2]));
  forest_.forget_blob(*chain[2]);
  EXPECT_THAT(eviction_order(forest_), IsEmpty());
}

TEST_F(TrieWithSink, SinkBlobsArePinnedWhileTheWorldHasAnUnpinnedBlob) {
  const auto chain = ready_chain({"1", "2", "3"});
  forest_.close_namespace(world_);
  EXPECT_TRUE(chain[0]->pinned());
  EXPECT_EQ(world_.unpinned_blobs(), 1U);
  EXPECT_THAT(eviction_order(forest_), ElementsAre(chain[2]));
  forest_.forget_blob(*chain[2]);
  EXPECT_FALSE(chain[0]->pinned());
  EXPECT_THAT(eviction_order(forest_), ElementsAre(chain[1], chain[0]));
}

TEST_F(TrieWithSink, SinkBlobsOfAnIdleWorldArePinnedAgainWhenASessionOpens) {
  const auto chain = ready_chain({"1", "2"});
  forest_.close_namespace(world_);
  EXPECT_THAT(eviction_order(forest_), ElementsAre(chain[1], chain[0]));
  forest_.open_namespace({.root = root_key(1), .sink_chunks = 2});
  EXPECT_TRUE(chain[0]->pinned());
  EXPECT_THAT(eviction_order(forest_), IsEmpty());
  forest_.close_namespace(world_);
  EXPECT_THAT(eviction_order(forest_), ElementsAre(chain[1], chain[0]));
}

TEST_F(TrieWithSink, LeavesStillGoFirstWhenPinsCameAndWentBetween) {
  const auto chain = ready_chain({"1", "2"});
  forest_.close_namespace(world_);
  forest_.open_namespace({.root = root_key(1), .sink_chunks = 2});
  forest_.touch(*chain[0]);
  EXPECT_THAT(eviction_order(forest_), IsEmpty());
  forest_.close_namespace(world_);
  EXPECT_THAT(eviction_order(forest_), ElementsAre(chain[1], chain[0]));
}

TEST_F(Trie, ASinkThatCoversAllBlobsOfAnIdleWorldPinsNone) {
  const auto chain = ready_chain({"1", "2"});
  forest_.touch_namespace({.root = root_key(1), .sink_chunks = 1});
  forest_.close_namespace(world_);
  EXPECT_THAT(eviction_order(forest_), ElementsAre(chain[1]));
  forest_.touch_namespace({.root = root_key(1), .sink_chunks = 2});
  EXPECT_THAT(eviction_order(forest_), ElementsAre(chain[1], chain[0]));
}

TEST_F(TrieWithSink, AWiderSinkPinsMore) {
  const auto chain = ready_chain({"1", "2", "3"});
  forest_.open_namespace({.root = root_key(1), .sink_chunks = 3});
  EXPECT_TRUE(chain[2]->pinned());
  EXPECT_THAT(eviction_order(forest_), IsEmpty());
  forest_.open_namespace({.root = root_key(1), .sink_chunks = 0});
  EXPECT_EQ(world_.sink_chunks(), 3U);
}

TEST_F(TrieWithSink, AWorldInUseIsNotDropped) {
  const auto chain = ready_chain({"1", "2", "3"});
  EXPECT_TRUE(forest_.drop_namespace(world_).error().is(Errc::in_use));
  forest_.close_namespace(world_);
  EXPECT_TRUE(forest_.drop_namespace(world_).error().is(Errc::in_use));
  forest_.forget_blob(*chain[2]);
  forest_.acquire(std::vector<Node*>{chain[0]});
  const Status referenced = forest_.drop_namespace(world_);
  EXPECT_TRUE(referenced.error().is(Errc::in_use));
  EXPECT_THAT(referenced.error().detail, EndsWith("is referenced"));
  forest_.release(std::vector<Node*>{chain[0]});
  forest_.set_being_written(*chain[2], true);
  const Status being_written = forest_.drop_namespace(world_);
  EXPECT_TRUE(being_written.error().is(Errc::in_use));
  EXPECT_THAT(being_written.error().detail, EndsWith("is being written"));
  forest_.set_being_written(*chain[2], false);
  EXPECT_EQ(forest_.find(chain[2]->key()), chain[2]);
  EXPECT_TRUE(forest_.drop_namespace(world_));
}

TEST_F(TrieWithSink, ADroppedWorldIsGoneAndCanBeMadeAnew) {
  ready_chain({"1", "2"});
  forest_.close_namespace(world_);
  ASSERT_TRUE(forest_.drop_namespace(world_));
  EXPECT_EQ(forest_.counts(), ForestCounts{});
  EXPECT_EQ(forest_.find_namespace(root_key(1)), nullptr);
  EXPECT_EQ(forest_.find(node_key(root_key(1), "1")), nullptr);
  EXPECT_EQ(forest_.first_evictable(), nullptr);
  Namespace& again = forest_.open_namespace({.root = root_key(1)});
  EXPECT_EQ(forest_.find_child(*again.root(), "1"), nullptr);
  EXPECT_FALSE(ready_child(*again.root(), "1")->pinned());
}

TEST_F(Trie, WorldsComeAndGoWithoutATrace) {
  for (int round = 0; round < 50; ++round) {
    Namespace& world = forest_.touch_namespace({.root = root_key(7), .sink_chunks = 1});
    std::vector<Node*> children;
    for (int i = 0; i < 20; ++i) children.push_back(ready_child(*world.root(), std::to_string(i)));
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(forest_.find_child(*world.root(), std::to_string(i)), children[static_cast<std::size_t>(i)]);
    }
    ASSERT_EQ(forest_.find_child(*world.root(), "20"), nullptr);
    ASSERT_EQ(forest_.counts().nodes, 20U);
    ASSERT_TRUE(forest_.drop_namespace(world));
  }
  EXPECT_LT(forest_.node_visits(), 50'000U);
}

TEST_F(Trie, WorldsThatComeAndGoTakeNoMoreMemory) {
  const auto come_and_go = [&] {
    Namespace& world = forest_.touch_namespace({.root = root_key(7), .sink_chunks = 1});
    for (int i = 0; i < 20; ++i) ready_child(*world.root(), std::string(200, 'x') + std::to_string(i));
    ASSERT_TRUE(forest_.drop_namespace(world));
  };
  come_and_go();
  const std::size_t before = mallinfo2().uordblks;
  for (int round = 0; round < 1'000; ++round) come_and_go();
  EXPECT_LT(mallinfo2().uordblks, before + 1'000'000);
}

TEST_F(Trie, NodesOfAWorldAreListedParentsFirst) {
  Node* a = forest_.get_or_create(*world_.root(), "a");
  Node* b = forest_.get_or_create(*world_.root(), "b");
  Node* aa = forest_.get_or_create(*a, "a");
  EXPECT_THAT(forest_.nodes_of(world_), ElementsAre(a, b, aa));
}

TEST_F(Trie, WorldsAreListedInTheOrderOfTheirRoots) {
  Namespace& last = forest_.open_namespace({.root = root_key(200)});
  Namespace& first = forest_.open_namespace({.root = root_key(0)});
  EXPECT_THAT(forest_.namespaces(), ElementsAre(&first, &world_, &last));
}

TEST_F(Trie, OrderAndResultsDoNotDependOnTheHashSeed) {
  const auto history = [](std::uint64_t seed) {
    Forest forest({.hash_seed = seed});
    Namespace& world = forest.open_namespace({.root = root_key(1), .sink_chunks = 1});
    for (int i = 0; i < 200; ++i) {
      Node* node = forest.get_or_create(*world.root(), std::to_string(i % 7));
      node = forest.get_or_create(*node, std::to_string(i * i % 31));
      forest.set_blob_ready(*node, kBlob);
    }
    std::vector<NodeKey> keys;
    for (const Node* node : eviction_order(forest)) keys.push_back(node->key());
    for (const Node* node : forest.nodes_of(world)) keys.push_back(node->key());
    return keys;
  };
  EXPECT_EQ(history(1), history(2));
}

using TrieDeathTest = Trie;

TEST_F(TrieDeathTest, ReleasingMoreThanWasAcquiredIsABrokenInvariant) {
  Node* node = ready_chain({"1"})[0];
  EXPECT_DEATH(forest_.release(std::vector<Node*>{node}), "released no more often than it was acquired");
}

TEST_F(TrieDeathTest, ClosingMoreThanWasOpenedIsABrokenInvariant) {
  forest_.close_namespace(world_);
  EXPECT_DEATH(forest_.close_namespace(world_), "closed no more often than it was opened");
}

TEST_F(TrieDeathTest, AVirtualRootHoldsNothing) {
  EXPECT_DEATH(forest_.set_blob_ready(*world_.root(), kBlob), "a virtual root has no blob");
  EXPECT_DEATH(forest_.set_skeleton_ready(*world_.root(), kSkeleton), "a virtual root has no skeleton");
}

// How many nodes a hundred steps of one kind visit in a forest of this size.
std::uint64_t visits_of_steps(std::uint32_t nodes) {
  Forest forest({.hash_seed = 3});
  Namespace& world = forest.open_namespace({.root = root_key(1), .sink_chunks = 1});
  constexpr std::uint32_t kDepth = 10;
  for (std::uint32_t i = 0; i < nodes / kDepth; ++i) {
    Node* at = world.root();
    for (std::uint32_t depth = 0; depth < kDepth; ++depth) {
      at = forest.get_or_create(*at, std::to_string(i));
      forest.set_blob_ready(*at, kBlob);
    }
  }
  const std::uint64_t before = forest.node_visits();
  for (std::uint32_t i = 0; i < 100; ++i) {
    const std::string action = std::to_string(i);
    const std::vector<std::string_view> actions(kDepth, action);
    Node* found = forest.lookup(world, actions);
    forest.acquire(std::vector<Node*>{found});
    Node* child = forest.get_or_create(*found, "next");
    forest.set_blob_ready(*child, kBlob);
    forest.release(std::vector<Node*>{found});
    forest.forget_blob(*forest.first_evictable());
  }
  return forest.node_visits() - before;
}

TEST(TrieGrowth, AStepVisitsNoMoreNodesInALargeForestThanInASmallOne) {
  // An index's buckets hold a link more or less, by chance.
  EXPECT_LE(visits_of_steps(100'000), visits_of_steps(1'000) * 11 / 10);
}

TEST(TrieGrowth, ANodeIsSmall) { EXPECT_LE(sizeof(Node), 320U); }

TEST_F(Trie, WhatIsReadyComesInTurnAndTheRoundBeginsAnew) {
  Node* first = forest_.get_or_create(*world_.root(), "a");
  Node* second = forest_.get_or_create(*first, "b");
  Node* third = forest_.get_or_create(*second, "c");
  forest_.set_blob_ready(*first, kBlob);
  forest_.set_skeleton_ready(*third, kSkeleton);
  std::uint64_t cursor = 0;
  EXPECT_EQ(forest_.next_ready(cursor, 1, 100), std::vector<Node*>{first});
  EXPECT_EQ(forest_.next_ready(cursor, 1, 100), std::vector<Node*>{third});
  EXPECT_EQ(forest_.next_ready(cursor, 1, 100), std::vector<Node*>{first});
  EXPECT_EQ(forest_.next_ready(cursor, 9, 100), (std::vector<Node*>{third, first})) << "each once in a round";
  EXPECT_TRUE(forest_.next_ready(cursor, 9, 1).empty()) << "it looked at one node only";
}

TEST_F(Trie, WhatWasSeenOfALaterEpochStaysSeen) {
  Node* node = forest_.get_or_create(*world_.root(), "a");
  forest_.restore_blob(*node, kBlob);
  EXPECT_TRUE(forest_.confirm_blob(*node, 2));
  EXPECT_FALSE(forest_.confirm_blob(*node, 1));
  EXPECT_EQ(node->blob().epoch, 2U);
}

}  // namespace
}  // namespace holdfast
