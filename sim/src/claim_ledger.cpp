#include "claim_ledger.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

namespace holdfast::sim {

KeyParts parts_of(std::string_view key) {
  const auto ends = [&](std::string_view suffix) { return key.ends_with(suffix); };
  const auto* const suffix = std::ranges::find_if(kPartSuffixes, ends);
  if (suffix == kPartSuffixes.end()) return {key, Claim::latent};
  const std::string_view rest = key.substr(0, key.size() - suffix->size());
  const std::size_t layer = rest.rfind(":L");
  if (layer == std::string_view::npos || layer + 2 == rest.size()) return {key, Claim::latent};
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!std::ranges::all_of(rest.substr(layer + 2), is_digit)) return {key, Claim::latent};
  return {rest.substr(0, layer), Claim::kv};
}

std::uint64_t hash_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

std::string_view name_of(Claim claim) { return claim == Claim::kv ? "kv" : "latent"; }

std::uint64_t ClaimLedger::hash_of_identity(std::uint64_t identity) { return XXH3_64bits(&identity, sizeof(identity)); }

std::uint32_t ClaimLedger::key(std::string_view name) {
  const std::uint64_t hash = hash_of(name);
  const std::uint32_t found = by_key_.find(hash);
  if (found != FlatIndex::kAbsent) return found;
  const auto index = static_cast<std::uint32_t>(keys_.size());
  keys_.emplace_back().hash = hash;
  by_key_.insert(hash, index);
  const KeyParts parts = parts_of(name);
  const std::uint32_t node = find_locator(parts.locator);
  if (node != kNobody) assign(index, node, parts.claim);
  return index;
}

void ClaimLedger::decide(std::uint32_t key, bool stored) {
  KeyRecord& record = keys_[key];
  record.unknown_operation = 0;
  if (stored) return;
  record.stored = false;
  record.read_plan = 0;
}

std::uint32_t ClaimLedger::node_of_identity(std::uint64_t identity) {
  const std::uint64_t hash = hash_of_identity(identity);
  const std::uint32_t found = by_identity_.find(hash);
  if (found != FlatIndex::kAbsent) return found;
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  nodes_.emplace_back().identity = identity;
  by_identity_.insert(hash, index);
  return index;
}

std::uint32_t ClaimLedger::find_identity(std::uint64_t identity) const {
  return by_identity_.find(hash_of_identity(identity));
}

std::uint32_t ClaimLedger::node_of_source(const ChunkSource& source) {
  const std::uint32_t index = node_of_identity(source.identity);
  NodeRecord& node = nodes_[index];
  if (!node.known) node.name = source.node;
  node.known = true;
  node.value_digests = source.value_digests;
  node.latent_digest = source.latent_digest;
  if (source.pinned != node.pinned) pin(source.identity, source.pinned);
  return index;
}

std::uint32_t ClaimLedger::node_of_locator(std::string_view locator, std::uint32_t otherwise) {
  const std::uint64_t hash = hash_of(locator);
  std::uint32_t node = by_locator_.find(hash);
  if (node != kNobody) return node;
  node = otherwise;
  if (node == kNobody) {
    node = static_cast<std::uint32_t>(nodes_.size());
    nodes_.emplace_back();
  }
  by_locator_.insert(hash, node);
  return node;
}

void ClaimLedger::assign(std::uint32_t key, std::uint32_t node, Claim claim) {
  KeyRecord& record = keys_[key];
  if (record.node != kNobody) return;
  record.node = node;
  record.claim = claim;
  nodes_[node].keys[static_cast<std::size_t>(claim)].push_back(key);
}

void ClaimLedger::hold(std::uint64_t identity, bool held) {
  NodeRecord& node = nodes_[node_of_identity(identity)];
  if (held) {
    held_ += node.holds++ == 0 ? 1 : 0;
  } else if (node.holds > 0) {
    held_ -= --node.holds == 0 ? 1 : 0;
  }
}

void ClaimLedger::pin(std::uint64_t identity, bool pinned) {
  NodeRecord& node = nodes_[node_of_identity(identity)];
  if (node.pinned == pinned) return;
  node.pinned = pinned;
  pinned ? ++pinned_ : --pinned_;
}

void ClaimLedger::forget_claims() {
  for (NodeRecord& node : nodes_) {
    node.claims = 0;
    node.holds = 0;
    node.withdrawn_operation = {};
  }
  held_ = 0;
}

void ClaimLedger::reset() {
  keys_.clear();
  by_key_.clear();
  nodes_.clear();
  by_identity_.clear();
  by_locator_.clear();
  held_ = pinned_ = 0;
}

}  // namespace holdfast::sim
