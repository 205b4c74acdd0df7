// What the plans of one store share: the runtime, the registry, the quarantine and the table of unsettled keys.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/answers.hpp"
#include "holdfast/core/batch_cuts.hpp"
#include "holdfast/core/check.hpp"
#include "holdfast/core/guarded.hpp"
#include "holdfast/core/quarantine.hpp"
#include "holdfast/core/segment_registry.hpp"
#include "holdfast/core/unsettled_table.hpp"

namespace holdfast {

struct PlanOptions {
  Nanos plan_age_max_ns = 20 * kMinute;     // below kPlanTimeout, when the owner frees the slots under a live plan
  Nanos commit_patience_ns = 10 * kSecond;  // how long a commit's future is waited for
  OverlapOptions overlap;
  // Puts take checksums of their values; see value_checksum.hpp. Reads compare whatever they are given.
  bool checksums = false;
  RegistryOptions registry;
  UnsettledOptions unsettled;
};

// The owner's segments, and the registry's epoch of them.
struct LiveSegments : std::vector<Segment> {
  std::uint64_t epoch = 0;
};

// `runtime` outlives it.
template <Runtime Rt>
class PlanContext {
 public:
  using SyncType = typename Rt::SyncType;
  using Registry = SegmentRegistry<typename Rt::Cuda, SyncType>;

  PlanContext(Rt& runtime_ref, const PlanOptions& plan_options)
      : runtime(runtime_ref),
        options(plan_options),
        registry(runtime_ref.cuda, runtime_ref.sync, plan_options.registry),
        quarantine(runtime_ref, registry),
        unsettled(runtime_ref.sync, plan_options.unsettled) {
    check(options.overlap.batches_in_flight_max > 0, "no batch may be in flight");
  }

  [[nodiscard]] Nanos now_ns() const { return runtime.clock.now_ns(); }

  // The owner's live segments, registered. Failures after which it went on are moved to `absorbed`.
  Result<LiveSegments> live_segments(std::vector<Error>& absorbed) {
    const std::uint64_t look = registry.begin_look();
    Result<std::vector<Segment>> segments = runtime.fluxon.wait_local_segments_ready();
    if (!segments) return std::move(segments.error());
    if (Status sound = check_segments(*segments); !sound) return std::move(sound.error());
    Result<std::uint64_t> epoch = registry.ensure(look, *segments, absorbed);
    if (!epoch) return std::move(epoch.error());
    return LiveSegments{std::move(*segments), *epoch};
  }

  // A batch of one operation, that the options say how to wait for.
  [[nodiscard]] std::shared_ptr<BatchInFlight<Rt>> make_batch(const CopyStream& on, std::uint64_t generation) {
    const bool overlapped = options.overlap.mode == CopyMode::overlapped;
    return std::make_shared<BatchInFlight<Rt>>(runtime, registry, on, generation,
                                               overlapped ? BatchWait::by_event : BatchWait::by_stream);
  }

  // Their keys answer "unsettled" until the quarantine lets a plan go. Plans that share a batch come together, and
  // nobody else uses the batch from here on.
  void quarantine_plans(std::vector<QuarantinedPlan<Rt>> plans) {
    if (plans.empty()) return;
    unsettled.with([&](UnsettledTable& table) {
      for (const QuarantinedPlan<Rt>& plan : plans) {
        for (const std::string& key : plan.keys) table.block(key);
      }
    });
    quarantine.add(std::move(plans));
  }

  // What `end` answers; the plans that it adds to its list are quarantined.
  template <class End>
  Status quarantining(End&& end) {
    std::vector<QuarantinedPlan<Rt>> stuck;
    Status ended = end(stuck);
    quarantine_plans(std::move(stuck));
    return ended;
  }

  // Errors are moved to `errors`; what they belong to stays queued.
  void end_quarantined(Landing how, std::vector<Error>& errors) {
    std::vector<std::string> unblocked;
    quarantine.end_landed(how, unblocked, errors);
    unblock(unblocked);
  }
  void device_torn_down(std::vector<Error>& errors) {
    end_quarantined(Landing::torn_down, errors);
    registry.forget_all();
  }

  Rt& runtime;
  const PlanOptions options;
  Registry registry;
  Quarantine<Rt> quarantine;
  Guarded<UnsettledTable, SyncType> unsettled;

 private:
  void unblock(const std::vector<std::string>& keys) {
    unsettled.with([&](UnsettledTable& table) {
      for (const std::string& key : keys) table.unblock(key);
    });
  }
};

}  // namespace holdfast
