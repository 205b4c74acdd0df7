// Executors that do what a test says, on its own thread; and one with threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

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

// A thread per task; the last ones end with it.
class ThreadExecutor final : public TaskExecutor {
 public:
  ~ThreadExecutor() override { join(); }
  void submit(std::function<void()> task) override {
    const std::scoped_lock lock(mutex_);
    threads_.emplace_back([this, task = std::move(task)] {
      task();
      const std::scoped_lock ended_lock(mutex_);
      ++ended_;
      changed_.notify_all();
    });
  }
  void wait(Nanos limit_ns) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::nanoseconds(limit_ns), [&] { return ended_ > seen_; });
    seen_ = ended_;
  }
  void join() {
    std::vector<std::thread> threads;
    {
      const std::scoped_lock lock(mutex_);
      threads.swap(threads_);
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::thread> threads_;
  std::uint64_t ended_ = 0;
  std::uint64_t seen_ = 0;
};

}  // namespace holdfast
