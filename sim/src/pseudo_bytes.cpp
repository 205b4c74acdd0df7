#include "holdfast/sim/pseudo_bytes.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace holdfast::sim {

std::uint64_t digest_of(const void* data, std::uint64_t bytes) { return XXH3_64bits(data, bytes); }

std::uint64_t digest_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

}  // namespace holdfast::sim
