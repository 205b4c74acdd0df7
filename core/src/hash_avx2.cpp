// Compiled with -mavx2 where the machine is an x86-64 (CMakeLists.txt), and empty elsewhere.
#include "hash_avx2.hpp"

#if defined(__AVX2__)
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace holdfast {

std::uint64_t hash64_avx2(std::string_view bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace holdfast
#endif
