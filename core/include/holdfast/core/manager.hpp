// The manager: which chunks are ready, what they cost, and how they get into and out of a store. One per process and
// namespace writer.
//
// Order: nothing is ready before the store said "stored" or "adopted"; a blob is withdrawn before its first value is
// removed; references are taken in the same step as the check that a path is ready.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "holdfast/core/capacity.hpp"
#include "holdfast/core/check.hpp"
#include "holdfast/core/owned_snapshots.hpp"
#include "holdfast/core/path_lease.hpp"
#include "holdfast/core/snapshot.hpp"
#include "holdfast/core/tier_store.hpp"
#include "holdfast/core/trie.hpp"
#include "holdfast/core/warm_up.hpp"
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

enum class IngestVerdict : std::uint8_t { stored, adopted, already_ready, elsewhere, failed, none };

struct IngestReceipt {
  IngestVerdict latent = IngestVerdict::none;  // none: the layout has no latents
  IngestVerdict kv = IngestVerdict::none;
};

struct EvictReceipt {
  bool evicted = false;  // false: there was no blob
  std::uint64_t freed_bytes = 0;
};

struct ManagerCounts {
  ForestCounts forest;
  // Slot bytes of blobs, latents, unsettled keys, quarantined plans, and of puts that are under way.
  std::uint64_t accounted_bytes = 0;
  std::uint64_t in_doubt_bytes = 0;  // of these: unsettled, quarantined, and of evictions that failed
  std::uint64_t unsettled = 0;
  std::uint64_t quarantined = 0;
  RegistryCounts registry;
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

// Works over a PathTierStore as it is, and over a TensorTierStore by owned snapshots.
//
// Thread-safe, but load, device_torn_down and shut_down need to be alone. One lock guards the forest, its nodes and all
// else that changes here. It is held across no call of the runtime or of a file, and only across those of the store
// that look at or add to its books. What an operation has seen under the lock it sees again under the lock before it
// acts on it, or has claimed for itself: a node by `being_written` (a put, an eviction), a path by its references,
// capacity by a reservation.
template <Runtime Rt, class Store>
class Manager final : public PathReferences {
 public:
  static constexpr bool kDirect = PathTierStore<Store>;
  static_assert(kDirect || TensorTierStore<Store>);
  using Access = typename StoreAccess<Rt, Store>::Type;

  // `runtime` and `store` outlive it.
  Manager(Rt& runtime, Store& store, const ManagerOptions& options)
    requires(kDirect)
      : runtime_(runtime), options_(options), store_(store), mutex_(runtime.sync), forest_(forest_options(options)) {}
  // `staging` too; see OwnedSnapshots.
  Manager(Rt& runtime, Store& store, const HostRange& staging, const ManagerOptions& options)
    requires(!kDirect)
      : runtime_(runtime),
        options_(options),
        store_(runtime, store, staging),
        mutex_(runtime.sync),
        forest_(forest_options(options)) {}

  // A session's world; the layout's and ring's own errors, and those of the options' marks. Ends with close; what is of
  // the world may end with its last session, and with whatever the caller holds of it.
  Result<Namespace*> open(const WorldSpec& spec) {
    if (Status valid = validate_marks(marks_); !valid) return std::move(valid.error());
    if (Status valid = validate_world(spec); !valid) return std::move(valid.error());
    const std::scoped_lock lock(mutex_);
    layouts_.insert_or_assign(spec.root, spec.layout);
    return &forest_.open_namespace({spec.root, spec.ring.sink_chunks()});
  }
  void close(Namespace& world) {
    const std::scoped_lock lock(mutex_);
    forest_.close_namespace(world);
  }

  // The longest path whose blobs, and latents where the layout has them, are ready, with references on its window.
  // Empty below break-even. LayoutMismatch when a record differs from the layout: nothing may be copied.
  Result<PathLease> lookup(Namespace& world, const WorldSpec& spec, std::span<const std::string_view> actions) {
    const std::scoped_lock lock(mutex_);
    Node* node = forest_.lookup(world, actions);
    while (!node->is_virtual_root() && node->matched_chunks() > spec.ring.max_chunks()) node = node->parent();
    std::vector<Node*> chain(node->matched_chunks());
    for (; !node->is_virtual_root(); node = node->parent()) chain[static_cast<std::size_t>(node->depth())] = node;
    if (spec.layout.has_latent()) {
      const auto missing =
          std::find_if(chain.begin(), chain.end(), [](const Node* link) { return !link->skeleton().ready; });
      chain.erase(missing, chain.end());
    }
    if (chain.empty() || chain.size() < spec.break_even_k) return PathLease();
    std::vector<Node*> window;
    for (const std::uint32_t depth : spec.ring.window_path(static_cast<std::uint32_t>(chain.size()))) {
      window.push_back(chain[depth]);
    }
    if (Status agrees = check_records(spec.layout, chain, window); !agrees) return std::move(agrees.error());
    forest_.acquire(window);
    PathLease path(*this, std::move(chain), std::move(window));
    path.see();
    return path;
  }
  void release_references(std::span<Node* const> nodes) override {
    const std::scoped_lock lock(mutex_);
    forest_.release(nodes);
  }

  // The latents of every chunk of the path into `targets`, one per chunk. Withdraws those that are corrupt.
  ReadOutcome restore_latents(const PathLease& path, const Layout& layout, std::span<const DeviceTensor> targets,
                              const CopyStream& stream, Absorbed& absorbed) {
    if (targets.size() != path.chain().size()) {
      return {ReadVerdict::failed, false,
              make_error(Errc::invalid_argument, "restore_latents", "one target per chunk")};
    }
    KeyBatch keys;
    std::vector<ReadCopy> copies;
    for (std::size_t i = 0; i < path.chain().size(); ++i) {
      keys.add_latent(path.chain()[i]->key());
      copies.push_back({i, 0, i, 0, layout.latent_bytes()});
    }
    const std::vector<std::uint64_t> value_bytes(copies.size(), layout.latent_bytes());
    const std::vector<std::uint32_t> groups(copies.size(), 1);
    const std::vector<GroupChecksum> checksums = checksums_of(path.seen_latents());
    ReadOutcome outcome =
        store_.restore({keys.keys(), value_bytes, groups, targets, copies, true, checksums}, stream, absorbed);
    for (const std::size_t i : outcome.corrupt_groups) {
      drop_latent(*path.chain()[i], path.seen_latents()[i].incarnation, kFoundThere);
    }
    if (outcome.verdict == ReadVerdict::restored) {
      const std::scoped_lock lock(mutex_);
      for (Node* node : path.chain()) forest_.confirm_skeleton(*node, outcome.epoch);
    }
    return outcome;
  }

  // The values of the path's window into the ring's tensors. Confirms what it restored, and withdraws the chunks that
  // are corrupt: exactly those.
  ReadOutcome restore_window(const PathLease& path, const WorldSpec& spec, std::span<const DeviceTensor> ring,
                             const CopyStream& stream, Absorbed& absorbed) {
    std::vector<std::uint32_t> depths;
    KeyBatch keys;
    for (const Node* node : path.window()) {
      depths.push_back(static_cast<std::uint32_t>(node->depth()));
      keys.add_chunk(node->key(), spec.layout.chunk_shape());
    }
    Result<std::vector<CopyRun>> runs = spec.ring.copy_runs(path.matched_chunks(), depths);
    if (!runs) return {ReadVerdict::failed, false, with_suppressed(std::move(runs.error()), absorbed)};
    const std::vector<std::uint64_t> of_chunk = value_lengths(spec.layout);
    std::vector<std::uint64_t> value_bytes;
    value_bytes.reserve(keys.size());
    for (std::size_t i = 0; i < depths.size(); ++i)
      value_bytes.insert(value_bytes.end(), of_chunk.begin(), of_chunk.end());
    const std::vector<std::uint32_t> groups(depths.size(), static_cast<std::uint32_t>(of_chunk.size()));
    const std::vector<ReadCopy> copies = window_copies(spec.layout, depths, *runs);
    const std::vector<GroupChecksum> checksums = checksums_of(path.seen_chunks());
    ReadOutcome outcome =
        store_.restore({keys.keys(), value_bytes, groups, ring, copies, false, checksums}, stream, absorbed);
    for (const std::size_t i : outcome.corrupt_groups) {
      drop_blob(*path.window()[i], path.seen_chunks()[i].incarnation, kFoundThere);
    }
    if (outcome.verdict == ReadVerdict::restored) {
      const std::scoped_lock lock(mutex_);
      for (Node* node : path.window()) forest_.confirm_blob(*node, outcome.epoch);
    }
    return outcome;
  }

  // After an incomplete read: asks the store for each blob of the window and each latent of the path by itself, and
  // withdraws exactly what is absent. A probe that fails withdraws nothing; nor does one that says of an earlier blob
  // that it is absent, when another has become ready meanwhile.
  void withdraw_absent(const PathLease& path, const Layout& layout, Absorbed& absorbed) {
    for (Node* node : path.window()) {
      KeyBatch keys;
      keys.add_chunk(node->key(), layout.chunk_shape());
      const std::uint64_t probed = read_locked([&] { return node->blob_incarnation(); });
      note_blob(*node, probed, ask(keys.keys(), absorbed));
    }
    if (!layout.has_latent()) return;
    for (Node* node : path.chain()) {
      KeyBatch keys;
      keys.add_latent(node->key());
      const std::uint64_t probed = read_locked([&] { return node->skeleton_incarnation(); });
      note_latent(*node, probed, ask(keys.keys(), absorbed));
    }
  }

  // The node of the chunk that `action` leads to behind `parent`; made when it is new. Counts as an access.
  Node& enter(Node& parent, std::string_view action) {
    const std::scoped_lock lock(mutex_);
    Node* node = forest_.get_or_create(parent, action);
    forest_.touch(*node);
    return *node;
  }

  // Stores a chunk: its latent first, then its K and V in key order; two puts, each published by itself. What is ready
  // already is not moved again; where that is but a hint, the store is asked first. An error says that nothing was
  // published. Where the latent was and the values were not, `kv` says "failed", and its error is absorbed.
  Result<IngestReceipt> ingest(Node& node, const Layout& layout, std::span<const DeviceTensor> values,
                               const DeviceTensor& latent, const CopyStream& stream, Absorbed& absorbed) {
    IngestReceipt receipt;
    Lacking lacking;
    std::vector<Claimed> hints;
    {
      const std::scoped_lock lock(mutex_);
      if (node.being_written()) {
        receipt.kv = IngestVerdict::elsewhere;
        receipt.latent = layout.has_latent() ? IngestVerdict::elsewhere : IngestVerdict::none;
        return receipt;
      }
      forest_.set_being_written(node, true);
      lacking = lacking_of(node, layout);
      hints = hints_of(node, layout);
    }
    if (!hints.empty()) {
      ask_for(hints, absorbed);
      lacking = read_locked([&] { return lacking_of(node, layout); });
    }
    if (layout.has_latent()) receipt.latent = IngestVerdict::already_ready;
    Status stored;
    if (lacking.latent) stored = ingest_latent(node, receipt, layout, latent, stream, absorbed);
    if (stored) receipt.kv = IngestVerdict::already_ready;
    if (stored && lacking.values) stored = ingest_values(node, receipt, layout, values, stream, absorbed);
    {
      const std::scoped_lock lock(mutex_);
      forest_.set_being_written(node, false);
    }
    if (stored) return receipt;
    if (receipt.latent != IngestVerdict::stored && receipt.latent != IngestVerdict::adopted) {
      return std::move(stored.error());
    }
    receipt.kv = IngestVerdict::failed;
    absorbed.push_back(std::move(stored.error()));
    return receipt;
  }

  // Removes the node's K and V, and keeps its latent and its place. No blob: a success that does nothing. InUse:
  // pinned, referenced, being written. Unsettled: a key's outcome is open. RemoveFailed: the blob is not served any
  // more, and its handle stays; pump() tries again.
  Result<EvictReceipt> evict_blob(Node& node, Absorbed& absorbed) {
    Eviction eviction;
    {
      const std::scoped_lock lock(mutex_);
      if (!node.blob().present) return EvictReceipt{};
      if (Status begun = begin_eviction(node, eviction); !begun) return std::move(begun.error());
    }
    return finish_eviction(eviction, absorbed);
  }

  // Lets idle worlds go and evicts blobs, in the policy's order, until `bytes` are free of the capacity. OutOfRoom when
  // that is not possible.
  Result<EvictReceipt> make_room(std::uint64_t bytes, Absorbed& absorbed) {
    return free_up({bytes, RoomFor::asking}, absorbed);
  }

  // Asks the store for the values of at most `nodes_max` nodes, of all worlds in turn, and withdraws exactly what is
  // absent. A probe that fails withdraws nothing. Errors are moved to `errors`.
  void probe(std::size_t nodes_max, std::vector<Error>& errors) {
    std::vector<Claimed> claimed;
    {
      const std::scoped_lock lock(mutex_);
      const std::uint64_t visits_max = nodes_max < kProbeVisits ? nodes_max * kProbeVisits : ~std::uint64_t{0};
      for (Node* node : forest_.next_ready(probe_cursor_, nodes_max, visits_max)) claimed.push_back(claimed_of(*node));
    }
    ask_for(claimed, errors);
  }
  // The same of every node that is ready now.
  void probe_all(std::vector<Error>& errors) { probe(std::numeric_limits<std::size_t>::max(), errors); }

  // Periodic work: settles what is due, tries failed evictions again, and probes as the options say. Gives the number
  // of keys settled. Errors are moved to `errors`; what they belong to stays queued.
  std::uint32_t pump(std::vector<Error>& errors) {
    const std::uint32_t settled = store_.pump(options_.pump_removals_max, errors);
    std::vector<NodeKey> evicting;
    {
      const std::scoped_lock lock(mutex_);
      const std::size_t turns = std::min(evicting_.size(), options_.pump_evictions_max);
      evicting.assign(evicting_.begin(), evicting_.begin() + static_cast<std::ptrdiff_t>(turns));
      evicting_.erase(evicting_.begin(), evicting_.begin() + static_cast<std::ptrdiff_t>(turns));
    }
    Absorbed absorbed;
    for (const NodeKey& key : evicting) retry_eviction(key, absorbed, errors);
    if (options_.pump_probes_max > 0) probe(options_.pump_probes_max, absorbed);
    errors.insert(errors.end(), std::make_move_iterator(absorbed.begin()), std::make_move_iterator(absorbed.end()));
    return settled;
  }

  // The forest as it is at one instant. InUse while another save is under way: of two at once, the older could replace
  // the newer, or its half-written file be renamed for whole.
  template <FileSystem F>
  Status save(F& files, const std::string& path) {
    Snapshot snapshot;
    {
      const std::scoped_lock lock(mutex_);
      if (saving_) return make_error(Errc::in_use, "save", "another snapshot is being written");
      saving_ = true;
      snapshot = take_snapshot(forest_);
    }
    Status written = write_snapshot(files, path, encode_snapshot(snapshot));
    const std::scoped_lock lock(mutex_);
    saving_ = false;
    return written;
  }
  // Adds what the snapshot knows; a missing file adds nothing. After an error nothing was added. Before the first put.
  template <FileSystem F>
  Status load(F& files, const std::string& path) {
    Result<Snapshot> snapshot = read_snapshot(files, path);
    if (!snapshot) return std::move(snapshot.error());
    const std::scoped_lock lock(mutex_);
    // Another process's clock: as far as we know, the last commits were just submitted.
    restore_snapshot(*snapshot, runtime_.clock.now_ns(), forest_);
    held_bytes_ = 0;
    for (Namespace* world : forest_.namespaces()) {
      for (const Node* node : forest_.nodes_of(*world)) held_bytes_ += held_by(*node);
    }
    return {};
  }

  // Makes the store ready now, so that the first put need not: see warm_up.hpp, and the store for its errors.
  Result<WarmUpReport> warm_up(Absorbed& absorbed, const WarmUpOptions& options = {}) {
    return store_.warm_up(absorbed, options);
  }
  // After an error that is_sticky() the caller tears the device context down; only then do quarantined plans end.
  void device_torn_down(std::vector<Error>& errors) { store_.device_torn_down(errors); }
  Status shut_down() { return store_.shut_down(); }

  [[nodiscard]] std::uint64_t accounted_bytes() const {
    const std::scoped_lock lock(mutex_);
    return accounted_locked();
  }
  [[nodiscard]] ManagerCounts counts() const {
    const std::scoped_lock lock(mutex_);
    ManagerCounts counts;
    counts.forest = forest_.counts();
    counts.accounted_bytes = accounted_locked();
    counts.in_doubt_bytes = store_.held_bytes() + counts.forest.slot_bytes - counts.forest.ready_slot_bytes;
    counts.unsettled = store_.unsettled_keys();
    counts.quarantined = store_.quarantined();
    counts.registry = store_.registry_counts();
    return counts;
  }
  [[nodiscard]] Node* find(const NodeKey& key) const {
    const std::scoped_lock lock(mutex_);
    return forest_.find(key);
  }

 private:
  // What of a chunk is not ready, as seen when its put began. Nobody else makes it ready until the put has ended.
  struct Lacking {
    bool latent = false;
    bool values = false;
  };
  // What of a node was ready, and in which incarnations; 0: was not.
  struct Claimed {
    NodeKey key;
    ChunkShape shape = {};
    std::uint64_t blob = 0;
    std::uint64_t skeleton = 0;
  };
  // A probe looks at so many nodes for each that it may probe.
  static constexpr std::size_t kProbeVisits = 64;
  // A blob that is withdrawn, and whose node is claimed, until finish_eviction.
  struct Eviction {
    Node* node = nullptr;
    KeyBatch keys;
    std::vector<std::uint64_t> value_bytes;
    Nanos committed_at_ns = 0;
  };

  // A latent that is withdrawn, and whose node is claimed, until finish_farewell.
  struct Farewell {
    Node* node = nullptr;
    std::uint64_t nbytes = 0;
    Nanos committed_at_ns = 0;
  };
  enum class RoomFor : std::uint8_t { asking, a_put };
  struct RoomRequest {
    std::uint64_t bytes = 0;
    RoomFor what = RoomFor::asking;  // a put makes room down to the lower mark, and takes what it needs at that instant
  };

  static ForestOptions forest_options(const ManagerOptions& options) {
    return {options.hash_seed, options.listener, options.eviction};
  }

  template <class Look>
  auto read_locked(Look&& look) const {
    const std::scoped_lock lock(mutex_);
    return std::forward<Look>(look)();
  }

  // The lock is held. The store's part is read under it too: what moves from here to there, or back, is in one of them
  // at any time, or in both.
  [[nodiscard]] std::uint64_t accounted_locked() const { return held_bytes_ + reserved_bytes_ + store_.held_bytes(); }

  static Status check_records(const Layout& layout, std::span<Node* const> chain, std::span<Node* const> window) {
    for (const Node* node : window) {
      const ChunkShape& shape = node->blob().shape;
      if (node->blob().nbytes != layout.blob_bytes() || shape != layout.chunk_shape()) {
        return make_error(
            Errc::layout_mismatch, "lookup",
            fmt::format("chunk {} was stored with {} bytes in {} layers of {} values, the layout has {} in {} of {}",
                        node->depth(), node->blob().nbytes, shape.n_layers, shape.parts, layout.blob_bytes(),
                        layout.n_layers, layout.chunk_shape().parts));
      }
    }
    for (const Node* node : chain) {
      if (layout.has_latent() && node->skeleton().nbytes != layout.latent_bytes()) {
        return make_error(Errc::layout_mismatch, "lookup",
                          fmt::format("the latent of chunk {} was stored with {} bytes, the layout has {}",
                                      node->depth(), node->skeleton().nbytes, layout.latent_bytes()));
      }
    }
    return {};
  }

  // The lengths of a node's values, in key order. Without its layout (restored, and no session yet; or another one was
  // given with its root): as if all equal, but of no fewer slots than it takes.
  std::vector<std::uint64_t> lengths_of(const Node& node) const {
    const std::size_t values = node.blob().shape.values();
    if (const auto layout = layouts_.find(node.world().root_key()); layout != layouts_.end()) {
      std::vector<std::uint64_t> lengths = value_lengths(layout->second);
      if (layout->second.blob_bytes() == node.blob().nbytes && lengths.size() == values) return lengths;
    }
    std::vector<std::uint64_t> lengths(values, node.blob().nbytes / std::max<std::size_t>(values, 1));
    const std::uint64_t slots = slot_bytes_of(lengths);
    if (slots < node.blob().slot_bytes && !lengths.empty()) lengths.back() += node.blob().slot_bytes - slots;
    return lengths;
  }

  // Empty where none is known.
  static std::vector<GroupChecksum> checksums_of(std::span<const SeenValues> seen) {
    std::vector<GroupChecksum> checksums;
    const auto known = [](const SeenValues& values) { return values.checksum.has_value(); };
    if (std::none_of(seen.begin(), seen.end(), known)) return checksums;
    for (const SeenValues& values : seen) checksums.push_back(values.checksum);
    return checksums;
  }

  static std::uint64_t held_by(const Node& node) {
    return (node.blob().present ? node.blob().slot_bytes : 0) +
           (node.skeleton().ready ? slot_bytes(node.skeleton().nbytes) : 0);
  }

  // The lock is held, and the node has a handle.
  Status begin_eviction(Node& node, Eviction& eviction) {
    if (Status evictable = forest_.check_evictable(node); !evictable) return evictable;
    eviction.keys.add_chunk(node.key(), node.blob().shape);
    if (store_.unsettled(eviction.keys.keys())) {
      return make_error(Errc::unsettled, "evict_blob", "a key's outcome is open");
    }
    eviction.node = &node;
    eviction.value_bytes = lengths_of(node);
    eviction.committed_at_ns = node.blob().committed_at_ns;
    forest_.withdraw_blob(node);
    forest_.set_being_written(node, true);
    return {};
  }
  Result<EvictReceipt> finish_eviction(const Eviction& eviction, Absorbed& absorbed) {
    RemoveOutcome removed =
        store_.remove({eviction.keys.keys(), eviction.value_bytes, eviction.committed_at_ns}, absorbed);
    const std::scoped_lock lock(mutex_);
    Node& node = *eviction.node;
    if (!removed.failures.empty()) {
      forest_.set_being_written(node, false);
      evicting_.push_back(node.key());
      Error error = make_error(Errc::remove_failed, "evict_blob",
                               fmt::format("{} of {} values", removed.failures.size(), eviction.keys.size()));
      error.causes = std::move(removed.failures);
      return with_suppressed(std::move(error), absorbed);
    }
    const std::uint64_t freed = forget_blob(node);
    forest_.set_being_written(node, false);
    return EvictReceipt{true, freed};
  }

  // The lock is held. What an idle world has left are latents that lead nowhere. They are withdrawn; without any, the
  // world goes at once. False, and nothing is done, when one of them is too young or in doubt.
  bool begin_farewell(Namespace& world, std::vector<Farewell>& leaving) {
    const Nanos committed_before_ns = victims_before_ns();
    KeyBatch keys;
    for (Node* node : forest_.nodes_of(world)) {
      if (!node->skeleton().ready) continue;
      if (node->skeleton().committed_at_ns > committed_before_ns) return false;
      keys.add_latent(node->key());
      leaving.push_back({node, node->skeleton().nbytes, node->skeleton().committed_at_ns});
    }
    if (store_.unsettled(keys.keys())) return false;
    for (const Farewell& latent : leaving) {
      forest_.set_being_written(*latent.node, true);
      forest_.withdraw_skeleton(*latent.node);
    }
    if (leaving.empty()) drop(world);
    return true;
  }
  // Removes them; what fails is removed later. Then the world goes, unless somebody has opened it meanwhile.
  std::uint64_t finish_farewell(Namespace& world, std::span<const Farewell> leaving, Absorbed& absorbed) {
    std::uint64_t freed = 0;
    for (const Farewell& latent : leaving) {
      KeyBatch keys;
      keys.add_latent(latent.node->key());
      const RemoveRequest request{keys.keys(), std::span(&latent.nbytes, 1), latent.committed_at_ns};
      RemoveOutcome removed = store_.remove(request, absorbed);
      const std::scoped_lock lock(mutex_);
      if (!removed.failures.empty()) store_.queue_removal(request);
      if (removed.removed > 0) freed += slot_bytes(latent.nbytes);
      held_bytes_ -= slot_bytes(latent.nbytes);
      absorbed.insert(absorbed.end(), std::make_move_iterator(removed.failures.begin()),
                      std::make_move_iterator(removed.failures.end()));
    }
    const std::scoped_lock lock(mutex_);
    for (const Farewell& latent : leaving) forest_.set_being_written(*latent.node, false);
    if (world.idle()) drop(world);
    return freed;
  }
  // The lock is held, and the world is idle.
  void drop(Namespace& world) {
    const NodeKey root = world.root_key();
    const Status dropped = forest_.drop_namespace(world);
    check(dropped.has_value(), "an idle world can be dropped");
    layouts_.erase(root);
  }

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
        const std::scoped_lock lock(mutex_);
        const std::uint64_t held = marks_.limited() ? accounted_locked() : 0;
        const bool fits = marks_.fits(held, request.bytes);
        // Down to the lower mark only when it had to be made.
        const bool enough = request.what == RoomFor::asking || !receipt.evicted || marks_.is_low(held);
        Node* victim = nullptr;
        // What can never fit is not worth a single blob.
        if (!(fits && enough) && marks_.fits(0, request.bytes)) {
          idle = worlds_stay ? nullptr : forest_.longest_idle();
          if (idle == nullptr) victim = next_victim(refused);
        }
        if (idle == nullptr && victim == nullptr) {
          if (!fits) return with_suppressed(no_room(request.bytes, held), absorbed);
          if (request.what == RoomFor::a_put) reserved_bytes_ += request.bytes;
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
  static void note_freed(std::uint64_t bytes, EvictReceipt& receipt) {
    receipt.evicted = receipt.evicted || bytes > 0;
    receipt.freed_bytes += bytes;
  }
  Error no_room(std::uint64_t bytes, std::uint64_t held) const {
    return make_error(Errc::out_of_room, "make_room",
                      fmt::format("{} bytes are needed, {} of {} are held, and nothing can be evicted", bytes, held,
                                  marks_.upper_bytes));
  }

  std::uint64_t forget_blob(Node& node) {
    const std::uint64_t freed = node.blob().slot_bytes;
    forest_.forget_blob(node);
    held_bytes_ -= freed;
    return freed;
  }

  // What was committed later is no victim yet.
  [[nodiscard]] Nanos victims_before_ns() const { return runtime_.clock.now_ns() - options_.victim_age_min_ns; }

  // The lock is held.
  Node* next_victim(std::span<const Node* const> refused) {
    const Nanos committed_before_ns = victims_before_ns();
    return forest_.first_evictable([&](const Node& node) {
      return node.blob().ready && node.blob().committed_at_ns <= committed_before_ns &&
             std::find(refused.begin(), refused.end(), &node) == refused.end();
    });
  }

  // The lock is held, here and in the next two.
  static Lacking lacking_of(const Node& node, const Layout& layout) {
    return {.latent = layout.has_latent() && !node.skeleton().ready, .values = !node.blob().ready};
  }
  static Claimed claimed_of(const Node& node) {
    return {node.key(), node.blob().shape, node.blob().ready ? node.blob_incarnation() : 0,
            node.skeleton().ready ? node.skeleton_incarnation() : 0};
  }
  // What of the node is ready, but last seen by an earlier process, or in an earlier epoch of the store.
  std::vector<Claimed> hints_of(const Node& node, const Layout& layout) const {
    Claimed hints = claimed_of(node);
    if (!layout.has_latent()) hints.skeleton = 0;
    if (hints.blob == 0 && hints.skeleton == 0) return {};
    const std::uint64_t epoch = store_.epoch();
    if (node.blob().confirmed && node.blob().epoch >= epoch) hints.blob = 0;
    if (node.skeleton().confirmed && node.skeleton().epoch >= epoch) hints.skeleton = 0;
    if (hints.blob == 0 && hints.skeleton == 0) return {};
    return {hints};
  }

  // What the store says of them; nothing when it cannot say.
  std::optional<Presence> ask(Keys keys, Absorbed& absorbed) {
    Result<Presence> found = store_.probe(keys, absorbed);
    if (found) return *found;
    absorbed.push_back(std::move(found.error()));
    return std::nullopt;
  }
  // Each by a probe of its own.
  void ask_for(std::span<const Claimed> claimed, Absorbed& absorbed) {
    for (const Claimed& claim : claimed) {
      KeyBatch latent;
      KeyBatch values;
      if (claim.skeleton != 0) latent.add_latent(claim.key);
      if (claim.blob != 0) values.add_chunk(claim.key, claim.shape);
      std::optional<Presence> found_latent;
      std::optional<Presence> found_values;
      if (claim.skeleton != 0) found_latent = ask(latent.keys(), absorbed);
      if (claim.blob != 0) found_values = ask(values.keys(), absorbed);
      // By its key: its namespace may have been dropped meanwhile.
      Node* node = find(claim.key);
      if (node == nullptr) continue;
      note_latent(*node, claim.skeleton, found_latent);
      note_blob(*node, claim.blob, found_values);
    }
  }
  void note_blob(Node& node, std::uint64_t probed, const std::optional<Presence>& found) {
    if (!found) return;
    if (!found->present) {
      drop_blob(node, probed, found->epoch);
      return;
    }
    const std::scoped_lock lock(mutex_);
    if (node.blob_incarnation() == probed) forest_.confirm_blob(node, found->epoch);
  }
  void note_latent(Node& node, std::uint64_t probed, const std::optional<Presence>& found) {
    if (!found) return;
    if (!found->present) {
      drop_latent(node, probed, found->epoch);
      return;
    }
    const std::scoped_lock lock(mutex_);
    if (node.skeleton_incarnation() == probed) forest_.confirm_skeleton(node, found->epoch);
  }

  // The lock is held, and the node has a handle.
  void queue_blob_removal(const Node& node) {
    KeyBatch keys;
    keys.add_chunk(node.key(), node.blob().shape);
    const std::vector<std::uint64_t> value_bytes = lengths_of(node);
    store_.queue_removal({keys.keys(), value_bytes, node.blob().committed_at_ns});
  }
  // For the epoch in which it was found absent: it was found, and is corrupt.
  static constexpr std::uint64_t kFoundThere = 0;
  // Stored by an owner that has gone, and all it had with it: nothing is left to be removed.
  template <class State>
  static bool gone_with_its_owner(const State& state, std::uint64_t epoch) {
    return state.confirmed && state.epoch < epoch;
  }
  // A blob that the store lost, perhaps in part, or that is corrupt: the rest of it must not stay. Only the very one
  // that was probed or read, and not one that an eviction has withdrawn, which lets it go by itself.
  void drop_blob(Node& node, std::uint64_t probed, std::uint64_t epoch) {
    const std::scoped_lock lock(mutex_);
    if (!node.blob().ready || node.blob_incarnation() != probed) return;
    if (!gone_with_its_owner(node.blob(), epoch)) queue_blob_removal(node);
    forget_blob(node);
  }
  void drop_latent(Node& node, std::uint64_t probed, std::uint64_t epoch) {
    KeyBatch keys;
    keys.add_latent(node.key());
    const std::scoped_lock lock(mutex_);
    if (!node.skeleton().ready || node.skeleton_incarnation() != probed) return;
    // A key that failed by itself looks absent too: what may still be there must not stay unknown.
    const std::uint64_t value_bytes = node.skeleton().nbytes;
    if (!gone_with_its_owner(node.skeleton(), epoch)) {
      store_.queue_removal({keys.keys(), std::span(&value_bytes, 1), node.skeleton().committed_at_ns});
    }
    held_bytes_ -= slot_bytes(value_bytes);
    forest_.withdraw_skeleton(node);
  }

  static IngestVerdict verdict_of(PutVerdict verdict) {
    switch (verdict) {
      case PutVerdict::stored:
        return IngestVerdict::stored;
      case PutVerdict::adopted:
        return IngestVerdict::adopted;
      case PutVerdict::elsewhere:
        break;
    }
    return IngestVerdict::elsewhere;
  }

  // A put whose slots count from before it starts until `publish(receipt)`, which is called under the lock unless the
  // put failed or was somebody else's.
  template <class Publish>
  Result<PutReceipt> put_reserved(Keys keys, std::span<const DeviceTensor> tensors, std::uint64_t slots,
                                  const CopyStream& stream, Absorbed& absorbed, Publish&& publish) {
    if (Result<EvictReceipt> room = free_up({slots, RoomFor::a_put}, absorbed); !room) return std::move(room.error());
    Result<PutReceipt> put = store_.put(keys, tensors, stream, absorbed);
    const std::scoped_lock lock(mutex_);
    reserved_bytes_ -= slots;
    if (put && put->verdict != PutVerdict::elsewhere && publish(*put)) held_bytes_ += slots;
    return put;
  }

  Status ingest_latent(Node& node, IngestReceipt& receipt, const Layout& layout, const DeviceTensor& latent,
                       const CopyStream& stream, Absorbed& absorbed) {
    if (latent.bytes != layout.latent_bytes()) {
      return make_error(Errc::layout_mismatch, "ingest", "the latent's length is not the layout's");
    }
    KeyBatch keys;
    keys.add_latent(node.key());
    Result<PutReceipt> put = put_reserved(
        keys.keys(), std::span(&latent, 1), slot_bytes(latent.bytes), stream, absorbed, [&](const PutReceipt& stored) {
          return forest_.set_skeleton_ready(node, {latent.bytes, stored.committed_ns, stored.epoch, stored.checksum});
        });
    if (!put) return std::move(put.error());
    receipt.latent = verdict_of(put->verdict);
    return {};
  }

  Status ingest_values(Node& node, IngestReceipt& receipt, const Layout& layout, std::span<const DeviceTensor> values,
                       const CopyStream& stream, Absorbed& absorbed) {
    const std::vector<std::uint64_t> value_bytes = value_lengths(layout);
    const bool fits = std::equal(values.begin(), values.end(), value_bytes.begin(), value_bytes.end(),
                                 [](const DeviceTensor& tensor, std::uint64_t bytes) { return tensor.bytes == bytes; });
    if (!fits) return make_error(Errc::layout_mismatch, "ingest", "the values' lengths are not the layout's");
    forget_left_handle(node);
    const std::uint64_t slots = slot_bytes_of(value_bytes);
    KeyBatch keys;
    keys.add_chunk(node.key(), layout.chunk_shape());
    Result<PutReceipt> put = put_reserved(keys.keys(), values, slots, stream, absorbed, [&](const PutReceipt& stored) {
      return forest_.set_blob_ready(
          node, {layout.blob_bytes(), slots, layout.chunk_shape(), stored.committed_ns, stored.epoch, stored.checksum});
    });
    if (!put) return std::move(put.error());
    receipt.kv = verdict_of(put->verdict);
    return {};
  }

  // An eviction that failed left a handle: what is still there must go before the chunk is stored anew.
  void forget_left_handle(Node& node) {
    const std::scoped_lock lock(mutex_);
    if (!node.blob().present || node.blob().ready) return;
    queue_blob_removal(node);
    forget_blob(node);
  }

  void retry_eviction(const NodeKey& key, Absorbed& absorbed, std::vector<Error>& errors) {
    Eviction eviction;
    {
      const std::scoped_lock lock(mutex_);
      Node* node = forest_.find(key);
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

  Rt& runtime_;
  const ManagerOptions options_;
  const CapacityMarks marks_{options_.capacity_bytes, options_.lower_mark_bytes};
  Access store_;
  mutable typename Rt::SyncType::Mutex mutex_;
  // Guarded by mutex_:
  Forest forest_;
  std::map<NodeKey, Layout> layouts_;  // by root, of every world that a session has opened
  std::vector<NodeKey> evicting_;      // evictions to be tried again
  std::uint64_t probe_cursor_ = 0;
  std::uint64_t held_bytes_ = 0;      // slot bytes of handles and ready latents
  std::uint64_t reserved_bytes_ = 0;  // slot bytes of puts under way
  bool saving_ = false;
};

}  // namespace holdfast
