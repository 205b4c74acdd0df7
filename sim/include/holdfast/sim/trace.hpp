// A trace holds everything that a run depends on. Replaying one gives the same event log, byte for byte, anywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/chunk_shape.hpp"
#include "holdfast/core/result.hpp"
#include "holdfast/core/time.hpp"
#include "holdfast/sim/calls.hpp"

namespace holdfast::sim {

// A layout and a ring. Value (layer l, side s: 0 = K, 1 = V) has kv_token_bytes[(2 * l + s) % size] bytes per token, so
// that one put may have up to three sizes; and a fourth where K and V are quantised, and each has scales.
struct Geometry {
  std::uint32_t n_layers = 1;
  std::uint32_t frames_per_chunk = 1;
  std::uint32_t frame_tokens = 1;
  std::uint32_t ring_frames = 1;  // of a full-length ring: the frames of the longest session
  std::uint32_t sink_frames = 0;
  bool full_length = true;
  std::vector<std::uint32_t> kv_token_bytes{256};  // 1 to 3 entries
  std::uint32_t scale_token_bytes = 0;             // of the scales of K, and of V; 0 = not quantised
  std::uint32_t latent_bytes = 0;                  // of a chunk; 0 = no skeletons
  std::uint32_t timesteps = 1;                     // draws to burn per skipped chunk = timesteps - 1
  std::uint32_t break_even_k = 1;                  // fewer matched chunks are not reused

  [[nodiscard]] ChunkShape chunk_shape() const {
    return {n_layers, scale_token_bytes == 0 ? kPlainParts : kScaledParts};
  }
  // Of the ring's tensors, as of a chunk's values, in key order.
  [[nodiscard]] std::size_t tensors() const { return chunk_shape().values(); }
  [[nodiscard]] std::uint64_t token_bytes(std::size_t tensor) const;
  friend bool operator==(const Geometry&, const Geometry&) = default;
};

enum class StepKind : std::uint8_t {
  open,           // a session: world, geometry, actions
  close,          // the session `of`
  generate,       // the next chunk of the session `of`, and its ingest
  resume,         // the session `of`, from its beginning
  hold,           // take references on the longest ready path of the session `of`
  unhold,         // let the references of the hold step `of` go
  evict,          // the blob of the node at `depth` on the path of the session `of`
  make_room,      // evict least recently used blobs until `amount` bytes are free of the capacity
  warm_up,        // make the segments ready now; cancelled when it asks for the `amount`th time, unless that is 0
  pump,           // periodic work
  snapshot,       // to the one snapshot file
  restart,        // the client dies and starts again from the last snapshot
  store_evict,    // environment: the owner evicts, or with checksums damages, that blob or latent (`of`, `depth`)
  owner_restart,  // environment: a new generation
  pass_time,      // environment: `amount` ns pass
};
inline constexpr std::size_t kStepKindCount = 15;
std::string_view name_of(StepKind kind);

// `amount` of store_evict: which of a node's values, and what becomes of them. Damage: bytes of one value change, as
// they lie in the owner, and nobody is told; only in a trace with checksums.
inline constexpr std::uint64_t kEvictBlob = 0;
inline constexpr std::uint64_t kEvictLatent = 1;
inline constexpr std::uint64_t kDamageBlob = 2;
inline constexpr std::uint64_t kDamageLatent = 3;

// Steps are named by id, which shrinking keeps. A step whose `of` does not name a fitting step, or that makes no sense
// where it stands, does nothing and is counted as skipped: so any step may be taken away.
struct Step {
  std::uint32_t id = 0;
  StepKind kind = StepKind::pump;
  std::uint32_t of = 0;      // the id of the open (or hold) step it belongs to
  std::uint32_t depth = 0;   // evict, store_evict
  std::uint64_t amount = 0;  // make_room: bytes; pass_time: ns; store_evict: see below; warm_up: see there
  bool join = false;         // where steps run side by side: all earlier ones end before it begins
  // open only:
  std::uint32_t world = 0;
  std::uint32_t geometry = 0;           // index into Trace::geometries: what the session really has
  std::uint32_t declared_geometry = 0;  // what its namespace was made for; differs only in a caller's mistake
  std::vector<std::string> actions;     // canonical JSON, one per chunk
  friend bool operator==(const Step&, const Step&) = default;
};

// `arg` of a part of file_read: below this the file's length, modulo its own; from it on the file is whole, but in its
// first line the digit number arg / kDamagedRead is another one.
inline constexpr std::uint64_t kDamagedRead = 1ULL << 32;

// At the `nth` (from 0) `call` within the step.
struct FaultPoint {
  std::uint32_t step = 0;
  Call call{};
  std::uint32_t nth = 0;
  FaultKind kind{};
  std::int32_t code = 0;  // what the caller sees
  std::uint64_t arg = 0;  // part: a seed for which keys or copies; late: ns; before of host_register: see the injector
  bool persistent = false;  // fires at every later such call of the step too
  friend bool operator==(const FaultPoint&, const FaultPoint&) = default;
};

enum class ChoiceKind : std::uint8_t {
  copy_at_submit,    // copy_batch: bytes move before the call returns
  copy_after_calls,  // copy_batch: after `arg` further device calls, at the latest at the wait
  copy_split,        // copy_batch: each copy in two pieces, all permuted by the seed `arg`
  copy_order,        // copy_batch: permuted by the seed `arg`
  route_after,       // local_fast_put_commit: the master has the routes after `arg` ns
  answer_after,      // local_fast_put_commit: the future answers after `arg` ns
  needs_transfer,    // get_start: the handle needs a transfer, so that it may time out
};
inline constexpr std::size_t kChoiceKindCount = 7;
std::string_view name_of(ChoiceKind kind);
// The call at which it is made.
Call call_of(ChoiceKind kind);

struct Choice {
  std::uint32_t step = 0;
  Call call{};
  std::uint32_t nth = 0;
  ChoiceKind kind{};
  std::uint64_t arg = 0;
  friend bool operator==(const Choice&, const Choice&) = default;
};

// Steps that may run side by side take turns. Unless a switch says so, the one that runs goes on, and when it has ended
// or is blocked, the earliest one that can. A step decides at each runtime call and each lock that it comes to, in
// order, and when it has ended: at its nth decision (from 0) the step `to` goes on, or begins, instead. The first step
// of all, and the first behind each restart of the client, is decided by step 0: once each, in order. A switch that
// comes to nothing is none.
struct StepSwitch {
  std::uint32_t step = 0;
  std::uint32_t nth = 0;
  std::uint32_t to = 0;  // the id of a step
  friend bool operator==(const StepSwitch&, const StepSwitch&) = default;
};

// Two of the same slot cannot be at the same call: events come on top of a fate, and a batch's copies take one choice.
[[nodiscard]] int slot_of(const FaultPoint& fault);
[[nodiscard]] int slot_of(const Choice& choice);

// Which blob goes first when room is made.
enum class Eviction : std::uint8_t { lru, frequency };
inline constexpr std::size_t kEvictionCount = 2;
std::string_view name_of(Eviction eviction);

struct Trace {
  std::string name;        // "seed 17 of default", "abcd"
  std::uint64_t seed = 0;  // what it was generated from; 0 when by hand
  std::uint64_t segment_bytes = 1 << 20;
  std::uint64_t grant_bytes = 1 << 18;
  std::uint64_t capacity_bytes = 0;    // of the manager, its upper mark; 0 = none
  std::uint64_t lower_mark_bytes = 0;  // a put that needs room makes it down to here; 0 = the upper mark
  Eviction eviction = Eviction::lru;
  bool in_memory_store = false;  // the generic tier store instead of the Plan store
  // Of the Plan store: 0 = synchronous; else copies overlap, with so many batches of one operation in flight at most.
  std::uint32_t batches_in_flight = 0;
  std::uint32_t pump_probes = 0;  // nodes of which each pump asks the store whether it has their values
  bool checksums = false;         // the Plan store takes checksums of values, so that the owner may damage them
  bool copy_stream = false;       // the engines give copies a stream of their own, ordered with theirs by events
  std::vector<Geometry> geometries;
  std::vector<Step> steps;  // unique ids, in order of execution
  std::vector<FaultPoint> faults;
  std::vector<Choice> choices;
  std::vector<StepSwitch> switches;  // none: one step after the other
  friend bool operator==(const Trace&, const Trace&) = default;
};

inline constexpr std::string_view kTraceSchema = "holdfast-trace/1";

// Bounds of what a reader accepts; a trace beyond them is refused, never cut.
struct TraceLimits {
  std::uint64_t file_bytes_max = 64ULL << 20;
  std::uint32_t depth_max = 16;
  std::uint32_t steps_max = 1'000'000;
  std::uint32_t faults_max = 1'000'000;
  std::uint32_t sessions_max = 30'000;
  std::uint32_t actions_max = 4096;  // per session
  std::uint64_t segment_bytes_max = 16ULL << 30;
  std::uint64_t ring_bytes_max = 1ULL << 30;  // per session, all layers
  std::uint32_t batches_in_flight_max = 64;
  // Where steps run side by side: of the trace, of one round, and threads of control (see lane_of). Each step of a
  // round has a stack, each lane a clock of all lanes.
  std::uint32_t side_by_side_steps_max = 20'000;
  std::uint32_t round_steps_max = 256;
  std::uint32_t lanes_max = 4096;
  std::uint32_t pump_probes_max = 1024;
};

// Both cannot happen at one call. Events (late, gone, evict, time, death) may come on top of a fate.
bool same_place(const FaultPoint& a, const FaultPoint& b);

std::string write_trace(const Trace& trace);
// `file` is only named in errors. An error says file, place and reason.
Result<Trace> read_trace(std::string_view text, std::string_view file, const TraceLimits& limits = {});
// What read_trace checks beyond syntax: unique ids, known references, sane geometry, legal faults, bounds.
Status validate_trace(const Trace& trace, const TraceLimits& limits = {});
// Whether a valid trace's steps can also run side by side. Those of a trace with switches can.
Status validate_side_by_side(const Trace& trace, const TraceLimits& limits = {});

}  // namespace holdfast::sim
