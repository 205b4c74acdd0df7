// The Plan tier store: device tensors straight to and from an owner's slots, by put plans and read plans.
//
// Order of a put: validate everything; start a plan per value size; decode; submit; a successful wait; commit; wait for
// every future; check every code. Only then may the caller publish. Order of a read: start, transfer, decode, validate,
// submit, wait, release. What is overlapped of it: see plan_put.hpp and plan_read.hpp. On every path each plan and
// handle ends exactly once.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/plan_put.hpp"
#include "holdfast/core/plan_read.hpp"
#include "holdfast/core/segment_call.hpp"
#include "holdfast/core/tier_store.hpp"
#include "holdfast/core/warm_up.hpp"

namespace holdfast {

// Models PathTierStore. `runtime` outlives it. Before it is destroyed: shut_down(), or the quarantine is lost.
template <Runtime Rt>
class PlanTierStore {
 public:
  PlanTierStore(Rt& runtime, const PlanOptions& options)
      : context_(runtime, options), segment_calls_(runtime.fluxon, runtime.clock, runtime.sync) {}

  // Makes the owner's segments ready now, so that the first put need not: see warm_up.hpp. To be run again when the
  // owner was restarted. Whoever puts meanwhile waits until it has ended. TimedOut, Cancelled, StaleGeneration (another
  // operation has seen a newer owner: run it again), RegistrationFailed, or the runtime's own failure to answer.
  Result<WarmUpReport> warm_up(Absorbed& absorbed, const WarmUpOptions& options = {}) {
    WarmUpRun<typename Rt::ClockType, typename Rt::SyncType> run(context_.runtime.clock, context_.runtime.sync,
                                                                 options);
    if (Status ready = make_ready(options, run, absorbed); !ready) {
      return with_suppressed(std::move(ready.error()), absorbed);
    }
    return run.finish();
  }

  Result<PutReceipt> put(Keys keys, std::span<const DeviceTensor> tensors, const CopyStream& stream, Absorbed& absorbed,
                         Stats* spent = nullptr) {
    Stats own;
    return put_within(keys, tensors, stream, absorbed, spent != nullptr ? *spent : own);
  }

  ReadOutcome restore(const ReadRequest& request, const CopyStream& stream, Absorbed& absorbed,
                      Stats* spent = nullptr) {
    Stats own;
    return restore_within(request, stream, absorbed, spent != nullptr ? *spent : own);
  }

  Result<Presence> probe(Keys keys, Absorbed& absorbed) {
    Result<LiveSegments> segments = context_.live_segments(absorbed);
    if (!segments) return std::move(segments.error());
    typename GetHandleLease<Rt>::Call call(context_.registry, segments->front().generation);
    if (!call.live()) return make_error(Errc::stale_generation, "probe", "the segments' generation has gone");
    Result<GetStart> start = context_.runtime.fluxon.get_start(keys, false, {});
    if (!start) return std::move(start.error());
    GetHandleLease<Rt> handle(context_, start->handle, std::move(call));
    if (Status cancelled = handle.cancel(); !cancelled) absorbed.push_back(std::move(cancelled.error()));
    if (Status sound = check_get_start(*start, keys.size(), 1); !sound) return std::move(sound.error());
    return Presence{start->all_hit, segments->epoch};
  }

  RemoveOutcome remove(const RemoveRequest& request, Absorbed& absorbed) {
    RemoveOutcome outcome;
    for (std::size_t i = 0; i < request.keys.size(); ++i) {
      const Nanos submitted_ns = context_.now_ns();
      Status removed = context_.runtime.fluxon.remove(request.keys[i]);
      const RemovalAnswer answer = answer_of(removed);
      if (answer == RemovalAnswer::failed) {
        outcome.failures.push_back(std::move(removed.error()));
        continue;
      }
      if (!removed) absorbed.push_back(std::move(removed.error()));
      if (answer == RemovalAnswer::removed ||
          submitted_ns >= request.last_commit_ns + context_.options.unsettled.settle_bound_ns) {
        ++outcome.removed;
        continue;
      }
      // It may be stored and not routed yet.
      ++outcome.queued;
      context_.unsettled.with([&](UnsettledTable& table) {
        table.add(request.keys[i], {request.value_bytes[i], request.last_commit_ns}, context_.now_ns());
      });
    }
    return outcome;
  }

  void queue_removal(const RemoveRequest& request) { queue(request, true); }

  // Periodic work: ends quarantined plans whose copies have landed, and removes what is due, at most `removals_max`
  // keys. Gives the number of keys settled. Errors are moved to `errors`; what they belong to stays queued.
  std::uint32_t pump(std::size_t removals_max, std::vector<Error>& errors) {
    context_.end_quarantined(Landing::poll, errors);
    const std::vector<std::string> due = context_.unsettled.with(
        [&](const UnsettledTable& table) { return table.due(context_.now_ns(), removals_max); });
    std::uint32_t settled = 0;
    for (const std::string& key : due) {
      // Since it was listed it may have been stored anew, or another may be at it.
      const bool ours = context_.unsettled.with([&](UnsettledTable& table) { return table.begin_removal(key); });
      if (ours && remove_due(key, errors)) ++settled;
    }
    return settled;
  }

  void device_torn_down(std::vector<Error>& errors) { context_.device_torn_down(errors); }

  // Nothing may be in use any more. Quarantined, and nothing unregistered, when something cannot be let go. Any other
  // error is of a clean-up, and everything else was let go.
  Status shut_down() {
    std::vector<Error> errors;
    context_.end_quarantined(Landing::wait, errors);
    if (context_.quarantine.size() > 0) {
      return with_suppressed(make_error(Errc::quarantined, "shut_down", "a copy may still be in flight"), errors);
    }
    Status unregistered = context_.registry.unregister_all();
    if (!unregistered) return with_suppressed(std::move(unregistered.error()), errors);
    if (errors.empty()) return {};
    Error error = std::move(errors.front());
    errors.erase(errors.begin());
    return with_suppressed(std::move(error), errors);
  }

  // True while a key of these is refused for a put or a removal: not decided yet, or in quarantine.
  [[nodiscard]] bool unsettled(Keys keys) const {
    return context_.unsettled.with([&](const UnsettledTable& table) { return table.contains_any(keys); });
  }
  // Those in quarantine too.
  [[nodiscard]] ListLength unsettled_length() const {
    return context_.unsettled.with([](const UnsettledTable& table) { return table.length(); });
  }
  [[nodiscard]] std::uint64_t epoch() const { return context_.registry.epoch(); }
  [[nodiscard]] ListLength quarantine_length() const { return context_.quarantine.length(); }
  [[nodiscard]] std::uint64_t unsettled_keys() const { return unsettled_length().now; }
  [[nodiscard]] std::uint64_t quarantined() const { return quarantine_length().now; }
  // Slot bytes that are neither free nor of a blob or latent that the manager knows.
  [[nodiscard]] std::uint64_t held_bytes() const {
    return context_.unsettled.with([](const UnsettledTable& table) { return table.held_bytes(); }) +
           context_.quarantine.held_bytes();
  }
  [[nodiscard]] RegistryCounts registry_counts() const { return context_.registry.counts(); }

 private:
  template <class Work>
  auto timed_in(Stats& spent, Stage stage, Work&& work) {
    return timed(spent, stage, context_.runtime.clock, std::forward<Work>(work));
  }

  Result<PutReceipt> put_within(Keys keys, std::span<const DeviceTensor> tensors, const CopyStream& stream,
                                Absorbed& absorbed, Stats& spent) {
    Status valid = timed_in(spent, Stage::put_copy, [&] { return validate_tensors(context_.runtime.cuda, tensors); });
    if (!valid) return std::move(valid.error());
    if (keys.size() != tensors.size()) return make_error(Errc::invalid_argument, "put", "one tensor per key");
    if (has_duplicates(keys)) return make_error(Errc::invalid_argument, "put", "one key twice");
    const PutTurn turn(context_, keys);
    const PutGate gate = turn.gate();
    if (gate == PutGate::unsettled) return make_error(Errc::unsettled, "put", "a key's outcome is not decided yet");
    if (gate == PutGate::full) {
      return make_error(Errc::unsettled, "put", "too many other keys are not decided yet: pump, or go on uncached");
    }
    PutAttempt attempt = PlanPut<Rt>(context_, keys, tensors, stream, absorbed, spent).run();
    if (attempt.end == PutEnd::exists) {
      std::vector<std::uint64_t> value_bytes;
      for (const DeviceTensor& tensor : tensors) value_bytes.push_back(tensor.bytes);
      GroupChecksum checksum;
      Result<std::optional<std::uint64_t>> adopted = adopt(keys, value_bytes, checksum, absorbed, spent);
      if (!adopted) return with_suppressed(std::move(adopted.error()), absorbed);
      if (*adopted) return PutReceipt{PutVerdict::adopted, context_.now_ns(), **adopted, checksum};
      if (gate == PutGate::open) {
        // Not of our doing that we know of: an orphan of an earlier incarnation, to be gone before the next try.
        queue({keys, value_bytes, context_.now_ns()}, false);
        return PutReceipt{PutVerdict::elsewhere, 0};
      }
      if (!remove_leftovers(keys, absorbed, spent)) {
        return with_suppressed(make_error(Errc::unsettled, "put", "a leftover could not be removed"), absorbed);
      }
      attempt = PlanPut<Rt>(context_, keys, tensors, stream, absorbed, spent).run();
    }
    if (attempt.end == PutEnd::failed) return std::move(attempt.error);
    if (attempt.end != PutEnd::stored) return PutReceipt{PutVerdict::elsewhere, 0};
    forget(keys);
    return PutReceipt{PutVerdict::stored, attempt.committed_ns, attempt.epoch, attempt.checksum};
  }

  ReadOutcome restore_within(const ReadRequest& request, const CopyStream& stream, Absorbed& absorbed, Stats& spent) {
    Status valid =
        timed_in(spent, Stage::read_copy, [&] { return validate_tensors(context_.runtime.cuda, request.tensors); });
    if (!valid) return {ReadVerdict::failed, false, with_suppressed(std::move(valid.error()), absorbed)};
    return PlanRead<Rt>(context_, request, stream, absorbed, spent).run();
  }

  template <class Run>
  Status make_ready(const WarmUpOptions& options, Run& run, Absorbed& absorbed) {
    if (!run.goes_on()) return make_error(Errc::cancelled, "warm_up", "before it began");
    Result<SegmentsAnswer> answer = ask_for_segments(options, run);
    if (!answer) return std::move(answer.error());
    if (Status sound = check_segments(answer->segments); !sound) return sound;
    run.enter(WarmUpStage::unregistering);
    Result<std::uint64_t> epoch = context_.registry.ensure(answer->look, answer->segments, absorbed, &run);
    if (!epoch) return std::move(epoch.error());
    return {};
  }
  template <class Run>
  Result<SegmentsAnswer> ask_for_segments(const WarmUpOptions& options, Run& run) {
    const auto look = [&] { return context_.registry.begin_look(); };
    if (options.executor != nullptr) {
      return segment_calls_.wait({*options.executor, options.segments_wait_max_ns, [&] { return run.goes_on(); }},
                                 look);
    }
    const std::uint64_t number = look();
    Result<std::vector<Segment>> segments = context_.runtime.fluxon.wait_local_segments_ready();
    if (!segments) return std::move(segments.error());
    return SegmentsAnswer{number, std::move(*segments)};
  }

  void queue(const RemoveRequest& request, bool ours) {
    context_.unsettled.with([&](UnsettledTable& table) {
      for (std::size_t i = 0; i < request.keys.size(); ++i) {
        table.add(request.keys[i], {request.value_bytes[i], request.last_commit_ns, false, ours}, context_.now_ns());
      }
    });
  }

  // Asks the gate, and keeps others from removing these keys for as long as it lives, where the gate lets the put in.
  class PutTurn {
   public:
    PutTurn(PlanContext<Rt>& context, Keys keys)
        : context_(context), keys_(keys), gate_(context.unsettled.with([&](UnsettledTable& table) {
            const PutGate gate = table.gate(keys, context.now_ns());
            if (lets_in(gate)) table.begin_put(keys);
            return gate;
          })) {}
    ~PutTurn() {
      if (lets_in(gate_)) context_.unsettled.with([&](UnsettledTable& table) { table.end_put(keys_); });
    }
    PutTurn(const PutTurn&) = delete;
    PutTurn& operator=(const PutTurn&) = delete;

    [[nodiscard]] PutGate gate() const { return gate_; }

   private:
    static bool lets_in(PutGate gate) { return gate == PutGate::open || gate == PutGate::leftovers; }

    PlanContext<Rt>& context_;
    Keys keys_;
    PutGate gate_;
  };

  void forget(Keys keys) {
    context_.unsettled.with([&](UnsettledTable& table) {
      for (const std::string_view key : keys) table.forget(key);
    });
  }

  // When every key is ours, past its bound, of this length, and readable under one read plan: known again. With
  // checksums also only when each value is what its put stored: what was given up after it had been ready, perhaps
  // because it is corrupt, never is. The epoch in which they were read, or nothing.
  Result<std::optional<std::uint64_t>> adopt(Keys keys, std::span<const std::uint64_t> value_bytes,
                                             GroupChecksum& checksum, Absorbed& absorbed, Stats& spent) {
    std::vector<GroupChecksum> expected;
    const bool adoptable = context_.unsettled.with([&](const UnsettledTable& table) {
      if (!table.adoptable(keys, value_bytes, context_.now_ns())) return false;
      if (context_.options.checksums) expected = table.checksums_of(keys);
      return std::find(expected.begin(), expected.end(), std::nullopt) == expected.end();
    });
    if (!adoptable) return std::nullopt;
    return timed_in(spent, Stage::probe,
                    [&] { return adopt_readable(keys, value_bytes, expected, checksum, absorbed); });
  }

  // `expected`: of each value, with checksums.
  Result<std::optional<std::uint64_t>> adopt_readable(Keys keys, std::span<const std::uint64_t> value_bytes,
                                                      std::span<const GroupChecksum> expected, GroupChecksum& checksum,
                                                      Absorbed& absorbed) {
    Result<LiveSegments> segments = context_.live_segments(absorbed);
    if (!segments) return std::move(segments.error());
    // As long as the plan lives nobody else uses a newer owner, whose it may be.
    const GenerationCall call(context_.registry, segments->front().generation);
    if (!call.live()) return make_error(Errc::stale_generation, "adopt", "the segments' generation has gone");
    Result<std::optional<ReadPlanLease<Rt>>> plan =
        open_read_plan(context_, keys, {}, segments->front().generation, absorbed);
    if (!plan) return std::move(plan.error());
    if (!*plan) return std::nullopt;
    Result<std::vector<std::uintptr_t>> addresses =
        decode_plan_blob({(*plan)->plan(), PlanSide::read, value_bytes, *segments});
    bool intact = true;
    if (addresses && context_.options.checksums) {
      std::vector<std::uint64_t> found;
      for (std::size_t i = 0; i < addresses->size(); ++i) {
        found.push_back(checksum_of_slot((*addresses)[i], value_bytes[i]));
        intact = intact && found.back() == expected[i];
      }
      checksum = fold_checksums(found);
    }
    Status released = addresses ? (*plan)->release() : (*plan)->give_back(call);
    if (!released) absorbed.push_back(std::move(released.error()));
    if (!addresses) return std::move(addresses.error());
    if (!intact) {
      absorbed.push_back(make_error(Errc::corrupt, "adopt", "a leftover is not what was put"));
      return std::nullopt;
    }
    forget(keys);
    return segments->epoch;
  }

  // Those of `keys` that are in the table, all past their bound. True when all are settled.
  bool remove_leftovers(Keys keys, Absorbed& absorbed, Stats& spent) {
    StageTimer timer(spent, Stage::settle, context_.runtime.clock);
    bool settled = true;
    for (const std::string_view key : keys) {
      const bool here = context_.unsettled.with([&](const UnsettledTable& table) { return table.contains(key); });
      if (here && !remove_due(key, absorbed)) settled = false;
    }
    if (!settled) timer.fail();
    return settled;
  }

  // Of a key that nobody else removes meanwhile.
  bool remove_due(std::string_view key, std::vector<Error>& errors) {
    const Nanos submitted_ns = context_.now_ns();
    Status removed = context_.runtime.fluxon.remove(key);
    const RemovalAnswer answer = answer_of(removed);
    if (answer == RemovalAnswer::failed) errors.push_back(std::move(removed.error()));
    return context_.unsettled.with(
        [&](UnsettledTable& table) { return table.note_removal(key, answer, submitted_ns); });
  }

  PlanContext<Rt> context_;
  SegmentCalls<typename Rt::Fluxon, typename Rt::ClockType, typename Rt::SyncType> segment_calls_;
};

}  // namespace holdfast
