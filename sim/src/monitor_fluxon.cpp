// The owner's calls as their caller makes them: what each plan, handle and key may still do.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "holdfast/sim/text.hpp"
#include "monitor_impl.hpp"

namespace holdfast::sim {
namespace {

constexpr Nanos kPlanAgeMax = 20 * kMinute;  // the core's own limit, as the contract has it

// The addresses of a plan's blob; empty when it is not one for so many keys.
std::span<const std::uint64_t> decode(PlanPtr plan, std::size_t count) {
  if (plan.address == 0 || plan.address % alignof(std::uint64_t) != 0) return {};
  const auto* words = reinterpret_cast<const std::uint64_t*>(plan.address);
  if (words[0] != kPlanMagic || words[1] != count) return {};
  return {words + 2, count};
}

}  // namespace

// A future whose answer the monitor sees.
struct Monitor::Impl::Pending final : PendingCommit {
  Impl& monitor;
  FluxonBackend::Future below;
  std::uint32_t plan = 0;  // ordinal
  std::vector<std::uint32_t> keys;

  Pending(Impl& impl, FluxonBackend::Future future, std::uint32_t ordinal, std::vector<std::uint32_t> of_keys)
      : monitor(impl), below(std::move(future)), plan(ordinal), keys(std::move(of_keys)) {}

  Result<std::vector<std::int32_t>> wait(Nanos limit_ns) override {
    auto answer = below.wait(limit_ns);
    auto& fields = monitor.count_call();
    fields = {plan, static_cast<std::uint64_t>(limit_ns)};
    std::size_t failed = 0;
    if (answer) {
      for (const std::int32_t code : *answer) {
        fields.push_back(static_cast<std::uint64_t>(static_cast<std::int64_t>(code)));
        failed += code == 0 ? 0 : 1;
      }
    }
    monitor.about(ThingKind::put_plan, plan);
    monitor.log(Call::commit_wait, answer, [&] {
      return answer ? fmt::format("plan {}: {} of {} keys stored", plan, answer->size() - failed, answer->size())
                    : fmt::format("plan {}", plan);
    });
    MarkCounts& marks = monitor.context.marks;
    if (!answer) {
      if (is_fluxon(answer.error(), FluxonErrc::timeout)) marks.reach(Mark::future_past_patience);
      monitor.operation.commit_failed = true;
      return answer;
    }
    if (failed == 1 && answer->size() > 1) marks.reach(Mark::commit_one_key_nonzero);
    if (failed > 0) monitor.operation.commit_failed = true;
    for (std::size_t i = 0; i < std::min(answer->size(), keys.size()); ++i) told(keys[i], (*answer)[i]);
    return answer;
  }

  void told(std::uint32_t key, std::int32_t code) const {
    KeyRecord& record = monitor.claims.at(key);
    switch (outcome_of(code)) {
      case KeyOutcome::stored:
        record.stored = true;
        record.unknown_operation = 0;
        record.stored_operation = monitor.operation.ordinal;
        break;
      case KeyOutcome::not_stored:
        monitor.claims.decide(key, false);
        break;
      case KeyOutcome::unknown:
        break;  // as it was since the commit
    }
  }
};

struct Monitor::Impl::Fluxon final : FluxonBackend {
  Impl& monitor;
  std::vector<std::uint32_t> scratch;  // the keys of the call

  explicit Fluxon(Impl& impl) : monitor(impl) {}

  [[nodiscard]] FluxonBackend& below() const { return monitor.below_fluxon; }

  void add_keys(Keys keys) {
    scratch.clear();
    for (const std::string_view key : keys) {
      scratch.push_back(monitor.claims.key(key));
      monitor.fields.push_back(monitor.claims.at(scratch.back()).hash);
    }
  }

  // Whose keys these are, for people.
  [[nodiscard]] std::string whose() const { return whose(scratch); }
  [[nodiscard]] std::string whose(std::span<const std::uint32_t> keys) const {
    if (keys.empty()) return "no keys";
    const KeyRecord& record = monitor.claims.at(keys.front());
    std::string text = counted(keys.size(), "key");
    if (record.node != kNobody) {
      text += fmt::format(", {} of {}", name_of(record.claim), monitor.name(monitor.claims.node(record.node)));
    }
    return text;
  }

  // Notes the plan's slots, as its blob says, and whether that can be so.
  void note_slots(PlanRecord& plan, PlanPtr ptr) {
    const std::span<const std::uint64_t> addresses = decode(ptr, plan.keys.size());
    sound = addresses.size() == plan.keys.size();
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const HostPlace place = monitor.segments.locate(addresses[i]);
      sound &= place.segment != kNowhere && place.offset % kSlotAlignment == 0 &&
               (place.read_side == (plan.sort == PlanSort::read) || !monitor.segments.has_two_mappings(place.segment));
      if (place.segment == kNowhere || (i > 0 && place.segment != plan.segment)) {
        plan.segment = kNowhere;
        plan.slots.clear();
        break;
      }
      plan.segment = place.segment;
      const std::uint64_t known = monitor.claims.at(plan.keys[i]).bytes;
      const std::uint64_t bytes = plan.sort == PlanSort::put ? plan.value_bytes
                                  : known == 0               ? PlanSlot::kAnyLength
                                                             : known;
      plan.slots.push_back({place.offset, bytes, static_cast<std::uint32_t>(i)});
      monitor.fields.push_back(place.offset);
    }
    monitor.fields.push_back(plan.segment);
    std::ranges::sort(plan.slots, {}, &PlanSlot::offset);
    sound &= std::ranges::adjacent_find(plan.slots, {}, &PlanSlot::offset) == plan.slots.end();
  }
  bool sound = false;  // the last plan's blob: one that its caller has no reason to refuse

  void open_plan(PlanSort sort, PlanPtr ptr, std::span<const std::uint32_t> keys, std::uint64_t value_bytes) {
    PlanRecord& plan = monitor.plans.open_plan();
    plan.sort = sort;
    plan.address = ptr.address;
    plan.value_bytes = value_bytes;
    plan.step = monitor.context.step;
    plan.operation = monitor.operation.ordinal;
    plan.started_ns = monitor.now();
    plan.keys.assign(keys.begin(), keys.end());
    note_slots(plan, ptr);
    monitor.fields.push_back(plan.ordinal);
    opened = plan.ordinal;
    if (monitor.context.on_moment) {
      const Call by = sort == PlanSort::put ? Call::local_fast_put_start : Call::get_transfer;
      monitor.tell_opened(plan, by, whose(keys));
    }
  }
  void end_live(PlanRecord& plan, Call by) {
    if (monitor.context.on_moment) monitor.tell_closed(thing_of(plan), by);
    monitor.plans.end_plan(plan, by, monitor.now());
  }
  void end_live(HandleRecord& handle, Call by) {
    if (monitor.context.on_moment) monitor.tell_closed({ThingKind::handle, handle.ordinal}, by);
    monitor.plans.end_handle(handle, by, monitor.now());
  }
  std::uint32_t opened = 0;  // the ordinal of the last plan

  // A caller that believes anything else has only itself to blame.
  static bool could_be(std::span<const Segment> segments) {
    const auto mapped = [](std::uintptr_t base, std::uint64_t bytes) { return base != 0 && base + bytes > base; };
    return !segments.empty() && std::ranges::all_of(segments, [&](const Segment& segment) {
      return mapped(segment.write_ptr, segment.len) && mapped(segment.read_ptr, segment.len);
    });
  }

  Result<std::vector<Segment>> wait_local_segments_ready() override {
    auto answer = below().wait_local_segments_ready();
    auto& fields = monitor.count_call();
    if (answer) {
      for (const Segment& segment : *answer) {
        fields.push_back(segment.len);
        fields.push_back(segment.generation);
      }
    }
    monitor.log(Call::wait_local_segments_ready, answer, [&] {
      return !answer || answer->empty() ? std::string("no segment")
                                        : fmt::format("{} of {} bytes, generation {}", answer->front().segment_label,
                                                      answer->front().len, answer->front().generation);
    });
    if (answer && could_be(*answer)) {
      monitor.hear(*answer);
    } else {
      monitor.operation.looks_failed = true;
    }
    return answer;
  }

  Result<PlanPtr> local_fast_put_start(Keys keys, std::uint64_t value_len, const PutOptions& options) override {
    if (monitor.watch_put) monitor.watch_put(keys.size() * slot_bytes(value_len));
    auto answer = below().local_fast_put_start(keys, value_len, options);
    auto& fields = monitor.count_call();
    fields = {value_len,
              std::uint64_t{options.reject_if_exists} | std::uint64_t{options.reject_if_being_written} << 1U};
    add_keys(keys);
    OperationRecord& operation = monitor.operation;
    for (std::size_t i = 0; i < scratch.size() && operation.source != kNobody; ++i) {
      const KeyParts parts = parts_of(keys[i]);
      monitor.claims.assign(scratch[i], monitor.claims.node_of_locator(parts.locator, operation.source), parts.claim);
    }
    if (answer) {
      open_plan(PlanSort::put, *answer, scratch, value_len);
      started(options);
    } else {
      refused(answer.error());
    }
    monitor.log(Call::local_fast_put_start, answer, [&] {
      return fmt::format("{}{} of {} bytes", answer ? fmt::format("plan {}: ", opened) : "", whose(), value_len);
    });
    return answer;
  }

  void started(const PutOptions& options) {
    MarkCounts& marks = monitor.context.marks;
    for (const std::uint32_t key : scratch) {
      KeyRecord& record = monitor.claims.at(key);
      // Accepted under both flags: neither stored nor being stored.
      if (options.reject_if_exists && options.reject_if_being_written) monitor.claims.decide(key, false);
      if (record.start_lost_ns != KeyRecord::kNeverCommitted && monitor.now() >= record.start_lost_ns + kPlanTimeout) {
        marks.reach(Mark::put_start_lost_returned);
      }
      record.start_lost_ns = KeyRecord::kNeverCommitted;
    }
  }

  void refused(const Error& error) {
    MarkCounts& marks = monitor.context.marks;
    const bool second = std::ranges::any_of(monitor.plans.live_plans(), [&](std::uint32_t index) {
      const PlanRecord& plan = monitor.plans.plan(index);
      return plan.sort == PlanSort::put && plan.operation == monitor.operation.ordinal;
    });
    if (second) marks.reach(Mark::second_plan_refused);
    if (is_fluxon(error, FluxonErrc::key_being_written)) marks.reach(Mark::put_written_elsewhere);
    if (is_fluxon(error, FluxonErrc::key_already_exists)) {
      const bool known = std::ranges::any_of(scratch, [&](std::uint32_t key) { return monitor.claims.at(key).stored; });
      if (!known) marks.reach(Mark::put_key_in_flight);
    }
    if (is_fluxon(error, FluxonErrc::network)) {
      for (const std::uint32_t key : scratch) {
        KeyRecord& record = monitor.claims.at(key);
        if (record.start_lost_ns == KeyRecord::kNeverCommitted) record.start_lost_ns = monitor.now();
      }
    }
  }

  // The live plan that a call is about to end. A violation when there is none of the right kind.
  PlanRecord* ending(PlanPtr ptr, PlanSort sort, Call call) {
    PlanRecord* plan = monitor.plans.find_plan(ptr);
    monitor.context.verdicts.checked(Invariant::one_terminal);
    if (plan == nullptr && monitor.excusable(ptr.address, false)) return nullptr;
    if (plan == nullptr) {
      monitor.violate(Invariant::one_terminal, call,
                      fmt::format("{} at {} ns of a plan that is not live: {}", name_of(call), monitor.now(),
                                  monitor.plans.how_it_ended(ptr.address, false)),
                      monitor.plans.how_it_ended(ptr.address, false), monitor.plans.ended(ptr.address, false));
      return nullptr;
    }
    if (plan->sort != sort) {
      monitor.violate(
          Invariant::one_terminal, call,
          fmt::format("{} at {} ns is the wrong kind of call for {}", name_of(call), monitor.now(), describe(*plan)),
          describe(*plan), {thing_of(*plan)});
      return nullptr;
    }
    return plan;
  }

  void check_landed(const PlanRecord& plan, Invariant invariant, Call call) {
    if (plan.copies == 0) return;
    monitor.context.verdicts.checked(invariant);
    if (plan.in_flight == 0) return;
    const FlightBatch* batch = monitor.copies.oldest_of_plan(monitor.plans.index_of(plan), plan.ordinal);
    monitor.violate(
        invariant, call,
        fmt::format("{} at {} ns of {} while {} may be in flight: no successful wait covers it", name_of(call),
                    monitor.now(), describe(plan), batch == nullptr ? "a copy" : describe(*batch)),
        fmt::format("{} and batch {}", describe(plan), batch == nullptr ? "" : to_string(batch->direction)),
        {thing_of(plan), {ThingKind::batch, batch == nullptr ? 0 : batch->ordinal}});
  }

  Result<Future> local_fast_put_commit(PlanPtr ptr) override {
    constexpr Call kCall = Call::local_fast_put_commit;
    PlanRecord* plan = ending(ptr, PlanSort::put, kCall);
    const Nanos submitted_ns = monitor.now();
    if (plan != nullptr) {
      check_landed(*plan, Invariant::sync_before_commit, kCall);
      if (plan->in_flight == 0 && (plan->submission_failed || plan->wait_failed)) {
        monitor.violate(Invariant::sync_before_commit, kCall,
                        fmt::format("commit at {} ns of {}, whose copies are not known to have succeeded: {} failed at "
                                    "{} ns",
                                    submitted_ns, describe(*plan), name_of(plan->failed_call), plan->failed_ns),
                        fmt::format("failed {}", name_of(plan->failed_call)), {thing_of(*plan)});
      }
      note_age(*plan);
    }
    auto answer = below().local_fast_put_commit(ptr);
    monitor.count_call().push_back(plan == nullptr ? 0 : plan->ordinal);
    if (plan != nullptr) monitor.about(ThingKind::put_plan, plan->ordinal);
    monitor.log(kCall, answer, [&] { return fmt::format("plan {}", plan == nullptr ? 0 : plan->ordinal); });
    if (plan == nullptr) return answer;
    const bool refused = !answer && (is_fluxon(answer.error(), FluxonErrc::invalid_argument) ||
                                     is_fluxon(answer.error(), FluxonErrc::store_closed) ||
                                     is_fluxon(answer.error(), FluxonErrc::general));
    if (!refused) {
      for (const std::uint32_t key : plan->keys) committed(*plan, key, submitted_ns);
    }
    if (!answer) monitor.operation.commit_failed = true;
    const std::uint32_t ordinal = plan->ordinal;
    if (answer) {
      answer = Future(std::make_unique<Pending>(monitor, std::move(*answer), ordinal, plan->keys));
    }
    end_live(*plan, kCall);
    return answer;
  }

  void committed(const PlanRecord& plan, std::uint32_t key, Nanos submitted_ns) {
    KeyRecord& record = monitor.claims.at(key);
    record.last_commit_ns = submitted_ns;
    record.bytes = plan.value_bytes;
    record.epoch = plan.segment == kNowhere ? monitor.segments.epoch() : monitor.segments.epoch_of(plan.segment);
    record.stored = false;
    record.read_plan = 0;
    record.unknown_operation = monitor.operation.ordinal;
  }

  void note_age(const PlanRecord& plan) {
    if (monitor.now() - plan.started_ns >= kPlanTimeout) monitor.context.marks.reach(Mark::slot_freed_under_plan);
  }

  Status put_abort(PlanPtr ptr) override {
    PlanRecord* plan = ending(ptr, PlanSort::put, Call::put_abort);
    if (plan != nullptr) {
      check_landed(*plan, Invariant::abort_after_sync, Call::put_abort);
      note_age(*plan);
      MarkCounts& marks = monitor.context.marks;
      if (monitor.now() - plan->started_ns >= kPlanAgeMax) marks.reach(Mark::plan_aborted_for_age);
      if (plan->copies == 0) marks.reach(Mark::abort_nothing_submitted);
      if (plan->in_flight == 0 && plan->submission_failed && !plan->torn_down) {
        marks.reach(Mark::abort_after_partial_batch);
      }
      if (plan->in_flight == 0 && plan->wait_failed && !plan->torn_down) marks.reach(Mark::abort_after_later_wait);
    }
    return end_plan(plan, Call::put_abort, below().put_abort(ptr));
  }

  Status release_views(PlanPtr ptr) override {
    PlanRecord* plan = ending(ptr, PlanSort::read, Call::release_views);
    if (plan != nullptr) check_landed(*plan, Invariant::abort_after_sync, Call::release_views);
    return end_plan(plan, Call::release_views, below().release_views(ptr));
  }

  Status end_plan(PlanRecord* plan, Call call, Status answer) {
    monitor.count_call().push_back(plan == nullptr ? 0 : plan->ordinal);
    if (plan != nullptr) monitor.context.about = thing_of(*plan);
    monitor.log(call, answer, [&] { return fmt::format("plan {}", plan == nullptr ? 0 : plan->ordinal); });
    if (plan != nullptr) end_live(*plan, call);
    return answer;
  }

  Result<GetStart> get_start(Keys keys, bool prefix_best_effort,
                             std::span<const std::uint32_t> atomic_group_lens) override {
    const Nanos submitted_ns = monitor.now();
    monitor.operation.epoch_at_get = monitor.operation.epoch_at_call;
    auto answer = below().get_start(keys, prefix_best_effort, atomic_group_lens);
    auto& fields = monitor.count_call();
    fields = {std::uint64_t{prefix_best_effort}, atomic_group_lens.size()};
    add_keys(keys);
    std::uint32_t ordinal = 0;
    if (answer) {
      fields.push_back(answer->raw_prefix_hit_len);
      fields.push_back(answer->transferable_len);
      HandleRecord& handle = monitor.plans.open_handle();
      ordinal = handle.ordinal;
      handle.number = answer->handle.number;
      handle.epoch = monitor.segments.epoch();
      handle.step = monitor.context.step;
      handle.started_ns = monitor.now();
      handle.start = *answer;
      handle.keys.assign(scratch.begin(), scratch.end());
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (monitor.tap.is_damaged(keys[i])) handle.damaged.push_back(scratch[i]);
      }
      if (monitor.context.on_moment) monitor.tell_opened(handle, whose());
      found(answer->raw_prefix_hit_len, submitted_ns);
    }
    monitor.note_get(keys, scratch, atomic_group_lens.size(), answer);
    monitor.log(Call::get_start, answer, [&] {
      return answer ? fmt::format("handle {}: {}, {} found, {} transferable", ordinal, whose(),
                                  answer->raw_prefix_hit_len, answer->transferable_len)
                    : whose();
    });
    return answer;
  }

  // The prefix is readable, the key behind it was missed; after the bound this decides what was unknown.
  void found(std::uint64_t hits, Nanos submitted_ns) {
    for (std::size_t i = 0; i < std::min<std::size_t>(hits + 1, scratch.size()); ++i) {
      KeyRecord& record = monitor.claims.at(scratch[i]);
      const bool decided = submitted_ns >= record.last_commit_ns + kSettleBound;
      if (i < hits) {
        if (decided) monitor.claims.decide(scratch[i], true);
        continue;
      }
      record.stored = false;
      record.read_plan = 0;
      if (decided) monitor.claims.decide(scratch[i], false);
      if (record.node == kNobody) continue;
      const NodeRecord& node = monitor.claims.node(record.node);
      if (node.claims != (bit_of(Claim::kv) | bit_of(Claim::latent))) continue;
      monitor.context.marks.reach(record.claim == Claim::latent ? Mark::latent_missing : Mark::blob_missing);
    }
  }

  HandleRecord* ending(GetHandle number, Call call) {
    monitor.context.verdicts.checked(Invariant::one_terminal);
    HandleRecord* handle = monitor.plans.find_handle(number);
    // Whether the handle is the owner's of before, or of after, what another operation told of meanwhile, its caller
    // cannot know: a cancel does no harm.
    const bool unknowable = call == Call::cancel_get_transfer && monitor.side_by_side &&
                            monitor.plans.went_stale_after(number.number, true, monitor.operation.epoch_at_get);
    if (handle == nullptr && !unknowable && !monitor.excusable(number.number, true)) {
      monitor.violate(Invariant::one_terminal, call,
                      fmt::format("{} at {} ns of a handle that is not live: {}", name_of(call), monitor.now(),
                                  monitor.plans.how_it_ended(number.number, true)),
                      monitor.plans.how_it_ended(number.number, true), monitor.plans.ended(number.number, true));
    }
    return handle;
  }

  Result<PlanPtr> get_transfer(GetHandle number, std::uint64_t prefix_len) override {
    constexpr Call kCall = Call::get_transfer;
    HandleRecord* handle = ending(number, kCall);
    auto answer = below().get_transfer(number, prefix_len);
    const std::uint32_t ordinal = handle == nullptr ? 0 : handle->ordinal;
    auto& fields = monitor.count_call();
    fields = {ordinal, prefix_len};
    if (handle != nullptr && answer) {
      const std::span<const std::uint32_t> keys(handle->keys.data(),
                                                std::min<std::size_t>(prefix_len, handle->keys.size()));
      open_plan(PlanSort::read, *answer, keys, 0);
      for (const std::uint32_t key : keys) readable(key);
      // Through a plan that cannot be, nothing is read.
      if (sound) monitor.note_damaged(*handle, keys);
    }
    monitor.about(ThingKind::handle, ordinal);
    monitor.log(kCall, answer, [&] {
      return fmt::format("handle {}, {}{}", ordinal, counted(prefix_len, "key"),
                         answer ? fmt::format(": plan {}", opened) : "");
    });
    if (handle == nullptr) return answer;
    if (answer) {
      end_live(*handle, kCall);
    } else {
      not_transferred(*handle, answer.error());
    }
    return answer;
  }

  void not_transferred(HandleRecord& handle, const Error& error) {
    MarkCounts& marks = monitor.context.marks;
    if (is_fluxon(error, FluxonErrc::key_not_found)) monitor.note_vanished(handle);
    if (is_fluxon(error, FluxonErrc::key_not_found) && handle.start.all_hit) marks.reach(Mark::transfer_not_found);
    if (monitor.now() - handle.started_ns >= kHandleTimeout) marks.reach(Mark::handle_timed_out);
    if (is_fluxon(error, FluxonErrc::invalid_argument)) {
      handle.transfer_refused = true;  // and lives
      return;
    }
    end_live(handle, Call::get_transfer);
  }

  // The last plan opened proves the key stored, if its commit has been decided for sure.
  void readable(std::uint32_t key) {
    KeyRecord& record = monitor.claims.at(key);
    const bool known = record.stored && record.epoch == monitor.segments.epoch();
    if (!known && monitor.now() < record.last_commit_ns + kSettleBound) return;
    record.read_plan = opened;
    record.read_operation = monitor.operation.ordinal;
    if (!known) monitor.claims.decide(key, true);
  }

  Status cancel_get_transfer(GetHandle number) override {
    constexpr Call kCall = Call::cancel_get_transfer;
    HandleRecord* handle = ending(number, kCall);
    auto answer = below().cancel_get_transfer(number);
    monitor.count_call().push_back(handle == nullptr ? 0 : handle->ordinal);
    monitor.about(ThingKind::handle, handle == nullptr ? 0 : handle->ordinal);
    monitor.log(kCall, answer, [&] { return fmt::format("handle {}", handle == nullptr ? 0 : handle->ordinal); });
    if (handle == nullptr) return answer;
    MarkCounts& marks = monitor.context.marks;
    if (handle->start.raw_prefix_hit_len > 0 && !handle->start.all_hit) marks.reach(Mark::partial_prefix_cancelled);
    if (handle->transfer_refused) marks.reach(Mark::transfer_refused);
    end_live(*handle, kCall);
    return answer;
  }

  Status remove(std::string_view key_name) override {
    const std::uint32_t key = monitor.claims.key(key_name);
    monitor.removing(key, key_name);
    Status answer = below().remove(key_name);
    monitor.count_call().push_back(monitor.claims.at(key).hash);
    monitor.log(Call::remove, answer, [&] { return std::string(key_name); });
    monitor.removed(key, answer);
    return answer;
  }

  Status put(std::string_view key_name, std::span<const std::byte> bytes) override {
    Status answer = below().put(key_name, bytes);
    const std::uint32_t key = monitor.claims.key(key_name);
    KeyRecord& record = monitor.claims.at(key);
    monitor.count_call() = {record.hash, bytes.size()};
    monitor.log(Call::put, answer, [&] { return fmt::format("{}: {} bytes", key_name, bytes.size()); });
    record.last_commit_ns = monitor.now();
    record.bytes = bytes.size();
    record.epoch = monitor.segments.epoch();
    record.stored = answer.has_value();
    record.read_plan = 0;
    record.unknown_operation = answer ? 0 : monitor.operation.ordinal;
    return answer;
  }

  Result<std::vector<std::byte>> get(std::string_view key_name) override {
    auto answer = below().get(key_name);
    monitor.count_call() = {hash_of(key_name), answer ? answer->size() : 0};
    monitor.log(Call::get, answer, [&] { return std::string(key_name); });
    return answer;
  }
};

std::unique_ptr<FluxonBackend> Monitor::Impl::make_fluxon() { return std::make_unique<Fluxon>(*this); }

}  // namespace holdfast::sim
