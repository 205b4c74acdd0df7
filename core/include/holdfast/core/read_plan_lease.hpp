// A read plan with exactly one end: release, on every path.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/check.hpp"
#include "holdfast/core/plan_blob.hpp"
#include "holdfast/core/plan_context.hpp"

namespace holdfast {

// Move-only. Its destructor releases what was not released: it waits first, and quarantines what it cannot wait for.
template <Runtime Rt>
class ReadPlanLease {
 public:
  // The caller keeps `keys` until the lease has ended.
  ReadPlanLease(PlanContext<Rt>& context, PlanPtr plan, Keys keys, std::uint64_t generation)
      : context_(&context), plan_(plan), keys_(keys), generation_(generation) {}
  ReadPlanLease(ReadPlanLease&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)),
        plan_(other.plan_),
        keys_(other.keys_),
        generation_(other.generation_),
        batch_(std::move(other.batch_)) {}
  ReadPlanLease& operator=(ReadPlanLease&&) = delete;
  ~ReadPlanLease() {
    if (context_ == nullptr) return;
    PlanContext<Rt>& context = *context_;
    if (Status released = release(); !released) context.quarantine.note(std::move(released.error()));
  }

  [[nodiscard]] PlanPtr plan() const { return plan_; }

  // From here on `batch` may read the plan's memory.
  void attach(std::shared_ptr<BatchInFlight<Rt>> batch) { batch_ = std::move(batch); }

  // Ends a plan that is not of the generation it was asked from, during the call that gave it: a newer owner's. One
  // that is none any more, once another session has seen a newer owner, ended with its own.
  [[nodiscard]] Status give_back(const GenerationCall<typename PlanContext<Rt>::Registry>& call) {
    check(context_ != nullptr && batch_ == nullptr && call.live(), "a plan is given back too late");
    PlanContext<Rt>& context = *std::exchange(context_, nullptr);
    if (!context.registry.is_live(call.generation()) && !check_plan_table(plan_, keys_.size())) return {};
    return context.runtime.fluxon.release_views(plan_);
  }

  // Ends the plan, also when the call fails. Waits first; Quarantined when that fails.
  [[nodiscard]] Status release() {
    check(context_ != nullptr, "release of an ended plan");
    return context_->quarantining([this](std::vector<QuarantinedPlan<Rt>>& stuck) { return release(stuck); });
  }
  // As above, but what would be quarantined is added to `stuck`: the caller, who may use the batch still, does that.
  [[nodiscard]] Status release(std::vector<QuarantinedPlan<Rt>>& stuck) {
    check(context_ != nullptr, "release of an ended plan");
    PlanContext<Rt>& context = *std::exchange(context_, nullptr);
    if (batch_ != nullptr) {
      if (Status waited = batch_->wait(); !waited) {
        stuck.push_back({plan_, PlanSide::read, generation_, 0, std::vector<std::string>(keys_.begin(), keys_.end()),
                         std::move(batch_)});
        return make_error(Errc::quarantined, "release", "a copy may still be in flight", std::move(waited.error()));
      }
    }
    return end_plan(context.runtime, context.registry, plan_, PlanSide::read, generation_);
  }

 private:
  PlanContext<Rt>* context_;  // null once the plan has ended
  PlanPtr plan_;
  Keys keys_;
  std::uint64_t generation_;
  std::shared_ptr<BatchInFlight<Rt>> batch_;
};

}  // namespace holdfast
