// The low-level context costs a third of the one-shot call, and lives on the stack.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "holdfast/core/sha256.hpp"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>

namespace holdfast {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Writes out.size() bytes; the length of `hex` is the caller's to check. Gives the first bad place, or hex.size().
template <class Bytes>
std::size_t decode_hex(std::string_view hex, Bytes& out) {
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const int high = hex_value(hex[i]);
    const int low = hex_value(hex[i + 1]);
    if (high < 0) return i;
    if (low < 0) return i + 1;
    out[i / 2] = static_cast<typename Bytes::value_type>(high * 16 + low);
  }
  return hex.size();
}

Error bad_digit(std::size_t place) {
  return make_error(Errc::invalid_argument, "from_hex",
                    fmt::format("character {} is not a lower-case hexadecimal digit", place));
}

}  // namespace

Digest sha256_parts(std::span<const std::string_view> parts) {
  SHA256_CTX context;
  SHA256_Init(&context);
  for (const std::string_view part : parts) {
    std::array<std::uint8_t, 8> length{};
    for (std::size_t i = 0; i < length.size(); ++i) {
      length[i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(part.size()) >> (8 * i));
    }
    SHA256_Update(&context, length.data(), length.size());
    SHA256_Update(&context, part.data(), part.size());
  }
  Digest digest;
  SHA256_Final(digest.data(), &context);
  return digest;
}

Digest sha256_parts(std::initializer_list<std::string_view> parts) {
  return sha256_parts(std::span<const std::string_view>(parts.begin(), parts.size()));
}

std::string_view bytes_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

void append_hex(std::string& out, std::string_view bytes) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kHexDigits[byte >> 4];
    out += kHexDigits[byte & 15];
  }
}

std::string to_hex(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  append_hex(out, bytes);
  return out;
}

std::string to_hex(const Digest& digest) { return to_hex(bytes_of(digest)); }

Result<std::string> bytes_from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) {
    return make_error(Errc::invalid_argument, "from_hex", fmt::format("{} characters: not an even number", hex.size()));
  }
  std::string bytes(hex.size() / 2, '\0');
  const std::size_t place = decode_hex(hex, bytes);
  if (place != hex.size()) return bad_digit(place);
  return bytes;
}

Result<Digest> digest_from_hex(std::string_view hex) {
  Digest digest;
  if (hex.size() != digest.size() * 2) {
    return make_error(Errc::invalid_argument, "from_hex",
                      fmt::format("{} characters: a digest has {}", hex.size(), digest.size() * 2));
  }
  const std::size_t place = decode_hex(hex, digest);
  if (place != hex.size()) return bad_digit(place);
  return digest;
}

}  // namespace holdfast
