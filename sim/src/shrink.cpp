#include "holdfast/sim/shrink.hpp"

#include <algorithm>
#include <utility>

#include "shrink_edits.hpp"

namespace holdfast::sim {
namespace {

std::uint64_t special_settings(const Trace& trace) {
  const Trace plain;
  std::uint64_t special = (trace.in_memory_store ? 1U : 0U) + (trace.batches_in_flight != 0 ? 1U : 0U) +
                          (trace.pump_probes != 0 ? 1U : 0U) + (trace.checksums ? 1U : 0U) +
                          (trace.copy_stream ? 1U : 0U) + (trace.capacity_bytes != 0 ? 1U : 0U) +
                          (trace.lower_mark_bytes != 0 ? 1U : 0U) + (trace.eviction != plain.eviction ? 1U : 0U) +
                          (trace.segment_bytes != plain.segment_bytes ? 1U : 0U) +
                          (trace.grant_bytes != plain.grant_bytes ? 1U : 0U);
  for (const Geometry& geometry : trace.geometries) {
    special += (geometry.full_length ? 0U : 1U) + (geometry.latent_bytes != 0 ? 1U : 0U) +
               (geometry.scale_token_bytes != 0 ? 1U : 0U);
  }
  for (const FaultPoint& fault : trace.faults) special += fault.persistent ? 1 : 0;
  return special;
}

std::uint64_t place_in_table(const FaultPoint& fault) {
  const auto table = legal_faults();
  const auto at = std::ranges::find_if(table, [&](const LegalFault& legal) {
    return legal.call == fault.call && legal.kind == fault.kind && legal.code == fault.code;
  });
  return static_cast<std::uint64_t>(at - table.begin());
}

}  // namespace

std::vector<std::uint64_t> size_of(const Trace& trace) {
  std::uint64_t actions = 0;
  std::uint64_t action_bytes = 0;
  std::uint64_t mistaken = 0;
  for (const Step& step : trace.steps) {
    actions += step.actions.size();
    for (const std::string& action : step.actions) action_bytes += action.size();
    mistaken += step.geometry != step.declared_geometry ? 1 : 0;
  }
  std::uint64_t sizes = 0;
  for (const Geometry& geometry : trace.geometries) sizes += geometry.kv_token_bytes.size();
  // What decides how many numbers follow comes first: only lists of one length are compared to their end.
  std::vector<std::uint64_t> size{trace.steps.size(),
                                  trace.faults.size(),
                                  trace.choices.size(),
                                  trace.switches.size(),
                                  actions,
                                  trace.geometries.size(),
                                  mistaken,
                                  special_settings(trace),
                                  sizes,
                                  action_bytes};
  for (const FaultPoint& fault : trace.faults) size.push_back(place_in_table(fault));
  for (const Choice& choice : trace.choices) size.push_back(static_cast<std::uint64_t>(choice.kind));
  each_number(trace, [&](const auto& number, std::uint64_t) { size.push_back(number); });
  return size;
}

bool is_smaller(const Trace& a, const Trace& b) { return size_of(a) < size_of(b); }

Candidates::Candidates(Trace trace) : trace_(std::move(trace)), size_(size_of(trace_)) { list_from(Edit::Pass{}); }

void Candidates::list_from(Edit::Pass pass) {
  pass_ = pass;
  edits_ = edits_of(trace_, pass);
  next_ = 0;
}

std::optional<Trace> Candidates::next() {
  for (;;) {
    if (next_ == edits_.size()) {
      if (pass_ == Edit::kLastPass) return std::nullopt;
      list_from(static_cast<Edit::Pass>(static_cast<std::uint8_t>(pass_) + 1));
      continue;
    }
    given_by_ = edits_[next_++];
    std::optional<Trace> candidate = edited(trace_, given_by_);
    if (!candidate || size_of(*candidate) >= size_ || !validate_trace(*candidate)) continue;
    given_ = *candidate;
    return candidate;
  }
}

void Candidates::accept() {
  trace_ = given_;
  size_ = size_of(trace_);
  list_from(pass_);
  next_ = static_cast<std::size_t>(std::ranges::lower_bound(edits_, given_by_) - edits_.begin());
}

const Trace* Shrinker::proposal() {
  if (proposal_) return &*proposal_;
  if (finished_) return nullptr;
  proposal_ = walk_.next();
  if (!proposal_ && kept_in_walk_) {
    kept_in_walk_ = false;
    walk_ = Candidates(walk_.trace());
    proposal_ = walk_.next();
  }
  finished_ = !proposal_;
  return proposal_ ? &*proposal_ : nullptr;
}

void Shrinker::decide(bool keep) {
  ++tried_;
  if (keep) {
    ++kept_;
    kept_in_walk_ = true;
    walk_.accept();
  }
  proposal_.reset();
}

Shrunk shrink(const Trace& trace, const std::function<bool(const Trace&)>& still_fails, const ShrinkLimits& limits) {
  const auto now_ns = [&] { return limits.now_ns ? limits.now_ns() : SteadyClock{}.now_ns(); };
  const Nanos begin_ns = now_ns();
  Shrinker shrinker(trace);
  while (const Trace* candidate = shrinker.proposal()) {
    if (now_ns() - begin_ns >= limits.time_budget_ns) break;
    shrinker.decide(still_fails(*candidate));
  }
  return {shrinker.smallest(), shrinker.finished(), shrinker.tried(), shrinker.kept()};
}

}  // namespace holdfast::sim
