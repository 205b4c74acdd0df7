#include "holdfast/sim/scenarios.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/sim/strict_json.hpp"
#include "holdfast/sim/trace_builder.hpp"

namespace holdfast::sim {
namespace {

using Actions = std::vector<std::string>;
using Id = TraceBuilder::Id;

// Two layers, K and V of different sizes, skeletons, and a rolling ring with a sink.
Geometry small_rolling() {
  Geometry geometry;
  geometry.n_layers = 2;
  geometry.frames_per_chunk = 2;
  geometry.frame_tokens = 2;
  geometry.ring_frames = 5;
  geometry.sink_frames = 1;
  geometry.full_length = false;
  geometry.kv_token_bytes = {96, 160};
  geometry.latent_bytes = 192;
  geometry.timesteps = 3;
  return geometry;
}

Geometry small_full_length(std::uint32_t chunks) {
  Geometry geometry = small_rolling();
  geometry.full_length = true;
  geometry.sink_frames = 0;
  geometry.ring_frames = chunks * geometry.frames_per_chunk;
  return geometry;
}

Id write_all(TraceBuilder& trace, TraceBuilder::Session session) {
  const std::size_t chunks = session.actions.size();
  const Id id = trace.open(std::move(session));
  for (std::size_t i = 0; i < chunks; ++i) trace.generate(id);
  return id;
}

Id resume_then_generate(TraceBuilder& trace, TraceBuilder::Session session, std::size_t chunks) {
  const Id id = trace.open(std::move(session));
  trace.resume(id);
  for (std::size_t i = 0; i < chunks; ++i) trace.generate(id);
  return id;
}

// The layers of the real model and its ring: 7 frames, of which 3 are sink. Tokens and heads are scaled down.
void abcd(TraceBuilder& trace) {
  Geometry geometry;
  geometry.n_layers = 40;
  geometry.frames_per_chunk = 3;
  geometry.frame_tokens = 2;
  geometry.ring_frames = 7;
  geometry.sink_frames = 3;
  geometry.full_length = false;
  geometry.kv_token_bytes = {128};
  geometry.latent_bytes = 384;
  geometry.timesteps = 4;
  trace.trace().segment_bytes = 4ULL << 20;
  trace.trace().grant_bytes = 1ULL << 20;
  const std::uint32_t g = trace.geometry(geometry);
  const Actions shared{"\"forward\"", "\"left\"", "\"forward\""};
  const Actions forked{"\"forward\"", "\"left\"", "\"right\""};
  trace.warm_up();
  write_all(trace, {.world = 1, .geometry = g, .actions = shared});
  resume_then_generate(trace, {.world = 1, .geometry = g, .actions = shared}, 0);
  resume_then_generate(trace, {.world = 1, .geometry = g, .actions = forked}, 1);
  write_all(trace, {.world = 1, .geometry = g, .actions = forked});
}

void cold_write(TraceBuilder& trace) {
  const std::uint32_t g = trace.geometry(small_rolling());
  write_all(trace, {.world = 1, .geometry = g, .actions = {"0"}});
}

void full_hit(TraceBuilder& trace) {
  const std::uint32_t g = trace.geometry(small_full_length(2));
  write_all(trace, {.world = 1, .geometry = g, .actions = {"0", "1"}});
  resume_then_generate(trace, {.world = 1, .geometry = g, .actions = {"0", "1"}}, 0);
}

void fork(TraceBuilder& trace) {
  const std::uint32_t g = trace.geometry(small_rolling());
  write_all(trace, {.world = 1, .geometry = g, .actions = {"0", "1", "2"}});
  resume_then_generate(trace, {.world = 1, .geometry = g, .actions = {"0", "1", "\"2\""}}, 1);
}

void rolled(TraceBuilder& trace) {
  const std::uint32_t g = trace.geometry(small_rolling());
  const Actions actions{"0", "1", "2", "3", "4", "5"};
  write_all(trace, {.world = 1, .geometry = g, .actions = actions});
  resume_then_generate(trace, {.world = 1, .geometry = g, .actions = actions}, 0);
}

void evict_then_resume(TraceBuilder& trace) {
  const std::uint32_t g = trace.geometry(small_rolling());
  const Actions actions{"0", "1", "2", "3"};
  const Id writer = write_all(trace, {.world = 1, .geometry = g, .actions = actions});
  trace.evict(writer, 3);
  trace.store_evict_blob(writer, 2);
  resume_then_generate(trace, {.world = 1, .geometry = g, .actions = actions}, 2);
}

void owner_restart(TraceBuilder& trace) {
  const std::uint32_t g = trace.geometry(small_rolling());
  const Actions actions{"0", "1"};
  write_all(trace, {.world = 1, .geometry = g, .actions = actions});
  trace.owner_restart();
  // Within the settle bound of their commits, keys that are missing count as unsettled.
  trace.pass_time(kSettleBound + kSecond);
  resume_then_generate(trace, {.world = 1, .geometry = g, .actions = actions}, 2);
  resume_then_generate(trace, {.world = 1, .geometry = g, .actions = actions}, 0);
}

void snapshot_restart(TraceBuilder& trace) {
  const std::uint32_t g = trace.geometry(small_rolling());
  write_all(trace, {.world = 1, .geometry = g, .actions = {"0", "1"}});
  trace.snapshot();
  write_all(trace, {.world = 1, .geometry = g, .actions = {"0", "2"}});
  trace.restart();
  resume_then_generate(trace, {.world = 1, .geometry = g, .actions = {"0", "1"}}, 0);
  resume_then_generate(trace, {.world = 1, .geometry = g, .actions = {"0", "2"}}, 1);
}

struct Entry {
  Scenario scenario;
  void (*build)(TraceBuilder&);
};

constexpr std::array<Entry, 8> kEntries{{
    {{"abcd", "A writes, B resumes all of it, C forks after two chunks, D is C cold; 37 output frames each"}, abcd},
    {{"cold_write", "one session writes one chunk"}, cold_write},
    {{"full_hit", "a second session resumes everything, in a full-length ring"}, full_hit},
    {{"fork", "a second session resumes two chunks and then differs by an action's type only"}, fork},
    {{"rolled", "a session resumes into a ring that has rolled several times"}, rolled},
    {{"evict_then_resume", "one blob evicted, one lost by the store, then a resume and new chunks"}, evict_then_resume},
    {{"owner_restart", "the owner restarts between a write and a resume"}, owner_restart},
    {{"snapshot_restart", "the client dies after a snapshot and more writes, and resumes both"}, snapshot_restart},
}};

constexpr auto kScenarios = [] {
  std::array<Scenario, kEntries.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = kEntries[i].scenario;
  return all;
}();

}  // namespace

std::span<const Scenario> scenarios() { return kScenarios; }

Result<Trace> scenario_named(std::string_view name) {
  const auto found = std::ranges::find(kEntries, name, [](const Entry& entry) { return entry.scenario.name; });
  if (found == kEntries.end())
    return make_error(Errc::not_found, "scenario_named", fmt::format("there is no scenario {}", quoted_json(name)));
  TraceBuilder builder{std::string(name)};
  found->build(builder);
  return builder.finish();
}

}  // namespace holdfast::sim
