// Executors that do what a test says, on its own thread.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <utility>

#include "holdfast/core/task_executor.hpp"

namespace holdfast {

// Keeps every task until it is told to run one.
class QueuedExecutor final : public TaskExecutor {
 public:
  void submit(std::function<void()> task) override { tasks_.push_back(std::move(task)); }
  void wait(Nanos /*limit_ns*/) override { run_one(); }

  // Any of those that wait, 0 the oldest. False: there is none.
  bool run_one(std::size_t index = 0) {
    if (tasks_.empty()) return false;
    const auto at = tasks_.begin() + static_cast<std::ptrdiff_t>(index % tasks_.size());
    const std::function<void()> task = std::move(*at);
    tasks_.erase(at);
    task();
    return true;
  }
  void run_all() {
    while (run_one()) {
    }
  }
  [[nodiscard]] std::size_t waiting() const { return tasks_.size(); }

 private:
  std::deque<std::function<void()>> tasks_;
};

// Runs each before submit returns.
class InlineExecutor final : public TaskExecutor {
 public:
  void submit(std::function<void()> task) override { task(); }
  void wait(Nanos /*limit_ns*/) override {}
};

}  // namespace holdfast
