// Two accesses to the same bytes, one a write, without an ordering edge: found the first time that a history allows it,
// whether or not the timing showed it. Vector clocks; knows nothing of a store, a runtime or a fake.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/time.hpp"
#include "holdfast/sim/hazard_clock.hpp"
#include "holdfast/sim/hazard_shadow.hpp"

namespace holdfast::sim {

std::string_view name_of(HazardCall call);

// The edge that would have ordered two accesses.
enum class HazardEdge : std::uint8_t {
  host_wait,        // a successful wait of the host for the stream, or for an event recorded behind the access
  event_wait,       // an event recorded behind the access, and the other stream's wait for it
  stream_order,     // the copies of one batch have none among themselves
  slot_reuse,       // the slot's release to its next claim
  commit_transfer,  // the value's commit to its transfer
  lock,             // an unlock by the one to a lock by the other
};
std::string_view name_of(HazardEdge edge);

struct RangeAccess {
  MemoryRange range;
  bool write = false;
};

// One access as it is reported.
struct HazardAccess {
  HazardCall call{};
  bool write = false;
  bool on_stream = false;    // else by the host itself
  std::uint32_t stream = 0;  // from 1 in order of appearance
  std::uint32_t work = 0;    // which of the stream's works it was, from 1
  std::uint32_t host = 0;    // who made the call
  Nanos at_ns = 0;
  MemoryRange range;
};

struct Hazard {
  HazardAccess earlier;  // in the order of the calls
  HazardAccess later;
  HazardEdge missing{};
  std::string owed;   // the call that should have made the edge, and where
  std::string text;   // all of it, for people
  std::string kinds;  // both culprits, without numbers
};

// Who makes a call, and when. Hosts are threads or fibers, numbered from 0.
struct HazardCaller {
  std::uint32_t host = 0;
  Nanos at_ns = 0;
};

// Edges are exactly these: a host's own order; submission (the host's calls before it, and the stream's earlier work);
// an event's record to a stream's or a host's wait for it; a successful wait of a host for a stream; a slot's end or
// release to its next claim; a value's commit to its transfer; unlock to lock; and what a host's maker did before it
// made it. An owner's call is none.
//
// Only what succeeded is told: a failed wait makes no edge. Not for several threads.
class HazardChecker {
 public:
  // How an address is called in a report; in hexadecimal unless given. A report that must not vary needs one.
  using Namer = std::function<std::string(std::uintptr_t)>;

  explicit HazardChecker(Namer namer = {});

  // ---- Hosts; there is one from the beginning.
  std::uint32_t add_host(std::uint32_t maker);
  void unlock(std::uint32_t host, std::uint64_t lock);
  void lock(std::uint32_t host, std::uint64_t lock);

  // ---- Work of streams. The copies of one batch have no order among themselves; a kernel is one piece.
  void copy_batch(const HazardCaller& caller, StreamRef stream, std::span<const Copy> copies);
  void kernel(const HazardCaller& caller, StreamRef stream, std::span<const RangeAccess> accesses);
  // The last access to memory of which all earlier ones lie inside, in stream order; afterwards it is another's, and
  // nothing is known of it.
  void free_device(const HazardCaller& caller, StreamRef stream, const MemoryRange& memory);

  // ---- Edges.
  void event_record(const HazardCaller& caller, EventRef event, StreamRef stream);
  // Destroyed, or recorded without success: a wait for it orders nothing. Who waits already goes on doing so.
  void event_forget(EventRef event);
  void stream_wait(const HazardCaller& caller, StreamRef stream, EventRef event);
  void host_waited(const HazardCaller& caller, EventRef event);
  void host_waited(const HazardCaller& caller, StreamRef stream);

  // ---- Slots, by where they begin: a multiple of HazardShadow::kGranuleBytes.
  // A write of each value.
  void claim(const HazardCaller& caller, std::span<const std::uintptr_t> slots, std::uint64_t value_bytes);
  // The owner reads them from here on.
  void commit(const HazardCaller& caller, std::span<const std::uintptr_t> slots);
  // They are anybody's from here on.
  void abort(const HazardCaller& caller, std::span<const std::uintptr_t> slots);
  void transfer(const HazardCaller& caller, std::span<const std::uintptr_t> slots);
  // An owner may give them away from here on, but until it does their bytes stay for others to read.
  void release(const HazardCaller& caller, std::span<const std::uintptr_t> slots);
  // Somebody else still holds them.
  void release_held(const HazardCaller& caller, std::span<const std::uintptr_t> slots);

  // ---- Other host memory.
  void host_access(const HazardCaller& caller, const RangeAccess& access);
  // Must come after each work of a stream that uses these addresses. What hosts do there is no matter.
  void unregister(const HazardCaller& caller, const MemoryRange& registration);

  // ---- Memory.
  // The same bytes at another address.
  void alias(const MemoryRange& other, std::uintptr_t same) { aliases_.push_back({other, same}); }
  // These addresses are other bytes from now on.
  void forget(const MemoryRange& memory) { shadow_.forget(canonical(memory)); }
  // The value in the slot, as it was claimed.
  void forget_slot(std::uintptr_t slot) { forget(value_in(slot, false).range); }
  // Every work in flight has ended, and whatever begins now begins after it: the context or the process is gone.
  void forget_all();
  // As newly constructed, with the same namer.
  void reset();

  // ---- What was found: at most one hazard for each access of a call. Moves it out.
  [[nodiscard]] bool any_found() const { return !found_.empty(); }
  [[nodiscard]] std::vector<Hazard> take_found() { return std::exchange(found_, {}); }
  // How many accesses met an earlier one of somebody else's from which they needed an edge. Counts anew from here.
  [[nodiscard]] std::uint64_t take_checked() { return std::exchange(checked_, 0); }

 private:
  using Record = HazardShadow::Record;
  using Cell = HazardShadow::Cell;
  struct Actor {
    bool stream = false;
    std::uintptr_t native = 0;  // of a stream
    std::uint32_t number = 0;
    HazardClock clock;
  };
  // What an access must come after.
  enum class Against : std::uint8_t { writes, all, work_there };
  struct Incoming {
    Record record;
    Against against = Against::writes;
    bool keep = true;
  };
  struct Event {
    std::uintptr_t native = 0;
    HazardClock clock;
  };
  struct Alias {
    MemoryRange other;
    std::uintptr_t same = 0;
  };
  using Slots = std::span<const std::uintptr_t>;

  [[nodiscard]] std::uint16_t actor_of(StreamRef stream);
  [[nodiscard]] HazardClock& clock_of_host(std::uint32_t host) { return actors_[hosts_[host]].clock; }
  [[nodiscard]] bool one_host() const { return hosts_.size() == 1; }
  // What the stream is given now comes after all that the host has done.
  std::uint16_t submit(std::uint32_t host, StreamRef stream);
  // What the host does from now on is not in what it has handed on.
  void step(std::uint32_t host) { clock_of_host(host).tick(hosts_[host]); }
  [[nodiscard]] Event* find(EventRef event);

  [[nodiscard]] MemoryRange canonical(const MemoryRange& range) const;
  [[nodiscard]] Record record_of(const HazardCaller& caller, std::uint16_t actor, HazardCall call,
                                 const RangeAccess& access) const;
  [[nodiscard]] RangeAccess value_in(std::uintptr_t slot, bool write);
  void host_slots(const HazardCaller& caller, Slots slots, HazardCall call, bool write);
  void let_go(std::uint32_t host, Slots slots);

  void access(const Incoming& incoming, const HazardClock& clock);
  void report(const Record& earlier, const Record& later, const HazardClock& clock);
  [[nodiscard]] HazardAccess told(const Record& record) const;
  [[nodiscard]] std::string text_of(const HazardAccess& access) const;

  Namer namer_;
  std::vector<Actor> actors_;
  std::vector<std::uint16_t> hosts_;  // their actors
  std::uint32_t streams_ = 0;
  std::size_t last_stream_ = 0;
  std::vector<Event> events_;  // recorded ones
  std::vector<Alias> aliases_;
  std::unordered_map<std::uint64_t, HazardClock> locks_;
  // By slot, and only while there are several hosts: one is always ordered with itself.
  std::unordered_map<std::uintptr_t, HazardClock> let_go_;
  std::unordered_map<std::uintptr_t, HazardClock> committed_;
  HazardShadow shadow_;
  std::vector<Hazard> found_;
  std::uint64_t checked_ = 0;
};

}  // namespace holdfast::sim
