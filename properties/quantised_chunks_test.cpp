// Chunks whose K and V are quantised: their scale tensors belong to the chunk's group, whatever becomes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/core/snapshot.hpp"
#include "session_fixture.hpp"

namespace holdfast {
namespace {

using testing::_;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Invoke;

constexpr std::size_t kValuesOfAChunk = 8;  // two layers: K, V and the scales of each

WorldSpec scaled_world(const RingGeometry& ring) {
  WorldSpec spec = test_world(ring, 64, "scaled");
  spec.layout.scale_shape = {3};
  spec.layout.scale_dtype = "float16";
  return spec;
}

TEST(QuantisedWorld, TheRingHasAScaleTensorBesideEachOfKAndV) {
  const WorldSpec spec = scaled_world(kShortRing);
  const std::vector<std::uint64_t> lengths = value_lengths(spec.layout);
  EXPECT_THAT(lengths, ElementsAre(96, 96, 12, 12, 96, 96, 12, 12));
  std::vector<DeviceTensor> ring;
  for (const std::uint64_t bytes : lengths) ring.push_back({0x1000, 3 * bytes, 0, true});
  ASSERT_TRUE(check_ring(spec, ring).has_value());
  const std::vector<DeviceTensor> chunk = finalized_chunk(spec, ring, 4).value();
  EXPECT_EQ(chunk[0].data, 0x1000U + 96);
  EXPECT_EQ(chunk[2].data, 0x1000U + 12);
  EXPECT_EQ(chunk[2].bytes, 12U);
  ring.resize(4);
  EXPECT_FALSE(check_ring(spec, ring).has_value()) << "K and V alone";
}

TEST(QuantisedWorld, ScalesAreCopiedFrameByFrameWithWhatTheyScale) {
  const WorldSpec spec = scaled_world(kShortRing);
  const std::vector<std::uint32_t> path{0, 2, 3};
  const std::vector<CopyRun> runs = spec.ring.copy_runs(4, path).value();
  const std::vector<ReadCopy> copies = window_copies(spec.layout, path, runs);
  ASSERT_EQ(copies.size(), 3 * kValuesOfAChunk);
  for (std::size_t run = 0; run < runs.size(); ++run) {
    for (std::size_t i = 0; i < kValuesOfAChunk; ++i) {
      const ReadCopy& copy = copies[run * kValuesOfAChunk + i];
      const std::uint64_t bytes = i % 4 < 2 ? 96 : 12;
      EXPECT_EQ(copy.key, run * kValuesOfAChunk + i);
      EXPECT_EQ(copy.tensor, i);
      EXPECT_EQ(copy.tensor_offset, run * bytes);
      EXPECT_EQ(copy.bytes, bytes);
    }
  }
}

class QuantisedChunksTest : public SessionTest {
 protected:
  std::string value_key(const std::vector<std::string>& path, std::uint32_t layer, KvPart part) {
    return kv_key(kv_locator(node(spec, path)->key()), layer, part);
  }
  std::size_t stored_values(const std::vector<std::string>& path) {
    KeyBatch keys;
    keys.add_chunk(node(spec, path)->key(), spec.layout.chunk_shape());
    std::size_t stored = 0;
    for (const std::string_view key : keys.keys()) stored += owner.peek(key).has_value() ? 1 : 0;
    return stored;
  }

  const WorldSpec spec = scaled_world(kShortRing);
  const std::vector<std::string> actions{"0", "1", "2", "3"};
};

TEST_F(QuantisedChunksTest, AResumedRingIsTheColdOneScalesAndAll) {
  Session cold = open(spec);
  generate_all(cold, actions);
  settle();
  EXPECT_EQ(stored_values(actions), kValuesOfAChunk);
  EXPECT_EQ(owner.peek(value_key(actions, 1, KvPart::v_scales))->value_bytes, 12U);
  Session warm = open(spec);
  const Result<ResumeReceipt> receipt = resume(warm, actions);
  ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
  EXPECT_EQ(receipt->matched_chunks, 4U);
  EXPECT_EQ(receipt->bytes, 4 * 64 + 3 * (4 * 96 + 4 * 12));
  EXPECT_EQ(warm.engine->contents(), cold.engine->contents());
  EXPECT_TRUE(nothing_open());
}

TEST_F(QuantisedChunksTest, AChunkIsReadyOnlyWhenItsScalesAreStored) {
  Session session = open(spec);
  int puts = 0;
  // The latent's, those of K and V, those of the scales.
  EXPECT_CALL(fluxon, local_fast_put_commit(_)).Times(3).WillRepeatedly(Invoke([&](PlanPtr plan) {
    if (++puts == 3) {
      fakes::CommitChoice choice;
      choice.keys.assign(4, {fakes::KeyChoice::Fate::stored, 0, 0});
      choice.keys[2] = {fakes::KeyChoice::Fate::not_stored, static_cast<std::int32_t>(CommitCode::reservation_gone), 0};
      owner.choose_next_commit(choice);
    }
    return owner.local_fast_put_commit(plan);
  }));
  const Result<IngestReceipt> receipt = generate(session, "0");
  ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
  EXPECT_EQ(receipt->kv, IngestVerdict::failed);
  EXPECT_FALSE(ready(spec, {"0"}));
  // What is not routed yet cannot be removed at once.
  clock.advance_by(kSettleBound + kSecond);
  std::vector<Error> errors;
  manager.pump(errors);
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(stored_values({"0"}), 0U) << "K, V and the other scales are removed";
}

TEST_F(QuantisedChunksTest, WithoutOneOfItsScalesTheChunkIsWithdrawn) {
  Session cold = open(spec);
  generate_all(cold, actions);
  settle();
  ASSERT_TRUE(owner.evict(value_key(actions, 0, KvPart::k_scales)));
  Session warm = open(spec);
  const Result<ResumeReceipt> receipt = resume(warm, actions);
  ASSERT_TRUE(receipt.has_value());
  EXPECT_EQ(receipt->matched_chunks, 3U);
  EXPECT_FALSE(ready(spec, actions));
  EXPECT_TRUE(ready(spec, {"0", "1", "2"}));
}

TEST_F(QuantisedChunksTest, AnEvictionTakesTheScalesToo) {
  Session cold = open(spec);
  generate_all(cold, actions);
  settle();
  const std::uint64_t before = manager.accounted_bytes();
  const Result<EvictReceipt> evicted = manager.evict_blob(*node(spec, actions), absorbed);
  ASSERT_TRUE(evicted.has_value());
  EXPECT_EQ(evicted->freed_bytes, kValuesOfAChunk * kSlotAlignment);
  EXPECT_EQ(manager.accounted_bytes(), before - kValuesOfAChunk * kSlotAlignment);
  EXPECT_EQ(stored_values(actions), 0U);
}

TEST_F(QuantisedChunksTest, AChunkStoredWithoutScalesIsRefusedByALayoutThatHasThem) {
  WorldSpec plain = spec;
  plain.layout.scale_shape.clear();
  plain.layout.scale_dtype.clear();
  // As many bytes, under one root: a caller that forgot to make the layout part of its config.
  plain.layout.mixed_kv_shapes = {{54}};
  ASSERT_EQ(plain.layout.blob_bytes(), spec.layout.blob_bytes());
  Session writer = open(plain);
  generate_all(writer, {"0"});
  Session reader = open(spec);
  const Result<ResumeReceipt> receipt = resume(reader, {"0"});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(receipt.error().is(Errc::layout_mismatch));
  EXPECT_THAT(receipt.error().detail, HasSubstr("2 layers of 2 values"));
}

TEST(QuantisedSnapshot, KeepsThatThereAreScales) {
  Forest forest({});
  Node& node = *forest.get_or_create(*forest.touch_namespace({}).root(), "1");
  forest.set_blob_ready(node, {.nbytes = 8, .slot_bytes = 4096, .shape = {1, kScaledParts}});
  const std::string bytes = encode_snapshot(take_snapshot(forest));
  EXPECT_THAT(bytes, HasSubstr("\"version\":2,"));
  EXPECT_THAT(bytes, HasSubstr("\"kv\":{\"bytes\":8,\"layers\":1,\"parts\":4,\"slot_bytes\":4096}"));
  Forest restored({});
  restore_snapshot(decode_snapshot(bytes).value(), 0, restored);
  EXPECT_EQ(restored.namespaces().front()->root()->first_child()->blob().shape, (ChunkShape{1, kScaledParts}));
}

}  // namespace
}  // namespace holdfast
