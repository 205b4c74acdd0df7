// One put: plans, batches of copies, waits, commits, futures, codes.
//
// Batch by batch: its groups' plans are started, decoded and validated, and it is submitted, while those before it are
// copied. When all are submitted, each is waited for and its groups are committed, while those behind it are copied.
// No plan is committed before all are started and submitted: a refusal, or a failed submission, stores nothing. The
// futures come last: the owner's work on a commit runs whether or not anyone waits, and every group has been committed
// before any code is seen, in whatever mode.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/copy_batch.hpp"
#include "holdfast/core/plan_blob.hpp"
#include "holdfast/core/plan_context.hpp"
#include "holdfast/core/put_groups.hpp"
#include "holdfast/core/put_plan_lease.hpp"
#include "holdfast/core/tier_store.hpp"

namespace holdfast {

enum class PutEnd : std::uint8_t {
  stored,
  exists,   // a plan was refused with 4001: nothing was stored
  written,  // a plan was refused with 4004: nothing was stored
  failed,
};

struct PutAttempt {
  PutEnd end = PutEnd::failed;
  Nanos committed_ns = 0;       // when the last commit had been submitted
  Error error;                  // when failed
  std::uint64_t epoch = 0;      // of the store
  GroupChecksum checksum = {};  // when stored, where the options ask for it
};

// Used once. Keys and tensors are validated by the caller, and stay until run() has returned.
template <Runtime Rt>
class PlanPut {
 public:
  // `spent` is of the operation that this put is, or belongs to, alone.
  PlanPut(PlanContext<Rt>& context, Keys keys, std::span<const DeviceTensor> tensors, const CopyStream& stream,
          Absorbed& absorbed, Stats& spent)
      : context_(context), keys_(keys), tensors_(tensors), stream_(stream), absorbed_(absorbed), spent_(spent) {}

  PutAttempt run() {
    PutAttempt attempt = try_put();
    std::vector<Error>& aside = attempt.end == PutEnd::failed ? attempt.error.suppressed : absorbed_;
    TransferMeter meter;
    for (const Batch& batch : batches_) {
      batch.in_flight->move_absorbed_to(aside);
      batch.in_flight->tell(meter);
    }
    spent_.to_host += meter.total();
    context_.quarantine_plans(std::move(stuck_));
    return attempt;
  }

 private:
  using Future = typename Rt::Fluxon::Future;

  struct Batch {
    BatchCut groups;
    std::shared_ptr<BatchInFlight<Rt>> in_flight;
  };

  // A key's code while its plan has not been committed.
  static constexpr std::int32_t kNotCommitted = static_cast<std::int32_t>(CommitCode::reservation_gone);
  static constexpr std::int32_t kNoAnswer = static_cast<std::int32_t>(CommitCode::unknown);

  template <class Work>
  auto timed_in(Stage stage, Work&& work) {
    return timed(spent_, stage, context_.runtime.clock, std::forward<Work>(work));
  }

  PutAttempt try_put() {
    Result<LiveSegments> segments = timed_in(Stage::segments, [&] { return context_.live_segments(absorbed_); });
    if (!segments) return failed(std::move(segments.error()));
    epoch_ = segments->epoch;
    groups_ = group_by_size(keys_, tensors_);
    plans_.reserve(groups_.size());
    addresses_.resize(keys_.size());
    if (context_.options.checksums) checksums_.resize(keys_.size());
    for (const BatchCut& cut : cuts()) {
      batches_.push_back({cut, context_.make_batch(stream_, segments->front().generation)});
      Status started = timed_in(Stage::put_start, [&] { return start_plans(cut, *segments); });
      if (!started) return refused_or_failed(std::move(started.error()));
      if (Status copied = copy_values(); !copied) return failed(std::move(copied.error()));
    }
    return commit_plans();
  }

  [[nodiscard]] std::vector<BatchCut> cuts() const {
    std::vector<std::uint64_t> group_bytes;
    for (const PutGroup& group : groups_) group_bytes.push_back(group.value_bytes * group.keys.size());
    return cut_into_batches(group_bytes, context_.options.overlap);
  }

  // As an error names it.
  [[nodiscard]] std::string words_of(std::size_t g) const {
    return fmt::format("group {} of {}, {} values of {} bytes, first {}", g + 1, groups_.size(), groups_[g].keys.size(),
                       groups_[g].value_bytes, groups_[g].keys.front());
  }
  [[nodiscard]] std::string words_of(const BatchCut& cut) const {
    if (cut.last - cut.first == 1) return words_of(cut.first);
    return fmt::format("groups {} to {} of {}, first {}", cut.first + 1, cut.last, groups_.size(),
                       groups_[cut.first].keys.front());
  }
  // The error stays what it was: of these groups.
  Error of_groups(Error error, const BatchCut& cut) const {
    if (cut.last - cut.first == groups_.size()) return error;
    error.detail += (error.detail.empty() ? "" : ", ") + words_of(cut);
    return error;
  }
  Error of_group(Error error, std::size_t g) const { return of_groups(std::move(error), {g, g + 1}); }
  Error copy_failure(const Batch& batch, std::string_view what, Error cause) const {
    return make_error(Errc::copy_failed, "copy_values", fmt::format("{} of {}", what, words_of(batch.groups)),
                      std::move(cause));
  }

  Status start_plans(const BatchCut& cut, std::span<const Segment> segments) {
    for (std::size_t g = cut.first; g < cut.last; ++g) {
      const PutGroup& group = groups_[g];
      const std::uint64_t generation = segments.front().generation;
      // A plan of a newer owner's is seen by where it lies, and is ended before anybody else uses that owner.
      const GenerationCall call(context_.registry, generation);
      if (!call.live()) {
        return of_group(make_error(Errc::stale_generation, "start_plans", "the segments' generation has gone"), g);
      }
      const Nanos started_ns = context_.now_ns();
      Result<PlanPtr> plan = context_.runtime.fluxon.local_fast_put_start(group.keys, group.value_bytes, PutOptions{});
      if (!plan) return of_group(std::move(plan.error()), g);
      plans_.emplace_back(context_, *plan, PutPlanTerms{group.keys, group.value_bytes, generation, started_ns});
      const std::vector<std::uint64_t> lengths(group.keys.size(), group.value_bytes);
      Result<std::vector<std::uintptr_t>> decoded = decode_plan_blob({*plan, PlanSide::write, lengths, segments});
      if (!decoded) {
        Error error = of_group(std::move(decoded.error()), g);
        if (Status aborted = plans_.back().give_back(call); !aborted)
          error.suppressed.push_back(std::move(aborted.error()));
        plans_.pop_back();
        return error;
      }
      for (std::size_t i = 0; i < group.members.size(); ++i) addresses_[group.members[i]] = (*decoded)[i];
    }
    return {};
  }

  // Of the last batch.
  Status copy_values() {
    const Batch& batch = batches_.back();
    CopyBatch copies(CopyDirection::device_to_host);
    Status validated = timed_in(Stage::put_copy, [&] { return validate(batch, copies); });
    if (!validated) return validated;
    const std::size_t most = context_.options.overlap.batches_in_flight_max;
    if (batches_.size() > most) {
      if (Status waited = wait_for(batches_[batches_.size() - 1 - most]); !waited) return waited;
    }
    return timed_in(Stage::put_copy, [&] { return submit(batch, copies); });
  }

  Status validate(const Batch& batch, CopyBatch& copies) {
    for (const std::size_t i : members_of(batch.groups)) copies.add(tensors_[i], 0, addresses_[i], tensors_[i].bytes);
    Status validated = copies.validate(context_.registry, written_);
    if (!validated) return of_groups(std::move(validated.error()), batch.groups);
    return validated;
  }

  Status submit(const Batch& batch, const CopyBatch& copies) {
    if (Status ready = batch.in_flight->prepare(); !ready) {
      return copy_failure(batch, "submission", std::move(ready.error()));
    }
    // The last thing before the copies: whatever is called in between may take time.
    for (std::size_t g = batch.groups.first; g < batch.groups.last; ++g) {
      if (Status usable = plans_[g].check_usable(); !usable) return of_group(std::move(usable.error()), g);
    }
    for (std::size_t g = batch.groups.first; g < batch.groups.last; ++g) plans_[g].attach(batch.in_flight);
    if (Status submitted = batch.in_flight->submit(copies); !submitted) {
      return copy_failure(batch, "submission", std::move(submitted.error()));
    }
    // Behind the first batch the stream's own order is enough.
    stream_.producer.reset();
    return {};
  }

  // In key order.
  [[nodiscard]] std::vector<std::size_t> members_of(const BatchCut& cut) const {
    std::vector<std::size_t> members;
    for (std::size_t g = cut.first; g < cut.last; ++g) {
      members.insert(members.end(), groups_[g].members.begin(), groups_[g].members.end());
    }
    if (cut.last - cut.first > 1) std::sort(members.begin(), members.end());
    return members;
  }

  Status wait_for(const Batch& batch) {
    Status waited = timed_in(Stage::put_wait, [&] { return batch.in_flight->wait(); });
    if (!waited) return copy_failure(batch, "wait", std::move(waited.error()));
    return waited;
  }

  PutAttempt commit_plans() {
    codes_.assign(keys_.size(), kNotCommitted);
    std::vector<Error> causes;
    std::vector<std::pair<std::size_t, Future>> futures;
    for (const Batch& batch : batches_) {
      Status committed = wait_for(batch);
      for (std::size_t g = batch.groups.first; committed && g < batch.groups.last; ++g) {
        committed = timed_in(Stage::put_commit, [&] { return commit_plan(g, futures); });
      }
      if (committed) continue;
      causes.push_back(std::move(committed.error()));
      break;
    }
    if (!futures.empty()) {
      StageTimer timer(spent_, Stage::put_commit, context_.runtime.clock);
      const std::size_t before = causes.size();
      for (auto& [g, future] : futures) wait_for(groups_[g], future, causes);
      if (causes.size() > before) timer.fail();
    }
    if (causes.empty()) {
      PutAttempt attempt{PutEnd::stored, committed_ns_, {}, epoch_};
      if (context_.options.checksums) attempt.checksum = fold_checksums(checksums_);
      return attempt;
    }
    PutAttempt attempt = failed_with(std::move(causes));
    take_back(attempt.error);
    return attempt;
  }

  Status commit_plan(std::size_t g, std::vector<std::pair<std::size_t, Future>>& futures) {
    if (Status usable = plans_[g].check_usable(); !usable) return of_group(std::move(usable.error()), g);
    // From the commit on the owner may do what it likes with the slots.
    if (context_.options.checksums) sum_values(groups_[g]);
    Result<Future> future = plans_[g].commit();
    committed_ns_ = context_.now_ns();
    ended_plans_ = g + 1;
    if (future) {
      futures.emplace_back(g, std::move(*future));
      return {};
    }
    // A refused commit did nothing; of any other failure nobody can say.
    if (!refuses_commit(future.error())) set_codes(groups_[g], kNoAnswer);
    return of_group(std::move(future.error()), g);
  }

  // Its copies have been waited for.
  void sum_values(const PutGroup& group) {
    for (const std::size_t member : group.members) {
      checksums_[member] = checksum_of_slot(addresses_[member], group.value_bytes);
    }
  }

  static bool refuses_commit(const Error& error) {
    return error.is(Errc::stale_generation) || is_fluxon(error, FluxonErrc::invalid_argument) ||
           is_fluxon(error, FluxonErrc::store_closed) || is_fluxon(error, FluxonErrc::general);
  }

  void wait_for(const PutGroup& group, Future& future, std::vector<Error>& causes) {
    Result<std::vector<std::int32_t>> codes = future.wait(context_.options.commit_patience_ns);
    if (!codes) {
      set_codes(group, kNoAnswer);
      causes.push_back(std::move(codes.error()));
      return;
    }
    if (codes->size() != group.keys.size()) {
      set_codes(group, kNoAnswer);
      causes.push_back(make_error(Errc::bad_answer, "commit_wait",
                                  fmt::format("{} codes for {} keys", codes->size(), group.keys.size())));
      return;
    }
    std::vector<std::int32_t> told;
    for (std::size_t i = 0; i < codes->size(); ++i) {
      const std::int32_t code = (*codes)[i];
      codes_[group.members[i]] = code;
      if (code == 0 || std::find(told.begin(), told.end(), code) != told.end()) continue;
      told.push_back(code);
      const auto times = std::count(codes->begin(), codes->end(), code);
      causes.push_back({Origin::fluxon_key,
                        code,
                        "commit_wait",
                        fmt::format("{} of {} keys, first {}", times, codes->size(), group.keys[i]),
                        {},
                        {}});
    }
  }

  void set_codes(const PutGroup& group, std::int32_t code) {
    for (const std::size_t member : group.members) codes_[member] = code;
  }

  // What this put stored must not stay: it is removed now, or when its removal can be believed.
  void take_back(Error& error) {
    StageTimer timer(spent_, Stage::put_undo, context_.runtime.clock);
    std::vector<std::string_view> stored;
    context_.unsettled.with([&](UnsettledTable& table) {
      for (std::size_t i = 0; i < keys_.size(); ++i) {
        const KeyOutcome outcome = outcome_of(codes_[i]);
        if (outcome == KeyOutcome::not_stored) continue;
        const bool known = outcome == KeyOutcome::stored;
        table.add(keys_[i],
                  {.value_bytes = tensors_[i].bytes,
                   .last_commit_ns = committed_ns_,
                   .known_stored = known,
                   .checksum = checksums_.empty() ? GroupChecksum() : checksums_[i]},
                  context_.now_ns());
        if (known) stored.push_back(keys_[i]);
      }
    });
    for (const std::string_view key : stored) {
      const Nanos submitted_ns = context_.now_ns();
      Status removed = context_.runtime.fluxon.remove(key);
      context_.unsettled.with(
          [&](UnsettledTable& table) { table.note_removal(key, answer_of(removed), submitted_ns); });
      if (removed) continue;
      timer.fail();
      error.suppressed.push_back(std::move(removed.error()));
    }
  }

  // Ends every plan that has not ended. Failures are moved to `failures`.
  void abort_plans(std::vector<Error>& failures) {
    // Where an event fails, the end of a plan asks the stream.
    for (const Batch& batch : batches_) {
      if (!batch.in_flight->waits_by_event()) continue;
      if (Status waited = wait_for(batch); !waited) failures.push_back(std::move(waited.error()));
    }
    for (; ended_plans_ < plans_.size(); ++ended_plans_) {
      Status aborted = timed_in(Stage::put_undo, [&] { return plans_[ended_plans_].abort(stuck_); });
      if (!aborted) failures.push_back(std::move(aborted.error()));
    }
  }

  PutAttempt refused_or_failed(Error error) {
    const bool exists = is_fluxon(error, FluxonErrc::key_already_exists);
    if (!exists && !is_fluxon(error, FluxonErrc::key_being_written)) return failed(std::move(error));
    std::vector<Error> failures;
    abort_plans(failures);
    // Keys of a plan that cannot be let go are refused from now on, also to another try of this put.
    if (std::any_of(failures.begin(), failures.end(), [](const Error& end) { return end.is(Errc::quarantined); })) {
      PutAttempt attempt = failed(std::move(error));
      attempt.error.suppressed.insert(attempt.error.suppressed.end(), std::make_move_iterator(failures.begin()),
                                      std::make_move_iterator(failures.end()));
      return attempt;
    }
    absorbed_.push_back(std::move(error));
    absorbed_.insert(absorbed_.end(), std::make_move_iterator(failures.begin()),
                     std::make_move_iterator(failures.end()));
    return {exists ? PutEnd::exists : PutEnd::written, 0, {}};
  }

  PutAttempt failed(Error cause) {
    std::vector<Error> causes;
    causes.push_back(std::move(cause));
    return failed_with(std::move(causes));
  }

  PutAttempt failed_with(std::vector<Error> causes) {
    Error error = make_error(Errc::put_failed, "put", fmt::format("{} keys", keys_.size()));
    error.causes = std::move(causes);
    abort_plans(error.suppressed);
    return {PutEnd::failed, committed_ns_, with_suppressed(std::move(error), absorbed_)};
  }

  PlanContext<Rt>& context_;
  Keys keys_;
  std::span<const DeviceTensor> tensors_;
  CopyStream stream_;
  Absorbed& absorbed_;
  Stats& spent_;
  std::vector<PutGroup> groups_;
  std::vector<PutPlanLease<Rt>> plans_;     // one per group, as far as started
  std::size_t ended_plans_ = 0;             // the first so many have ended
  std::vector<QuarantinedPlan<Rt>> stuck_;  // of those, what goes to the quarantine when nobody waits here any more
  std::vector<Batch> batches_;              // as far as begun
  std::vector<HostRange> written_;          // by their copies
  std::vector<std::uintptr_t> addresses_;
  std::vector<std::int32_t> codes_;
  std::vector<std::uint64_t> checksums_;  // by key, where the options ask for them
  Nanos committed_ns_ = 0;
  std::uint64_t epoch_ = 0;  // of the segments
};

}  // namespace holdfast
