#include "holdfast/sim/trace_mutator.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "holdfast/core/fluxon_runtime.hpp"
#include "random_parts.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t kStepsMax = 96;
constexpr std::size_t kFaultsMax = 96;
constexpr int kTriesMax = 8;
constexpr std::uint64_t kChangesMax = 4;
constexpr std::uint64_t kWarmUpAsksMax = 16;

template <class Items>
auto at(Items& items, std::size_t index) {
  return items.begin() + static_cast<std::ptrdiff_t>(index);
}

class Mutation {
 public:
  Mutation(const RanTrace& parent, const RanTrace& other, const LegalFault* wanted, Rng rng)
      : parent_(parent), other_(other), wanted_(wanted), rng_(rng), trace_(*parent.trace) {}

  Trace change() {
    for (const Step& step : trace_.steps) next_id_ = std::max(next_id_, step.id + 1);
    if (wanted_ != nullptr) add_wanted_fault();
    const std::uint64_t changes = rng_.below(kChangesMax) + (wanted_ == nullptr ? 1 : 0);
    for (std::uint64_t i = 0; i < changes; ++i) change_once();
    bound();
    return std::move(trace_);
  }

 private:
  void change_once() {
    constexpr std::array<std::uint32_t, 13> kWeights{2, 2, 2, 3, 2, 8, 4, 3, 3, 2, 2, 2, 1};
    switch (rng_.weighted(kWeights)) {
      case 0:
        return remove_steps();
      case 1:
        return double_step();
      case 2:
        return move_step();
      case 3:
        return add_step();
      case 4:
        return splice();
      case 5:
        return add_fault_at_a_call();
      case 6:
        return change_fault();
      case 7:
        return remove_faults();
      case 8:
        return change_choices();
      case 9:
        return change_amount();
      case 10:
        return fail_all_of_a_step();
      case 11:
        return change_geometry();
      default:
        return change_memory();
    }
  }

  // ---- Steps.

  void remove_steps() {
    if (trace_.steps.size() < 3) return;
    const std::size_t first = 1 + rng_.below(trace_.steps.size() - 1);
    const std::size_t count = std::min<std::size_t>(trace_.steps.size() - first, 1 + rng_.below(4));
    trace_.steps.erase(at(trace_.steps, first), at(trace_.steps, first + count));
    drop_orphans();
  }

  void double_step() {
    if (trace_.steps.empty()) return;
    const std::size_t index = rng_.below(trace_.steps.size());
    Step copy = trace_.steps[index];
    const std::uint32_t model = std::exchange(copy.id, next_id_++);
    const std::size_t place = rng_.ratio(1, 2) ? index + 1 : rng_.between(index + 1, trace_.steps.size());
    copy_points(trace_, model, copy.id);
    trace_.steps.insert(at(trace_.steps, place), std::move(copy));
  }

  void move_step() {
    if (trace_.steps.size() < 2) return;
    const std::size_t from = rng_.below(trace_.steps.size());
    const std::size_t to = rng_.below(trace_.steps.size());
    Step step = std::move(trace_.steps[from]);
    trace_.steps.erase(at(trace_.steps, from));
    trace_.steps.insert(at(trace_.steps, to), std::move(step));
  }

  void add_step() {
    const auto kind = static_cast<StepKind>(rng_.below(kStepKindCount));
    const std::size_t place = rng_.below(trace_.steps.size() + 1);
    std::optional<Step> step = draw_step(trace_, place, kind, rng_);
    if (!step) return;
    step->id = next_id_++;
    trace_.steps.insert(at(trace_.steps, place), std::move(*step));
  }

  // The beginning of this one, then the end of the other with the sessions that it goes on with.
  void splice() {
    const Trace& other = *other_.trace;
    if (other.steps.empty()) return;
    const std::size_t keep = rng_.below(trace_.steps.size() + 1);
    const std::size_t from = rng_.below(other.steps.size());
    trace_.steps.resize(keep);
    drop_orphans();
    std::set<std::uint32_t> needed;
    for (std::size_t i = from; i < other.steps.size(); ++i) needed.insert(other.steps[i].of);
    const auto first_geometry = static_cast<std::uint32_t>(trace_.geometries.size());
    trace_.geometries.insert(trace_.geometries.end(), other.geometries.begin(), other.geometries.end());
    std::map<std::uint32_t, std::uint32_t> ids;
    for (std::size_t i = 0; i < other.steps.size(); ++i) {
      if (i < from && !needed.contains(other.steps[i].id)) continue;
      Step step = other.steps[i];
      step.id = next_id_++;
      ids[other.steps[i].id] = step.id;
      copy_points(other, other.steps[i].id, step.id);
      if (step.of != 0) {
        const auto renamed = ids.find(step.of);
        step.of = renamed == ids.end() ? next_id_++ : renamed->second;  // else nobody's
      }
      if (step.kind == StepKind::open) {
        step.geometry += first_geometry;
        step.declared_geometry += first_geometry;
      }
      trace_.steps.push_back(std::move(step));
    }
    trace_.segment_bytes = std::max(trace_.segment_bytes, other.segment_bytes);
    trace_.grant_bytes = std::max(trace_.grant_bytes, other.grant_bytes);
  }

  void copy_points(const Trace& from, std::uint32_t model, std::uint32_t id) {
    const auto copy = [&](auto& to, const auto& points) {
      const std::size_t count = points.size();  // `to` may be the same list
      for (std::size_t i = 0; i < count; ++i) {
        if (points[i].step != model) continue;
        auto point = points[i];
        point.step = id;
        to.push_back(point);
      }
    };
    copy(trace_.faults, from.faults);
    copy(trace_.choices, from.choices);
    copy(trace_.switches, from.switches);
  }

  void drop_orphans() {
    std::set<std::uint32_t> ids;
    for (const Step& step : trace_.steps) ids.insert(step.id);
    std::erase_if(trace_.faults, [&](const FaultPoint& point) { return !ids.contains(point.step); });
    std::erase_if(trace_.choices, [&](const Choice& choice) { return !ids.contains(choice.step); });
    std::erase_if(trace_.switches, [&](const StepSwitch& change) {
      return (change.step != 0 && !ids.contains(change.step)) || !ids.contains(change.to) || change.step == change.to;
    });
  }

  // ---- Faults and choices.

  // The parent's calls of steps that are still there.
  std::vector<CallRecord> calls_of_steps(CallSet calls) const {
    std::set<std::uint32_t> ids;
    for (const Step& step : trace_.steps) ids.insert(step.id);
    std::vector<CallRecord> found;
    for (const CallRecord& last : parent_.last_calls) {
      if ((calls & bit_of(last.call)) != 0 && ids.contains(last.step)) found.push_back(last);
    }
    return found;
  }

  // Where the call failed otherwise its circumstances are known to be of interest.
  void add_wanted_fault() {
    std::vector<FaultPoint> otherwise;
    for (const FaultPoint& fault : trace_.faults) {
      if (fault.call == wanted_->call) otherwise.push_back(fault);
    }
    if (!otherwise.empty() && !rng_.ratio(1, 4)) {
      FaultPoint point = otherwise[rng_.below(otherwise.size())];
      std::erase(trace_.faults, point);
      point.kind = wanted_->kind;
      point.code = wanted_->code;
      point.arg = draw_fault_arg(*wanted_, rng_);
      return put(point);
    }
    const std::vector<CallRecord> made = calls_of_steps(bit_of(wanted_->call));
    if (!made.empty()) add_fault(*wanted_, made[rng_.below(made.size())]);
  }

  void add_fault_at_a_call() {
    const std::vector<CallRecord> made = calls_of_steps(kAllCalls);
    if (made.empty()) return;
    const CallRecord& record = made[rng_.below(made.size())];
    if (const LegalFault* legal = fault_of(record.call)) add_fault(*legal, record);
  }

  const LegalFault* fault_of(Call call) {
    std::vector<const LegalFault*> legal;
    for (const LegalFault& fault : legal_faults()) {
      if (fault.call == call) legal.push_back(&fault);
    }
    return legal.empty() ? nullptr : legal[rng_.below(legal.size())];
  }

  void add_fault(const LegalFault& legal, const CallRecord& last) {
    FaultPoint point{.step = last.step, .call = legal.call, .nth = 0, .kind = legal.kind, .code = legal.code};
    point.nth = static_cast<std::uint32_t>(rng_.below(last.nth + 1));
    point.arg = draw_fault_arg(legal, rng_);
    point.persistent = rng_.ratio(1, 6);
    put(point);
  }

  // In place of the one that is there.
  void put(const FaultPoint& point) {
    std::erase_if(trace_.faults, [&](const FaultPoint& there) {
      return there.step == point.step && there.call == point.call && there.nth == point.nth &&
             slot_of(there) == slot_of(point);
    });
    trace_.faults.push_back(point);
  }

  void change_fault() {
    if (trace_.faults.empty()) return;
    FaultPoint point = trace_.faults[rng_.below(trace_.faults.size())];
    std::erase(trace_.faults, point);
    switch (rng_.below(4)) {
      case 0:
        point.nth = point.nth > 0 && rng_.ratio(1, 2) ? point.nth - 1 : point.nth + 1;
        break;
      case 1:
        point.persistent = !point.persistent;
        break;
      case 2:
        point.arg = draw_fault_arg({point.call, point.kind, point.code, {}}, rng_);
        break;
      default:
        if (const LegalFault* legal = fault_of(point.call)) {
          point.kind = legal->kind;
          point.code = legal->code;
          point.arg = draw_fault_arg(*legal, rng_);
        }
    }
    put(point);
  }

  void remove_faults() {
    const std::uint64_t count = 1 + rng_.below(3);
    for (std::uint64_t i = 0; i < count && !trace_.faults.empty(); ++i) {
      trace_.faults.erase(at(trace_.faults, rng_.below(trace_.faults.size())));
    }
  }

  void fail_all_of_a_step() {
    const std::vector<CallRecord> made = calls_of_steps(kAllCalls);
    if (made.empty()) return;
    const std::uint32_t step = made[rng_.below(made.size())].step;
    for (const CallRecord& last : made) {
      if (last.step != step || rng_.ratio(1, 2)) continue;
      const LegalFault* legal = fault_of(last.call);
      if (legal != nullptr && !is_drastic(*legal)) add_fault(*legal, last);
    }
  }

  void change_choices() {
    if (!trace_.choices.empty() && rng_.ratio(1, 3)) {
      trace_.choices.erase(at(trace_.choices, rng_.below(trace_.choices.size())));
      return;
    }
    const auto kind = static_cast<ChoiceKind>(rng_.below(kChoiceKindCount));
    const std::vector<CallRecord> made = calls_of_steps(bit_of(call_of(kind)));
    if (made.empty()) return;
    const CallRecord& last = made[rng_.below(made.size())];
    Choice choice{.step = last.step, .call = last.call, .nth = 0, .kind = kind, .arg = 0};
    choice.nth = static_cast<std::uint32_t>(rng_.below(last.nth + 1));
    choice.arg = draw_choice_arg(kind, rng_);
    std::erase_if(trace_.choices, [&](const Choice& there) {
      return there.step == choice.step && there.call == choice.call && there.nth == choice.nth &&
             slot_of(there) == slot_of(choice);
    });
    trace_.choices.push_back(choice);
  }

  // ---- Amounts and sizes.

  void change_amount() {
    if (trace_.steps.empty()) return;
    Step& step = trace_.steps[rng_.below(trace_.steps.size())];
    switch (step.kind) {
      case StepKind::make_room:
      case StepKind::pass_time:
      case StepKind::evict:
      case StepKind::store_evict:
        if (auto drawn = draw_step(trace_, trace_.steps.size(), step.kind, rng_)) {
          step.amount = drawn->amount;
          step.depth = drawn->depth;
        }
        break;
      case StepKind::warm_up:
        step.amount = rng_.below(kWarmUpAsksMax);
        break;
      case StepKind::open:
        if (step.actions.size() > 1 && rng_.ratio(1, 2)) {
          step.actions.pop_back();
        } else {
          step.actions.push_back(std::to_string(1000 + rng_.below(1000)));
        }
        break;
      default:
        break;
    }
  }

  void change_geometry() {
    Geometry& geometry = trace_.geometries[rng_.below(trace_.geometries.size())];
    const auto nudge = [&](std::uint32_t value) { return value > 1 && rng_.ratio(1, 2) ? value - 1 : value + 1; };
    switch (rng_.below(8)) {
      case 0:
        geometry.ring_frames = nudge(geometry.ring_frames);
        break;
      case 1:
        geometry.sink_frames = nudge(geometry.sink_frames);
        break;
      case 2:
        geometry.frames_per_chunk = nudge(geometry.frames_per_chunk);
        break;
      case 3:
        geometry.n_layers = std::min(nudge(geometry.n_layers), 6U);
        break;
      case 4:
        geometry.latent_bytes = geometry.latent_bytes == 0 ? 256 : 0;
        break;
      case 5:
        geometry.full_length = !geometry.full_length;
        break;
      case 6:
        geometry.scale_token_bytes = geometry.scale_token_bytes == 0 ? 32 : 0;
        break;
      default:
        geometry.break_even_k = nudge(geometry.break_even_k);
    }
  }

  void change_memory() {
    switch (rng_.below(7)) {
      case 0:
        trace_.in_memory_store = !trace_.in_memory_store;
        break;
      case 4:
        trace_.batches_in_flight = trace_.batches_in_flight == 0 ? 1 + static_cast<std::uint32_t>(rng_.below(3)) : 0;
        break;
      case 6:
        trace_.pump_probes = trace_.pump_probes == 0 ? 1 + static_cast<std::uint32_t>(rng_.below(8)) : 0;
        break;
      case 5:
        trace_.copy_stream = !trace_.copy_stream;
        break;
      case 1:
        trace_.capacity_bytes =
            trace_.capacity_bytes == 0 ? trace_.segment_bytes / 4 / kSlotAlignment * kSlotAlignment : 0;
        trace_.lower_mark_bytes = rng_.below(2) == 0 ? 0 : trace_.capacity_bytes / 2;
        trace_.eviction = static_cast<Eviction>(rng_.below(kEvictionCount));
        break;
      case 2:
        trace_.segment_bytes = std::max(trace_.segment_bytes / 2 / kSlotAlignment, 1UL) * kSlotAlignment;
        trace_.grant_bytes = std::min(trace_.grant_bytes, trace_.segment_bytes);
        break;
      default:
        trace_.grant_bytes = std::max(trace_.grant_bytes / 2 / kSlotAlignment, 1UL) * kSlotAlignment;
    }
  }

  // What is too long would make all that follow slow.
  void bound() {
    if (trace_.steps.size() > kStepsMax) trace_.steps.resize(kStepsMax);
    drop_orphans();
    while (trace_.faults.size() > kFaultsMax) {
      trace_.faults.erase(at(trace_.faults, rng_.below(trace_.faults.size())));
    }
    drop_geometries();
  }

  void drop_geometries() {
    std::vector<std::uint32_t> names(trace_.geometries.size());
    std::vector<Geometry> kept;
    for (std::uint32_t i = 0; i < names.size(); ++i) {
      const bool used = std::ranges::any_of(trace_.steps, [&](const Step& step) {
        return step.kind == StepKind::open && (step.geometry == i || step.declared_geometry == i);
      });
      if (!used && !(kept.empty() && i + 1 == names.size())) continue;
      const auto same = std::ranges::find(kept, trace_.geometries[i]);
      names[i] = static_cast<std::uint32_t>(same - kept.begin());
      if (same == kept.end()) kept.push_back(trace_.geometries[i]);
    }
    for (Step& step : trace_.steps) {
      if (step.kind != StepKind::open) continue;
      step.geometry = names[step.geometry];
      step.declared_geometry = names[step.declared_geometry];
    }
    trace_.geometries = std::move(kept);
  }

  const RanTrace& parent_;
  const RanTrace& other_;
  const LegalFault* wanted_;
  Rng rng_;  // at most one draw among the arguments of a call: their order differs between compilers
  Trace trace_;
  std::uint32_t next_id_ = 1;
};

}  // namespace

std::vector<CallRecord> last_calls_of(std::span<const CallRecord> calls) {
  std::map<std::pair<std::uint32_t, Call>, std::uint32_t> last;
  for (const CallRecord& record : calls) {
    std::uint32_t& nth = last[{record.step, record.call}];
    nth = std::max(nth, record.nth);
  }
  std::vector<CallRecord> all;
  all.reserve(last.size());
  for (const auto& [place, nth] : last) all.push_back({place.first, place.second, nth});
  return all;
}

Trace mutate(const RanTrace& parent, const RanTrace& other, const LegalFault* wanted, Rng rng) {
  for (int attempt = 0; attempt < kTriesMax; ++attempt) {
    Trace trace = Mutation(parent, other, wanted, rng.split()).change();
    if (validate_trace(trace)) return trace;
  }
  return *parent.trace;
}

}  // namespace holdfast::sim
