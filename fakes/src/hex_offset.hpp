// "+0x2000". Private to the owner's sources.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace holdfast::fakes {

inline std::string hex_offset(std::uint64_t offset) {
  char text[24];
  const int length = std::snprintf(text, sizeof text, "+0x%llx", static_cast<unsigned long long>(offset));
  return std::string(text, static_cast<std::size_t>(length));
}

}  // namespace holdfast::fakes
