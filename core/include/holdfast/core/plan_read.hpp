// One read: starts, transfers, batches of copies, waits, releases.
//
// Synchronous, and where the request asks for one answer, it is one get, one batch and one wait. Else it is cut at its
// atomic groups: all gets are started first, so that every value is pinned, and nothing touched, when the first copy is
// submitted; then the copies of one batch run while the next plan is transferred and decoded.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
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

// A handle on all `keys`, or nothing when one of them is not there: what was found of them is let go.
template <Runtime Rt>
[[nodiscard]] Result<std::optional<GetHandleLease<Rt>>> start_get(PlanContext<Rt>& context, Keys keys,
                                                                  std::span<const std::uint32_t> atomic_group_lens,
                                                                  std::uint64_t generation, Absorbed& absorbed) {
  using Started = std::optional<GetHandleLease<Rt>>;
  typename GetHandleLease<Rt>::Call call(context.registry, generation);
  if (!call.live()) return make_error(Errc::stale_generation, "start_get", "the segments' generation has gone");
  Result<GetStart> start = context.runtime.fluxon.get_start(keys, true, atomic_group_lens);
  if (!start) return std::move(start.error());
  GetHandleLease<Rt> handle(context, start->handle, std::move(call));
  const std::size_t groups = std::max<std::size_t>(atomic_group_lens.size(), 1);
  if (Status sound = check_get_start(*start, keys.size(), groups); !sound) {
    if (Status cancelled = handle.cancel(); !cancelled)
      sound.error().suppressed.push_back(std::move(cancelled.error()));
    return std::move(sound.error());
  }
  if (!start->all_hit || start->transferable_len != keys.size()) {
    if (Status cancelled = handle.cancel(); !cancelled) absorbed.push_back(std::move(cancelled.error()));
    return Started();
  }
  return Started(std::move(handle));
}

// A read plan over all the handle's `keys`, or nothing when one of them has vanished. The handle has ended.
template <Runtime Rt>
[[nodiscard]] Result<std::optional<ReadPlanLease<Rt>>> transfer_all(GetHandleLease<Rt>& handle, Keys keys,
                                                                    Absorbed& absorbed) {
  using Opened = std::optional<ReadPlanLease<Rt>>;
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

// A read plan over all `keys`, or nothing when one of them is not there: what was found of them is let go.
template <Runtime Rt>
[[nodiscard]] Result<std::optional<ReadPlanLease<Rt>>> open_read_plan(PlanContext<Rt>& context, Keys keys,
                                                                      std::span<const std::uint32_t> atomic_group_lens,
                                                                      std::uint64_t generation, Absorbed& absorbed) {
  Result<std::optional<GetHandleLease<Rt>>> handle = start_get(context, keys, atomic_group_lens, generation, absorbed);
  if (!handle) return std::move(handle.error());
  if (!*handle) return std::optional<ReadPlanLease<Rt>>();
  return transfer_all(**handle, keys, absorbed);
}

// Used once. The request's tensors have been validated.
template <Runtime Rt>
class PlanRead {
 public:
  // `spent` is of this read alone.
  PlanRead(PlanContext<Rt>& context, const ReadRequest& request, const CopyStream& stream, Absorbed& absorbed,
           Stats& spent)
      : context_(context), request_(request), stream_(stream), absorbed_(absorbed), spent_(spent) {}

  ReadOutcome run() {
    if (Status sound = check_request(); !sound) return failed(std::move(sound.error()));
    Result<LiveSegments> segments = timed_in(Stage::segments, [&] { return context_.live_segments(absorbed_); });
    if (!segments) return failed(std::move(segments.error()));
    cut();
    Result<bool> there = timed_in(Stage::read_start, [&] { return start_gets(segments->front().generation); });
    for (std::size_t b = 0; there && *there && b < parts_.size(); ++b) there = read_part(b, *segments);
    for (std::size_t b = 0; there && *there && b < parts_.size(); ++b) {
      if (Status landed = land(parts_[b]); !landed) there = std::move(landed.error());
    }
    std::vector<Error> failures;
    for (Part& part : parts_) end(part, failures);
    TransferMeter meter;
    for (Part& part : parts_) {
      if (part.in_flight == nullptr) continue;
      part.in_flight->move_absorbed_to(failures);
      part.in_flight->tell(meter);
    }
    spent_.to_device += meter.total();
    context_.quarantine_plans(std::move(stuck_));
    if (there && *there) {
      move_to(absorbed_, failures);
      return {ReadVerdict::restored, true, {}, segments->epoch};
    }
    // What may still be written to is not for another try.
    const bool stuck =
        std::any_of(failures.begin(), failures.end(), [](const Error& end) { return end.is(Errc::quarantined); });
    Error error =
        there ? make_error(Errc::incomplete, "restore", "a key is not in the store") : std::move(there.error());
    move_to(error.suppressed, failures);
    if (!corrupt_groups_.empty() && !stuck) {
      return {ReadVerdict::corrupt, touched_, with_suppressed(std::move(error), absorbed_), 0,
              std::move(corrupt_groups_)};
    }
    if (!there || stuck) return failed(std::move(error));
    return {ReadVerdict::incomplete, touched_, with_suppressed(std::move(error), absorbed_)};
  }

 private:
  // What is read by one get and copied by one batch.
  struct Part {
    BatchCut groups;
    BatchCut keys;
    std::vector<std::size_t> copies;  // indices into the request's
    std::optional<GetHandleLease<Rt>> handle;
    std::optional<ReadPlanLease<Rt>> plan;
    std::shared_ptr<BatchInFlight<Rt>> in_flight;
  };

  template <class Work>
  auto timed_in(Stage stage, Work&& work) {
    return timed(spent_, stage, context_.runtime.clock, std::forward<Work>(work));
  }

  static void move_to(std::vector<Error>& to, std::vector<Error>& errors) {
    to.insert(to.end(), std::make_move_iterator(errors.begin()), std::make_move_iterator(errors.end()));
  }

  Status check_request() const {
    const std::uint64_t grouped =
        std::accumulate(request_.atomic_group_lens.begin(), request_.atomic_group_lens.end(), std::uint64_t{0});
    if (grouped != request_.keys.size() || request_.value_bytes.size() != request_.keys.size()) {
      return make_error(Errc::invalid_argument, "restore", "groups and lengths do not fit the keys");
    }
    if (!request_.checksums.empty() && request_.checksums.size() != request_.atomic_group_lens.size()) {
      return make_error(Errc::invalid_argument, "restore", "one checksum per atomic group, or none at all");
    }
    if (request_.copies.empty()) return make_error(Errc::invalid_argument, "restore", "a read without copies");
    for (const ReadCopy& copy : request_.copies) {
      if (copy.key >= request_.keys.size() || copy.tensor >= request_.tensors.size()) {
        return make_error(Errc::invalid_argument, "restore", "a copy of no key, or to no tensor");
      }
      const std::uint64_t value_bytes = request_.value_bytes[copy.key];
      if (copy.value_offset > value_bytes || copy.bytes > value_bytes - copy.value_offset) {
        return make_error(Errc::invalid_argument, "restore", fmt::format("a copy reaches past value {}", copy.key));
      }
    }
    return {};
  }

  void cut() {
    std::vector<std::uint64_t> group_bytes;
    std::vector<std::size_t> key_ends;
    std::size_t key = 0;
    for (const std::uint32_t length : request_.atomic_group_lens) {
      group_bytes.push_back(0);
      for (const std::size_t end = key + length; key < end; ++key) group_bytes.back() += request_.value_bytes[key];
      key_ends.push_back(key);
    }
    const OverlapOptions whole;
    const OverlapOptions& how = request_.one_answer ? whole : context_.options.overlap;
    for (const BatchCut& groups : cut_into_batches(group_bytes, how)) {
      Part& part = parts_.emplace_back();
      part.groups = groups;
      part.keys = {groups.first == 0 ? 0 : key_ends[groups.first - 1], key_ends[groups.last - 1]};
    }
    for (std::size_t i = 0; i < request_.copies.size(); ++i) {
      const auto part = std::upper_bound(parts_.begin(), parts_.end(), request_.copies[i].key,
                                         [](std::size_t at, const Part& one) { return at < one.keys.last; });
      part->copies.push_back(i);
    }
  }

  [[nodiscard]] Keys keys_of(const Part& part) const {
    return request_.keys.subspan(part.keys.first, part.keys.last - part.keys.first);
  }
  [[nodiscard]] std::string words_of(const Part& part) const {
    return fmt::format("groups {} to {} of {}, first {}", part.groups.first + 1, part.groups.last,
                       request_.atomic_group_lens.size(), request_.keys[part.keys.first]);
  }
  // The error stays what it was: of this part.
  Error of_part(Error error, const Part& part) const {
    if (parts_.size() == 1) return error;
    error.detail += (error.detail.empty() ? "" : ", ") + words_of(part);
    return error;
  }

  Result<bool> start_gets(std::uint64_t generation) {
    for (Part& part : parts_) {
      const auto groups = request_.atomic_group_lens.subspan(part.groups.first, part.groups.last - part.groups.first);
      auto handle = start_get(context_, keys_of(part), groups, generation, absorbed_);
      if (!handle) return of_part(std::move(handle.error()), part);
      if (!*handle) return false;
      part.handle.emplace(std::move(**handle));
    }
    return true;
  }

  // False when a value has vanished.
  Result<bool> read_part(std::size_t b, std::span<const Segment> segments) {
    auto addresses = timed_in(Stage::read_start, [&] { return transfer(parts_[b], segments); });
    if (!addresses) return std::move(addresses.error());
    if (!*addresses) return false;
    Status intact = timed_in(Stage::read_copy, [&] { return check_values(parts_[b], **addresses); });
    if (!intact) return std::move(intact.error());
    if (Status copied = copy_values(b, segments, **addresses); !copied) return std::move(copied.error());
    return true;
  }

  // Where its values lie; nothing when one has vanished.
  Result<std::optional<std::vector<std::uintptr_t>>> transfer(Part& part, std::span<const Segment> segments) {
    // A plan of a newer owner's is seen by where it lies, and is ended before anybody else uses that owner.
    const GenerationCall call(context_.registry, segments.front().generation);
    if (!call.live()) {
      return of_part(make_error(Errc::stale_generation, "read_part", "the segments' generation has gone"), part);
    }
    auto plan = transfer_all(*part.handle, keys_of(part), absorbed_);
    part.handle.reset();
    if (!plan) return of_part(std::move(plan.error()), part);
    if (!*plan) return std::optional<std::vector<std::uintptr_t>>();
    part.plan.emplace(std::move(**plan));
    const auto lengths = request_.value_bytes.subspan(part.keys.first, part.keys.last - part.keys.first);
    Result<std::vector<std::uintptr_t>> decoded =
        decode_plan_blob({part.plan->plan(), PlanSide::read, lengths, segments});
    if (!decoded) {
      if (Status released = part.plan->give_back(call); !released) {
        decoded.error().suppressed.push_back(std::move(released.error()));
      }
      part.plan.reset();
      return of_part(std::move(decoded.error()), part);
    }
    return std::optional(std::move(*decoded));
  }

  // Under its plan, which pins the slots, and before any of its copies.
  Status check_values(const Part& part, std::span<const std::uintptr_t> addresses) {
    if (request_.checksums.empty()) return {};
    std::size_t key = part.keys.first;
    std::size_t first_key = 0;
    for (std::size_t g = part.groups.first; g < part.groups.last; ++g) {
      const std::size_t length = request_.atomic_group_lens[g];
      if (const GroupChecksum& expected = request_.checksums[g]) {
        const std::uint64_t found = checksum_of_slots(addresses.subspan(key - part.keys.first, length),
                                                      request_.value_bytes.subspan(key, length));
        if (found != *expected) {
          if (corrupt_groups_.empty()) first_key = key;
          corrupt_groups_.push_back(g);
        }
      }
      key += length;
    }
    if (corrupt_groups_.empty()) return {};
    return make_error(Errc::corrupt, "restore",
                      fmt::format("{} of {} groups are not what was put, first {}", corrupt_groups_.size(),
                                  request_.atomic_group_lens.size(), request_.keys[first_key]));
  }

  Status copy_values(std::size_t b, std::span<const Segment> segments, std::span<const std::uintptr_t> addresses) {
    Part& part = parts_[b];
    if (part.copies.empty()) return {};
    CopyBatch copies(CopyDirection::host_to_device);
    Status validated = timed_in(Stage::read_copy, [&] { return validate(part, addresses, copies); });
    if (!validated) return validated;
    const std::size_t most = context_.options.overlap.batches_in_flight_max;
    if (b >= most) {
      if (Status landed = land(parts_[b - most]); !landed) return landed;
    }
    return timed_in(Stage::read_copy, [&] { return submit(part, segments, copies); });
  }

  Status validate(const Part& part, std::span<const std::uintptr_t> addresses, CopyBatch& copies) {
    copies.reserve(part.copies.size());
    for (const std::size_t i : part.copies) {
      const ReadCopy& copy = request_.copies[i];
      copies.add(request_.tensors[copy.tensor], copy.tensor_offset,
                 addresses[copy.key - part.keys.first] + copy.value_offset, copy.bytes);
    }
    Status validated = copies.validate(context_.registry, written_);
    if (!validated) return of_part(std::move(validated.error()), part);
    return validated;
  }

  Status submit(Part& part, std::span<const Segment> segments, const CopyBatch& copies) {
    part.in_flight = context_.make_batch(stream_, segments.front().generation);
    part.plan->attach(part.in_flight);
    Status submitted = part.in_flight->prepare();
    if (submitted) {
      touched_ = true;
      submitted = part.in_flight->submit(copies);
    }
    if (!submitted) {
      return of_part(make_error(Errc::copy_failed, "restore", "batch submission", std::move(submitted.error())), part);
    }
    // Behind the first batch the stream's own order is enough.
    stream_.producer.reset();
    return {};
  }

  Status wait_for(Part& part) {
    Status waited = timed_in(Stage::read_wait, [&] { return part.in_flight->wait(); });
    if (!waited) return of_part(make_error(Errc::copy_failed, "restore", "wait", std::move(waited.error())), part);
    return waited;
  }

  // Waits for its copies and lets its views go, while those behind it are copied.
  Status land(Part& part) {
    if (part.in_flight != nullptr) {
      if (Status waited = wait_for(part); !waited) return waited;
    }
    end(part, absorbed_);
    return {};
  }

  // The handle or plan that is left of it. Failures are moved to `failures`.
  void end(Part& part, std::vector<Error>& failures) {
    // Where its event fails, the end of the plan asks the stream.
    if (part.in_flight != nullptr && part.in_flight->waits_by_event()) {
      if (Status waited = wait_for(part); !waited) failures.push_back(std::move(waited.error()));
    }
    if (!part.handle && !part.plan) return;
    Status ended =
        timed_in(Stage::read_end, [&] { return part.handle ? part.handle->cancel() : part.plan->release(stuck_); });
    part.handle.reset();
    part.plan.reset();
    if (!ended) failures.push_back(std::move(ended.error()));
  }

  ReadOutcome failed(Error cause) {
    Error error =
        make_error(Errc::get_failed, "restore", fmt::format("{} keys", request_.keys.size()), std::move(cause));
    return {ReadVerdict::failed, touched_, with_suppressed(std::move(error), absorbed_), 0, std::move(corrupt_groups_)};
  }

  PlanContext<Rt>& context_;
  const ReadRequest& request_;
  CopyStream stream_;
  Absorbed& absorbed_;
  Stats& spent_;
  std::vector<QuarantinedPlan<Rt>> stuck_;  // goes to the quarantine when nobody waits here any more
  std::vector<Part> parts_;
  std::vector<HostRange> written_;  // by their copies
  std::vector<std::size_t> corrupt_groups_;
  bool touched_ = false;
};

}  // namespace holdfast
