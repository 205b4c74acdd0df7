#include "holdfast/core/async_put_queue.hpp"

#include <algorithm>
#include <utility>

#include "holdfast/core/check.hpp"
#include "holdfast/core/hash.hpp"

namespace holdfast {
namespace {

// Of a std::deque<QueuedPut>, const or not.
template <class Queue>
auto find_put(Queue& queue, std::string_view key) {
  return std::find_if(queue.begin(), queue.end(), [&](const QueuedPut& put) { return put.key == key; });
}

}  // namespace

std::size_t async_lane_of(std::string_view key, std::size_t lanes) { return hash64(key, 0) % lanes; }

AsyncPutQueue::AsyncPutQueue(const AsyncPutOptions& options)
    : options_(options), lanes_(std::max<std::uint32_t>(options.lanes, 1)) {}

const std::vector<std::byte>* AsyncPutQueue::find(std::size_t lane, std::string_view key) const {
  const auto found = find_put(lanes_[lane].queue, key);
  return found == lanes_[lane].queue.end() ? nullptr : &found->bytes;
}

bool AsyncPutQueue::is_under_way(std::size_t lane, std::string_view key) const { return lanes_[lane].under_way == key; }

AsyncPutAdmission AsyncPutQueue::admit(std::size_t lane, std::string_view key, std::vector<std::byte>& bytes) {
  if (closed_) return AsyncPutAdmission::closed;
  if (failures_.size() >= options_.untold_failures_max) return AsyncPutAdmission::failures_untold;
  std::deque<QueuedPut>& queue = lanes_[lane].queue;
  const auto same = find_put(queue, key);
  const bool replaces = same != queue.end();
  const std::uint64_t others = bytes_ - (replaces ? same->bytes.size() : 0);
  if (bytes.size() > options_.queued_bytes_max || others > options_.queued_bytes_max - bytes.size()) {
    return AsyncPutAdmission::full;
  }
  if (!replaces && puts_ >= options_.queued_puts_max) return AsyncPutAdmission::full;
  bytes_ = others + bytes.size();
  if (replaces) {
    same->bytes = std::move(bytes);
    return AsyncPutAdmission::queued;
  }
  queue.push_back({++last_accepted_, std::string(key), std::move(bytes)});
  ++puts_;
  return std::exchange(lanes_[lane].task, true) ? AsyncPutAdmission::queued : AsyncPutAdmission::queued_and_task_due;
}

std::optional<QueuedPut> AsyncPutQueue::begin(std::size_t lane, std::uint64_t last) {
  Lane& at = lanes_[lane];
  check(!at.under_way, "two puts of one lane are under way");
  if (at.queue.empty() || at.queue.front().number > last) return std::nullopt;
  QueuedPut put = std::move(at.queue.front());
  at.queue.pop_front();
  at.under_way = put.key;
  at.under_way_bytes = put.bytes.size();
  return put;
}

void AsyncPutQueue::end(std::size_t lane, Status done) {
  Lane& at = lanes_[lane];
  check(at.under_way.has_value(), "a put ends that is not under way");
  if (!done) failures_.push_back({std::move(*at.under_way), std::move(done.error())});
  at.under_way.reset();
  bytes_ -= std::exchange(at.under_way_bytes, 0);
  --puts_;
}

void AsyncPutQueue::drop(std::size_t lane, std::string_view key) {
  std::deque<QueuedPut>& queue = lanes_[lane].queue;
  const auto found = find_put(queue, key);
  if (found == queue.end()) return;
  bytes_ -= found->bytes.size();
  --puts_;
  queue.erase(found);
}

bool AsyncPutQueue::task_goes_on(std::size_t lane) {
  Lane& at = lanes_[lane];
  at.task = !at.queue.empty();
  return at.task;
}

std::vector<FailedPut> AsyncPutQueue::take_failures() { return std::exchange(failures_, {}); }

}  // namespace holdfast
