// The monitor: the top layer, which knows what the caller can know, and nothing else. It records and never throws.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/backend.hpp"
#include "holdfast/sim/run_context.hpp"
#include "holdfast/sim/system_under_test.hpp"
#include "holdfast/sim/tap.hpp"

namespace holdfast::sim {

// The chunk that is being ingested, so that a claim made during it can be compared with its source.
struct ChunkSource {
  std::string node;            // for people: "world 1 [0,2]"
  std::uint64_t identity = 0;  // the harness's own id of the node
  std::uint32_t depth = 0;
  bool pinned = false;                       // depth < sink chunks
  std::vector<std::uint64_t> value_digests;  // XXH3 of K and V per layer, in key order
  std::uint64_t latent_digest = 0;
  std::vector<std::uint64_t> value_bytes;  // of each value, in key order
  std::uint64_t latent_bytes = 0;
};

enum class Operation : std::uint8_t {
  none,
  open,
  resume,
  ingest,
  hold,
  evict,
  make_room,
  warm_up,
  pump,
  snapshot,
  restore,
  close,
  shut_down
};

// Decides ready-after-commit, sync-before-commit, abort-after-sync, no-publish-on-failure (the claims' half),
// one-terminal, validated-batch, pinned-stays and index-agrees.
struct OperationRecord;

class Monitor final : public ClaimListener {
 public:
  // `tap` only for what is in the store (ready-after-commit's second half, index-agrees).
  Monitor(RunContext& context, FluxonBackend& fluxon, CudaBackend& cuda, FileBackend& files, const Tap& tap);
  ~Monitor() override;

  FluxonBackend& fluxon();
  CudaBackend& cuda();
  FileBackend& files();

  // Every operation of the store under test is between these two.
  void begin(Operation operation);
  void begin_ingest(const ChunkSource& source);
  // `ok`: the store said success, also when it stored or restored nothing.
  void end(bool ok);
  // Another step's turn: the operation that it is in comes back.
  void swap_operation(OperationRecord& others);

  // Operations run side by side: what one was told of segments counts for all once it goes on. Stays until reset.
  void expect_side_by_side();
  // The operation that is running comes to its next call; and makes it, after others may have gone on.
  void comes_to_a_call();
  void goes_on();

  // The store under test keeps its values itself, so claims have no keys in an owner: a claim then needs that no copy
  // to the host is in flight. Stays until reset.
  void expect_memory_store();

  // Told of each put's slot bytes before its plan starts. Stays until reset.
  using PutWatch = std::function<void(std::uint64_t slot_bytes)>;
  void watch_puts(PutWatch watch);
  // Slot bytes of the put plans that are live.
  [[nodiscard]] std::uint64_t live_put_bytes() const;
  // What is withdrawn goes with its world, which nobody uses: latents too.
  void lets_worlds_go(bool idle);

  // The engine's device memory: copies must lie inside one of these.
  void declare_tensor(std::uintptr_t base, std::uint64_t bytes);
  void forget_tensor(std::uintptr_t base);

  // References that the harness itself took: the nodes with these identities are ready, and must stay.
  void hold(std::uint64_t identity);
  void unhold(std::uint64_t identity);
  // A namespace's pins hold while it has a session or an unpinned blob.
  void pin(std::uint64_t identity, bool pinned);

  // True when the caller knows of a key of this claim whose outcome is unknown.
  [[nodiscard]] bool unsettled(std::uint64_t identity) const;
  // Claims now made, by identity: 0 = none, bit 0 = kv, bit 1 = latent.
  [[nodiscard]] unsigned claims(std::uint64_t identity) const;
  // The operation that ended last did not store this because it was ready.
  void relied_on(std::uint64_t identity, Claim claim);
  // The operation that ended last was given values, of what was claimed, that had been damaged.
  [[nodiscard]] bool read_damaged() const;
  // Claims of which the store lacks a key, for people.
  [[nodiscard]] std::vector<std::string> claims_not_stored() const;
  // The node a locator belongs to; 0 when the harness never saw it.
  [[nodiscard]] std::uint64_t identity_of(std::string_view locator) const;

  // The client died or left, and a new one knows nothing of its plans, handles, copies and registrations. What became
  // of keys is remembered, since time decides it. An owner's restart needs no word: the caller learns the generation
  // from wait_local_segments_ready, and the monitor with it.
  void new_incarnation();
  // The device context was torn down: nothing is in flight any more, and no registration is left.
  void device_torn_down();
  // Everything begun must have ended by now: plans, handles, views.
  void check_all_ended();

  void on_claim(Claim claim, std::string_view locator, const ChunkShape& shape, std::uint64_t nbytes) override;
  void on_withdrawal(Claim claim, std::string_view locator) override;

  void reset();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::sim
