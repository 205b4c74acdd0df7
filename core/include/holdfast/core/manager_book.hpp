// What the parts of a manager share: the store, the forest of what it holds, and what that costs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "holdfast/core/capacity.hpp"
#include "holdfast/core/owned_snapshots.hpp"
#include "holdfast/core/stats.hpp"
#include "holdfast/core/tier_store.hpp"
#include "holdfast/core/trie.hpp"
#include "holdfast/core/world.hpp"

namespace holdfast {

struct ManagerOptions {
  std::uint64_t capacity_bytes = 0;    // the upper mark, see CapacityMarks
  std::uint64_t lower_mark_bytes = 0;  // see there
  EvictionPolicy* eviction = nullptr;  // of this manager alone, outlives it; null: the least recently used goes first
  std::uint64_t hash_seed = 0;
  TrieListener* listener = nullptr;  // outlives the manager
  // Younger blobs are no victims of make_room: their routes may not exist yet, so that removing them would free
  // nothing.
  Nanos victim_age_min_ns = kSecond;
  std::size_t pump_removals_max = 1024;
  std::size_t pump_evictions_max = 64;
  std::size_t pump_probes_max = 0;  // nodes whose values pump asks the store for; 0 = none
};

// How a manager reaches its store: a PathTierStore as it is, any other by owned snapshots.
template <Runtime Rt, class Store>
struct StoreAccess {
  using Type = OwnedSnapshots<Rt, Store>;
};
template <Runtime Rt, PathTierStore Store>
struct StoreAccess<Rt, Store> {
  using Type = Store&;
};

// One lock guards the forest, its nodes and all else here that changes. It is held across no call of the runtime or of
// a file, and only across those of the store that look at or add to its books. What an operation has seen under the
// lock it sees again under the lock before it acts on it, or has claimed for itself: a node by `being_written` (a put,
// an eviction), a path by its references, capacity by a reservation.
template <Runtime Rt, class Store>
struct ManagerBook {
  static constexpr bool kDirect = PathTierStore<Store>;
  static_assert(kDirect || TensorTierStore<Store>);
  using Access = typename StoreAccess<Rt, Store>::Type;

  // `runtime_given` and `store_given` outlive it.
  ManagerBook(Rt& runtime_given, Store& store_given, const ManagerOptions& options_given)
    requires(kDirect)
      : runtime(runtime_given),
        options(options_given),
        store(store_given),
        mutex(runtime.sync),
        forest({options.hash_seed, options.listener, options.eviction}) {}
  // `staging` too; see OwnedSnapshots.
  ManagerBook(Rt& runtime_given, Store& store_given, const HostRange& staging, const ManagerOptions& options_given)
    requires(!kDirect)
      : runtime(runtime_given),
        options(options_given),
        store(runtime, store_given, staging),
        mutex(runtime.sync),
        forest({options.hash_seed, options.listener, options.eviction}) {}

  [[nodiscard]] Nanos now_ns() const { return runtime.clock.now_ns(); }
  template <class Look>
  auto read_locked(Look&& look) const {
    const std::scoped_lock lock(mutex);
    return std::forward<Look>(look)();
  }

  // From here on the lock is held.

  void note(Stage stage, Nanos began_ns, bool failed) {
    stats.at(stage) += {1, failed ? std::uint64_t{1} : 0, now_ns() - began_ns};
  }

  // The store's part is read under the lock too: what moves from here to there, or back, is in one of them
  // at any time, or in both.
  [[nodiscard]] std::uint64_t accounted_bytes() const { return held_bytes + reserved_bytes + store.held_bytes(); }

  // The lengths of a node's values, in key order. Without its layout (restored, and no session yet; or another one was
  // given with its root): as if all equal, but of no fewer slots than it takes.
  std::vector<std::uint64_t> lengths_of(const Node& node) const {
    const std::size_t values = node.blob().shape.values();
    if (const auto layout = layouts.find(node.world().root_key()); layout != layouts.end()) {
      std::vector<std::uint64_t> lengths = value_lengths(layout->second);
      if (layout->second.blob_bytes() == node.blob().nbytes && lengths.size() == values) return lengths;
    }
    std::vector<std::uint64_t> lengths(values, node.blob().nbytes / std::max<std::size_t>(values, 1));
    const std::uint64_t slots = slot_bytes_of(lengths);
    if (slots < node.blob().slot_bytes && !lengths.empty()) lengths.back() += node.blob().slot_bytes - slots;
    return lengths;
  }

  static std::uint64_t held_by(const Node& node) {
    return (node.blob().present ? node.blob().slot_bytes : 0) +
           (node.skeleton().ready ? slot_bytes(node.skeleton().nbytes) : 0);
  }

  std::uint64_t forget_blob(Node& node) {
    const std::uint64_t freed = node.blob().slot_bytes;
    forest.forget_blob(node);
    held_bytes -= freed;
    return freed;
  }

  // Of a node that has a handle.
  void queue_blob_removal(const Node& node) {
    KeyBatch keys;
    keys.add_chunk(node.key(), node.blob().shape);
    const std::vector<std::uint64_t> value_bytes = lengths_of(node);
    store.queue_removal({keys.keys(), value_bytes, node.blob().committed_at_ns});
  }

  Rt& runtime;
  const ManagerOptions options;
  const CapacityMarks marks{options.capacity_bytes, options.lower_mark_bytes};
  Access store;
  mutable typename Rt::SyncType::Mutex mutex;
  // Guarded by it:
  Forest forest;
  std::map<NodeKey, Layout> layouts;  // by root, of every world that a session has opened
  std::uint64_t held_bytes = 0;       // slot bytes of handles and ready latents
  std::uint64_t reserved_bytes = 0;   // slot bytes of puts under way
  Stats stats;                        // of operations that have ended
};

}  // namespace holdfast
