#include "holdfast/core/keys.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "golden.hpp"
#include "holdfast/core/canonical_json.hpp"
#include "holdfast/core/hash.hpp"

namespace holdfast {
namespace {

using nlohmann::json;

NodeKey key_of(const json& hex) { return {digest_from_hex(hex.get<std::string>()).value()}; }

TEST(Sha256Parts, AgreesWithTheGoldenVectors) {
  for (const json& vector : test::golden("sha")) {
    std::vector<std::string> parts;
    for (const json& hex : vector["parts_hex"]) parts.push_back(test::from_hex(hex));
    const std::vector<std::string_view> views(parts.begin(), parts.end());
    EXPECT_EQ(to_hex(sha256_parts(views)), vector["digest_hex"]) << vector;
  }
}

TEST(Sha256Parts, PartsCannotRunTogether) {
  EXPECT_NE(sha256_parts({"ab", "c"}), sha256_parts({"a", "bc"}));
  EXPECT_NE(sha256_parts({"a"}), sha256_parts({"a", ""}));
}

TEST(Hex, ReadsBackWhatItWrote) {
  const std::string bytes("\x00\x7f\x80\xff", 4);
  EXPECT_EQ(to_hex(bytes), "007f80ff");
  EXPECT_EQ(bytes_from_hex("007f80ff").value(), bytes);
  const Digest digest = sha256_parts({"x"});
  EXPECT_EQ(digest_from_hex(to_hex(digest)).value(), digest);
}

TEST(Hex, WhatIsNotLowerCaseHexadecimalIsRefusedWithItsPlace) {
  const auto refusal = [](std::string_view hex) { return bytes_from_hex(hex).error().detail; };
  EXPECT_EQ(refusal("abc"), "3 characters: not an even number");
  EXPECT_EQ(refusal("abCd"), "character 2 is not a lower-case hexadecimal digit");
  EXPECT_EQ(refusal("abcg"), "character 3 is not a lower-case hexadecimal digit");
  EXPECT_EQ(digest_from_hex("ab").error().detail, "2 characters: a digest has 64");
  EXPECT_FALSE(digest_from_hex(std::string(63, '0') + "x"));
}

TEST(Hex, WhatFollowsAViewIsNotRead) {
  EXPECT_EQ(bytes_from_hex(std::string_view("00a-").substr(0, 2)).value(), std::string(1, '\0'));
}

TEST(Keys, ConfigHashAgreesWithTheGoldenVectors) {
  for (const json& vector : test::golden("config_blob_hash")) {
    const std::string canonical = canonical_json(vector["config"]).value();
    EXPECT_EQ(canonical, vector["canonical_utf8"]);
    const std::string weights = test::from_hex(vector["weights_fingerprint_hex"]);
    EXPECT_EQ(to_hex(config_hash({.config_json = canonical, .weights_fingerprint = weights})), vector["hash_hex"])
        << vector["name"];
  }
}

TEST(Keys, RootHashAgreesWithTheGoldenVectors) {
  int compared = 0;
  for (const json& vector : test::golden("root_hash")) {
    const std::string image = test::from_hex(vector["image_fp_hex"]);
    const std::string prompt = test::from_hex(vector["prompt_fp_hex"]);
    const std::string config = test::from_hex(vector["config_hash_hex"]);
    if (config.empty()) {
      EXPECT_EQ(to_hex(sha256_parts({"root", image, prompt, config})), vector["root_hash_hex"]);
      continue;
    }
    EXPECT_EQ(to_hex(root_hash({.image_fingerprint = image,
                                .prompt_fingerprint = prompt,
                                .config_hash = key_of(vector["config_hash_hex"]).digest})),
              vector["root_hash_hex"]);
    ++compared;
  }
  EXPECT_EQ(compared, 3);
}

TEST(Keys, NodeKeysSeedsAndLocatorsAgreeWithTheGoldenChains) {
  for (const json& chain : test::golden("node_key_chains")) {
    NodeKey key = key_of(chain["root_hash_hex"]);
    for (std::size_t i = 0; i < chain["actions"].size(); ++i) {
      const std::string action = canonical_json(chain["actions"][i]).value();
      EXPECT_EQ(to_hex(action), chain["action_bytes_hex"][i]);
      key = node_key(key, action);
      EXPECT_EQ(to_hex(key), chain["node_keys_hex"][i]) << chain["name"] << " " << i;
      EXPECT_EQ(std::to_string(chunk_seed(key)), chain["seeds_u64"][i]);
      EXPECT_EQ(kv_locator(key), chain["kv_locators"][i]);
      EXPECT_EQ(latent_locator(key), chain["latent_locators"][i]);
    }
  }
}

TEST(Keys, ChunkSeedAgreesWithTheGoldenVectors) {
  int compared = 0;
  for (const json& vector : test::golden("derive_seed")) {
    if (vector["node_key_hex"].get<std::string>().empty()) continue;
    EXPECT_EQ(std::to_string(chunk_seed(key_of(vector["node_key_hex"]))), vector["seed_u64"]);
    ++compared;
  }
  EXPECT_EQ(compared, 3);
}

TEST(Keys, AKvKeyNamesLocatorLayerAndPart) {
  EXPECT_EQ(kv_key("ab:kv", 0, KvPart::k), "ab:kv:L0:k");
  EXPECT_EQ(kv_key("ab:kv", 39, KvPart::v), "ab:kv:L39:v");
  EXPECT_EQ(kv_key("ab:kv", 4294967295, KvPart::k), "ab:kv:L4294967295:k");
  EXPECT_EQ(kv_key("ab:kv", 0, KvPart::k_scales), "ab:kv:L0:ks");
  EXPECT_EQ(kv_key("ab:kv", 4294967295, KvPart::v_scales), "ab:kv:L4294967295:vs");
}

TEST(KeyBatch, AChunksKeysAreInTheOrderOfItsAtomicGroup) {
  const NodeKey key = node_key({}, "1");
  KeyBatch batch;
  batch.add_chunk(key, {3});
  batch.add_latent(key);
  ASSERT_EQ(batch.size(), 7U);
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    EXPECT_EQ(batch[2 * layer], kv_key(kv_locator(key), layer, KvPart::k));
    EXPECT_EQ(batch[2 * layer + 1], kv_key(kv_locator(key), layer, KvPart::v));
  }
  EXPECT_EQ(batch[6], latent_locator(key));
}

TEST(KeyBatch, TheScalesOfALayerFollowItsKAndV) {
  const NodeKey key = node_key({}, "1");
  KeyBatch batch;
  batch.add_chunk(key, {2, kScaledParts});
  std::vector<std::string> names;
  for (const std::string_view name : batch.keys()) names.emplace_back(name.substr(kv_locator(key).size()));
  EXPECT_EQ(names,
            (std::vector<std::string>{":L0:k", ":L0:v", ":L0:ks", ":L0:vs", ":L1:k", ":L1:v", ":L1:ks", ":L1:vs"}));
}

RC_GTEST_PROP(KeyBatch, HoldsWhatWasAddedHoweverItGrewAndMoved, (const std::vector<std::string>& keys)) {
  KeyBatch batch;
  for (const std::string& key : keys) batch.add(key);
  const KeyBatch moved = std::move(batch);
  RC_ASSERT(std::vector<std::string>(moved.keys().begin(), moved.keys().end()) == keys);
}

TEST(Hash64, IsXxh3WhateverTheProcessorComputesItWith) {
  std::string bytes(5000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 131 >> 3);
  for (const std::size_t size : {0, 1, 16, 240, 241, 255, 1024, 1025, 4999}) {
    for (const std::uint64_t seed : {0ULL, 7ULL}) {
      EXPECT_EQ(hash64({bytes.data(), size}, seed), XXH3_64bits_withSeed(bytes.data(), size, seed)) << size;
    }
  }
}

TEST(SeededHash, FindsByViewAndDependsOnTheSeed) {
  std::unordered_map<std::string, int, SeededHash, std::equal_to<>> map(0, SeededHash(7));
  map.emplace("key", 1);
  EXPECT_EQ(map.find(std::string_view("key"))->second, 1);
  EXPECT_NE(hash64("key", 1), hash64("key", 2));
  EXPECT_NE(NodeKeyHash(1)({}), NodeKeyHash(2)({}));
}

}  // namespace
}  // namespace holdfast
