// The store that the project ships, behind the harness's interface: the only file of the simulator that knows the core.
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/canonical_json.hpp"
#include "holdfast/core/manager.hpp"
#include "holdfast/core/memory_tier_store.hpp"
#include "holdfast/core/plan_tier_store.hpp"
#include "holdfast/core/session_binding.hpp"
#include "holdfast/sim/system_under_test.hpp"

namespace holdfast::sim {
namespace {

using SimRuntime = RuntimeOf<FluxonBackend, CudaBackend, fakes::VirtualClock, SimSync>;

Layout layout_of(const Geometry& geometry) {
  Layout layout;
  layout.n_layers = geometry.n_layers;
  layout.kv_shape = {geometry.kv_token_bytes.front()};
  layout.kv_dtype = "uint8";
  if (geometry.kv_token_bytes.size() > 1) {
    for (const std::uint32_t bytes : geometry.kv_token_bytes) layout.mixed_kv_shapes.push_back({bytes});
  }
  if (geometry.scale_token_bytes > 0) {
    layout.scale_shape = {geometry.scale_token_bytes};
    layout.scale_dtype = "int8";
  }
  if (geometry.latent_bytes > 0) {
    layout.latent_shape = {geometry.latent_bytes};
    layout.latent_dtype = "uint8";
  }
  layout.chunk_size = geometry.frames_per_chunk;
  layout.frame_tokens = geometry.frame_tokens;
  return layout;
}

RingGeometry ring_of(const Geometry& geometry) {
  return {geometry.frames_per_chunk, geometry.frame_tokens, geometry.ring_frames, geometry.sink_frames,
          geometry.full_length};
}

// What the bytes depend on besides the layout belongs to the config too: the ring and the sampler.
NodeKey root_of(std::uint32_t world, const Geometry& geometry) {
  nlohmann::json config = layout_of(geometry).to_config();
  config["ring_frames"] = geometry.ring_frames;
  config["sink_frames"] = geometry.sink_frames;
  config["full_length"] = geometry.full_length;
  config["timesteps"] = geometry.timesteps;
  Result<std::string> canonical = canonical_json(config);
  check(canonical.has_value(), "a config without floats is canonical");
  const std::string image = "world " + std::to_string(world);
  return root_hash({image, "prompt", config_hash({*canonical, "weights"})});
}

class Listener final : public TrieListener {
 public:
  explicit Listener(ClaimListener& claims) : claims_(claims) {}
  void on_blob_ready(const Node& node) override {
    claims_.on_claim(Claim::kv, kv_locator(node.key()), node.blob().shape, node.blob().nbytes);
  }
  void on_blob_withdrawn(const Node& node) override { claims_.on_withdrawal(Claim::kv, kv_locator(node.key())); }
  void on_skeleton_ready(const Node& node) override {
    claims_.on_claim(Claim::latent, latent_locator(node.key()), {}, node.skeleton().nbytes);
  }
  void on_skeleton_withdrawn(const Node& node) override {
    claims_.on_withdrawal(Claim::latent, latent_locator(node.key()));
  }

 private:
  ClaimListener& claims_;
};

IngestResult result_of(IngestVerdict verdict) {
  switch (verdict) {
    case IngestVerdict::stored:
      return IngestResult::published;
    case IngestVerdict::adopted:
      return IngestResult::adopted;
    case IngestVerdict::already_ready:
    case IngestVerdict::none:
      return IngestResult::already_ready;
    case IngestVerdict::elsewhere:
      return IngestResult::elsewhere;
    case IngestVerdict::failed:
      break;
  }
  return IngestResult::uncached;
}

std::unique_ptr<EvictionPolicy> policy_of(Eviction eviction) {
  switch (eviction) {
    case Eviction::lru:
      return std::make_unique<LeastRecentlyUsed>();
    case Eviction::frequency:
      break;
  }
  return std::make_unique<FrequencyAware>();
}

ManagerOptions manager_options(const SystemOptions& options, Listener& listener, EvictionPolicy& policy) {
  ManagerOptions manager;
  manager.capacity_bytes = options.capacity_bytes;
  manager.lower_mark_bytes = options.lower_mark_bytes;
  manager.eviction = &policy;
  manager.hash_seed = options.hash_seed;
  manager.listener = &listener;
  manager.pump_probes_max = options.pump_probes;
  return manager;
}

PlanOptions plan_options(const SystemOptions& options) {
  PlanOptions plan;
  if (options.grant_bytes != 0) plan.registry.piece_bytes = options.grant_bytes;
  if (options.batches_in_flight != 0) plan.overlap = {CopyMode::overlapped, options.batches_in_flight, 1};
  plan.checksums = options.checksums;
  return plan;
}

// `Store` is one of the core's stores; everything else is the same for both.
template <class Store>
class ProductionSystem final : public SystemUnderTest {
 public:
  using ManagerType = Manager<SimRuntime, Store>;

  ProductionSystem(Ports& ports, ClaimListener& claims, const SystemOptions& options)
      : files_(ports.files),
        snapshot_path_(options.snapshot_path),
        touch_part_bytes_(options.grant_bytes != 0 ? options.grant_bytes : kGrantBytes),
        runtime_{ports.fluxon, ports.cuda, ports.clock, ports.sync},
        listener_(claims),
        policy_(policy_of(options.eviction)) {
    if constexpr (ManagerType::kDirect) {
      store_.emplace(runtime_, plan_options(options));
      manager_.emplace(runtime_, *store_, manager_options(options, listener_, *policy_));
    } else {
      store_.emplace(ports.sync);
      manager_.emplace(runtime_, *store_, HostRange{options.staging_base, options.staging_bytes},
                       manager_options(options, listener_, *policy_));
    }
  }

  Status restore() override { return manager_->load(files_, snapshot_path_); }

  Status open_session(SessionId id, const SessionSpec& spec, Engine& engine) override {
    SessionOptions options;
    options.world = {root(spec.world, spec.declared_geometry), layout_of(spec.geometry), ring_of(spec.geometry),
                     spec.geometry.break_even_k};
    options.timesteps = spec.geometry.timesteps;
    Result<std::unique_ptr<Binding>> binding = Binding::open(*manager_, engine, options);
    if (!binding) return std::move(binding.error());
    sessions_.insert_or_assign(id, Session{spec.actions, 0, std::move(*binding)});
    return {};
  }

  Status close_session(SessionId id) override {
    // Its end comes to locks, where others may open or close theirs: not within the map.
    const auto closed = sessions_.extract(id);
    return {};
  }

  Result<ResumeOutcome> resume(SessionId id) override {
    Session& session = sessions_.at(id);
    ResumeOutcome outcome;
    const std::vector<std::string_view> actions(session.actions.begin(), session.actions.end());
    Result<ResumeReceipt> receipt = session.binding->resume(actions, outcome.absorbed);
    if (!receipt) return std::move(receipt.error());
    session.next = receipt->matched_chunks;
    outcome.matched_chunks = receipt->matched_chunks;
    outcome.retries = receipt->retries;
    return outcome;
  }

  Result<IngestOutcome> chunk_finalized(SessionId id) override {
    Session& session = sessions_.at(id);
    IngestOutcome outcome;
    Result<IngestReceipt> receipt =
        session.binding->on_chunk_finalized(session.actions.at(session.next++), outcome.absorbed);
    if (!receipt) return std::move(receipt.error());
    outcome.kv = result_of(receipt->kv);
    outcome.latent = result_of(receipt->latent);
    return outcome;
  }

  Result<std::uint32_t> hold(SessionId id, std::uint32_t hold_id) override {
    const Session& session = sessions_.at(id);
    const std::vector<std::string_view> actions(session.actions.begin(), session.actions.end());
    Result<PathLease> path = manager_->lookup(session.binding->world(), session.binding->spec(), actions);
    if (!path) return std::move(path.error());
    const std::uint32_t matched = path->matched_chunks();
    holds_.insert_or_assign(hold_id, std::move(*path));
    return matched;
  }

  void unhold(std::uint32_t hold_id) override { const auto ended = holds_.extract(hold_id); }

  Result<EvictOutcome> evict(SessionId id, std::uint32_t depth) override {
    const Session& session = sessions_.at(id);
    NodeKey key = session.binding->spec().root;
    for (std::uint32_t d = 0; d <= depth; ++d) key = node_key(key, session.actions.at(d));
    EvictOutcome outcome;
    Node* node = manager_->find(key);
    if (node == nullptr) return outcome;
    Result<EvictReceipt> receipt = manager_->evict_blob(*node, outcome.absorbed);
    if (!receipt) return with_suppressed(std::move(receipt.error()), outcome.absorbed);
    outcome.evicted = receipt->evicted;
    outcome.freed_bytes = receipt->freed_bytes;
    return outcome;
  }

  Result<EvictOutcome> make_room(std::uint64_t bytes) override {
    EvictOutcome outcome;
    Result<EvictReceipt> receipt = manager_->make_room(bytes, outcome.absorbed);
    if (!receipt) return std::move(receipt.error());
    outcome.evicted = receipt->evicted;
    outcome.freed_bytes = receipt->freed_bytes;
    return outcome;
  }

  Result<WarmUpOutcome> warm_up(const WarmUpGoOn& go_on) override {
    WarmUpOptions options;
    options.touch_part_bytes = touch_part_bytes_;
    // Memory that is touched is memory that is there: no run needs all of a large segment.
    options.touch = [left = kTouchedBytesMax](const HostRange& range) mutable {
      const std::uint64_t bytes = std::min(left, range.bytes);
      left -= bytes;
      read_pages({range.base, bytes});
    };
    options.go_on = [&](const WarmUpProgress& progress) { return go_on(reached(progress)); };
    WarmUpOutcome outcome;
    Result<WarmUpReport> report = manager_->warm_up(outcome.absorbed, options);
    if (!report) return std::move(report.error());
    outcome.reached = reached(report->progress);
    return outcome;
  }

  PumpOutcome pump() override {
    PumpOutcome outcome;
    outcome.decided = manager_->pump(outcome.errors);
    return outcome;
  }

  PumpOutcome probe() override {
    PumpOutcome outcome;
    manager_->probe_all(outcome.errors);
    return outcome;
  }

  Status snapshot() override { return manager_->save(files_, snapshot_path_); }

  void device_torn_down() override {
    std::vector<Error> errors;
    manager_->device_torn_down(errors);
  }

  Status shut_down() override {
    holds_.clear();
    sessions_.clear();
    return manager_->shut_down();
  }

  [[nodiscard]] Inspection inspect() const override {
    const ManagerCounts counts = manager_->counts();
    Inspection inspection;
    inspection.ready_blobs = counts.forest.ready_blobs;
    inspection.ready_latents = counts.forest.ready_skeletons;
    inspection.accounted_bytes = counts.accounted_bytes;
    inspection.in_doubt_bytes = counts.in_doubt_bytes;
    inspection.unsettled = counts.unsettled;
    inspection.quarantined = counts.quarantined;
    inspection.references = counts.forest.references;
    inspection.nodes = counts.forest.nodes;
    inspection.read_only_fallbacks = counts.registry.read_only_fallbacks;
    inspection.translated_mappings = counts.registry.translated_mappings;
    inspection.stats = counts.stats;
    return inspection;
  }

 private:
  static constexpr std::uint64_t kTouchedBytesMax = 16ULL << 20;  // of one warm-up
  static WarmUpReached reached(const WarmUpProgress& progress) {
    return {progress.touched_bytes, progress.touch_total_bytes, progress.registered_bytes,
            progress.register_total_bytes};
  }

  // Of a world and geometry seen before it is not computed again: many sessions share one, and it takes two hashes of
  // JSON.
  NodeKey root(std::uint32_t world, const Geometry& geometry) {
    for (const Root& known : roots_) {
      if (known.world == world && known.geometry == geometry) return known.key;
    }
    roots_.push_back({world, geometry, root_of(world, geometry)});
    return roots_.back().key;
  }

  struct Root {
    std::uint32_t world;
    Geometry geometry;
    NodeKey key;
  };

  using Binding = SessionBinding<ManagerType>;
  struct Session {
    std::vector<std::string> actions;
    std::size_t next = 0;  // index of the chunk that is generated next
    std::unique_ptr<Binding> binding;
  };

  FileBackend& files_;
  std::string snapshot_path_;
  std::uint64_t touch_part_bytes_;
  SimRuntime runtime_;
  Listener listener_;
  std::unique_ptr<EvictionPolicy> policy_;
  std::optional<Store> store_;
  std::optional<ManagerType> manager_;
  std::map<SessionId, Session> sessions_;
  std::map<std::uint32_t, PathLease> holds_;
  std::vector<Root> roots_;
};

}  // namespace

std::unique_ptr<SystemUnderTest> make_production_system(Ports& ports, ClaimListener& listener,
                                                        const SystemOptions& options) {
  if (options.in_memory_store) {
    return std::make_unique<ProductionSystem<MemoryTierStore<SimSync>>>(ports, listener, options);
  }
  return std::make_unique<ProductionSystem<PlanTierStore<SimRuntime>>>(ports, listener, options);
}

}  // namespace holdfast::sim
