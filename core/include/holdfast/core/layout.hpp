// What a chunk's bytes mean: shapes, types and counts. It is part of the config hash, so that bytes of another layout
// are a cold miss and never reinterpreted.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/chunk_shape.hpp"
#include "holdfast/core/result.hpp"

namespace holdfast {

inline constexpr std::string_view kStorageFormat = "holdfast-raw-v1";
inline constexpr std::uint32_t kMaxLayers = 2048;
inline constexpr std::size_t kMaxChunkValues = 4096;  // a chunk's keys fit one put group

// The bytes of one element of `dtype` ("bfloat16", "float32", ...); 0 when unknown.
[[nodiscard]] std::uint64_t dtype_bytes(std::string_view dtype);

// A KV value holds one chunk's K or V of one layer: chunk_size * frame_tokens tokens of `kv_shape` elements each. Of
// quantised K and V, two more values of each layer hold their scales: as many tokens of `scale_shape` elements each.
// The sizes are exact once validate() succeeded; before, they stop at the largest number instead of wrapping.
struct Layout {
  std::string storage_format{kStorageFormat};
  std::uint32_t n_layers = 0;
  std::vector<std::int64_t> kv_shape;  // of one token: heads, head size
  // Where K and V, or the layers, differ: the shapes that their values take in turn (L0:k, L0:v, L1:k, ...).
  // Empty: all are of kv_shape.
  std::vector<std::vector<std::int64_t>> mixed_kv_shapes;
  std::string kv_dtype = "bfloat16";
  std::vector<std::int64_t> scale_shape;   // of one token, for K and V alike; empty: K and V are not quantised
  std::string scale_dtype;                 // empty exactly when the shape is
  std::vector<std::int64_t> latent_shape;  // of one chunk; empty: no latents are kept
  std::string latent_dtype;                // empty exactly when the shape is
  std::uint32_t chunk_size = 0;            // frames per chunk
  std::uint32_t frame_tokens = 0;          // tokens per frame

  [[nodiscard]] Status validate() const;

  [[nodiscard]] bool has_scales() const { return !scale_shape.empty(); }
  [[nodiscard]] ChunkShape chunk_shape() const { return {n_layers, has_scales() ? kScaledParts : kPlainParts}; }
  [[nodiscard]] bool has_latent() const { return !latent_shape.empty(); }
  [[nodiscard]] std::uint64_t kv_value_bytes() const;                // one K or V value of one chunk, of kv_shape
  [[nodiscard]] std::uint64_t value_bytes(std::size_t index) const;  // of the value at this place in key order
  [[nodiscard]] std::uint64_t blob_bytes() const;                    // all values of one chunk but its latent
  [[nodiscard]] std::uint64_t latent_bytes() const;                  // 0 when no latents are kept

  // The fingerprint as members of the config that is hashed; a caller merges its own members into it.
  [[nodiscard]] nlohmann::json to_config() const;

  friend bool operator==(const Layout&, const Layout&) = default;
};

}  // namespace holdfast
