#include "bench_cases.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/core/trie.hpp"
#include "holdfast/sim/event_log.hpp"
#include "holdfast/sim/executor.hpp"
#include "holdfast/sim/generator.hpp"
#include "holdfast/sim/shrink.hpp"
#include "holdfast/sim/trace_builder.hpp"
#include "holdfast/sim/workload.hpp"

namespace holdfast::sim {
namespace {

using benchmark::State;

// ---- Simulation.

// Sessions that resume on what others wrote, write the rest and end: 8 values and a latent a chunk.
Trace sessions(std::uint32_t value_bytes) {
  constexpr std::uint32_t kSessions = 100, kChunks = 4, kForks = 5;
  TraceBuilder trace("bench");
  trace.trace().segment_bytes = 64 << 20;
  Geometry geometry;
  geometry.n_layers = 4;
  geometry.ring_frames = kChunks;
  geometry.kv_token_bytes = {value_bytes};
  geometry.latent_bytes = value_bytes;
  const std::uint32_t g = trace.geometry(geometry);
  for (std::uint32_t i = 0; i < kSessions; ++i) {
    const std::string fork = std::to_string(i / kForks);
    const auto session = trace.open({1, g, {"0", std::to_string(i % kForks), fork, fork}});
    trace.resume(session);
    for (std::uint32_t chunk = 0; chunk < kChunks; ++chunk) trace.generate(session);
    trace.close(session);
  }
  return trace.finish();
}

void simulate(State& state, std::uint32_t value_bytes) {
  const Trace trace = sessions(value_bytes);
  Executor executor(make_production_system);
  std::uint64_t calls = 0;
  for ([[maybe_unused]] auto _ : state) {
    const RunResult run = executor.run(trace);
    if (!run.violations.empty()) state.SkipWithError("a promise was broken");
    calls += run.runtime_calls;
  }
  state.counters[kCallRate] = benchmark::Counter(static_cast<double>(calls), benchmark::Counter::kIsRate);
}

void simulate_256(State& state) { simulate(state, 256); }
void simulate_4096(State& state) { simulate(state, 4096); }

void simulate_seeds(State& state) {
  const Profile& profile = *profile_named("default");
  Executor executor(make_production_system);
  std::uint64_t calls = 0, events = 0, seed = 0;
  for ([[maybe_unused]] auto _ : state) {
    const RunResult run = executor.run(generate(++seed, profile));
    calls += run.runtime_calls;
    events += run.log_events;
  }
  state.counters[kCallRate] = benchmark::Counter(static_cast<double>(calls), benchmark::Counter::kIsRate);
  state.counters[kSeedRate] = benchmark::Counter(static_cast<double>(seed), benchmark::Counter::kIsRate);
  state.counters[kEvents] = benchmark::Counter(static_cast<double>(events), benchmark::Counter::kAvgIterations);
}

void make_traces(State& state) {
  const Profile& profile = *profile_named("default");
  std::uint64_t seed = 0;
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(generate(++seed, profile));
  state.counters[kSeedRate] = benchmark::Counter(static_cast<double>(seed), benchmark::Counter::kIsRate);
}

void log_events(State& state) {
  EventLog log;
  std::uint64_t number = 0;
  for ([[maybe_unused]] auto _ : state) {
    ++number;
    log.event(static_cast<Nanos>(number), "get_transfer", std::array{number, number + 1, number + 2, number + 3},
              [] { return std::string(); });
  }
  benchmark::DoNotOptimize(log.hash());
}

// ---- Growth: what a step costs in a forest of so many nodes.

void step_in_forest(State& state, std::uint64_t nodes) {
  constexpr std::uint64_t kDepth = 10;
  Forest forest(ForestOptions{});
  Namespace& world = forest.open_namespace({NodeKey{}, 0});
  const auto ready = [&](Node& node) {
    forest.set_blob_ready(node, {});
    forest.set_skeleton_ready(node, {});
  };
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i * kDepth < nodes; ++i) names.push_back(std::to_string(i));
  for (const std::string& name : names) {
    Node* node = world.root();
    for (std::uint64_t depth = 0; depth < kDepth; ++depth) {
      node = forest.get_or_create(*node, name);
      ready(*node);
    }
  }
  // A session finds a path, adds a chunk behind it, and the least recent blob makes room.
  std::uint64_t step = 0;
  const std::uint64_t visits = forest.node_visits();
  for ([[maybe_unused]] auto _ : state) {
    const std::string& name = names[(step++ * 7919) % names.size()];
    const std::vector<std::string_view> path(kDepth, name);
    Node* deepest = forest.lookup(world, path);
    ready(*forest.get_or_create(*deepest, name));
    if (Node* victim = forest.first_evictable()) forest.forget_blob(*victim);
  }
  state.counters[kVisits] =
      benchmark::Counter(static_cast<double>(forest.node_visits() - visits), benchmark::Counter::kAvgIterations);
}

// ---- Shrinking and workloads.

// What is left of a long trace in which a resume comes through with a shorter prefix than it asked for.
void shrink_long_traces(State& state) {
  constexpr std::size_t kStepsMin = 90;
  const Profile& profile = *profile_named("default");
  Executor executor(make_production_system);
  const auto comes_short = [&](const Trace& trace) {
    return executor.run(trace).marks.counts[static_cast<std::size_t>(Mark::shorter_prefix)] > 0;
  };
  std::uint64_t seed = 0, steps = 0;
  for ([[maybe_unused]] auto _ : state) {
    state.PauseTiming();
    Trace trace = generate(++seed, profile);
    while (trace.steps.size() < kStepsMin || !comes_short(trace)) trace = generate(++seed, profile);
    state.ResumeTiming();
    const Shrunk shrunk = shrink(trace, comes_short);
    if (!shrunk.one_minimal) state.SkipWithError("the time was over before the smallest trace was found");
    steps += shrunk.trace.steps.size();
  }
  state.counters[kSteps] = benchmark::Counter(static_cast<double>(steps), benchmark::Counter::kAvgIterations);
}

// A service's requests: each goes on behind one of the last conversations, or begins one.
void replay_workload(State& state) {
  constexpr std::uint64_t kRequests = 1'000, kOpen = 50, kNewBlocks = 12, kBlocksMax = 48;
  Workload workload;
  std::vector<std::vector<std::uint64_t>> conversations(kOpen);
  std::uint64_t next_block = 0;
  for (std::uint64_t i = 0; i < kRequests; ++i) {
    std::vector<std::uint64_t>& blocks = conversations[i * 31 % kOpen];
    if (blocks.size() + kNewBlocks > kBlocksMax) blocks.clear();
    for (std::uint64_t added = 0; added < kNewBlocks; ++added) blocks.push_back(next_block++);
    workload.requests.push_back({i * 100, blocks.size() * kWorkloadBlockTokens, 1, blocks});
    workload.blocks += blocks.size();
  }
  const Trace trace = workload_trace(workload).value();
  Executor executor(make_production_system);
  for ([[maybe_unused]] auto _ : state) {
    if (!executor.run(trace).violations.empty()) state.SkipWithError("a promise was broken");
  }
  state.counters[kBlockRate] =
      benchmark::Counter(static_cast<double>(workload.blocks), benchmark::Counter::kIsIterationInvariantRate);
}

void step_in_1000(State& state) { step_in_forest(state, 1'000); }
void step_in_1000000(State& state) { step_in_forest(state, 1'000'000); }

constexpr auto kCases = std::to_array<BenchCase>({
    {"sim", "simulation, every check on, 8 values of 256 B a batch", simulate_256},
    {"sim", "simulation, every check on, 8 values of 4 KiB a batch", simulate_4096},
    {"sim", "seeds of the default profile", simulate_seeds},
    {"sim", "  of which making the trace", make_traces},
    {"sim", "  one event of the log", log_events},
    {"growth", "a step in a forest of 1,000 nodes", step_in_1000},
    {"growth", "a step in a forest of 1,000,000 nodes", step_in_1000000},
    {"shrink", "a trace of 90 steps or more, to its smallest", shrink_long_traces},
    {"workload", "1,000 requests with prefixes, every check on", replay_workload},
});

}  // namespace

std::span<const BenchCase> simulation_bench_cases() { return kCases; }

std::vector<BenchCase> bench_cases() {
  std::vector<BenchCase> all;
  for (const std::span<const BenchCase> cases : {simulation_bench_cases(), store_bench_cases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

}  // namespace holdfast::sim
