// An owner that a harness can drive: its calls, what its environment may decide (a commit's fate, a route's delay, an
// eviction, a restart), and looking into it. The fake owner is one; an owner from outside is another, as far as it
// goes.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "holdfast/core/backend.hpp"
#include "holdfast/fakes/virtual_clock.hpp"

namespace holdfast::fakes {

struct OwnerOptions {
  std::uint64_t segment_bytes = 64ULL << 20;
  std::uint64_t grant_bytes = kGrantBytes;  // a multiple of 4 KiB; the longest value; at most segment_bytes is used
  std::uint64_t first_generation = 1'700'000'000;
  std::uint32_t mappings = 3;  // how many distinct mappings the generations take in turn
  Nanos route_after_ns = 25 * kMillisecond;
  Nanos holder_drop_delay_ns = kMillisecond;     // from release_views to the drop
  Nanos dead_client_reclaim_ns = 360 * kSecond;  // from a client's end to the drop of its pins
  // Poison the slots that are let go and check them. Without, late copies are not seen here.
  bool overwrite_checks = true;
};

// What becomes of one key of a commit. Code 0 needs a key that is stored; it is then not answered before it is stored.
// -117 and -118 need one that is not. A choice that breaks this aborts the program: no owner does so.
struct KeyChoice {
  enum class Fate : std::uint8_t { stored, not_stored, stored_later };
  Fate fate = Fate::stored;
  std::int32_t code = 0;
  Nanos stored_after_ns = 0;  // stored_later only; at most kSettleBound
};

struct CommitChoice {
  std::vector<KeyChoice> keys;  // shorter than the plan: the rest is stored, code 0
  Nanos answer_after_ns = 0;    // from the call until the future can be answered and the blob is freed
  bool future_fails = false;    // the wait fails instead of telling codes
  // From a value being stored to its route; the options' when not given.
  std::optional<Nanos> route_after_ns;
  bool without_bound = false;  // no honest owner: keys may be stored past kSettleBound
};

struct GetStartChoice {
  bool needs_transfer = false;  // its handle times out after kHandleTimeout
  // This key fails by itself, which looks like a miss.
  std::optional<std::uint64_t> failing_key_index;
};

// Calls that end something end it all the same when they fail, but leave things behind. Each of these lets the next
// such call fail with Network 7000 and leave behind what the contract says.
struct AbortChoice {
  std::uint64_t first_reserved_key_index = 0;  // from here on, slots stay reserved until the plan time-out
};

enum class IncidentKind : std::uint8_t {
  free_slot_written,    // found when the slot is handed out again, or its grant carved anew
  red_zone_written,     // found when a plan is committed, or a slot let go
  duplicate_key,        // one key twice in one put: undefined in a real owner
  abort_of_read_plan,   // its holders are gone
  release_of_put_plan,  // its slots are stranded until the plan time-out
};
std::string_view to_string(IncidentKind kind);

// Damage that no answer tells the caller about.
struct Incident {
  IncidentKind kind = IncidentKind::free_slot_written;
  Nanos found_at_ns = 0;
  std::string where;                   // see Owner::label
  std::uint64_t slot_offset = 0;       // in the segment
  std::uint64_t first_wrong_byte = 0;  // from the slot's start
  std::string last_key;                // who held the slot last
  std::uint64_t last_plan = 0;         // by number; 0: no plan
};
std::string to_string(const Incident& incident);

enum class KeyState : std::uint8_t {
  prepared,       // reserved by a plan, or its commit is undecided
  local_visible,  // readable, not routed yet
  committed,      // readable and routed
};

struct KeyView {
  KeyState state = KeyState::prepared;
  std::uint64_t generation = 0;
  std::uintptr_t write_address = 0;
  std::uintptr_t read_address = 0;
  std::uint64_t value_bytes = 0;
  std::uint32_t holders = 0;  // of handles and of read plans
  bool damaged = false;
};

enum class PlanKind : std::uint8_t { put, read };

// Spans and views are good until the next call that is not const. Give the view a name before a loop over its spans.
struct PlanView {
  PlanKind kind = PlanKind::put;
  std::uint64_t number = 0;  // plans are counted from 1; unlike addresses, numbers are never used again
  std::uint64_t generation = 0;
  std::span<const std::string_view> keys;
  std::span<const std::uintptr_t> addresses;  // as in the blob
  std::uint64_t value_bytes = 0;              // put plans; of the first key for read plans
  Nanos started_at_ns = 0;
  bool expired = false;     // past the plan time-out: its slots are others' by now
  bool committing = false;  // submitted, its work has not ended
};

// Where an address lies, independent of the arena's base.
struct Place {
  enum class Kind : std::uint8_t { unknown, segment, plan_blob };
  Kind kind = Kind::unknown;
  std::uint64_t incarnation = 0;  // of segments, from 1: the last that used this mapping
  bool read_side = false;
  std::uint64_t offset = 0;
};

// What an owner lets its harness do. What it does not is of no effect, and looking gives nothing.
struct OwnerPowers {
  bool shows_inside = true;   // "looking without touching"
  bool takes_choices = true;  // "what the environment decides", and events that are nobody's call
};

// One owner with at most one client, this process. Futures must not outlive it.
class Owner : public FluxonBackend, public TimedActor {
 public:
  // A new run on the same memory, as if just constructed. Reset the clock first.
  virtual void reset(const OwnerOptions& options) = 0;
  [[nodiscard]] virtual OwnerPowers powers() const { return {}; }

  // What the environment decides. Each choice holds for the next call of its kind that gets as far as using it.
  virtual void choose_next_commit(CommitChoice choice) = 0;
  virtual void choose_next_get_start(GetStartChoice choice) = 0;
  virtual void choose_next_abort(AbortChoice choice) = 0;  // "keys after the first failing one stay reserved"
  virtual void choose_next_release_pins() = 0;             // "a lost release pins until the client leaves"
  virtual void choose_next_release_drops_after(Nanos delay_ns) = 0;
  virtual void choose_next_cancel_pins() = 0;  // likewise
  // Not mounted until then: segments are waited for, and calls that begin something fail with BackendUnavailable. At
  // kNever a wait for segments fails with Timeout, in place of never coming back.
  virtual void mount_at(Nanos instant_ns) = 0;

  // Events that are nobody's call.
  // Capacity eviction of one key. False: not committed, or held.
  virtual bool evict(std::string_view key) = 0;
  // A byte of the key's value, chosen by `draw`, is another one from now on, and nobody is told. False: not committed,
  // held, or damaged before.
  virtual bool damage(std::string_view key, std::uint64_t draw) = 0;
  [[nodiscard]] std::vector<std::string> evictable_keys() const;  // in the order they were stored
  // A new generation, `generation_step` seconds later, on the next mapping. All it held is gone; old pages stay.
  virtual void restart(std::uint64_t generation_step = 1) = 0;
  // This client is gone without a word: calls answer StoreClosed 3001. Its plans keep their slots until the plan
  // time-out, its commits are decided, its pins drop after `dead_client_reclaim_ns`.
  virtual void client_died() = 0;
  // The client's own end: the same, but calls answer General 1000.
  virtual void close() = 0;
  // A client that knows nothing of the one before, which is ended if it was not.
  virtual void new_client() = 0;

  // Looking without touching.
  [[nodiscard]] virtual std::optional<KeyView> peek(std::string_view key) const = 0;
  [[nodiscard]] virtual std::optional<PlanView> plan(PlanPtr plan) const = 0;  // live ones of this client
  // Values that a live handle of this client can transfer.
  [[nodiscard]] virtual std::optional<std::uint64_t> transferable(GetHandle handle) const = 0;
  // True when a put of so many values would not wait for slots.
  [[nodiscard]] virtual bool has_room(std::uint64_t count, std::uint64_t value_bytes) const = 0;
  [[nodiscard]] virtual Segment segment() const = 0;  // the live one, mounted or not
  [[nodiscard]] virtual std::uint64_t generation() const = 0;
  [[nodiscard]] virtual std::uint64_t incarnation() const = 0;  // 1, and 1 more with each restart
  [[nodiscard]] virtual std::uint64_t live_plans() const = 0;   // neither committed, aborted nor released
  [[nodiscard]] virtual std::uint64_t live_handles() const = 0;
  [[nodiscard]] virtual std::uint64_t undecided_commits() const = 0;  // submitted, their work has not ended
  [[nodiscard]] virtual std::uint64_t holders() const = 0;            // pins on values, whoever has them
  [[nodiscard]] virtual std::uint64_t prepared_slots() const = 0;     // those of undecided commits too
  [[nodiscard]] virtual std::uint64_t stored_keys() const = 0;
  [[nodiscard]] virtual std::uint64_t stored_bytes() const = 0;  // slot bytes of these
  [[nodiscard]] virtual std::uint64_t held_bytes() const = 0;    // slot bytes that are not free
  [[nodiscard]] virtual std::uint64_t damages() const = 0;       // how many values were ever damaged
  // In the order they were stored; `visit(std::string_view, const KeyView&)`, which calls nothing of the owner.
  template <std::invocable<std::string_view, const KeyView&> Visit>
  void for_each_stored_key(Visit&& visit) const {
    using Visitor = std::remove_reference_t<Visit>;
    visit_stored_keys(
        [](void* visitor, std::string_view key, const KeyView& view) { (*static_cast<Visitor*>(visitor))(key, view); },
        const_cast<void*>(static_cast<const void*>(std::addressof(visit))));
  }
  [[nodiscard]] virtual Place place_of(std::uintptr_t address) const = 0;
  // "seg g1+0x2000", "seg g1 read+0x2000", "plan+0x40" or "?": fit for a log.
  [[nodiscard]] std::string label(std::uintptr_t address) const;
  // Looks for damage in every slot that was ever used, also where no call would find it: at the end of a run.
  virtual void check_all_slots() = 0;
  [[nodiscard]] virtual std::vector<Incident> take_incidents() = 0;
  [[nodiscard]] virtual bool has_incidents() const = 0;

 protected:
  using StoredVisitor = void (*)(void* context, std::string_view key, const KeyView& view);
  virtual void visit_stored_keys(StoredVisitor visitor, void* context) const = 0;
};

}  // namespace holdfast::fakes
