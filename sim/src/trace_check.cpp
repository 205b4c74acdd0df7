// What makes a trace one that can be run: beyond syntax, its parts must fit together and stay within bounds.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <unordered_map>

#include "holdfast/core/canonical_json.hpp"
#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/sim/lies.hpp"
#include "holdfast/sim/strict_json.hpp"
#include "holdfast/sim/trace.hpp"
#include "lanes.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kLayersMax = kMaxPutGroupKeys / 2;  // one put group holds K and V of every layer
constexpr std::uint64_t kCountMax = 1 << 20;        // frames, tokens, time steps: anything sane, and no overflow
constexpr std::uint64_t kLateMaxNs = 60 * kMinute;  // past every time-out of the contract
// From the core's own limit of a plan's age to the owner's.
constexpr std::uint64_t kPlanAgeMarginNs = 10 * kMinute - kSecond;
constexpr std::uint64_t kPassTimeTotalMaxNs = 1'000'000'000ULL * kSecond;
constexpr std::uint64_t kHugeBytes = 1ULL << 62;

Status refuse(const std::string& where, std::string_view reason) {
  return make_error(Errc::invalid_argument, "validate_trace", fmt::format("{}: {}", where, reason));
}

std::uint64_t times(std::uint64_t a, std::uint64_t b) { return a != 0 && b > kHugeBytes / a ? kHugeBytes : a * b; }

Status check_range(const std::string& where, std::uint64_t value, std::uint64_t min, std::uint64_t max) {
  if (value >= min && value <= max) return {};
  return refuse(where, fmt::format("{} is not in {} to {}", value, min, max));
}

Status check_memory(const Trace& trace, const TraceLimits& limits) {
  const auto check = [](const std::string& where, std::uint64_t bytes, std::uint64_t max) -> Status {
    if (Status status = check_range(where, bytes, kSlotAlignment, max); !status) return status;
    if (bytes % kSlotAlignment != 0)
      return refuse(where, fmt::format("{} is no multiple of {}", bytes, kSlotAlignment));
    return {};
  };
  if (Status status = check("$.segment_bytes", trace.segment_bytes, limits.segment_bytes_max); !status) return status;
  if (Status status = check("$.grant_bytes", trace.grant_bytes, limits.segment_bytes_max); !status) return status;
  if (Status status = check_range("$.capacity_bytes", trace.capacity_bytes, 0, kHugeBytes); !status) return status;
  const std::uint64_t mark_max = trace.capacity_bytes;
  if (Status status = check_range("$.lower_mark_bytes", trace.lower_mark_bytes, 0, mark_max); !status) return status;
  if (Status status = check_range("$.pump_probes", trace.pump_probes, 0, limits.pump_probes_max); !status)
    return status;
  return check_range("$.batches_in_flight", trace.batches_in_flight, 0, limits.batches_in_flight_max);
}

// The longest value must fit into a grant: otherwise every put of the geometry would be refused.
Status check_value_bytes(const Trace& trace, const std::string& where, std::uint64_t bytes) {
  const std::uint64_t room = std::min({trace.segment_bytes, trace.grant_bytes, kMaxValueBytes});
  if (bytes <= room) return {};
  return refuse(where, fmt::format("a value of {} bytes fits into no grant of {}", bytes, room));
}

Status check_geometry(const Trace& trace, std::size_t index, const TraceLimits& limits) {
  const Geometry& g = trace.geometries[index];
  const std::string where = fmt::format("$.geometries[{}]", index);
  const std::tuple<std::string_view, std::uint64_t, std::uint64_t, std::uint64_t> ranges[]{
      {".n_layers", g.n_layers, 1, kLayersMax},          {".frames_per_chunk", g.frames_per_chunk, 1, kCountMax},
      {".frame_tokens", g.frame_tokens, 1, kCountMax},   {".ring_frames", g.ring_frames, 1, kCountMax},
      {".sink_frames", g.sink_frames, 0, g.ring_frames}, {".timesteps", g.timesteps, 1, kCountMax},
      {".break_even_k", g.break_even_k, 1, kCountMax},   {".kv_token_bytes", g.kv_token_bytes.size(), 1, 3},
  };
  for (const auto& [field, value, min, max] : ranges)
    if (Status status = check_range(where + std::string(field), value, min, max); !status) return status;

  if (!g.full_length && g.frames_per_chunk > g.ring_frames - g.sink_frames)
    return refuse(where, fmt::format("a rolling ring of {} frames of which {} are sink cannot take chunks of {}",
                                     g.ring_frames, g.sink_frames, g.frames_per_chunk));
  std::uint64_t ring_bytes = 0;
  for (std::size_t value = 0; value < g.tensors(); ++value) {
    const ChunkShape shape = g.chunk_shape();
    const auto part = static_cast<std::uint32_t>(shape.part_of(value));
    const std::uint64_t token_bytes = g.token_bytes(value);
    const std::string size_where =
        part >= kPlainParts ? where + ".scale_token_bytes"
                            : fmt::format("{}.kv_token_bytes[{}]", where,
                                          (kPlainParts * shape.layer_of(value) + part) % g.kv_token_bytes.size());
    if (Status status = check_range(size_where, token_bytes, 1, kMaxValueBytes); !status) return status;
    const std::uint64_t frame_bytes = times(g.frame_tokens, token_bytes);
    if (Status status = check_value_bytes(trace, size_where, times(g.frames_per_chunk, frame_bytes)); !status)
      return status;
    ring_bytes = std::min(kHugeBytes, ring_bytes + times(g.ring_frames, frame_bytes));
  }
  if (ring_bytes > limits.ring_bytes_max)
    return refuse(where, fmt::format("a ring of {} bytes, more than {}", ring_bytes, limits.ring_bytes_max));
  return check_value_bytes(trace, where + ".latent_bytes", g.latent_bytes);
}

bool is_small_number(const std::string& action) {
  return !action.empty() && action.size() < 18 && (action == "0" || action.front() != '0') &&
         std::ranges::all_of(action, [](char c) { return c >= '0' && c <= '9'; });
}

Status check_action(const std::string& where, const std::string& action) {
  constexpr JsonLimits kActionLimits{.bytes_max = 4096, .depth_max = 16, .values_max = 1024, .fields_max = 64};
  if (const Result<Json> json = parse_strict_json(action, kActionLimits); !json)
    return refuse(where, fmt::format("is no JSON: {}", json.error().detail));
  const Result<std::string> canonical = canonical_json(nlohmann::json::parse(action));
  if (!canonical) return refuse(where, canonical.error().detail);
  if (*canonical != action)
    return refuse(where, fmt::format("is not canonical JSON; that is {}", quoted_json(*canonical)));
  return {};
}

struct KindFields {
  bool of = false;
  bool depth = false;
  bool amount = false;
};

KindFields fields_of(StepKind kind) {
  switch (kind) {
    case StepKind::close:
    case StepKind::generate:
    case StepKind::resume:
    case StepKind::hold:
    case StepKind::unhold:
      return {.of = true};
    case StepKind::evict:
      return {.of = true, .depth = true};
    case StepKind::store_evict:
      return {.of = true, .depth = true, .amount = true};
    case StepKind::make_room:
    case StepKind::warm_up:
    case StepKind::pass_time:
      return {.amount = true};
    case StepKind::open:
    case StepKind::pump:
    case StepKind::snapshot:
    case StepKind::restart:
    case StepKind::owner_restart:
      return {};
  }
  return {};
}

// Checks steps in order, as far as each can be judged by those before it.
class StepChecker {
 public:
  StepChecker(const Trace& trace, const TraceLimits& limits) : trace_(trace), limits_(limits) {
    for (const Step& step : trace.steps) kinds_.emplace(step.id, step.kind);
  }

  Status check(std::size_t index) {
    const Step& step = trace_.steps[index];
    where_ = fmt::format("$.steps[{}]", index);
    if (step.id == 0 || step.id == kReservedId) return refuse(where_ + ".id", fmt::format("{} is reserved", step.id));
    if (!seen_.emplace(step.id, step.kind).second)
      return refuse(where_ + ".id", fmt::format("{} is another step's id", step.id));
    if (Status status = check_fields(step); !status) return status;
    return step.kind == StepKind::open ? check_open(step) : check_of(step);
  }

 private:
  static constexpr std::uint32_t kReservedId = 0xFFFF'FFFF;

  Status check_fields(const Step& step) {
    const KindFields fields = fields_of(step.kind);
    const auto misplaced = [&](std::string_view field) {
      return refuse(fmt::format("{}.{}", where_, field),
                    fmt::format("does not belong to a step {}", name_of(step.kind)));
    };
    if (!fields.of && step.of != 0) return misplaced("of");
    if (!fields.depth && step.depth != 0) return misplaced("depth");
    if (!fields.amount && step.amount != 0) return misplaced("amount");
    if (step.kind != StepKind::open) {
      if (step.world != 0) return misplaced("world");
      if (step.geometry != 0) return misplaced("geometry");
      if (step.declared_geometry != 0) return misplaced("declared_geometry");
      if (!step.actions.empty()) return misplaced("actions");
    }
    if (step.kind == StepKind::store_evict) {
      return check_range(where_ + ".amount", step.amount, 0, trace_.checksums ? kDamageLatent : kEvictLatent);
    }
    if (step.kind == StepKind::make_room) return check_range(where_ + ".amount", step.amount, 0, kHugeBytes);
    if (step.kind != StepKind::pass_time) return {};
    if (step.amount > kPassTimeTotalMaxNs - passed_ns_)
      return refuse(where_ + ".amount", fmt::format("more than {} ns pass in all", kPassTimeTotalMaxNs));
    passed_ns_ += step.amount;
    return {};
  }

  Status check_open(const Step& step) {
    if (++sessions_ > limits_.sessions_max)
      return refuse(where_, fmt::format("more than {} sessions", limits_.sessions_max));
    if (step.actions.empty()) return refuse(where_ + ".actions", "is missing or empty");
    if (step.actions.size() > limits_.actions_max)
      return refuse(where_ + ".actions", fmt::format("more than {} actions", limits_.actions_max));
    for (std::size_t i = 0; i < step.actions.size(); ++i) {
      if (is_small_number(step.actions[i])) continue;
      if (Status status = check_action(fmt::format("{}.actions[{}]", where_, i), step.actions[i]); !status)
        return status;
    }
    if (Status status = check_session_geometry("geometry", step.geometry, step.actions.size()); !status) return status;
    return check_session_geometry("declared_geometry", step.declared_geometry, step.actions.size());
  }

  Status check_session_geometry(std::string_view field, std::uint32_t index, std::size_t chunks) {
    const std::string where = fmt::format("{}.{}", where_, field);
    if (index >= trace_.geometries.size()) return refuse(where, fmt::format("there is no geometry {}", index));
    const Geometry& geometry = trace_.geometries[index];
    const std::uint64_t frames = times(chunks, geometry.frames_per_chunk);
    if (geometry.full_length && frames > geometry.ring_frames)
      return refuse(where, fmt::format("a full-length ring of {} frames is too short for {} frames of the session",
                                       geometry.ring_frames, frames));
    if (times(chunks, geometry.latent_bytes) > limits_.ring_bytes_max)
      return refuse(where, fmt::format("latents of more than {} bytes", limits_.ring_bytes_max));
    return {};
  }

  // A step that was named may have been taken away; one that is there must fit and come first.
  Status check_of(const Step& step) {
    if (!fields_of(step.kind).of) return {};
    const std::string where = where_ + ".of";
    if (step.of == 0) return refuse(where, "is missing");
    const auto named = kinds_.find(step.of);
    if (named == kinds_.end()) return {};
    const StepKind wanted = step.kind == StepKind::unhold ? StepKind::hold : StepKind::open;
    if (named->second != wanted)
      return refuse(where,
                    fmt::format("step {} is a step {}, not {}", step.of, name_of(named->second), name_of(wanted)));
    if (!seen_.contains(step.of)) return refuse(where, fmt::format("step {} comes later", step.of));
    return {};
  }

  const Trace& trace_;
  const TraceLimits& limits_;
  std::string where_;
  std::unordered_map<std::uint32_t, StepKind> kinds_;
  std::unordered_map<std::uint32_t, StepKind> seen_;
  std::uint64_t sessions_ = 0;
  std::uint64_t passed_ns_ = 0;
};

Status check_fault(const std::string& where, const FaultPoint& fault) {
  const bool legal = fault.kind == FaultKind::lie ? find_lie(fault.call, fault.code) != nullptr
                                                  : is_legal(fault.call, fault.kind, fault.code);
  if (!legal)
    return refuse(where, fmt::format("{} with code {} is no legal fault of {}", name_of(fault.kind), fault.code,
                                     name_of(fault.call)));
  if (fault.kind == FaultKind::time) {
    // Between the check of a plan's age and the copy into it nobody can tell more than the contract leaves room for.
    return check_range(where + ".arg", fault.arg, 0, fault.call == Call::copy_batch ? kPlanAgeMarginNs : kLateMaxNs);
  }
  if (fault.kind != FaultKind::late) return {};
  const bool start = fault.call == Call::local_fast_put_start;
  return check_range(where + ".arg", fault.arg, 0, start ? std::uint64_t{kPutStartWaitLimit} : kLateMaxNs);
}

Status check_choice(const std::string& where, const Choice& choice) {
  if (choice.call != call_of(choice.kind))
    return refuse(where, fmt::format("{} is no choice of {}", name_of(choice.kind), name_of(choice.call)));
  if (choice.kind == ChoiceKind::route_after)
    return check_range(where + ".arg", choice.arg, 0, std::uint64_t{kSettleBound});
  if (choice.kind == ChoiceKind::answer_after) return check_range(where + ".arg", choice.arg, 0, kLateMaxNs);
  return {};
}

// Faults and choices: each at a step that is there, none where another one is.
template <class Item, class Check>
Status check_points(const Trace& trace, std::string_view section, const std::vector<Item>& items, std::size_t items_max,
                    Check&& check) {
  if (items.size() > items_max) return refuse(fmt::format("$.{}", section), fmt::format("more than {}", items_max));
  std::set<std::uint32_t> ids;
  for (const Step& step : trace.steps) ids.insert(ids.end(), step.id);
  std::set<std::tuple<std::uint32_t, Call, std::uint32_t, int>> places;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string where = fmt::format("$.{}[{}]", section, i);
    if (!ids.contains(items[i].step)) return refuse(where + ".step", fmt::format("there is no step {}", items[i].step));
    if (Status status = check(where, items[i]); !status) return status;
    if (!places.emplace(items[i].step, items[i].call, items[i].nth, slot_of(items[i])).second)
      return refuse(where, "another one is at the same place");
  }
  return {};
}

Status check_switches(const Trace& trace, const TraceLimits& limits) {
  if (trace.switches.size() > limits.faults_max)
    return refuse("$.switches", fmt::format("more than {}", limits.faults_max));
  std::set<std::uint32_t> ids;
  for (const Step& step : trace.steps) ids.insert(ids.end(), step.id);
  std::set<std::pair<std::uint32_t, std::uint32_t>> decisions;
  for (std::size_t i = 0; i < trace.switches.size(); ++i) {
    const std::string where = fmt::format("$.switches[{}]", i);
    const StepSwitch& change = trace.switches[i];
    if (change.step != 0 && !ids.contains(change.step))
      return refuse(where + ".step", fmt::format("there is no step {}", change.step));
    if (!ids.contains(change.to)) return refuse(where + ".to", fmt::format("there is no step {}", change.to));
    if (change.step == change.to) return refuse(where + ".to", "is the step itself");
    if (!decisions.emplace(change.step, change.nth).second) return refuse(where, "another one is at the same decision");
  }
  return {};
}

}  // namespace

bool same_place(const FaultPoint& a, const FaultPoint& b) {
  return a.step == b.step && a.call == b.call && a.nth == b.nth && slot_of(a) == slot_of(b);
}

Status validate_trace(const Trace& trace, const TraceLimits& limits) {
  if (Status status = check_memory(trace, limits); !status) return status;
  if (trace.geometries.empty()) return refuse("$.geometries", "is empty");
  for (std::size_t i = 0; i < trace.geometries.size(); ++i)
    if (Status status = check_geometry(trace, i, limits); !status) return status;
  if (trace.steps.size() > limits.steps_max) return refuse("$.steps", fmt::format("more than {}", limits.steps_max));
  StepChecker steps(trace, limits);
  for (std::size_t i = 0; i < trace.steps.size(); ++i)
    if (Status status = steps.check(i); !status) return status;
  if (Status status = check_points(trace, "faults", trace.faults, limits.faults_max, check_fault); !status)
    return status;
  if (Status status = check_points(trace, "choices", trace.choices, limits.faults_max, check_choice); !status)
    return status;
  if (trace.switches.empty()) return {};
  if (Status status = check_switches(trace, limits); !status) return status;
  return validate_side_by_side(trace, limits);
}

Status validate_side_by_side(const Trace& trace, const TraceLimits& limits) {
  if (trace.steps.size() > limits.side_by_side_steps_max) {
    return refuse("$.steps",
                  fmt::format("more than {} run side by side; split the trace", limits.side_by_side_steps_max));
  }
  std::set<std::uint32_t> lanes;
  std::uint32_t together = 0;
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    const Step& step = trace.steps[i];
    if (step.join || step.kind == StepKind::restart) together = 0;
    if (step.kind != StepKind::restart && ++together > limits.round_steps_max) {
      return refuse(
          fmt::format("$.steps[{}]", i),
          fmt::format("runs beside {} others; give it or one before it \"join\": true", limits.round_steps_max));
    }
    if (lanes.insert(lane_of(trace, step)).second && lanes.size() > limits.lanes_max) {
      return refuse(fmt::format("$.steps[{}]", i),
                    fmt::format("more than {} sessions and steps of no session run side by side; split the trace",
                                limits.lanes_max));
    }
  }
  return {};
}

}  // namespace holdfast::sim
