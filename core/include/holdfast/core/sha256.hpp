// SHA-256 over length-prefixed parts: every key, root and fingerprint of the cache.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "holdfast/core/result.hpp"

namespace holdfast {

using Digest = std::array<std::uint8_t, 32>;

// Hashes, for each part, its length as 8 little-endian bytes and then the part, so that parts cannot run together.
// Callable from any thread; allocates nothing.
[[nodiscard]] Digest sha256_parts(std::span<const std::string_view> parts);
[[nodiscard]] Digest sha256_parts(std::initializer_list<std::string_view> parts);

// The digest's 32 bytes; lives as long as `digest`.
[[nodiscard]] std::string_view bytes_of(const Digest& digest);
std::string_view bytes_of(Digest&&) = delete;

// Lower-case hexadecimal, two characters a byte.
[[nodiscard]] std::string to_hex(std::string_view bytes);
[[nodiscard]] std::string to_hex(const Digest& digest);
void append_hex(std::string& out, std::string_view bytes);

// The inverses, for lower-case hexadecimal only; anything else is InvalidArgument with the place.
[[nodiscard]] Result<std::string> bytes_from_hex(std::string_view hex);
[[nodiscard]] Result<Digest> digest_from_hex(std::string_view hex);

}  // namespace holdfast
