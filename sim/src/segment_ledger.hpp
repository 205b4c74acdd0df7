// The owner's mappings and the device's registrations, as far as the caller was told of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/fluxon_runtime.hpp"

namespace holdfast::sim {

inline constexpr std::uint32_t kNowhere = ~0U;

// A host address within a mapping that the caller knows.
struct HostPlace {
  std::uint32_t segment = kNowhere;  // in order of being told
  bool read_side = false;            // inside read_ptr's mapping, where that is another
  std::uint64_t offset = 0;
};

// An epoch is the time between two answers of wait_local_segments_ready that name different mappings.
class SegmentLedger {
 public:
  // True when the answer begins a new epoch that is not the first.
  bool learn(std::span<const Segment> told);
  // A new caller knows no mapping; what it will be told is a new epoch.
  void forget() { known_.clear(); }

  // The newest mapping that holds the address.
  [[nodiscard]] HostPlace locate(std::uintptr_t address) const;
  [[nodiscard]] bool is_live(std::uint32_t segment) const { return epoch_of(segment) == epoch_; }
  [[nodiscard]] std::uint32_t epoch_of(std::uint32_t segment) const {
    return segment < known_.size() ? known_[segment].epoch : kNowhere;
  }
  [[nodiscard]] std::uint64_t generation_of(std::uint32_t segment) const { return known_[segment].generation; }
  // It is read through another mapping than it is written through.
  [[nodiscard]] bool has_two_mappings(std::uint32_t segment) const {
    return known_[segment].write_base != known_[segment].read_base;
  }
  [[nodiscard]] std::uint64_t bytes_left(const HostPlace& place) const {
    return known_[place.segment].bytes - place.offset;
  }
  // Where the last mapping told of begins; 0 = none was.
  [[nodiscard]] std::uintptr_t newest_write_base() const { return known_.empty() ? 0 : known_.back().write_base; }
  [[nodiscard]] std::uint32_t epoch() const { return epoch_; }

 private:
  struct Known {
    std::uintptr_t write_base = 0;
    std::uintptr_t read_base = 0;
    std::uint64_t bytes = 0;
    std::uint64_t generation = 0;
    std::uint32_t epoch = 0;
  };
  static bool same(const Known& known, const Segment& segment) {
    return known.write_base == segment.write_ptr && known.read_base == segment.read_ptr && known.bytes == segment.len &&
           known.generation == segment.generation;
  }

  std::vector<Known> known_;
  std::uint32_t epoch_ = 0;
};

struct HostRegistration {
  std::uintptr_t base = 0;
  std::uint64_t bytes = 0;
  HostAccess access = HostAccess::read_write;
  std::uint32_t ordinal = 0;
  std::uint32_t epoch = 0;  // in which it was made
  std::uint32_t operation = 0;
  bool proven = false;       // somebody else's, of which the attributes of both ends were asked
  bool stuck = false;        // to unregister it failed
  std::uint64_t copies = 0;  // submitted to or from it
};

class RegistrationLedger {
 public:
  void add(const HostRegistration& registration);
  // "Already registered" was answered for the range; it counts once both its ends are known, since this answer, to be
  // pinned. Never where the caller itself still holds a registration of an older epoch: that is what was refused.
  void refused(const HostRegistration& registration);
  void attributes(std::uintptr_t address, bool registered);
  // The registration that starts at `base`.
  [[nodiscard]] const HostRegistration* find(std::uintptr_t base) const;
  void erase(std::uintptr_t base);
  // The registration that starts at `base` could not be unregistered.
  void stuck(std::uintptr_t base);
  // One that the operation made itself and has let stand, though it could have been unregistered.
  [[nodiscard]] const HostRegistration* left_by(std::uint32_t operation) const;
  void reset() {
    live_.clear();
    doubtful_.clear();
  }

  // The registration that covers the whole range.
  [[nodiscard]] HostRegistration* covering(std::uintptr_t base, std::uint64_t bytes);

 private:
  struct Doubtful {
    HostRegistration registration;
    bool first_known = false;
    bool last_known = false;
  };
  // Of the range that starts at `base`.
  void forget_doubt(std::uintptr_t base);

  std::vector<HostRegistration> live_;  // ordered by base
  std::size_t last_ = 0;                // most copies of a batch lie in one
  std::vector<Doubtful> doubtful_;
};

}  // namespace holdfast::sim
