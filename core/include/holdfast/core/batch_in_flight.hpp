// One submitted batch, from submission to the wait that proves its bytes have moved.
#pragma once

#include <cstdint>

#include "holdfast/core/copy_batch.hpp"
#include "holdfast/core/runtime.hpp"
#include "holdfast/core/segment_registry.hpp"

namespace holdfast {

// "May be in flight" = submitted, also when the submission failed, and no successful wait since. While it is, the
// owner generation is in use; destroying it then ends no use. Shared by the plans whose memory it touches; used from
// one thread at a time.
template <Runtime Rt>
class BatchInFlight {
 public:
  using Registry = SegmentRegistry<typename Rt::Cuda, typename Rt::SyncType>;

  BatchInFlight(Rt& runtime, Registry& registry, StreamRef stream, std::uint64_t generation)
      : runtime_(runtime), registry_(registry), stream_(stream), generation_(generation) {}
  BatchInFlight(const BatchInFlight&) = delete;
  BatchInFlight& operator=(const BatchInFlight&) = delete;

  // `batch` has been validated. StaleGeneration when its generation was retired since: nothing was submitted. After any
  // other failure any subset of it may be in flight.
  Status submit(const CopyBatch& batch) {
    if (Status live = registry_.begin_use(generation_); !live) return live;
    may_be_in_flight_ = true;
    Status submitted = runtime_.cuda.copy_batch(batch.direction(), batch.copies(), stream_);
    failed_ = failed_ || !submitted;
    return submitted;
  }

  // Nothing to wait for is a success. After a failure the batch may still be in flight; waiting again may succeed.
  Status wait() {
    if (!may_be_in_flight_) return {};
    Status waited = runtime_.cuda.stream_synchronize(stream_);
    failed_ = failed_ || !waited;
    if (waited) landed();
    return waited;
  }

  // The device context is gone, and every copy with it.
  void torn_down() { landed(); }

  [[nodiscard]] bool may_be_in_flight() const { return may_be_in_flight_; }
  // All of it was submitted, and the first wait for it succeeded: only then may its bytes be committed.
  [[nodiscard]] bool arrived() const { return !may_be_in_flight_ && !failed_; }

 private:
  void landed() {
    if (may_be_in_flight_) registry_.end_use(generation_);
    may_be_in_flight_ = false;
  }

  Rt& runtime_;
  Registry& registry_;
  StreamRef stream_;
  std::uint64_t generation_;
  bool may_be_in_flight_ = false;
  bool failed_ = false;
};

}  // namespace holdfast
