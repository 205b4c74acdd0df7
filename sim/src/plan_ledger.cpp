#include "plan_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

template <class Record>
std::uint32_t take(std::vector<Record>& records, std::vector<std::uint32_t>& live, std::vector<std::uint32_t>& spare) {
  std::uint32_t index = 0;
  if (spare.empty()) {
    index = static_cast<std::uint32_t>(records.size());
    records.emplace_back();
  } else {
    index = spare.back();
    spare.pop_back();
  }
  live.push_back(index);
  return index;
}

// Of several by one name the older ones are of an owner that has gone, of which nobody has heard yet.
template <class Record, class Matches>
Record* newest(std::vector<Record>& records, const std::vector<std::uint32_t>& live, const Matches& matches) {
  Record* found = nullptr;
  for (const std::uint32_t index : live) {
    Record& record = records[index];
    if (matches(record) && (found == nullptr || record.ordinal > found->ordinal)) found = &record;
  }
  return found;
}

std::string_view sort_name(PlanSort sort) { return sort == PlanSort::put ? "put plan" : "read plan"; }

}  // namespace

const PlanSlot* PlanRecord::slot_at(std::uint64_t offset) const {
  const auto after = std::ranges::upper_bound(slots, offset, {}, &PlanSlot::offset);
  if (after == slots.begin()) return nullptr;
  const PlanSlot& slot = *(after - 1);
  return offset - slot.offset < slot.bytes ? &slot : nullptr;
}

PlanRecord& PlanLedger::open_plan() {
  PlanRecord& plan = plans_[take(plans_, live_plans_, spare_plans_)];
  plan.keys.clear();
  plan.slots.clear();
  plan.ordinal = ++plan_ordinal_;
  plan.segment = kNowhere;
  plan.copies = plan.in_flight = 0;
  plan.submission_failed = plan.wait_failed = plan.torn_down = false;
  plan.failed_ns = 0;
  return plan;
}

PlanRecord* PlanLedger::find_plan(PlanPtr plan) {
  return newest(plans_, live_plans_, [&](const PlanRecord& record) { return record.address == plan.address; });
}

const PlanRecord* PlanLedger::reader_of(std::uint32_t key) const {
  for (const std::uint32_t index : live_plans_) {
    const PlanRecord& plan = plans_[index];
    if (plan.sort == PlanSort::read && !plan.wait_failed && std::ranges::find(plan.keys, key) != plan.keys.end()) {
      return &plan;
    }
  }
  return nullptr;
}

void PlanLedger::end_plan(PlanRecord& plan, Call by, Nanos at_ns) {
  remember({plan.address, false, false, plan.ordinal, plan.sort, by, at_ns});
  const std::uint32_t index = index_of(plan);
  std::erase(live_plans_, index);
  spare_plans_.push_back(index);
}

HandleRecord& PlanLedger::open_handle() {
  HandleRecord& handle = handles_[take(handles_, live_handles_, spare_handles_)];
  handle.keys.clear();
  handle.damaged.clear();
  handle.ordinal = ++handle_ordinal_;
  handle.transfer_refused = false;
  return handle;
}

HandleRecord* PlanLedger::find_handle(GetHandle handle) {
  return newest(handles_, live_handles_, [&](const HandleRecord& record) { return record.number == handle.number; });
}

void PlanLedger::end_handle(HandleRecord& handle, Call by, Nanos at_ns) {
  remember({handle.number, true, false, handle.ordinal, PlanSort::read, by, at_ns});
  const auto index = static_cast<std::uint32_t>(&handle - handles_.data());
  std::erase(live_handles_, index);
  spare_handles_.push_back(index);
}

std::uint32_t PlanLedger::end_stale(const SegmentLedger& segments, Nanos at_ns) {
  std::uint32_t count = 0;
  std::erase_if(live_plans_, [&](std::uint32_t index) {
    const PlanRecord& plan = plans_[index];
    if (plan.segment == kNowhere || segments.is_live(plan.segment)) return false;
    remember({plan.address, false, true, plan.ordinal, plan.sort, {}, at_ns, segments.epoch()});
    spare_plans_.push_back(index);
    ++count;
    return true;
  });
  std::erase_if(live_handles_, [&](std::uint32_t index) {
    const HandleRecord& handle = handles_[index];
    if (handle.epoch == segments.epoch()) return false;
    remember({handle.number, true, true, handle.ordinal, PlanSort::read, {}, at_ns, segments.epoch()});
    spare_handles_.push_back(index);
    ++count;
    return true;
  });
  return count;
}

void PlanLedger::remember(const Ended& ended) {
  if (ended_.size() < kEndedMax) {
    ended_.push_back(ended);
    return;
  }
  ended_[ended_next_] = ended;
  ended_next_ = (ended_next_ + 1) % kEndedMax;
}

const Ended* PlanLedger::last_of(std::uint64_t name, bool handle) const {
  const Ended* last = nullptr;
  for (const Ended& ended : ended_) {
    if (ended.name != name || ended.handle != handle) continue;
    if (last == nullptr || ended.ordinal > last->ordinal) last = &ended;
  }
  return last;
}

bool PlanLedger::went_stale_after(std::uint64_t name, bool handle, std::uint32_t epoch) const {
  return std::ranges::any_of(ended_, [&](const Ended& ended) {
    return ended.name == name && ended.handle == handle && ended.stale && ended.epoch > epoch;
  });
}

std::vector<Thing> PlanLedger::ended(std::uint64_t name, bool handle) const {
  const Ended* last = last_of(name, handle);
  if (last == nullptr) return {};
  if (handle) return {{ThingKind::handle, last->ordinal}};
  return {{last->sort == PlanSort::put ? ThingKind::put_plan : ThingKind::read_plan, last->ordinal}};
}

std::string PlanLedger::how_it_ended(std::uint64_t name, bool handle) const {
  const Ended* last = last_of(name, handle);
  if (last == nullptr) return handle ? "no such handle was given" : "no such plan was given";
  const std::string_view sort = handle ? "handle" : sort_name(last->sort);
  if (last->stale) {
    return fmt::format("{} {} is of an older generation, of which the caller heard at {} ns", sort, last->ordinal,
                       last->at_ns);
  }
  return fmt::format("{} {} ended by {} at {} ns", sort, last->ordinal, name_of(last->by), last->at_ns);
}

void PlanLedger::forget_live() {
  spare_plans_.insert(spare_plans_.end(), live_plans_.begin(), live_plans_.end());
  live_plans_.clear();
  spare_handles_.insert(spare_handles_.end(), live_handles_.begin(), live_handles_.end());
  live_handles_.clear();
  ended_.clear();
  ended_next_ = 0;
}

void PlanLedger::reset() {
  forget_live();
  plan_ordinal_ = handle_ordinal_ = 0;
}

Thing thing_of(const PlanRecord& plan) {
  return {plan.sort == PlanSort::put ? ThingKind::put_plan : ThingKind::read_plan, plan.ordinal};
}

std::string describe(const PlanRecord& plan) {
  return fmt::format("{} {} ({}, of {}, started at {} ns)", sort_name(plan.sort), plan.ordinal,
                     counted(plan.keys.size(), "key"), step_text(plan.step), plan.started_ns);
}

std::string describe(const HandleRecord& handle) {
  return fmt::format("handle {} ({}, of {}, started at {} ns)", handle.ordinal, counted(handle.keys.size(), "key"),
                     step_text(handle.step), handle.started_ns);
}

}  // namespace holdfast::sim
