// Which values a chunk has in the store: the tensors of each of its layers, by name. All of them are one group: they
// are stored, found, restored and removed together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace holdfast {

// The tensors of a layer, in key order. The scales are those that K and V were quantised with.
enum class KvPart : std::uint8_t { k, v, k_scales, v_scales };

inline constexpr std::uint32_t kPlainParts = 2;   // K and V
inline constexpr std::uint32_t kScaledParts = 4;  // and the scales of each

// As its values' keys end: "k", "v", "ks", "vs".
[[nodiscard]] std::string_view name_of(KvPart part);

// The values of a chunk in key order: all parts of layer 0, all parts of layer 1, ...
struct ChunkShape {
  std::uint32_t n_layers = 0;
  std::uint32_t parts = kPlainParts;  // of each layer: the first so many of KvPart; kPlainParts or kScaledParts

  [[nodiscard]] std::size_t values() const { return std::size_t{n_layers} * parts; }
  [[nodiscard]] std::uint32_t layer_of(std::size_t value) const { return static_cast<std::uint32_t>(value / parts); }
  [[nodiscard]] KvPart part_of(std::size_t value) const { return static_cast<KvPart>(value % parts); }

  friend bool operator==(const ChunkShape&, const ChunkShape&) = default;
};

}  // namespace holdfast
