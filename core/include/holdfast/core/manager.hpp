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
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/manager_book.hpp"
#include "holdfast/core/path_lease.hpp"
#include "holdfast/core/room_maker.hpp"
#include "holdfast/core/snapshot.hpp"
#include "holdfast/core/stats.hpp"
#include "holdfast/core/store_agreement.hpp"
#include "holdfast/core/tier_store.hpp"
#include "holdfast/core/trie.hpp"
#include "holdfast/core/warm_up.hpp"
#include "holdfast/core/world.hpp"

namespace holdfast {

enum class IngestVerdict : std::uint8_t { stored, adopted, already_ready, elsewhere, failed, none };

struct IngestReceipt {
  IngestVerdict latent = IngestVerdict::none;  // none: the layout has no latents
  IngestVerdict kv = IngestVerdict::none;
};

struct ManagerCounts {
  ForestCounts forest;
  // Slot bytes of blobs, latents, unsettled keys, quarantined plans, and of puts that are under way.
  std::uint64_t accounted_bytes = 0;
  std::uint64_t in_doubt_bytes = 0;  // of these: unsettled, quarantined, and of evictions that failed
  std::uint64_t unsettled = 0;
  std::uint64_t quarantined = 0;
  RegistryCounts registry;
  Stats stats;
};

// Works over a PathTierStore as it is, and over a TensorTierStore by owned snapshots.
//
// Thread-safe, but load, device_torn_down and shut_down need to be alone. See ManagerBook for the lock.
template <Runtime Rt, class Store>
class Manager final : public PathReferences {
 public:
  static constexpr bool kDirect = ManagerBook<Rt, Store>::kDirect;

  // `runtime` and `store` outlive it.
  Manager(Rt& runtime, Store& store, const ManagerOptions& options)
    requires(kDirect)
      : book_(runtime, store, options) {}
  // `staging` too; see OwnedSnapshots.
  Manager(Rt& runtime, Store& store, const HostRange& staging, const ManagerOptions& options)
    requires(!kDirect)
      : book_(runtime, store, staging, options) {}

  // A session's world; the layout's and ring's own errors, and those of the options' marks. Ends with close; what is of
  // the world may end with its last session, and with whatever the caller holds of it.
  Result<Namespace*> open(const WorldSpec& spec) {
    if (Status valid = validate_marks(book_.marks); !valid) return std::move(valid.error());
    if (Status valid = validate_world(spec); !valid) return std::move(valid.error());
    const std::scoped_lock lock(book_.mutex);
    book_.layouts.insert_or_assign(spec.root, spec.layout);
    return &book_.forest.open_namespace({spec.root, spec.ring.sink_chunks()});
  }
  void close(Namespace& world) {
    const std::scoped_lock lock(book_.mutex);
    book_.forest.close_namespace(world);
  }

  // The longest path whose blobs, and latents where the layout has them, are ready, with references on its window.
  // Empty below break-even. LayoutMismatch when a record differs from the layout: nothing may be copied.
  Result<PathLease> lookup(Namespace& world, const WorldSpec& spec, std::span<const std::string_view> actions) {
    const Nanos began_ns = book_.now_ns();
    const std::scoped_lock lock(book_.mutex);
    Result<PathLease> path = longest_path(world, spec, actions);
    book_.note(Stage::lookup, began_ns, !path);
    return path;
  }
  void release_references(std::span<Node* const> nodes, const Stats& spent) override {
    const std::scoped_lock lock(book_.mutex);
    book_.forest.release(nodes);
    book_.stats += spent;
  }

  // The latents of every chunk of the path into `targets`, one per chunk. Withdraws those that are corrupt.
  ReadOutcome restore_latents(PathLease& path, const Layout& layout, std::span<const DeviceTensor> targets,
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
        restore(path, {keys.keys(), value_bytes, groups, targets, copies, true, checksums}, stream, absorbed);
    for (const std::size_t i : outcome.corrupt_groups) {
      agreement_.drop_latent(*path.chain()[i], path.seen_latents()[i].incarnation, kFoundThere);
    }
    if (outcome.verdict == ReadVerdict::restored) {
      const std::scoped_lock lock(book_.mutex);
      for (Node* node : path.chain()) book_.forest.confirm_skeleton(*node, outcome.epoch);
    }
    return outcome;
  }

  // The values of the path's window into the ring's tensors. Confirms what it restored, and withdraws the chunks that
  // are corrupt: exactly those.
  ReadOutcome restore_window(PathLease& path, const WorldSpec& spec, std::span<const DeviceTensor> ring,
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
        restore(path, {keys.keys(), value_bytes, groups, ring, copies, false, checksums}, stream, absorbed);
    for (const std::size_t i : outcome.corrupt_groups) {
      agreement_.drop_blob(*path.window()[i], path.seen_chunks()[i].incarnation, kFoundThere);
    }
    if (outcome.verdict == ReadVerdict::restored) {
      const std::scoped_lock lock(book_.mutex);
      for (Node* node : path.window()) book_.forest.confirm_blob(*node, outcome.epoch);
    }
    return outcome;
  }

  // After an incomplete read: asks the store for each blob of the window and each latent of the path by itself, and
  // withdraws exactly what is absent. A probe that fails withdraws nothing; nor does one that says of an earlier blob
  // that it is absent, when another has become ready meanwhile.
  void withdraw_absent(PathLease& path, const Layout& layout, Absorbed& absorbed) {
    Stats spent;
    agreement_.ask_for_path(path, layout, absorbed, spent.at(Stage::probe));
    path.add(spent);
  }

  // The node of the chunk that `action` leads to behind `parent`; made when it is new. Counts as an access.
  Node& enter(Node& parent, std::string_view action) {
    const std::scoped_lock lock(book_.mutex);
    Node* node = book_.forest.get_or_create(parent, action);
    book_.forest.touch(*node);
    return *node;
  }

  // Stores a chunk: its latent first, then its K and V in key order; two puts, each published by itself. What is ready
  // already is not moved again; where that is but a hint, the store is asked first. An error says that nothing was
  // published. Where the latent was and the values were not, `kv` says "failed", and its error is absorbed.
  Result<IngestReceipt> ingest(Node& node, const Layout& layout, std::span<const DeviceTensor> values,
                               const DeviceTensor& latent, const CopyStream& stream, Absorbed& absorbed) {
    IngestReceipt receipt;
    Lacking lacking;
    std::vector<ReadyParts> hints;
    {
      const std::scoped_lock lock(book_.mutex);
      if (node.being_written()) {
        receipt.kv = IngestVerdict::elsewhere;
        receipt.latent = layout.has_latent() ? IngestVerdict::elsewhere : IngestVerdict::none;
        return receipt;
      }
      book_.forest.set_being_written(node, true);
      lacking = lacking_of(node, layout);
      hints = agreement_.hints_of(node, layout);
    }
    if (!hints.empty()) {
      agreement_.ask_for(hints, absorbed);
      lacking = book_.read_locked([&] { return lacking_of(node, layout); });
    }
    if (layout.has_latent()) receipt.latent = IngestVerdict::already_ready;
    Status stored;
    if (lacking.latent) stored = ingest_latent(node, receipt, layout, latent, stream, absorbed);
    if (stored) receipt.kv = IngestVerdict::already_ready;
    if (stored && lacking.values) stored = ingest_values(node, receipt, layout, values, stream, absorbed);
    {
      const std::scoped_lock lock(book_.mutex);
      book_.forest.set_being_written(node, false);
    }
    if (stored) return receipt;
    if (receipt.latent != IngestVerdict::stored && receipt.latent != IngestVerdict::adopted) {
      return std::move(stored.error());
    }
    receipt.kv = IngestVerdict::failed;
    absorbed.push_back(std::move(stored.error()));
    return receipt;
  }

  // See RoomMaker.
  Result<EvictReceipt> evict_blob(Node& node, Absorbed& absorbed) { return room_.evict(node, absorbed); }
  // Lets idle worlds go and evicts blobs, in the policy's order, until `bytes` are free of the capacity. OutOfRoom when
  // that is not possible.
  Result<EvictReceipt> make_room(std::uint64_t bytes, Absorbed& absorbed) {
    return room_.free_up({bytes, RoomFor::asking}, absorbed);
  }

  // See StoreAgreement.
  void probe(std::size_t nodes_max, std::vector<Error>& errors) { agreement_.probe(nodes_max, errors); }
  // The same of every node that is ready now.
  void probe_all(std::vector<Error>& errors) { probe(std::numeric_limits<std::size_t>::max(), errors); }

  // Periodic work: settles what is due, tries failed evictions again, and probes as the options say. Gives the number
  // of keys settled. Errors are moved to `errors`; what they belong to stays queued.
  std::uint32_t pump(std::vector<Error>& errors) {
    const Nanos began_ns = book_.now_ns();
    const std::size_t told = errors.size();
    const std::uint32_t settled = book_.store.pump(book_.options.pump_removals_max, errors);
    {
      const std::scoped_lock lock(book_.mutex);
      book_.note(Stage::settle, began_ns, errors.size() > told);
      book_.stats.settled_keys += settled;
    }
    Absorbed absorbed;
    room_.retry(book_.options.pump_evictions_max, absorbed, errors);
    if (book_.options.pump_probes_max > 0) probe(book_.options.pump_probes_max, absorbed);
    errors.insert(errors.end(), std::make_move_iterator(absorbed.begin()), std::make_move_iterator(absorbed.end()));
    return settled;
  }

  // The forest as it is at one instant. InUse while another save is under way: of two at once, the older could replace
  // the newer, or its half-written file be renamed for whole.
  template <FileSystem F>
  Status save(F& files, const std::string& path) {
    Snapshot snapshot;
    {
      const std::scoped_lock lock(book_.mutex);
      if (saving_) return make_error(Errc::in_use, "save", "another snapshot is being written");
      saving_ = true;
      snapshot = take_snapshot(book_.forest);
    }
    Status written = write_snapshot(files, path, encode_snapshot(snapshot));
    const std::scoped_lock lock(book_.mutex);
    saving_ = false;
    return written;
  }
  // Adds what the snapshot knows; a missing file adds nothing. After an error nothing was added. Before the first put.
  template <FileSystem F>
  Status load(F& files, const std::string& path) {
    Result<Snapshot> snapshot = read_snapshot(files, path);
    if (!snapshot) return std::move(snapshot.error());
    const std::scoped_lock lock(book_.mutex);
    // Another process's clock: as far as we know, the last commits were just submitted.
    restore_snapshot(*snapshot, book_.runtime.clock.now_ns(), book_.forest);
    book_.held_bytes = 0;
    for (Namespace* world : book_.forest.namespaces()) {
      for (const Node* node : book_.forest.nodes_of(*world)) book_.held_bytes += book_.held_by(*node);
    }
    return {};
  }

  // Makes the store ready now, so that the first put need not: see warm_up.hpp, and the store for its errors.
  Result<WarmUpReport> warm_up(Absorbed& absorbed, const WarmUpOptions& options = {}) {
    return book_.store.warm_up(absorbed, options);
  }
  // After an error that is_sticky() the caller tears the device context down; only then do quarantined plans end.
  void device_torn_down(std::vector<Error>& errors) { book_.store.device_torn_down(errors); }
  Status shut_down() { return book_.store.shut_down(); }

  [[nodiscard]] std::uint64_t accounted_bytes() const {
    const std::scoped_lock lock(book_.mutex);
    return book_.accounted_bytes();
  }
  [[nodiscard]] ManagerCounts counts() const {
    const std::scoped_lock lock(book_.mutex);
    ManagerCounts counts;
    counts.forest = book_.forest.counts();
    counts.accounted_bytes = book_.accounted_bytes();
    counts.in_doubt_bytes = book_.store.held_bytes() + counts.forest.slot_bytes - counts.forest.ready_slot_bytes;
    counts.stats = book_.stats;
    counts.stats.accounted_bytes = counts.accounted_bytes;
    counts.stats.unsettled_keys = book_.store.unsettled_length();
    counts.stats.quarantined_plans = book_.store.quarantine_length();
    counts.unsettled = counts.stats.unsettled_keys.now;
    counts.quarantined = counts.stats.quarantined_plans.now;
    counts.registry = book_.store.registry_counts();
    return counts;
  }
  // Of all operations that have ended; of a path, once its lease was let go.
  [[nodiscard]] Stats stats() const { return counts().stats; }
  [[nodiscard]] const typename Rt::ClockType& clock() const { return book_.runtime.clock; }
  [[nodiscard]] Node* find(const NodeKey& key) const {
    const std::scoped_lock lock(book_.mutex);
    return book_.forest.find(key);
  }

 private:
  // What of a chunk is not ready, as seen when its put began. Nobody else makes it ready until the put has ended.
  struct Lacking {
    bool latent = false;
    bool values = false;
  };

  // The lock is held.
  Result<PathLease> longest_path(Namespace& world, const WorldSpec& spec, std::span<const std::string_view> actions) {
    Node* node = book_.forest.lookup(world, actions);
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
    book_.forest.acquire(window);
    PathLease path(*this, std::move(chain), std::move(window));
    path.see();
    return path;
  }

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

  // Empty where none is known.
  static std::vector<GroupChecksum> checksums_of(std::span<const SeenValues> seen) {
    std::vector<GroupChecksum> checksums;
    const auto known = [](const SeenValues& values) { return values.checksum.has_value(); };
    if (std::none_of(seen.begin(), seen.end(), known)) return checksums;
    for (const SeenValues& values : seen) checksums.push_back(values.checksum);
    return checksums;
  }

  ReadOutcome restore(PathLease& path, const ReadRequest& request, const CopyStream& stream, Absorbed& absorbed) {
    Stats spent;
    ReadOutcome outcome = book_.store.restore(request, stream, absorbed, &spent);
    if (outcome.verdict == ReadVerdict::restored) ++spent.reads_restored;
    if (outcome.verdict == ReadVerdict::incomplete) ++spent.reads_incomplete;
    if (outcome.verdict == ReadVerdict::corrupt) ++spent.reads_corrupt;
    if (outcome.verdict == ReadVerdict::failed) ++spent.reads_failed;
    path.add(spent);
    return outcome;
  }

  // The lock is held.
  static Lacking lacking_of(const Node& node, const Layout& layout) {
    return {.latent = layout.has_latent() && !node.skeleton().ready, .values = !node.blob().ready};
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
    if (Result<EvictReceipt> room = room_.free_up({slots, RoomFor::a_put}, absorbed); !room)
      return std::move(room.error());
    Stats spent;
    Result<PutReceipt> put = book_.store.put(keys, tensors, stream, absorbed, &spent);
    const Nanos ended_ns = book_.now_ns();
    const std::scoped_lock lock(book_.mutex);
    book_.reserved_bytes -= slots;
    if (put && put->verdict != PutVerdict::elsewhere && publish(*put)) {
      book_.held_bytes += slots;
      book_.note(Stage::publish, ended_ns, false);
    }
    book_.stats += spent;
    ++(book_.stats.*outcome_of(put));
    return put;
  }
  static std::uint64_t Stats::* outcome_of(const Result<PutReceipt>& put) {
    if (!put) return &Stats::puts_failed;
    switch (put->verdict) {
      case PutVerdict::stored:
        return &Stats::puts_stored;
      case PutVerdict::adopted:
        return &Stats::puts_adopted;
      case PutVerdict::elsewhere:
        break;
    }
    return &Stats::puts_elsewhere;
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
          return book_.forest.set_skeleton_ready(node,
                                                 {latent.bytes, stored.committed_ns, stored.epoch, stored.checksum});
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
      return book_.forest.set_blob_ready(
          node, {layout.blob_bytes(), slots, layout.chunk_shape(), stored.committed_ns, stored.epoch, stored.checksum});
    });
    if (!put) return std::move(put.error());
    receipt.kv = verdict_of(put->verdict);
    return {};
  }

  // An eviction that failed left a handle: what is still there must go before the chunk is stored anew.
  void forget_left_handle(Node& node) {
    const std::scoped_lock lock(book_.mutex);
    if (!node.blob().present || node.blob().ready) return;
    book_.queue_blob_removal(node);
    book_.forget_blob(node);
  }

  ManagerBook<Rt, Store> book_;
  RoomMaker<ManagerBook<Rt, Store>> room_{book_};
  StoreAgreement<ManagerBook<Rt, Store>> agreement_{book_};
  bool saving_ = false;  // guarded by the book's lock
};

}  // namespace holdfast
