// One submitted batch, from submission to the wait that proves its bytes have moved.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "holdfast/core/copy_batch.hpp"
#include "holdfast/core/copy_stream.hpp"
#include "holdfast/core/runtime.hpp"
#include "holdfast/core/segment_registry.hpp"

namespace holdfast {

// How a batch is waited for.
enum class BatchWait : std::uint8_t {
  by_stream,  // with all that its stream holds
  by_event,   // by itself: an event is recorded behind it
};

// "May be in flight" = submitted, also when the submission failed, and no successful wait since. While it is, the
// owner generation is in use; destroying it then ends no use. Shared by the plans whose memory it touches; used from
// one thread at a time.
//
// Its event is created before the copies and destroyed once: when the batch has landed, when nothing is recorded in it,
// or with the batch. A follower is always given one. Where no memory is left for an event the stream is waited for. Any
// other failure may be the first word of an earlier copy's: of those this batch counts as failed.
template <Runtime Rt>
class BatchInFlight {
 public:
  using Registry = SegmentRegistry<typename Rt::Cuda, typename Rt::SyncType>;

  BatchInFlight(Rt& runtime, Registry& registry, const CopyStream& on, std::uint64_t generation,
                BatchWait wait = BatchWait::by_stream)
      : runtime_(runtime),
        registry_(registry),
        on_(on),
        generation_(generation),
        wants_event_(wait == BatchWait::by_event || on.follower != nullptr) {}
  // An event that is left is left by a store that ends with plans in quarantine: nobody is there to be told.
  ~BatchInFlight() {
    if (event_) static_cast<void>(runtime_.cuda.event_destroy(*event_).has_value());
  }
  BatchInFlight(const BatchInFlight&) = delete;
  BatchInFlight& operator=(const BatchInFlight&) = delete;

  // `batch` has been validated. After a failure any subset of it may be in flight. Failures after which it went on are
  // moved to `absorbed`.
  Status submit(const CopyBatch& batch, std::vector<Error>& absorbed) {
    if (Status ready = prepare(absorbed); !ready) {
      failed_ = true;
      return ready;
    }
    registry_.begin_use(generation_);
    may_be_in_flight_ = true;
    Status submitted = runtime_.cuda.copy_batch(batch.direction(), batch.copies(), on_.stream);
    if (submitted && event_) submitted = runtime_.cuda.event_record(*event_, on_.stream);
    if (!submitted) {
      failed_ = true;
      drop_event(absorbed);
    }
    if (on_.follower != nullptr) on_.follower->follow(on_.stream, event_);
    return submitted;
  }

  // Nothing to wait for is a success. After a failure the batch may still be in flight; waiting again may succeed.
  Status wait(std::vector<Error>& absorbed) {
    if (!may_be_in_flight_) return {};
    return landed_if(
        waits_by_event() ? runtime_.cuda.event_synchronize(*event_) : runtime_.cuda.stream_synchronize(on_.stream),
        absorbed);
  }

  // As wait(), but returns at once where it can: false when the batch has not landed yet.
  Result<bool> poll(std::vector<Error>& absorbed) {
    if (may_be_in_flight_ && event_) {
      Result<bool> done = runtime_.cuda.event_query(*event_);
      if (!done || !*done) return done;
      return landed_if({}, absorbed).has_value();
    }
    if (Status waited = wait(absorbed); !waited) return std::move(waited.error());
    return true;
  }

  // The device context is gone, and with it every copy and event.
  void torn_down() {
    event_.reset();
    landed();
  }

  [[nodiscard]] bool may_be_in_flight() const { return may_be_in_flight_; }
  // Once its event has failed, only the stream can tell.
  [[nodiscard]] bool waits_by_event() const { return may_be_in_flight_ && event_.has_value() && !failed_; }
  // All of it was submitted, and the first wait for it succeeded: only then may its bytes be committed.
  [[nodiscard]] bool arrived() const { return !may_be_in_flight_ && !failed_; }

 private:
  Status prepare(std::vector<Error>& absorbed) {
    if (on_.producer) {
      if (Status ordered = runtime_.cuda.stream_wait(on_.stream, *on_.producer); !ordered) return ordered;
    }
    if (!wants_event_) return {};
    Result<EventRef> event = runtime_.cuda.event_create();
    if (event) {
      event_ = *event;
      return {};
    }
    if (!is_cuda(event.error(), CudaErrc::memory_allocation)) return std::move(event.error());
    absorbed.push_back(std::move(event.error()));
    return {};
  }

  Status landed_if(Status waited, std::vector<Error>& absorbed) {
    failed_ = failed_ || !waited;
    if (!waited) return waited;
    landed();
    drop_event(absorbed);
    return waited;
  }

  void landed() {
    if (may_be_in_flight_) registry_.end_use(generation_);
    may_be_in_flight_ = false;
  }

  void drop_event(std::vector<Error>& absorbed) {
    if (!event_) return;
    Status destroyed = runtime_.cuda.event_destroy(*std::exchange(event_, std::nullopt));
    if (!destroyed) absorbed.push_back(std::move(destroyed.error()));
  }

  Rt& runtime_;
  Registry& registry_;
  const CopyStream on_;
  std::uint64_t generation_;
  bool wants_event_;
  std::optional<EventRef> event_;
  bool may_be_in_flight_ = false;
  bool failed_ = false;
};

}  // namespace holdfast
