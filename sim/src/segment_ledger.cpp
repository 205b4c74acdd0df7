#include "segment_ledger.hpp"

#include <algorithm>

namespace holdfast::sim {
namespace {

bool overlap(const HostRegistration& a, const HostRegistration& b) {
  return a.base < b.base + b.bytes && b.base < a.base + a.bytes;
}

}  // namespace

bool SegmentLedger::learn(std::span<const Segment> told) {
  const auto live = static_cast<std::size_t>(
      std::ranges::count_if(known_, [&](const Known& known) { return known.epoch == epoch_; }));
  const bool same_as_before = live == told.size() && std::ranges::all_of(told, [&](const Segment& segment) {
                                return std::ranges::any_of(known_, [&](const Known& known) {
                                  return known.epoch == epoch_ && same(known, segment);
                                });
                              });
  if (same_as_before) return false;
  const bool first = known_.empty();
  ++epoch_;
  for (const Segment& segment : told) {
    known_.push_back({segment.write_ptr, segment.read_ptr, segment.len, segment.generation, epoch_});
  }
  return !first;
}

HostPlace SegmentLedger::locate(std::uintptr_t address) const {
  for (std::size_t i = known_.size(); i-- > 0;) {
    const Known& known = known_[i];
    if (address - known.write_base < known.bytes) {
      return {static_cast<std::uint32_t>(i), false, address - known.write_base};
    }
    if (address - known.read_base < known.bytes) {
      return {static_cast<std::uint32_t>(i), true, address - known.read_base};
    }
  }
  return {};
}

void RegistrationLedger::add(const HostRegistration& registration) {
  // The device refuses an overlap: whoever had registered a byte of it before has let go.
  std::erase_if(live_, [&](const HostRegistration& earlier) { return overlap(earlier, registration); });
  const auto at = std::ranges::upper_bound(live_, registration.base, {}, &HostRegistration::base);
  live_.insert(at, registration);
  forget_doubt(registration.base);
}

void RegistrationLedger::forget_doubt(std::uintptr_t base) {
  std::erase_if(doubtful_, [&](const Doubtful& doubt) { return doubt.registration.base == base; });
}

void RegistrationLedger::refused(const HostRegistration& registration) {
  forget_doubt(registration.base);
  const bool own_older = std::ranges::any_of(live_, [&](const HostRegistration& known) {
    return !known.proven && known.epoch != registration.epoch && overlap(known, registration);
  });
  if (!own_older) doubtful_.push_back({registration, false, false});
}

void RegistrationLedger::attributes(std::uintptr_t address, bool registered) {
  for (std::size_t i = 0; i < doubtful_.size(); ++i) {
    Doubtful& doubt = doubtful_[i];
    const bool first = address == doubt.registration.base;
    const bool last = address == doubt.registration.base + doubt.registration.bytes - 1;
    if (!first && !last) continue;
    if (registered) {
      doubt.first_known = doubt.first_known || first;
      doubt.last_known = doubt.last_known || last;
      if (!doubt.first_known || !doubt.last_known) continue;
      HostRegistration proven = doubt.registration;
      proven.proven = true;
      add(proven);
      return;
    }
    doubtful_.erase(doubtful_.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

const HostRegistration* RegistrationLedger::find(std::uintptr_t base) const {
  const auto at = std::ranges::lower_bound(live_, base, {}, &HostRegistration::base);
  return at != live_.end() && at->base == base ? &*at : nullptr;
}

void RegistrationLedger::erase(std::uintptr_t base) {
  std::erase_if(live_, [&](const HostRegistration& registration) { return registration.base == base; });
}

void RegistrationLedger::stuck(std::uintptr_t base) {
  for (HostRegistration& registration : live_) registration.stuck = registration.stuck || registration.base == base;
}

const HostRegistration* RegistrationLedger::left_by(std::uint32_t operation) const {
  const auto left = std::ranges::find_if(live_, [&](const HostRegistration& registration) {
    return registration.operation == operation && !registration.proven && !registration.stuck;
  });
  return left == live_.end() ? nullptr : &*left;
}

HostRegistration* RegistrationLedger::covering(std::uintptr_t base, std::uint64_t bytes) {
  const auto covers = [&](const HostRegistration& registration) {
    return base >= registration.base && base - registration.base < registration.bytes &&
           bytes <= registration.bytes - (base - registration.base);
  };
  if (last_ < live_.size() && covers(live_[last_])) return &live_[last_];
  const auto after = std::ranges::upper_bound(live_, base, {}, &HostRegistration::base);
  if (after == live_.begin()) return nullptr;
  const auto at = after - 1;
  if (!covers(*at)) return nullptr;
  last_ = static_cast<std::size_t>(at - live_.begin());
  return &*at;
}

}  // namespace holdfast::sim
