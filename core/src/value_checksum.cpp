#include "holdfast/core/value_checksum.hpp"

#include <string>
#include <string_view>

#include "holdfast/core/hash.hpp"

namespace holdfast {
namespace {

constexpr std::uint64_t kValueSeed = 0;
// Another one, so that a group of one value is not its value's checksum by chance of length.
constexpr std::uint64_t kFoldSeed = 1;

}  // namespace

std::uint64_t checksum_of_value(std::span<const std::byte> bytes) {
  return hash64({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, kValueSeed);
}

std::uint64_t checksum_of_slot(std::uintptr_t address, std::uint64_t bytes) {
  return hash64({reinterpret_cast<const char*>(address), bytes}, kValueSeed);
}

std::uint64_t fold_checksums(std::span<const std::uint64_t> of_values) {
  std::string bytes;
  bytes.reserve(of_values.size() * sizeof(std::uint64_t));
  for (const std::uint64_t value : of_values) {
    // Little-endian on every machine: snapshots keep it.
    for (unsigned shift = 0; shift < 64; shift += 8) bytes += static_cast<char>((value >> shift) & 0xff);
  }
  return hash64(bytes, kFoldSeed);
}

std::uint64_t checksum_of_slots(std::span<const std::uintptr_t> addresses, std::span<const std::uint64_t> value_bytes) {
  std::vector<std::uint64_t> of_values;
  of_values.reserve(addresses.size());
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    of_values.push_back(checksum_of_slot(addresses[i], value_bytes[i]));
  }
  return fold_checksums(of_values);
}

}  // namespace holdfast
