#include "holdfast/sim/oracle.hpp"

#include <gtest/gtest.h>

#include <set>

#include "holdfast/sim/cold_ring.hpp"
#include "holdfast/sim/pseudo_bytes.hpp"

namespace holdfast::sim {
namespace {

Geometry rolling(std::uint32_t chunk, std::uint32_t ring, std::uint32_t sinks) {
  Geometry geometry;
  geometry.frames_per_chunk = chunk;
  geometry.ring_frames = ring;
  geometry.sink_frames = sinks;
  geometry.full_length = false;
  geometry.latent_bytes = 64;
  return geometry;
}

std::vector<std::uint64_t> held(const ColdRing& ring) {
  std::vector<std::uint64_t> frames;
  for (std::size_t i = 0; i < ring.size(); ++i) frames.push_back(ring[i]);
  return frames;
}

TEST(ColdRing, KeepsItsSinksAndTheNewestFrames) {
  ColdRing ring;
  ring.configure(rolling(3, 7, 3));
  for (int chunk = 0; chunk < 2; ++chunk) ring.append_chunk();
  EXPECT_EQ(held(ring), (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}));
  const ColdRing::Dropped dropped = ring.append_chunk();
  EXPECT_EQ(dropped.first, 3U);
  EXPECT_EQ(dropped.count, 2U);
  EXPECT_EQ(held(ring), (std::vector<std::uint64_t>{0, 1, 2, 5, 6, 7, 8}));
  ring.append_chunk();
  EXPECT_EQ(held(ring), (std::vector<std::uint64_t>{0, 1, 2, 8, 9, 10, 11}));
  EXPECT_EQ(ring.frames_seen(), 12U);
}

TEST(ColdRing, SinksMayBeWiderThanAChunk) {
  ColdRing ring;
  ring.configure(rolling(2, 6, 3));
  for (int chunk = 0; chunk < 5; ++chunk) ring.append_chunk();
  EXPECT_EQ(held(ring), (std::vector<std::uint64_t>{0, 1, 2, 7, 8, 9}));
}

TEST(ColdRing, AFullLengthRingTakesNoMoreThanItsFrames) {
  Geometry geometry = rolling(2, 4, 0);
  geometry.full_length = true;
  ColdRing ring;
  ring.configure(geometry);
  ring.append_chunk();
  EXPECT_TRUE(ring.has_room());
  ring.append_chunk();
  EXPECT_FALSE(ring.has_room());
}

class OracleTest : public testing::Test {
 protected:
  [[nodiscard]] std::vector<NodeIndex> path(std::uint32_t world, const Geometry& declared, const Geometry& real,
                                            const std::vector<std::string>& actions) {
    return oracle_.path_of({world, real, declared, {}}, actions);
  }

  fakes::VirtualClock clock_;
  RunContext context_{clock_};
  Oracle oracle_{context_};
  Geometry geometry_ = rolling(2, 6, 1);
  std::vector<std::string> ab_{"\"a\"", "\"b\""};
  std::vector<std::string> ac_{"\"a\"", "\"c\""};
};

TEST_F(OracleTest, SessionsThatBeginAlikeShareTheirFirstNodes) {
  const auto first = path(1, geometry_, geometry_, ab_);
  const auto second = path(1, geometry_, geometry_, ac_);
  EXPECT_EQ(first[0], second[0]);
  EXPECT_NE(first[1], second[1]);
  EXPECT_EQ(oracle_.describe(second[1]), "world 1 [\"a\",\"c\"]");
}

TEST_F(OracleTest, IdentityDependsOnWorldAndDeclaredGeometryAndNotOnBreakEven) {
  Geometry other = geometry_;
  other.ring_frames = 8;
  Geometry lazier = geometry_;
  lazier.break_even_k = 3;
  const std::uint64_t identity = oracle_.node(path(1, geometry_, geometry_, ab_)[1]).identity;
  EXPECT_NE(identity, oracle_.node(path(2, geometry_, geometry_, ab_)[1]).identity);
  EXPECT_NE(identity, oracle_.node(path(1, other, other, ab_)[1]).identity);
  EXPECT_EQ(identity, oracle_.node(path(1, lazier, lazier, ab_)[1]).identity);
}

TEST_F(OracleTest, AnEngineOfAnotherLayoutWritesOtherBytesUnderTheSameIdentity) {
  Geometry other = geometry_;
  other.kv_token_bytes = {512};
  const NodeIndex right = path(1, geometry_, geometry_, ab_)[0];
  const NodeIndex mistaken = path(1, geometry_, other, ab_)[0];
  EXPECT_EQ(oracle_.node(right).identity, oracle_.node(mistaken).identity);
  EXPECT_NE(oracle_.node(right).seed, oracle_.node(mistaken).seed);
}

TEST_F(OracleTest, EveryFrameOfEveryValueHasADigestOfItsOwn) {
  geometry_.n_layers = 2;
  const auto nodes = path(1, geometry_, geometry_, ab_);
  std::set<std::uint64_t> digests;
  for (const NodeIndex node : nodes) {
    oracle_.work_out(node);
    for (std::size_t tensor = 0; tensor < 4; ++tensor) {
      for (std::uint32_t frame = 0; frame < 2; ++frame) digests.insert(oracle_.frame_digest(node, tensor, frame));
      digests.insert(oracle_.value_digest(node, tensor));
    }
    digests.insert(oracle_.node(node).latent_digest);
  }
  EXPECT_EQ(digests.size(), 2U * (4 * 3 + 1));
}

class JudgeTest : public OracleTest {
 protected:
  std::vector<std::byte> bytes(NodeIndex node, std::size_t tensor, std::uint32_t frame) {
    oracle_.work_out(node);
    std::vector<std::byte> out(256);
    fill_pseudo_bytes(out.data(), out.size(), Oracle::frame_seed(oracle_.node(node), tensor, frame));
    return out;
  }
  std::vector<NodeIndex> nodes_ = path(1, geometry_, geometry_, ab_);
};

TEST_F(JudgeTest, RightBytesAreRight) {
  EXPECT_FALSE(oracle_.judge(bytes(nodes_[1], 1, 1).data(), nodes_[1], 1, 1).has_value());
}

TEST_F(JudgeTest, AnotherFrameOrChunkOfTheWorldBreaksWholeWindow) {
  oracle_.work_out(nodes_[1]);
  for (const auto& found : {bytes(nodes_[1], 1, 0), bytes(nodes_[1], 0, 1), bytes(nodes_[0], 1, 1)}) {
    const auto wrong = oracle_.judge(found.data(), nodes_[1], 1, 1);
    ASSERT_TRUE(wrong.has_value());
    EXPECT_EQ(wrong->invariant, Invariant::whole_window);
  }
}

TEST_F(JudgeTest, AnotherWorldsBytesBreakIsolation) {
  const NodeIndex other = path(2, geometry_, geometry_, ab_)[1];
  oracle_.work_out(nodes_[1]);
  const auto wrong = oracle_.judge(bytes(other, 1, 1).data(), nodes_[1], 1, 1);
  ASSERT_TRUE(wrong.has_value());
  EXPECT_EQ(wrong->invariant, Invariant::namespace_isolation);
  EXPECT_NE(wrong->what.find("world 2"), std::string::npos) << wrong->what;
}

TEST_F(JudgeTest, UnknownBytesBreakExactBytesAndTheFirstWrongOneIsNamed) {
  auto found = bytes(nodes_[1], 1, 1);
  found[37] ^= std::byte{1};
  const auto wrong = oracle_.judge(found.data(), nodes_[1], 1, 1);
  ASSERT_TRUE(wrong.has_value());
  EXPECT_EQ(wrong->invariant, Invariant::exact_bytes);
  EXPECT_NE(wrong->what.find("first wrong byte at 37 of 256"), std::string::npos) << wrong->what;
}

TEST_F(JudgeTest, WhatSpreadFromAnErrorIsAConsequence) {
  auto found = bytes(nodes_[1], 1, 1);
  found[0] ^= std::byte{1};
  oracle_.note_spread(digest_of(found.data(), found.size()));
  const auto wrong = oracle_.judge(found.data(), nodes_[1], 1, 1);
  ASSERT_TRUE(wrong.has_value());
  EXPECT_TRUE(wrong->consequence);
}

}  // namespace
}  // namespace holdfast::sim
