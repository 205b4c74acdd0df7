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
  if (latent_shape.empty() != latent_dtype.empty()) {
    return refused("latent_shape and latent_dtype are given together or not at all");
  }
  if (!has_latent()) return {};
  if (Status latent = validate_tensor("latent", latent_shape, latent_dtype); !latent) return latent;
  return validate_value("latent", latent_bytes());
}

std::uint64_t Layout::frame_bytes() const {
  return times(frame_tokens, times(elements(kv_shape), dtype_bytes(kv_dtype)));
}

std::uint64_t Layout::kv_value_bytes() const { return times(chunk_size, frame_bytes()); }

std::uint64_t Layout::blob_bytes() const { return times(std::uint64_t{2} * n_layers, kv_value_bytes()); }

std::uint64_t Layout::latent_bytes() const {
  return has_latent() ? times(elements(latent_shape), dtype_bytes(latent_dtype)) : 0;
}

nlohmann::json Layout::to_config() const {
  return {
      {"storage_format", storage_format},
      {"n_layers", n_layers},
      {"kv_shape", kv_shape},
      {"kv_dtype", kv_dtype},
      {"latent_shape", latent_shape},
      {"latent_dtype", latent_dtype},
      {"chunk_size", chunk_size},
      {"frame_tokens", frame_tokens},
  };
}

}  // namespace holdfast
