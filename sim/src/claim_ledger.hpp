// Keys and nodes as the caller knows them: what each key's own futures and removals said, and what is claimed of each
// node.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flat_index.hpp"
#include "holdfast/core/chunk_shape.hpp"
#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/core/time.hpp"
#include "holdfast/sim/monitor.hpp"

namespace holdfast::sim {

inline constexpr std::uint32_t kNobody = ~0U;  // no node, no key

// How the keys of a layer's values end, by part.
inline constexpr std::array<std::string_view, kScaledParts> kPartSuffixes{":k", ":v", ":ks", ":vs"};

// The locator that a key belongs to: {locator}:L{layer} and a part's suffix of a kv blob, or the locator itself of a
// latent.
struct KeyParts {
  std::string_view locator;
  Claim claim = Claim::latent;
};
KeyParts parts_of(std::string_view key);
std::uint64_t hash_of(std::string_view text);

struct KeyRecord {
  static constexpr Nanos kNeverCommitted = std::numeric_limits<Nanos>::min() / 2;

  std::uint64_t hash = 0;
  Nanos last_commit_ns = kNeverCommitted;
  std::uint64_t bytes = 0;  // as last put; 0 = the caller never put it
  std::uint32_t node = kNobody;
  Claim claim = Claim::latent;
  // Code 0 from its own future since it was last not stored, in that epoch.
  bool stored = false;
  bool removal_not_found = false;       // answered 4000 within the settle bound, and not removed since
  bool removal_lost = false;            // answered a transport failure, and not removed since
  std::uint32_t epoch = 0;              // of the last commit
  std::uint32_t unknown_operation = 0;  // in which its outcome became unknown; 0 = known
  std::uint32_t stored_operation = 0;   // in which it last answered 0
  std::uint32_t read_plan = 0;          // the last one over it that proves it stored; 0 = none
  std::uint32_t read_operation = 0;
  Nanos start_lost_ns = kNeverCommitted;  // when the answer of its put_start was lost
};

// Of one claim of a node: when it changed, in changes of all claims, and in which epoch its values were last put, or
// found by gets; 0 = by an earlier client, as far as it told.
struct ClaimStanding {
  std::uint64_t claimed_at = 0;
  std::uint64_t withdrawn_at = 0;
  std::uint32_t seen_epoch = 0;
};

struct NodeRecord {
  std::uint64_t identity = 0;
  std::string name;
  std::vector<std::uint64_t> value_digests;
  std::uint64_t latent_digest = 0;
  bool known = false;  // its source was seen
  bool pinned = false;
  std::uint32_t holds = 0;
  unsigned claims = 0;                                 // bit 0 = kv, bit 1 = latent
  ChunkShape shape;                                    // of the kv last claimed
  std::array<std::uint32_t, 2> withdrawn_operation{};  // by Claim; 0 = never
  std::array<std::uint32_t, 2> withdrawals{};          // by Claim
  std::array<ClaimStanding, 2> standing{};             // by Claim
  std::array<std::vector<std::uint32_t>, 2> keys;      // by Claim
};

constexpr unsigned bit_of(Claim claim) { return claim == Claim::kv ? 1U : 2U; }
std::string_view name_of(Claim claim);

class ClaimLedger {
 public:
  // ---- Keys.
  std::uint32_t key(std::string_view name);
  [[nodiscard]] KeyRecord& at(std::uint32_t key) { return keys_[key]; }
  [[nodiscard]] const KeyRecord& at(std::uint32_t key) const { return keys_[key]; }

  // A removal, a probe or a code has decided it.
  void decide(std::uint32_t key, bool stored);
  // True while its outcome is unknown; a new epoch decides everything.
  [[nodiscard]] bool unknown(const KeyRecord& record, std::uint32_t epoch) const {
    return record.unknown_operation != 0 && record.epoch == epoch;
  }

  // ---- Nodes.
  std::uint32_t node_of_source(const ChunkSource& source);
  std::uint32_t node_of_identity(std::uint64_t identity);
  [[nodiscard]] std::uint32_t find_identity(std::uint64_t identity) const;
  [[nodiscard]] std::uint32_t find_locator(std::string_view locator) const {
    return by_locator_.find(hash_of(locator));
  }
  std::uint32_t node_of_locator(std::string_view locator, std::uint32_t otherwise);
  // The key is the node's, if it was nobody's.
  void assign(std::uint32_t key, std::uint32_t node, Claim claim);
  [[nodiscard]] NodeRecord& node(std::uint32_t node) { return nodes_[node]; }
  [[nodiscard]] const NodeRecord& node(std::uint32_t node) const { return nodes_[node]; }
  template <class Visit>
  void for_each_node(Visit&& visit) const {
    for (const NodeRecord& node : nodes_) visit(node);
  }
  [[nodiscard]] std::uint64_t held() const { return held_; }
  [[nodiscard]] std::uint64_t pinned() const { return pinned_; }
  void hold(std::uint64_t identity, bool held);
  void pin(std::uint64_t identity, bool pinned);

  // The client is new: it knows no claim of the one before, but what was stored is stored.
  void forget_claims();
  void reset();

 private:
  static std::uint64_t hash_of_identity(std::uint64_t identity);

  std::vector<KeyRecord> keys_;
  FlatIndex by_key_;
  std::vector<NodeRecord> nodes_;
  FlatIndex by_identity_;
  FlatIndex by_locator_;
  std::uint64_t held_ = 0;    // nodes that are held
  std::uint64_t pinned_ = 0;  // nodes that are pinned
};

}  // namespace holdfast::sim
