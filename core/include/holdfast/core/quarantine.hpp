// Plans whose memory cannot be let go yet, because a copy may still be in flight there and no wait succeeds.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/batch_in_flight.hpp"
#include "holdfast/core/plan_blob.hpp"
#include "holdfast/core/runtime.hpp"
#include "holdfast/core/segment_registry.hpp"
#include "holdfast/core/stats.hpp"
#include "holdfast/core/unsettled_table.hpp"

namespace holdfast {

template <Runtime Rt>
struct QuarantinedPlan {
  PlanPtr plan;
  PlanSide side = PlanSide::write;
  std::uint64_t generation = 0;
  std::uint64_t slot_bytes = 0;   // counted as held; 0 for a read plan, whose values are counted elsewhere
  std::vector<std::string> keys;  // they answer "unsettled"
  std::shared_ptr<BatchInFlight<Rt>> batch;
};

// How a quarantine finds out that copies have landed.
enum class Landing : std::uint8_t {
  poll,       // without waiting, where the batch has an event to ask
  wait,       // by waiting
  torn_down,  // the device context was torn down: nothing is in flight, whatever the waits said
};

// Ends a plan by the call that is right for it. A plan of an older generation ended with its generation: no call.
template <Runtime Rt>
[[nodiscard]] Status end_plan(Rt& runtime, typename BatchInFlight<Rt>::Registry& registry, PlanPtr plan, PlanSide side,
                              std::uint64_t generation) {
  const GenerationCall call(registry, generation);
  if (!call.live()) return {};
  return side == PlanSide::write ? runtime.fluxon.put_abort(plan) : runtime.fluxon.release_views(plan);
}

// Thread-safe. Also keeps the errors of clean-ups that had nobody to be returned to.
template <Runtime Rt>
class Quarantine {
 public:
  using Registry = typename BatchInFlight<Rt>::Registry;

  Quarantine(Rt& runtime, Registry& registry) : runtime_(runtime), registry_(registry), mutex_(runtime.sync) {}

  // Plans that share a batch are added, and looked at, together: a batch is used from one thread at a time.
  void add(std::vector<QuarantinedPlan<Rt>> plans) {
    const std::scoped_lock lock(mutex_);
    size_ += plans.size();
    longest_ = std::max<std::uint64_t>(longest_, size_);
    for (const QuarantinedPlan<Rt>& plan : plans) held_bytes_ += plan.slot_bytes;
    put_back(std::move(plans));
  }
  void note(Error error) {
    const std::scoped_lock lock(mutex_);
    notes_.push_back(std::move(error));
  }

  // Ends those whose copies have landed. Their keys are moved to `unblocked`; errors of waits and of ending calls, and
  // the notes, to `errors`. What another is at is left to it, and counts until it has ended.
  void end_landed(Landing how, std::vector<std::string>& unblocked, std::vector<Error>& errors) {
    std::vector<QuarantinedPlan<Rt>> plans;
    {
      const std::scoped_lock lock(mutex_);
      plans.swap(plans_);
      errors.insert(errors.end(), std::make_move_iterator(notes_.begin()), std::make_move_iterator(notes_.end()));
      notes_.clear();
    }
    std::vector<QuarantinedPlan<Rt>> stuck;
    for (QuarantinedPlan<Rt>& plan : plans) {
      if (!landed(*plan.batch, how, errors)) {
        stuck.push_back(std::move(plan));
        continue;
      }
      if (Status ended = end_plan(runtime_, registry_, plan.plan, plan.side, plan.generation); !ended) {
        errors.push_back(std::move(ended.error()));
      }
      {
        const std::scoped_lock lock(mutex_);
        --size_;
        held_bytes_ -= plan.slot_bytes;
      }
      unblocked.insert(unblocked.end(), std::make_move_iterator(plan.keys.begin()),
                       std::make_move_iterator(plan.keys.end()));
    }
    if (stuck.empty()) return;
    const std::scoped_lock lock(mutex_);
    put_back(std::move(stuck));
  }

  [[nodiscard]] std::size_t size() const {
    const std::scoped_lock lock(mutex_);
    return size_;
  }
  [[nodiscard]] ListLength length() const {
    const std::scoped_lock lock(mutex_);
    return {size_, longest_};
  }
  [[nodiscard]] std::uint64_t held_bytes() const {
    const std::scoped_lock lock(mutex_);
    return held_bytes_;
  }

 private:
  // The lock is held.
  void put_back(std::vector<QuarantinedPlan<Rt>> plans) {
    plans_.insert(plans_.end(), std::make_move_iterator(plans.begin()), std::make_move_iterator(plans.end()));
  }

  static bool landed(BatchInFlight<Rt>& batch, Landing how, std::vector<Error>& errors) {
    if (how == Landing::torn_down) batch.torn_down();
    Status waited = how == Landing::poll ? batch.poll() : batch.wait();
    batch.move_absorbed_to(errors);
    if (!waited) errors.push_back(std::move(waited.error()));
    return !batch.may_be_in_flight();
  }

  Rt& runtime_;
  Registry& registry_;
  mutable typename Rt::SyncType::Mutex mutex_;
  // Guarded by mutex_:
  std::vector<QuarantinedPlan<Rt>> plans_;  // that nobody is at
  std::size_t size_ = 0;                    // of those, and of those that somebody is at
  std::uint64_t held_bytes_ = 0;            // theirs
  std::vector<Error> notes_;
  std::uint64_t longest_ = 0;  // size_ so far
};

}  // namespace holdfast
