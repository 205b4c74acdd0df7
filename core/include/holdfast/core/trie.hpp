// The forest of chunks: one trie per world, what is known of each chunk's values in the store, and the order of
// eviction. Not thread-safe by itself: its owner holds one lock for every call, and for everything read of a node or a
// namespace but what is said there to be fixed.
//
// Invariants
//  - A node's key is node_key(parent's key, action); no two nodes of a forest have the same key.
//  - A blob is ready only while its handle is present. A withdrawn blob keeps its handle, and its bytes stay accounted,
//    until the handle is forgotten.
//  - Of the nodes on one path, the deeper are told of first to the eviction policy: leaves go before inner nodes.
//  - A node that is pinned, referenced or being written is never offered for eviction. Evicting a node is no use of its
//    ancestors.
//  - No operation's cost grows with the number of nodes, but drop_namespace and nodes_of visit their namespace.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/eviction_policy.hpp"
#include "holdfast/core/keys.hpp"
#include "holdfast/core/node_index.hpp"
#include "holdfast/core/result.hpp"
#include "holdfast/core/time.hpp"
#include "holdfast/core/value_checksum.hpp"

namespace holdfast {

class Forest;
class Namespace;

// What is known of a chunk's values but its latent.
struct BlobState {
  std::uint64_t nbytes = 0;      // all values together
  std::uint64_t slot_bytes = 0;  // what they take from a segment
  Nanos committed_at_ns = 0;
  ChunkShape shape = {};
  bool present = false;    // a handle exists: there may be bytes in the store
  bool ready = false;      // may be served
  bool confirmed = false;  // written or read by this process; else a snapshot's hint
  bool has_checksum = false;
  std::uint64_t epoch = 0;  // of the store, in which it was
  std::uint64_t xxh3 = 0;   // where it has a checksum

  [[nodiscard]] GroupChecksum checksum() const { return has_checksum ? GroupChecksum(xxh3) : std::nullopt; }
  friend bool operator==(const BlobState&, const BlobState&) = default;
};

// What is known of a chunk's latent.
struct SkeletonState {
  std::uint64_t nbytes = 0;
  Nanos committed_at_ns = 0;
  bool ready = false;
  bool confirmed = false;
  bool has_checksum = false;
  std::uint64_t epoch = 0;
  std::uint64_t xxh3 = 0;

  [[nodiscard]] GroupChecksum checksum() const { return has_checksum ? GroupChecksum(xxh3) : std::nullopt; }
  friend bool operator==(const SkeletonState&, const SkeletonState&) = default;
};

struct BlobRecord {
  std::uint64_t nbytes = 0;
  std::uint64_t slot_bytes = 0;
  ChunkShape shape = {};
  Nanos committed_at_ns = 0;
  std::uint64_t epoch = 0;      // of the store
  GroupChecksum checksum = {};  // as its put told
};

struct SkeletonRecord {
  std::uint64_t nbytes = 0;
  Nanos committed_at_ns = 0;
  std::uint64_t epoch = 0;  // of the store
  GroupChecksum checksum = {};
};

struct NodeKeyLink : IndexLink {};
struct NodeActionLink : IndexLink {};

// A chunk, or (at depth -1) the virtual root of a world. Owned by its forest and stable in memory until its namespace
// is dropped; changed only through the forest. Fixed from the moment the node is in the forest, and to be read without
// its lock: key, action, parent, depth, world.
class Node : private EvictionLink, private NodeActionLink, private NodeKeyLink {
 public:
  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] const NodeKey& key() const { return key_; }
  [[nodiscard]] std::string_view action() const { return action_; }
  [[nodiscard]] Node* parent() const { return parent_; }  // null for a virtual root
  [[nodiscard]] std::int32_t depth() const { return depth_; }
  [[nodiscard]] std::uint32_t matched_chunks() const { return static_cast<std::uint32_t>(depth_ + 1); }
  [[nodiscard]] bool is_virtual_root() const { return depth_ < 0; }
  [[nodiscard]] Namespace& world() const { return *world_; }

  // Children in the order of their creation.
  [[nodiscard]] Node* first_child() const { return first_child_; }
  [[nodiscard]] Node* next_sibling() const { return next_sibling_; }

  [[nodiscard]] const BlobState& blob() const { return blob_; }
  [[nodiscard]] const SkeletonState& skeleton() const { return skeleton_; }
  // Another number each time it becomes ready, 0 before: what was seen of one says nothing of the next under its key.
  [[nodiscard]] std::uint64_t blob_incarnation() const { return blob_incarnation_; }
  [[nodiscard]] std::uint64_t skeleton_incarnation() const { return skeleton_incarnation_; }
  [[nodiscard]] std::uint32_t ref_count() const { return ref_count_; }
  [[nodiscard]] bool being_written() const { return being_written_; }
  [[nodiscard]] bool pinned() const;
  // Grows with every access to any node of the forest.
  [[nodiscard]] std::uint64_t last_access() const { return last_access_; }

 private:
  friend class Forest;

  enum class Listed : std::uint8_t { nowhere, candidate, pinned };

  // What a lookup and an access touch comes first, together with the links above: few cache lines.
  Node* parent_ = nullptr;
  std::uint64_t last_access_ = 0;
  Namespace* world_ = nullptr;
  Node* first_child_ = nullptr;
  std::int32_t depth_ = -1;
  std::uint32_t ref_count_ = 0;
  std::string action_;
  BlobState blob_;
  bool being_written_ = false;
  Listed listed_ = Listed::nowhere;  // for eviction
  Node* next_sibling_ = nullptr;
  Node* last_child_ = nullptr;
  std::uint64_t number_ = 0;  // never used twice in a forest
  SkeletonState skeleton_;
  std::uint64_t blob_incarnation_ = 0;
  std::uint64_t skeleton_incarnation_ = 0;
  NodeKey key_;
};

// A world: everything below one root hash. Its root is fixed, as a node's key is.
class Namespace {
 public:
  [[nodiscard]] const NodeKey& root_key() const { return root_->key(); }
  [[nodiscard]] Node* root() const { return root_; }
  [[nodiscard]] std::uint32_t sink_chunks() const { return sink_chunks_; }
  [[nodiscard]] std::uint32_t sessions() const { return sessions_; }
  // Handles at depth >= sink_chunks.
  [[nodiscard]] std::uint64_t unpinned_blobs() const;
  // While true, the nodes of the sink are pinned.
  [[nodiscard]] bool holds_pins() const { return sessions_ > 0 || unpinned_blobs() > 0; }
  // Nobody uses it, and none of its chunks can be served: what is left of it may go as a whole.
  [[nodiscard]] bool idle() const { return sessions_ == 0 && blobs_ == 0 && in_use_ == 0; }

 private:
  friend class Forest;

  Node* root_ = nullptr;
  std::uint32_t sink_chunks_ = 0;
  std::uint32_t sessions_ = 0;
  std::uint64_t blobs_ = 0;                    // handles
  std::uint64_t in_use_ = 0;                   // references, and nodes being written
  std::uint64_t idle_since_ = 0;               // its place among the idle ones; 0 = it is not idle
  std::vector<std::uint64_t> blobs_at_depth_;  // handles, by depth
  EvictionList pinned_;                        // pinned nodes that could be evicted otherwise
};

// Told of every change of a ready flag, under the forest's lock. It must neither call the forest nor wait.
// A flag restored from a snapshot is told too, with `confirmed` false; confirming it later is not a change.
class TrieListener {
 public:
  virtual ~TrieListener() = default;
  virtual void on_blob_ready(const Node& node) = 0;
  virtual void on_blob_withdrawn(const Node& node) = 0;
  virtual void on_skeleton_ready(const Node& node) = 0;
  virtual void on_skeleton_withdrawn(const Node& node) = 0;
};

struct ForestOptions {
  std::uint64_t hash_seed = 0;
  TrieListener* listener = nullptr;  // outlives the forest
  EvictionPolicy* policy = nullptr;  // of this forest alone, outlives it; null: the least recently used goes first
};

struct ForestCounts {
  std::uint64_t namespaces = 0;
  std::uint64_t nodes = 0;       // virtual roots not among them
  std::uint64_t blobs = 0;       // handles, ready or not
  std::uint64_t blob_bytes = 0;  // of all handles
  std::uint64_t slot_bytes = 0;  // theirs
  std::uint64_t ready_blobs = 0;
  std::uint64_t ready_blob_bytes = 0;
  std::uint64_t ready_slot_bytes = 0;
  std::uint64_t ready_skeletons = 0;
  std::uint64_t skeleton_bytes = 0;  // of the ready ones
  std::uint64_t references = 0;
  friend bool operator==(const ForestCounts&, const ForestCounts&) = default;
};

struct NamespaceSpec {
  NodeKey root;
  std::uint32_t sink_chunks = 0;
};

class Forest {
 public:
  explicit Forest(const ForestOptions& options);
  ~Forest();
  Forest(const Forest&) = delete;
  Forest& operator=(const Forest&) = delete;

  // Finds or makes the world and counts a session. A wider sink than before widens it for good.
  Namespace& open_namespace(const NamespaceSpec& spec);
  void close_namespace(Namespace& world);
  // As open_namespace, without a session: for a restore.
  Namespace& touch_namespace(const NamespaceSpec& spec);
  [[nodiscard]] Namespace* find_namespace(const NodeKey& root) const;
  // Ordered by root key.
  [[nodiscard]] std::vector<Namespace*> namespaces() const;
  // Parents before children, otherwise in the order of creation; the virtual root is not among them.
  [[nodiscard]] std::vector<Node*> nodes_of(const Namespace& world) const;
  // Withdraws what is still ready and frees the nodes; the caller has removed the values from the store, see nodes_of.
  // InUse, and nothing changed, while the world has a session, an unpinned blob, a reference, or a node being written.
  [[nodiscard]] Status drop_namespace(Namespace& world);
  // The world that has been idle longest, see Namespace::idle; null when none is.
  [[nodiscard]] Namespace* longest_idle() const;

  // The deepest node whose every step exists, with an equal action and a ready blob; the virtual root when none.
  // Counts as an access to its whole path, which was found once more.
  [[nodiscard]] Node* lookup(Namespace& world, std::span<const std::string_view> actions);
  [[nodiscard]] Node* find(const NodeKey& key) const;
  [[nodiscard]] Node* find_child(const Node& parent, std::string_view action) const;
  [[nodiscard]] Node* get_or_create(Node& parent, std::string_view action);
  // Counts as an access to the node and its ancestors.
  void touch(Node& node);

  // Each says whether it changed anything. Making a ready blob or skeleton ready again does not, whatever the record.
  bool set_blob_ready(Node& node, const BlobRecord& record);
  bool withdraw_blob(Node& node);  // the handle stays
  bool forget_blob(Node& node);    // the handle goes; withdraws first
  bool set_skeleton_ready(Node& node, const SkeletonRecord& record);
  bool withdraw_skeleton(Node& node);

  // A snapshot's hints: ready, not confirmed. A handle that is there already, and a ready skeleton, stay as they are.
  bool restore_blob(Node& node, const BlobRecord& record);
  bool restore_skeleton(Node& node, const SkeletonRecord& record);
  // Seen in the store in this epoch; never takes back that it was seen in a later one.
  bool confirm_blob(Node& node, std::uint64_t epoch = 0);
  bool confirm_skeleton(Node& node, std::uint64_t epoch = 0);

  // Where a blob is there at the end, that counts as an access.
  void set_being_written(Node& node, bool being_written);
  // One reference on each; a node may be given more than once. Releasing more than was acquired is a broken invariant.
  void acquire(std::span<Node* const> nodes);
  void release(std::span<Node* const> nodes);

  // NotFound: no handle. InUse: pinned, referenced, or being written.
  [[nodiscard]] Status check_evictable(const Node& node) const;
  // The node to evict first among those that `may_evict` (when given) allows; null when there is none among the
  // first `visits_max` candidates.
  [[nodiscard]] Node* first_evictable(const std::function<bool(const Node&)>& may_evict = {},
                                      std::uint64_t visits_max = 4096);

  // At most `nodes_max` nodes with a ready blob or skeleton, of any world, in turn: each once in a round. A round goes
  // on from where `cursor` says, and visits at most `visits_max` nodes at a time.
  [[nodiscard]] std::vector<Node*> next_ready(std::uint64_t& cursor, std::size_t nodes_max, std::uint64_t visits_max);

  [[nodiscard]] const ForestCounts& counts() const { return counts_; }
  // How many nodes all operations so far have looked at or changed.
  [[nodiscard]] std::uint64_t node_visits() const { return visits_; }

 private:
  Node& new_node();
  // Puts the node where it belongs for eviction, as used just now: with the candidates, with the pinned, or nowhere.
  void place(Node& node);
  void unlist(Node& node);
  void place_path(Node& node);
  void note_idleness(Namespace& world);
  void use(Node& node, bool begins);
  void free_node(Node& node);
  void unpin_if_idle(Namespace& world);
  void count_handle(Node& node, bool present);
  bool make_blob_ready(Node& node, const BlobRecord& record, bool confirmed);
  bool make_skeleton_ready(Node& node, const SkeletonRecord& record, bool confirmed);

  TrieListener* listener_;
  std::uint64_t hash_seed_;
  std::deque<Node> pool_;
  std::vector<Node*> free_;
  NodeIndex by_key_;
  NodeIndex by_action_;
  std::map<NodeKey, std::unique_ptr<Namespace>> namespaces_;
  LeastRecentlyUsed least_recent_;  // unless another policy is given
  EvictionPolicy& policy_;
  std::map<std::uint64_t, Namespace*> idle_;  // by idle_since_
  ForestCounts counts_;
  std::uint64_t clock_ = 0;
  std::uint64_t next_number_ = 1;
  std::uint64_t next_incarnation_ = 1;
  mutable std::uint64_t visits_ = 0;
};

}  // namespace holdfast
