// Which host memory the fake device has pinned. A registration pins pages, not addresses: when its range is mapped anew
// it keeps the old bytes until it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "holdfast/core/cuda_runtime.hpp"

namespace holdfast::fakes {

// True when [base, base + bytes) and [other_base, other_base + other_bytes) share a byte; none of them is empty or
// overflows.
[[nodiscard]] constexpr bool overlap(std::uintptr_t base, std::uint64_t bytes, std::uintptr_t other_base,
                                     std::uint64_t other_bytes) {
  return base < other_base + other_bytes && other_base < base + bytes;
}

struct Registration {
  std::uintptr_t base = 0;
  std::uint64_t bytes = 0;
  HostAccess access = HostAccess::read_write;
};

enum class HostCover : std::uint8_t {
  registered,    // inside one registration
  read_only,     // inside one registration that the device may only read
  unregistered,  // touches none
  part,          // touches one and leaves it
};

class HostRegistrations {
 public:
  // For a range that neither is empty nor overflows.
  [[nodiscard]] Status add(const Registration& registration, std::uint64_t pinned_bytes_max);
  [[nodiscard]] Status remove(std::uintptr_t base);
  void clear();

  void declare_read_only(std::uintptr_t base, std::uint64_t bytes) { read_only_.push_back({base, bytes}); }
  void forget_declarations() { read_only_.clear(); }
  // True when some byte lies in a mapping declared read-only.
  [[nodiscard]] bool touches_read_only(std::uintptr_t base, std::uint64_t bytes) const;

  [[nodiscard]] HostCover cover(std::uintptr_t base, std::uint64_t bytes) const;
  // The registration that starts at `base`.
  [[nodiscard]] const Registration* starting_at(std::uintptr_t base) const;
  [[nodiscard]] std::span<const Registration> all() const { return registrations_; }
  [[nodiscard]] std::uint64_t pinned_bytes() const { return pinned_bytes_; }

  // Keeps today's bytes of the range for every registration that covers some of it.
  void remapped(std::uintptr_t base, std::uint64_t bytes);
  [[nodiscard]] bool any_stale() const { return !stale_.empty(); }
  // Calls `piece(bytes_at, offset, bytes)` for consecutive pieces of [base, base + bytes): where the device really
  // finds them, in the mapping or in the kept old bytes.
  void resolve(std::uintptr_t base, std::uint64_t bytes,
               const std::function<void(std::byte*, std::uint64_t, std::uint64_t)>& piece);

 private:
  struct Range {
    std::uintptr_t base = 0;
    std::uint64_t bytes = 0;
  };
  // Old bytes of a part of one registration. Disjoint, ordered by base.
  struct Stale {
    std::uintptr_t base = 0;
    std::uint64_t bytes = 0;
    std::vector<std::byte> old_bytes;
  };

  // Index of the first registration that ends after `address`.
  [[nodiscard]] std::size_t first_ending_after(std::uintptr_t address) const;
  void keep(std::uintptr_t base, std::uint64_t bytes);

  std::vector<Registration> registrations_;  // disjoint, ordered by base
  mutable std::size_t last_ = 0;             // most copies of a batch lie in one registration
  std::uint64_t pinned_bytes_ = 0;
  std::vector<Range> read_only_;
  std::vector<Stale> stale_;
};

}  // namespace holdfast::fakes
