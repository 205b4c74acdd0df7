// The cache's keys: what identifies a world, a chunk of it, and each value of the chunk in the store.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/chunk_shape.hpp"
#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/core/sha256.hpp"

namespace holdfast {

// Identifies a chunk by everything that led to it. A virtual root's key is the root hash of its world.
struct NodeKey {
  Digest digest{};

  friend bool operator==(const NodeKey&, const NodeKey&) = default;
  friend auto operator<=>(const NodeKey&, const NodeKey&) = default;
};
[[nodiscard]] std::string to_hex(const NodeKey& key);

// For unordered containers; the seed must not show in any output.
struct NodeKeyHash {
  explicit NodeKeyHash(std::uint64_t seed_value = 0) : seed(seed_value) {}
  [[nodiscard]] std::size_t operator()(const NodeKey& key) const;

  std::uint64_t seed;
};

// `config_json` is canonical JSON.
struct ConfigParts {
  std::string_view config_json;
  std::string_view weights_fingerprint;
};
[[nodiscard]] Digest config_hash(const ConfigParts& parts);

struct WorldParts {
  std::string_view image_fingerprint;
  std::string_view prompt_fingerprint;
  Digest config_hash{};
};
[[nodiscard]] NodeKey root_hash(const WorldParts& parts);

// `action` is canonical JSON, so that integer 1 and string "1" differ.
[[nodiscard]] NodeKey node_key(const NodeKey& parent, std::string_view action);

// Seeds the random draws of the chunk.
[[nodiscard]] std::uint64_t chunk_seed(const NodeKey& key);

// `hex:kv` and `hex:lat`. A latent's Fluxon key is its locator.
[[nodiscard]] std::string kv_locator(const NodeKey& key);
[[nodiscard]] std::string latent_locator(const NodeKey& key);

// `{locator}:L{layer}:{name of the part}`, as `{locator}:L0:k`.
[[nodiscard]] std::string kv_key(std::string_view locator, std::uint32_t layer, KvPart part);

// Many keys in one allocation. The views of `keys()` live until the next change; moving the batch keeps them.
class KeyBatch {
 public:
  KeyBatch() = default;
  KeyBatch(KeyBatch&&) noexcept = default;
  KeyBatch& operator=(KeyBatch&&) noexcept = default;
  KeyBatch(const KeyBatch&) = delete;
  KeyBatch& operator=(const KeyBatch&) = delete;

  void add(std::string_view key);
  // Every value of a chunk in the order of an atomic group: L0:k, L0:v, L1:k, ...; with scales L0:k, L0:v, L0:ks,
  // L0:vs, L1:k, ...
  void add_chunk(const NodeKey& key, const ChunkShape& shape);
  void add_latent(const NodeKey& key);

  [[nodiscard]] Keys keys() const { return views_; }
  [[nodiscard]] std::size_t size() const { return views_.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t index) const { return views_[index]; }

 private:
  void make_room(std::size_t bytes);
  // Room for the key has been made.
  void add_kv(std::string_view locator, std::uint32_t layer, KvPart part);
  void close_key(std::size_t begin);

  // A vector, not a string: a moved string may carry its characters in itself.
  std::vector<char> arena_;
  std::vector<std::string_view> views_;
};

}  // namespace holdfast
