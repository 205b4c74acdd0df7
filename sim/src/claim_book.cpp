#include "holdfast/sim/claim_book.hpp"

#include <algorithm>

#include "holdfast/sim/pseudo_bytes.hpp"

namespace holdfast::sim {

void ClaimBook::reset(bool keep_locators, std::uint64_t hash_seed) {
  keep_locators_ = keep_locators;
  incarnation_ = 1;
  claimed_slot_bytes_ = blobs_ = blob_withdrawals_ = withdrawals_ = 0;
  nodes_.clear();
  footprints_.clear();
  by_identity_ = decltype(by_identity_)(16, SeededHash{hash_seed});
  namespaces_ = decltype(namespaces_)(16, SeededHash{hash_seed});
  locators_ = decltype(locators_)(16, SeededHash{hash_seed});
}

ClaimBook::Node& ClaimBook::know(const OracleNode& node, bool sink) {
  const auto [at, fresh] = by_identity_.try_emplace(node.identity, static_cast<std::uint32_t>(nodes_.size()));
  if (!fresh) return nodes_[at->second];
  Node known;
  known.identity = node.identity;
  known.namespace_id = node.namespace_id;
  known.depth = node.depth;
  known.sink = sink;
  nodes_.push_back(known);
  footprints_.emplace_back();
  if (sink) {
    Namespace& space = namespaces_[node.namespace_id];
    space.sinks.push_back(node.identity);
    if (space.active()) monitor_.pin(node.identity, true);
  }
  return nodes_.back();
}

ClaimBook::Node* ClaimBook::find(std::uint64_t identity) {
  const auto found = by_identity_.find(identity);
  return found == by_identity_.end() ? nullptr : &nodes_[found->second];
}

void ClaimBook::pin_all(const Namespace& space, bool pinned) {
  for (const std::uint64_t identity : space.sinks) monitor_.pin(identity, pinned);
}

void ClaimBook::namespace_opened(std::uint64_t namespace_id) {
  Namespace& space = namespaces_[namespace_id];
  const bool was_active = space.active();
  ++space.sessions;
  if (!was_active) pin_all(space, true);
}

void ClaimBook::namespace_closed(std::uint64_t namespace_id) {
  Namespace& space = namespaces_[namespace_id];
  --space.sessions;
  if (!space.active()) pin_all(space, false);
}

void ClaimBook::note_ingest(Node& node, std::uint64_t parent, const Footprint& footprint) {
  node.ingested_in = incarnation_;
  Footprints& known = footprints_[static_cast<std::size_t>(&node - nodes_.data())];
  const auto end = known.of.begin() + known.count;
  const bool seen =
      std::any_of(known.of.begin(), end, [&](const Footprint& other) { return other.kv_bytes == footprint.kv_bytes; });
  if (!seen && known.count < known.of.size()) known.of[known.count++] = footprint;
  if (Node* above = find(parent); above != nullptr && above->child_ingested == 0) {
    above->child_ingested = node.identity;
  }
}

void ClaimBook::client_died() {
  ++incarnation_;
  for (Node& node : nodes_) {
    node.ever_before_restart |= node.ever_kv;
    node.ingested_before_restart |= node.ingested_in != 0;
    node.kv = node.latent = node.eviction_failed = false;
  }
  for (auto& [id, space] : namespaces_) {
    if (space.active()) pin_all(space, false);
    space.sessions = space.blobs = space.unpinned_blobs = 0;
  }
  claimed_slot_bytes_ = blobs_ = 0;
}

std::string ClaimBook::locator_of(std::uint64_t identity, Claim claim) const {
  const auto found = locators_.find(identity);
  return found == locators_.end() ? std::string() : found->second[static_cast<std::size_t>(claim)];
}

void ClaimBook::set(Node& node, Claim claim, bool claimed, std::uint64_t nbytes) {
  if (claim == Claim::latent) {
    if (node.latent == claimed) return;
    node.latent = claimed;
    if (!claimed) node.withdrawn_at[static_cast<std::size_t>(claim)] = ++withdrawals_;
    if (claimed) node.latent_slot_bytes = slot_bytes(nbytes);
    claimed_slot_bytes_ += claimed ? node.latent_slot_bytes : 0 - node.latent_slot_bytes;
    return;
  }
  if (node.kv == claimed) return;
  node.kv = claimed;
  if (claimed) {
    node.ever_kv = true;
    const Footprints& known = footprints_[static_cast<std::size_t>(&node - nodes_.data())];
    node.kv_slot_bytes = 0;
    for (std::uint32_t i = 0; i < known.count; ++i) {
      if (i == 0 || known.of[i].kv_bytes == nbytes) node.kv_slot_bytes = known.of[i].kv_slot_bytes;
    }
    oracle_.note_claim(node.namespace_id);
  } else {
    ++blob_withdrawals_;
    node.withdrawn_at[static_cast<std::size_t>(claim)] = ++withdrawals_;
  }
  claimed_slot_bytes_ += claimed ? node.kv_slot_bytes : 0 - node.kv_slot_bytes;
  blobs_ += claimed ? 1 : ~0ULL;
  namespaces_[node.namespace_id].blobs += claimed ? 1 : ~0U;
  if (node.sink) return;
  Namespace& space = namespaces_[node.namespace_id];
  const bool was_active = space.active();
  space.unpinned_blobs += claimed ? 1 : ~0U;
  if (space.active() != was_active) pin_all(space, space.active());
}

void ClaimBook::on_claim(Claim claim, std::string_view locator, const ChunkShape& shape, std::uint64_t nbytes) {
  monitor_.on_claim(claim, locator, shape, nbytes);
  const std::uint64_t identity = monitor_.identity_of(locator);
  Node* node = find(identity);
  if (node == nullptr) return;
  if (keep_locators_) locators_[identity][static_cast<std::size_t>(claim)] = locator;
  set(*node, claim, true, nbytes);
}

void ClaimBook::on_withdrawal(Claim claim, std::string_view locator) {
  const std::uint64_t identity = monitor_.identity_of(locator);
  Node* node = find(identity);
  const Namespace* space = node == nullptr ? nullptr : &namespaces_[node->namespace_id];
  monitor_.lets_worlds_go(space != nullptr && space->sessions == 0 && space->blobs == 0);
  monitor_.on_withdrawal(claim, locator);
  monitor_.lets_worlds_go(false);
  if (node != nullptr) set(*node, claim, false, 0);
}

}  // namespace holdfast::sim
