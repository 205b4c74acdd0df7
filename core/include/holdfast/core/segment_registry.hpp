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
#include "holdfast/core/guarded.hpp"
#include "holdfast/core/registration_map.hpp"
#include "holdfast/core/registration_watch.hpp"
#include "holdfast/core/sync.hpp"

namespace holdfast {

// The device refuses a registration of so many bytes or more.
inline constexpr std::uint64_t kRegistrationBytesLimit = 512ULL << 30;

struct RegistryOptions {
  // A multiple of the owner's grants, so that no copy spans two registrations; below the limit.
  std::uint64_t piece_bytes = kGrantBytes;
  // False: the write mapping alone, and copies reach what is read through the other one by its offset there. Pinned
  // memory counts per mapping.
  bool both_mappings = true;
};

struct RegistryCounts {
  std::uint64_t registered_pieces = 0;
  std::uint64_t read_only_fallbacks = 0;
  std::uint64_t translated_mappings = 0;
};

// Thread-safe. `cuda` and `sync` outlive it. It unregisters nothing by itself when destroyed: see unregister_all.
//
// Two locks. The book's guards everything that is known here, and is held across no call. The turn is for whoever
// changes registrations, one at a time, and is held across their calls, which can take seconds; it guards no data, and
// who takes it needs what the one before it is registering. Translating, looking, using and counting never wait for it,
// and nor does an ensure() with nothing to do. Turn before book.
template <CudaRuntime Cuda, Sync S>
class SegmentRegistry {
 public:
  SegmentRegistry(Cuda& cuda, S& sync, const RegistryOptions& options)
      : cuda_(cuda), options_(options), turn_(sync), book_(sync) {
    check(options_.piece_bytes > 0, "registration pieces of no bytes");
    check(options_.piece_bytes < kRegistrationBytesLimit, "registration pieces that the device refuses");
  }

  // Taken before the owner is asked for its segments: tells which of two answers is the newer one.
  [[nodiscard]] std::uint64_t begin_look() {
    return book_.with([](Book& book) { return ++book.looks; });
  }

  // Makes `live`, the answer to `look`, the segments that copies may use: retires the others, unregisters what nobody
  // uses any more, and registers what is new. Failures after which it went on are moved to `absorbed`. After an error
  // nothing is registered that was not before: its pieces were rolled back. StaleGeneration for other segments than
  // those of a newer look, and nothing changed; and while a call is made for an older generation, which is retired.
  // Cancelled when `watch` said no. Gives the epoch of `live`.
  Result<std::uint64_t> ensure(std::uint64_t look, std::span<const Segment> live, std::vector<Error>& absorbed,
                               RegistrationWatch* watch = nullptr) {
    std::uint64_t epoch = 0;
    if (book_.with([&](Book& book) {
          epoch = book.epoch;
          return book.settles(live);
        })) {
      return epoch;
    }
    const std::scoped_lock turn(turn_);
    Status retired = book_.with([&](Book& book) -> Status {
      if (!book.knows_exactly(live) && !book.is_newer(look, live)) {
        return make_error(Errc::stale_generation, "ensure", "another session has seen newer segments");
      }
      book.learn(live);
      book.note_epoch(live);
      epoch = book.epoch;
      book.retire_others(live);
      if (book.has_call_besides(live)) {
        return make_error(Errc::stale_generation, "ensure", "a call for an older generation has not returned yet");
      }
      return {};
    });
    if (!retired) return std::move(retired.error());
    unregister_retired(absorbed);
    std::vector<Segment> fresh;
    for (const Segment& segment : live) {
      if (book_.with([&](const Book& book) { return book.map.find(segment) == nullptr; })) fresh.push_back(segment);
    }
    if (watch != nullptr && !fresh.empty() && !watch->before_all(fresh)) return cancelled("ensure");
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      Status registered = register_segment(fresh[i], absorbed, watch);
      if (!registered) return undo(std::span(fresh).first(i), std::move(registered.error()));
    }
    return epoch;
  }

  // Grows whenever the segments are others than all before: what an owner of an earlier epoch stored is gone.
  [[nodiscard]] std::uint64_t epoch() const {
    return book_.with([](const Book& book) { return book.epoch; });
  }

  // Memory of our own, beside the segments: registered read-write under generation 0.
  Status register_own(const HostRange& range) {
    const std::scoped_lock turn(turn_);
    if (Status registered = cuda_.host_register(range.base, range.bytes, HostAccess::read_write); !registered) {
      return make_error(Errc::registration_failed, "register_own", "staging memory", std::move(registered.error()));
    }
    book_.with([&](Book& book) { book.map.add_piece({range, 0, true, true}); });
    return {};
  }
  Status unregister_own(std::uintptr_t base) {
    const std::scoped_lock turn(turn_);
    Status done = cuda_.host_unregister(base);
    if (done) book_.with([&](Book& book) { book.map.erase_piece(base); });
    return done;
  }

  // Unregisters everything that is ours and that nobody uses. The first failure, the others suppressed in it.
  Status unregister_all() {
    const std::scoped_lock turn(turn_);
    book_.with([](Book& book) { book.retire_others({}); });
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
    const std::scoped_lock turn(turn_);
    book_.with([](Book& book) { book.map = {}; });
  }

  // Replaces each range's base by the address at which a copy may reach it. NotRegistered or StaleGeneration, and
  // nothing replaced for the ranges from there on.
  [[nodiscard]] Status translate(std::span<HostRange> ranges) const {
    return book_.with([&](const Book& book) -> Status {
      for (HostRange& range : ranges) {
        Result<std::uintptr_t> at = book.map.translate(range);
        if (!at) return std::move(at.error());
        range.base = *at;
      }
      return {};
    });
  }

  [[nodiscard]] bool is_live(std::uint64_t generation) const {
    return book_.with([&](const Book& book) { return book.map.is_live(generation); });
  }

  // While a call is made for what belongs to a generation (the end of a plan, say), no other generation is used: its
  // first plan could lie where that one's is. False, and the call is not to be made, when the generation is not live.
  [[nodiscard]] bool begin_call(std::uint64_t generation) {
    return book_.with([&](Book& book) {
      if (!book.map.is_live(generation)) return false;
      ++book.calls[generation];
      return true;
    });
  }
  void end_call(std::uint64_t generation) {
    book_.with([&](Book& book) {
      const auto call = book.calls.find(generation);
      check(call != book.calls.end(), "end_call without begin_call");
      if (--call->second == 0) book.calls.erase(call);
    });
  }

  // While a generation is used, a copy may be in flight to or from it, and nothing of it is unregistered.
  // StaleGeneration, and no use, when it was retired since its addresses were translated.
  [[nodiscard]] Status begin_use(std::uint64_t generation) {
    return book_.with([&](Book& book) -> Status {
      if (!book.map.has_live_piece_of(generation))
        return make_error(Errc::stale_generation, "begin_use", "nothing of this generation is registered");
      ++book.uses[generation];
      return {};
    });
  }
  void end_use(std::uint64_t generation) {
    book_.with([&](Book& book) {
      const auto use = book.uses.find(generation);
      check(use != book.uses.end(), "end_use without begin_use");
      if (--use->second == 0) book.uses.erase(use);
    });
  }

  [[nodiscard]] RegistryCounts counts() const {
    return book_.with([](const Book& book) {
      RegistryCounts counts = book.counts;
      counts.registered_pieces = book.map.size();
      return counts;
    });
  }

 private:
  struct Book {
    RegistrationMap map;
    std::map<std::uint64_t, std::uint64_t> uses;   // by generation
    std::map<std::uint64_t, std::uint64_t> calls;  // by generation
    RegistryCounts counts;
    std::uint64_t looks = 0;
    std::uint64_t looks_when_learned = 0;  // how many had begun when the newest segments were told here
    std::uint64_t newest_generation = 0;   // theirs
    std::vector<Segment> of_epoch;         // the segments last told, registered or not
    std::uint64_t epoch = 0;

    [[nodiscard]] bool may_unregister(const RegisteredPiece& piece) const {
      return piece.ours && !uses.contains(piece.generation);
    }
    [[nodiscard]] bool knows_exactly(std::span<const Segment> live) const {
      return map.segments().size() == live.size() && std::all_of(live.begin(), live.end(), [&](const Segment& segment) {
               return map.find(segment) != nullptr;
             });
    }
    [[nodiscard]] bool has_call_besides(std::span<const Segment> live) const {
      return std::any_of(calls.begin(), calls.end(), [&](const auto& call) {
        return std::none_of(live.begin(), live.end(),
                            [&](const Segment& segment) { return segment.generation == call.first; });
      });
    }
    // True when this answer leaves nothing to do.
    [[nodiscard]] bool settles(std::span<const Segment> live) {
      const auto retired = map.retired();
      if (!knows_exactly(live) || std::any_of(retired.begin(), retired.end(),
                                              [&](const RegisteredPiece& piece) { return may_unregister(piece); })) {
        return false;
      }
      learn(live);
      return true;
    }
    // A look that began later is newer. Of two at one time the owner's start time tells.
    [[nodiscard]] bool is_newer(std::uint64_t look, std::span<const Segment> live) const {
      return look > looks_when_learned || generation_of(live) > newest_generation;
    }
    void learn(std::span<const Segment> live) {
      looks_when_learned = looks;
      newest_generation = generation_of(live);
    }
    void note_epoch(std::span<const Segment> live) {
      const bool some_stay = std::any_of(live.begin(), live.end(), [&](const Segment& segment) {
        return std::any_of(of_epoch.begin(), of_epoch.end(),
                           [&](const Segment& known) { return same_registration(known, segment); });
      });
      if (!some_stay) ++epoch;
      of_epoch.assign(live.begin(), live.end());
    }
    [[nodiscard]] static std::uint64_t generation_of(std::span<const Segment> live) {
      std::uint64_t newest = 0;
      for (const Segment& segment : live) newest = std::max(newest, segment.generation);
      return newest;
    }
    void retire_others(std::span<const Segment> live) {
      std::vector<Segment> gone;
      for (const RegisteredSegment& known : map.segments()) {
        const bool stays = std::any_of(live.begin(), live.end(), [&](const Segment& segment) {
          return same_registration(segment, known.segment);
        });
        if (!stays) gone.push_back(known.segment);
      }
      for (const Segment& segment : gone) map.retire(segment);
    }
    // A retired piece of ours, or one that a copy may still use: registering there anew, or unregistering that, would
    // let go what the copy touches.
    [[nodiscard]] bool holds_older_mapping(const HostRange& range) const {
      return std::any_of(map.retired().begin(), map.retired().end(), [&](const RegisteredPiece& piece) {
        return (piece.ours || uses.contains(piece.generation)) && overlap(piece.range, range);
      });
    }
  };

  // From here on the turn is held.

  // A piece whose unregistration fails stays retired and is tried again the next time. Somebody else's piece stays too,
  // as a mark: what is registered there was registered for an older mapping. No use of a retired piece begins, so that
  // what nobody uses stays unused during the call.
  void unregister_retired(std::vector<Error>& failures) {
    const std::vector<RegisteredPiece> retired = book_.with([](const Book& book) {
      std::vector<RegisteredPiece> pieces;
      for (const RegisteredPiece& piece : book.map.retired()) {
        if (book.may_unregister(piece)) pieces.push_back(piece);
      }
      return pieces;
    });
    for (const RegisteredPiece& piece : retired) {
      if (Status done = cuda_.host_unregister(piece.range.base); !done) {
        failures.push_back(std::move(done.error()));
        continue;
      }
      book_.with([&](Book& book) { book.map.erase_retired(piece.range); });
    }
  }

  static Error cancelled(std::string_view call) {
    return make_error(Errc::cancelled, call, "the caller asked to stop; nothing of it is registered");
  }

  // Takes back the segments that this call registered before one that failed. A piece that somebody has come to use
  // meanwhile stays until nobody does.
  Error undo(std::span<const Segment> registered, Error error) {
    if (registered.empty()) return error;
    book_.with([&](Book& book) {
      for (const Segment& segment : registered) book.map.retire(segment);
    });
    unregister_retired(error.suppressed);
    return error;
  }

  Status register_segment(const Segment& segment, std::vector<Error>& absorbed, RegistrationWatch* watch) {
    std::vector<RegisteredPiece> written;
    Status write =
        register_mapping({segment.write_ptr, segment.len}, segment.generation, false, absorbed, watch, written);
    if (!write && write.error().is(Errc::cancelled)) return write;
    if (!write) {
      return make_error(Errc::registration_failed, "register_segment", segment.segment_label + ": write mapping",
                        std::move(write.error()));
    }
    bool read_registered = segment.read_ptr == segment.write_ptr;
    if (!read_registered && !options_.both_mappings) {
      if (watch != nullptr) watch->done(segment.len);
    } else if (!read_registered) {
      std::vector<RegisteredPiece> read_pieces;
      Status read =
          register_mapping({segment.read_ptr, segment.len}, segment.generation, true, absorbed, watch, read_pieces);
      if (!read && read.error().is(Errc::cancelled)) return roll_back(written, std::move(read.error()));
      read_registered = read.has_value();
      if (!read) {
        book_.with([](Book& book) { ++book.counts.translated_mappings; });
        absorbed.push_back(std::move(read.error()));
        if (watch != nullptr) watch->done(segment.len - bytes_of(read_pieces));
      }
    }
    book_.with([&](Book& book) { book.map.add_segment({segment, read_registered}); });
    return {};
  }

  // `done`: the pieces that it registered; after an error they were rolled back.
  Status register_mapping(const HostRange& range, std::uint64_t generation, bool may_be_read_only,
                          std::vector<Error>& absorbed, RegistrationWatch* watch, std::vector<RegisteredPiece>& done) {
    HostAccess access = HostAccess::read_write;
    for (const HostRange& piece : cut_into_pieces(range, options_.piece_bytes)) {
      if (watch != nullptr && !watch->before_piece()) return roll_back(done, cancelled("register_mapping"));
      if (book_.with([&](const Book& book) { return book.holds_older_mapping(piece); })) {
        return roll_back(done, make_error(Errc::registration_failed, "register_mapping",
                                          "an older mapping at this address cannot be let go yet"));
      }
      Status registered = cuda_.host_register(piece.base, piece.bytes, access);
      if (!registered && may_be_read_only && access == HostAccess::read_write &&
          (is_cuda(registered.error(), CudaErrc::invalid_value) ||
           is_cuda(registered.error(), CudaErrc::not_supported))) {
        access = HostAccess::read_only;
        book_.with([](Book& book) { ++book.counts.read_only_fallbacks; });
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
      done.push_back({piece, generation, true, ours});
      book_.with([&](Book& book) {
        book.map.erase_retired(piece);
        book.map.add_piece(done.back());
      });
      if (watch != nullptr) watch->done(piece.bytes);
    }
    return {};
  }

  static std::uint64_t bytes_of(std::span<const RegisteredPiece> pieces) {
    std::uint64_t bytes = 0;
    for (const RegisteredPiece& piece : pieces) bytes += piece.range.bytes;
    return bytes;
  }

  // "Already registered" may mean a part only, or an older mapping at the same address.
  bool proven_registered(const HostRange& piece, Error& why_not) {
    if (book_.with([&](const Book& book) { return book.map.retired_overlaps(piece); })) return false;
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
      book_.with([&](Book& book) { book.map.erase_piece(piece.range.base); });
      if (!piece.ours) continue;
      if (Status undone = cuda_.host_unregister(piece.range.base); !undone) {
        error.suppressed.push_back(std::move(undone.error()));
        book_.with([&](Book& book) { book.map.add_piece({piece.range, piece.generation, false, true}); });
      }
    }
    return error;
  }

  Cuda& cuda_;
  const RegistryOptions options_;
  typename S::Mutex turn_;
  Guarded<Book, S> book_;
};

// A call for what belongs to a generation, made only while that one is live. Move-only.
template <class Registry>
class GenerationCall {
 public:
  GenerationCall(Registry& registry, std::uint64_t generation)
      : registry_(&registry), generation_(generation), live_(registry.begin_call(generation)) {}
  GenerationCall(GenerationCall&& other) noexcept
      : registry_(other.registry_), generation_(other.generation_), live_(std::exchange(other.live_, false)) {}
  GenerationCall& operator=(GenerationCall&&) = delete;
  ~GenerationCall() {
    if (live_) registry_->end_call(generation_);
  }

  [[nodiscard]] bool live() const { return live_; }
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

 private:
  Registry* registry_;
  std::uint64_t generation_;
  bool live_;
};

}  // namespace holdfast
