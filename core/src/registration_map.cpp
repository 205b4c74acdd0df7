#include "holdfast/core/registration_map.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast {
namespace {

bool contains(const HostRange& outer, const HostRange& inner) {
  return inner.base >= outer.base && inner.base - outer.base <= outer.bytes &&
         inner.bytes <= outer.bytes - (inner.base - outer.base);
}

}  // namespace

bool same_registration(const Segment& a, const Segment& b) {
  return a.write_ptr == b.write_ptr && a.read_ptr == b.read_ptr && a.len == b.len && a.generation == b.generation;
}

std::vector<HostRange> cut_into_pieces(const HostRange& range, std::uint64_t piece_bytes) {
  std::vector<HostRange> pieces;
  for (std::uint64_t at = 0; at < range.bytes; at += piece_bytes) {
    pieces.push_back({range.base + at, std::min(piece_bytes, range.bytes - at)});
  }
  return pieces;
}

bool overlap(const HostRange& a, const HostRange& b) { return a.base < b.base + b.bytes && b.base < a.base + a.bytes; }

void RegistrationMap::erase_piece(std::uintptr_t base) {
  std::erase_if(pieces_, [&](const RegisteredPiece& piece) { return piece.range.base == base; });
}

void RegistrationMap::erase_retired(const HostRange& range) {
  std::erase_if(pieces_, [&](const RegisteredPiece& piece) { return !piece.live && overlap(piece.range, range); });
}

void RegistrationMap::retire(const Segment& segment) {
  std::erase_if(segments_, [&](const RegisteredSegment& known) { return same_registration(known.segment, segment); });
  for (RegisteredPiece& piece : pieces_) {
    if (overlap(piece.range, {segment.write_ptr, segment.len}) ||
        overlap(piece.range, {segment.read_ptr, segment.len})) {
      piece.live = false;
    }
  }
}

const RegisteredSegment* RegistrationMap::find(const Segment& segment) const {
  const auto found = std::find_if(segments_.begin(), segments_.end(), [&](const RegisteredSegment& known) {
    return same_registration(known.segment, segment);
  });
  return found == segments_.end() ? nullptr : &*found;
}

bool RegistrationMap::is_live(std::uint64_t generation) const {
  return std::any_of(segments_.begin(), segments_.end(),
                     [&](const RegisteredSegment& known) { return known.segment.generation == generation; });
}

bool RegistrationMap::retired_overlaps(const HostRange& range) const {
  return std::any_of(pieces_.begin(), pieces_.end(),
                     [&](const RegisteredPiece& piece) { return !piece.live && overlap(piece.range, range); });
}

Result<std::uintptr_t> RegistrationMap::translate(const HostRange& range) const {
  HostRange target = range;
  for (const RegisteredSegment& known : segments_) {
    const Segment& segment = known.segment;
    if (!known.read_registered && contains({segment.read_ptr, segment.len}, range)) {
      target.base = segment.write_ptr + (range.base - segment.read_ptr);
      break;
    }
  }
  bool stale = false;
  for (const RegisteredPiece& piece : pieces_) {
    if (piece.live && contains(piece.range, target)) return target.base;
    stale = stale || (!piece.live && overlap(piece.range, target));
  }
  return make_error(stale ? Errc::stale_generation : Errc::not_registered, "registered_address",
                    fmt::format("{} bytes are not whole inside one live registration", range.bytes));
}

}  // namespace holdfast
