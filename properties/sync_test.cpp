// The production mutex excludes.
#include "holdfast/core/sync.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace holdfast {
namespace {

TEST(StdSyncTest, WhatIsDoneUnderTheMutexIsNotInterleaved) {
  constexpr int kRounds = 2'000;
  StdSync sync;
  StdSync::Mutex mutex(sync);
  std::atomic<int> count = 0;
  const auto count_up = [&] {
    for (int i = 0; i < kRounds; ++i) {
      const std::scoped_lock lock(mutex);
      // Two steps, so that a thread between them would undo what another counted.
      const int before = count.load(std::memory_order_relaxed);
      std::this_thread::yield();
      count.store(before + 1, std::memory_order_relaxed);
    }
  };
  std::thread other(count_up);
  count_up();
  other.join();
  EXPECT_EQ(count.load(), 2 * kRounds);
}

}  // namespace
}  // namespace holdfast
