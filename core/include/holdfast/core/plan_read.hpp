// One read: start, transfer, decode, one batch of copies, one wait, release.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "holdfast/core/answers.hpp"
#include "holdfast/core/copy_batch.hpp"
#include "holdfast/core/get_handle_lease.hpp"
#include "holdfast/core/plan_blob.hpp"
#include "holdfast/core/plan_context.hpp"
#include "holdfast/core/read_plan_lease.hpp"
#include "holdfast/core/tier_store.hpp"

namespace holdfast {

// A read plan over all `keys`, or nothing when one of them is not there: what was found of them is let go.
template <Runtime Rt>
[[nodiscard]] Result<std::optional<ReadPlanLease<Rt>>> open_read_plan(PlanContext<Rt>& context, Keys keys,
                                                                      std::span<const std::uint32_t> atomic_group_lens,
                                                                      std::uint64_t generation, Absorbed& absorbed) {
  using Opened = std::optional<ReadPlanLease<Rt>>;
  Result<GetStart> start = context.runtime.fluxon.get_start(keys, true, atomic_group_lens);
  if (!start) return std::move(start.error());
  GetHandleLease<Rt> handle(context, start->handle, generation);
  const std::size_t groups = std::max<std::size_t>(atomic_group_lens.size(), 1);
  if (Status sound = check_get_start(*start, keys.size(), groups); !sound) {
    if (Status cancelled = handle.cancel(); !cancelled)
      sound.error().suppressed.push_back(std::move(cancelled.error()));
    return std::move(sound.error());
  }
  if (!start->all_hit || start->transferable_len != keys.size()) {
    if (Status cancelled = handle.cancel(); !cancelled) absorbed.push_back(std::move(cancelled.error()));
    return Opened();
  }
  Result<ReadPlanLease<Rt>> plan = handle.transfer(keys);
  if (plan) return Opened(std::move(*plan));
  Error error = std::move(plan.error());
  if (handle.live()) {
    if (Status cancelled = handle.cancel(); !cancelled) error.suppressed.push_back(std::move(cancelled.error()));
  }
  // One of them vanished after the start: a miss, not a failure.
  if (is_fluxon(error, FluxonErrc::key_not_found)) {
    absorbed.push_back(std::move(error));
    return Opened();
  }
  return error;
}

// Used once. The request's tensors have been validated.
template <Runtime Rt>
class PlanRead {
 public:
  PlanRead(PlanContext<Rt>& context, const ReadRequest& request, StreamRef stream, Absorbed& absorbed)
      : context_(context), request_(request), stream_(stream), absorbed_(absorbed) {}

  ReadOutcome run() {
    Result<std::vector<Segment>> segments = context_.live_segments(absorbed_);
    if (!segments) return failed(std::move(segments.error()));
    const std::uint64_t generation = segments->front().generation;
    Result<std::optional<ReadPlanLease<Rt>>> plan =
        open_read_plan(context_, request_.keys, request_.atomic_group_lens, generation, absorbed_);
    if (!plan) return failed(std::move(plan.error()));
    if (!*plan) {
      return {ReadVerdict::incomplete, false,
              with_suppressed(make_error(Errc::incomplete, "restore", "a key is not in the store"), absorbed_)};
    }
    Status copied = copy_values(**plan, *segments, generation);
    Status released = (*plan)->release();
    if (!copied) {
      if (!released) copied.error().suppressed.push_back(std::move(released.error()));
      return failed(std::move(copied.error()));
    }
    if (!released) absorbed_.push_back(std::move(released.error()));
    return {ReadVerdict::restored, true, {}};
  }

 private:
  Status copy_values(ReadPlanLease<Rt>& plan, std::span<const Segment> segments, std::uint64_t generation) {
    Result<std::vector<std::uintptr_t>> addresses =
        decode_plan_blob({plan.plan(), PlanSide::read, request_.value_bytes, segments});
    if (!addresses) return std::move(addresses.error());
    CopyBatch copies(CopyDirection::host_to_device);
    copies.reserve(request_.copies.size());
    for (const ReadCopy& copy : request_.copies) {
      const std::uint64_t value_bytes = request_.value_bytes[copy.key];
      if (copy.value_offset > value_bytes || copy.bytes > value_bytes - copy.value_offset) {
        return make_error(Errc::invalid_argument, "restore", fmt::format("a copy reaches past value {}", copy.key));
      }
      copies.add(request_.tensors[copy.tensor], copy.tensor_offset, (*addresses)[copy.key] + copy.value_offset,
                 copy.bytes);
    }
    if (Status validated = copies.validate(context_.registry); !validated) return validated;
    auto batch = std::make_shared<BatchInFlight<Rt>>(context_.runtime, context_.registry, stream_, generation);
    plan.attach(batch);
    touched_ = true;
    if (Status submitted = batch->submit(copies); !submitted) {
      return make_error(Errc::copy_failed, "restore", "batch submission", std::move(submitted.error()));
    }
    if (Status waited = batch->wait(); !waited) {
      return make_error(Errc::copy_failed, "restore", "wait", std::move(waited.error()));
    }
    return {};
  }

  ReadOutcome failed(Error cause) {
    Error error =
        make_error(Errc::get_failed, "restore", fmt::format("{} keys", request_.keys.size()), std::move(cause));
    return {ReadVerdict::failed, touched_, with_suppressed(std::move(error), absorbed_)};
  }

  PlanContext<Rt>& context_;
  const ReadRequest& request_;
  StreamRef stream_;
  Absorbed& absorbed_;
  bool touched_ = false;
};

}  // namespace holdfast
