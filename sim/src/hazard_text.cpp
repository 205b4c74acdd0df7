// What a hazard looks like to people: both accesses, the edge between them that is missing, and who owed it.
#include <fmt/format.h>

#include <array>

#include "holdfast/sim/hazard_checker.hpp"

namespace holdfast::sim {
namespace {

constexpr std::array<std::string_view, 9> kHazardCallNames{
    "copy_batch", "an engine's kernel", "an engine's free", "local_fast_put_start", "local_fast_put_commit",
    "put_abort",  "release_views",      "host_unregister",  "a host's own access"};
constexpr std::array<std::string_view, 6> kEdgeNames{"a host's wait",
                                                     "an event's record to its wait",
                                                     "submission order in a stream",
                                                     "a slot's release to its next claim",
                                                     "commit to transfer",
                                                     "unlock to lock"};

std::string_view verb_of(const HazardAccess& access) {
  switch (access.call) {
    case HazardCall::device_free:
      return "frees";
    case HazardCall::put_start:
      return "claims";
    case HazardCall::put_commit:
      return "publishes";
    case HazardCall::put_abort:
    case HazardCall::release_views:
      return "lets go of";
    case HazardCall::host_unregister:
      return "unregisters";
    case HazardCall::copy_batch:
    case HazardCall::kernel:
    case HazardCall::host_memory:
      break;
  }
  return access.write ? "writes" : "reads";
}

HazardEdge edge_between(const HazardAccess& earlier, const HazardAccess& later) {
  if (earlier.on_stream) {
    if (!later.on_stream) return HazardEdge::host_wait;
    return later.stream == earlier.stream ? HazardEdge::stream_order : HazardEdge::event_wait;
  }
  if (later.call == HazardCall::put_start) return HazardEdge::slot_reuse;
  const bool of_value = earlier.call == HazardCall::put_start || earlier.call == HazardCall::put_commit;
  if (of_value && later.call == HazardCall::copy_batch && !later.write) return HazardEdge::commit_transfer;
  return HazardEdge::lock;
}

std::string owed_between(HazardEdge edge, const HazardAccess& earlier, const HazardAccess& later) {
  const std::string_view then = name_of(later.call);
  switch (edge) {
    case HazardEdge::host_wait:
      return fmt::format(
          "stream_synchronize of stream {0}, or event_synchronize of an event recorded behind its work {1}, by host "
          "{2} "
          "before {3}",
          earlier.stream, earlier.work, later.host, then);
    case HazardEdge::event_wait:
      return fmt::format("event_record on stream {} behind its work {}, and stream_wait of stream {} before {}",
                         earlier.stream, earlier.work, later.stream, then);
    case HazardEdge::stream_order:
      return fmt::format("{}: the second copy belongs into a batch of its own", then);
    case HazardEdge::slot_reuse:
      return fmt::format("the call of host {} that ends its use of the slot, before {}", earlier.host, then);
    case HazardEdge::commit_transfer:
      return fmt::format("get_transfer by host {} of what host {} committed, before {}", later.host, earlier.host,
                         then);
    case HazardEdge::lock:
      break;
  }
  return fmt::format("a lock that host {} lets go of after {}, and host {} takes before {}", earlier.host,
                     name_of(earlier.call), later.host, then);
}

}  // namespace

std::string_view name_of(HazardCall call) { return kHazardCallNames.at(static_cast<std::size_t>(call)); }
std::string_view name_of(HazardEdge edge) { return kEdgeNames.at(static_cast<std::size_t>(edge)); }

HazardAccess HazardChecker::told(const Record& record) const {
  const Actor& actor = actors_[record.actor];
  HazardAccess access;
  access.call = record.call;
  access.write = record.write;
  access.on_stream = actor.stream;
  access.stream = actor.stream ? actor.number : 0;
  access.work = actor.stream ? record.time : 0;
  access.host = record.host;
  access.at_ns = record.at_ns;
  access.range = record.range;
  return access;
}

std::string HazardChecker::text_of(const HazardAccess& access) const {
  const std::string place = namer_ ? namer_(access.range.base) : fmt::format("{:#x}", access.range.base);
  return fmt::format(
      "{} {} {} ({} bytes, {}host {} at {} ns)", name_of(access.call), verb_of(access), place, access.range.bytes,
      access.on_stream ? fmt::format("work {} of stream {}, by ", access.work, access.stream) : std::string(),
      access.host, access.at_ns);
}

void HazardChecker::report(const Record& earlier, const Record& later, const HazardClock& clock) {
  Hazard hazard;
  hazard.earlier = told(earlier);
  hazard.later = told(later);
  hazard.missing = edge_between(hazard.earlier, hazard.later);
  hazard.owed = owed_between(hazard.missing, hazard.earlier, hazard.later);
  std::string known;
  if (hazard.missing == HazardEdge::host_wait || hazard.missing == HazardEdge::event_wait) {
    const std::uint32_t work = clock.of(earlier.actor);
    const std::string who = hazard.later.on_stream ? fmt::format("stream {}", hazard.later.stream)
                                                   : fmt::format("host {}", hazard.later.host);
    known = work == 0 ? fmt::format("; {} has waited for nothing of stream {}", who, hazard.earlier.stream)
                      : fmt::format("; {} has waited for stream {} up to work {}", who, hazard.earlier.stream, work);
  }
  hazard.text =
      fmt::format("{}, and {}, without an edge between them{}. Missing: {}, owed by {}", text_of(hazard.earlier),
                  text_of(hazard.later), known, name_of(hazard.missing), hazard.owed);
  hazard.kinds = fmt::format("{} {} and {} {}", name_of(hazard.earlier.call), verb_of(hazard.earlier),
                             name_of(hazard.later.call), verb_of(hazard.later));
  found_.push_back(std::move(hazard));
}

}  // namespace holdfast::sim
