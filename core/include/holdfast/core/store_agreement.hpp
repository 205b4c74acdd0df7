// How a manager stays in agreement with a store that loses values by itself: probes, and the withdrawal of exactly what
// is absent or corrupt.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "holdfast/core/manager_book.hpp"
#include "holdfast/core/path_lease.hpp"

namespace holdfast {

// What of a node was ready, and in which incarnations; 0: was not.
struct ReadyParts {
  NodeKey key;
  ChunkShape shape = {};
  std::uint64_t blob = 0;
  std::uint64_t skeleton = 0;
};
// For the epoch in which it was found absent: it was found, and is corrupt.
inline constexpr std::uint64_t kFoundThere = 0;

// A probe that fails withdraws nothing; nor does one that says of an earlier blob or latent that it is absent, when
// another has become ready meanwhile.
template <class Book>
class StoreAgreement {
 public:
  explicit StoreAgreement(Book& book) : book_(book) {}

  // Each blob of the window and each latent of the path by a probe of its own.
  void ask_for_path(const PathLease& path, const Layout& layout, Absorbed& absorbed, StageStats& asked) {
    for (Node* node : path.window()) {
      KeyBatch keys;
      keys.add_chunk(node->key(), layout.chunk_shape());
      const std::uint64_t probed = book_.read_locked([&] { return node->blob_incarnation(); });
      note_blob(*node, probed, ask(keys.keys(), absorbed, asked));
    }
    if (!layout.has_latent()) return;
    for (Node* node : path.chain()) {
      KeyBatch keys;
      keys.add_latent(node->key());
      const std::uint64_t probed = book_.read_locked([&] { return node->skeleton_incarnation(); });
      note_latent(*node, probed, ask(keys.keys(), absorbed, asked));
    }
  }
  // Asks the store for the values of at most `nodes_max` nodes, of all worlds in turn, and withdraws exactly what is
  // absent. A probe that fails withdraws nothing. Errors are moved to `errors`.
  void probe(std::size_t nodes_max, std::vector<Error>& errors) {
    std::vector<ReadyParts> claimed;
    {
      const std::scoped_lock lock(book_.mutex);
      const std::uint64_t visits_max = nodes_max < kProbeVisits ? nodes_max * kProbeVisits : ~std::uint64_t{0};
      for (Node* node : book_.forest.next_ready(probe_cursor_, nodes_max, visits_max))
        claimed.push_back(ready_parts_of(*node));
    }
    ask_for(claimed, errors);
  }
  // Each by a probe of its own.
  void ask_for(std::span<const ReadyParts> claimed, Absorbed& absorbed) {
    for (const ReadyParts& claim : claimed) {
      KeyBatch latent;
      KeyBatch values;
      if (claim.skeleton != 0) latent.add_latent(claim.key);
      if (claim.blob != 0) values.add_chunk(claim.key, claim.shape);
      std::optional<Presence> found_latent;
      std::optional<Presence> found_values;
      StageStats asked;
      if (claim.skeleton != 0) found_latent = ask(latent.keys(), absorbed, asked);
      if (claim.blob != 0) found_values = ask(values.keys(), absorbed, asked);
      // By its key: its namespace may have been dropped meanwhile.
      Node* node = find_asked(claim.key, asked);
      if (node == nullptr) continue;
      note_latent(*node, claim.skeleton, found_latent);
      note_blob(*node, claim.blob, found_values);
    }
  }

  // The lock is held, here and in the next.
  static ReadyParts ready_parts_of(const Node& node) {
    return {node.key(), node.blob().shape, node.blob().ready ? node.blob_incarnation() : 0,
            node.skeleton().ready ? node.skeleton_incarnation() : 0};
  }
  // What of the node is ready, but last seen by an earlier process, or in an earlier epoch of the store.
  std::vector<ReadyParts> hints_of(const Node& node, const Layout& layout) const {
    ReadyParts hints = ready_parts_of(node);
    if (!layout.has_latent()) hints.skeleton = 0;
    if (hints.blob == 0 && hints.skeleton == 0) return {};
    const std::uint64_t epoch = book_.store.epoch();
    if (node.blob().confirmed && node.blob().epoch >= epoch) hints.blob = 0;
    if (node.skeleton().confirmed && node.skeleton().epoch >= epoch) hints.skeleton = 0;
    if (hints.blob == 0 && hints.skeleton == 0) return {};
    return {hints};
  }

  // A blob that the store lost, perhaps in part, or that is corrupt: the rest of it must not stay. Only the very one
  // that was probed or read, and not one that an eviction has withdrawn, which lets it go by itself.
  void drop_blob(Node& node, std::uint64_t probed, std::uint64_t epoch) {
    const std::scoped_lock lock(book_.mutex);
    if (!node.blob().ready || node.blob_incarnation() != probed) return;
    if (!gone_with_its_owner(node.blob(), epoch)) book_.queue_blob_removal(node);
    book_.forget_blob(node);
    ++book_.stats.withdrawn_blobs;
  }
  void drop_latent(Node& node, std::uint64_t probed, std::uint64_t epoch) {
    KeyBatch keys;
    keys.add_latent(node.key());
    const std::scoped_lock lock(book_.mutex);
    if (!node.skeleton().ready || node.skeleton_incarnation() != probed) return;
    // A key that failed by itself looks absent too: what may still be there must not stay unknown.
    const std::uint64_t value_bytes = node.skeleton().nbytes;
    if (!gone_with_its_owner(node.skeleton(), epoch)) {
      book_.store.queue_removal({keys.keys(), std::span(&value_bytes, 1), node.skeleton().committed_at_ns});
    }
    book_.held_bytes -= slot_bytes(value_bytes);
    book_.forest.withdraw_skeleton(node);
    ++book_.stats.withdrawn_latents;
  }

 private:
  // A probe looks at so many nodes for each that it may probe.
  static constexpr std::size_t kProbeVisits = 64;

  // What the store says of them; nothing when it cannot say.
  std::optional<Presence> ask(Keys keys, Absorbed& absorbed, StageStats& asked) {
    const Nanos began_ns = book_.now_ns();
    Result<Presence> found = book_.store.probe(keys, absorbed);
    asked += {1, found ? std::uint64_t{0} : 1, book_.now_ns() - began_ns};
    if (found) return *found;
    absorbed.push_back(std::move(found.error()));
    return std::nullopt;
  }
  Node* find_asked(const NodeKey& key, const StageStats& asked) {
    const std::scoped_lock lock(book_.mutex);
    book_.stats.at(Stage::probe) += asked;
    return book_.forest.find(key);
  }
  void note_blob(Node& node, std::uint64_t probed, const std::optional<Presence>& found) {
    if (!found) return;
    if (!found->present) {
      drop_blob(node, probed, found->epoch);
      return;
    }
    const std::scoped_lock lock(book_.mutex);
    if (node.blob_incarnation() == probed) book_.forest.confirm_blob(node, found->epoch);
  }
  void note_latent(Node& node, std::uint64_t probed, const std::optional<Presence>& found) {
    if (!found) return;
    if (!found->present) {
      drop_latent(node, probed, found->epoch);
      return;
    }
    const std::scoped_lock lock(book_.mutex);
    if (node.skeleton_incarnation() == probed) book_.forest.confirm_skeleton(node, found->epoch);
  }

  // Stored by an owner that has gone, and all it had with it: nothing is left to be removed.
  template <class State>
  static bool gone_with_its_owner(const State& state, std::uint64_t epoch) {
    return state.confirmed && state.epoch < epoch;
  }

  Book& book_;
  std::uint64_t probe_cursor_ = 0;  // guarded by the book's lock
};

}  // namespace holdfast
