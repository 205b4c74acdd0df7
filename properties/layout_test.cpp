#include "holdfast/core/layout.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "golden.hpp"
#include "holdfast/core/canonical_json.hpp"
#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/core/keys.hpp"

namespace holdfast {
namespace {

using nlohmann::json;

Layout real_model(std::uint32_t height, std::uint32_t width) {
  Layout layout;
  layout.n_layers = 40;
  layout.kv_shape = {40, 128};
  layout.latent_shape = {16, 3, height / 8, width / 8};
  layout.latent_dtype = "bfloat16";
  layout.chunk_size = 3;
  layout.frame_tokens = (height / 16) * (width / 16);
  return layout;
}

TEST(Layout, SizesAgreeWithTheGoldenVectors) {
  for (const json& vector : test::golden("bytes_per_chunk_kv")) {
    const Layout layout = real_model(vector["h"], vector["w"]);
    ASSERT_TRUE(layout.validate());
    EXPECT_EQ(layout.kv_value_bytes(), vector["one_key_bytes"]);
    EXPECT_EQ(layout.blob_bytes(), vector["bytes"]);
    EXPECT_EQ(layout.chunk_size * layout.frame_tokens, vector["chunk_tokens"]);
    EXPECT_EQ(layout.value_bytes(3), layout.kv_value_bytes());
  }
}

TEST(Layout, MixedShapesAreTakenInTurnInKeyOrder) {
  Layout layout = real_model(480, 832);
  layout.n_layers = 2;
  layout.mixed_kv_shapes = {{1}, {2}, {3, 2}};
  ASSERT_TRUE(layout.validate());
  const std::uint64_t unit = 4680 * 2;
  EXPECT_EQ(layout.value_bytes(0), unit);
  EXPECT_EQ(layout.value_bytes(1), 2 * unit);
  EXPECT_EQ(layout.value_bytes(2), 6 * unit);
  EXPECT_EQ(layout.value_bytes(3), unit);
  EXPECT_EQ(layout.blob_bytes(), 10 * unit);
}

TEST(Layout, EachOfKAndVHasScalesOfTheirOwnShapeAndType) {
  Layout layout = real_model(480, 832);
  layout.n_layers = 2;
  layout.kv_dtype = "int8";
  layout.mixed_kv_shapes = {{40, 128}, {40, 64}, {8, 64}};
  layout.scale_shape = {40};
  layout.scale_dtype = "float32";
  ASSERT_TRUE(layout.validate());
  EXPECT_EQ(layout.chunk_shape(), (ChunkShape{2, kScaledParts}));
  const std::uint64_t tokens = 4680;
  const std::uint64_t scales = tokens * 40 * 4;
  const std::vector<std::uint64_t> expected{tokens * 40 * 128, tokens * 40 * 64,  scales, scales,
                                            tokens * 8 * 64,   tokens * 40 * 128, scales, scales};
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(layout.value_bytes(i), expected[i]) << i;
    sum += expected[i];
  }
  EXPECT_EQ(layout.blob_bytes(), sum);
}

TEST(Layout, ALatentIsAsLargeAsItsShapeAndNoneIsNothing) {
  Layout layout = real_model(480, 832);
  EXPECT_EQ(layout.latent_bytes(), 16U * 3 * 60 * 104 * 2);
  layout.latent_shape.clear();
  layout.latent_dtype.clear();
  EXPECT_TRUE(layout.validate());
  EXPECT_FALSE(layout.has_latent());
  EXPECT_EQ(layout.latent_bytes(), 0U);
}

TEST(Layout, TheSeedsLayoutHasTheSeedsConfigHash) {
  for (const json& vector : test::golden("config_blob_hash")) {
    if (!vector["config"].contains("storage_format")) continue;
    Layout layout = real_model(480, 832);
    layout.storage_format = "fluxon-plan-python-cuda-v1";
    layout.kv_shape = {1, 4680, 40, 128};
    layout.latent_shape = {1, 16, 3, 60, 104};
    const std::string config = canonical_json(layout.to_config()).value();
    EXPECT_EQ(config, vector["canonical_utf8"]);
    const std::string weights = test::from_hex(vector["weights_fingerprint_hex"]);
    EXPECT_EQ(to_hex(config_hash({.config_json = config, .weights_fingerprint = weights})), vector["hash_hex"]);
    return;
  }
  FAIL() << "no golden layout";
}

TEST(Layout, AnyChangeGivesAnotherConfig) {
  const std::vector<std::function<void(Layout&)>> changes = {
      [](Layout&) {},
      [](Layout& layout) { layout.storage_format += "x"; },
      [](Layout& layout) { ++layout.n_layers; },
      [](Layout& layout) { ++layout.kv_shape[0]; },
      [](Layout& layout) { std::swap(layout.kv_shape[0], layout.kv_shape[1]); },
      [](Layout& layout) { layout.mixed_kv_shapes = {{40, 128}}; },
      [](Layout& layout) { layout.mixed_kv_shapes = {{40, 128}, {1}}; },
      [](Layout& layout) { layout.kv_dtype = "float16"; },
      [](Layout& layout) { ++layout.latent_shape[0]; },
      [](Layout& layout) { layout.latent_dtype = "float16"; },
      [](Layout& layout) { layout.scale_shape = {40}, layout.scale_dtype = "float16"; },
      [](Layout& layout) { layout.scale_shape = {20}, layout.scale_dtype = "float16"; },
      [](Layout& layout) { layout.scale_shape = {40}, layout.scale_dtype = "bfloat16"; },
      [](Layout& layout) { ++layout.chunk_size; },
      [](Layout& layout) { ++layout.frame_tokens; },
  };
  std::set<std::string> configs;
  for (const auto& change : changes) {
    Layout layout = real_model(480, 832);
    change(layout);
    configs.insert(canonical_json(layout.to_config()).value());
  }
  EXPECT_EQ(configs.size(), changes.size());
}

TEST(Layout, WhatCannotBeStoredIsRefusedWithTheReason) {
  const std::vector<std::pair<std::function<void(Layout&)>, std::string>> cases = {
      {[](Layout& layout) { layout.storage_format.clear(); }, "storage_format is empty"},
      {[](Layout& layout) { layout.n_layers = 0; }, "n_layers is 0"},
      {[](Layout& layout) { layout.n_layers = kMaxLayers + 1; }, "n_layers is 2049"},
      {[](Layout& layout) { layout.chunk_size = 0; }, "chunk_size is 0"},
      {[](Layout& layout) { layout.frame_tokens = 0; }, "frame_tokens is 0"},
      {[](Layout& layout) { layout.kv_shape.clear(); }, "kv_shape has 0 dimensions"},
      {[](Layout& layout) { layout.kv_shape.assign(9, 1); }, "kv_shape has 9 dimensions"},
      {[](Layout& layout) { layout.kv_shape[1] = 0; }, "kv_shape has a dimension of 0"},
      {[](Layout& layout) { layout.kv_shape[1] = -5; }, "kv_shape has a dimension of -5"},
      {[](Layout& layout) { layout.kv_dtype = "bfloat"; }, "kv_dtype \"bfloat\" is unknown"},
      {[](Layout& layout) { layout.kv_shape[0] = 1'000'000; }, "above the store's limit"},
      {[](Layout& layout) { layout.kv_shape.assign(3, std::numeric_limits<std::int64_t>::max()); },
       "above the store's limit"},
      {[](Layout& layout) { layout.kv_shape = {1LL << 32, 1LL << 32}; }, "above the store's limit"},
      {[](Layout& layout) { layout.mixed_kv_shapes = {{1}, {}}; }, "mixed_kv_shape has 0 dimensions"},
      {[](Layout& layout) { layout.mixed_kv_shapes = {{1}, {-1}}; }, "mixed_kv_shape has a dimension of -1"},
      {[](Layout& layout) { layout.mixed_kv_shapes = {{1}, {1'000'000'000}}; }, "above the store's limit"},
      {[](Layout& layout) { layout.scale_shape = {40}; }, "scale_shape and scale_dtype are given together"},
      {[](Layout& layout) { layout.scale_dtype = "int8"; }, "scale_shape and scale_dtype are given together"},
      {[](Layout& layout) { layout.scale_shape = {0}, layout.scale_dtype = "int8"; },
       "scale_shape has a dimension of 0"},
      {[](Layout& layout) { layout.scale_shape = {1}, layout.scale_dtype = "int9"; },
       "scale_dtype \"int9\" is unknown"},
      {[](Layout& layout) { layout.scale_shape = {1'000'000}, layout.scale_dtype = "int8"; }, "a scale value of"},
      {[](Layout& layout) { layout.n_layers = 1025, layout.scale_shape = {1}, layout.scale_dtype = "int8"; },
       "1025 layers with scales have 4100 values"},
      {[](Layout& layout) { layout.latent_shape.clear(); }, "given together or not at all"},
      {[](Layout& layout) { layout.latent_dtype.clear(); }, "given together or not at all"},
      {[](Layout& layout) { layout.latent_shape[2] = 0; }, "latent_shape has a dimension of 0"},
      {[](Layout& layout) { layout.latent_dtype = "text"; }, "latent_dtype \"text\" is unknown"},
      {[](Layout& layout) { layout.latent_shape[2] = 1'000'000; }, "a latent value of"},
  };
  for (const auto& [spoil, reason] : cases) {
    Layout layout = real_model(480, 832);
    spoil(layout);
    const Status status = layout.validate();
    ASSERT_FALSE(status) << reason;
    EXPECT_TRUE(status.error().is(Errc::invalid_argument));
    EXPECT_NE(status.error().detail.find(reason), std::string::npos) << status.error().detail;
  }
}

TEST(Layout, AValueOfTheStoresLimitIsTaken) {
  Layout layout = real_model(480, 832);
  layout.chunk_size = 1;
  layout.frame_tokens = 1;
  layout.kv_dtype = "uint8";
  layout.kv_shape = {static_cast<std::int64_t>(kMaxValueBytes)};
  EXPECT_TRUE(layout.validate());
  ++layout.kv_shape[0];
  EXPECT_FALSE(layout.validate());
}

TEST(Layout, AsManyLayersAndDimensionsAsAreAllowedAreTaken) {
  Layout layout = real_model(480, 832);
  layout.n_layers = kMaxLayers;
  layout.kv_shape.assign(8, 1);
  EXPECT_TRUE(layout.validate());
  layout.n_layers = kMaxLayers / 2;
  layout.scale_shape = {1};
  layout.scale_dtype = "int8";
  EXPECT_TRUE(layout.validate());
}

}  // namespace
}  // namespace holdfast
