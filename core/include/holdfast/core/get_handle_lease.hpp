// A get handle with exactly one end: transfer, or cancel on every other path.
#pragma once

#include <cstdint>
#include <utility>

#include "holdfast/core/check.hpp"
#include "holdfast/core/plan_context.hpp"
#include "holdfast/core/read_plan_lease.hpp"

namespace holdfast {

// Move-only. Its destructor cancels what was not ended.
template <Runtime Rt>
class GetHandleLease {
 public:
  GetHandleLease(PlanContext<Rt>& context, GetHandle handle, std::uint64_t generation)
      : context_(&context), handle_(handle), generation_(generation) {}
  GetHandleLease(GetHandleLease&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)), handle_(other.handle_), generation_(other.generation_) {}
  GetHandleLease& operator=(GetHandleLease&&) = delete;
  ~GetHandleLease() {
    if (context_ == nullptr) return;
    PlanContext<Rt>& context = *context_;
    if (Status cancelled = cancel(); !cancelled) context.quarantine.note(std::move(cancelled.error()));
  }

  // Ends the handle, unless it fails with InvalidArgument 1001: then it lives, and has to be cancelled. A handle of an
  // older generation ended with it: StaleGeneration. `keys` are the prefix's; the caller keeps them until the plan has
  // ended.
  [[nodiscard]] Result<ReadPlanLease<Rt>> transfer(Keys keys) {
    check(context_ != nullptr, "transfer of an ended handle");
    const GenerationCall call(context_->registry, generation_);
    if (!call.live()) {
      context_ = nullptr;
      return make_error(Errc::stale_generation, "transfer", "the handle's generation has gone");
    }
    Result<PlanPtr> plan = context_->runtime.fluxon.get_transfer(handle_, keys.size());
    if (!plan) {
      if (!is_fluxon(plan.error(), FluxonErrc::invalid_argument)) context_ = nullptr;
      return std::move(plan.error());
    }
    return ReadPlanLease<Rt>(*std::exchange(context_, nullptr), *plan, keys, generation_);
  }

  [[nodiscard]] bool live() const { return context_ != nullptr; }

  // Ends the handle, also when the call fails.
  [[nodiscard]] Status cancel() {
    check(context_ != nullptr, "cancel of an ended handle");
    PlanContext<Rt>& context = *std::exchange(context_, nullptr);
    const GenerationCall call(context.registry, generation_);
    if (!call.live()) return {};
    return context.runtime.fluxon.cancel_get_transfer(handle_);
  }

 private:
  PlanContext<Rt>* context_;  // null once the handle has ended
  GetHandle handle_;
  std::uint64_t generation_;
};

}  // namespace holdfast
