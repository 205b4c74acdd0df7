// Builds a trace step by step: ids count from 1, and each call gives the id of the step it added.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

class TraceBuilder {
 public:
  using Id = std::uint32_t;

  struct Session {
    std::uint32_t world = 0;
    std::uint32_t geometry = 0;
    std::vector<std::string> actions;
  };

  explicit TraceBuilder(std::string name) { trace_.name = std::move(name); }

  // Gives the geometry's index.
  std::uint32_t geometry(Geometry geometry);
  Id open(Session session);
  // A session whose engine has `session.geometry` in a namespace that was made for `declared_geometry`.
  Id open_mistaken(Session session, std::uint32_t declared_geometry);
  Id close(Id session) { return add(StepKind::close, session); }
  Id generate(Id session) { return add(StepKind::generate, session); }
  Id resume(Id session) { return add(StepKind::resume, session); }
  Id hold(Id session) { return add(StepKind::hold, session); }
  Id unhold(Id hold) { return add(StepKind::unhold, hold); }
  Id evict(Id session, std::uint32_t depth) { return add(StepKind::evict, session, depth); }
  Id make_room(std::uint64_t bytes) { return add(StepKind::make_room, 0, 0, bytes); }
  // Cancelled when it asks for the `cancelled_at`th time whether to go on: once before all, then before each part that
  // is touched, after the last one, and before each piece of both mappings. 0: goes on to its end.
  Id warm_up(std::uint64_t cancelled_at = 0) { return add(StepKind::warm_up, 0, 0, cancelled_at); }
  Id pump() { return add(StepKind::pump); }
  Id snapshot() { return add(StepKind::snapshot); }
  Id restart() { return add(StepKind::restart); }
  Id store_evict_blob(Id session, std::uint32_t depth) { return add(StepKind::store_evict, session, depth, 0); }
  Id damage_blob(Id session, std::uint32_t depth) { return add(StepKind::store_evict, session, depth, kDamageBlob); }
  Id damage_latent(Id session, std::uint32_t depth) {
    return add(StepKind::store_evict, session, depth, kDamageLatent);
  }
  Id store_evict_latent(Id session, std::uint32_t depth) { return add(StepKind::store_evict, session, depth, 1); }
  Id owner_restart() { return add(StepKind::owner_restart); }
  Id pass_time(Nanos ns) { return add(StepKind::pass_time, 0, 0, static_cast<std::uint64_t>(ns)); }

  // Where steps run side by side: those so far do not, and the next ones begin when they have ended.
  void together();

  // Before the step at `place`; gives it its id.
  Id insert(std::size_t place, Step step);

  // False, and nothing added, when another one is at the same place.
  bool fault(const FaultPoint& fault);
  bool choice(const Choice& choice);

  [[nodiscard]] Trace& trace() { return trace_; }
  Trace finish() { return std::move(trace_); }

 private:
  Id add(StepKind kind, Id of = 0, std::uint32_t depth = 0, std::uint64_t amount = 0);

  Trace trace_;
  Id next_id_ = 1;
  bool join_ = false;
};

}  // namespace holdfast::sim
