#include "holdfast/sim/hazard_checker.hpp"

#include <algorithm>

#include "holdfast/core/check.hpp"

namespace holdfast::sim {

HazardChecker::HazardChecker(Namer namer) : namer_(std::move(namer)) { reset(); }

void HazardChecker::reset() {
  actors_.clear();
  hosts_.assign(1, 0);
  Actor& first = actors_.emplace_back();
  first.clock.set(0, 1);
  streams_ = 0;
  last_stream_ = 0;
  events_.clear();
  aliases_.clear();
  locks_.clear();
  let_go_.clear();
  committed_.clear();
  shadow_.clear();
  found_.clear();
  checked_ = 0;
}

// Nothing that is known now has to be ordered with anything later: clocks may stay as they are.
void HazardChecker::forget_all() {
  shadow_.forget_records();
  events_.clear();
}

// ---- Hosts.

std::uint32_t HazardChecker::add_host(std::uint32_t maker) {
  check(actors_.size() <= UINT16_MAX, "more streams and hosts than a hazard record can tell apart");
  const auto actor = static_cast<std::uint16_t>(actors_.size());
  Actor host;
  host.number = static_cast<std::uint32_t>(hosts_.size());
  host.clock = clock_of_host(maker);
  host.clock.set(actor, 1);
  step(maker);
  actors_.push_back(std::move(host));
  hosts_.push_back(actor);
  return actors_.back().number;
}

void HazardChecker::unlock(std::uint32_t host, std::uint64_t lock) {
  if (one_host()) return;
  locks_[lock].join(clock_of_host(host));
  step(host);
}

void HazardChecker::lock(std::uint32_t host, std::uint64_t lock) {
  if (one_host()) return;
  if (const auto known = locks_.find(lock); known != locks_.end()) clock_of_host(host).join(known->second);
}

// ---- Streams and events.

std::uint16_t HazardChecker::actor_of(StreamRef stream) {
  const auto is = [&](std::size_t at) { return actors_[at].stream && actors_[at].native == stream.native(); };
  if (last_stream_ < actors_.size() && is(last_stream_)) return static_cast<std::uint16_t>(last_stream_);
  for (last_stream_ = 0; last_stream_ < actors_.size() && !is(last_stream_);) ++last_stream_;
  if (last_stream_ == actors_.size()) {
    check(actors_.size() <= UINT16_MAX, "more streams and hosts than a hazard record can tell apart");
    Actor& made = actors_.emplace_back();
    made.stream = true;
    made.native = stream.native();
    made.number = ++streams_;
  }
  return static_cast<std::uint16_t>(last_stream_);
}

std::uint16_t HazardChecker::submit(std::uint32_t host, StreamRef stream) {
  const std::uint16_t actor = actor_of(stream);
  actors_[actor].clock.join(clock_of_host(host));
  step(host);
  return actor;
}

void HazardChecker::copy_batch(const HazardCaller& caller, StreamRef stream, std::span<const Copy> copies) {
  const std::uint16_t actor = submit(caller.host, stream);
  HazardClock& clock = actors_[actor].clock;
  const std::uint32_t work = clock.of(actor) + 1;
  // The clock is ticked afterwards: the copies are not ordered with this work's own.
  for (const Copy& copy : copies) {
    Incoming source{record_of(caller, actor, HazardCall::copy_batch, {{copy.src, copy.bytes}, false})};
    Incoming destination{record_of(caller, actor, HazardCall::copy_batch, {{copy.dst, copy.bytes}, true}),
                         Against::all};
    source.record.time = destination.record.time = work;
    access(source, clock);
    access(destination, clock);
  }
  clock.set(actor, work);
}

void HazardChecker::kernel(const HazardCaller& caller, StreamRef stream, std::span<const RangeAccess> accesses) {
  const std::uint16_t actor = submit(caller.host, stream);
  HazardClock& clock = actors_[actor].clock;
  clock.tick(actor);
  for (const RangeAccess& each : accesses) {
    access({record_of(caller, actor, HazardCall::kernel, each), each.write ? Against::all : Against::writes}, clock);
  }
}

void HazardChecker::free_device(const HazardCaller& caller, StreamRef stream, const MemoryRange& memory) {
  const std::uint16_t actor = submit(caller.host, stream);
  HazardClock& clock = actors_[actor].clock;
  clock.tick(actor);
  access({record_of(caller, actor, HazardCall::device_free, {memory, true}), Against::all, false}, clock);
  shadow_.forget(canonical(memory));
}

HazardChecker::Event* HazardChecker::find(EventRef event) {
  const auto at = std::ranges::find(events_, event.native, &Event::native);
  return at == events_.end() ? nullptr : &*at;
}

void HazardChecker::event_record(const HazardCaller& caller, EventRef event, StreamRef stream) {
  const std::uint16_t actor = submit(caller.host, stream);
  Event* known = find(event);
  if (known == nullptr) known = &events_.emplace_back(Event{event.native, {}});
  known->clock = actors_[actor].clock;
}

void HazardChecker::event_forget(EventRef event) {
  std::erase_if(events_, [&](const Event& known) { return known.native == event.native; });
}

void HazardChecker::stream_wait(const HazardCaller& caller, StreamRef stream, EventRef event) {
  const std::uint16_t actor = submit(caller.host, stream);
  if (const Event* known = find(event)) actors_[actor].clock.join(known->clock);
}

void HazardChecker::host_waited(const HazardCaller& caller, EventRef event) {
  if (const Event* known = find(event)) clock_of_host(caller.host).join(known->clock);
}

void HazardChecker::host_waited(const HazardCaller& caller, StreamRef stream) {
  const std::uint16_t actor = actor_of(stream);
  clock_of_host(caller.host).join(actors_[actor].clock);
}

// ---- Slots.

RangeAccess HazardChecker::value_in(std::uintptr_t slot, bool write) {
  const MemoryRange at = canonical({slot, HazardShadow::kGranuleBytes});
  const Cell* cell = shadow_.find(at.base / HazardShadow::kGranuleBytes);
  const std::uint64_t known = cell == nullptr ? 0 : cell->value_bytes;
  return {{slot, known == 0 ? HazardShadow::kGranuleBytes : known}, write};
}

void HazardChecker::host_slots(const HazardCaller& caller, Slots slots, HazardCall call, bool write) {
  const std::uint16_t actor = hosts_[caller.host];
  const bool releases = call == HazardCall::release_views;
  // The end of what somebody held must come after all that was done under it.
  const Against against = write || releases ? Against::all : Against::writes;
  for (const std::uintptr_t slot : slots) {
    const Incoming incoming{record_of(caller, actor, call, value_in(slot, write)), against, !one_host()};
    const auto earlier = releases && !one_host() ? let_go_.find(incoming.record.range.base) : let_go_.end();
    if (earlier == let_go_.end()) {
      access(incoming, actors_[actor].clock);
      continue;
    }
    // It is the last of all holders' releases that gives the value away.
    HazardClock all = actors_[actor].clock;
    all.join(earlier->second);
    access(incoming, all);
  }
}

void HazardChecker::let_go(std::uint32_t host, Slots slots) {
  if (one_host()) return;
  for (const std::uintptr_t slot : slots) {
    let_go_[canonical({slot, 1}).base].join(clock_of_host(host));
  }
  step(host);
}

void HazardChecker::claim(const HazardCaller& caller, Slots slots, std::uint64_t value_bytes) {
  for (const std::uintptr_t slot : slots) {
    const std::uintptr_t base = canonical({slot, 1}).base;
    shadow_.cell_at(base / HazardShadow::kGranuleBytes).value_bytes = static_cast<std::uint32_t>(value_bytes);
    if (one_host()) continue;
    if (const auto ended = let_go_.find(base); ended != let_go_.end()) {
      clock_of_host(caller.host).join(ended->second);
      let_go_.erase(ended);
    }
  }
  host_slots(caller, slots, HazardCall::put_start, true);
}

void HazardChecker::commit(const HazardCaller& caller, Slots slots) {
  host_slots(caller, slots, HazardCall::put_commit, false);
  if (one_host()) return;
  for (const std::uintptr_t slot : slots) committed_[canonical({slot, 1}).base] = clock_of_host(caller.host);
  let_go(caller.host, slots);
}

void HazardChecker::abort(const HazardCaller& caller, Slots slots) {
  host_slots(caller, slots, HazardCall::put_abort, true);
  let_go(caller.host, slots);
}

void HazardChecker::transfer(const HazardCaller& caller, Slots slots) {
  if (one_host()) return;
  for (const std::uintptr_t slot : slots) {
    const auto known = committed_.find(canonical({slot, 1}).base);
    if (known != committed_.end()) clock_of_host(caller.host).join(known->second);
  }
}

void HazardChecker::release(const HazardCaller& caller, Slots slots) {
  host_slots(caller, slots, HazardCall::release_views, false);
  let_go(caller.host, slots);
}

void HazardChecker::release_held(const HazardCaller& caller, Slots slots) { let_go(caller.host, slots); }

// ---- Other host memory.

void HazardChecker::host_access(const HazardCaller& caller, const RangeAccess& host_access) {
  const std::uint16_t actor = hosts_[caller.host];
  access({record_of(caller, actor, HazardCall::host_memory, host_access),
          host_access.write ? Against::all : Against::writes, !one_host()},
         actors_[actor].clock);
}

void HazardChecker::unregister(const HazardCaller& caller, const MemoryRange& registration) {
  const std::uint16_t actor = hosts_[caller.host];
  access({record_of(caller, actor, HazardCall::host_unregister, {registration, true}), Against::work_there, false},
         actors_[actor].clock);
}

// ---- Accesses.

MemoryRange HazardChecker::canonical(const MemoryRange& range) const {
  for (const Alias& alias : aliases_) {
    if (range.base - alias.other.base < alias.other.bytes) {
      return {alias.same + (range.base - alias.other.base), range.bytes};
    }
  }
  return range;
}

HazardChecker::Record HazardChecker::record_of(const HazardCaller& caller, std::uint16_t actor, HazardCall call,
                                               const RangeAccess& access) const {
  Record record;
  record.range = canonical(access.range);
  record.aliased = record.range.base != access.range.base;
  record.at_ns = caller.at_ns;
  record.time = actors_[actor].clock.of(actor);
  record.actor = actor;
  record.host = static_cast<std::uint16_t>(caller.host);
  record.call = call;
  record.write = access.write;
  record.device = actors_[actor].stream;
  return record;
}

// A record may go once another covers its part of the granule and comes after it, so that whatever races with the one
// races with the other. Reads make no room for writes, and hosts none for work of streams, which an unregistration asks
// for.
void HazardChecker::access(const Incoming& incoming, const HazardClock& clock) {
  constexpr std::uint64_t kGranule = HazardShadow::kGranuleBytes;
  const Record& record = incoming.record;
  const HazardClock& own = actors_[record.actor].clock;
  bool counted = false;
  bool told_of = false;
  const auto meet = [&](Cell& cell) {
    const std::uintptr_t begin = std::max<std::uintptr_t>(record.range.base, cell.granule * kGranule);
    const std::uintptr_t end = std::min<std::uintptr_t>(record.range.end(), (cell.granule + 1) * kGranule);
    for (std::uint32_t* link = &cell.first; *link != HazardShadow::kNone;) {
      Record& old = shadow_.record(*link);
      bool goes = false;
      if (old.range.touches(record.range)) {
        const bool before = old.time <= clock.of(old.actor);
        const bool conflicts = incoming.against == Against::work_there ? old.device && old.aliased == record.aliased
                                                                       : incoming.against == Against::all || old.write;
        const bool same_work = old.actor == record.actor && before;
        if (conflicts && !same_work && !counted) {
          counted = true;
          ++checked_;
        }
        if (conflicts && !before && !told_of) {
          told_of = true;
          report(old, record, clock);
        }
        goes = incoming.keep && old.time <= own.of(old.actor) && (record.write || !old.write) &&
               (!old.device || (record.device && old.aliased == record.aliased)) &&
               std::max<std::uintptr_t>(old.range.base, cell.granule * kGranule) >= begin &&
               std::min<std::uintptr_t>(old.range.end(), (cell.granule + 1) * kGranule) <= end;
      }
      if (goes) {
        shadow_.drop(*link);
      } else {
        link = &old.next;
      }
    }
    if (incoming.keep) shadow_.add(cell, record);
    return true;
  };
  if (!incoming.keep) {
    shadow_.each_known(record.range, meet);
    return;
  }
  if (record.range.bytes == 0) return;
  const std::uint64_t last = (record.range.end() - 1) / kGranule;
  for (std::uint64_t granule = record.range.base / kGranule; granule <= last; ++granule) meet(shadow_.cell_at(granule));
}

}  // namespace holdfast::sim
