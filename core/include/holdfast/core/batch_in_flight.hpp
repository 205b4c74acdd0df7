// One submitted batch, from submission to the wait that proves its bytes have moved.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "holdfast/core/copy_batch.hpp"
#include "holdfast/core/copy_stream.hpp"
#include "holdfast/core/runtime.hpp"
#include "holdfast/core/segment_registry.hpp"
#include "holdfast/core/stats.hpp"

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
// Its event is created before the copies and destroyed once: when the batch has landed, when nothing could be recorded
// in it, or with the batch. Where there is no memory for an event the stream is waited for. Any other failure may be
// the first word of an earlier copy's: of those the batch counts as failed.
template <Runtime Rt>
class BatchInFlight {
 public:
  using Registry = SegmentRegistry<typename Rt::Cuda, typename Rt::SyncType>;

  BatchInFlight(Rt& runtime, Registry& registry, const CopyStream& stream, std::uint64_t generation,
                BatchWait wait = BatchWait::by_stream)
      : runtime_(runtime), registry_(registry), stream_(stream), generation_(generation), wait_(wait) {}
  // An event that is left is left by a store that ends with plans in quarantine: nobody is there to be told.
  ~BatchInFlight() {
    if (event_) static_cast<void>(runtime_.cuda.event_destroy(*event_).has_value());
  }
  BatchInFlight(const BatchInFlight&) = delete;
  BatchInFlight& operator=(const BatchInFlight&) = delete;

  // Before submit: all that may take time. After a failure nothing is to be submitted.
  Status prepare() {
    Status ready = order_and_make_event();
    failed_ = failed_ || !ready;
    return ready;
  }
  // `batch` has been validated. StaleGeneration when its generation was retired since: nothing was submitted. After any
  // other failure any subset of it may be in flight.
  Status submit(const CopyBatch& batch) {
    if (Status live = registry_.begin_use(generation_); !live) {
      failed_ = true;
      drop_event();
      return live;
    }
    may_be_in_flight_ = true;
    bytes_ = batch.bytes();
    submitted_ns_ = runtime_.clock.now_ns();
    Status submitted = runtime_.cuda.copy_batch(batch.direction(), batch.copies(), stream_.stream);
    if (submitted && event_) submitted = runtime_.cuda.event_record(*event_, stream_.stream);
    failed_ = failed_ || !submitted;
    if (failed_) drop_event();
    if (stream_.follower != nullptr) stream_.follower->follow(stream_.stream, event_);
    return submitted;
  }

  // Nothing to wait for is a success. After a failure the batch may still be in flight; waiting again may succeed.
  Status wait() {
    if (!may_be_in_flight_) return {};
    Status waited =
        waits_by_event() ? runtime_.cuda.event_synchronize(*event_) : runtime_.cuda.stream_synchronize(stream_.stream);
    failed_ = failed_ || !waited;
    if (waited) landed();
    return waited;
  }

  // Asks whether it has landed; waits where there is no event to ask.
  Status poll() {
    if (!may_be_in_flight_ || !event_) return wait();
    Result<bool> done = runtime_.cuda.event_query(*event_);
    if (!done) return std::move(done.error());
    if (*done) landed();
    return {};
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
  void tell(TransferMeter& meter) const {
    if (arrived()) meter.arrived(bytes_, submitted_ns_, landed_ns_);
  }

  // Failures of its event after which it went on.
  void move_absorbed_to(std::vector<Error>& errors) {
    errors.insert(errors.end(), std::make_move_iterator(absorbed_.begin()), std::make_move_iterator(absorbed_.end()));
    absorbed_.clear();
  }

 private:
  Status order_and_make_event() {
    if (stream_.producer) {
      if (Status ordered = runtime_.cuda.stream_wait(stream_.stream, *stream_.producer); !ordered) return ordered;
    }
    if (wait_ == BatchWait::by_stream) return {};
    Result<EventRef> event = runtime_.cuda.event_create();
    if (event) {
      event_ = *event;
    } else if (is_cuda(event.error(), CudaErrc::memory_allocation)) {
      absorbed_.push_back(std::move(event.error()));
    } else {
      return std::move(event.error());
    }
    return {};
  }

  void landed() {
    if (may_be_in_flight_) registry_.end_use(generation_);
    may_be_in_flight_ = false;
    landed_ns_ = runtime_.clock.now_ns();
    drop_event();
  }

  void drop_event() {
    if (!event_) return;
    Status destroyed = runtime_.cuda.event_destroy(*std::exchange(event_, std::nullopt));
    if (!destroyed) absorbed_.push_back(std::move(destroyed.error()));
  }

  Rt& runtime_;
  Registry& registry_;
  const CopyStream stream_;
  std::uint64_t generation_;
  BatchWait wait_;
  std::optional<EventRef> event_;
  bool may_be_in_flight_ = false;
  bool failed_ = false;
  std::uint64_t bytes_ = 0;  // submitted
  Nanos submitted_ns_ = 0;
  Nanos landed_ns_ = 0;
  std::vector<Error> absorbed_;
};

}  // namespace holdfast
