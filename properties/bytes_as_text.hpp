// Values of bytes, written as text in tests.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// As long as what `text` views.
inline std::span<const std::byte> text_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::vector<std::byte> owned_bytes(std::string_view text) {
  const auto bytes = text_bytes(text);
  return {bytes.begin(), bytes.end()};
}
inline std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace holdfast
