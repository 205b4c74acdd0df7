// What the core's own work costs, value by value: a chunk is put, resumed from and evicted through manager and store,
// and the same calls are made by hand.
#include <algorithm>
#include <string>
#include <vector>

#include "bench_cases.hpp"
#include "holdfast/core/manager.hpp"
#include "holdfast/core/plan_tier_store.hpp"
#include "holdfast/fakes/cuda_device.hpp"
#include "holdfast/fakes/fluxon_owner.hpp"

namespace holdfast::sim {
namespace {

using benchmark::State;

using BenchRuntime = RuntimeOf<FluxonBackend, CudaBackend, fakes::VirtualClock, StdSync>;
using BenchStore = PlanTierStore<BenchRuntime>;

constexpr std::uint32_t kLayers = 40;
constexpr std::size_t kValues = std::size_t{2} * kLayers;
constexpr std::uint64_t kValueBytes = 256;
constexpr std::uint64_t k4KiB = 4 << 10;
constexpr std::uint64_t k64KiB = 64 << 10;

// Both ways move the same values between the same owner and device.
struct World {
  explicit World(std::uint64_t value_bytes = kValueBytes)
      : owner(arena, clock, owner_options(value_bytes)),
        device(arena, clock, {.device_bytes = 2 * kValues * slot_bytes(value_bytes)}) {
    spec.layout.n_layers = kLayers;
    spec.layout.kv_shape = {static_cast<std::int64_t>(value_bytes)};
    spec.layout.kv_dtype = "uint8";
    spec.layout.chunk_size = spec.layout.frame_tokens = 1;
    spec.ring = {.frames_per_chunk = 1, .frame_tokens = 1, .ring_frames = 1};
    spec.root = root_hash({"image", "prompt", config_hash({"{}", "weights"})});
    for (std::size_t i = 0; i < kValues; ++i) {
      ring.push_back({device.allocate(value_bytes).value(), value_bytes, 0, true});
    }
  }

  static fakes::OwnerOptions owner_options(std::uint64_t value_bytes = kValueBytes) {
    fakes::OwnerOptions options;
    options.segment_bytes = options.grant_bytes =
        std::max<std::uint64_t>(4 << 20, 2 * kValues * slot_bytes(value_bytes));
    options.overwrite_checks = false;
    return options;
  }

  fakes::Arena arena;
  fakes::VirtualClock clock;
  fakes::FakeOwner owner;
  fakes::FakeCuda device;
  StreamRef stream = device.create_stream().value();
  WorldSpec spec;
  std::vector<DeviceTensor> ring;
};

void count(State& state) {
  const double values = static_cast<double>(state.iterations()) * kValues;
  state.counters[kNsAValue] =
      benchmark::Counter(values / 1e9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// A put, a resume and an eviction of a chunk's values.
void through_the_core(State& state, std::uint64_t value_bytes, bool checksums) {
  World world(value_bytes);
  StdSync sync;
  FluxonBackend& fluxon = world.owner;
  CudaBackend& cuda = world.device;
  BenchRuntime runtime{fluxon, cuda, world.clock, sync};
  PlanOptions options;
  options.registry.piece_bytes = World::owner_options(value_bytes).grant_bytes;
  options.checksums = checksums;
  BenchStore store(runtime, options);
  Manager<BenchRuntime, BenchStore> manager(runtime, store, {});
  Namespace& space = *manager.open(world.spec).value();
  Absorbed absorbed;
  const std::vector<std::string_view> actions{"0"};
  for ([[maybe_unused]] auto _ : state) {
    Node& node = manager.enter(*space.root(), actions.front());
    const Result<IngestReceipt> put =
        manager.ingest(node, world.spec.layout, world.ring, DeviceTensor{}, world.stream, absorbed);
    world.clock.advance_by(kSecond);
    bool restored = false;
    {
      Result<PathLease> path = manager.lookup(space, world.spec, actions);
      if (path) {
        restored = manager.restore_window(*path, world.spec, world.ring, world.stream, absorbed).verdict ==
                   ReadVerdict::restored;
      }
    }
    const Result<EvictReceipt> evicted = manager.evict_blob(node, absorbed);
    world.clock.advance_by(kSecond);
    if (!put || put->kv != IngestVerdict::stored || !restored || !evicted || !absorbed.empty()) {
      state.SkipWithError("the core's put, resume or eviction failed");
      break;
    }
  }
  count(state);
  manager.close(space);
  if (!manager.shut_down()) state.SkipWithError("the core did not shut down");
}

void values_of_256(State& state) { through_the_core(state, kValueBytes, false); }

template <std::uint64_t kBytes, bool kChecksums>
void values_of(State& state) {
  through_the_core(state, kBytes, kChecksums);
}

template <std::uint64_t kBytes>
void sum_alone(State& state) {
  const std::vector<std::byte> value(kBytes, std::byte{7});
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(checksum_of_value(value));
  state.counters[kByteRate] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kBytes, benchmark::Counter::kIsRate);
}

void by_hand(State& state) {
  World world;
  const Segment segment = world.owner.wait_local_segments_ready().value().front();
  bool right = world.device.host_register(segment.write_ptr, segment.len, HostAccess::read_write).has_value() &&
               world.device.host_register(segment.read_ptr, segment.len, HostAccess::read_write).has_value();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kValues; ++i) names.push_back(std::string(64, 'k') + std::to_string(i));
  const std::vector<std::string_view> keys(names.begin(), names.end());
  const std::vector<std::uint32_t> groups{kValues};
  std::vector<Copy> copies(kValues);
  const auto move = [&](PlanPtr plan, CopyDirection direction) {
    const auto* slots = reinterpret_cast<const std::uint64_t*>(plan.address) + 2;
    for (std::size_t i = 0; i < kValues; ++i) {
      copies[i] = direction == CopyDirection::device_to_host ? Copy{slots[i], world.ring[i].data, kValueBytes}
                                                             : Copy{world.ring[i].data, slots[i], kValueBytes};
    }
    right = right && world.device.copy_batch(direction, copies, world.stream).has_value() &&
            world.device.stream_synchronize(world.stream).has_value();
  };
  for ([[maybe_unused]] auto _ : state) {
    const Result<PlanPtr> put = world.owner.local_fast_put_start(keys, kValueBytes, {});
    if (put) move(*put, CopyDirection::device_to_host);
    right = right && put && world.owner.local_fast_put_commit(*put).value().wait(kSecond).has_value();
    world.clock.advance_by(kSecond);
    const Result<GetStart> get = world.owner.get_start(keys, true, groups);
    const Result<PlanPtr> read = world.owner.get_transfer(get.value().handle, kValues);
    if (read) move(*read, CopyDirection::host_to_device);
    right = right && read && world.owner.release_views(*read).has_value();
    for (const std::string_view key : keys) right = world.owner.remove(key).has_value() && right;
    world.clock.advance_by(kSecond);
    if (!right) {
      state.SkipWithError("a call of the fakes failed");
      break;
    }
  }
  count(state);
}

constexpr auto kStoreCases = std::to_array<BenchCase>({
    {"store", kCoreCase, values_of_256},
    {"store", kByHandCase, by_hand},
    {"store", "  with checksums (256 B)", values_of<kValueBytes, true>},
    {"store", "  one checksum of 256 B", sum_alone<kValueBytes>},
    {"store", "80 values of 4 KiB put, resumed from and evicted", values_of<k4KiB, false>},
    {"store", "  with checksums (4 KiB)", values_of<k4KiB, true>},
    {"store", "  one checksum of 4 KiB", sum_alone<k4KiB>},
    {"store", "80 values of 64 KiB put, resumed from and evicted", values_of<k64KiB, false>},
    {"store", "  with checksums (64 KiB)", values_of<k64KiB, true>},
    {"store", "  one checksum of 64 KiB", sum_alone<k64KiB>},
});

}  // namespace

std::span<const BenchCase> store_bench_cases() { return kStoreCases; }

}  // namespace holdfast::sim
