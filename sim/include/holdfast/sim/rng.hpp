// Random numbers that are the same everywhere: xoshiro256**, seeded by splitmix64, with distributions of whole numbers.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace holdfast::sim {

// Fits where a generator is expected, but the library's distributions differ between machines: use those here.
class Rng {
 public:
  using result_type = std::uint64_t;

  explicit Rng(std::uint64_t seed);

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~0ULL; }
  result_type operator()();

  // Uniform in [0, bound). `bound` is not 0.
  std::uint64_t below(std::uint64_t bound);
  // Uniform in [first, last].
  std::uint64_t between(std::uint64_t first, std::uint64_t last) { return first + below(last - first + 1); }
  // True in `numerator` of `denominator` cases.
  bool ratio(std::uint64_t numerator, std::uint64_t denominator) { return below(denominator) < numerator; }
  // An index, in proportion to its weight. At least one weight is not 0.
  std::size_t weighted(std::span<const std::uint32_t> weights);
  template <class T>
  const T& pick(std::span<const T> items) {
    return items[below(items.size())];
  }
  // A generator of its own, so that what one part draws changes nothing for another.
  Rng split();

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace holdfast::sim
