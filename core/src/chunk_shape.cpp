#include "holdfast/core/chunk_shape.hpp"

#include <array>

namespace holdfast {
namespace {

constexpr std::array<std::string_view, kScaledParts> kPartNames{"k", "v", "ks", "vs"};

}  // namespace

std::string_view name_of(KvPart part) { return kPartNames[static_cast<std::size_t>(part)]; }

}  // namespace holdfast
