// A put plan with exactly one end: commit, or abort on every other path.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/check.hpp"
#include "holdfast/core/plan_blob.hpp"
#include "holdfast/core/plan_context.hpp"

namespace holdfast {

struct PutPlanTerms {
  Keys keys;  // the caller keeps them until the lease has ended
  std::uint64_t value_bytes = 0;
  std::uint64_t generation = 0;
  Nanos started_ns = 0;  // before put_start was called: the owner's plan time-out cannot have begun earlier
};

// Move-only. Its destructor aborts what was not ended: it waits first, and quarantines what it cannot wait for.
template <Runtime Rt>
class PutPlanLease {
 public:
  using Future = typename Rt::Fluxon::Future;

  PutPlanLease(PlanContext<Rt>& context, PlanPtr plan, const PutPlanTerms& terms)
      : context_(&context), plan_(plan), terms_(terms) {}
  PutPlanLease(PutPlanLease&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)),
        plan_(other.plan_),
        terms_(other.terms_),
        batch_(std::move(other.batch_)) {}
  PutPlanLease& operator=(PutPlanLease&&) = delete;
  ~PutPlanLease() {
    if (context_ == nullptr) return;
    PlanContext<Rt>& context = *context_;
    if (Status aborted = abort(); !aborted) context.quarantine.note(std::move(aborted.error()));
  }

  [[nodiscard]] PlanPtr plan() const { return plan_; }
  [[nodiscard]] const PutPlanTerms& terms() const { return terms_; }

  // From here on `batch` may touch the plan's memory.
  void attach(std::shared_ptr<BatchInFlight<Rt>> batch) { batch_ = std::move(batch); }

  // StaleGeneration: it ended with its owner. PlanTooOld: its slots may soon be another's. Such a plan is neither
  // copied into nor committed.
  [[nodiscard]] Status check_usable() const {
    if (!context_->registry.is_live(terms_.generation)) {
      return make_error(Errc::stale_generation, "check_usable", "the plan's generation has gone");
    }
    if (context_->now_ns() - terms_.started_ns <= context_->options.plan_age_max_ns) return {};
    return make_error(Errc::plan_too_old, "check_usable", "the plan is past its age limit");
  }

  // Ends the plan, also when the call fails. Its batch must have arrived, and check_usable() succeeded since.
  // StaleGeneration: it ended with its owner since then, and nothing was committed.
  [[nodiscard]] Result<Future> commit() {
    check(context_ != nullptr, "commit of an ended plan");
    check(batch_ != nullptr && batch_->arrived(), "commit of a plan whose copies have not arrived");
    PlanContext<Rt>& context = *std::exchange(context_, nullptr);
    const GenerationCall call(context.registry, terms_.generation);
    if (!call.live()) return make_error(Errc::stale_generation, "commit", "the plan's generation has gone");
    return context.runtime.fluxon.local_fast_put_commit(plan_);
  }

  // Ends a plan that is not of the generation it was asked from, during the call that gave it: a newer owner's. One
  // that is none any more, once another session has seen a newer owner, ended with its own.
  [[nodiscard]] Status give_back(const GenerationCall<typename PlanContext<Rt>::Registry>& call) {
    check(context_ != nullptr && batch_ == nullptr && call.live(), "a plan is given back too late");
    PlanContext<Rt>& context = *std::exchange(context_, nullptr);
    if (!context.registry.is_live(call.generation()) && !check_plan_table(plan_, terms_.keys.size())) return {};
    return context.runtime.fluxon.put_abort(plan_);
  }

  // Ends the plan, also when the call fails. Waits first; Quarantined when that fails.
  [[nodiscard]] Status abort() {
    check(context_ != nullptr, "abort of an ended plan");
    return context_->quarantining([this](std::vector<QuarantinedPlan<Rt>>& stuck) { return abort(stuck); });
  }
  // As above, but what would be quarantined is added to `stuck`: the caller, who may use the batch still, does that.
  [[nodiscard]] Status abort(std::vector<QuarantinedPlan<Rt>>& stuck) {
    check(context_ != nullptr, "abort of an ended plan");
    PlanContext<Rt>& context = *std::exchange(context_, nullptr);
    if (batch_ != nullptr) {
      if (Status waited = batch_->wait(); !waited) {
        stuck.push_back({plan_, PlanSide::write, terms_.generation, terms_.keys.size() * slot_bytes(terms_.value_bytes),
                         std::vector<std::string>(terms_.keys.begin(), terms_.keys.end()), std::move(batch_)});
        return make_error(Errc::quarantined, "abort", "a copy may still be in flight", std::move(waited.error()));
      }
    }
    return end_plan(context.runtime, context.registry, plan_, PlanSide::write, terms_.generation);
  }

 private:
  PlanContext<Rt>* context_;  // null once the plan has ended
  PlanPtr plan_;
  PutPlanTerms terms_;
  std::shared_ptr<BatchInFlight<Rt>> batch_;
};

}  // namespace holdfast
