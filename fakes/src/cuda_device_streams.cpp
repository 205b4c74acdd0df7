#include "holdfast/fakes/cuda_device_streams.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "holdfast/core/check.hpp"
#include "holdfast/fakes/cuda_device_registrations.hpp"

namespace holdfast::fakes {
namespace {

// A queue that never runs empty still lets its done part go.
constexpr std::size_t kDoneOpsKept = 1024;

// SplitMix64: the same sequence everywhere.
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

bool touches(const Copy& copy, bool staged, std::uintptr_t base, std::uint64_t bytes) {
  return overlap(copy.dst, copy.bytes, base, bytes) || (!staged && overlap(copy.src, copy.bytes, base, bytes));
}

}  // namespace

void fill_order(std::vector<std::size_t>& order, std::size_t pieces, std::uint64_t seed) {
  order.resize(pieces);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (seed == 0) {
    std::reverse(order.begin(), order.end());
    return;
  }
  std::uint64_t state = seed;
  for (std::size_t i = pieces; i > 1; --i) std::swap(order[i - 1], order[next_random(state) % i]);
}

void StreamQueues::reset() {
  destroy_all();
  count_ = 0;
  next_batch_ = 1;
}

void StreamQueues::destroy_all() {
  drop_work();
  for (std::size_t i = 0; i < count_; ++i) streams_[i].live = false;
  live_count_ = 0;
}

void StreamQueues::drop_work() {
  for (const std::size_t i : busy_) {
    Stream& stream = streams_[i];
    stream.first_position = stream.submitted();
    stream.head = 0;
    stream.ops.clear();
    stream.copies.clear();
    stream.staging.clear();
  }
  busy_.clear();
  chosen_.clear();
  next_due_call_ = kNeverByCalls;
  copies_in_flight_ = 0;
  kernels_.clear();
  spare_kernels_.clear();
}

StreamRef StreamQueues::create(int device) {
  if (count_ == streams_.size()) streams_.emplace_back();
  Stream& stream = streams_[count_];
  check(stream.ops.empty(), "a new stream is empty");
  stream.live = true;
  stream.device = device;
  stream.first_position = 0;
  ++live_count_;
  const Result<StreamRef> ref = StreamRef::from_native(kFirstStream + count_++);
  check(ref.has_value(), "a native stream is never 0");
  return *ref;
}

bool StreamQueues::destroy(StreamRef stream) {
  if (live(stream) == nullptr) return false;
  stream_of(stream).live = false;
  --live_count_;
  return true;
}

const StreamQueues::Stream* StreamQueues::live(StreamRef stream) const {
  const std::size_t index = index_of(stream.native());
  return index < count_ && streams_[index].live ? &streams_[index] : nullptr;
}

int StreamQueues::device_of(StreamRef stream) const {
  const Stream* found = live(stream);
  return found == nullptr ? -1 : found->device;
}

std::uint64_t StreamQueues::submit(StreamRef stream_ref, CopyDirection direction, std::span<const Copy> copies,
                                   std::span<const std::uint32_t> staged, const Submission& submission) {
  Stream& stream = stream_of(stream_ref);
  Op op;
  op.direction = direction;
  op.split = submission.choice.split;
  op.order_seed = submission.choice.order_seed;
  op.batch = next_batch_++;
  op.first_copy = stream.copies.size();
  op.copy_count = copies.size();
  op.dst_low = op.src_low = ~std::uintptr_t{0};
  for (const Copy& copy : copies) {
    stream.copies.push_back({copy, false});
    op.dst_low = std::min(op.dst_low, copy.dst);
    op.dst_end = std::max(op.dst_end, copy.dst + copy.bytes);
    op.src_low = std::min(op.src_low, copy.src);
    op.src_end = std::max(op.src_end, copy.src + copy.bytes);
  }
  for (const std::uint32_t index : staged) {
    QueuedCopy& queued = stream.copies[op.first_copy + index];
    const auto* source = reinterpret_cast<const std::byte*>(queued.copy.src);
    stream.staging.emplace_back(source, source + queued.copy.bytes);
    queued.copy.src = reinterpret_cast<std::uintptr_t>(stream.staging.back().data());
    queued.staged = true;
  }
  copies_in_flight_ += copies.size();
  push(stream_ref, op, submission);
  return op.batch;
}

void StreamQueues::launch(StreamRef stream, std::function<void()> kernel, const Submission& submission) {
  Op op;
  op.kind = Kind::kernel;
  op.first_copy = stream_of(stream).copies.size();
  if (spare_kernels_.empty()) {
    op.kernel = kernels_.size();
    kernels_.push_back(std::move(kernel));
  } else {
    op.kernel = spare_kernels_.back();
    spare_kernels_.pop_back();
    kernels_[op.kernel] = std::move(kernel);
  }
  push(stream, op, submission);
}

void StreamQueues::wait(StreamRef stream, StreamMark mark, Nanos due_ns) {
  if (done(mark)) return;
  Op op;
  op.kind = Kind::wait;
  op.first_copy = stream_of(stream).copies.size();
  op.awaited = mark;
  Submission submission;
  submission.due_ns = due_ns;
  push(stream, op, submission);
}

void StreamQueues::push(StreamRef ref, Op op, const Submission& submission) {
  Stream& stream = stream_of(ref);
  op.submitted_at_ns = submission.now_ns;
  op.due_ns = submission.due_ns;
  if (stream.ops.empty()) busy_.push_back(index_of(ref.native()));
  stream.ops.push_back(op);

  const std::uint64_t position = stream.submitted() - 1;
  Chosen chosen{index_of(ref.native()), position};
  switch (submission.choice.moment) {
    case CopyMoment::at_the_wait:
      return;
    case CopyMoment::at_submission:
      move_at_moment(chosen.stream, position);
      return;
    case CopyMoment::after_calls:
      if (submission.choice.calls == 0) {
        move_at_moment(chosen.stream, position);
        return;
      }
      chosen.due_call = submission.choice.calls < kNeverByCalls - submission.call
                            ? submission.call + submission.choice.calls
                            : kNeverByCalls;
      next_due_call_ = std::min(next_due_call_, chosen.due_call);
      break;
    case CopyMoment::after_time:
      if (submission.choice.delay_ns <= 0) {
        move_at_moment(chosen.stream, position);
        return;
      }
      chosen.due_ns = submission.choice.delay_ns < std::numeric_limits<Nanos>::max() - submission.now_ns
                          ? submission.now_ns + submission.choice.delay_ns
                          : std::numeric_limits<Nanos>::max();
      break;
  }
  chosen_.push_back(chosen);
}

void StreamQueues::move_at_moment(std::size_t index, std::uint64_t position) {
  const std::uintptr_t native = kFirstStream + index;
  Stream& stream = streams_[index];
  if (position < stream.completed()) return;
  const bool half = stream.at(position).kind == Kind::copies && stream.at(position).split;
  if (!half) {
    finish({native, position + 1});
    return;
  }
  finish({native, position});
  Op& op = stream.at(position);
  move_pieces(stream, op, op.copy_count);
}

StreamMark StreamQueues::mark(StreamRef stream) const {
  const Stream* found = live(stream);
  return found == nullptr ? StreamMark{} : StreamMark{stream.native(), found->submitted()};
}

bool StreamQueues::done(StreamMark mark) const {
  return mark.stream == 0 || streams_[index_of(mark.stream)].completed() >= mark.position;
}

bool StreamQueues::covers(StreamMark mark, StreamMark covered) const {
  if (mark.stream == 0 || covered.stream == 0) return false;
  needed_.assign(count_, 0);
  needed_[index_of(mark.stream)] = mark.position;
  // What a wait names was submitted before it, so each turn adds work that is older: the marks only grow, up to what
  // was submitted.
  for (bool grown = true; grown;) {
    grown = false;
    for (const std::size_t i : busy_) {
      const Stream& stream = streams_[i];
      for (std::uint64_t at = stream.completed(); at < needed_[i] && at < stream.submitted(); ++at) {
        const Op& op = stream.at(at);
        if (op.kind != Kind::wait) continue;
        std::uint64_t& needed = needed_[index_of(op.awaited.stream)];
        if (needed >= op.awaited.position) continue;
        needed = op.awaited.position;
        grown = true;
      }
    }
  }
  const std::size_t index = index_of(covered.stream);
  // A position of 0 was reached by nothing: only a wait for that very stream covers it.
  if (covered.stream == mark.stream) return mark.position >= covered.position;
  return covered.position > 0 && needed_[index] >= covered.position;
}

void StreamQueues::finish(StreamMark mark) {
  if (done(mark)) return;
  stack_.assign(1, mark);
  // An op waits only for what was submitted before it, so no stream comes twice with more to do.
  while (!stack_.empty()) {
    const StreamMark top = stack_.back();
    if (done(top)) {
      stack_.pop_back();
      continue;
    }
    Stream& stream = streams_[index_of(top.stream)];
    const Op& front = stream.ops[stream.head];
    if (front.kind == Kind::wait && !done(front.awaited)) {
      stack_.push_back(front.awaited);
      continue;
    }
    run_front(stream);
  }
  if (!chosen_.empty()) forget_finished_choices();
}

void StreamQueues::run_front(Stream& stream) {
  Op& op = stream.ops[stream.head];
  switch (op.kind) {
    case Kind::copies:
      move_pieces(stream, op, op.split ? 2 * op.copy_count : op.copy_count);
      copies_in_flight_ -= op.copy_count;
      break;
    case Kind::kernel: {
      const std::function<void()> kernel = std::move(kernels_[op.kernel]);
      kernels_[op.kernel] = nullptr;
      spare_kernels_.push_back(op.kernel);
      kernel();
      break;
    }
    case Kind::wait:
      break;
  }
  pop_front(stream);
}

void StreamQueues::pop_front(Stream& stream) {
  ++stream.head;
  if (stream.head == stream.ops.size()) {
    stream.first_position += stream.head;
    stream.head = 0;
    stream.ops.clear();
    stream.copies.clear();
    stream.staging.clear();
    std::erase(busy_, static_cast<std::size_t>(&stream - streams_.data()));
    return;
  }
  if (stream.head < kDoneOpsKept || stream.head < stream.ops.size() / 2) return;
  const std::size_t copies_done = stream.ops[stream.head].first_copy;
  stream.ops.erase(stream.ops.begin(), stream.ops.begin() + static_cast<std::ptrdiff_t>(stream.head));
  stream.copies.erase(stream.copies.begin(), stream.copies.begin() + static_cast<std::ptrdiff_t>(copies_done));
  for (Op& op : stream.ops) op.first_copy -= copies_done;
  stream.first_position += stream.head;
  stream.head = 0;
}

void StreamQueues::move_pieces(const Stream& stream, Op& op, std::size_t pieces_end) {
  if (mover_ != nullptr) {
    op.pieces_moved = pieces_end;
    mover_->move(op.batch, pieces_end);
    return;
  }
  const QueuedCopy* copies = stream.copies.data() + op.first_copy;
  if (!op.split && op.order_seed == 0) {
    for (std::size_t i = op.copy_count; i > 0; --i)
      move_bytes(op.direction, copies[i - 1], 0, copies[i - 1].copy.bytes);
    return;
  }
  fill_order(order_, op.split ? 2 * op.copy_count : op.copy_count, op.order_seed);
  for (; op.pieces_moved < pieces_end; ++op.pieces_moved) {
    // Pieces below the count are first halves: reversed, every second half moves before any first.
    const std::size_t piece = order_[op.pieces_moved];
    move_piece(op, copies[piece % op.copy_count], piece / op.copy_count);
  }
}

void StreamQueues::move_piece(const Op& op, const QueuedCopy& copy, std::size_t half) const {
  if (!op.split) {
    move_bytes(op.direction, copy, 0, copy.copy.bytes);
    return;
  }
  const std::uint64_t first_bytes = copy.copy.bytes / 2;
  if (half == 0) {
    move_bytes(op.direction, copy, 0, first_bytes);
  } else {
    move_bytes(op.direction, copy, first_bytes, copy.copy.bytes - first_bytes);
  }
}

void StreamQueues::move_bytes(CopyDirection direction, const QueuedCopy& queued, std::uint64_t offset,
                              std::uint64_t bytes) const {
  auto* dst = reinterpret_cast<std::byte*>(queued.copy.dst + offset);
  const auto* src = reinterpret_cast<const std::byte*>(queued.copy.src + offset);
  if (queued.staged || !registrations_.any_stale()) {
    std::memcpy(dst, src, bytes);
    return;
  }
  if (direction == CopyDirection::host_to_device) {
    registrations_.resolve(
        queued.copy.src + offset, bytes,
        [&](std::byte* at, std::uint64_t from, std::uint64_t length) { std::memcpy(dst + from, at, length); });
  } else {
    registrations_.resolve(
        queued.copy.dst + offset, bytes,
        [&](std::byte* at, std::uint64_t from, std::uint64_t length) { std::memcpy(at, src + from, length); });
  }
}

void StreamQueues::forget_finished_choices() {
  std::erase_if(chosen_, [&](const Chosen& chosen) { return chosen.position < streams_[chosen.stream].completed(); });
  next_due_call_ = kNeverByCalls;
  for (const Chosen& chosen : chosen_) next_due_call_ = std::min(next_due_call_, chosen.due_call);
}

Nanos StreamQueues::next_due_ns() const {
  Nanos due = std::numeric_limits<Nanos>::max();
  for (const std::size_t i : busy_) due = std::min(due, streams_[i].ops[streams_[i].head].due_ns);
  for (const Chosen& chosen : chosen_) due = std::min(due, chosen.due_ns);
  return due;
}

void StreamQueues::run_due(Nanos now_ns) {
  // Each turn finishes an op or uses up a choice.
  for (Nanos due = next_due_ns(); due <= now_ns && due != std::numeric_limits<Nanos>::max(); due = next_due_ns()) {
    const auto chosen =
        std::find_if(chosen_.begin(), chosen_.end(), [&](const Chosen& choice) { return choice.due_ns == due; });
    if (chosen != chosen_.end()) {
      const Chosen taken = *chosen;
      chosen_.erase(chosen);
      move_at_moment(taken.stream, taken.position);
      continue;
    }
    const auto busy = std::find_if(busy_.begin(), busy_.end(),
                                   [&](std::size_t i) { return streams_[i].ops[streams_[i].head].due_ns == due; });
    finish({kFirstStream + *busy, streams_[*busy].completed() + 1});
  }
}

void StreamQueues::run_due_calls(std::uint64_t call) {
  // Each turn uses up a choice.
  while (next_due_call_ <= call) {
    const std::uint64_t due = next_due_call_;
    const auto chosen =
        std::find_if(chosen_.begin(), chosen_.end(), [&](const Chosen& choice) { return choice.due_call == due; });
    const Chosen taken = *chosen;
    chosen_.erase(chosen);
    move_at_moment(taken.stream, taken.position);
    forget_finished_choices();
  }
}

template <class Visit>
void StreamQueues::visit_touching(std::uintptr_t base, std::uint64_t bytes, Visit visit) const {
  for (const std::size_t i : busy_) {
    const Stream& stream = streams_[i];
    for (std::size_t at = stream.head; at < stream.ops.size(); ++at) {
      const Op& op = stream.ops[at];
      if (op.kind != Kind::copies) continue;
      const bool near = overlap(op.dst_low, op.dst_end - op.dst_low, base, bytes) ||
                        overlap(op.src_low, op.src_end - op.src_low, base, bytes);
      if (!near) continue;
      for (std::size_t index = 0; index < op.copy_count; ++index) {
        const QueuedCopy& queued = stream.copies[op.first_copy + index];
        if (!touches(queued.copy, queued.staged, base, bytes)) continue;
        CopyView view;
        view.batch = op.batch;
        view.index = static_cast<std::uint32_t>(index);
        view.direction = op.direction;
        view.copy = queued.copy;
        view.stream = kFirstStream + i;
        view.submitted_at_ns = op.submitted_at_ns;
        visit(view);
      }
    }
  }
}

std::optional<CopyView> StreamQueues::oldest_touching(std::uintptr_t base, std::uint64_t bytes) const {
  std::optional<CopyView> oldest;
  if (copies_in_flight_ == 0) return oldest;
  visit_touching(base, bytes, [&](const CopyView& view) {
    if (!oldest || view.batch < oldest->batch) oldest = view;
  });
  return oldest;
}

std::vector<CopyView> StreamQueues::all_touching(std::uintptr_t base, std::uint64_t bytes) const {
  std::vector<CopyView> views;
  visit_touching(base, bytes, [&](const CopyView& view) { views.push_back(view); });
  // Within a batch they come by index already.
  std::stable_sort(views.begin(), views.end(), [](const CopyView& a, const CopyView& b) { return a.batch < b.batch; });
  return views;
}

StreamMark StreamQueues::mark_behind(const CopyView& copy) const {
  const Stream& stream = streams_[index_of(copy.stream)];
  for (std::uint64_t at = stream.completed(); at < stream.submitted(); ++at) {
    if (stream.at(at).batch == copy.batch) return {copy.stream, at + 1};
  }
  return {};
}

}  // namespace holdfast::fakes
