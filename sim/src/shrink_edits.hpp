// What a trace can be made smaller by, and the result of each such edit.
#pragma once

#include <optional>
#include <vector>

#include "holdfast/sim/shrink.hpp"

namespace holdfast::sim {

// In their order. Some of them may come to nothing.
std::vector<Edit> edits_of(const Trace& trace, Edit::Pass pass);
// Nothing when the edit does not apply; the result need not be valid, nor smaller.
std::optional<Trace> edited(const Trace& trace, const Edit& edit);

// Calls `visit(number, least)` for each number of the trace that may be made smaller by itself, in a fixed order.
template <class AnyTrace, class Visit>
void each_number(AnyTrace& trace, Visit&& visit) {
  for (auto& geometry : trace.geometries) {
    visit(geometry.n_layers, 1U);
    visit(geometry.frames_per_chunk, 1U);
    visit(geometry.sink_frames, 0U);
    visit(geometry.ring_frames, 1U);
    visit(geometry.frame_tokens, 1U);
    for (auto& bytes : geometry.kv_token_bytes) visit(bytes, 16U);
    visit(geometry.scale_token_bytes, 16U);
    visit(geometry.latent_bytes, 16U);
    visit(geometry.timesteps, 1U);
    visit(geometry.break_even_k, 1U);
  }
  for (auto& step : trace.steps) {
    visit(step.world, 0U);
    visit(step.depth, 0U);
    visit(step.amount, 0U);
  }
  for (auto& fault : trace.faults) {
    visit(fault.nth, 0U);
    visit(fault.arg, 0U);
  }
  for (auto& choice : trace.choices) {
    visit(choice.nth, 0U);
    visit(choice.arg, 0U);
  }
  for (auto& change : trace.switches) visit(change.nth, 0U);
}

}  // namespace holdfast::sim
