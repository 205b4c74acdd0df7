// Checksums of values from their put to their read: XXH3-64 of each value, folded in key order into one per atomic
// group.
//
// A put takes it of the slots after the wait for their copies and before the commit; a read compares it with the slots
// under its plan before any copy out of them. So it covers what happens in between: the owner, its network and disks,
// stray writes into the segment. It does not cover the copies: bytes that came wrong into the slot are what is summed,
// and bytes that a copy out of it spoils are seen by nobody. It tells damage, not malice: anybody can compute it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace holdfast {

// None: not known, so nothing is compared.
using GroupChecksum = std::optional<std::uint64_t>;

[[nodiscard]] std::uint64_t checksum_of_value(std::span<const std::byte> bytes);
// Of readable host memory.
[[nodiscard]] std::uint64_t checksum_of_slot(std::uintptr_t address, std::uint64_t bytes);

// Of a group, out of its values' in key order. Another order, count or value gives another one.
[[nodiscard]] std::uint64_t fold_checksums(std::span<const std::uint64_t> of_values);

// Of a group that lies in these slots, in key order.
[[nodiscard]] std::uint64_t checksum_of_slots(std::span<const std::uintptr_t> addresses,
                                              std::span<const std::uint64_t> value_bytes);

}  // namespace holdfast
