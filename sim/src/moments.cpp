#include "holdfast/sim/moments.hpp"

#include <fmt/format.h>

#include <array>

namespace holdfast::sim {
namespace {

constexpr std::array<std::string_view, 6> kThingNames{"", "put plan", "read plan", "handle", "batch", "stream"};

}  // namespace

std::string to_string(const Thing& thing) {
  if (thing.kind == ThingKind::none) return {};
  return fmt::format("{} {}", kThingNames.at(static_cast<std::size_t>(thing.kind)), thing.number);
}

}  // namespace holdfast::sim
