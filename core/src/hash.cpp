#include "holdfast/core/hash.hpp"

#include "hash_avx2.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace holdfast {

std::uint64_t hash64(std::string_view bytes, std::uint64_t seed) {
#if defined(HOLDFAST_HASH_AVX2)
  // Up to 240 bytes XXH3 has forms of its own, which wider registers do not help.
  if (bytes.size() > 240 && __builtin_cpu_supports("avx2")) return hash64_avx2(bytes, seed);
#endif
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace holdfast
