#include "holdfast/sim/lies.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>
#include <tuple>

#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/sim/rng.hpp"

namespace holdfast::sim {
namespace {

using enum Call;

constexpr std::int32_t kBadBlob = static_cast<std::int32_t>(Errc::bad_plan_blob);
constexpr std::int32_t kBadAnswer = static_cast<std::int32_t>(Errc::bad_answer);
constexpr std::int32_t kNotMounted = static_cast<std::int32_t>(FluxonErrc::backend_unavailable);
constexpr std::int32_t kBadSnapshot = static_cast<std::int32_t>(Errc::bad_snapshot);

constexpr std::string_view kDecode = "decode_plan_blob";
constexpr std::string_view kSegments = "wait_local_segments_ready";

// Of the plans that these two calls give.
constexpr LegalLie blob(Call call, Lie lie, std::string_view note) {
  return {call, lie, Origin::core, kBadBlob, kDecode, note};
}
constexpr LegalLie unheard(Call call, std::string_view name) {
  return {call, Lie::unheard_of_error, Origin::fluxon, kUnheardOfError, name, "an error number nobody knows"};
}

constexpr auto kLies = std::to_array<LegalLie>({
    {wait_local_segments_ready, Lie::no_segment, Origin::fluxon, kNotMounted, kSegments, "no segment at all"},
    {wait_local_segments_ready, Lie::null_segment, Origin::core, kBadAnswer, kSegments, "a mapping at null"},
    {wait_local_segments_ready, Lie::empty_segment, Origin::core, kBadAnswer, kSegments, "a mapping of no bytes"},
    {wait_local_segments_ready, Lie::endless_segment, Origin::core, kBadAnswer, kSegments, "past all addresses"},
    unheard(wait_local_segments_ready, kSegments),

    blob(local_fast_put_start, Lie::bad_magic, "another magic"),
    blob(local_fast_put_start, Lie::count_too_large, "more values than keys"),
    blob(local_fast_put_start, Lie::count_too_small, "fewer values than keys"),
    blob(local_fast_put_start, Lie::null_plan, "a null plan"),
    blob(local_fast_put_start, Lie::misaligned_plan, "a plan that is not 8-byte aligned"),
    blob(local_fast_put_start, Lie::null_address, "a value at null"),
    blob(local_fast_put_start, Lie::foreign_address, "a value outside of the segment"),
    blob(local_fast_put_start, Lie::misaligned_address, "a value across two slots"),
    blob(local_fast_put_start, Lie::doubled_address, "two values in one slot"),
    blob(local_fast_put_start, Lie::address_past_the_end, "a value at the segment's end"),
    unheard(local_fast_put_start, "local_fast_put_start"),

    unheard(local_fast_put_commit, "local_fast_put_commit"),
    {commit_wait, Lie::too_few_codes, Origin::core, kBadAnswer, "commit_wait", "fewer codes than keys"},
    {commit_wait, Lie::too_many_codes, Origin::core, kBadAnswer, "commit_wait", "more codes than keys"},
    {commit_wait, Lie::no_codes, Origin::core, kBadAnswer, "commit_wait", "no codes"},
    {commit_wait, Lie::unheard_of_code, Origin::fluxon_key, kUnheardOfCode, "commit_wait", "a code nobody knows"},
    {commit_wait, Lie::stored_without_bound, Origin::fluxon_key, static_cast<std::int32_t>(CommitCode::timeout),
     "commit_wait", "transport code for all, stored long after the settle bound"},
    unheard(commit_wait, "commit_wait"),

    unheard(put_abort, "put_abort"),

    {get_start, Lie::counts_past_the_keys, Origin::core, kBadAnswer, "get_start", "more found than asked for"},
    {get_start, Lie::contradictory_counts, Origin::core, kBadAnswer, "get_start", "all hit, and not all"},
    {get_start, Lie::unknown_handle, Origin::core, 0, {}, "a handle that the owner does not know"},
    unheard(get_start, "get_start"),

    blob(get_transfer, Lie::bad_magic, "another magic"),
    blob(get_transfer, Lie::count_too_large, "more values than keys"),
    blob(get_transfer, Lie::count_too_small, "fewer values than keys"),
    blob(get_transfer, Lie::null_plan, "a null plan"),
    blob(get_transfer, Lie::misaligned_plan, "a plan that is not 8-byte aligned"),
    blob(get_transfer, Lie::null_address, "a value at null"),
    blob(get_transfer, Lie::foreign_address, "a value outside of the segment"),
    blob(get_transfer, Lie::misaligned_address, "a value across two slots"),
    blob(get_transfer, Lie::doubled_address, "two values in one slot"),
    blob(get_transfer, Lie::address_past_the_end, "a value at the segment's end"),
    unheard(get_transfer, "get_transfer"),

    unheard(cancel_get_transfer, "cancel_get_transfer"),
    unheard(release_views, "release_views"),
    {remove, Lie::not_done, Origin::core, 0, {}, "said to be done, and was not"},
    unheard(remove, "remove"),

    {file_read, Lie::garbage, Origin::core, kBadSnapshot, "decode_snapshot", "other bytes than were written"},
});

// The calls of a step that a lie may be drawn for: those that it may be expected to make.
std::span<const Call> may_lie(StepKind kind) {
  static constexpr std::array kGenerate{
      local_fast_put_start, local_fast_put_commit, commit_wait, put_abort, wait_local_segments_ready, remove};
  static constexpr std::array kResume{get_start, get_transfer, release_views, cancel_get_transfer,
                                      wait_local_segments_ready};
  static constexpr std::array kRemovals{remove, get_start, cancel_get_transfer, wait_local_segments_ready};
  static constexpr std::array kFiles{file_read, wait_local_segments_ready};
  switch (kind) {
    case StepKind::generate:
      return kGenerate;
    case StepKind::resume:
      return kResume;
    case StepKind::evict:
    case StepKind::make_room:
    case StepKind::pump:
      return kRemovals;
    case StepKind::restart:
    case StepKind::warm_up:
      return kFiles;
    default:
      return {};
  }
}

}  // namespace

std::span<const LegalLie> legal_lies() { return kLies; }

const LegalLie* find_lie(Call call, std::int32_t code) {
  const auto found = std::ranges::find_if(
      kLies, [&](const LegalLie& lie) { return lie.call == call && static_cast<std::int32_t>(lie.lie) == code; });
  return found == kLies.end() ? nullptr : &*found;
}

bool is_hostile(const Trace& trace) {
  return std::ranges::any_of(trace.faults, [](const FaultPoint& fault) { return fault.kind == FaultKind::lie; });
}

void add_lies(Trace& trace, std::uint64_t seed) {
  constexpr std::uint32_t kNthMax = 3;
  Rng rng(seed);
  std::set<std::tuple<std::uint32_t, Call, std::uint32_t>> taken;
  for (const FaultPoint& fault : trace.faults) taken.emplace(fault.step, fault.call, fault.nth);
  for (const Step& step : trace.steps) {
    const std::span<const Call> calls = may_lie(step.kind);
    if (calls.empty() || !rng.ratio(1, 3)) continue;
    const Call call = calls[rng.below(calls.size())];
    std::vector<const LegalLie*> lies;
    for (const LegalLie& lie : kLies) {
      if (lie.call == call) lies.push_back(&lie);
    }
    const auto nth = static_cast<std::uint32_t>(rng.ratio(1, 2) ? 0 : rng.below(kNthMax));
    if (!taken.emplace(step.id, call, nth).second) continue;
    FaultPoint point{.step = step.id, .call = call, .nth = nth, .kind = FaultKind::lie};
    point.code = static_cast<std::int32_t>(lies[rng.below(lies.size())]->lie);
    point.arg = rng.below(1 << 16);
    point.persistent = rng.ratio(1, 8);
    trace.faults.push_back(point);
  }
}

}  // namespace holdfast::sim
