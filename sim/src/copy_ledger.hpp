// Which copies may be in flight: submitted, and covered by no successful host wait. Only what the caller can know,
// never how far a device has got.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/time.hpp"

namespace holdfast::sim {

// Everything that a stream was given up to a position.
struct CopyMark {
  std::uint32_t stream = 0;
  std::uint64_t position = 0;
};

struct FlightCopy {
  static constexpr std::uint32_t kNoPlan = ~0U;
  std::uintptr_t host = 0;
  std::uint64_t bytes = 0;
  std::uint32_t plan = kNoPlan;    // index of its record
  std::uint32_t plan_ordinal = 0;  // a record may be another plan's by now
};

struct FlightBatch {
  std::uint32_t ordinal = 0;  // from 1
  std::uint32_t stream = 0;
  std::uint64_t position = 0;
  CopyDirection direction = CopyDirection::device_to_host;
  bool failed = false;  // its submission: any subset may be in flight
  Nanos at_ns = 0;
  std::uint32_t step = 0;
  std::uint32_t operation = 0;
  std::vector<FlightCopy> copies;
};

class CopyLedger {
 public:
  // Streams and events are numbered from 1 in order of appearance.
  std::uint32_t stream_of(StreamRef stream);
  // 0 for an event that was never created here, or is destroyed.
  [[nodiscard]] std::uint32_t event_of(EventRef event) const;
  std::uint32_t create_event(EventRef event);
  void destroy_event(EventRef event);
  void record_event(EventRef event, std::uint32_t stream);
  // A failed record: what it captures is unknown, so it covers nothing.
  void forget_record(EventRef event);
  void stream_waits(std::uint32_t stream, EventRef event);

  FlightBatch& submit(std::uint32_t stream);

  [[nodiscard]] CopyMark all_of(std::uint32_t stream) const { return {stream, streams_[stream - 1].position}; }
  // What the event captured; position 0 when nothing.
  [[nodiscard]] CopyMark captured(EventRef event) const;

  // A successful wait: the batches before `mark`, and before what its stream waited for, are gone; `visit` sees each.
  template <class Visit>
  void cover(CopyMark mark, Visit&& visit) {
    if (!collect(mark, true)) return;
    for (const std::uint32_t index : collected_) {
      visit(pool_[index]);
      release(index);
    }
  }
  // A failed wait: the same batches stay.
  template <class Visit>
  void each_covered(CopyMark mark, Visit&& visit) {
    if (!collect(mark, false)) return;
    for (const std::uint32_t index : collected_) visit(pool_[index]);
  }
  // The device context is gone: no batch is left.
  template <class Visit>
  void drop_all(Visit&& visit) {
    for (const std::uint32_t index : live_) {
      visit(pool_[index]);
      spare_.push_back(index);
    }
    live_.clear();
    streams_.clear();
    events_.clear();
  }

  template <class Visit>
  void each_live(Visit&& visit) const {
    for (const std::uint32_t index : live_) visit(pool_[index]);
  }
  // The oldest batch that may be in flight with a copy for this plan, or within the range.
  [[nodiscard]] const FlightBatch* oldest_of_plan(std::uint32_t plan, std::uint32_t plan_ordinal) const;
  [[nodiscard]] const FlightBatch* oldest_in(std::uintptr_t base, std::uint64_t bytes) const;
  [[nodiscard]] const FlightBatch* oldest_to_host() const;
  [[nodiscard]] const FlightBatch* oldest_of_operation(std::uint32_t operation) const;

  void reset();

 private:
  // Later work of a stream waits for `upto`.
  struct Edge {
    std::uint64_t at = 0;
    CopyMark upto;
  };
  struct Stream {
    std::uintptr_t native = 0;
    std::uint64_t position = 0;  // of the last thing that it was given
    std::uint64_t covered = 0;
    std::vector<Edge> edges;
  };
  struct Event {
    std::uintptr_t native = 0;
    std::uint32_t ordinal = 0;
    CopyMark mark;
  };

  // Fills collected_ with the live batches before `mark`. False when there is none.
  bool collect(CopyMark mark, bool covering);
  void reach(CopyMark mark, bool covering);
  void release(std::uint32_t index);
  [[nodiscard]] const Event* find(EventRef event) const;

  std::vector<Stream> streams_;
  std::vector<Event> events_;
  std::vector<FlightBatch> pool_;
  std::vector<std::uint32_t> live_;  // oldest first
  std::vector<std::uint32_t> spare_;
  std::vector<CopyMark> reached_;
  std::vector<std::uint32_t> collected_;
  std::uint32_t batch_ordinal_ = 0;
  std::uint32_t event_ordinal_ = 0;
};

std::string describe(const FlightBatch& batch);

}  // namespace holdfast::sim
