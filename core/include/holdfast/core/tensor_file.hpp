// A tensor as a file: a header of lengths and XXH3 checksums, the key, the value. Nothing that is not exactly what was
// encoded passes for a value.
//
//   bytes   little-endian
//   0..7    "HFTENSOR"
//   8..11   version
//   12..15  bytes of the key
//   16..23  bytes of the value
//   24..31  XXH3 of key and value
//   32..39  XXH3 of the 32 bytes before
//   40..    the key, then the value, then the end of the file
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/result.hpp"

namespace holdfast {

inline constexpr std::string_view kTensorFileMagic = "HFTENSOR";
inline constexpr std::uint32_t kTensorFileVersion = 1;
inline constexpr std::uint64_t kTensorFileHeaderBytes = 40;

// The same name for the same key, of lower-case letters, digits and one point whatever the key is: 64 characters of
// SHA-256 and ".tensor".
[[nodiscard]] std::string tensor_file_name(std::string_view key);

// `key` is shorter than 4 GiB.
[[nodiscard]] std::string encode_tensor_file(std::string_view key, std::span<const std::byte> value);

// The place of `key`'s value in `file`, which keeps the bytes. Otherwise, with what is wrong and where:
//   TornFile       it ends too early
//   WrongLength    it goes on too long
//   WrongChecksum  a byte changed
//   ForeignFile    no tensor file, one of another version, or another key's
[[nodiscard]] Result<std::span<const std::byte>> decode_tensor_file(std::string_view file, std::string_view key);

// One of the four: what the file holds is as good as gone, and putting the key again replaces it.
[[nodiscard]] bool is_damaged_file(const Error& error);

}  // namespace holdfast
