#include "copy_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/sim/text.hpp"

namespace holdfast::sim {

std::uint32_t CopyLedger::stream_of(StreamRef stream) {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i].native == stream.native()) return static_cast<std::uint32_t>(i + 1);
  }
  streams_.push_back({stream.native(), 0, 0, {}});
  return static_cast<std::uint32_t>(streams_.size());
}

const CopyLedger::Event* CopyLedger::find(EventRef event) const {
  const auto at = std::ranges::find(events_, event.native, &Event::native);
  return at == events_.end() ? nullptr : &*at;
}

std::uint32_t CopyLedger::event_of(EventRef event) const {
  const Event* found = find(event);
  return found == nullptr ? 0 : found->ordinal;
}

std::uint32_t CopyLedger::create_event(EventRef event) {
  destroy_event(event);
  events_.push_back({event.native, ++event_ordinal_, {}});
  return event_ordinal_;
}

void CopyLedger::destroy_event(EventRef event) {
  std::erase_if(events_, [&](const Event& known) { return known.native == event.native; });
}

void CopyLedger::record_event(EventRef event, std::uint32_t stream) {
  if (const Event* found = find(event)) events_[static_cast<std::size_t>(found - events_.data())].mark = all_of(stream);
}

void CopyLedger::forget_record(EventRef event) {
  if (const Event* found = find(event)) events_[static_cast<std::size_t>(found - events_.data())].mark = {};
}

CopyMark CopyLedger::captured(EventRef event) const {
  const Event* found = find(event);
  return found == nullptr ? CopyMark{} : found->mark;
}

void CopyLedger::stream_waits(std::uint32_t stream, EventRef event) {
  const CopyMark upto = captured(event);
  if (upto.position == 0 || upto.stream == stream) return;
  // Without batches there is nothing to wait for, and edges would pile up.
  if (live_.empty()) return;
  Stream& waiting = streams_[stream - 1];
  waiting.edges.push_back({++waiting.position, upto});
}

FlightBatch& CopyLedger::submit(std::uint32_t stream) {
  std::uint32_t index = 0;
  if (spare_.empty()) {
    index = static_cast<std::uint32_t>(pool_.size());
    pool_.emplace_back();
  } else {
    index = spare_.back();
    spare_.pop_back();
  }
  live_.push_back(index);
  FlightBatch& batch = pool_[index];
  batch.copies.clear();
  batch.ordinal = ++batch_ordinal_;
  batch.stream = stream;
  batch.position = ++streams_[stream - 1].position;
  batch.failed = false;
  return batch;
}

// Edges lead to what was there before them, so this ends.
void CopyLedger::reach(CopyMark mark, bool covering) {
  if (mark.position == 0) return;
  Stream& stream = streams_[mark.stream - 1];
  if (mark.position <= stream.covered) return;
  reached_.push_back(mark);
  if (covering) stream.covered = mark.position;
  for (std::size_t i = 0; i < streams_[mark.stream - 1].edges.size(); ++i) {
    const Edge edge = streams_[mark.stream - 1].edges[i];
    if (edge.at <= mark.position) reach(edge.upto, covering);
  }
  if (covering) {
    std::erase_if(streams_[mark.stream - 1].edges, [&](const Edge& edge) { return edge.at <= mark.position; });
  }
}

bool CopyLedger::collect(CopyMark mark, bool covering) {
  collected_.clear();
  reached_.clear();
  reach(mark, covering);
  if (reached_.empty() || live_.empty()) return false;
  for (const std::uint32_t index : live_) {
    const FlightBatch& batch = pool_[index];
    const bool before = std::ranges::any_of(reached_, [&](const CopyMark& reached) {
      return reached.stream == batch.stream && batch.position <= reached.position;
    });
    if (before) collected_.push_back(index);
  }
  return !collected_.empty();
}

void CopyLedger::release(std::uint32_t index) {
  std::erase(live_, index);
  spare_.push_back(index);
}

const FlightBatch* CopyLedger::oldest_of_plan(std::uint32_t plan, std::uint32_t plan_ordinal) const {
  for (const std::uint32_t index : live_) {
    const bool has = std::ranges::any_of(pool_[index].copies, [&](const FlightCopy& copy) {
      return copy.plan == plan && copy.plan_ordinal == plan_ordinal;
    });
    if (has) return &pool_[index];
  }
  return nullptr;
}

const FlightBatch* CopyLedger::oldest_in(std::uintptr_t base, std::uint64_t bytes) const {
  for (const std::uint32_t index : live_) {
    const bool has = std::ranges::any_of(pool_[index].copies, [&](const FlightCopy& copy) {
      return copy.host < base + bytes && base < copy.host + copy.bytes;
    });
    if (has) return &pool_[index];
  }
  return nullptr;
}

const FlightBatch* CopyLedger::oldest_to_host() const {
  for (const std::uint32_t index : live_) {
    if (pool_[index].direction == CopyDirection::device_to_host) return &pool_[index];
  }
  return nullptr;
}

const FlightBatch* CopyLedger::oldest_of_operation(std::uint32_t operation) const {
  for (const std::uint32_t index : live_) {
    if (pool_[index].operation == operation) return &pool_[index];
  }
  return nullptr;
}

void CopyLedger::reset() {
  drop_all([](const FlightBatch&) {});
  batch_ordinal_ = event_ordinal_ = 0;
}

std::string describe(const FlightBatch& batch) {
  return fmt::format("batch {} ({} {}, stream {}, of {}, submitted at {} ns{})", batch.ordinal,
                     counted(batch.copies.size(), "copy", "copies"), to_string(batch.direction), batch.stream,
                     step_text(batch.step), batch.at_ns, batch.failed ? ", which failed" : "");
}

}  // namespace holdfast::sim
