#include "holdfast/sim/pseudo_bytes.hpp"

#include "holdfast/core/hash.hpp"

namespace holdfast::sim {

std::uint64_t digest_of(const void* data, std::uint64_t bytes) {
  return hash64({static_cast<const char*>(data), static_cast<std::size_t>(bytes)}, 0);
}

std::uint64_t digest_of(std::string_view text) { return hash64(text, 0); }

}  // namespace holdfast::sim
