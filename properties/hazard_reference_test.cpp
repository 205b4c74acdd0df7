// The checker against one that cannot be wrong: every pair of accesses, and a search for a way of edges between them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <optional>
#include <set>

#include "hazard_history.hpp"

namespace holdfast::sim::hazard_reference {
namespace {

constexpr std::uint32_t kHosts = 3;
constexpr std::size_t kStreams = 3;
constexpr std::size_t kEvents = 2;
constexpr std::size_t kLocks = 2;
constexpr std::size_t kSlots = 3;

enum class Act : std::uint8_t {
  batch,
  kernel,
  free_device,
  record,
  forget_event,
  stream_wait,
  wait_event,
  wait_stream,
  claim,
  commit,
  abort,
  transfer,
  release,
  release_held,
  host_access,
  unregister,
  unlock,
  lock,
  count
};

struct Call {
  Act act{};
  std::uint32_t host = 0;
  std::size_t stream = 1;
  std::size_t other = 0;            // event, lock or slot
  std::vector<RangeAccess> ranges;  // of copies: source and destination in turn

  friend std::ostream& operator<<(std::ostream& out, const Call& call) {
    out << "act " << static_cast<int>(call.act) << " host " << call.host << " stream " << call.stream << " other "
        << call.other;
    for (const RangeAccess& each : call.ranges) {
      out << (each.write ? " w " : " r ") << std::hex << each.range.base << "+" << each.range.bytes << std::dec;
    }
    return out << "\n";
  }
};

// Small ranges at the borders of granules and of one another; sometimes longer than a granule.
MemoryRange any_range() {
  const std::size_t slot = *rc::gen::inRange<std::size_t>(0, kSlots);
  const std::uint64_t offset = *rc::gen::element<std::uint64_t>(0, 1, 64, 128, HazardHistory::kSlotBytes - 1);
  const std::uint64_t bytes = *rc::gen::weightedElement<std::uint64_t>({{4, 1}, {4, 64}, {3, 65}, {2, 256}, {1, 5000}});
  const bool read_side = *rc::gen::weightedElement<bool>({{3, false}, {1, true}});
  return {(read_side ? HazardHistory::read_slot(slot) : HazardHistory::slot(slot)) + offset, bytes};
}

Call any_call() {
  Call call;
  call.act = static_cast<Act>(*rc::gen::inRange<int>(0, static_cast<int>(Act::count)));
  call.host = *rc::gen::inRange<std::uint32_t>(0, kHosts);
  call.stream = *rc::gen::inRange<std::size_t>(1, kStreams + 1);
  switch (call.act) {
    case Act::batch: {
      const int copies = *rc::gen::inRange(1, 3);
      for (int i = 0; i < copies; ++i) {
        call.ranges.push_back({any_range(), false});
        call.ranges.push_back({{any_range().base, call.ranges.back().range.bytes}, true});
      }
      break;
    }
    case Act::kernel: {
      const int count = *rc::gen::inRange(1, 3);
      for (int i = 0; i < count; ++i) call.ranges.push_back({any_range(), *rc::gen::arbitrary<bool>()});
      break;
    }
    case Act::host_access:
      call.ranges.push_back({any_range(), *rc::gen::arbitrary<bool>()});
      break;
    case Act::free_device:  // as a whole: what was accessed lies inside
      call.ranges.push_back(
          {{HazardHistory::slot(*rc::gen::inRange<std::size_t>(0, kSlots)), HazardHistory::kSlotBytes}, true});
      break;
    case Act::unregister:
      call.ranges.push_back({any_range(), true});
      break;
    case Act::record:
    case Act::forget_event:
    case Act::stream_wait:
    case Act::wait_event:
      call.other = *rc::gen::inRange<std::size_t>(1, kEvents + 1);
      break;
    case Act::unlock:
    case Act::lock:
      call.other = *rc::gen::inRange<std::size_t>(1, kLocks + 1);
      break;
    default:
      call.other = *rc::gen::inRange<std::size_t>(0, kSlots);
      break;
  }
  return call;
}

// A node for each call; edges as the contract lists them, found again by search.
class Reference {
 public:
  explicit Reference(std::uint32_t hosts) : host_last_(hosts) {}

  // Whether each access of the call, in order, races with an earlier one.
  std::vector<bool> make(const Call& call) {
    nodes_.emplace_back();
    const std::size_t node = nodes_.size() - 1;
    const bool on_stream = call.act == Act::batch || call.act == Act::kernel || call.act == Act::free_device ||
                           call.act == Act::record || call.act == Act::stream_wait;
    after(node, host_last_[call.host]);
    host_last_[call.host] = node;
    if (!on_stream) return by_host(call, node);
    // The call itself is the host's; what the stream does later is a node of its own.
    nodes_.emplace_back();
    const std::size_t work = nodes_.size() - 1;
    after(work, node);
    after(work, stream_last_[call.stream]);
    stream_last_[call.stream] = work;
    if (call.act == Act::record) events_[call.other] = work;
    if (call.act == Act::stream_wait) after(work, events_[call.other]);
    std::vector<bool> races;
    for (const RangeAccess& each : call.ranges) {
      Access access = access_of(each, work);
      access.device = true;
      access.batch = call.act == Act::batch;
      access.keep = call.act != Act::free_device;
      access.all = each.write;
      races.push_back(meet(access, {work}));
    }
    if (call.act == Act::free_device) {
      const MemoryRange freed = canonical(call.ranges.front().range);
      for (Access& access : accesses_) forget(access, freed);
      std::erase_if(lengths_, [&](std::size_t slot) { return HazardHistory::slot(slot) == freed.base; });
    }
    return races;
  }

 private:
  struct Access {
    MemoryRange range;
    bool write = false;
    bool all = false;  // it conflicts with reads too
    bool device = false;
    bool aliased = false;
    bool there = false;  // unregister
    bool batch = false;
    bool keep = true;
    std::size_t node = 0;
    std::set<std::uint64_t> forgotten;  // granules
  };

  static MemoryRange canonical(MemoryRange range) {
    if (range.base >= HazardHistory::kReadSide && range.base < HazardHistory::kReadSide + HazardHistory::kSegmentBytes)
      range.base = range.base - HazardHistory::kReadSide + HazardHistory::kSegment;
    return range;
  }
  static std::set<std::uint64_t> granules(const MemoryRange& range) {
    std::set<std::uint64_t> all;
    for (std::uint64_t at = range.base / HazardShadow::kGranuleBytes;
         at <= (range.end() - 1) / HazardShadow::kGranuleBytes; ++at)
      all.insert(at);
    return all;
  }
  static void forget(Access& access, const MemoryRange& freed) {
    if (!access.range.touches(freed)) return;
    for (const std::uint64_t granule : granules(freed)) access.forgotten.insert(granule);
  }

  static Access access_of(const RangeAccess& each, std::size_t node) {
    Access access;
    access.range = canonical(each.range);
    access.aliased = access.range.base != each.range.base;
    access.write = each.write;
    access.node = node;
    return access;
  }

  void after(std::size_t node, std::optional<std::size_t> earlier) {
    if (earlier) nodes_[node].insert(*earlier);
  }
  [[nodiscard]] bool reaches(std::size_t from, std::size_t to) const {
    if (from == to) return true;
    for (const std::size_t earlier : nodes_[from]) {
      if (earlier >= to && reaches(earlier, to)) return true;
    }
    return false;
  }

  bool meet(const Access& access, const std::vector<std::size_t>& from) {
    bool races = false;
    for (const Access& earlier : accesses_) {
      if (!earlier.range.touches(access.range)) continue;
      const bool conflicts =
          access.there ? earlier.device && earlier.aliased == access.aliased : access.all || earlier.write;
      if (!conflicts) continue;
      bool known = false;
      for (const std::uint64_t granule : granules(access.range)) {
        known = known || (granules(earlier.range).contains(granule) && !earlier.forgotten.contains(granule));
      }
      if (!known) continue;
      if (earlier.node == access.node) {
        races = races || access.batch;
        continue;
      }
      races = races ||
              std::none_of(from.begin(), from.end(), [&](std::size_t node) { return reaches(node, earlier.node); });
    }
    if (access.keep) accesses_.push_back(access);
    return races;
  }

  std::vector<bool> by_host(const Call& call, std::size_t node) {
    const std::uintptr_t slot = HazardHistory::slot(call.other);
    const auto value = [&](bool write) {
      const auto bytes = lengths_.contains(call.other) ? HazardHistory::kValueBytes : HazardHistory::kSlotBytes;
      return access_of({{slot, bytes}, write}, node);
    };
    std::vector<bool> races;
    switch (call.act) {
      case Act::forget_event:
        events_[call.other].reset();
        break;
      case Act::wait_event:
        after(node, events_[call.other]);
        break;
      case Act::wait_stream:
        after(node, stream_last_[call.stream]);
        break;
      case Act::unlock:
        locks_[call.other].push_back(node);
        break;
      case Act::lock:
        for (const std::size_t unlock : locks_[call.other]) after(node, unlock);
        break;
      case Act::claim: {
        for (const std::size_t end : let_go_[call.other]) after(node, end);
        let_go_[call.other].clear();
        lengths_.insert(call.other);
        Access access = value(true);
        access.all = true;
        races.push_back(meet(access, {node}));
        break;
      }
      case Act::commit:
        races.push_back(meet(value(false), {node}));
        committed_[call.other] = node;
        let_go_[call.other].push_back(node);
        break;
      case Act::abort: {
        Access access = value(true);
        access.all = true;
        races.push_back(meet(access, {node}));
        let_go_[call.other].push_back(node);
        break;
      }
      case Act::transfer:
        after(node, committed_[call.other]);
        break;
      case Act::release: {
        Access access = value(false);
        access.all = true;
        std::vector<std::size_t> from = let_go_[call.other];
        from.push_back(node);
        races.push_back(meet(access, from));
        let_go_[call.other].push_back(node);
        break;
      }
      case Act::release_held:
        let_go_[call.other].push_back(node);
        break;
      case Act::host_access: {
        Access access = access_of(call.ranges.front(), node);
        access.all = access.write;
        races.push_back(meet(access, {node}));
        break;
      }
      default: {
        Access access = access_of(call.ranges.front(), node);
        access.there = true;
        access.keep = false;
        races.push_back(meet(access, {node}));
        break;
      }
    }
    return races;
  }

  std::vector<std::set<std::size_t>> nodes_;  // what each comes after
  std::vector<std::optional<std::size_t>> host_last_;
  std::map<std::size_t, std::optional<std::size_t>> stream_last_;
  std::map<std::size_t, std::optional<std::size_t>> events_;
  std::map<std::size_t, std::optional<std::size_t>> committed_;
  std::map<std::size_t, std::vector<std::size_t>> locks_;
  std::map<std::size_t, std::vector<std::size_t>> let_go_;
  std::set<std::size_t> lengths_;  // slots that were claimed
  std::vector<Access> accesses_;
};

void make(HazardHistory& history, const Call& call) {
  HazardChecker& checker = history.checker;
  const HazardCaller caller = history.by(call.host);
  const StreamRef stream = HazardHistory::stream(call.stream);
  const EventRef event = HazardHistory::event(call.other);
  const std::vector<std::uintptr_t> slots{HazardHistory::slot(call.other)};
  switch (call.act) {
    case Act::batch: {
      std::vector<Copy> copies;
      for (std::size_t i = 0; i < call.ranges.size(); i += 2) {
        copies.push_back({call.ranges[i + 1].range.base, call.ranges[i].range.base, call.ranges[i].range.bytes});
      }
      return checker.copy_batch(caller, stream, copies);
    }
    case Act::kernel:
      return checker.kernel(caller, stream, call.ranges);
    case Act::free_device:
      return checker.free_device(caller, stream, call.ranges.front().range);
    case Act::record:
      return checker.event_record(caller, event, stream);
    case Act::forget_event:
      return checker.event_forget(event);
    case Act::stream_wait:
      return checker.stream_wait(caller, stream, event);
    case Act::wait_event:
      return checker.host_waited(caller, event);
    case Act::wait_stream:
      return checker.host_waited(caller, stream);
    case Act::claim:
      return checker.claim(caller, slots, HazardHistory::kValueBytes);
    case Act::commit:
      return checker.commit(caller, slots);
    case Act::abort:
      return checker.abort(caller, slots);
    case Act::transfer:
      return checker.transfer(caller, slots);
    case Act::release:
      return checker.release(caller, slots);
    case Act::release_held:
      return checker.release_held(caller, slots);
    case Act::host_access:
      return checker.host_access(caller, call.ranges.front());
    case Act::unregister:
      return checker.unregister(caller, call.ranges.front().range);
    case Act::unlock:
      return checker.unlock(call.host, call.other);
    default:
      return checker.lock(call.host, call.other);
  }
}

void compare(std::uint32_t hosts, std::size_t calls_max) {
  HazardHistory history;
  for (std::uint32_t host = 1; host < hosts; ++host) history.checker.add_host(0);
  Reference reference(hosts);
  std::size_t races_seen = 0;
  const std::size_t count = *rc::gen::inRange<std::size_t>(2, calls_max);
  for (std::size_t i = 0; i < count; ++i) {
    Call call = any_call();
    call.host %= hosts;
    RC_LOG() << call;
    make(history, call);
    const std::vector<bool> races = reference.make(call);
    const std::size_t due = static_cast<std::size_t>(std::count(races.begin(), races.end(), true));
    const std::vector<Hazard> found = history.checker.take_found();
    RC_LOG() << (found.empty() ? "" : found.front().text + "\n");
    races_seen += due;
    RC_ASSERT(found.size() == due);
  }
  RC_CLASSIFY(races_seen > 0, "has races");
}

RC_GTEST_PROP(HazardReference, FindsWhatEveryPairOfOneHostSays, ()) { compare(1, 24); }
RC_GTEST_PROP(HazardReference, FindsWhatEveryPairOfSeveralHostsSays, ()) { compare(kHosts, 40); }

}  // namespace
}  // namespace holdfast::sim::hazard_reference
