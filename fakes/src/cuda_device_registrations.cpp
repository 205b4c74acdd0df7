#include "holdfast/fakes/cuda_device_registrations.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::fakes {
Status HostRegistrations::add(const Registration& registration, std::uint64_t pinned_bytes_max) {
  const std::size_t at = first_ending_after(registration.base);
  if (at < registrations_.size() && registrations_[at].base < registration.base + registration.bytes) {
    return cuda_error(CudaErrc::host_memory_already_registered, "host_register");
  }
  if (registration.access == HostAccess::read_write && touches_read_only(registration.base, registration.bytes)) {
    return cuda_error(CudaErrc::invalid_value, "host_register", "the mapping is read-only");
  }
  if (pinned_bytes_ > pinned_bytes_max || registration.bytes > pinned_bytes_max - pinned_bytes_) {
    return cuda_error(CudaErrc::memory_allocation, "host_register");
  }
  registrations_.insert(registrations_.begin() + static_cast<std::ptrdiff_t>(at), registration);
  pinned_bytes_ += registration.bytes;
  return {};
}

Status HostRegistrations::remove(std::uintptr_t base) {
  const std::size_t at = first_ending_after(base);
  if (at == registrations_.size() || registrations_[at].base > base) {
    return cuda_error(CudaErrc::host_memory_not_registered, "host_unregister");
  }
  const Registration registration = registrations_[at];
  if (registration.base != base) {
    return cuda_error(CudaErrc::invalid_value, "host_unregister", "inside a registered range");
  }
  registrations_.erase(registrations_.begin() + static_cast<std::ptrdiff_t>(at));
  pinned_bytes_ -= registration.bytes;
  std::erase_if(stale_, [&](const Stale& stale) {
    return overlap(stale.base, stale.bytes, registration.base, registration.bytes);
  });
  return {};
}

void HostRegistrations::clear() {
  registrations_.clear();
  stale_.clear();
  pinned_bytes_ = 0;
}

bool HostRegistrations::touches_read_only(std::uintptr_t base, std::uint64_t bytes) const {
  return std::any_of(read_only_.begin(), read_only_.end(),
                     [&](const Range& range) { return overlap(range.base, range.bytes, base, bytes); });
}

HostCover HostRegistrations::cover(std::uintptr_t base, std::uint64_t bytes) const {
  const auto holds = [&](const Registration& registration) {
    return base >= registration.base && base - registration.base < registration.bytes;
  };
  std::size_t at = last_;
  if (at >= registrations_.size() || !holds(registrations_[at])) at = first_ending_after(base);
  if (at == registrations_.size()) return HostCover::unregistered;
  const Registration& registration = registrations_[at];
  if (!holds(registration)) {
    return overlap(registration.base, registration.bytes, base, bytes) ? HostCover::part : HostCover::unregistered;
  }
  last_ = at;
  if (bytes > registration.bytes - (base - registration.base)) return HostCover::part;
  return registration.access == HostAccess::read_only ? HostCover::read_only : HostCover::registered;
}

const Registration* HostRegistrations::starting_at(std::uintptr_t base) const {
  const std::size_t at = first_ending_after(base);
  return at < registrations_.size() && registrations_[at].base == base ? &registrations_[at] : nullptr;
}

std::size_t HostRegistrations::first_ending_after(std::uintptr_t address) const {
  const auto found = std::partition_point(
      registrations_.begin(), registrations_.end(),
      [&](const Registration& registration) { return registration.base + registration.bytes <= address; });
  return static_cast<std::size_t>(found - registrations_.begin());
}

void HostRegistrations::remapped(std::uintptr_t base, std::uint64_t bytes) {
  const std::uintptr_t end = base + bytes;
  for (std::size_t i = first_ending_after(base); i < registrations_.size() && registrations_[i].base < end; ++i) {
    const std::uintptr_t from = std::max(base, registrations_[i].base);
    const std::uintptr_t until = std::min(end, registrations_[i].base + registrations_[i].bytes);
    keep(from, until - from);
  }
}

void HostRegistrations::keep(std::uintptr_t base, std::uint64_t bytes) {
  // What is stale already keeps its first old bytes: its pages never were those of the later mapping.
  std::vector<Stale> kept;
  const auto take = [&](std::uintptr_t from, std::uintptr_t until) {
    if (from >= until) return;
    const auto* bytes_at = reinterpret_cast<const std::byte*>(from);
    Stale stale{from, until - from, std::vector<std::byte>(bytes_at, bytes_at + (until - from))};
    kept.push_back(std::move(stale));
  };
  std::uintptr_t from = base;
  for (const Stale& stale : stale_) {
    if (!overlap(stale.base, stale.bytes, base, bytes)) continue;
    take(from, stale.base);
    from = stale.base + stale.bytes;
  }
  take(from, base + bytes);
  stale_.insert(stale_.end(), std::make_move_iterator(kept.begin()), std::make_move_iterator(kept.end()));
  std::sort(stale_.begin(), stale_.end(), [](const Stale& a, const Stale& b) { return a.base < b.base; });
}

void HostRegistrations::resolve(std::uintptr_t base, std::uint64_t bytes,
                                const std::function<void(std::byte*, std::uint64_t, std::uint64_t)>& piece) {
  const std::uintptr_t end = base + bytes;
  std::uintptr_t from = base;
  const auto mapped_until = [&](std::uintptr_t until) {
    if (from < until) piece(reinterpret_cast<std::byte*>(from), from - base, until - from);
  };
  for (Stale& stale : stale_) {
    if (!overlap(stale.base, stale.bytes, base, bytes)) continue;
    mapped_until(stale.base);
    from = std::max(base, stale.base);
    const std::uintptr_t until = std::min(end, stale.base + stale.bytes);
    piece(stale.old_bytes.data() + (from - stale.base), from - base, until - from);
    from = until;
  }
  mapped_until(end);
}

}  // namespace holdfast::fakes
