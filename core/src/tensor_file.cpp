#include "holdfast/core/tensor_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/core/hash.hpp"
#include "holdfast/core/sha256.hpp"

namespace holdfast {
namespace {

constexpr std::uint64_t kTensorChecksumSeed = 0;
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kKeyBytesAt = 12;
constexpr std::size_t kValueBytesAt = 16;
constexpr std::size_t kContentChecksumAt = 24;
constexpr std::size_t kHeaderChecksumAt = 32;

void put_number(std::string& file, std::size_t at, std::size_t bytes, std::uint64_t number) {
  for (std::size_t i = 0; i < bytes; ++i) file[at + i] = static_cast<char>(number >> (8 * i) & 0xff);
}

std::uint64_t number_at(std::string_view file, std::size_t at, std::size_t bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    number |= std::uint64_t{static_cast<std::uint8_t>(file[at + i])} << (8 * i);
  }
  return number;
}

Error bad_tensor_file(Errc errc, std::string detail) {
  return make_error(errc, "decode_tensor_file", std::move(detail));
}

Status check_header(std::string_view file) {
  const std::string_view begin = file.substr(0, kTensorFileMagic.size());
  if (begin != kTensorFileMagic.substr(0, begin.size())) {
    return bad_tensor_file(Errc::foreign_file, "it does not begin as a tensor's file does");
  }
  if (file.size() < kTensorFileHeaderBytes) {
    return bad_tensor_file(Errc::torn_file, fmt::format("it ends within its header, at {} of {} bytes", file.size(),
                                                        kTensorFileHeaderBytes));
  }
  if (const std::uint64_t version = number_at(file, kVersionAt, 4); version != kTensorFileVersion) {
    return bad_tensor_file(Errc::foreign_file,
                           fmt::format("it is of version {}, and this program reads {}", version, kTensorFileVersion));
  }
  if (hash64(file.substr(0, kHeaderChecksumAt), kTensorChecksumSeed) != number_at(file, kHeaderChecksumAt, 8)) {
    return bad_tensor_file(Errc::wrong_checksum, "its header has another checksum than was written");
  }
  return {};
}

}  // namespace

std::string tensor_file_name(std::string_view key) { return to_hex(sha256_parts({"tensor", key})) + ".tensor"; }

std::string encode_tensor_file(std::string_view key, std::span<const std::byte> value) {
  std::string file(kTensorFileHeaderBytes, '\0');
  file.reserve(kTensorFileHeaderBytes + key.size() + value.size());
  file += key;
  file.append(reinterpret_cast<const char*>(value.data()), value.size());
  std::copy(kTensorFileMagic.begin(), kTensorFileMagic.end(), file.begin());
  put_number(file, kVersionAt, 4, kTensorFileVersion);
  put_number(file, kKeyBytesAt, 4, key.size());
  put_number(file, kValueBytesAt, 8, value.size());
  const std::string_view bytes = file;
  put_number(file, kContentChecksumAt, 8, hash64(bytes.substr(kTensorFileHeaderBytes), kTensorChecksumSeed));
  put_number(file, kHeaderChecksumAt, 8, hash64(bytes.substr(0, kHeaderChecksumAt), kTensorChecksumSeed));
  return file;
}

Result<std::span<const std::byte>> decode_tensor_file(std::string_view file, std::string_view key) {
  if (Status header = check_header(file); !header) return std::move(header.error());
  const std::uint64_t key_bytes = number_at(file, kKeyBytesAt, 4);
  const std::uint64_t value_bytes = number_at(file, kValueBytesAt, 8);
  const std::string_view content = file.substr(kTensorFileHeaderBytes);
  const std::uint64_t value_there = content.size() - std::min<std::uint64_t>(key_bytes, content.size());
  if (content.size() < key_bytes || value_there < value_bytes) {
    return bad_tensor_file(Errc::torn_file,
                           fmt::format("it ends after {} bytes, and its header tells of a key of {} and a "
                                       "value of {}",
                                       file.size(), key_bytes, value_bytes));
  }
  if (value_there > value_bytes) {
    return bad_tensor_file(Errc::wrong_length,
                           fmt::format("{} bytes follow the {} of its value", value_there - value_bytes, value_bytes));
  }
  if (hash64(content, kTensorChecksumSeed) != number_at(file, kContentChecksumAt, 8)) {
    return bad_tensor_file(Errc::wrong_checksum, "its key or value has another checksum than was written");
  }
  if (content.substr(0, key_bytes) != key) return bad_tensor_file(Errc::foreign_file, "it holds another key's value");
  return std::as_bytes(std::span(content.substr(key_bytes)));
}

bool is_damaged_file(const Error& error) {
  return error.is(Errc::torn_file) || error.is(Errc::wrong_length) || error.is(Errc::wrong_checksum) ||
         error.is(Errc::foreign_file);
}

}  // namespace holdfast
