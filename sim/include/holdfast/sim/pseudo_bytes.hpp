// Bytes and numbers that are a function of a seed, the same on every machine. Cheap rather than secret.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace holdfast::sim {

// Folds the 128-bit product: every bit of the result depends on every bit of both.
[[nodiscard]] inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a ^ 0x9E37'79B9'7F4A'7C15ULL) * (b ^ 0xD6E8'FEB8'6659'FD93ULL);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64) ^ b;
}

// XXH3 of the bytes, 64 bits.
[[nodiscard]] std::uint64_t digest_of(const void* data, std::uint64_t bytes);
[[nodiscard]] std::uint64_t digest_of(std::string_view text);

// Fills `out` with the stream that `seed` starts. A shorter stream is a prefix of a longer one.
inline void fill_pseudo_bytes(std::byte* out, std::uint64_t bytes, std::uint64_t seed) {
  std::uint64_t state = seed;
  std::uint64_t at = 0;
  const auto next = [&state] {
    state += 0x9E37'79B9'7F4A'7C15ULL;
    std::uint64_t word = state;
    word ^= word >> 32;
    word *= 0xD6E8'FEB8'6659'FD93ULL;
    word ^= word >> 29;
    return word;
  };
  for (; at + 8 <= bytes; at += 8) {
    const std::uint64_t word = next();
    std::memcpy(out + at, &word, 8);
  }
  if (at < bytes) {
    const std::uint64_t word = next();
    std::memcpy(out + at, &word, bytes - at);
  }
}

}  // namespace holdfast::sim
