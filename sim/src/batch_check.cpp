#include "batch_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace holdfast::sim {
namespace {

PlanSort needed(CopyDirection direction) {
  return direction == CopyDirection::device_to_host ? PlanSort::put : PlanSort::read;
}

}  // namespace

HostSide host_side(const BatchLedgers& ledgers, CopyDirection direction, std::uintptr_t host) {
  HostSide side;
  side.place = ledgers.segments.locate(host);
  side.registration = ledgers.registrations.covering(host, 1);
  if (side.place.segment == kNowhere) return side;
  // Two read plans may share a slot: a copy is of its own operation's. A plan of the wrong kind is only named when
  // there is no other.
  const std::span<const std::uint32_t> live = ledgers.plans.live_plans();
  for (std::size_t i = live.size(); i-- > 0;) {
    PlanRecord& plan = ledgers.plans.plan(live[i]);
    if (plan.segment != side.place.segment) continue;
    const PlanSlot* slot = plan.slot_at(side.place.offset);
    if (slot == nullptr) continue;
    if (side.plan != nullptr && plan.sort != needed(direction)) continue;
    if (side.plan == nullptr || side.plan->sort != needed(direction) || plan.operation == ledgers.operation) {
      side.plan = &plan;
      side.slot = slot;
    }
    if (plan.sort == needed(direction) && plan.operation == ledgers.operation) break;
  }
  return side;
}

std::string wrong_host_side(const BatchLedgers& ledgers, CopyDirection direction, const HostSide& side,
                            std::uint64_t bytes, Nanos now_ns) {
  const bool to_host = direction == CopyDirection::device_to_host;
  if (side.registration == nullptr) return "its host memory lies in no registration that the caller knows";
  const bool in_segment = side.place.segment != kNowhere;
  if (in_segment && ledgers.segments.epoch_of(side.place.segment) < ledgers.epoch) {
    return fmt::format("its host memory is of the older generation {}",
                       ledgers.segments.generation_of(side.place.segment));
  }
  if (in_segment && side.registration->epoch < ledgers.epoch) {
    return fmt::format("registration {} was made for an older mapping at the same address", side.registration->ordinal);
  }
  if (in_segment && !ledgers.segments.is_live(side.place.segment)) return {};  // its plan has just ended
  if (to_host && side.registration->access == HostAccess::read_only) {
    return fmt::format("it writes to registration {}, which is read-only", side.registration->ordinal);
  }
  if (!in_segment) return {};
  if (to_host && side.place.read_side) return "it writes through the read mapping";
  const PlanRecord* plan = side.plan;
  if (plan == nullptr) {
    return fmt::format("segment offset {:#x} lies in no slot of a live plan", side.place.offset);
  }
  if (plan->sort != needed(direction)) {
    return fmt::format("the slot at {:#x} is of {}, which is of the other kind", side.slot->offset, describe(*plan));
  }
  const std::uint64_t within = side.place.offset - side.slot->offset;
  if (bytes > side.slot->bytes - within) {
    return fmt::format("{} bytes from byte {} of key {} of {} exceed the value's {} bytes", bytes, within,
                       side.slot->key, describe(*plan), side.slot->bytes);
  }
  if (plan->sort == PlanSort::put && now_ns - plan->started_ns >= kPlanTimeout) {
    return fmt::format("{} is past the plan time-out: its slots are others' by now", describe(*plan));
  }
  return {};
}

std::pair<std::size_t, std::size_t> overlapping(std::span<const Copy> copies, std::vector<std::size_t>& scratch) {
  bool ascending = true;
  for (std::size_t i = 1; i < copies.size() && ascending; ++i) {
    ascending = copies[i].dst >= copies[i - 1].dst + copies[i - 1].bytes;
  }
  if (ascending) return {};
  scratch.resize(copies.size());
  std::iota(scratch.begin(), scratch.end(), std::size_t{0});
  std::ranges::sort(scratch, {}, [&](std::size_t i) { return std::pair(copies[i].dst, i); });
  for (std::size_t i = 1; i < scratch.size(); ++i) {
    const Copy& before = copies[scratch[i - 1]];
    if (copies[scratch[i]].dst < before.dst + before.bytes) return std::minmax(scratch[i - 1], scratch[i]);
  }
  return {};
}

}  // namespace holdfast::sim
