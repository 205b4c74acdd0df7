#include "random_parts.hpp"

#include <algorithm>
#include <vector>

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/fluxon_runtime.hpp"

namespace holdfast::sim {
namespace {

constexpr std::int32_t kStickyCode = static_cast<std::int32_t>(CudaErrc::illegal_address);

std::uint64_t draw_late_ns(Call call, Rng& rng) {
  constexpr std::uint64_t kLittle = kMillisecond;
  switch (call) {
    case Call::local_fast_put_start:
      return any_of<std::uint64_t>(rng, {kLittle, 3 * kSecond, 29 * kSecond});
    case Call::commit_wait:
      return any_of<std::uint64_t>(rng, {kLittle, 3 * kSecond, 11 * kSecond, 61 * kSecond});
    case Call::get_transfer:
      return any_of<std::uint64_t>(rng, {kLittle, 5 * kSecond, 361 * kSecond});
    case Call::stream_synchronize:
    case Call::event_synchronize:
      return rng.ratio(1, 12) ? 21 * kMinute : any_of<std::uint64_t>(rng, {kLittle, 5 * kSecond, 70 * kSecond});
    default:
      return any_of<std::uint64_t>(rng, {kLittle, kSecond, 30 * kSecond});
  }
}

std::uint64_t draw_passing_ns(Call call, Rng& rng) {
  constexpr std::uint64_t kPastHandles = kHandleTimeout + kSecond;
  const bool short_only = call == Call::copy_batch;
  if (short_only || rng.ratio(1, 2)) return any_of<std::uint64_t>(rng, {kMillisecond, 61 * kSecond, kPastHandles});
  return any_of<std::uint64_t>(rng, {21 * kMinute, kPlanTimeout + kSecond});
}

// The ids of the steps of `kind` before `place`.
std::vector<std::uint32_t> ids_before(const Trace& trace, std::size_t place, StepKind kind) {
  std::vector<std::uint32_t> ids;
  for (std::size_t i = 0; i < place; ++i) {
    if (trace.steps[i].kind == kind) ids.push_back(trace.steps[i].id);
  }
  return ids;
}

// Another session on a path that is known, or on a part of it that forks at its end.
void draw_session(const Trace& trace, std::uint32_t known, Step& step, Rng& rng) {
  const Step& model = *std::ranges::find(trace.steps, known, &Step::id);
  step.world = model.world;
  step.geometry = model.geometry;
  step.declared_geometry = model.declared_geometry;
  step.actions = model.actions;
  if (rng.ratio(1, 2)) return;
  step.actions.resize(1 + rng.below(step.actions.size()));
  if (rng.ratio(1, 2)) step.actions.back() = std::to_string(1000 + rng.below(1000));
}

}  // namespace

CallSet calls_of(StepKind kind) {
  switch (kind) {
    case StepKind::generate:
      return kRegistration | kPutCalls | kGetCalls | kDeviceCalls;
    case StepKind::resume:
      return kRegistration | kGetCalls | kDeviceCalls;
    case StepKind::evict:
    case StepKind::make_room:
      return set_of({Call::remove});
    case StepKind::warm_up:
      return kRegistration;
    case StepKind::pump:
      return kGetCalls |
             set_of({Call::remove, Call::put_abort, Call::stream_synchronize, Call::event_query, Call::event_destroy});
    case StepKind::snapshot:
      return kFileCalls;
    case StepKind::restart:
      return set_of({Call::file_read});
    case StepKind::open:
    case StepKind::close:
    case StepKind::hold:
    case StepKind::unhold:
    case StepKind::store_evict:
    case StepKind::owner_restart:
    case StepKind::pass_time:
      break;
  }
  return 0;
}

bool is_drastic(const LegalFault& legal) {
  return legal.kind == FaultKind::gone || legal.kind == FaultKind::death || legal.code == kStickyCode;
}

std::uint64_t draw_fault_arg(const LegalFault& legal, Rng& rng) {
  if (legal.kind == FaultKind::late) return draw_late_ns(legal.call, rng);
  if (legal.kind == FaultKind::time) return draw_passing_ns(legal.call, rng);
  constexpr std::int32_t kAlready = static_cast<std::int32_t>(CudaErrc::host_memory_already_registered);
  if (legal.code == kAlready && legal.call == Call::host_register) return rng.below(3);
  return rng.below(1 << 16);
}

std::uint64_t draw_choice_arg(ChoiceKind kind, Rng& rng) {
  switch (kind) {
    case ChoiceKind::copy_after_calls:
      return rng.below(4);
    case ChoiceKind::copy_at_submit:
    case ChoiceKind::copy_split:
    case ChoiceKind::copy_order:
      return rng.below(1 << 16);
    case ChoiceKind::route_after:
      return any_of<std::uint64_t>(rng, {0, kMillisecond, kSecond, 20 * kSecond});
    case ChoiceKind::answer_after:
      return any_of<std::uint64_t>(rng, {kMillisecond, kSecond, 9 * kSecond});
    case ChoiceKind::needs_transfer:
      break;
  }
  return 0;
}

std::optional<Step> draw_step(const Trace& trace, std::size_t place, StepKind kind, Rng& rng) {
  constexpr std::uint32_t kDepthMax = 6;
  Step step;
  step.kind = kind;
  switch (kind) {
    case StepKind::open:
    case StepKind::close:
    case StepKind::generate:
    case StepKind::resume:
    case StepKind::hold:
    case StepKind::unhold:
    case StepKind::evict:
    case StepKind::store_evict: {
      const auto ids = ids_before(trace, place, kind == StepKind::unhold ? StepKind::hold : StepKind::open);
      if (ids.empty()) return std::nullopt;
      // The latest is the likeliest to be open still.
      const std::uint32_t id = rng.ratio(1, 2) ? ids.back() : ids[rng.below(ids.size())];
      if (kind == StepKind::open) {
        draw_session(trace, id, step, rng);
        return step;
      }
      step.of = id;
      break;
    }
    case StepKind::make_room:
      step.amount = rng.between(1, 24) * kSlotAlignment;
      break;
    case StepKind::pass_time:
      step.amount = any_of<std::uint64_t>(rng, {kMillisecond, kSecond, 30 * kSecond, kSettleBound + kSecond,
                                                kHandleTimeout + kSecond, 21 * kMinute, kPlanTimeout + kMinute});
      break;
    case StepKind::warm_up:
    case StepKind::pump:
    case StepKind::snapshot:
    case StepKind::restart:
    case StepKind::owner_restart:
      break;
  }
  if (kind == StepKind::evict || kind == StepKind::store_evict) {
    step.depth = static_cast<std::uint32_t>(rng.below(kDepthMax));
  }
  if (kind == StepKind::store_evict) step.amount = rng.below(trace.checksums ? 4 : 2);
  return step;
}

}  // namespace holdfast::sim
