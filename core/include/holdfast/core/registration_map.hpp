// Which host ranges are registered with the device, for which owner generation: the book that the segment registry
// keeps. No calls here.
//
// A piece is live while its segment is, and retired afterwards: it still has to be unregistered, but no copy may use
// it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holdfast/core/fluxon_runtime.hpp"

namespace holdfast {

struct HostRange {
  std::uintptr_t base = 0;
  std::uint64_t bytes = 0;
};

struct RegisteredPiece {
  HostRange range;
  std::uint64_t generation = 0;
  bool live = true;
  bool ours = true;  // false: somebody else registered it, and unregisters it
};

// One segment's registration. An unregistered read mapping is translated to the write mapping by its offset.
struct RegisteredSegment {
  Segment segment;
  bool read_registered = false;
};

// Equal where (ptr, len, generation) is, for both mappings.
[[nodiscard]] bool same_registration(const Segment& a, const Segment& b);

// [base, base + bytes) cut into pieces of at most `piece_bytes`, counted from `base`, so that they end on grants.
[[nodiscard]] std::vector<HostRange> cut_into_pieces(const HostRange& range, std::uint64_t piece_bytes);

[[nodiscard]] bool overlap(const HostRange& a, const HostRange& b);

// Not thread-safe by itself: its owner holds a lock.
class RegistrationMap {
 public:
  // A live piece overlaps no other live one: the device refuses that.
  void add_piece(const RegisteredPiece& piece);
  // Live or retired, that begins there.
  void erase_piece(std::uintptr_t base);
  // Every retired piece that has a byte of `range`.
  void erase_retired(const HostRange& range);
  void add_segment(RegisteredSegment segment) { segments_.push_back(std::move(segment)); }
  // Takes the segment out; its pieces are retired.
  void retire(const Segment& segment);

  [[nodiscard]] const RegisteredSegment* find(const Segment& segment) const;
  [[nodiscard]] std::span<const RegisteredSegment> segments() const { return segments_; }
  // Retired, in the order in which they were registered.
  [[nodiscard]] std::span<const RegisteredPiece> retired() const { return retired_; }
  [[nodiscard]] std::size_t size() const { return live_.size() + retired_.size(); }
  [[nodiscard]] bool is_live(std::uint64_t generation) const;
  [[nodiscard]] bool has_live_piece_of(std::uint64_t generation) const;
  // True when a retired piece has a byte of `range`.
  [[nodiscard]] bool retired_overlaps(const HostRange& range) const;

  // Where a copy reaches `range`: itself, or its place in the write mapping. NotRegistered when it is not whole inside
  // one live piece; StaleGeneration when it lies in a retired one.
  [[nodiscard]] Result<std::uintptr_t> translate(const HostRange& range) const;

 private:
  std::vector<RegisteredSegment> segments_;
  struct LivePiece {
    RegisteredPiece piece;
    std::uint64_t ordinal = 0;  // of its registration
  };
  static std::uintptr_t base_of(const LivePiece& live) { return live.piece.range.base; }
  // The live piece that holds the address, if any.
  [[nodiscard]] const RegisteredPiece* live_at(std::uintptr_t address) const;

  std::vector<LivePiece> live_;  // by base: a copy of thousands of values finds the piece of each
  std::vector<RegisteredPiece> retired_;
  std::uint64_t ordinal_ = 0;
};

}  // namespace holdfast
