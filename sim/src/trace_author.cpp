#include "trace_author.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/fluxon_runtime.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t kPathsMax = 12;
constexpr std::uint64_t kSegmentBytes = 512ULL << 10;
constexpr std::uint64_t kLargeSegmentBytes = 16ULL << 20;  // of large values, a few paths of some chunks

struct RingDraw {
  Geometry geometry;
  std::uint32_t chunks = 0;  // of a path
};

RingDraw draw_ring(Rng& rng, std::span<const std::uint32_t> shapes) {
  const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(rng.below(bound)); };
  RingDraw draw;
  Geometry& g = draw.geometry;
  const auto shape = static_cast<RingShape>(rng.weighted(shapes));
  const bool at_least_two = shape == RingShape::just_rolled || shape == RingShape::not_dividing;
  g.frames_per_chunk = at_least_two ? 2 + below(2) : 1 + below(3);
  g.full_length = shape == RingShape::full_length;
  draw.chunks = 3 + below(3);
  const std::uint32_t c = g.frames_per_chunk;
  switch (shape) {
    case RingShape::full_length:
      g.ring_frames = draw.chunks * c;
      g.sink_frames = below(2);
      break;
    case RingShape::exactly_full:
      g.ring_frames = draw.chunks * c;
      g.sink_frames = below(c + 1);
      break;
    case RingShape::just_rolled:
      g.ring_frames = draw.chunks * c - 1;
      g.sink_frames = below(c + 1);
      break;
    case RingShape::deep_rolled:
      g.frames_per_chunk = 1 + below(2);
      g.sink_frames = below(2);
      g.ring_frames = g.sink_frames + g.frames_per_chunk + below(2);
      draw.chunks = std::clamp<std::uint32_t>(2 * g.ring_frames / g.frames_per_chunk + 1, 4, 7);
      break;
    case RingShape::wide_sink:
      g.sink_frames = c + 1 + below(c);
      g.ring_frames = g.sink_frames + c + below(c);
      draw.chunks = 4 + below(2);
      break;
    case RingShape::not_dividing:
      g.sink_frames = below(3);
      g.ring_frames = g.sink_frames + c + 1;
      draw.chunks = 4 + below(2);
      break;
  }
  return draw;
}

}  // namespace

TraceAuthor::TraceAuthor(std::uint64_t seed, const Profile& profile)
    : profile_(profile),
      rng_(seed),
      leaning_(draw_leaning(profile, rng_.split())),
      trace_(generated_name(seed, profile)) {
  trace_.trace().seed = seed;
}

Geometry TraceAuthor::twin_of(Geometry twin) {
  switch (rng_.below(4)) {
    case 0:  // frames of as many bytes, cut otherwise
      for (std::uint32_t& bytes : twin.kv_token_bytes) bytes = twin.frame_tokens == 1 ? bytes / 2 : bytes * 2;
      twin.frame_tokens = twin.frame_tokens == 1 ? 2 : 1;
      break;
    case 1:
      std::ranges::rotate(twin.kv_token_bytes, twin.kv_token_bytes.begin() + 1);
      break;
    case 2:
      twin.latent_bytes = twin.latent_bytes == 0 ? 64 : 0;
      break;
    default:
      ++twin.n_layers;
      break;
  }
  return twin;
}

void TraceAuthor::begin() {
  Trace& trace = trace_.trace();
  trace.in_memory_store = chance(profile_.in_memory_store);
  // Drawn apart: the same seed does the same in either mode.
  Rng modes(~trace.seed);
  if (modes.ratio(1, 2)) trace.batches_in_flight = static_cast<std::uint32_t>(modes.between(1, 3));
  trace.copy_stream = modes.ratio(1, 3);
  if (modes.ratio(1, 3)) trace.pump_probes = static_cast<std::uint32_t>(modes.between(1, 8));
  const bool large = chance(profile_.large_values);
  const std::uint64_t pieces = 1 + rng_.below(4);
  const bool tight = chance(profile_.tight_segment);
  const std::uint64_t bytes = large ? kLargeSegmentBytes : kSegmentBytes;
  trace.grant_bytes = (tight ? bytes / 8 : bytes) / pieces / kSlotAlignment * kSlotAlignment;
  trace.segment_bytes = trace.grant_bytes * pieces;
  if (one_in(3)) trace.capacity_bytes = trace.segment_bytes * rng_.between(2, 6) / 8 / kSlotAlignment * kSlotAlignment;

  if (trace.capacity_bytes != 0) {
    if (modes.ratio(1, 2)) trace.lower_mark_bytes = trace.capacity_bytes * modes.between(4, 7) / 8;
    if (modes.ratio(1, 2)) trace.eviction = Eviction::frequency;
  }

  const std::uint32_t geometries = one_in(4) ? 2 : 1;
  for (std::uint32_t i = 0; i < geometries; ++i) {
    auto [geometry, chunks] = draw_ring(rng_, leaning_.shapes);
    draw_sizes(geometry, large);
    Path path;
    path.world = 1;
    if (i > 0 && one_in(2)) {
      // The same world and actions in a layout that differs in one thing: nothing is shared.
      path.actions = paths_.front().actions;
      chunks = path.chunks();
      geometry = twin_of(geometry_of(paths_.front()));
    }
    path.geometry = trace_.geometry(geometry);
    for (std::uint32_t chunk = path.chunks(); chunk < chunks; ++chunk) path.actions.push_back(fresh_action());
    paths_.push_back(path);
    if (one_in(4)) {
      path.world = 2;
      paths_.push_back(path);
    }
  }
  const bool trouble = profile_.faults && chance(profile_.registration_trouble);
  if (trouble || one_in(4)) {
    const std::uint64_t asks = 3 * pieces + 2;
    const Id step = trace_.warm_up(modes.ratio(1, 4) ? modes.between(1, asks) : 0);
    if (trouble) registration_trouble(step);
  }
  trace.checksums = modes.ratio(1, 3) && !trace.in_memory_store;
  if (!large && modes.ratio(1, 4)) {
    const auto draw_scales = [&] { return static_cast<std::uint32_t>(modes.between(1, 8) * 16); };
    const std::uint32_t scales = draw_scales();
    for (Geometry& geometry : trace.geometries) geometry.scale_token_bytes = scales;
    // Layouts that differ in their scales, perhaps in nothing else, share nothing either.
    if (trace.geometries.size() > 1 && modes.ratio(1, 3)) {
      trace.geometries.back().scale_token_bytes = modes.ratio(1, 2) ? 0 : draw_scales();
    }
  }
  continue_on(paths_.front());
}

void TraceAuthor::draw_sizes(Geometry& geometry, bool large) {
  geometry.n_layers = static_cast<std::uint32_t>(1 + rng_.weighted(leaning_.layers));
  geometry.frame_tokens = static_cast<std::uint32_t>(1 + rng_.weighted(leaning_.frame_tokens));
  const std::uint64_t sizes = 1 + rng_.weighted(leaning_.value_sizes);
  geometry.kv_token_bytes.clear();
  for (std::uint64_t size = 0; size < sizes; ++size)
    geometry.kv_token_bytes.push_back(static_cast<std::uint32_t>(rng_.between(2, 20) * 16));
  if (one_in(6)) {  // one size takes two slots each: freed slots of the others are none of its
    const std::uint64_t tokens = std::uint64_t{geometry.frames_per_chunk} * geometry.frame_tokens;
    geometry.kv_token_bytes.back() = static_cast<std::uint32_t>(kSlotAlignment / tokens + 16);
  }
  if (!one_in(4)) geometry.latent_bytes = static_cast<std::uint32_t>(rng_.between(4, 40) * 16);
  geometry.timesteps = static_cast<std::uint32_t>(1 + rng_.below(4));
  if (one_in(6)) geometry.break_even_k = 2;
  if (!large) return;
  geometry.n_layers = 1;
  geometry.kv_token_bytes.front() =
      static_cast<std::uint32_t>(kLargeValueBytes / geometry.frames_per_chunk / geometry.frame_tokens + kSlotAlignment);
}

void TraceAuthor::play_all() {
  const std::uint64_t episodes = rng_.between(profile_.episodes_min, profile_.episodes_max);
  for (std::uint64_t i = 0; i < episodes; ++i) play(static_cast<Episode>(rng_.weighted(leaning_.episodes)));
}

Trace TraceAuthor::finish() {
  add_steps();
  leave_out_steps();
  if (profile_.faults) scatter_faults(trace_, leaning_.sites, leaning_.calls, leaning_.kinds, rng_.split());
  const auto by_place = [](const auto& a, const auto& b) {
    return std::tie(a.step, a.call, a.nth, a.kind) < std::tie(b.step, b.call, b.nth, b.kind);
  };
  Trace trace = trace_.finish();
  std::ranges::sort(trace.faults, by_place);
  std::ranges::sort(trace.choices, by_place);
  return trace;
}

TraceAuthor::Path& TraceAuthor::known_path() { return paths_[rng_.below(paths_.size())]; }

std::string TraceAuthor::fresh_action() {
  const std::uint32_t number = actions_made_ / 2;
  const std::uint32_t form = actions_made_++;
  if (form % 9 == 7) return fmt::format("{{\"move\":\"left\",\"speed\":{}}}", number);
  return form % 2 == 0 ? fmt::format("{}", number) : fmt::format("\"{}\"", number);
}

TraceAuthor::Path TraceAuthor::fork_of(const Path& known, std::uint32_t keep, std::uint32_t fresh) {
  Path path = known;
  path.actions.resize(keep);
  path.written = std::min(keep, known.written);
  for (std::uint32_t i = 0; i < fresh; ++i) path.actions.push_back(fresh_action());
  return path;
}

TraceAuthor::Path TraceAuthor::fresh_path(std::uint32_t* keep) {
  const Path& known = known_path();
  *keep = static_cast<std::uint32_t>(rng_.below(std::min(known.written + 1, known.chunks())));
  const std::uint32_t fresh = known.chunks() - *keep;
  return fork_of(known, *keep, std::min(fresh, static_cast<std::uint32_t>(1 + rng_.below(2))));
}

TraceAuthor::Id TraceAuthor::open(const Path& path) {
  if (last_session_ != 0 && one_in(2)) trace_.close(last_session_);
  last_session_ = trace_.open({.world = path.world, .geometry = path.geometry, .actions = path.actions});
  return last_session_;
}

TraceAuthor::Id TraceAuthor::generate(Id session) {
  const Id step = trace_.generate(session);
  choices(step, true);
  return step;
}

TraceAuthor::Id TraceAuthor::resume(Id session) {
  const Id step = trace_.resume(session);
  choices(step, false);
  return step;
}

void TraceAuthor::write_on(Id session, const Path& path, std::uint32_t from) {
  for (std::uint32_t chunk = from; chunk < path.chunks(); ++chunk) generate(session);
  remember(path, path.chunks());
}

void TraceAuthor::remember(const Path& path, std::uint32_t written) {
  const auto same = std::ranges::find_if(paths_, [&](const Path& known) {
    return known.world == path.world && known.geometry == path.geometry && known.actions == path.actions;
  });
  if (same != paths_.end()) {
    same->written = std::max(same->written, written);
    return;
  }
  if (paths_.size() >= kPathsMax) paths_.erase(paths_.begin() + static_cast<std::ptrdiff_t>(rng_.below(kPathsMax)));
  paths_.push_back(path);
  paths_.back().written = written;
}

TraceAuthor::Id TraceAuthor::continue_on(const Path& path) {
  const Id session = open(path);
  if (path.written > 0 || one_in(4)) resume(session);
  // A chunk too many is skipped; it finds out whether all that was written is still there.
  const std::uint32_t from = path.written > 0 && one_in(3) ? path.written - 1 : path.written;
  write_on(session, path, from);
  return session;
}

void TraceAuthor::forget_sessions() { last_session_ = 0; }

std::uint32_t TraceAuthor::kv_groups(const Path& path) {
  const Geometry& geometry = geometry_of(path);
  std::set<std::uint32_t> sizes;
  for (std::size_t value = 0; value < geometry.tensors(); ++value)
    sizes.insert(static_cast<std::uint32_t>(geometry.token_bytes(value)));
  return static_cast<std::uint32_t>(sizes.size());
}

std::uint32_t TraceAuthor::registration_pieces() {
  return static_cast<std::uint32_t>(trace_.trace().segment_bytes / trace_.trace().grant_bytes);
}

Call TraceAuthor::wait_call() {
  const Trace& trace = trace_.trace();
  const bool by_event = trace.batches_in_flight != 0 && !trace.in_memory_store;
  return by_event ? Call::event_synchronize : Call::stream_synchronize;
}

void TraceAuthor::fault(Id step, Call call, std::uint32_t nth, FaultKind kind, std::int32_t code, std::uint64_t arg,
                        bool persistent) {
  if (!profile_.faults) return;
  trace_.fault({step, call, nth, kind, code, arg, persistent});
}

void TraceAuthor::any_fault(Id step, Call call, std::uint32_t nth) {
  if (!profile_.faults) return;
  // A dead context or client ends most of what follows, and an empty store starts it anew: they are for few.
  const bool drastic = one_in(12);
  std::vector<const LegalFault*> candidates;
  for (const LegalFault& legal : legal_faults()) {
    const bool is_drastic =
        legal.kind == FaultKind::gone || legal.code == static_cast<std::int32_t>(CudaErrc::illegal_address);
    if (legal.call == call && legal.kind != FaultKind::death && is_drastic == drastic) candidates.push_back(&legal);
  }
  if (candidates.empty()) return;
  const LegalFault& legal = *candidates[rng_.below(candidates.size())];
  fault(step, call, nth, legal.kind, legal.code, draw_fault_arg(legal, rng_));
}

void TraceAuthor::choices(Id step, bool commits) {
  if (!chance(profile_.choice)) return;
  std::array<std::uint32_t, kChoiceKindCount> weights = leaning_.choices;
  const auto leave_out = [&](ChoiceKind kind) { weights[static_cast<std::size_t>(kind)] = 0; };
  if (commits) {
    leave_out(ChoiceKind::needs_transfer);
  } else {
    leave_out(ChoiceKind::route_after);
    leave_out(ChoiceKind::answer_after);
  }
  if (std::ranges::max(weights) == 0) return;
  Choice choice;
  choice.step = step;
  choice.nth = static_cast<std::uint32_t>(rng_.below(2));
  choice.kind = static_cast<ChoiceKind>(rng_.weighted(weights));
  choice.call = call_of(choice.kind);
  choice.arg = draw_choice_arg(choice.kind, rng_);
  trace_.choice(choice);
}

// Of episodes of several steps, some lack one: what they build on is then not there.
void TraceAuthor::leave_out_steps() {
  if (leaning_.steps_off == 0) return;
  Trace& trace = trace_.trace();
  std::set<Id> gone;
  std::erase_if(trace.steps, [&](const Step& step) {
    const bool off = (leaning_.steps_off >> static_cast<unsigned>(step.kind) & 1U) != 0;
    if (off) gone.insert(step.id);
    return off;
  });
  std::erase_if(trace.faults, [&](const FaultPoint& point) { return gone.contains(point.step); });
  std::erase_if(trace.choices, [&](const Choice& choice) { return gone.contains(choice.step); });
  std::erase_if(trace.switches,
                [&](const StepSwitch& change) { return gone.contains(change.step) || gone.contains(change.to); });
}

void TraceAuthor::add_steps() {
  if (leaning_.added_one_in == 0) return;
  const std::size_t steps = trace_.trace().steps.size();
  for (std::size_t i = 0; i < steps / leaning_.added_one_in; ++i) {
    const auto kind = static_cast<StepKind>(rng_.weighted(leaning_.added_steps));
    const bool environment = kind == StepKind::store_evict || kind == StepKind::owner_restart;
    if (environment && !profile_.faults) continue;
    // Behind the first, which opens a session or is followed by one that does.
    const std::size_t place = 1 + rng_.below(trace_.trace().steps.size());
    if (auto step = draw_step(trace_.trace(), place, kind, rng_)) trace_.insert(place, std::move(*step));
  }
}

}  // namespace holdfast::sim
