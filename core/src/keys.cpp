#include "holdfast/core/keys.hpp"

#include <algorithm>
#include <charconv>

#include "holdfast/core/hash.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kHexBytes = 64;
constexpr std::string_view kKvSuffix = ":kv";
constexpr std::string_view kLatentSuffix = ":lat";
constexpr std::size_t kLayerSuffixBytesMax = 15;  // ":L4294967295:ks"

std::string locator(const NodeKey& key, std::string_view suffix) {
  std::string out;
  out.reserve(kHexBytes + suffix.size());
  append_hex(out, bytes_of(key.digest));
  out += suffix;
  return out;
}

// Returns the suffix's length.
std::size_t write_layer_suffix(char* out, std::uint32_t layer, KvPart part) {
  out[0] = ':';
  out[1] = 'L';
  char* end = std::to_chars(out + 2, out + kLayerSuffixBytesMax, layer).ptr;
  *end++ = ':';
  end = std::copy_n(name_of(part).data(), name_of(part).size(), end);
  return static_cast<std::size_t>(end - out);
}

}  // namespace

std::string to_hex(const NodeKey& key) { return to_hex(key.digest); }

std::size_t NodeKeyHash::operator()(const NodeKey& key) const { return hash64(bytes_of(key.digest), seed); }

Digest config_hash(const ConfigParts& parts) {
  return sha256_parts({"cfg", parts.config_json, parts.weights_fingerprint});
}

NodeKey root_hash(const WorldParts& parts) {
  return {sha256_parts({"root", parts.image_fingerprint, parts.prompt_fingerprint, bytes_of(parts.config_hash)})};
}

NodeKey node_key(const NodeKey& parent, std::string_view action) {
  return {sha256_parts({"node", bytes_of(parent.digest), action})};
}

std::uint64_t chunk_seed(const NodeKey& key) {
  const Digest digest = sha256_parts({"seed", bytes_of(key.digest)});
  std::uint64_t seed = 0;
  for (std::size_t i = 0; i < 8; ++i) seed |= static_cast<std::uint64_t>(digest[i]) << (8 * i);
  return seed;
}

std::string kv_locator(const NodeKey& key) { return locator(key, kKvSuffix); }

std::string latent_locator(const NodeKey& key) { return locator(key, kLatentSuffix); }

std::string kv_key(std::string_view locator, std::uint32_t layer, KvPart part) {
  char suffix[kLayerSuffixBytesMax];
  const std::size_t suffix_bytes = write_layer_suffix(suffix, layer, part);
  std::string out;
  out.reserve(locator.size() + suffix_bytes);
  out += locator;
  out.append(suffix, suffix_bytes);
  return out;
}

void KeyBatch::make_room(std::size_t bytes) {
  const std::size_t needed = arena_.size() + bytes;
  if (needed <= arena_.capacity()) return;
  const char* before = arena_.data();
  arena_.reserve(std::max(needed, 2 * arena_.capacity()));
  for (std::string_view& view : views_) view = {arena_.data() + (view.data() - before), view.size()};
}

void KeyBatch::close_key(std::size_t begin) { views_.emplace_back(arena_.data() + begin, arena_.size() - begin); }

void KeyBatch::add(std::string_view key) {
  make_room(key.size());
  const std::size_t begin = arena_.size();
  arena_.insert(arena_.end(), key.begin(), key.end());
  close_key(begin);
}

void KeyBatch::add_kv(std::string_view locator, std::uint32_t layer, KvPart part) {
  char suffix[kLayerSuffixBytesMax];
  const std::size_t suffix_bytes = write_layer_suffix(suffix, layer, part);
  const std::size_t begin = arena_.size();
  arena_.resize(begin + locator.size() + suffix_bytes);
  char* const key = arena_.data() + begin;
  std::copy_n(suffix, suffix_bytes, std::copy_n(locator.data(), locator.size(), key));
  close_key(begin);
}

void KeyBatch::add_chunk(const NodeKey& key, const ChunkShape& shape) {
  const std::string locator = kv_locator(key);
  const std::size_t keys = shape.values();
  views_.reserve(views_.size() + keys);
  make_room(keys * (locator.size() + kLayerSuffixBytesMax));
  for (std::size_t i = 0; i < keys; ++i) add_kv(locator, shape.layer_of(i), shape.part_of(i));
}

void KeyBatch::add_latent(const NodeKey& key) { add(latent_locator(key)); }

}  // namespace holdfast
