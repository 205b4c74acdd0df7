// Fast hashing with a seed (XXH3), for containers and checksums; not for keys, see sha256.hpp.
// A container that uses it is never iterated to an output: its order depends on the seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast {

[[nodiscard]] std::uint64_t hash64(std::string_view bytes, std::uint64_t seed);

// For std::unordered_map<std::string, T, SeededHash, std::equal_to<>>: found by view, without making a string.
struct SeededHash {
  using is_transparent = void;

  explicit SeededHash(std::uint64_t seed_value = 0) : seed(seed_value) {}
  [[nodiscard]] std::size_t operator()(std::string_view bytes) const { return hash64(bytes, seed); }

  std::uint64_t seed;
};

}  // namespace holdfast
