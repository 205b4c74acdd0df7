// Registers an owner's mappings with the device, once per (ptr, len, generation), and answers where a copy may reach a
// host address. Both mappings of a segment are tried; one is enough.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "holdfast/core/check.hpp"
#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/registration_map.hpp"
#include "holdfast/core/sync.hpp"

namespace holdfast {

struct RegistryOptions {
  std::uint64_t piece_bytes = kGrantBytes;  // pieces end on grants, so that no copy spans two registrations
};

struct RegistryCounts {
  std::uint64_t registered_pieces = 0;
  std::uint64_t read_only_fallbacks = 0;
  std::uint64_t translated_mappings = 0;
};

// Thread-safe. `cuda` and `sync` outlive it. It unregisters nothing by itself when destroyed: see unregister_all.
template <CudaRuntime Cuda, Sync S>
class SegmentRegistry {
 public:
  SegmentRegistry(Cuda& cuda, S& sync, const RegistryOptions& options) : cuda_(cuda), options_(options), mutex_(sync) {
    check(options_.piece_bytes > 0, "registration pieces of no bytes");
  }

  // Makes `live` the segments that copies may use: retires the others, unregisters what nobody uses any more, and
  // registers what is new. Failures after which it went on are moved to `absorbed`. After an error the segment is not
  // registered at all: its pieces were rolled back.
  Status ensure(std::span<const Segment> live, std::vector<Error>& absorbed) {
    const std::scoped_lock lock(mutex_);
    retire_others(live);
    unregister_retired(absorbed);
    for (const Segment& segment : live) {
      if (map_.find(segment) != nullptr) continue;
      if (Status registered = register_segment(segment, absorbed); !registered) return registered;
    }
    return {};
  }

  // Memory of our own, beside the segments: registered read-write under generation 0.
  Status register_own(const HostRange& range) {
    const std::scoped_lock lock(mutex_);
    if (Status registered = cuda_.host_register(range.base, range.bytes, HostAccess::read_write); !registered) {
      return make_error(Errc::registration_failed, "register_own", "staging memory", std::move(registered.error()));
    }
    map_.add_piece({range, 0, true, true});
    return {};
  }
  Status unregister_own(std::uintptr_t base) {
    const std::scoped_lock lock(mutex_);
    Status done = cuda_.host_unregister(base);
    if (done) map_.erase_piece(base);
    return done;
  }

  // Unregisters everything that is ours and that nobody uses. The first failure, the others suppressed in it.
  Status unregister_all() {
    const std::scoped_lock lock(mutex_);
    retire_others({});
    std::vector<Error> failures;
    unregister_retired(failures);
    if (failures.empty()) return {};
    Error error = std::move(failures.front());
    error.suppressed.insert(error.suppressed.end(), std::make_move_iterator(failures.begin() + 1),
                            std::make_move_iterator(failures.end()));
    return error;
  }

  // The device context is gone, and every registration with it.
  void forget_all() {
    const std::scoped_lock lock(mutex_);
    map_ = {};
  }

  // Replaces each range's base by the address at which a copy may reach it. NotRegistered or StaleGeneration, and
  // nothing replaced for the ranges from there on.
  [[nodiscard]] Status translate(std::span<HostRange> ranges) const {
    const std::scoped_lock lock(mutex_);
    for (HostRange& range : ranges) {
      Result<std::uintptr_t> at = map_.translate(range);
      if (!at) return std::move(at.error());
      range.base = *at;
    }
    return {};
  }

  [[nodiscard]] bool is_live(std::uint64_t generation) const {
    const std::scoped_lock lock(mutex_);
    return map_.is_live(generation);
  }

  // While a generation is used, a copy may be in flight to or from it, and nothing of it is unregistered.
  void begin_use(std::uint64_t generation) {
    const std::scoped_lock lock(mutex_);
    ++uses_[generation];
  }
  void end_use(std::uint64_t generation) {
    const std::scoped_lock lock(mutex_);
    const auto use = uses_.find(generation);
    check(use != uses_.end(), "end_use without begin_use");
    if (--use->second == 0) uses_.erase(use);
  }

  [[nodiscard]] RegistryCounts counts() const {
    const std::scoped_lock lock(mutex_);
    RegistryCounts counts = counts_;
    counts.registered_pieces = map_.pieces().size();
    return counts;
  }

 private:
  void retire_others(std::span<const Segment> live) {
    std::vector<Segment> gone;
    for (const RegisteredSegment& known : map_.segments()) {
      const bool stays = std::any_of(live.begin(), live.end(),
                                     [&](const Segment& segment) { return same_registration(segment, known.segment); });
      if (!stays) gone.push_back(known.segment);
    }
    for (const Segment& segment : gone) map_.retire(segment);
  }

  // A piece whose unregistration fails stays retired and is tried again the next time. Somebody else's piece stays too,
  // as a mark: what is registered there was registered for an older mapping.
  void unregister_retired(std::vector<Error>& failures) {
    std::vector<RegisteredPiece> retired;
    for (const RegisteredPiece& piece : map_.pieces()) {
      if (!piece.live && piece.ours && !uses_.contains(piece.generation)) retired.push_back(piece);
    }
    for (const RegisteredPiece& piece : retired) {
      if (Status done = cuda_.host_unregister(piece.range.base); !done) {
        failures.push_back(std::move(done.error()));
        continue;
      }
      map_.erase_retired(piece.range);
    }
  }

  Status register_segment(const Segment& segment, std::vector<Error>& absorbed) {
    Status write = register_mapping({segment.write_ptr, segment.len}, segment.generation, false, absorbed);
    if (!write) {
      return make_error(Errc::registration_failed, "register_segment", segment.segment_label + ": write mapping",
                        std::move(write.error()));
    }
    bool read_registered = segment.read_ptr == segment.write_ptr;
    if (!read_registered) {
      Status read = register_mapping({segment.read_ptr, segment.len}, segment.generation, true, absorbed);
      read_registered = read.has_value();
      if (!read) {
        ++counts_.translated_mappings;
        absorbed.push_back(std::move(read.error()));
      }
    }
    map_.add_segment({segment, read_registered});
    return {};
  }

  Status register_mapping(const HostRange& range, std::uint64_t generation, bool may_be_read_only,
                          std::vector<Error>& absorbed) {
    HostAccess access = HostAccess::read_write;
    std::vector<RegisteredPiece> done;
    for (const HostRange& piece : cut_into_pieces(range, options_.piece_bytes)) {
      if (older_mapping_held(piece)) {
        return roll_back(done, make_error(Errc::registration_failed, "register_mapping",
                                          "an older mapping at this address cannot be let go yet"));
      }
      Status registered = cuda_.host_register(piece.base, piece.bytes, access);
      if (!registered && may_be_read_only && access == HostAccess::read_write &&
          (is_cuda(registered.error(), CudaErrc::invalid_value) ||
           is_cuda(registered.error(), CudaErrc::not_supported))) {
        access = HostAccess::read_only;
        ++counts_.read_only_fallbacks;
        absorbed.push_back(std::move(registered.error()));
        registered = cuda_.host_register(piece.base, piece.bytes, access);
      }
      bool ours = true;
      if (!registered && is_cuda(registered.error(), CudaErrc::host_memory_already_registered) &&
          proven_registered(piece, registered.error())) {
        ours = false;
        absorbed.push_back(std::move(registered.error()));
        registered = {};
      }
      if (!registered) return roll_back(done, std::move(registered.error()));
      map_.erase_retired(piece);
      done.push_back({piece, generation, true, ours});
      map_.add_piece(done.back());
    }
    return {};
  }

  // A retired piece of ours, or one that a copy may still use: registering there anew, or unregistering that, would let
  // go what the copy touches.
  [[nodiscard]] bool older_mapping_held(const HostRange& range) const {
    return std::any_of(map_.pieces().begin(), map_.pieces().end(), [&](const RegisteredPiece& piece) {
      return !piece.live && (piece.ours || uses_.contains(piece.generation)) && overlap(piece.range, range);
    });
  }

  // "Already registered" may mean a part only, or an older mapping at the same address.
  bool proven_registered(const HostRange& piece, Error& why_not) {
    if (map_.retired_overlaps(piece)) return false;
    for (const std::uintptr_t end : {piece.base, piece.base + piece.bytes - 1}) {
      Result<PointerAttributes> attributes = cuda_.pointer_attributes(end);
      if (!attributes) {
        why_not.suppressed.push_back(std::move(attributes.error()));
        return false;
      }
      if (attributes->kind != MemoryKind::registered_host) return false;
    }
    return true;
  }

  Error roll_back(const std::vector<RegisteredPiece>& done, Error error) {
    for (const RegisteredPiece& piece : done) {
      map_.erase_piece(piece.range.base);
      if (!piece.ours) continue;
      if (Status undone = cuda_.host_unregister(piece.range.base); !undone) {
        error.suppressed.push_back(std::move(undone.error()));
        map_.add_piece({piece.range, piece.generation, false, true});
      }
    }
    return error;
  }

  Cuda& cuda_;
  const RegistryOptions options_;
  mutable typename S::Mutex mutex_;
  // Guarded by mutex_:
  RegistrationMap map_;
  std::map<std::uint64_t, std::uint64_t> uses_;  // by generation
  RegistryCounts counts_;
};

}  // namespace holdfast
