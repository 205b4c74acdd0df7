#include "holdfast/core/trie.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "holdfast/core/check.hpp"
#include "holdfast/core/hash.hpp"

namespace holdfast {
namespace {

// Spreads consecutive numbers over all bits of a hash's seed.
constexpr std::uint64_t kSpread = 0x9e37'79b9'7f4a'7c15;

std::uint64_t action_hash(std::uint64_t parent_number, std::string_view action, std::uint64_t seed) {
  return hash64(action, seed ^ (parent_number * kSpread));
}

Error in_use(std::string_view call, std::string detail) { return make_error(Errc::in_use, call, std::move(detail)); }

}  // namespace

bool Node::pinned() const {
  return depth_ >= 0 && static_cast<std::uint32_t>(depth_) < world_->sink_chunks() && world_->holds_pins();
}

std::uint64_t Namespace::unpinned_blobs() const {
  const std::size_t sink_depths = std::min<std::size_t>(sink_chunks_, blobs_at_depth_.size());
  std::uint64_t in_sink = 0;
  for (std::size_t depth = 0; depth < sink_depths; ++depth) in_sink += blobs_at_depth_[depth];
  return blobs_ - in_sink;
}

Forest::Forest(const ForestOptions& options)
    : listener_(options.listener),
      hash_seed_(options.hash_seed),
      policy_(options.policy != nullptr ? *options.policy : least_recent_) {}

Forest::~Forest() = default;

// Worlds

Namespace& Forest::touch_namespace(const NamespaceSpec& spec) {
  std::unique_ptr<Namespace>& slot = namespaces_[spec.root];
  if (slot == nullptr) {
    slot = std::make_unique<Namespace>();
    Node& root = new_node();
    root.key_ = spec.root;
    root.world_ = slot.get();
    slot->root_ = &root;
    ++counts_.namespaces;
  }
  Namespace& world = *slot;
  if (spec.sink_chunks > world.sink_chunks_) {
    world.sink_chunks_ = spec.sink_chunks;
    unpin_if_idle(world);
  }
  note_idleness(world);
  return world;
}

Namespace& Forest::open_namespace(const NamespaceSpec& spec) {
  Namespace& world = touch_namespace(spec);
  ++world.sessions_;
  note_idleness(world);
  return world;
}

void Forest::close_namespace(Namespace& world) {
  check(world.sessions_ > 0, "a namespace is closed no more often than it was opened");
  --world.sessions_;
  unpin_if_idle(world);
  note_idleness(world);
}

Namespace* Forest::longest_idle() const { return idle_.empty() ? nullptr : idle_.begin()->second; }

void Forest::note_idleness(Namespace& world) {
  if (world.idle() == (world.idle_since_ != 0)) return;
  if (world.idle_since_ != 0) {
    idle_.erase(std::exchange(world.idle_since_, 0));
    return;
  }
  world.idle_since_ = ++clock_;
  idle_.emplace(world.idle_since_, &world);
}

// Of a node that is referenced, or begins or ceases to be written.
void Forest::use(Node& node, bool begins) {
  node.world_->in_use_ += begins ? 1 : ~std::uint64_t{0};
  note_idleness(*node.world_);
}

Namespace* Forest::find_namespace(const NodeKey& root) const {
  const auto found = namespaces_.find(root);
  return found == namespaces_.end() ? nullptr : found->second.get();
}

std::vector<Namespace*> Forest::namespaces() const {
  std::vector<Namespace*> all;
  all.reserve(namespaces_.size());
  for (const auto& [root, world] : namespaces_) all.push_back(world.get());
  return all;
}

std::vector<Node*> Forest::nodes_of(const Namespace& world) const {
  // Level by level: each node is appended once, and its children after it.
  std::vector<Node*> nodes;
  for (Node* child = world.root_->first_child_; child != nullptr; child = child->next_sibling_) nodes.push_back(child);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (Node* child = nodes[i]->first_child_; child != nullptr; child = child->next_sibling_) nodes.push_back(child);
  }
  visits_ += nodes.size();
  return nodes;
}

Status Forest::drop_namespace(Namespace& world) {
  if (world.sessions_ > 0) return in_use("drop_namespace", fmt::format("{} sessions are open", world.sessions_));
  if (const std::uint64_t blobs = world.unpinned_blobs(); blobs > 0) {
    return in_use("drop_namespace", fmt::format("{} unpinned blobs are left", blobs));
  }
  const std::vector<Node*> nodes = nodes_of(world);
  for (const Node* node : nodes) {
    if (node->ref_count_ > 0 || node->being_written_) {
      return in_use("drop_namespace", fmt::format("node {} is {}", to_hex(node->key_),
                                                  node->ref_count_ > 0 ? "referenced" : "being written"));
    }
  }
  // Children first, so that no withdrawal leaves a ready node under one that has gone.
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    withdraw_skeleton(**node);
    forget_blob(**node);
    by_key_.erase(static_cast<NodeKeyLink&>(**node));
    by_action_.erase(static_cast<NodeActionLink&>(**node));
    free_node(**node);
    --counts_.nodes;
  }
  if (world.idle_since_ != 0) idle_.erase(world.idle_since_);
  const NodeKey root = world.root_key();
  free_node(*world.root_);
  --counts_.namespaces;
  namespaces_.erase(root);
  return {};
}

// Nodes

Node& Forest::new_node() {
  Node* node = nullptr;
  if (free_.empty()) {
    node = &pool_.emplace_back();
  } else {
    node = free_.back();
    free_.pop_back();
  }
  node->number_ = next_number_++;
  ++visits_;
  return *node;
}

void Forest::free_node(Node& node) {
  std::destroy_at(&node);
  std::construct_at(&node);
  free_.push_back(&node);
}

Node* Forest::find(const NodeKey& key) const {
  const std::uint64_t hash = NodeKeyHash(hash_seed_)(key);
  for (IndexLink* link = by_key_.bucket_of(hash); link != nullptr; link = link->next_in_bucket) {
    ++visits_;
    if (link->hash != hash) continue;
    auto* node = static_cast<Node*>(static_cast<NodeKeyLink*>(link));
    if (node->key_ == key) return node;
  }
  return nullptr;
}

Node* Forest::find_child(const Node& parent, std::string_view action) const {
  // Most nodes have one child, which lies next to its parent: nearer than the index.
  Node* first = parent.first_child_;
  if (first == nullptr) return nullptr;
  ++visits_;
  if (first->action_ == action) return first;
  if (first->next_sibling_ == nullptr) return nullptr;
  const std::uint64_t hash = action_hash(parent.number_, action, hash_seed_);
  for (IndexLink* link = by_action_.bucket_of(hash); link != nullptr; link = link->next_in_bucket) {
    ++visits_;
    if (link->hash != hash) continue;
    auto* node = static_cast<Node*>(static_cast<NodeActionLink*>(link));
    if (node->parent_ == &parent && node->action_ == action) return node;
  }
  return nullptr;
}

Node* Forest::get_or_create(Node& parent, std::string_view action) {
  if (Node* existing = find_child(parent, action)) return existing;
  check(parent.depth_ < std::numeric_limits<std::int32_t>::max(), "a trie's depth fits its counter");
  Node& node = new_node();
  node.key_ = node_key(parent.key_, action);
  node.action_ = action;
  node.parent_ = &parent;
  node.world_ = parent.world_;
  node.depth_ = parent.depth_ + 1;
  if (parent.last_child_ == nullptr) {
    parent.first_child_ = &node;
  } else {
    parent.last_child_->next_sibling_ = &node;
  }
  parent.last_child_ = &node;
  by_key_.insert(static_cast<NodeKeyLink&>(node), NodeKeyHash(hash_seed_)(node.key_));
  by_action_.insert(static_cast<NodeActionLink&>(node), action_hash(parent.number_, action, hash_seed_));
  ++counts_.nodes;
  return &node;
}

Node* Forest::lookup(Namespace& world, std::span<const std::string_view> actions) {
  Node* deepest = world.root_;
  for (const std::string_view action : actions) {
    Node* child = find_child(*deepest, action);
    if (child == nullptr || !child->blob_.ready) break;
    deepest = child;
  }
  for (Node* at = deepest; !at->is_virtual_root(); at = at->parent_) {
    if (at->uses < std::numeric_limits<std::uint32_t>::max()) ++at->uses;
  }
  touch(*deepest);
  return deepest;
}

// The order of eviction

void Forest::unlist(Node& node) {
  if (node.listed_ == Node::Listed::candidate) policy_.withdrawn(node);
  if (node.listed_ == Node::Listed::pinned) EvictionList::unlink(node);
  node.listed_ = Node::Listed::nowhere;
}

void Forest::place(Node& node) {
  const bool candidate = node.blob_.present && node.ref_count_ == 0 && !node.being_written_;
  if (candidate && !node.pinned()) {
    if (node.listed_ == Node::Listed::candidate) return policy_.touched(node);
    unlist(node);
    node.listed_ = Node::Listed::candidate;
    return policy_.inserted(node);
  }
  unlist(node);
  if (!candidate) return;
  node.listed_ = Node::Listed::pinned;
  node.world_->pinned_.push_most_recent(node);
}

void Forest::place_path(Node& node) {
  // A node comes before its ancestors: leaves go before inner nodes.
  for (Node* at = &node; !at->is_virtual_root(); at = at->parent_) {
    ++visits_;
    place(*at);
  }
}

void Forest::touch(Node& node) {
  for (Node* at = &node; !at->is_virtual_root(); at = at->parent_) {
    at->last_access_ = ++clock_;
    ++visits_;
    place(*at);
  }
}

void Forest::unpin_if_idle(Namespace& world) {
  if (world.pinned_.empty() || world.holds_pins()) return;
  while (!world.pinned_.empty()) place(static_cast<Node&>(*world.pinned_.first()));
}

Status Forest::check_evictable(const Node& node) const {
  constexpr std::string_view kCall = "evict_blob";
  if (!node.blob_.present) return make_error(Errc::not_found, kCall, "there is no blob");
  if (node.pinned()) return in_use(kCall, "the blob is pinned: it belongs to the sink of a world in use");
  if (node.ref_count_ > 0) return in_use(kCall, fmt::format("the blob has {} references", node.ref_count_));
  if (node.being_written_) return in_use(kCall, "the blob is being written");
  return {};
}

Node* Forest::first_evictable(const std::function<bool(const Node&)>& may_evict, std::uint64_t visits_max) {
  std::vector<Node*> pinned;
  std::uint64_t declined = 0;
  EvictionLink* found = policy_.victim([&](EvictionLink& link) {
    auto& node = static_cast<Node&>(link);
    ++visits_;
    if (declined >= visits_max) return true;
    if (node.pinned()) {
      // It got here while its world was idle.
      pinned.push_back(&node);
      return false;
    }
    if (!may_evict || may_evict(node)) return true;
    ++declined;
    return false;
  });
  // Their ancestors, which they come before, are pinned too; what was found is none of them.
  for (Node* node : pinned) place_path(*node);
  return found == nullptr || declined >= visits_max ? nullptr : static_cast<Node*>(found);
}

// References

void Forest::set_being_written(Node& node, bool being_written) {
  if (node.being_written_ == being_written) return;
  node.being_written_ = being_written;
  use(node, being_written);
  ++visits_;
  // What is being written is no candidate; afterwards it comes before its ancestors again.
  if (!being_written && node.blob_.present) return touch(node);
  place(node);
}

void Forest::acquire(std::span<Node* const> nodes) {
  for (Node* node : nodes) {
    check(node->ref_count_ < std::numeric_limits<std::uint32_t>::max(), "a reference count fits its counter");
    ++node->ref_count_;
    ++counts_.references;
    ++visits_;
    use(*node, true);
    place(*node);
  }
}

void Forest::release(std::span<Node* const> nodes) {
  for (Node* node : nodes) {
    check(node->ref_count_ > 0, "a node is released no more often than it was acquired");
    --node->ref_count_;
    --counts_.references;
    use(*node, false);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    // An access to the next one is an access to its parent.
    const bool next_below = i + 1 < nodes.size() && nodes[i + 1]->parent_ == nodes[i] && nodes[i + 1]->ref_count_ == 0;
    if (nodes[i]->ref_count_ == 0 && !next_below) touch(*nodes[i]);
  }
}

// Ready flags

void Forest::count_handle(Node& node, bool present) {
  Namespace& world = *node.world_;
  const auto depth = static_cast<std::size_t>(node.depth_);
  if (world.blobs_at_depth_.size() <= depth) world.blobs_at_depth_.resize(depth + 1);
  if (present) {
    ++counts_.blobs;
    counts_.blob_bytes += node.blob_.nbytes;
    counts_.slot_bytes += node.blob_.slot_bytes;
    ++world.blobs_;
    ++world.blobs_at_depth_[depth];
  } else {
    --counts_.blobs;
    counts_.blob_bytes -= node.blob_.nbytes;
    counts_.slot_bytes -= node.blob_.slot_bytes;
    --world.blobs_;
    --world.blobs_at_depth_[depth];
  }
  note_idleness(world);
}

bool Forest::make_blob_ready(Node& node, const BlobRecord& record, bool confirmed) {
  check(!node.is_virtual_root(), "a virtual root has no blob");
  if (node.blob_.ready) return false;
  if (node.blob_.present) count_handle(node, false);
  node.blob_ = {.nbytes = record.nbytes,
                .slot_bytes = record.slot_bytes,
                .committed_at_ns = record.committed_at_ns,
                .shape = record.shape,
                .present = true,
                .ready = true,
                .confirmed = confirmed,
                .has_checksum = record.checksum.has_value(),
                .epoch = record.epoch,
                .xxh3 = record.checksum.value_or(0)};
  node.blob_incarnation_ = next_incarnation_++;
  count_handle(node, true);
  ++counts_.ready_blobs;
  counts_.ready_blob_bytes += record.nbytes;
  counts_.ready_slot_bytes += record.slot_bytes;
  // The end of its writing is an access.
  if (!node.being_written_) touch(node);
  if (listener_ != nullptr) listener_->on_blob_ready(node);
  return true;
}

bool Forest::set_blob_ready(Node& node, const BlobRecord& record) { return make_blob_ready(node, record, true); }

bool Forest::restore_blob(Node& node, const BlobRecord& record) {
  return !node.blob_.present && make_blob_ready(node, record, false);
}

bool Forest::confirm_blob(Node& node, std::uint64_t epoch) {
  if (!node.blob_.ready || (node.blob_.confirmed && node.blob_.epoch >= epoch)) return false;
  node.blob_.confirmed = true;
  node.blob_.epoch = epoch;
  return true;
}

bool Forest::withdraw_blob(Node& node) {
  if (!node.blob_.ready) return false;
  node.blob_.ready = false;
  node.blob_.confirmed = false;
  --counts_.ready_blobs;
  counts_.ready_blob_bytes -= node.blob_.nbytes;
  counts_.ready_slot_bytes -= node.blob_.slot_bytes;
  ++visits_;
  if (listener_ != nullptr) listener_->on_blob_withdrawn(node);
  return true;
}

bool Forest::forget_blob(Node& node) {
  if (!node.blob_.present) return false;
  withdraw_blob(node);
  count_handle(node, false);
  node.blob_ = {};
  place(node);
  unpin_if_idle(*node.world_);
  return true;
}

std::vector<Node*> Forest::next_ready(std::uint64_t& cursor, std::size_t nodes_max, std::uint64_t visits_max) {
  std::vector<Node*> nodes;
  const std::uint64_t round = std::min<std::uint64_t>(pool_.size(), visits_max);
  for (std::uint64_t visited = 0; visited < round && nodes.size() < nodes_max; ++visited) {
    if (cursor >= pool_.size()) cursor = 0;
    Node& node = pool_[cursor++];
    ++visits_;
    if (node.blob_.ready || node.skeleton_.ready) nodes.push_back(&node);
  }
  return nodes;
}

bool Forest::make_skeleton_ready(Node& node, const SkeletonRecord& record, bool confirmed) {
  check(!node.is_virtual_root(), "a virtual root has no skeleton");
  if (node.skeleton_.ready) return false;
  node.skeleton_ = {.nbytes = record.nbytes,
                    .committed_at_ns = record.committed_at_ns,
                    .ready = true,
                    .confirmed = confirmed,
                    .has_checksum = record.checksum.has_value(),
                    .epoch = record.epoch,
                    .xxh3 = record.checksum.value_or(0)};
  node.skeleton_incarnation_ = next_incarnation_++;
  ++counts_.ready_skeletons;
  counts_.skeleton_bytes += record.nbytes;
  ++visits_;
  if (listener_ != nullptr) listener_->on_skeleton_ready(node);
  return true;
}

bool Forest::set_skeleton_ready(Node& node, const SkeletonRecord& record) {
  return make_skeleton_ready(node, record, true);
}

bool Forest::restore_skeleton(Node& node, const SkeletonRecord& record) {
  return make_skeleton_ready(node, record, false);
}

bool Forest::confirm_skeleton(Node& node, std::uint64_t epoch) {
  if (!node.skeleton_.ready || (node.skeleton_.confirmed && node.skeleton_.epoch >= epoch)) return false;
  node.skeleton_.confirmed = true;
  node.skeleton_.epoch = epoch;
  return true;
}

bool Forest::withdraw_skeleton(Node& node) {
  if (!node.skeleton_.ready) return false;
  --counts_.ready_skeletons;
  counts_.skeleton_bytes -= node.skeleton_.nbytes;
  node.skeleton_ = {};
  ++visits_;
  if (listener_ != nullptr) listener_->on_skeleton_withdrawn(node);
  return true;
}

}  // namespace holdfast
