// The same hash as hash64, for processors with AVX2: two to three times as fast on values of kilobytes.
#pragma once

#include <cstdint>
#include <string_view>

namespace holdfast {

[[nodiscard]] std::uint64_t hash64_avx2(std::string_view bytes, std::uint64_t seed);

}  // namespace holdfast
