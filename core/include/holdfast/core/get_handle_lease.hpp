// A get handle with exactly one end: transfer, or cancel on every other path.
#pragma once

#include <cstdint>
#include <utility>

#include "holdfast/core/check.hpp"
#include "holdfast/core/plan_context.hpp"
#include "holdfast/core/read_plan_lease.hpp"

namespace holdfast {

// Move-only. Its destructor cancels what was not ended. For as long as the handle lives no other generation is used:
// where an owner restarted just before the handle was made, it is the new owner's, and is ended there.
template <Runtime Rt>
class GetHandleLease {
 public:
  using Call = GenerationCall<typename PlanContext<Rt>::Registry>;

  // `call`, live, began before the handle was asked for.
  GetHandleLease(PlanContext<Rt>& context, GetHandle handle, Call call)
      : context_(&context), handle_(handle), call_(std::move(call)) {
    check(call_.live(), "a handle of a generation that has gone");
  }
  GetHandleLease(GetHandleLease&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)), handle_(other.handle_), call_(std::move(other.call_)) {}
  GetHandleLease& operator=(GetHandleLease&&) = delete;
  ~GetHandleLease() {
    if (context_ == nullptr) return;
    PlanContext<Rt>& context = *context_;
    if (Status cancelled = cancel(); !cancelled) context.quarantine.note(std::move(cancelled.error()));
  }

  // Ends the handle, unless it fails with InvalidArgument 1001: then it lives, and has to be cancelled.
  // StaleGeneration, and cancelled, when another session has seen a newer owner. `keys` are the prefix's; the caller
  // keeps them until the plan has ended.
  [[nodiscard]] Result<ReadPlanLease<Rt>> transfer(Keys keys) {
    check(context_ != nullptr, "transfer of an ended handle");
    if (!context_->registry.is_live(call_.generation())) {
      Error gone = make_error(Errc::stale_generation, "transfer", "another session has seen a newer owner");
      if (Status cancelled = cancel(); !cancelled) gone.suppressed.push_back(std::move(cancelled.error()));
      return gone;
    }
    Result<PlanPtr> plan = context_->runtime.fluxon.get_transfer(handle_, keys.size());
    if (!plan) {
      if (!is_fluxon(plan.error(), FluxonErrc::invalid_argument)) context_ = nullptr;
      return std::move(plan.error());
    }
    return ReadPlanLease<Rt>(*std::exchange(context_, nullptr), *plan, keys, call_.generation());
  }

  [[nodiscard]] bool live() const { return context_ != nullptr; }

  // Ends the handle, also when the call fails.
  [[nodiscard]] Status cancel() {
    check(context_ != nullptr, "cancel of an ended handle");
    return std::exchange(context_, nullptr)->runtime.fluxon.cancel_get_transfer(handle_);
  }

 private:
  PlanContext<Rt>* context_;  // null once the handle has ended
  GetHandle handle_;
  Call call_;
};

}  // namespace holdfast
