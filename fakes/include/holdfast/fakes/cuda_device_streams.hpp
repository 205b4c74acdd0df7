// The streams of the fake device: what was submitted, and when and in which order it moves. Within a stream first in,
// first out; between streams only as events say; within a batch in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
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

// The order in which the pieces of a batch move, see CopyChoice::order_seed.
void fill_order(std::vector<std::size_t>& order, std::size_t pieces, std::uint64_t seed);

// Moves the bytes elsewhere: here it is only decided when.
class CopyMover {
 public:
  virtual ~CopyMover() = default;
  // The first `pieces` pieces of a batch have moved when this returns. A batch of `n` copies has n pieces, or 2n when
  // it is split: piece p is of copy p % n, its second half from n on.
  virtual void move(std::uint64_t batch, std::size_t pieces) = 0;
};

class StreamQueues {
 public:
  explicit StreamQueues(HostRegistrations& registrations) : registrations_(registrations) {}

  // Outlives this; none: bytes move here.
  void move_with(CopyMover* mover) { mover_ = mover; }

  // Forgets everything, numbers included.
  void reset();
  // Destroys all streams and drops their work; numbers go on.
  void destroy_all();
  // Work in flight is dropped and counts as done.
  void drop_work();

  [[nodiscard]] StreamRef create(int device);
  // Work still in it goes on. False when there is no such live stream.
  [[nodiscard]] bool destroy(StreamRef stream);
  // The device of a live stream; -1 when there is none.
  [[nodiscard]] int device_of(StreamRef stream) const;
  [[nodiscard]] std::size_t live_count() const { return live_count_; }

  struct Submission {
    CopyChoice choice;
    Nanos now_ns = 0;
    Nanos due_ns = 0;        // moves by itself then, at the latest
    std::uint64_t call = 0;  // number of the submitting call
  };
  // The stream is live and the copies valid. `staged` lists, ascending, the copies that read their source now. Returns
  // the batch's number.
  std::uint64_t submit(StreamRef stream, CopyDirection direction, std::span<const Copy> copies,
                       std::span<const std::uint32_t> staged, const Submission& submission);
  void launch(StreamRef stream, std::function<void()> kernel, const Submission& submission);
  // What is submitted to `stream` from now on waits for everything before `mark`.
  void wait(StreamRef stream, StreamMark mark, Nanos due_ns);

  // Number that the next batch gets.
  [[nodiscard]] std::uint64_t next_batch() const { return next_batch_; }
  // Everything submitted to a live stream so far.
  [[nodiscard]] StreamMark mark(StreamRef stream) const;
  [[nodiscard]] bool done(StreamMark mark) const;
  // True when what is before `covered` is before `mark` too, or waited for by unfinished work before it.
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
  // All of them, oldest first.
  [[nodiscard]] std::vector<CopyView> all_touching(std::uintptr_t base, std::uint64_t bytes) const;
  // The mark behind the batch of `copy`, which is in flight.
  [[nodiscard]] StreamMark mark_behind(const CopyView& copy) const;

 private:
  enum class Kind : std::uint8_t { copies, kernel, wait };
  struct Op {
    Kind kind = Kind::copies;
    CopyDirection direction = CopyDirection::device_to_host;
    bool split = false;
    std::uint64_t order_seed = 0;
    std::uint64_t batch = 0;
    std::size_t first_copy = 0;  // in Stream::copies
    std::size_t copy_count = 0;
    std::size_t pieces_moved = 0;
    std::size_t kernel = 0;  // in kernels_
    StreamMark awaited;
    Nanos submitted_at_ns = 0;
    Nanos due_ns = 0;  // never earlier than that of the op before it
    // Hull of the batch's memory, on either side.
    std::uintptr_t dst_low = 0, dst_end = 0, src_low = 0, src_end = 0;
  };
  struct QueuedCopy {
    Copy copy;
    bool staged = false;  // `src` is a buffer of Stream::staging
  };
  struct Stream {
    bool live = false;
    int device = 0;
    std::uint64_t first_position = 0;  // of ops[0]
    std::size_t head = 0;              // ops before it are done
    std::vector<Op> ops;
    std::vector<QueuedCopy> copies;
    std::vector<std::vector<std::byte>> staging;  // until the stream runs empty

    [[nodiscard]] std::uint64_t completed() const { return first_position + head; }
    [[nodiscard]] std::uint64_t submitted() const { return first_position + ops.size(); }
    Op& at(std::uint64_t position) { return ops[position - first_position]; }
    [[nodiscard]] const Op& at(std::uint64_t position) const { return ops[position - first_position]; }
  };
  // Work with a moment of its own.
  struct Chosen {
    std::size_t stream = 0;
    std::uint64_t position = 0;
    Nanos due_ns = std::numeric_limits<Nanos>::max();
    std::uint64_t due_call = kNeverByCalls;
  };

  [[nodiscard]] static std::size_t index_of(std::uintptr_t native) { return native - kFirstStream; }
  [[nodiscard]] const Stream* live(StreamRef stream) const;
  Stream& stream_of(StreamRef stream) { return streams_[index_of(stream.native())]; }
  // Queues the op and obeys its choice.
  void push(StreamRef stream, Op op, const Submission& submission);
  void move_at_moment(std::size_t stream, std::uint64_t position);
  void run_front(Stream& stream);
  void move_pieces(const Stream& stream, Op& op, std::size_t pieces_end);
  void move_piece(const Op& op, const QueuedCopy& copy, std::size_t half) const;
  void move_bytes(CopyDirection direction, const QueuedCopy& copy, std::uint64_t offset, std::uint64_t bytes) const;
  void pop_front(Stream& stream);
  void forget_finished_choices();
  template <class Visit>
  void visit_touching(std::uintptr_t base, std::uint64_t bytes, Visit visit) const;

  HostRegistrations& registrations_;
  CopyMover* mover_ = nullptr;
  std::vector<Stream> streams_;  // by native number; those from count_ on are spare
  std::size_t count_ = 0;
  std::size_t live_count_ = 0;
  std::vector<std::size_t> busy_;  // streams that hold work, in the order in which they came to
  std::vector<Chosen> chosen_;
  std::uint64_t next_due_call_ = kNeverByCalls;
  std::uint64_t next_batch_ = 1;
  std::size_t copies_in_flight_ = 0;
  std::vector<std::function<void()>> kernels_;
  std::vector<std::size_t> spare_kernels_;
  std::vector<std::size_t> order_;             // scratch
  std::vector<StreamMark> stack_;              // scratch
  mutable std::vector<std::uint64_t> needed_;  // scratch
};

}  // namespace holdfast::fakes
