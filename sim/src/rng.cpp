#include "holdfast/sim/rng.hpp"

#include <bit>
#include <numeric>

#include "holdfast/core/check.hpp"

namespace holdfast::sim {
namespace {

std::uint64_t splitmix64(std::uint64_t& state) {
  state += 0x9E37'79B9'7F4A'7C15;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9;
  z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EB;
  return z ^ (z >> 31);
}

}  // namespace

Rng::Rng(std::uint64_t seed) {
  for (std::uint64_t& word : state_) word = splitmix64(seed);
}

Rng::result_type Rng::operator()() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

// Lemire's multiplication, and rejection of what would make some results likelier than others.
std::uint64_t Rng::below(std::uint64_t bound) {
  check(bound != 0, "a random number below 0 was asked for");
  auto product = static_cast<unsigned __int128>((*this)()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold) product = static_cast<unsigned __int128>((*this)()) * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

std::size_t Rng::weighted(std::span<const std::uint32_t> weights) {
  std::uint64_t left = below(std::accumulate(weights.begin(), weights.end(), std::uint64_t{0}));
  std::size_t index = 0;
  while (left >= weights[index]) left -= weights[index++];
  return index;
}

Rng Rng::split() { return Rng((*this)()); }

}  // namespace holdfast::sim
