// What the store claims, now and ever, by the harness's own nodes; the monitor is told first.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "holdfast/sim/monitor.hpp"
#include "holdfast/sim/oracle.hpp"
#include "holdfast/sim/system_under_test.hpp"

namespace holdfast::sim {

// Also keeps which nodes are pinned: those above the sink depth, while their namespace has a session or an unpinned
// blob.
class ClaimBook final : public ClaimListener {
 public:
  struct Node {
    std::uint64_t identity = 0;
    std::uint64_t namespace_id = 0;
    std::uint32_t depth = 0;
    bool sink = false;
    bool kv = false;
    bool latent = false;
    bool ever_kv = false;
    bool ever_before_restart = false;             // a blob was claimed by an earlier incarnation of the client
    bool ingested_before_restart = false;         // by an earlier incarnation of the client
    bool eviction_failed = false;                 // its last eviction did
    std::uint32_t ingested_in = 0;                // the client's incarnation of its last ingest; 0 = none
    std::uint64_t kv_slot_bytes = 0;              // as claimed
    std::uint64_t latent_slot_bytes = 0;          // as claimed
    std::array<std::uint64_t, 2> withdrawn_at{};  // by Claim, its last withdrawal; see withdrawals()
    std::uint64_t child_ingested = 0;             // identity of the first child that was
  };
  // The slots that a blob of so many bytes takes; which, tells the layout that wrote it.
  struct Footprint {
    std::uint64_t kv_bytes = 0;
    std::uint64_t kv_slot_bytes = 0;
    std::uint64_t latent_slot_bytes = 0;
  };

  ClaimBook(Monitor& monitor, Oracle& oracle) : monitor_(monitor), oracle_(oracle) {}
  // Locators are kept only when somebody will ask for them.
  void reset(bool keep_locators, std::uint64_t hash_seed);

  Node& know(const OracleNode& node, bool sink);
  [[nodiscard]] Node* find(std::uint64_t identity);
  void namespace_opened(std::uint64_t namespace_id);
  void namespace_closed(std::uint64_t namespace_id);
  // An ingest of the node begins.
  void note_ingest(Node& node, std::uint64_t parent, const Footprint& footprint);
  // All claims are void; those that a snapshot restores are made anew.
  void client_died();

  [[nodiscard]] std::uint32_t incarnation() const { return incarnation_; }
  [[nodiscard]] std::uint64_t claimed_slot_bytes() const { return claimed_slot_bytes_; }
  [[nodiscard]] std::uint64_t blobs() const { return blobs_; }
  // Blobs withdrawn so far.
  [[nodiscard]] std::uint64_t blob_withdrawals() const { return blob_withdrawals_; }
  // Of blobs and latents so far.
  [[nodiscard]] std::uint64_t withdrawals() const { return withdrawals_; }
  // Empty when unknown.
  [[nodiscard]] std::string locator_of(std::uint64_t identity, Claim claim) const;

  void on_claim(Claim claim, std::string_view locator, const ChunkShape& shape, std::uint64_t nbytes) override;
  void on_withdrawal(Claim claim, std::string_view locator) override;

 private:
  struct SeededHash {
    SeededHash() : seed(0) {}
    explicit SeededHash(std::uint64_t of) : seed(of) {}
    std::uint64_t seed;
    std::size_t operator()(std::uint64_t key) const { return (key ^ seed) * 0x9E37'79B9'7F4A'7C15ULL; }
  };
  template <class Value>
  using Map = std::unordered_map<std::uint64_t, Value, SeededHash>;
  struct Namespace {
    std::uint32_t sessions = 0;
    std::uint32_t blobs = 0;
    std::uint32_t unpinned_blobs = 0;
    std::vector<std::uint64_t> sinks;
    [[nodiscard]] bool active() const { return sessions > 0 || unpinned_blobs > 0; }
  };
  struct Footprints {
    std::array<Footprint, 2> of;  // of the right layout, and of a mistaken one
    std::uint32_t count = 0;
  };

  void pin_all(const Namespace& space, bool pinned);
  // The claim is made or withdrawn: bytes, blobs, and with them the pins.
  void set(Node& node, Claim claim, bool claimed, std::uint64_t nbytes);

  Monitor& monitor_;
  Oracle& oracle_;
  bool keep_locators_ = false;
  std::uint32_t incarnation_ = 1;
  std::uint64_t claimed_slot_bytes_ = 0;
  std::uint64_t blobs_ = 0;
  std::uint64_t blob_withdrawals_ = 0;
  std::uint64_t withdrawals_ = 0;
  std::vector<Node> nodes_;
  std::vector<Footprints> footprints_;  // by node
  Map<std::uint32_t> by_identity_;
  Map<Namespace> namespaces_;
  Map<std::array<std::string, 2>> locators_;
};

}  // namespace holdfast::sim
