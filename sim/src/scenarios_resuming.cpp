// Scenarios of gets: rings of every shape, whole windows, prefixes.
#include "scenario_parts.hpp"

namespace holdfast::sim::scenario {
namespace {

// All chunks written by one session, and resumed by another.
void write_and_resume(TraceBuilder& trace, const Geometry& geometry, std::size_t chunks) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(geometry);
  write_all(trace, g, numbered(chunks));
  resume_then_generate(trace, g, numbered(chunks), 0);
}

// A ring of five frames, one of them sink, with chunks of two: a window is two chunks.
constexpr std::uint32_t kWindowRing = 5;
constexpr std::size_t kWindow = 2;

// So many chunks are there, and one more is written on the ring that they were resumed into.
void resume_chunks(TraceBuilder& trace, std::size_t chunks) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(kWindowRing, 1));
  write_all(trace, g, numbered(chunks));
  resume_then_generate(trace, g, numbered(chunks + 1), 1);
}

}  // namespace

void full_hit(TraceBuilder& trace) { write_and_resume(trace, full_length(2), 2); }

void two_of_three(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(full_length(3));
  write_all(trace, g, numbered(2));
  resume_then_generate(trace, g, numbered(3), 1);
}

void fork(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(rolling(kWindowRing, 1));
  write_all(trace, g, {"0", "1", "2"});
  resume_then_generate(trace, g, {"0", "1", "\"2\""}, 1);
}

void full_length_ring(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(full_length(2));
  write_all(trace, g, numbered(1));
  resume_then_generate(trace, g, numbered(2), 1);
  resume_then_generate(trace, g, numbered(2), 0);
}

void ring_exactly_full(TraceBuilder& trace) { write_and_resume(trace, rolling(4, 0), 2); }
void rolled(TraceBuilder& trace) { write_and_resume(trace, rolling(kWindowRing, 1), 3); }
void deep_rolled(TraceBuilder& trace) { write_and_resume(trace, rolling(kWindowRing, 1), 6); }
void wide_sink(TraceBuilder& trace) { write_and_resume(trace, rolling(5, 3), 4); }

void window_minus_one(TraceBuilder& trace) { resume_chunks(trace, kWindow - 1); }
void window_exact(TraceBuilder& trace) { resume_chunks(trace, kWindow); }
void window_plus_one(TraceBuilder& trace) { resume_chunks(trace, kWindow + 1); }

void large_values(TraceBuilder& trace) {
  // Two grants for the values, one for the latents.
  trace.trace().segment_bytes = 3 * trace.trace().grant_bytes;
  Geometry geometry = full_length(2);
  geometry.n_layers = 1;
  geometry.frames_per_chunk = 1;
  geometry.frame_tokens = 1;
  geometry.ring_frames = 2;
  geometry.kv_token_bytes = {kLargeBytes};
  const std::uint32_t g = trace.geometry(geometry);
  const Id session = trace.open({.world = 1, .geometry = g, .actions = numbered(2)});
  trace.generate(session);
  trace.pass_time(kSecond);
  trace.generate(session);
  resume_then_generate(trace, g, numbered(2), 0);
}

void not_yet_routed(TraceBuilder& trace) {
  one_piece(trace);
  const std::uint32_t g = trace.geometry(full_length(2));
  const Id session = trace.open({.world = 1, .geometry = g, .actions = numbered(2)});
  trace.generate(session);
  route_values_late(trace, trace.generate(session));
  trace.pass_time(kSecond);
  resume_then_generate(trace, g, numbered(2), 0);
  trace.evict(session, 1);
  resume_then_generate(trace, g, numbered(2), 1);
}

void break_even(TraceBuilder& trace) {
  one_piece(trace);
  Geometry geometry = full_length(3);
  geometry.break_even_k = 2;
  const std::uint32_t g = trace.geometry(geometry);
  write_all(trace, g, numbered(1));
  resume_then_generate(trace, g, numbered(2), 2);
  resume_then_generate(trace, g, numbered(2), 0);
}

void mistaken_layout(TraceBuilder& trace) {
  one_piece(trace);
  const Geometry geometry = full_length(1);
  Geometry mistaken = geometry;
  for (std::uint32_t& bytes : mistaken.kv_token_bytes) bytes += 16;
  const std::uint32_t g = trace.geometry(geometry);
  const std::uint32_t other = trace.geometry(mistaken);
  write_all(trace, g, numbered(1));
  const Id session = trace.open_mistaken({.world = 1, .geometry = other, .actions = numbered(1)}, g);
  trace.resume(session);
}

}  // namespace holdfast::sim::scenario
