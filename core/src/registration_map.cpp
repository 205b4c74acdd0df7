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

void RegistrationMap::add_piece(const RegisteredPiece& piece) {
  if (!piece.live) {
    retired_.push_back(piece);
    return;
  }
  const auto behind = std::ranges::upper_bound(live_, piece.range.base, {}, base_of);
  live_.insert(behind, {piece, ++ordinal_});
}

void RegistrationMap::erase_piece(std::uintptr_t base) {
  std::erase_if(live_, [&](const LivePiece& live) { return live.piece.range.base == base; });
  std::erase_if(retired_, [&](const RegisteredPiece& piece) { return piece.range.base == base; });
}

void RegistrationMap::erase_retired(const HostRange& range) {
  std::erase_if(retired_, [&](const RegisteredPiece& piece) { return overlap(piece.range, range); });
}

void RegistrationMap::retire(const Segment& segment) {
  std::erase_if(segments_, [&](const RegisteredSegment& known) { return same_registration(known.segment, segment); });
  const auto goes = std::stable_partition(live_.begin(), live_.end(), [&](const LivePiece& live) {
    return !overlap(live.piece.range, {segment.write_ptr, segment.len}) &&
           !overlap(live.piece.range, {segment.read_ptr, segment.len});
  });
  // Where they lie must not decide in which order they go.
  std::sort(goes, live_.end(), [](const LivePiece& a, const LivePiece& b) { return a.ordinal < b.ordinal; });
  for (auto live = goes; live != live_.end(); ++live) {
    live->piece.live = false;
    retired_.push_back(live->piece);
  }
  live_.erase(goes, live_.end());
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

bool RegistrationMap::has_live_piece_of(std::uint64_t generation) const {
  return std::any_of(live_.begin(), live_.end(),
                     [&](const LivePiece& live) { return live.piece.generation == generation; });
}

bool RegistrationMap::retired_overlaps(const HostRange& range) const {
  return std::any_of(retired_.begin(), retired_.end(),
                     [&](const RegisteredPiece& piece) { return overlap(piece.range, range); });
}

const RegisteredPiece* RegistrationMap::live_at(std::uintptr_t address) const {
  const auto behind = std::ranges::upper_bound(live_, address, {}, base_of);
  if (behind == live_.begin()) return nullptr;
  const RegisteredPiece& piece = std::prev(behind)->piece;
  return address - piece.range.base < piece.range.bytes ? &piece : nullptr;
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
  const RegisteredPiece* piece = live_at(target.base);
  if (piece != nullptr && contains(piece->range, target)) return target.base;
  return make_error(retired_overlaps(target) ? Errc::stale_generation : Errc::not_registered, "registered_address",
                    fmt::format("{} bytes are not whole inside one live registration", range.bytes));
}

}  // namespace holdfast
