// Scenarios of copies that overlap: several batches of one put or one read in flight, on the engine's own stream or
// beside its work.
#include "scenario_parts.hpp"

namespace holdfast::sim::scenario {
namespace {

constexpr std::int32_t kLaunch = code_of(CudaErrc::launch_failure);

std::uint32_t overlapping(TraceBuilder& trace) {
  one_piece(trace);
  trace.trace().batches_in_flight = 2;
  return trace.geometry(rolling(5, 1));
}

// A window of two chunks is resumed, and one more is written.
void write_and_resume(TraceBuilder& trace, std::uint32_t geometry) {
  write_all(trace, geometry, numbered(2));
  trace.pass_time(kSettled);
  resume_then_generate(trace, geometry, numbered(3), 1);
}

}  // namespace

void overlapped(TraceBuilder& trace) { write_and_resume(trace, overlapping(trace)); }

void overlapped_beside(TraceBuilder& trace) {
  trace.trace().copy_stream = true;
  overlapped(trace);
}

void synchronous_beside(TraceBuilder& trace) {
  one_piece(trace);
  trace.trace().copy_stream = true;
  write_and_resume(trace, trace.geometry(rolling(5, 1)));
}

void memory_tier_beside(TraceBuilder& trace) {
  trace.trace().in_memory_store = true;
  trace.trace().copy_stream = true;
  write_and_resume(trace, trace.geometry(rolling(4, 0)));
}

void overlapped_failures(TraceBuilder& trace) {
  const std::uint32_t g = overlapping(trace);
  const Id session = trace.open({.world = 1, .geometry = g, .actions = numbered(4)});
  trace.fault({trace.generate(session), Call::event_create, kSecondGroup, FaultKind::before,
               code_of(CudaErrc::memory_allocation), 0, false});
  trace.fault({trace.generate(session), Call::event_record, kFirstGroup, FaultKind::before, kLaunch, 0, false});
  trace.fault({trace.generate(session), Call::event_synchronize, kSecondGroup, FaultKind::before, kLaunch, 0, false});
  trace.fault({trace.generate(session), Call::local_fast_put_start, kSecondGroup, FaultKind::before,
               code_of(FluxonErrc::key_being_written), 0, false});
  trace.pass_time(kSettled);
  trace.pump();
  write_all(trace, g, numbered(4));
}

void overlapped_stuck(TraceBuilder& trace) {
  const std::uint32_t g = overlapping(trace);
  const Id stuck = trace.generate(trace.open({.world = 1, .geometry = g, .actions = numbered(1)}));
  // The second group is never known to have landed: its event fails, and so does the stream behind it.
  trace.fault({stuck, Call::event_synchronize, kSecondGroup, FaultKind::before, kLaunch, 0, false});
  trace.fault({stuck, Call::stream_synchronize, 0, FaultKind::before, kLaunch, 0, true});
  trace.pump();
  write_all(trace, g, numbered(1));
  trace.pass_time(kSettled);
  trace.pump();
  write_all(trace, g, numbered(1));
}

void vanished_part(TraceBuilder& trace) {
  const std::uint32_t g = overlapping(trace);
  write_all(trace, g, numbered(2));
  trace.pass_time(kSettled);
  const Id session = trace.open({.world = 1, .geometry = g, .actions = numbered(2)});
  // The latents' transfer is the first, that of the window's second chunk the third: its ring is touched by then.
  trace.fault(
      {trace.resume(session), Call::get_transfer, 2, FaultKind::part, code_of(FluxonErrc::key_not_found), 0, false});
  trace.generate(session);
}

}  // namespace holdfast::sim::scenario
