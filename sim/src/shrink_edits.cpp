#include "shrink_edits.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace holdfast::sim {
namespace {

using Pass = Edit::Pass;

constexpr std::uint32_t kLevelOfOne = 31;       // rows of 2^(31 - level)
constexpr std::size_t kEarlierSessionsMax = 8;  // that a session is merged into
constexpr std::uint64_t kStepByStepBelow = 17;  // larger numbers are only halved, or their leading digit kept

enum Setting : std::uint32_t {
  kStore,
  kOverlap,
  kPumpProbes,
  kChecksums,
  kCopyStream,
  kCapacity,
  kLowerMark,
  kEviction,
  kSegment,
  kGrant,
  kTraceSettings
};
enum GeometrySetting : std::uint32_t { kFullWithoutSink, kFull, kFitRing, kNoLatents, kNoScales, kGeometrySettings };
enum FaultSetting : std::uint32_t { kFirstOfCall, kFirstOfKind, kTransient, kFaultSettings };
enum Sizes : std::uint32_t { kOneSize, kOneSizeFirstCalls, kOneSizeLess, kSizesVariants };
enum Number : std::uint32_t { kLeast, kLeadingDigit, kHalf, kTwoLess, kOneLess, kNumberVariants };

std::vector<std::size_t> opens_of(const Trace& trace) {
  std::vector<std::size_t> opens;
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    if (trace.steps[i].kind == StepKind::open) opens.push_back(i);
  }
  return opens;
}

// ---- Rows.

void list_rows(std::vector<Edit>& edits, Pass pass, std::size_t items, std::size_t longest, std::size_t shortest) {
  if (items == 0) return;
  for (std::size_t size = std::min(std::bit_floor(items), longest); size >= shortest; size /= 2) {
    const auto level = kLevelOfOne - static_cast<std::uint32_t>(std::countr_zero(size));
    for (std::size_t at = 0; at * size < items; ++at) edits.push_back({pass, level, static_cast<std::uint32_t>(at), 0});
    if (size == 1) break;
  }
}

struct RowOfItems {
  std::size_t first = 0;
  std::size_t last = 0;  // not of it
};
std::optional<RowOfItems> row_of_items(const Edit& edit, std::size_t items) {
  const std::size_t size = std::size_t{1} << (kLevelOfOne - edit.level);
  const std::size_t behind = edit.at * size;
  if (behind >= items) return std::nullopt;
  const std::size_t last = items - behind;
  return RowOfItems{last - std::min(size, last), last};
}

template <class Item>
bool erase_row(std::vector<Item>& items, const Edit& edit) {
  const auto row = row_of_items(edit, items.size());
  if (!row) return false;
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(row->first),
              items.begin() + static_cast<std::ptrdiff_t>(row->last));
  return true;
}

// ---- Steps and sessions.

template <class Gone>
void erase_steps(Trace& trace, Gone&& gone) {
  std::set<std::uint32_t> ids;
  std::erase_if(trace.steps, [&](const Step& step) {
    const bool goes = gone(step);
    if (goes) ids.insert(step.id);
    return goes;
  });
  const auto at_one = [&](const auto& point) { return ids.contains(point.step); };
  std::erase_if(trace.faults, at_one);
  std::erase_if(trace.choices, at_one);
  std::erase_if(trace.switches,
                [&](const StepSwitch& change) { return ids.contains(change.step) || ids.contains(change.to); });
}

bool drop_steps(Trace& trace, const Edit& edit) {
  const auto row = row_of_items(edit, trace.steps.size());
  if (!row) return false;
  std::set<std::uint32_t> ids;
  for (std::size_t i = row->first; i < row->last; ++i) ids.insert(trace.steps[i].id);
  erase_steps(trace, [&](const Step& step) { return ids.contains(step.id); });
  return true;
}

bool drop_session(Trace& trace, const Edit& edit) {
  const std::vector<std::size_t> opens = opens_of(trace);
  if (edit.at >= opens.size()) return false;
  const std::uint32_t session = trace.steps[opens[opens.size() - 1 - edit.at]].id;
  std::set<std::uint32_t> holds;
  for (const Step& step : trace.steps) {
    if (step.kind == StepKind::hold && step.of == session) holds.insert(step.id);
  }
  erase_steps(trace, [&](const Step& step) {
    if (step.id == session) return true;
    return step.kind == StepKind::unhold ? holds.contains(step.of) : step.of == session;
  });
  return true;
}

bool of_one_kind(const Step& a, const Step& b) {
  return a.world == b.world && a.geometry == b.geometry && a.declared_geometry == b.declared_geometry;
}

bool merge_session(Trace& trace, const Edit& edit) {
  const std::vector<std::size_t> opens = opens_of(trace);
  if (edit.at >= opens.size() || edit.variant + edit.at + 1 >= opens.size()) return false;
  const std::size_t later = opens.size() - 1 - edit.at;
  const Step from = trace.steps[opens[later]];
  Step& earlier = trace.steps[opens[later - 1 - edit.variant]];
  const std::uint32_t into = earlier.id;
  const bool goes_on = from.actions.size() > earlier.actions.size() &&
                       std::equal(earlier.actions.begin(), earlier.actions.end(), from.actions.begin());
  if (goes_on) earlier.actions = from.actions;
  for (Step& step : trace.steps) {
    if (step.of == from.id && step.kind != StepKind::unhold) step.of = into;
  }
  erase_steps(trace, [&](const Step& step) { return step.id == from.id; });
  return true;
}

bool cut_actions(Trace& trace, const Edit& edit) {
  const std::vector<std::size_t> opens = opens_of(trace);
  if (edit.at >= opens.size()) return false;
  std::vector<std::string>& actions = trace.steps[opens[edit.at]].actions;
  const std::array<std::size_t, 3> kept{1, actions.size() / 2, actions.size() - 1};
  if (edit.variant >= kept.size() || kept[edit.variant] == 0) return false;
  actions.resize(kept[edit.variant]);
  return true;
}

// ---- Geometries and settings.

void erase_geometry(Trace& trace, std::uint32_t gone) {
  trace.geometries.erase(trace.geometries.begin() + static_cast<std::ptrdiff_t>(gone));
  for (Step& step : trace.steps) {
    if (step.geometry > gone) --step.geometry;
    if (step.declared_geometry > gone) --step.declared_geometry;
  }
}

bool right_layout(Trace& trace, const Edit& edit) {
  const std::vector<std::size_t> opens = opens_of(trace);
  if (edit.at >= opens.size()) return false;
  Step& open = trace.steps[opens[edit.at]];
  if (open.geometry == open.declared_geometry) return false;
  (edit.variant == 0 ? open.geometry : open.declared_geometry) =
      edit.variant == 0 ? open.declared_geometry : open.geometry;
  return true;
}

// Without a session that has it, a geometry goes whatever the other one is.
bool merge_geometry(Trace& trace, const Edit& edit) {
  if (edit.at >= trace.geometries.size() || edit.variant >= trace.geometries.size() || edit.at == edit.variant)
    return false;
  for (Step& step : trace.steps) {
    if (step.kind != StepKind::open) continue;
    if (step.geometry == edit.at) step.geometry = edit.variant;
    if (step.declared_geometry == edit.at) step.declared_geometry = edit.variant;
  }
  erase_geometry(trace, edit.at);
  return true;
}

// What the longest session of a full-length ring needs, or one chunk beside the sink.
void fit_ring(Trace& trace, std::uint32_t index) {
  Geometry& geometry = trace.geometries[index];
  std::size_t chunks = 1;
  for (const Step& step : trace.steps) {
    if (step.kind == StepKind::open && (step.geometry == index || step.declared_geometry == index))
      chunks = std::max(chunks, step.actions.size());
  }
  geometry.ring_frames = geometry.full_length ? static_cast<std::uint32_t>(chunks) * geometry.frames_per_chunk
                                              : geometry.sink_frames + geometry.frames_per_chunk;
  geometry.ring_frames = std::max(geometry.ring_frames, geometry.sink_frames);
}

bool set_geometry(Trace& trace, std::uint32_t index, std::uint32_t setting) {
  if (index >= trace.geometries.size()) return false;
  Geometry& geometry = trace.geometries[index];
  switch (setting) {
    case kFullWithoutSink:
    case kFull:
      if (geometry.full_length) return false;
      geometry.full_length = true;
      if (setting == kFullWithoutSink) geometry.sink_frames = 0;
      fit_ring(trace, index);
      return true;
    case kFitRing:
      fit_ring(trace, index);
      return true;
    case kNoLatents:
      geometry.latent_bytes = 0;
      return true;
    case kNoScales:
      geometry.scale_token_bytes = 0;
      return true;
    default:
      return false;
  }
}

bool plain_setting(Trace& trace, const Edit& edit) {
  if (edit.at > 0) return set_geometry(trace, edit.at - 1, edit.variant);
  const Trace plain;
  switch (edit.variant) {
    case kStore:
      trace.in_memory_store = plain.in_memory_store;
      return true;
    case kOverlap:
      trace.batches_in_flight = plain.batches_in_flight;
      return true;
    case kPumpProbes:
      trace.pump_probes = plain.pump_probes;
      return true;
    case kChecksums: {
      const auto damages = [](const Step& step) {
        return step.kind == StepKind::store_evict && step.amount >= kDamageBlob;
      };
      if (std::any_of(trace.steps.begin(), trace.steps.end(), damages)) return false;
      trace.checksums = plain.checksums;
      return true;
    }
    case kCopyStream:
      trace.copy_stream = plain.copy_stream;
      return true;
    case kCapacity:
      trace.capacity_bytes = plain.capacity_bytes;
      trace.lower_mark_bytes = plain.lower_mark_bytes;
      trace.eviction = plain.eviction;
      return true;
    case kLowerMark:
      trace.lower_mark_bytes = plain.lower_mark_bytes;
      return true;
    case kEviction:
      trace.eviction = plain.eviction;
      return true;
    case kSegment:
      trace.segment_bytes = plain.segment_bytes;
      return true;
    case kGrant:
      trace.grant_bytes = plain.grant_bytes;
      return true;
    default:
      return false;
  }
}

bool fewer_sizes(Trace& trace, const Edit& edit) {
  if (edit.at >= trace.geometries.size()) return false;
  std::vector<std::uint32_t>& sizes = trace.geometries[edit.at].kv_token_bytes;
  if (sizes.size() < 2) return false;
  sizes.resize(edit.variant == kOneSizeLess ? sizes.size() - 1 : 1);
  if (edit.variant != kOneSizeFirstCalls) return true;
  // Each size is a group with calls of its own.
  for (FaultPoint& fault : trace.faults) fault.nth = 0;
  for (Choice& choice : trace.choices) choice.nth = 0;
  return true;
}

// ---- Faults, choices, names, numbers.

bool plain_fault(Trace& trace, const Edit& edit) {
  if (edit.at >= trace.faults.size()) return false;
  FaultPoint& fault = trace.faults[edit.at];
  if (edit.variant == kTransient) {
    fault.persistent = false;
    return true;
  }
  for (const LegalFault& legal : legal_faults()) {
    if (legal.call != fault.call || (edit.variant == kFirstOfKind && legal.kind != fault.kind)) continue;
    if (legal.kind != fault.kind) fault.arg = 0;
    fault.kind = legal.kind;
    fault.code = legal.code;
    return true;
  }
  return false;
}

bool plain_choice(Trace& trace, const Edit& edit) {
  if (edit.at >= trace.choices.size()) return false;
  Choice& choice = trace.choices[edit.at];
  switch (choice.kind) {
    case ChoiceKind::copy_after_calls:
    case ChoiceKind::copy_split:
    case ChoiceKind::copy_order:
      choice.kind = ChoiceKind::copy_at_submit;
      choice.arg = 0;
      return true;
    default:
      return false;
  }
}

void number_worlds(Trace& trace) {
  std::map<std::uint32_t, std::uint32_t> numbers;
  for (const Step& step : trace.steps) {
    if (step.kind == StepKind::open) numbers[step.world] = 0;
  }
  std::uint32_t next = 0;
  for (auto& [world, number] : numbers) number = next++;
  for (Step& step : trace.steps) {
    if (step.kind == StepKind::open) step.world = numbers[step.world];
  }
}

void number_actions(Trace& trace) {
  std::map<std::string, std::string> numbers;
  for (Step& step : trace.steps) {
    for (std::string& action : step.actions) {
      action = numbers.emplace(action, std::to_string(numbers.size())).first->second;
    }
  }
}

bool smaller_number(Trace& trace, const Edit& edit) {
  std::uint32_t index = 0;
  bool changed = false;
  each_number(trace, [&](auto& number, std::uint64_t least) {
    if (index++ != edit.at || number <= least) return;
    const std::uint64_t value = number;
    std::uint64_t to = least;
    if (edit.variant == kLeadingDigit) {
      std::uint64_t unit = 1;
      while (value / unit >= 10) unit *= 10;
      to = unit == value ? unit / 10 : unit;
    } else if (edit.variant == kHalf) {
      to = value / 2;
    } else if (edit.variant == kTwoLess || edit.variant == kOneLess) {  // two: odd stays odd
      const std::uint64_t less = edit.variant == kTwoLess ? 2 : 1;
      to = value < kStepByStepBelow && value >= less ? value - less : value;
    }
    if (to < least || to >= value) return;
    number = static_cast<std::remove_reference_t<decltype(number)>>(to);
    changed = true;
  });
  return changed;
}

bool apply(Trace& trace, const Edit& edit) {
  switch (edit.pass) {
    case Pass::drop_many_steps:
    case Pass::drop_few_steps:
    case Pass::drop_step:
      return drop_steps(trace, edit);
    case Pass::drop_session:
      return drop_session(trace, edit);
    case Pass::merge_session:
      return merge_session(trace, edit);
    case Pass::drop_faults:
      return erase_row(trace.faults, edit);
    case Pass::drop_choices:
      return erase_row(trace.choices, edit);
    case Pass::drop_switches:
      return erase_row(trace.switches, edit);
    case Pass::cut_actions:
      return cut_actions(trace, edit);
    case Pass::right_layout:
      return right_layout(trace, edit);
    case Pass::merge_geometry:
      return merge_geometry(trace, edit);
    case Pass::plain_setting:
      return plain_setting(trace, edit);
    case Pass::fewer_sizes:
      return fewer_sizes(trace, edit);
    case Pass::plain_fault:
      return plain_fault(trace, edit);
    case Pass::plain_choice:
      return plain_choice(trace, edit);
    case Pass::small_worlds:
      number_worlds(trace);
      return true;
    case Pass::small_actions:
      number_actions(trace);
      return true;
    case Pass::smaller_number:
      return smaller_number(trace, edit);
  }
  return false;
}

}  // namespace

std::vector<Edit> edits_of(const Trace& trace, Pass pass) {
  constexpr std::size_t kAll = std::size_t{1} << kLevelOfOne;
  std::vector<Edit> edits;
  const auto each = [&](std::size_t places, std::uint32_t variants) {
    for (std::uint32_t at = 0; at < places; ++at) {
      for (std::uint32_t variant = 0; variant < variants; ++variant) edits.push_back({pass, 0, at, variant});
    }
  };
  switch (pass) {
    case Pass::drop_many_steps:
      list_rows(edits, pass, trace.steps.size(), kAll, 8);
      break;
    case Pass::drop_few_steps:
      list_rows(edits, pass, trace.steps.size(), 4, 2);
      break;
    case Pass::drop_step:
      list_rows(edits, pass, trace.steps.size(), 1, 1);
      break;
    case Pass::drop_session:
      each(opens_of(trace).size(), 1);
      break;
    case Pass::merge_session: {
      const std::vector<std::size_t> opens = opens_of(trace);
      for (std::uint32_t at = 0; at < opens.size(); ++at) {
        const std::size_t later = opens.size() - 1 - at;
        for (std::uint32_t variant = 0; variant < std::min<std::size_t>(later, kEarlierSessionsMax); ++variant) {
          if (of_one_kind(trace.steps[opens[later]], trace.steps[opens[later - 1 - variant]]))
            edits.push_back({pass, 0, at, variant});
        }
      }
      break;
    }
    case Pass::drop_faults:
      list_rows(edits, pass, trace.faults.size(), kAll, 1);
      break;
    case Pass::drop_choices:
      list_rows(edits, pass, trace.choices.size(), kAll, 1);
      break;
    case Pass::drop_switches:
      list_rows(edits, pass, trace.switches.size(), kAll, 1);
      break;
    case Pass::cut_actions:
      each(opens_of(trace).size(), 3);
      break;
    case Pass::right_layout:
      each(opens_of(trace).size(), 2);
      break;
    case Pass::merge_geometry:
      each(trace.geometries.size(), static_cast<std::uint32_t>(trace.geometries.size()));
      break;
    case Pass::plain_setting:
      each(1 + trace.geometries.size(), std::max<std::uint32_t>(kTraceSettings, kGeometrySettings));
      break;
    case Pass::fewer_sizes:
      each(trace.geometries.size(), kSizesVariants);
      break;
    case Pass::plain_fault:
      each(trace.faults.size(), kFaultSettings);
      break;
    case Pass::plain_choice:
      each(trace.choices.size(), 1);
      break;
    case Pass::small_worlds:
    case Pass::small_actions:
      each(1, 1);
      break;
    case Pass::smaller_number: {
      std::uint32_t at = 0;
      each_number(trace, [&](const auto& number, std::uint64_t least) {
        for (std::uint32_t variant = 0; number > least && variant < kNumberVariants; ++variant)
          edits.push_back({pass, 0, at, variant});
        ++at;
      });
      break;
    }
  }
  return edits;
}

std::optional<Trace> edited(const Trace& trace, const Edit& edit) {
  Trace result = trace;
  if (!apply(result, edit)) return std::nullopt;
  return result;
}

}  // namespace holdfast::sim
