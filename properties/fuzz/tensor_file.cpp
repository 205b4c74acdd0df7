// The input is a byte of flags (see TensorFlag) and a tensor's file. Sealed, the file gets the checksums that fit it,
// or hardly any input would pass them.
#include "holdfast/core/tensor_file.hpp"

#include <algorithm>
#include <cstring>

#include "holdfast/core/hash.hpp"
#include "readers.hpp"

namespace holdfast::fuzz {
namespace {

enum TensorFlag : unsigned { kSealed = 1, kFixedKey = 2 };

constexpr std::size_t kHeader = kTensorFileHeaderBytes;

void put_hash(std::string& file, std::size_t at, std::string_view of) {
  const std::uint64_t hash = hash64(of, 0);
  for (std::size_t i = 0; i < 8; ++i) file[at + i] = static_cast<char>(hash >> (8 * i) & 0xff);
}

void seal(std::string& file) {
  if (file.size() < kHeader) return;
  put_hash(file, 24, std::string_view(file).substr(kHeader));
  put_hash(file, 32, std::string_view(file).substr(0, 32));
}

// The key that the file claims to be of, as far as it is there.
std::string claimed_key(std::string_view file) {
  if (file.size() < kHeader) return {};
  std::uint32_t key_bytes = 0;
  std::memcpy(&key_bytes, file.data() + 12, sizeof(key_bytes));
  return std::string(file.substr(kHeader, key_bytes));
}

}  // namespace

Verdict read_as_tensor_file(std::string_view bytes) {
  const unsigned flags = bytes.empty() ? 0U : static_cast<unsigned char>(bytes[0]);
  std::string file(bytes.substr(std::min<std::size_t>(bytes.size(), 1)));
  if ((flags & kSealed) != 0) seal(file);
  const std::string key = (flags & kFixedKey) != 0 ? "key" : claimed_key(file);
  const Result<std::span<const std::byte>> value = decode_tensor_file(file, key);
  // What this program wrote for this key is these bytes and no others.
  const std::string_view rest = std::string_view(file).substr(std::min(file.size(), kHeader + key.size()));
  const bool wanted = file == encode_tensor_file(key, std::as_bytes(std::span(rest)));
  if (value.has_value() != wanted) {
    return {!wanted, wanted ? "a good file is refused: " + to_string(value.error()) : "a bad file is accepted"};
  }
  if (!value) return {false, is_damaged_file(value.error()) ? "" : "refused as " + to_string(value.error())};
  const auto expected = std::as_bytes(std::span(rest));
  return {true, std::ranges::equal(*value, expected) ? "" : "another value than the file's"};
}

}  // namespace holdfast::fuzz
