// One put: plans, one batch of copies, one wait, commits, futures, codes.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <span>
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
  exists,   // a plan was refused with 4001: nothing was copied
  written,  // a plan was refused with 4004: nothing was copied
  failed,
};

struct PutAttempt {
  PutEnd end = PutEnd::failed;
  Nanos committed_ns = 0;  // when the last commit had been submitted
  Error error;             // when failed
};

// Used once. Keys and tensors are validated by the caller, and stay until run() has returned.
template <Runtime Rt>
class PlanPut {
 public:
  PlanPut(PlanContext<Rt>& context, Keys keys, std::span<const DeviceTensor> tensors, StreamRef stream,
          Absorbed& absorbed)
      : context_(context), keys_(keys), tensors_(tensors), stream_(stream), absorbed_(absorbed) {}

  PutAttempt run() {
    Result<std::vector<Segment>> segments = context_.live_segments(absorbed_);
    if (!segments) return failed(std::move(segments.error()));
    groups_ = group_by_size(keys_, tensors_);
    if (Status started = start_plans(*segments); !started) return refused_or_failed(std::move(started.error()));
    if (Status copied = copy_values(); !copied) return failed(std::move(copied.error()));
    return commit_plans();
  }

 private:
  using Future = typename Rt::Fluxon::Future;

  // A key's code while its plan has not been committed.
  static constexpr std::int32_t kNotCommitted = static_cast<std::int32_t>(CommitCode::reservation_gone);
  static constexpr std::int32_t kNoAnswer = static_cast<std::int32_t>(CommitCode::unknown);

  Status start_plans(std::span<const Segment> segments) {
    plans_.reserve(groups_.size());
    addresses_.resize(keys_.size());
    for (const PutGroup& group : groups_) {
      const Nanos started_ns = context_.now_ns();
      Result<PlanPtr> plan = context_.runtime.fluxon.local_fast_put_start(group.keys, group.value_bytes, PutOptions{});
      if (!plan) return std::move(plan.error());
      plans_.emplace_back(context_, *plan,
                          PutPlanTerms{group.keys, group.value_bytes, segments.front().generation, started_ns});
      const std::vector<std::uint64_t> lengths(group.keys.size(), group.value_bytes);
      Result<std::vector<std::uintptr_t>> decoded = decode_plan_blob({*plan, PlanSide::write, lengths, segments});
      if (!decoded) return std::move(decoded.error());
      for (std::size_t i = 0; i < group.members.size(); ++i) addresses_[group.members[i]] = (*decoded)[i];
    }
    return {};
  }

  Status copy_values() {
    CopyBatch copies(CopyDirection::device_to_host);
    copies.reserve(keys_.size());
    for (std::size_t i = 0; i < keys_.size(); ++i) copies.add(tensors_[i], 0, addresses_[i], tensors_[i].bytes);
    if (Status validated = copies.validate(context_.registry); !validated) return validated;
    for (const PutPlanLease<Rt>& plan : plans_) {
      if (Status usable = plan.check_usable(); !usable) return usable;
    }
    auto batch = std::make_shared<BatchInFlight<Rt>>(context_.runtime, context_.registry, stream_,
                                                     plans_.front().terms().generation);
    for (PutPlanLease<Rt>& plan : plans_) plan.attach(batch);
    if (Status submitted = batch->submit(copies); !submitted) {
      return make_error(Errc::copy_failed, "copy_values", "batch submission", std::move(submitted.error()));
    }
    if (Status waited = batch->wait(); !waited) {
      return make_error(Errc::copy_failed, "copy_values", "wait", std::move(waited.error()));
    }
    return {};
  }

  PutAttempt commit_plans() {
    codes_.assign(keys_.size(), kNotCommitted);
    std::vector<Error> causes;
    std::vector<std::pair<std::size_t, Future>> futures;
    for (std::size_t g = 0; g < plans_.size() && causes.empty(); ++g) {
      if (Status usable = plans_[g].check_usable(); !usable) {
        causes.push_back(std::move(usable.error()));
        break;
      }
      Result<Future> future = plans_[g].commit();
      committed_ns_ = context_.now_ns();
      committed_plans_ = g + 1;
      if (future) {
        futures.emplace_back(g, std::move(*future));
        continue;
      }
      // A refused commit did nothing; of any other failure nobody can say.
      if (!refuses_commit(future.error())) set_codes(groups_[g], kNoAnswer);
      causes.push_back(std::move(future.error()));
    }
    for (auto& [g, future] : futures) wait_for(groups_[g], future, causes);
    if (causes.empty()) return {PutEnd::stored, committed_ns_, {}};
    PutAttempt attempt = failed_with(std::move(causes));
    take_back(attempt.error);
    return attempt;
  }

  static bool refuses_commit(const Error& error) {
    return is_fluxon(error, FluxonErrc::invalid_argument) || is_fluxon(error, FluxonErrc::store_closed) ||
           is_fluxon(error, FluxonErrc::general);
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
    std::vector<std::string_view> stored;
    context_.unsettled.with([&](UnsettledTable& table) {
      for (std::size_t i = 0; i < keys_.size(); ++i) {
        const KeyOutcome outcome = outcome_of(codes_[i]);
        if (outcome == KeyOutcome::not_stored) continue;
        const bool known = outcome == KeyOutcome::stored;
        table.add(keys_[i], {tensors_[i].bytes, committed_ns_, known}, context_.now_ns());
        if (known) stored.push_back(keys_[i]);
      }
    });
    for (const std::string_view key : stored) {
      const Nanos submitted_ns = context_.now_ns();
      Status removed = context_.runtime.fluxon.remove(key);
      context_.unsettled.with(
          [&](UnsettledTable& table) { table.note_removal(key, answer_of(removed), submitted_ns); });
      if (!removed) error.suppressed.push_back(std::move(removed.error()));
    }
  }

  // Ends every plan that is not committed. Failures are moved to `failures`.
  void abort_plans(std::vector<Error>& failures) {
    for (std::size_t g = committed_plans_; g < plans_.size(); ++g) {
      if (Status aborted = plans_[g].abort(); !aborted) failures.push_back(std::move(aborted.error()));
    }
  }

  PutAttempt refused_or_failed(Error error) {
    const bool exists = is_fluxon(error, FluxonErrc::key_already_exists);
    if (!exists && !is_fluxon(error, FluxonErrc::key_being_written)) return failed(std::move(error));
    absorbed_.push_back(std::move(error));
    abort_plans(absorbed_);
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
  StreamRef stream_;
  Absorbed& absorbed_;
  std::vector<PutGroup> groups_;
  std::vector<PutPlanLease<Rt>> plans_;  // one per group, as far as started
  std::size_t committed_plans_ = 0;      // the first so many have ended by a commit
  std::vector<std::uintptr_t> addresses_;
  std::vector<std::int32_t> codes_;
  Nanos committed_ns_ = 0;
};

}  // namespace holdfast
