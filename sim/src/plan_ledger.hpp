// Plans and handles as their caller knows them: what each was given for, what was copied, and how it ended.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/core/time.hpp"
#include "holdfast/sim/calls.hpp"
#include "holdfast/sim/moments.hpp"
#include "segment_ledger.hpp"

namespace holdfast::sim {

enum class PlanSort : std::uint8_t { put, read };

struct PlanSlot {
  static constexpr std::uint64_t kAnyLength = ~0ULL;
  std::uint64_t offset = 0;  // in the segment
  std::uint64_t bytes = 0;   // of the value; kAnyLength when the caller never knew
  std::uint32_t key = 0;     // index into the plan's keys
};

struct PlanRecord {
  std::uint32_t ordinal = 0;  // from 1
  PlanSort sort = PlanSort::put;
  std::uintptr_t address = 0;
  std::uint64_t value_bytes = 0;     // of a put plan
  std::uint32_t segment = kNowhere;  // of its slots; nowhere when the caller was not told of it
  std::uint32_t step = 0;
  std::uint32_t operation = 0;
  Nanos started_ns = 0;
  std::vector<std::uint32_t> keys;
  std::vector<PlanSlot> slots;  // ordered by offset

  std::uint32_t copies = 0;     // ever submitted
  std::uint32_t in_flight = 0;  // not covered by a successful wait
  bool submission_failed = false;
  bool wait_failed = false;
  bool torn_down = false;  // its copies ended with the device context
  Nanos failed_ns = 0;     // the first of these
  Call failed_call{};

  // The slot that holds the offset, if any.
  [[nodiscard]] const PlanSlot* slot_at(std::uint64_t offset) const;
};

struct HandleRecord {
  std::uint32_t ordinal = 0;  // from 1
  std::uint64_t number = 0;
  std::uint32_t epoch = 0;
  std::uint32_t step = 0;
  Nanos started_ns = 0;
  GetStart start;
  std::vector<std::uint32_t> keys;
  std::vector<std::uint32_t> damaged;  // of the keys: pinned as they were when it began
  bool transfer_refused = false;
};

// How something that is no longer live came to its end.
struct Ended {
  std::uint64_t name = 0;  // address or number
  bool handle = false;
  bool stale = false;  // by a new generation, not by a call
  std::uint32_t ordinal = 0;
  PlanSort sort = PlanSort::put;
  Call by{};
  Nanos at_ns = 0;
  std::uint32_t epoch = 0;  // of a stale one: that which ended it
};

// Records are used again once something has ended.
class PlanLedger {
 public:
  PlanRecord& open_plan();
  [[nodiscard]] std::uint32_t index_of(const PlanRecord& plan) const {
    return static_cast<std::uint32_t>(&plan - plans_.data());
  }
  [[nodiscard]] PlanRecord* find_plan(PlanPtr plan);
  [[nodiscard]] PlanRecord& plan(std::uint32_t index) { return plans_[index]; }
  [[nodiscard]] const PlanRecord& plan(std::uint32_t index) const { return plans_[index]; }
  void end_plan(PlanRecord& plan, Call by, Nanos at_ns);

  HandleRecord& open_handle();
  [[nodiscard]] HandleRecord* find_handle(GetHandle handle);
  void end_handle(HandleRecord& handle, Call by, Nanos at_ns);

  // Ends, without a call, what belongs to mappings that are not `segments`' live ones. How many there were.
  std::uint32_t end_stale(const SegmentLedger& segments, Nanos at_ns);

  // A read plan over the key, unless it is only kept because a wait for its copies failed.
  [[nodiscard]] const PlanRecord* reader_of(std::uint32_t key) const;
  [[nodiscard]] std::span<const std::uint32_t> live_plans() const { return live_plans_; }
  [[nodiscard]] std::span<const std::uint32_t> live_handles() const { return live_handles_; }
  [[nodiscard]] const HandleRecord& handle(std::uint32_t index) const { return handles_[index]; }
  // Of what by this name ended last; nothing when there never was one.
  [[nodiscard]] std::vector<Thing> ended(std::uint64_t name, bool handle) const;
  // "; plan 3 ended by put_abort at 12 ns", or that there never was one.
  [[nodiscard]] std::string how_it_ended(std::uint64_t name, bool handle) const;
  // It ended with its generation, and no earlier than that epoch ended.
  [[nodiscard]] bool went_stale_after(std::uint64_t name, bool handle, std::uint32_t epoch) const;

  // Forgets what is live; ordinals go on.
  void forget_live();
  void reset();

 private:
  static constexpr std::size_t kEndedMax = 64;
  void remember(const Ended& ended);
  [[nodiscard]] const Ended* last_of(std::uint64_t name, bool handle) const;

  std::vector<PlanRecord> plans_;
  std::vector<std::uint32_t> live_plans_;
  std::vector<std::uint32_t> spare_plans_;
  std::vector<HandleRecord> handles_;
  std::vector<std::uint32_t> live_handles_;
  std::vector<std::uint32_t> spare_handles_;
  std::vector<Ended> ended_;  // a ring
  std::size_t ended_next_ = 0;
  std::uint32_t plan_ordinal_ = 0;
  std::uint32_t handle_ordinal_ = 0;
};

Thing thing_of(const PlanRecord& plan);
std::string describe(const PlanRecord& plan);
std::string describe(const HandleRecord& handle);

}  // namespace holdfast::sim
