// The streams of the fake device: what was submitted, and when and in which order it moves. Within a stream first in,
// first out; between streams only as events say; within a batch in any order.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/time.hpp"

namespace holdfast::fakes {

class HostRegistrations;

inline constexpr std::uint64_t kNeverByCalls = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::uintptr_t kFirstStream = 16;

enum class CopyMoment : std::uint8_t {
  at_the_wait,    // when a wait covers it, or by itself after DeviceOptions::copy_time_max_ns
  at_submission,  // before the submitting call returns
  after_calls,    // before the effect of the `calls`-th call of the device after the submitting one
  after_time,     // `delay_ns` of virtual time after submission
};

// When and how the copies of one batch move. Work before it in the stream moves first, whatever its own choice.
struct CopyChoice {
  CopyMoment moment = CopyMoment::at_the_wait;
  std::uint64_t calls = 0;
  Nanos delay_ns = 0;
  // 0: the copies move in reversed order; else a seed of the permutation.
  std::uint64_t order_seed = 0;
  // Each copy moves in two pieces, the pieces of the batch in the permuted order: one half of the pieces at the moment,
  // the other half at the wait. With at_the_wait, all at the wait.
  bool split = false;
};

// One copy of a submitted batch.
struct CopyView {
  std::uint64_t batch = 0;  // number of the batch, from 1
  std::uint32_t index = 0;  // within the batch, as submitted
  CopyDirection direction = CopyDirection::device_to_host;
  Copy copy;
  std::uintptr_t stream = 0;  // native number
  Nanos submitted_at_ns = 0;

  [[nodiscard]] std::uintptr_t host() const { return direction == CopyDirection::device_to_host ? copy.dst : copy.src; }
  [[nodiscard]] std::uintptr_t device() const {
    return direction == CopyDirection::device_to_host ? copy.src : copy.dst;
  }
};

// A point in a stream: everything submitted to it before.
struct StreamMark {
  std::uintptr_t stream = 0;  // native number; 0 for nothing
  std::uint64_t position = 0;
};

class StreamQueues {
 public:
  explicit StreamQueues(const HostRegistrations& registrations) : registrations_(registrations) {}

  // Forgets everything, numbers included.
  void reset();
  // Destroys all streams; numbers go on.
  void destroy_all();
  // Work in flight is dropped.
  void drop_work();

  [[nodiscard]] StreamRef create(int device);
  // False when there is no such live stream.
  [[nodiscard]] bool destroy(StreamRef stream);
  // The device of a live stream; nullopt when there is none.
  [[nodiscard]] std::optional<int> device_of(StreamRef stream) const;
  [[nodiscard]] std::size_t live_count() const { return live_count_; }

  struct Submission {
    CopyDirection direction = CopyDirection::device_to_host;
    CopyChoice choice;
    Nanos now_ns = 0;
    Nanos due_ns = 0;  // by itself at the latest
    std::uint64_t call = 0;
  };
  // The stream is live and the copies valid. Returns the batch's number.
  std::uint64_t submit(StreamRef stream, std::span<const Copy> copies, const Submission& submission);
  void launch(StreamRef stream, std::function<void()> kernel, const Submission& submission);
  void wait(StreamRef stream, StreamMark mark, Nanos due_ns);
  // Makes copy `index` of the batch submitted last to `stream` read its source now.
  void stage_source(StreamRef stream, std::uint32_t index);

  // Number that the next batch gets.
  [[nodiscard]] std::uint64_t next_batch() const { return next_batch_; }
  [[nodiscard]] StreamMark mark(StreamRef stream) const;
  [[nodiscard]] bool done(StreamMark mark) const;
  // True when everything before `covered` is among, or waited for by, what is before `mark`.
  [[nodiscard]] bool covers(StreamMark mark, StreamMark covered) const;
  // Moves everything before `mark` and all that it waits for.
  void finish(StreamMark mark);

  [[nodiscard]] Nanos next_due_ns() const;
  void run_due(Nanos now_ns);
  // The earliest call number at which something moves.
  [[nodiscard]] std::uint64_t next_due_call() const { return next_due_call_; }
  void run_due_calls(std::uint64_t call);

  [[nodiscard]] std::size_t in_flight_count() const { return copies_in_flight_; }
  // The oldest copy in flight that touches the range, on the host or on the device.
  [[nodiscard]] std::optional<CopyView> oldest_touching(std::uintptr_t base, std::uint64_t bytes) const;
  // Appends all of them, oldest first.
  void all_touching(std::uintptr_t base, std::uint64_t bytes, std::vector<CopyView>& out) const;
  // The mark behind the batch of `copy`, which is in flight.
  [[nodiscard]] StreamMark mark_behind(const CopyView& copy) const;
};

}  // namespace holdfast::fakes
