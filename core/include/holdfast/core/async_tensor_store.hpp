// A TensorTierStore whose puts are queued and done by the caller's executor. What failed is told by flush, key by key,
// and nothing that was accepted is lost in silence.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/async_put_queue.hpp"
#include "holdfast/core/guarded.hpp"
#include "holdfast/core/task_executor.hpp"
#include "holdfast/core/tier_store.hpp"

namespace holdfast {

// Thread-safe if the store below is. `store` and `executor` outlive it; `sync` outlives the executor's last task too.
//
// Each key belongs to a lane. The puts of a lane are done one after another in the order they came, so that the last
// put of a key is the one that stays; lanes go on side by side. One task of a lane is with the executor at a time. What
// cannot wait for it is done by the thread that cannot wait: a flush does what is queued itself, and a put that finds
// the queue full does its lane's queue and then itself. So nothing here waits for the executor, and one that runs a
// task late, or never, costs time and nothing else.
//
// Two locks. A lane's turn is for who changes the store within it, and is held across the store's calls. The book's
// guards the queues and is held across no call. Turn before book.
template <TensorTierStore Store, Sync S>
class AsyncTensorStore {
 public:
  AsyncTensorStore(Store& store, TaskExecutor& executor, S& sync, const AsyncPutOptions& options)
      : state_(std::make_shared<State>(store, executor, sync, options)) {}
  AsyncTensorStore(const AsyncTensorStore&) = delete;
  AsyncTensorStore& operator=(const AsyncTensorStore&) = delete;
  // What is queued is still done; nobody is told what failed of it. Call close() before.
  ~AsyncTensorStore() { static_cast<void>(close()); }

  // A success: queued, and seen by every get and has from now on; or, when the queue was full, stored. Refused, and
  // nothing done: StoreClosed 3001 after close(), OutOfRoom when `untold_failures_max` failures wait for a flush.
  // Any other failure is the store's own, told at once.
  Status put_tensor(std::string_view key, std::vector<std::byte> bytes) {
    State& state = *state_;
    const std::size_t lane = state.lane_of(key);
    const AsyncPutAdmission admission =
        state.book.with([&](AsyncPutQueue& queue) { return queue.admit(lane, key, bytes); });
    switch (admission) {
      case AsyncPutAdmission::queued:
        return {};
      case AsyncPutAdmission::queued_and_task_due:
        State::submit(state_, lane);
        return {};
      case AsyncPutAdmission::full:
        return state.put_through(lane, key, std::move(bytes));
      case AsyncPutAdmission::closed:
        return fluxon_error(FluxonErrc::store_closed, "put_tensor", "it was closed");
      case AsyncPutAdmission::failures_untold:
        break;
    }
    return make_error(Errc::out_of_room, "put_tensor", "too many failed puts are not told yet: flush");
  }

  // The value of the last put that was accepted, unless that put failed: then what the store has. Waits where that put
  // is under way.
  Result<std::vector<std::byte>> get_tensor(std::string_view key) {
    std::optional<std::vector<std::byte>> queued;
    return state_->look(
        key, [&](const std::vector<std::byte>& bytes) { queued = bytes; },
        [&](bool found) -> Result<std::vector<std::byte>> {
          if (found) return std::move(*queued);
          return state_->store.get_tensor(key);
        });
  }
  Result<bool> has_tensor(std::string_view key) {
    return state_->look(
        key, [](const std::vector<std::byte>&) {},
        [&](bool found) -> Result<bool> {
          if (found) return true;
          return state_->store.has_tensor(key);
        });
  }

  // At once. A queued put of the key is dropped; one under way is waited for.
  Status remove_tensor(std::string_view key) {
    State& state = *state_;
    const std::size_t lane = state.lane_of(key);
    const std::scoped_lock turn(state.lanes[lane]);
    state.book.with([&](AsyncPutQueue& queue) { queue.drop(lane, key); });
    return state.store.remove_tensor(key);
  }

  // Returns when every put that was accepted before has been done, with those that failed since the last flush, oldest
  // first within a lane: each is told once. Several at a time share them out.
  [[nodiscard]] std::vector<FailedPut> flush() {
    State& state = *state_;
    const std::uint64_t last = state.book.with([](const AsyncPutQueue& queue) { return queue.last_accepted(); });
    for (std::size_t lane = 0; lane < state.lanes.size(); ++lane) state.drain(lane, last);
    return state.book.with([](AsyncPutQueue& queue) { return queue.take_failures(); });
  }

  // From now on puts are refused; then as flush. All else goes on, straight to the store.
  [[nodiscard]] std::vector<FailedPut> close() {
    state_->book.with([](AsyncPutQueue& queue) { queue.close(); });
    return flush();
  }

  // Not yet done, those under way among them.
  [[nodiscard]] std::uint64_t queued_puts() const {
    return state_->book.with([](const AsyncPutQueue& queue) { return queue.puts(); });
  }
  [[nodiscard]] std::uint64_t queued_bytes() const {
    return state_->book.with([](const AsyncPutQueue& queue) { return queue.bytes(); });
  }

 private:
  static constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

  // Tasks that run late share it.
  struct State {
    State(Store& store_below, TaskExecutor& executor_given, S& sync, const AsyncPutOptions& options)
        : store(store_below), executor(executor_given), book(sync, options) {
      const std::size_t count = book.with([](const AsyncPutQueue& queue) { return queue.lanes(); });
      for (std::size_t i = 0; i < count; ++i) lanes.emplace_back(sync);
    }

    [[nodiscard]] std::size_t lane_of(std::string_view key) const { return async_lane_of(key, lanes.size()); }

    // Outside of all locks: a task may run before this returns.
    static void submit(const std::shared_ptr<State>& state, std::size_t lane) {
      state->executor.submit([state, lane] {
        state->do_next(lane, kAll);
        if (state->book.with([&](AsyncPutQueue& queue) { return queue.task_goes_on(lane); })) submit(state, lane);
      });
    }

    // Does the oldest put of the lane that is not newer than `last`. False: there is none.
    bool do_next(std::size_t lane, std::uint64_t last) {
      const std::scoped_lock turn(lanes[lane]);
      return do_next_in_turn(lane, last);
    }
    bool do_next_in_turn(std::size_t lane, std::uint64_t last) {
      std::optional<QueuedPut> put = book.with([&](AsyncPutQueue& queue) { return queue.begin(lane, last); });
      if (!put) return false;
      Status done = store.put_tensor(put->key, std::move(put->bytes));
      book.with([&](AsyncPutQueue& queue) { queue.end(lane, std::move(done)); });
      return true;
    }
    // The turn is let go between two puts: others wait for one at the most.
    void drain(std::size_t lane, std::uint64_t last) {
      while (do_next(lane, last)) {
      }
    }

    Status put_through(std::size_t lane, std::string_view key, std::vector<std::byte> bytes) {
      const std::uint64_t last = book.with([](const AsyncPutQueue& queue) { return queue.last_accepted(); });
      const std::scoped_lock turn(lanes[lane]);
      while (do_next_in_turn(lane, last)) {
      }
      return store.put_tensor(key, std::move(bytes));
    }

    // Calls `see` with the queued value, under the book's lock, if there is one; then answers by `go_on(found)`.
    template <class See, class GoOn>
    auto look(std::string_view key, See&& see, GoOn&& go_on) {
      const std::size_t lane = lane_of(key);
      bool under_way = false;
      const bool found = book.with([&](const AsyncPutQueue& queue) {
        const std::vector<std::byte>* bytes = queue.find(lane, key);
        if (bytes != nullptr) see(*bytes);
        under_way = queue.is_under_way(lane, key);
        return bytes != nullptr;
      });
      if (!found && under_way) {
        // Only to wait for its end: what the store has then is the answer.
        const std::scoped_lock turn(lanes[lane]);
      }
      return go_on(found);
    }

    Store& store;
    TaskExecutor& executor;
    Guarded<AsyncPutQueue, S> book;
    std::deque<typename S::Mutex> lanes;  // the turns
  };

  std::shared_ptr<State> state_;
};

}  // namespace holdfast
