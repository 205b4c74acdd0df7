#include "holdfast/core/layout.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "holdfast/core/fluxon_runtime.hpp"

namespace holdfast {
namespace {

constexpr std::uint64_t kTooLarge = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kMaxDims = 8;

constexpr std::array<std::pair<std::string_view, std::uint64_t>, 10> kDtypes = {{
    {"bfloat16", 2},
    {"float16", 2},
    {"float32", 4},
    {"float64", 8},
    {"float8_e4m3fn", 1},
    {"float8_e5m2", 1},
    {"int8", 1},
    {"uint8", 1},
    {"int16", 2},
    {"int32", 4},
}};

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kTooLarge : product;
}

std::uint64_t elements(std::span<const std::int64_t> shape) {
  std::uint64_t product = 1;
  for (const std::int64_t size : shape) product = times(product, size < 0 ? 0 : static_cast<std::uint64_t>(size));
  return product;
}

std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kTooLarge : sum;
}

std::uint64_t chunk_bytes(const Layout& layout, std::span<const std::int64_t> token_shape, std::string_view dtype) {
  const std::uint64_t tokens = std::uint64_t{layout.chunk_size} * layout.frame_tokens;
  return times(tokens, times(elements(token_shape), dtype_bytes(dtype)));
}

Error refused(std::string detail) { return make_error(Errc::invalid_argument, "layout", std::move(detail)); }

Status validate_tensor(std::string_view name, std::span<const std::int64_t> shape, std::string_view dtype) {
  if (shape.empty() || shape.size() > kMaxDims) {
    return refused(fmt::format("{}_shape has {} dimensions: 1 to {} are expected", name, shape.size(), kMaxDims));
  }
  for (const std::int64_t size : shape) {
    if (size <= 0) return refused(fmt::format("{}_shape has a dimension of {}", name, size));
  }
  if (dtype_bytes(dtype) == 0) return refused(fmt::format("{}_dtype \"{}\" is unknown", name, dtype));
  return {};
}

Status validate_value(std::string_view name, std::uint64_t bytes) {
  if (bytes > kMaxValueBytes) {
    return refused(fmt::format("a {} value of {} bytes is above the store's limit of {}", name, bytes, kMaxValueBytes));
  }
  return {};
}

}  // namespace

std::uint64_t dtype_bytes(std::string_view dtype) {
  for (const auto& [name, bytes] : kDtypes) {
    if (name == dtype) return bytes;
  }
  return 0;
}

Status Layout::validate() const {
  if (storage_format.empty()) return refused("storage_format is empty");
  if (n_layers == 0 || n_layers > kMaxLayers) {
    return refused(fmt::format("n_layers is {}: 1 to {} are expected", n_layers, kMaxLayers));
  }
  if (chunk_size == 0) return refused("chunk_size is 0");
  if (frame_tokens == 0) return refused("frame_tokens is 0");
  if (Status kv = validate_tensor("kv", kv_shape, kv_dtype); !kv) return kv;
  if (Status kv = validate_value("KV", kv_value_bytes()); !kv) return kv;
  for (std::size_t i = 0; i < mixed_kv_shapes.size(); ++i) {
    if (Status kv = validate_tensor("mixed_kv", mixed_kv_shapes[i], kv_dtype); !kv) return kv;
    if (Status kv = validate_value("KV", chunk_bytes(*this, mixed_kv_shapes[i], kv_dtype)); !kv) return kv;
  }
  if (scale_shape.empty() != scale_dtype.empty()) {
    return refused("scale_shape and scale_dtype are given together or not at all");
  }
  if (has_scales()) {
    if (Status scales = validate_tensor("scale", scale_shape, scale_dtype); !scales) return scales;
    if (Status scales = validate_value("scale", chunk_bytes(*this, scale_shape, scale_dtype)); !scales) return scales;
    if (chunk_shape().values() > kMaxChunkValues) {
      return refused(fmt::format("{} layers with scales have {} values, at most {} are expected", n_layers,
                                 chunk_shape().values(), kMaxChunkValues));
    }
  }
  if (latent_shape.empty() != latent_dtype.empty()) {
    return refused("latent_shape and latent_dtype are given together or not at all");
  }
  if (!has_latent()) return {};
  if (Status latent = validate_tensor("latent", latent_shape, latent_dtype); !latent) return latent;
  return validate_value("latent", latent_bytes());
}

std::uint64_t Layout::kv_value_bytes() const { return chunk_bytes(*this, kv_shape, kv_dtype); }

std::uint64_t Layout::value_bytes(std::size_t index) const {
  const ChunkShape shape = chunk_shape();
  const auto part = static_cast<std::uint32_t>(shape.part_of(index));
  if (part >= kPlainParts) return chunk_bytes(*this, scale_shape, scale_dtype);
  if (mixed_kv_shapes.empty()) return kv_value_bytes();
  const std::size_t in_turn = std::size_t{kPlainParts} * shape.layer_of(index) + part;
  return chunk_bytes(*this, mixed_kv_shapes[in_turn % mixed_kv_shapes.size()], kv_dtype);
}

std::uint64_t Layout::blob_bytes() const {
  const std::size_t values = chunk_shape().values();
  if (mixed_kv_shapes.empty() && !has_scales()) return times(values, kv_value_bytes());
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < values; ++i) sum = plus(sum, value_bytes(i));
  return sum;
}

std::uint64_t Layout::latent_bytes() const {
  return has_latent() ? times(elements(latent_shape), dtype_bytes(latent_dtype)) : 0;
}

nlohmann::json Layout::to_config() const {
  nlohmann::json config = {
      {"storage_format", storage_format},
      {"n_layers", n_layers},
      {"kv_shape", kv_shape},
      {"kv_dtype", kv_dtype},
      {"latent_shape", latent_shape},
      {"latent_dtype", latent_dtype},
      {"chunk_size", chunk_size},
      {"frame_tokens", frame_tokens},
  };
  // Only where there are some: the others keep the fingerprint that they have.
  if (!mixed_kv_shapes.empty()) config["mixed_kv_shapes"] = mixed_kv_shapes;
  if (has_scales()) {
    config["scale_shape"] = scale_shape;
    config["scale_dtype"] = scale_dtype;
  }
  return config;
}

}  // namespace holdfast
