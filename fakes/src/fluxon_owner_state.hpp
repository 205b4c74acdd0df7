// What a FakeOwner holds: values, plans, handles, commits, and what falls due when. Private to the owner's sources.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "blob_pool.hpp"
#include "holdfast/fakes/fluxon_owner.hpp"
#include "holdfast/fakes/slots.hpp"
#include "key_table.hpp"
#include "slab.hpp"

namespace holdfast::fakes {

// A record's place in a list of its kind.
struct Link {
  std::uint32_t before = kNone;
  std::uint32_t after = kNone;
};

// A list through the `link` of the records of one slab.
struct List {
  std::uint32_t first = kNone;
  std::uint32_t last = kNone;

  template <class T>
  void append(Slab<T>& slab, std::uint32_t id) {
    slab[id].link = {last, kNone};
    (last == kNone ? first : slab[last].link.after) = id;
    last = id;
  }
  template <class T>
  void remove(Slab<T>& slab, std::uint32_t id) {
    const Link link = slab[id].link;
    (link.before == kNone ? first : slab[link.before].link.after) = link.after;
    (link.after == kNone ? last : slab[link.after].link.before) = link.before;
  }
};

// A slot in use. `removed`: the route is gone, the last holder is not.
enum class ValueState : std::uint8_t { free, prepared, local_visible, committed, removed };
struct Value {
  Link link;  // of readable values, in the order they were stored
  std::uint32_t slot = kNone;
  std::uint32_t key = kNone;
  std::uint32_t holders = 0;
  std::uint32_t use = 0;  // tells this use of the record from later ones
  std::uint32_t value_bytes = 0;
  ValueState state = ValueState::free;
  bool damaged = false;
};

struct ValueRef {
  std::uint32_t value = kNone;
  std::uint32_t use = 0;
};

enum class PlanStage : std::uint8_t {
  none,
  open,        // the client may use it
  committing,  // submitted; its values belong to the commit
  orphaned,    // the client has no way to it: slots wait for the plan time-out, pins for the client's end
  dropping,    // released: the pins drop a little later
};
struct Plan {
  Link link;  // of put plans that have slots, in the order of their time-outs
  PlanKind kind = PlanKind::put;
  PlanStage stage = PlanStage::none;
  bool expired = false;
  std::uint64_t number = 0;
  std::uint64_t generation = 0;
  std::uintptr_t blob = 0;
  std::uint64_t value_bytes = 0;
  Nanos started_at_ns = 0;
  Nanos drop_at_ns = kNever;  // dropping: when; orphaned read plans: once the client is gone
  std::vector<std::uint32_t> values;
  std::vector<std::uint32_t> keys;  // referred to while a put plan lives
  std::vector<std::string_view> names;
  std::vector<std::uintptr_t> addresses;
};

// `timed_out`: cancelling it is a no-op. `stale`: of an earlier generation.
enum class HandleStage : std::uint8_t { none, open, timed_out, stale };
struct Handle {
  Link link;  // of those that time out, in that order
  HandleStage stage = HandleStage::none;
  bool needs_transfer = false;
  std::uint64_t number = 0;
  Nanos times_out_at_ns = kNever;
  std::vector<std::uint32_t> values;      // pinned: the transferable prefix
  std::vector<std::uint64_t> group_ends;  // legal lengths
};

struct CommitRecord {
  std::uint64_t serial = 0;  // never used again, not even by later runs
  bool live = false;
  bool future_held = false;
  bool waited = false;
  bool fails = false;
  std::uint32_t events = 0;  // that still refer to it
  std::uint32_t plan = kNone;
  std::uint64_t client = 0;
  Nanos answer_at_ns = 0;
  Nanos route_after_ns = 0;
  std::vector<ValueRef> values;  // stored at once
  std::vector<std::int32_t> codes;
};

struct Event {
  enum class Kind : std::uint8_t { end_commit, route_commit, store_value, route_value, drop_orphans };
  Nanos due_ns = 0;
  std::uint64_t order = 0;
  Kind kind = Kind::end_commit;
  std::uint32_t record = 0;  // a commit or a value
  std::uint32_t use = 0;     // of the value
  Nanos route_after_ns = 0;
};

struct FakeOwner::State {
  State(SegmentMemory& segments, Arena& heap, VirtualClock& clock_in)
      : memory(segments), clock(clock_in), blobs(heap) {}

  static constexpr std::uint32_t kStaleBlob = kNone - 1;  // the mark of a plan that a restart took
  enum class Client : std::uint8_t { alive, closed, dead };

  SegmentMemory& memory;
  VirtualClock& clock;
  OwnerOptions options;
  BlobPool blobs;

  std::vector<std::unique_ptr<SlotPool>> pools;  // one a mapping, made when first needed
  std::vector<std::uint64_t> pool_incarnation;   // the last that used it; 0: none in this run
  SlotPool* pool = nullptr;
  std::uint64_t incarnation = 0;
  std::uint64_t generation = 0;
  Nanos mounted_at_ns = 0;

  Client client = Client::alive;
  std::uint64_t client_number = 0;
  bool connected = true;

  KeyTable keys;
  Slab<Value> values;
  Slab<Plan> plans;
  Slab<Handle> handles;
  Slab<CommitRecord> commits;
  List stored;
  List plan_timeouts;
  List handle_timeouts;
  std::deque<std::uint32_t> dropping;
  std::vector<std::uint32_t> orphaned_pins;
  std::vector<std::uint32_t> handle_by_number;  // at number % size, a power of two
  std::vector<Event> events;                    // a heap, the earliest first
  std::uint64_t event_order = 0;
  std::uint64_t plan_number = 0;
  std::uint64_t handle_number = 0;
  std::uint64_t batch_number = 0;
  std::uint64_t commit_serial = 0;

  std::optional<CommitChoice> commit_choice;
  std::optional<GetStartChoice> get_start_choice;
  std::optional<AbortChoice> abort_choice;
  bool release_pins_choice = false;
  std::optional<Nanos> release_delay_choice_ns;
  bool cancel_pins_choice = false;

  std::uint64_t live_plans = 0;
  std::uint64_t live_handles = 0;
  std::uint64_t undecided_commits = 0;
  std::uint64_t pins = 0;
  std::uint64_t prepared_slots = 0;
  std::uint64_t stored_keys = 0;
  std::uint64_t stored_bytes = 0;  // slots of these
  std::uint64_t held_bytes = 0;
  std::uint64_t value_damages = 0;
  std::vector<Incident> incidents;

  [[nodiscard]] SlotOptions slot_options() const {
    return {options.segment_bytes, options.grant_bytes, options.overwrite_checks};
  }
  void begin_incarnation();
  void collect_damage();
  void add_incident(IncidentKind kind, const Plan& plan);

  // What every call begins with. Calls that end something go through although nothing is mounted.
  [[nodiscard]] Status usable(std::string_view call) const;
  // `usable`, and mounted. Whoever does not reconnect by itself checks `connected` too.
  [[nodiscard]] Status reachable(std::string_view call) const;

  // Values. A value has one slot from reservation until it is free.
  std::uint32_t reserve_value(std::uint32_t key, std::uint64_t value_bytes, std::uint64_t plan_number_in);
  void free_value(std::uint32_t id);
  void unreserve_value(std::uint32_t id, bool submitted);  // stored nothing
  void store_value(std::uint32_t id, bool submitted);      // takes the place of what its key had
  void drop_route(std::uint32_t id);
  void route_value(ValueRef ref);
  void pin(std::uint32_t id);
  void unpin(std::uint32_t id);
  void unpin_all(std::vector<std::uint32_t>& ids);
  [[nodiscard]] KeyView view(std::uint32_t value) const;

  // Plans.
  // While it waits others may call, where the clock lets them. Fails also when the owner or its client has gone
  // meanwhile.
  Status wait_for_slots(std::uint64_t count, std::uint64_t value_bytes, Nanos deadline_ns, std::string_view call);
  // Why a put of the key is refused, of the plan's keys of the first.
  static Status refusal(const KeyTable::Key& key, const PutOptions& put);
  [[nodiscard]] Status refusal(const Plan& plan, const PutOptions& put);
  void give_up_start(std::uint32_t id, std::uint64_t number);
  std::uint32_t open_plan(PlanKind kind, std::uint64_t count);  // kNone: no memory for its blob
  void write_blob(const Plan& plan);
  void free_blob(Plan& plan, std::uint32_t mark = kNone);
  void unreserve_from(Plan& plan, std::uint64_t first, std::uint64_t last);
  // The open plan that a call is about to end, not counted as live any more. kNone: one of an older generation, which
  // has ended already.
  [[nodiscard]] Result<std::uint32_t> end_of_plan(PlanPtr plan, std::string_view call);
  void end_plan(std::uint32_t id);  // whatever it still had is others' by now
  void orphan_pins(std::uint32_t id);
  void drop_pins(std::uint32_t id);
  void expire_plan(std::uint32_t id);

  // Commits.
  Result<std::vector<std::int32_t>> wait(std::uint32_t commit, std::uint64_t serial, Nanos limit_ns);
  void drop_future(std::uint32_t commit, std::uint64_t serial);
  void end_if_unused(std::uint32_t commit);
  void add_event(Event event);
  void run_event(const Event& event);

  // Handles.
  [[nodiscard]] std::uint32_t find_handle(GetHandle handle) const;
  void enter_handle(std::uint32_t id);
  void end_handle(std::uint32_t id);
  void time_out_handle(std::uint32_t id);
  void hand_pins_to_orphan(std::vector<std::uint32_t>& ids);

  void end_client(Client how);
  void clear();
};

class FakeOwner::Commit final : public PendingCommit {
 public:
  Commit(State& state, std::uint32_t record, std::uint64_t serial) : state_(state), record_(record), serial_(serial) {}
  ~Commit() override { state_.drop_future(record_, serial_); }
  Result<std::vector<std::int32_t>> wait(Nanos limit_ns) override { return state_.wait(record_, serial_, limit_ns); }

 private:
  State& state_;
  std::uint32_t record_;
  std::uint64_t serial_;
};

}  // namespace holdfast::fakes
