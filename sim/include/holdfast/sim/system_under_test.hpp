// The store under test, as the harness drives it. Only the file that implements it knows the core, so that a planted
// bug costs one rebuild, and somebody else's store can be put under the same harness.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/engine.hpp"
#include "holdfast/core/result.hpp"
#include "holdfast/core/stats.hpp"
#include "holdfast/core/time.hpp"
#include "holdfast/sim/ports.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

// A node as the harness names it: the session's world, declared geometry and actions[0..depth].
using SessionId = std::uint32_t;  // the id of its open step

enum class Claim : std::uint8_t { kv, latent };

// Told at the very moment the store changes what it would serve. `locator` is the stored locator of the claim.
class ClaimListener {
 public:
  virtual ~ClaimListener() = default;
  // The keys of a kv claim are {locator}:L{layer}:k and :v; of a latent the locator itself.
  virtual void on_claim(Claim claim, std::string_view locator, const ChunkShape& shape, std::uint64_t nbytes) = 0;
  virtual void on_withdrawal(Claim claim, std::string_view locator) = 0;
};

struct SessionSpec {
  std::uint32_t world = 0;
  Geometry geometry;           // what the engine really has
  Geometry declared_geometry;  // what the namespace is made for
  std::vector<std::string> actions;
};

struct ResumeOutcome {
  std::uint32_t matched_chunks = 0;  // 0 = cold
  std::uint32_t retries = 0;         // get attempts beyond the first
  std::vector<Error> absorbed;       // failures after which it went on
};

enum class IngestResult : std::uint8_t {
  published,      // ready by this put
  adopted,        // ready by adoption
  already_ready,  // moved nothing
  elsewhere,      // being written, or written, by somebody else: not published
  uncached,       // refused (unsettled, no room): the session goes on uncached
};
struct IngestOutcome {
  IngestResult kv = IngestResult::uncached;
  IngestResult latent = IngestResult::uncached;
  std::vector<Error> absorbed;
};

struct EvictOutcome {
  bool evicted = false;  // false: there was no blob
  std::uint64_t freed_bytes = 0;
  std::vector<Error> absorbed;
};

// How far a warm-up is. No number goes back, and none is above its total; totals are 0 until they are known.
struct WarmUpReached {
  std::uint64_t touched_bytes = 0;
  std::uint64_t touch_total_bytes = 0;
  std::uint64_t registered_bytes = 0;
  std::uint64_t register_total_bytes = 0;
};
// False: stop. It is not asked again.
using WarmUpGoOn = std::function<bool(const WarmUpReached&)>;
struct WarmUpOutcome {
  WarmUpReached reached;
  std::vector<Error> absorbed;
};

// Every failure of a runtime call is told once: in the error of the operation, in `absorbed`, or in
// PumpOutcome::errors. What ends in a queue (unsettled, quarantined) is told when it enters.
struct PumpOutcome {
  std::uint32_t decided = 0;  // unsettled keys that are settled now
  std::vector<Error> errors;  // each stays queued
};

// What the store says of itself. Quiet means: nothing waits to be settled or let go.
struct Inspection {
  std::uint64_t ready_blobs = 0;
  std::uint64_t ready_latents = 0;
  std::uint64_t accounted_bytes = 0;  // slot bytes that the store believes to hold, unsettled included
  std::uint64_t in_doubt_bytes = 0;   // of these: unsettled, quarantined, or withdrawn and not removed yet
  std::uint64_t unsettled = 0;        // keys
  std::uint64_t quarantined = 0;      // plans and views
  std::uint64_t references = 0;       // on nodes
  std::uint64_t nodes = 0;
  std::uint64_t read_only_fallbacks = 0;  // registrations that needed the read-only flag
  std::uint64_t translated_mappings = 0;  // second mappings that were refused and are translated
  Stats stats;                            // of what it has done since it was made
};

struct SystemOptions {
  std::uint64_t capacity_bytes = 0;    // the upper mark; 0 = none
  std::uint64_t lower_mark_bytes = 0;  // 0 = the upper one
  Eviction eviction = Eviction::lru;
  std::uint64_t grant_bytes = 0;  // registration pieces end on these
  std::uint64_t hash_seed = 0;    // must not show
  bool in_memory_store = false;
  std::uint32_t batches_in_flight = 0;  // 0: synchronous; else overlapped, however short the batches
  bool checksums = false;               // of values, taken by puts and compared by reads, where the store can
  std::uint32_t pump_probes = 0;        // nodes that each pump probes
  // Host memory of the harness's, for a store that takes owned snapshots; used while the system lives.
  std::uintptr_t staging_base = 0;
  std::uint64_t staging_bytes = 0;
  std::string snapshot_path = "snapshot.json";
};

class SystemUnderTest {
 public:
  virtual ~SystemUnderTest() = default;

  // Loads the snapshot; a missing one is an empty store.
  virtual Status restore() = 0;
  // `engine` outlives the session.
  virtual Status open_session(SessionId session, const SessionSpec& spec, Engine& engine) = 0;
  virtual Status close_session(SessionId session) = 0;
  // A failure, as well as 0 matched chunks, leaves the session cold.
  virtual Result<ResumeOutcome> resume(SessionId session) = 0;
  // The engine has just finalized the session's next chunk. An error: not cached, the session goes on.
  virtual Result<IngestOutcome> chunk_finalized(SessionId session) = 0;
  // References on the longest ready path of the session's actions; gives its length.
  virtual Result<std::uint32_t> hold(SessionId session, std::uint32_t hold_id) = 0;
  virtual void unhold(std::uint32_t hold_id) = 0;
  virtual Result<EvictOutcome> evict(SessionId session, std::uint32_t depth) = 0;
  virtual Result<EvictOutcome> make_room(std::uint64_t bytes) = 0;
  // Makes the segments ready, so that no put registers any. A failure, as well as a stop, leaves nothing registered
  // that was not before, but what cannot be unregistered.
  virtual Result<WarmUpOutcome> warm_up(const WarmUpGoOn& go_on) = 0;
  virtual PumpOutcome pump() = 0;
  // Asks the store for all that is claimed, and withdraws what is gone.
  virtual PumpOutcome probe() = 0;
  virtual Status snapshot() = 0;
  // The device context was torn down: no copy is in flight any more, whatever the waits said.
  virtual void device_torn_down() = 0;
  // Drains, ends plans and handles, unregisters. Nothing else may be called afterwards.
  virtual Status shut_down() = 0;
  [[nodiscard]] virtual Inspection inspect() const = 0;
};

// The store that the project ships. `ports` and `listener` outlive it.
std::unique_ptr<SystemUnderTest> make_production_system(Ports& ports, ClaimListener& listener,
                                                        const SystemOptions& options);

}  // namespace holdfast::sim
