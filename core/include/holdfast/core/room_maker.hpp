// How a manager makes room: evictions, in the policy's order and by name, and the end of worlds that nobody uses.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "holdfast/core/check.hpp"
#include "holdfast/core/manager_book.hpp"

namespace holdfast {

struct EvictReceipt {
  bool evicted = false;  // false: there was no blob
  std::uint64_t freed_bytes = 0;
};

enum class RoomFor : std::uint8_t { asking, a_put };
struct RoomRequest {
  std::uint64_t bytes = 0;
  RoomFor what = RoomFor::asking;  // a put makes room down to the lower mark, and takes what it needs at that instant
};

// A victim is claimed and withdrawn under the lock, removed without it, and forgotten under it again.
template <class Book>
class RoomMaker {
 public:
  explicit RoomMaker(Book& book) : book_(book) {}

  // Removes the node's K and V, and keeps its latent and its place. No blob: a success that does nothing. InUse:
  // pinned, referenced, being written. Unsettled: a key's outcome is open. RemoveFailed: the blob is not served any
  // more, and its handle stays; retry() tries again.
  Result<EvictReceipt> evict(Node& node, Absorbed& absorbed) {
    Eviction eviction;
    {
      const std::scoped_lock lock(book_.mutex);
      if (!node.blob().present) return EvictReceipt{};
      if (Status begun = begin_eviction(node, eviction); !begun) return std::move(begun.error());
    }
    return finish_eviction(eviction, absorbed);
  }

  // Lets idle worlds go and evicts blobs, in the policy's order, until the bytes are free of the capacity; a put's are
  // reserved. OutOfRoom when that is not possible.
  Result<EvictReceipt> free_up(const RoomRequest& request, Absorbed& absorbed) {
    EvictReceipt receipt;
    std::vector<const Node*> refused;
    bool worlds_stay = false;  // the first that could go may not yet
    // Each turn lets a world go, evicts a blob or rules one out. What others store meanwhile is too young to be a
    // victim: there are no more turns than worlds and blobs.
    while (true) {
      Eviction eviction;
      Namespace* idle = nullptr;
      std::vector<Farewell> leaving;
      {
        const std::scoped_lock lock(book_.mutex);
        const std::uint64_t held = book_.marks.limited() ? book_.accounted_bytes() : 0;
        const bool fits = book_.marks.fits(held, request.bytes);
        // Down to the lower mark only when it had to be made.
        const bool enough = request.what == RoomFor::asking || !receipt.evicted || book_.marks.is_low(held);
        Node* victim = nullptr;
        // What can never fit is not worth a single blob.
        if (!(fits && enough) && book_.marks.fits(0, request.bytes)) {
          idle = worlds_stay ? nullptr : book_.forest.longest_idle();
          if (idle == nullptr) victim = next_victim(refused);
        }
        if (idle == nullptr && victim == nullptr) {
          if (!fits) {
            if (request.what == RoomFor::a_put) ++book_.stats.puts_without_room;
            return with_suppressed(no_room(request.bytes, held), absorbed);
          }
          if (request.what == RoomFor::a_put) book_.reserved_bytes += request.bytes;
          return receipt;
        }
        if (idle != nullptr) {
          worlds_stay = !begin_farewell(*idle, leaving);
          if (worlds_stay || leaving.empty()) continue;
        } else if (Status begun = begin_eviction(*victim, eviction); !begun) {
          refused.push_back(victim);
          absorbed.push_back(std::move(begun.error()));
          continue;
        }
      }
      if (idle != nullptr) {
        note_freed(finish_farewell(*idle, leaving, absorbed), receipt);
        continue;
      }
      Result<EvictReceipt> evicted = finish_eviction(eviction, absorbed);
      if (!evicted) {
        refused.push_back(eviction.node);
        absorbed.push_back(std::move(evicted.error()));
        continue;
      }
      note_freed(evicted->freed_bytes, receipt);
    }
  }

  // Tries failed evictions again, so many at most. What fails stays queued; the errors are moved to `errors`.
  void retry(std::size_t evictions_max, Absorbed& absorbed, std::vector<Error>& errors) {
    std::vector<NodeKey> evicting;
    {
      const std::scoped_lock lock(book_.mutex);
      const std::size_t turns = std::min(evicting_.size(), evictions_max);
      evicting.assign(evicting_.begin(), evicting_.begin() + static_cast<std::ptrdiff_t>(turns));
      evicting_.erase(evicting_.begin(), evicting_.begin() + static_cast<std::ptrdiff_t>(turns));
    }
    for (const NodeKey& key : evicting) retry_eviction(key, absorbed, errors);
  }

 private:
  // A blob that is withdrawn, and whose node is claimed, until finish_eviction.
  struct Eviction {
    Node* node = nullptr;
    KeyBatch keys;
    std::vector<std::uint64_t> value_bytes;
    Nanos committed_at_ns = 0;
    Nanos began_ns = 0;
  };

  // A latent that is withdrawn, and whose node is claimed, until finish_farewell.
  struct Farewell {
    Node* node = nullptr;
    std::uint64_t nbytes = 0;
    Nanos committed_at_ns = 0;
  };

  // The lock is held, and the node has a handle.
  Status begin_eviction(Node& node, Eviction& eviction) {
    eviction.began_ns = book_.now_ns();
    Status begun = claim_victim(node, eviction);
    if (!begun) book_.note(Stage::evict, eviction.began_ns, true);
    return begun;
  }
  Status claim_victim(Node& node, Eviction& eviction) {
    if (Status evictable = book_.forest.check_evictable(node); !evictable) return evictable;
    eviction.keys.add_chunk(node.key(), node.blob().shape);
    if (book_.store.unsettled(eviction.keys.keys())) {
      return make_error(Errc::unsettled, "evict_blob", "a key's outcome is open");
    }
    eviction.node = &node;
    eviction.value_bytes = book_.lengths_of(node);
    eviction.committed_at_ns = node.blob().committed_at_ns;
    book_.forest.withdraw_blob(node);
    book_.forest.set_being_written(node, true);
    return {};
  }
  Result<EvictReceipt> finish_eviction(const Eviction& eviction, Absorbed& absorbed) {
    RemoveOutcome removed =
        book_.store.remove({eviction.keys.keys(), eviction.value_bytes, eviction.committed_at_ns}, absorbed);
    const std::scoped_lock lock(book_.mutex);
    Node& node = *eviction.node;
    book_.note(Stage::evict, eviction.began_ns, !removed.failures.empty());
    if (!removed.failures.empty()) {
      book_.forest.set_being_written(node, false);
      evicting_.push_back(node.key());
      Error error = make_error(Errc::remove_failed, "evict_blob",
                               fmt::format("{} of {} values", removed.failures.size(), eviction.keys.size()));
      error.causes = std::move(removed.failures);
      return with_suppressed(std::move(error), absorbed);
    }
    const std::uint64_t freed = book_.forget_blob(node);
    ++book_.stats.evicted_blobs;
    book_.stats.evicted_bytes += freed;
    book_.forest.set_being_written(node, false);
    return EvictReceipt{true, freed};
  }

  // The lock is held. What an idle world has left are latents that lead nowhere. They are withdrawn; without any, the
  // world goes at once. False, and nothing is done, when one of them is too young or in doubt.
  bool begin_farewell(Namespace& world, std::vector<Farewell>& leaving) {
    const Nanos committed_before_ns = victims_before_ns();
    KeyBatch keys;
    for (Node* node : book_.forest.nodes_of(world)) {
      if (!node->skeleton().ready) continue;
      if (node->skeleton().committed_at_ns > committed_before_ns) return false;
      keys.add_latent(node->key());
      leaving.push_back({node, node->skeleton().nbytes, node->skeleton().committed_at_ns});
    }
    if (book_.store.unsettled(keys.keys())) return false;
    for (const Farewell& latent : leaving) {
      book_.forest.set_being_written(*latent.node, true);
      book_.forest.withdraw_skeleton(*latent.node);
    }
    if (leaving.empty()) drop(world);
    return true;
  }
  // Removes them; what fails is removed later. Then the world goes, unless somebody has opened it meanwhile.
  std::uint64_t finish_farewell(Namespace& world, std::span<const Farewell> leaving, Absorbed& absorbed) {
    const Nanos began_ns = book_.now_ns();
    bool failed = false;
    std::uint64_t freed = 0;
    for (const Farewell& latent : leaving) {
      KeyBatch keys;
      keys.add_latent(latent.node->key());
      const RemoveRequest request{keys.keys(), std::span(&latent.nbytes, 1), latent.committed_at_ns};
      RemoveOutcome removed = book_.store.remove(request, absorbed);
      const std::scoped_lock lock(book_.mutex);
      failed = failed || !removed.failures.empty();
      if (!removed.failures.empty()) book_.store.queue_removal(request);
      if (removed.removed > 0) freed += slot_bytes(latent.nbytes);
      book_.held_bytes -= slot_bytes(latent.nbytes);
      absorbed.insert(absorbed.end(), std::make_move_iterator(removed.failures.begin()),
                      std::make_move_iterator(removed.failures.end()));
    }
    const std::scoped_lock lock(book_.mutex);
    book_.note(Stage::evict, began_ns, failed);
    for (const Farewell& latent : leaving) book_.forest.set_being_written(*latent.node, false);
    if (world.idle()) drop(world);
    return freed;
  }
  // The lock is held, and the world is idle.
  void drop(Namespace& world) {
    const NodeKey root = world.root_key();
    const Status dropped = book_.forest.drop_namespace(world);
    check(dropped.has_value(), "an idle world can be dropped");
    book_.layouts.erase(root);
  }

  static void note_freed(std::uint64_t bytes, EvictReceipt& receipt) {
    receipt.evicted = receipt.evicted || bytes > 0;
    receipt.freed_bytes += bytes;
  }
  Error no_room(std::uint64_t bytes, std::uint64_t held) const {
    return make_error(Errc::out_of_room, "make_room",
                      fmt::format("{} bytes are needed, {} of {} are held, and nothing can be evicted", bytes, held,
                                  book_.marks.upper_bytes));
  }

  // What was committed later is no victim yet.
  [[nodiscard]] Nanos victims_before_ns() const {
    return book_.runtime.clock.now_ns() - book_.options.victim_age_min_ns;
  }

  // The lock is held.
  Node* next_victim(std::span<const Node* const> refused) {
    const Nanos committed_before_ns = victims_before_ns();
    return book_.forest.first_evictable([&](const Node& node) {
      return node.blob().ready && node.blob().committed_at_ns <= committed_before_ns &&
             std::find(refused.begin(), refused.end(), &node) == refused.end();
    });
  }

  void retry_eviction(const NodeKey& key, Absorbed& absorbed, std::vector<Error>& errors) {
    Eviction eviction;
    {
      const std::scoped_lock lock(book_.mutex);
      Node* node = book_.forest.find(key);
      // Gone by now, or stored anew: nothing is left of what was to be evicted.
      if (node == nullptr || !node->blob().present || node->blob().ready) return;
      if (Status begun = begin_eviction(*node, eviction); !begun) {
        evicting_.push_back(key);
        errors.push_back(std::move(begun.error()));
        return;
      }
    }
    if (Result<EvictReceipt> evicted = finish_eviction(eviction, absorbed); !evicted) {
      errors.push_back(std::move(evicted.error()));
    }
  }

  Book& book_;
  std::vector<NodeKey> evicting_;  // evictions to be tried again; guarded by the book's lock
};

}  // namespace holdfast
