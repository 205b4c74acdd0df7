// Binds a runtime's session to the cache by two hooks: resume, when it begins, and on_chunk_finalized, after each
// chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/engine.hpp"
#include "holdfast/core/manager.hpp"

namespace holdfast {

struct SessionOptions {
  WorldSpec world;
  std::uint32_t timesteps = 1;    // of the engine's sampler: it burns timesteps - 1 draws per skipped chunk
  std::uint32_t retries_max = 3;  // shorter prefixes tried after an incomplete or corrupt read
};

struct ResumeReceipt {
  std::uint32_t matched_chunks = 0;  // 0: cold
  std::uint32_t retries = 0;
  std::uint64_t bytes = 0;  // restored into the ring and the latents
};

// One session, on one thread. Manager and engine outlive it.
template <class ManagerType>
class SessionBinding {
 public:
  // Errors of the world's layout and ring, and of an engine whose ring does not fit them.
  static Result<std::unique_ptr<SessionBinding>> open(ManagerType& manager, Engine& engine,
                                                      const SessionOptions& options) {
    if (options.timesteps == 0) return make_error(Errc::invalid_argument, "open", "timesteps is 0");
    if (Status fits = validate_world(options.world); !fits) return std::move(fits.error());
    if (Status fits = check_ring(options.world, engine.ring()); !fits) return std::move(fits.error());
    Result<Namespace*> world = manager.open(options.world);
    if (!world) return std::move(world.error());
    return std::unique_ptr<SessionBinding>(new SessionBinding(manager, engine, options, **world));
  }
  ~SessionBinding() { manager_.close(world_); }
  SessionBinding(const SessionBinding&) = delete;
  SessionBinding& operator=(const SessionBinding&) = delete;

  // Restores the longest reusable prefix of `actions`, publishes it, and moves behind it. Latents come first, into
  // private targets; the ring is touched only when all of them are there. After an error, and with 0 matched chunks,
  // the session is cold, and nothing was published but perhaps "the ring is empty".
  Result<ResumeReceipt> resume(std::span<const std::string_view> actions, Absorbed& absorbed) {
    ResumeReceipt receipt;
    if (!cursor_->is_virtual_root()) {
      // The session begins anew: what the ring holds belongs to what it had behind it.
      cursor_ = world_.root();
      engine_.publish_kv_indices({});
    }
    for (; receipt.retries <= options_.retries_max; ++receipt.retries) {
      Result<PathLease> path = manager_.lookup(world_, options_.world, actions);
      if (!path) return with_suppressed(std::move(path.error()), absorbed);
      if (path->matched_chunks() == 0) return receipt;
      ReadOutcome outcome = restore(*path, absorbed);
      if (outcome.verdict == ReadVerdict::restored) {
        publish_timed(*path);
        receipt.matched_chunks = path->matched_chunks();
        receipt.bytes = options_.world.layout.latent_bytes() * path->chain().size() +
                        options_.world.layout.blob_bytes() * path->window().size();
        return receipt;
      }
      if (outcome.targets_touched) engine_.publish_kv_indices({});
      if (outcome.verdict == ReadVerdict::failed) return with_suppressed(std::move(outcome.error), absorbed);
      absorbed.push_back(std::move(outcome.error));
      // What is corrupt has been withdrawn by its read, and all the rest was there.
      if (outcome.verdict == ReadVerdict::corrupt) continue;
      manager_.withdraw_absent(*path, options_.world.layout, absorbed);
    }
    return receipt;
  }

  // The engine has finalized the next chunk: its K and V are the last frames of the ring. An error says that it is not
  // cached; the session goes on behind it all the same.
  Result<IngestReceipt> on_chunk_finalized(std::string_view action, Absorbed& absorbed) {
    // First of all: whatever fails below, the next chunk's key follows from this one's.
    cursor_ = &manager_.enter(*cursor_, action);
    const std::vector<DeviceTensor> ring = engine_.ring();
    Result<std::vector<DeviceTensor>> values =
        finalized_chunk(options_.world, ring, engine_.indices().local_end_tokens);
    if (!values) return std::move(values.error());
    const DeviceTensor latent = engine_.finalized_latent();
    // Behind whatever made them.
    const CopyStream stream = engine_.copy_stream();
    Result<IngestReceipt> receipt = manager_.ingest(*cursor_, options_.world.layout, *values, latent, stream, absorbed);
    if (!receipt) return with_suppressed(std::move(receipt.error()), absorbed);
    return receipt;
  }

  [[nodiscard]] Namespace& world() const { return world_; }
  [[nodiscard]] const WorldSpec& spec() const { return options_.world; }
  // The last chunk that the session has behind it; the virtual root when none.
  [[nodiscard]] const Node& cursor() const { return *cursor_; }

 private:
  SessionBinding(ManagerType& manager, Engine& engine, const SessionOptions& options, Namespace& world)
      : manager_(manager), engine_(engine), options_(options), world_(world), cursor_(world.root()) {}

  ReadOutcome restore(PathLease& path, Absorbed& absorbed) {
    const bool has_latent = options_.world.layout.has_latent();
    Result<std::vector<DeviceTensor>> targets;
    if (has_latent) targets = engine_.latent_targets(path.matched_chunks());
    if (!targets) return {ReadVerdict::failed, false, std::move(targets.error())};
    // Behind what the engine did to the targets too.
    const CopyStream stream = engine_.copy_stream();
    if (has_latent) {
      ReadOutcome latents = manager_.restore_latents(path, options_.world.layout, *targets, stream, absorbed);
      // The targets are private: touching them is nothing to tell.
      if (latents.verdict != ReadVerdict::restored) return {latents.verdict, false, std::move(latents.error)};
    }
    return manager_.restore_window(path, options_.world, engine_.ring(), stream, absorbed);
  }

  void publish_timed(PathLease& path) {
    Stats spent;
    {
      const StageTimer timer(spent, Stage::publish, manager_.clock());
      publish(path);
    }
    spent.hit_chunks = path.matched_chunks();
    path.add(spent);
  }
  void publish(const PathLease& path) {
    const std::uint32_t chunks = path.matched_chunks();
    const RingEnds ends = options_.world.ring.ends_of(chunks);
    engine_.publish_kv_indices({ends.local_end_tokens, ends.global_end_tokens});
    engine_.publish_latents(chunks);
    cursor_ = path.chain().back();
    engine_.fast_forward(chunks, std::uint64_t{options_.timesteps - 1} * chunks);
  }

  ManagerType& manager_;
  Engine& engine_;
  const SessionOptions options_;
  Namespace& world_;
  Node* cursor_;
};

}  // namespace holdfast
