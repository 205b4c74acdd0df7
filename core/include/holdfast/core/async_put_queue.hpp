// The books of an AsyncTensorStore: what is queued, what is under way, and what failed and was not told yet. Plain data
// under its owner's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/result.hpp"
#include "holdfast/core/tier_store.hpp"

namespace holdfast {

struct AsyncPutOptions {
  std::uint32_t lanes = 4;                        // puts under way at a time, 1 at least
  std::uint64_t queued_puts_max = 256;            // under way or not
  std::uint64_t queued_bytes_max = 256ULL << 20;  // of their values
  // Puts are refused while so many failures wait for a flush. More than this and `queued_puts_max` are never kept.
  std::uint64_t untold_failures_max = 1024;
};

struct QueuedPut {
  std::uint64_t number = 0;  // in order of acceptance, from 1
  std::string key;
  std::vector<std::byte> bytes;
};

enum class AsyncPutAdmission : std::uint8_t {
  queued,
  queued_and_task_due,  // and the caller has to submit the lane's task
  full,                 // not taken: too many, or too many bytes
  closed,
  failures_untold,
};

// The lane of a key, the same on every machine.
[[nodiscard]] std::size_t async_lane_of(std::string_view key, std::size_t lanes);

class AsyncPutQueue {
 public:
  explicit AsyncPutQueue(const AsyncPutOptions& options);

  // Takes `bytes` if it is queued. A put of the key that is queued and not under way is replaced, in its place.
  AsyncPutAdmission admit(std::size_t lane, std::string_view key, std::vector<std::byte>& bytes);
  void close() { closed_ = true; }

  // By who has the lane's turn. The oldest of the lane, if it is not newer than `last`, is under way until `end`.
  std::optional<QueuedPut> begin(std::size_t lane, std::uint64_t last);
  void end(std::size_t lane, Status done);
  // Forgets a put that is not under way.
  void drop(std::size_t lane, std::string_view key);

  // The lane's task has done a put: true when it has to be submitted again; false when it is with the executor no more.
  bool task_goes_on(std::size_t lane);

  [[nodiscard]] std::vector<FailedPut> take_failures();

  // The value that is queued and not under way, if any; good until the next change.
  [[nodiscard]] const std::vector<std::byte>* find(std::size_t lane, std::string_view key) const;
  [[nodiscard]] bool is_under_way(std::size_t lane, std::string_view key) const;
  [[nodiscard]] std::uint64_t last_accepted() const { return last_accepted_; }
  [[nodiscard]] std::size_t lanes() const { return lanes_.size(); }
  [[nodiscard]] std::uint64_t puts() const { return puts_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  struct Lane {
    std::deque<QueuedPut> queue;
    std::optional<std::string> under_way;  // its key
    std::uint64_t under_way_bytes = 0;
    bool task = false;  // with the executor
  };

  AsyncPutOptions options_;
  std::vector<Lane> lanes_;
  std::vector<FailedPut> failures_;
  std::uint64_t last_accepted_ = 0;
  std::uint64_t puts_ = 0;   // queued or under way
  std::uint64_t bytes_ = 0;  // theirs
  bool closed_ = false;
};

}  // namespace holdfast
