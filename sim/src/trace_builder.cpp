#include "holdfast/sim/trace_builder.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

std::uint32_t TraceBuilder::geometry(Geometry geometry) {
  trace_.geometries.push_back(std::move(geometry));
  return static_cast<std::uint32_t>(trace_.geometries.size() - 1);
}

TraceBuilder::Id TraceBuilder::open(Session session) {
  const std::uint32_t geometry = session.geometry;
  return open_mistaken(std::move(session), geometry);
}

TraceBuilder::Id TraceBuilder::open_mistaken(Session session, std::uint32_t declared_geometry) {
  const Id id = add(StepKind::open);
  Step& step = trace_.steps.back();
  step.world = session.world;
  step.geometry = session.geometry;
  step.declared_geometry = declared_geometry;
  step.actions = std::move(session.actions);
  return id;
}

void TraceBuilder::together() {
  for (Step& step : trace_.steps) step.join = true;
  join_ = true;
}

bool TraceBuilder::fault(const FaultPoint& fault) {
  const bool taken = std::ranges::any_of(trace_.faults, [&](const FaultPoint& other) {
    return other.step == fault.step && other.call == fault.call && other.nth == fault.nth &&
           slot_of(other) == slot_of(fault);
  });
  if (!taken) trace_.faults.push_back(fault);
  return !taken;
}

bool TraceBuilder::choice(const Choice& choice) {
  const bool taken = std::ranges::any_of(trace_.choices, [&](const Choice& other) {
    return other.step == choice.step && other.call == choice.call && other.nth == choice.nth &&
           slot_of(other) == slot_of(choice);
  });
  if (!taken) trace_.choices.push_back(choice);
  return !taken;
}

TraceBuilder::Id TraceBuilder::insert(std::size_t place, Step step) {
  step.id = next_id_++;
  const Id id = step.id;
  trace_.steps.insert(trace_.steps.begin() + static_cast<std::ptrdiff_t>(place), std::move(step));
  return id;
}

TraceBuilder::Id TraceBuilder::add(StepKind kind, Id of, std::uint32_t depth, std::uint64_t amount) {
  Step& step = trace_.steps.emplace_back();
  step.id = next_id_++;
  step.kind = kind;
  step.of = of;
  step.depth = depth;
  step.amount = amount;
  step.join = std::exchange(join_, false);
  return step.id;
}

}  // namespace holdfast::sim
