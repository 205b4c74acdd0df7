// What the monitor tells of plans, handles and batches to whoever wants to see a run moment by moment.
#include <fmt/format.h>

#include <algorithm>

#include "monitor_impl.hpp"

namespace holdfast::sim {

void Monitor::Impl::tell_opened(const PlanRecord& plan, Call by, const std::string& whose) {
  context.tell({.kind = MomentKind::opened, .of_call = true, .call = by, .thing = thing_of(plan), .text = whose});
}

void Monitor::Impl::tell_opened(const HandleRecord& handle, const std::string& whose) {
  context.tell({.kind = MomentKind::opened,
                .of_call = true,
                .call = Call::get_start,
                .thing = {ThingKind::handle, handle.ordinal},
                .text = whose});
}

void Monitor::Impl::tell_submitted(const FlightBatch& batch, std::span<const HostSide> sides) {
  Moment moment{.kind = MomentKind::opened,
                .of_call = true,
                .call = Call::copy_batch,
                .thing = {ThingKind::batch, batch.ordinal},
                .text = fmt::format(
                    "{} cop{} {} on stream {}", batch.copies.size(), batch.copies.size() == 1 ? "y" : "ies",
                    batch.direction == CopyDirection::device_to_host ? "to the host" : "to the device", batch.stream)};
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (sides[i].plan == nullptr) continue;
    const std::uint32_t plan = sides[i].plan->ordinal;
    if (std::ranges::find(moment.places, plan, &CopyPlace::plan) != moment.places.end()) continue;
    const std::uint32_t slot = sides[i].slot == nullptr ? 0 : sides[i].slot->key + 1;
    moment.places.push_back({static_cast<std::uint32_t>(i + 1), plan, slot});
  }
  context.tell(std::move(moment));
}

void Monitor::Impl::tell_closed(const Thing& thing, Call by) {
  context.tell({.kind = MomentKind::closed, .of_call = true, .call = by, .thing = thing});
}

std::vector<Thing> Monitor::Impl::live_things() const {
  std::vector<Thing> live;
  for (const std::uint32_t index : plans.live_plans()) live.push_back(thing_of(plans.plan(index)));
  for (const std::uint32_t index : plans.live_handles()) {
    live.push_back({ThingKind::handle, plans.handle(index).ordinal});
  }
  copies.each_live([&](const FlightBatch& batch) { live.push_back({ThingKind::batch, batch.ordinal}); });
  return live;
}

void Monitor::Impl::tell_gone(std::span<const Thing> before, const std::string& why) {
  const std::vector<Thing> live = live_things();
  for (const Thing& thing : before) {
    if (std::ranges::find(live, thing) != live.end()) continue;
    context.tell({.kind = MomentKind::closed, .thing = thing, .text = why});
  }
}

}  // namespace holdfast::sim
