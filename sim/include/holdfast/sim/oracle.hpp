// The oracle: what a cold run computes at every node, and so what any resume must give, byte for byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "holdfast/sim/run_context.hpp"
#include "holdfast/sim/system_under_test.hpp"

namespace holdfast::sim {

class StandInEngine;

using NodeIndex = std::uint32_t;
using LayoutIndex = std::uint32_t;

// The sizes of what an engine of a geometry holds.
struct EngineLayout {
  Geometry geometry;
  std::uint64_t digest = 0;                // of everything the bytes depend on
  std::vector<std::uint64_t> frame_bytes;  // per ring tensor, in key order
  std::uint64_t frame_bytes_total = 0;     // of all tensors

  [[nodiscard]] std::size_t tensors() const { return frame_bytes.size(); }
  [[nodiscard]] std::uint64_t value_bytes(std::size_t tensor) const {
    return frame_bytes[tensor] * geometry.frames_per_chunk;
  }
};

// One chunk of one world, as written by engines of one layout. The identity is the harness's own: it comes from the
// world, the declared geometry and the actions so far, never from the store's keys.
struct OracleNode {
  std::uint64_t identity = 0;
  std::uint64_t namespace_id = 0;  // world and declared geometry
  std::uint64_t seed = 0;          // of its bytes: the identity and the layout that really wrote it
  NodeIndex parent = 0;            // kNoNode at depth 0
  std::uint32_t depth = 0;
  std::uint32_t world = 0;
  LayoutIndex layout = 0;
  std::string_view action;
  std::uint64_t first_digest = ~0ULL;  // in the oracle's table; none yet
  std::uint64_t latent_digest = 0;
  std::uint64_t chain = 0;  // of the latents down to it: what its output frames are made of
};
inline constexpr NodeIndex kNoNode = 0xFFFF'FFFF;

// Decides whole-window, exact-bytes and namespace-isolation, and their sum after a restart, restart-safe.
class Oracle {
 public:
  static constexpr std::uint64_t kChainStart = 0x6368'6169;

  explicit Oracle(RunContext& context) : context_(context) {}
  // `hash_seed` must not show anywhere.
  void reset(std::uint64_t hash_seed = 0);

  [[nodiscard]] LayoutIndex layout_of(const Geometry& geometry);
  [[nodiscard]] const EngineLayout& layout(LayoutIndex index) const { return layouts_[index]; }
  [[nodiscard]] std::uint64_t namespace_of(std::uint32_t world, const Geometry& declared) const;
  // The nodes of a session, one per action. The actions' text must outlive the run.
  [[nodiscard]] std::vector<NodeIndex> path_of(const SessionSpec& spec, std::span<const std::string> actions);
  [[nodiscard]] const OracleNode& node(NodeIndex index) const { return nodes_[index]; }
  // "world 1 [0,2]".
  [[nodiscard]] std::string describe(NodeIndex index) const;

  // The seed of a frame's bytes; `tensor` == layout.tensors() for the latent.
  [[nodiscard]] static std::uint64_t frame_seed(const OracleNode& node, std::size_t tensor, std::uint32_t frame) {
    return mix_seed(node.seed, (static_cast<std::uint64_t>(tensor) << 32) | frame);
  }
  // Digests of what a cold run computes there. Known from the first engine that computes the chunk, else worked out.
  [[nodiscard]] bool knows(NodeIndex index) const { return nodes_[index].first_digest != ~0ULL; }
  void learn(NodeIndex index, std::span<const std::byte* const> values, const std::byte* latent);
  void work_out(NodeIndex index);
  [[nodiscard]] std::uint64_t frame_digest(NodeIndex index, std::size_t tensor, std::uint32_t frame) const;
  [[nodiscard]] std::uint64_t value_digest(NodeIndex index, std::size_t tensor) const;

  // Bytes that an engine computed from something wrong: finding them elsewhere is a consequence, not another violation.
  void note_spread(std::uint64_t digest) { spread_.insert(digest); }

  // From now on every wrong resume breaks restart-safe as well.
  void after_restart() { after_restart_ = true; }
  // A claim was made in the namespace: only then could its bytes have crossed into another.
  void note_claim(std::uint64_t namespace_id) { claimed_namespaces_.insert(namespace_id); }

  // After a resume that succeeded with `matched_chunks` > 0: compares everything that the engine now holds, and what
  // was published to it, with the cold run. `claimed_chunks`: of how many leading chunks a blob is claimed.
  // False: something is wrong, and reported.
  bool check_resume(StandInEngine& engine, std::uint32_t matched_chunks, std::uint32_t claimed_chunks);
  // After one that failed or matched nothing: nothing may have been published to the engine.
  bool check_cold(StandInEngine& engine, bool failed);

  // What is wrong with these bytes, which should be that frame (or latent); nothing when they are right.
  struct Wrong {
    Invariant invariant = Invariant::exact_bytes;
    bool consequence = false;  // of what has been reported already
    std::string what;
    std::string_view culprit;  // the kind of what is there
  };
  [[nodiscard]] std::optional<Wrong> judge(const std::byte* bytes, NodeIndex node, std::size_t tensor,
                                           std::uint32_t frame);
  void report(Invariant invariant, const std::string& message, std::string_view culprits);
  void count_exact(std::uint64_t times = 1);

 private:
  struct Origin {
    NodeIndex node = 0;
    std::uint32_t tensor = 0;
    std::uint32_t frame = 0;
  };
  struct SeededHash {
    SeededHash() : seed(0) {}
    explicit SeededHash(std::uint64_t of) : seed(of) {}
    std::uint64_t seed;
    std::size_t operator()(std::uint64_t key) const { return mix_seed(key, seed); }
  };

  static std::uint64_t mix_seed(std::uint64_t a, std::uint64_t b);
  [[nodiscard]] std::optional<Origin> origin_of(std::uint64_t digest);
  [[nodiscard]] std::string place(NodeIndex node, std::size_t tensor, std::uint32_t frame) const;

  RunContext& context_;
  std::vector<EngineLayout> layouts_;
  std::vector<OracleNode> nodes_;
  std::vector<std::uint64_t> digests_;
  std::unordered_map<std::uint64_t, NodeIndex, SeededHash> by_seed_;
  std::unordered_set<std::uint64_t> spread_;
  std::unordered_set<std::uint64_t> claimed_namespaces_;
  std::unordered_map<std::uint64_t, Origin> origins_;  // made when something wrong is found
  std::size_t origins_made_for_ = 0;                   // digests at that time
  std::vector<std::byte> scratch_;
  bool after_restart_ = false;
};

}  // namespace holdfast::sim
