// Puts that are queued: seen at once, done in order, bounded, and what failed of them told once, each with its key.
#include "holdfast/core/async_tensor_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bytes_as_text.hpp"
#include "holdfast/core/memory_tier_store.hpp"
#include "holdfast/sim/depth_first.hpp"
#include "holdfast/sim/scheduler.hpp"
#include "holdfast/sim/sim_sync.hpp"
#include "stepping_sync.hpp"
#include "task_executors.hpp"

namespace holdfast::async_tensors {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

static_assert(QueuedTensorStore<AsyncTensorStore<MemoryTierStore<StdSync>, StdSync>>);

std::string line(const std::string& key, const std::string& value) { return key + "=" + value; }

// Keeps what it was asked, and refuses the keys that it is told to.
class ScriptedTensors {
 public:
  Status put_tensor(std::string_view key, std::vector<std::byte> bytes) {
    if (before_put) before_put();
    asked.push_back(line(std::string(key), as_text(bytes)));
    if (refused.contains(std::string(key))) return fluxon_error(FluxonErrc::network, "put_tensor", asked.back());
    values.insert_or_assign(std::string(key), std::move(bytes));
    return {};
  }
  Result<std::vector<std::byte>> get_tensor(std::string_view key) {
    const auto at = values.find(std::string(key));
    if (at == values.end()) return fluxon_error(FluxonErrc::key_not_found, "get_tensor", std::string(key));
    return at->second;
  }
  Result<bool> has_tensor(std::string_view key) { return values.contains(std::string(key)); }
  Status remove_tensor(std::string_view key) {
    values.erase(std::string(key));
    return {};
  }

  std::map<std::string, std::vector<std::byte>> values;
  std::vector<std::string> asked;  // every put, in order
  std::set<std::string> refused;
  std::function<void()> before_put;
};

using Async = AsyncTensorStore<ScriptedTensors, SteppingSync>;

std::string value_of(auto& store, const std::string& key) {
  const Result<std::vector<std::byte>> value = store.get_tensor(key);
  const Result<bool> present = store.has_tensor(key);
  EXPECT_EQ(present.value(), value.has_value());
  return value ? as_text(*value) : "none";
}
std::vector<std::string> keys_of(const std::vector<FailedPut>& failures) {
  std::vector<std::string> keys;
  for (const FailedPut& failure : failures) {
    EXPECT_TRUE(is_fluxon(failure.error, FluxonErrc::network)) << to_string(failure.error);
    EXPECT_EQ(failure.error.detail.substr(0, failure.key.size()), failure.key) << "the error is of this key";
    keys.push_back(failure.key);
  }
  return keys;
}

class AsyncTensorsTest : public testing::Test {
 protected:
  static AsyncPutOptions one_lane() { return {.lanes = 1}; }
  Status put(const std::string& key, const std::string& value) { return store->put_tensor(key, owned_bytes(value)); }
  void make(const AsyncPutOptions& options) { store = std::make_unique<Async>(below, executor, sync, options); }

  ScriptedTensors below;
  QueuedExecutor executor;
  SteppingSync sync;
  std::unique_ptr<Async> store = std::make_unique<Async>(below, executor, sync, one_lane());
};

TEST_F(AsyncTensorsTest, APutIsSeenBeforeItIsDone) {
  ASSERT_TRUE(put("a", "1"));
  EXPECT_THAT(below.asked, IsEmpty());
  EXPECT_EQ(value_of(*store, "a"), "1");
  EXPECT_EQ(value_of(*store, "b"), "none");
  EXPECT_EQ(store->queued_puts(), 1U);
  EXPECT_EQ(store->queued_bytes(), 1U);
}

TEST_F(AsyncTensorsTest, TheExecutorDoesWhatIsQueuedInOrder) {
  for (const char* key : {"c", "a", "b"}) ASSERT_TRUE(put(key, "x"));
  EXPECT_EQ(executor.waiting(), 1U) << "one task of a lane at a time";
  executor.run_all();
  EXPECT_THAT(below.asked, ElementsAre("c=x", "a=x", "b=x"));
  EXPECT_EQ(store->queued_puts(), 0U);
  EXPECT_EQ(store->queued_bytes(), 0U);
  EXPECT_EQ(executor.waiting(), 0U);
  ASSERT_TRUE(put("d", "x"));
  executor.run_all();
  EXPECT_EQ(value_of(below, "d"), "x") << "a lane that ran dry has a task again";
}

TEST_F(AsyncTensorsTest, AnExecutorThatRunsTasksAtOnceIsOne) {
  InlineExecutor at_once;
  Async inline_store(below, at_once, sync, one_lane());
  ASSERT_TRUE(inline_store.put_tensor("a", owned_bytes("1")));
  EXPECT_EQ(value_of(below, "a"), "1");
  EXPECT_THAT(inline_store.close(), IsEmpty());
}

TEST_F(AsyncTensorsTest, AFlushDoesWhatTheExecutorHasNot) {
  for (const char* key : {"a", "b"}) ASSERT_TRUE(put(key, "x"));
  EXPECT_THAT(store->flush(), IsEmpty());
  EXPECT_THAT(below.asked, ElementsAre("a=x", "b=x"));
  executor.run_all();
  EXPECT_THAT(below.asked, ElementsAre("a=x", "b=x")) << "each is done once";
}

TEST_F(AsyncTensorsTest, EachFailureIsToldOnceWithItsKey) {
  below.refused = {"b", "d"};
  for (const char* key : {"a", "b", "c", "d"}) ASSERT_TRUE(put(key, "x"));
  executor.run_one();
  executor.run_one();
  EXPECT_EQ(keys_of(store->flush()), (std::vector<std::string>{"b", "d"}));
  EXPECT_THAT(store->flush(), IsEmpty());
  EXPECT_EQ(value_of(*store, "b"), "none") << "what failed is not seen any more";
  EXPECT_EQ(value_of(*store, "c"), "x");
}

TEST_F(AsyncTensorsTest, AFailureIsToldAlsoWhenALaterPutOfTheKeySucceeded) {
  below.refused = {"a"};
  ASSERT_TRUE(put("a", "1"));
  executor.run_all();
  below.refused.clear();
  ASSERT_TRUE(put("a", "2"));
  EXPECT_EQ(keys_of(store->flush()), (std::vector<std::string>{"a"}));
  EXPECT_EQ(value_of(*store, "a"), "2");
}

TEST_F(AsyncTensorsTest, AnotherPutOfAQueuedKeyTakesItsPlace) {
  for (const char* key : {"a", "b"}) ASSERT_TRUE(put(key, "x"));
  ASSERT_TRUE(put("a", "longer"));
  EXPECT_EQ(value_of(*store, "a"), "longer");
  EXPECT_EQ(store->queued_puts(), 2U);
  EXPECT_EQ(store->queued_bytes(), 7U);
  EXPECT_THAT(store->flush(), IsEmpty());
  EXPECT_THAT(below.asked, ElementsAre("a=longer", "b=x"));
}

TEST_F(AsyncTensorsTest, WhoFindsTheQueueFullDoesTheLanesWorkAndItsOwn) {
  make({.lanes = 1, .queued_puts_max = 2});
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(put(key, "x"));
  EXPECT_THAT(below.asked, ElementsAre("a=x", "b=x", "c=x"));
  EXPECT_EQ(store->queued_puts(), 0U);
}

TEST_F(AsyncTensorsTest, WhoFindsTheQueueFullIsToldItsOwnFailureAndAFlushTheOthers) {
  make({.lanes = 1, .queued_puts_max = 1});
  below.refused = {"a", "b"};
  ASSERT_TRUE(put("a", "x"));
  const Status status = put("b", "x");
  ASSERT_FALSE(status);
  EXPECT_TRUE(is_fluxon(status.error(), FluxonErrc::network));
  EXPECT_EQ(keys_of(store->flush()), (std::vector<std::string>{"a"}));
}

TEST_F(AsyncTensorsTest, BytesAreBoundedToo) {
  make({.lanes = 1, .queued_bytes_max = 10});
  ASSERT_TRUE(put("a", "12345"));
  ASSERT_TRUE(put("b", "12345"));
  EXPECT_THAT(below.asked, IsEmpty());
  ASSERT_TRUE(put("a", "123456")) << "a longer value of a queued key";
  EXPECT_THAT(below.asked, ElementsAre("a=12345", "b=12345", "a=123456"));
  ASSERT_TRUE(put("c", "12345678901")) << "longer than the bound";
  EXPECT_EQ(value_of(below, "c"), "12345678901");
  ASSERT_TRUE(put("d", "1234567890"));
  EXPECT_EQ(store->queued_bytes(), 10U);
}

TEST_F(AsyncTensorsTest, ARemovalTakesTheQueuedPutAway) {
  ASSERT_TRUE(put("a", "1"));
  executor.run_all();
  for (const char* key : {"a", "b"}) ASSERT_TRUE(put(key, "2"));
  ASSERT_TRUE(store->remove_tensor("a"));
  EXPECT_EQ(value_of(*store, "a"), "none");
  EXPECT_EQ(store->queued_puts(), 1U);
  EXPECT_EQ(store->queued_bytes(), 1U);
  EXPECT_THAT(store->flush(), IsEmpty());
  EXPECT_THAT(below.asked, ElementsAre("a=1", "b=2"));
}

TEST_F(AsyncTensorsTest, PutsAreRefusedWhileTooManyFailuresAreUntold) {
  make({.lanes = 1, .untold_failures_max = 2});
  below.refused = {"a", "b"};
  for (const char* key : {"a", "b"}) ASSERT_TRUE(put(key, "x"));
  executor.run_all();
  const Status status = put("c", "x");
  ASSERT_FALSE(status);
  EXPECT_TRUE(status.error().is(Errc::out_of_room));
  EXPECT_THAT(status.error().detail, testing::HasSubstr("flush"));
  EXPECT_EQ(keys_of(store->flush()).size(), 2U);
  EXPECT_TRUE(put("c", "x"));
}

TEST_F(AsyncTensorsTest, CloseFlushesAndRefusesFurtherPuts) {
  below.refused = {"b"};
  for (const char* key : {"a", "b"}) ASSERT_TRUE(put(key, "x"));
  EXPECT_EQ(keys_of(store->close()), (std::vector<std::string>{"b"}));
  EXPECT_EQ(value_of(below, "a"), "x");
  const Status status = put("c", "x");
  ASSERT_FALSE(status);
  EXPECT_TRUE(is_fluxon(status.error(), FluxonErrc::store_closed));
  EXPECT_EQ(value_of(*store, "a"), "x") << "gets go on";
  EXPECT_TRUE(store->remove_tensor("a"));
  EXPECT_THAT(store->close(), IsEmpty()) << "once more";
}

TEST_F(AsyncTensorsTest, WhatIsQueuedIsDoneBeforeItIsDestroyedAndTasksThatComeLaterDoNothing) {
  ASSERT_TRUE(put("a", "x"));
  store.reset();
  EXPECT_THAT(below.asked, ElementsAre("a=x"));
  executor.run_all();
  EXPECT_THAT(below.asked, ElementsAre("a=x"));
}

TEST_F(AsyncTensorsTest, LanesGoOnSideBySideAndEachKeepsItsOrder) {
  make({.lanes = 4});
  std::map<std::size_t, std::vector<std::string>> expected;
  for (int i = 0; i < 40; ++i) {
    const std::string key = "key" + std::to_string(i);
    ASSERT_TRUE(put(key, "x"));
    expected[async_lane_of(key, 4)].push_back(key + "=x");
  }
  ASSERT_EQ(expected.size(), 4U);
  EXPECT_EQ(executor.waiting(), 4U);
  // The newest task first, so that the lanes are mixed.
  for (std::size_t i = 3; executor.run_one(i); i = i * 7 + 1) {
  }
  std::map<std::size_t, std::vector<std::string>> done;
  for (const std::string& each : below.asked) done[async_lane_of(each.substr(0, each.find('=')), 4)].push_back(each);
  EXPECT_EQ(done, expected);
}

TEST_F(AsyncTensorsTest, NoLaneIsTakenAsOne) {
  make({.lanes = 0});
  ASSERT_TRUE(put("a", "x"));
  EXPECT_THAT(store->close(), IsEmpty());
  EXPECT_EQ(value_of(below, "a"), "x");
}

// ---- Any sequence of calls and of tasks that run, against what must be queued, stored and told.

struct Step {
  enum class Op : std::uint8_t { put, remove, flush, run_task, refuse, accept } op = Op::put;
  std::uint32_t key = 0;
  std::string value;
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
  return out << static_cast<int>(step.op) << " key" << step.key << " " << step.value << "; ";
}

rc::Gen<Step> any_step() {
  using Op = Step::Op;
  return rc::gen::exec([] {
    Step step;
    step.op = *rc::gen::weightedElement<Op>(
        {{8, Op::put}, {1, Op::remove}, {1, Op::flush}, {4, Op::run_task}, {1, Op::refuse}, {1, Op::accept}});
    step.key = *rc::gen::inRange<std::uint32_t>(0, 6);
    step.value = *rc::gen::container<std::string>(rc::gen::inRange('a', 'z'));
    return step;
  });
}

class AsyncModel {
 public:
  static constexpr std::uint64_t kPutsMax = 3;
  static constexpr std::uint64_t kBytesMax = 60;

  void run(const Step& step) {
    const std::string key = "key" + std::to_string(step.key);
    switch (step.op) {
      case Step::Op::put:
        put(key, step.value);
        break;
      case Step::Op::remove:
        RC_ASSERT(store_.remove_tensor(key).has_value());
        pending_.erase(key);
        stored_.erase(key);
        break;
      case Step::Op::flush:
        tell(store_.flush());
        RC_ASSERT(pending_.empty());
        break;
      case Step::Op::run_task:
        executor_.run_one(step.key);
        break;
      case Step::Op::refuse:
        below_.refused.insert(key);
        break;
      case Step::Op::accept:
        below_.refused.erase(key);
        break;
    }
    follow();
    verify();
  }
  void end() {
    tell(store_.close());
    follow();
    RC_ASSERT(pending_.empty());
    RC_ASSERT(untold_.empty());
    executor_.run_all();
    RC_ASSERT(seen_ == below_.asked.size());
  }

 private:
  void put(const std::string& key, const std::string& value) {
    std::uint64_t others = 0;
    for (const auto& [other, queued] : pending_) others += other == key ? 0 : queued.size();
    const bool full = others + value.size() > kBytesMax || (!pending_.contains(key) && pending_.size() >= kPutsMax);
    const Status status = store_.put_tensor(key, owned_bytes(value));
    if (!full) {
      RC_ASSERT(status.has_value());
      pending_[key] = value;
      return;
    }
    // The last one asked is this put itself.
    RC_ASSERT(below_.asked.size() > seen_);
    RC_ASSERT(below_.asked.back() == line(key, value));
    follow_until(below_.asked.size() - 1);
    ++seen_;
    RC_ASSERT(status.has_value() == !below_.refused.contains(key));
    if (status) stored_[key] = value;
  }
  void tell(const std::vector<FailedPut>& failures) {
    follow();
    std::multiset<std::string> told;
    for (const FailedPut& failure : failures) told.insert(failure.key);
    RC_ASSERT(told == untold_);
    untold_.clear();
  }
  // What was done since: each was queued, with this very value.
  void follow() { follow_until(below_.asked.size()); }
  void follow_until(std::size_t end) {
    for (; seen_ < end; ++seen_) {
      const std::string& asked = below_.asked[seen_];
      const std::string key = asked.substr(0, asked.find('='));
      RC_ASSERT(pending_.contains(key));
      RC_ASSERT(line(key, pending_[key]) == asked);
      if (below_.refused.contains(key)) {
        untold_.insert(key);
      } else {
        stored_[key] = pending_[key];
      }
      pending_.erase(key);
    }
  }
  void verify() {
    std::uint64_t bytes = 0;
    for (const auto& [key, value] : pending_) bytes += value.size();
    RC_ASSERT(store_.queued_puts() == pending_.size());
    RC_ASSERT(store_.queued_bytes() == bytes);
    RC_ASSERT(pending_.size() <= kPutsMax);
    RC_ASSERT(bytes <= kBytesMax);
    RC_ASSERT(executor_.waiting() <= 2U);
    for (std::uint32_t i = 0; i < 6; ++i) {
      const std::string key = "key" + std::to_string(i);
      const auto value = store_.get_tensor(key);
      const auto expected = pending_.contains(key) ? pending_.find(key) : stored_.find(key);
      const bool present = pending_.contains(key) || stored_.contains(key);
      RC_ASSERT(value.has_value() == present);
      RC_ASSERT(store_.has_tensor(key).value() == present);
      if (present) RC_ASSERT(as_text(*value) == expected->second);
    }
  }

  ScriptedTensors below_;
  QueuedExecutor executor_;
  SteppingSync sync_;
  Async store_{below_, executor_, sync_, {.lanes = 2, .queued_puts_max = kPutsMax, .queued_bytes_max = kBytesMax}};
  std::map<std::string, std::string> pending_;
  std::map<std::string, std::string> stored_;
  std::multiset<std::string> untold_;
  std::size_t seen_ = 0;
};

RC_GTEST_PROP(AsyncTensorsModel, WhatIsSeenStoredAndToldIsWhatWasAccepted, ()) {
  const auto steps = *rc::gen::container<std::vector<Step>>(any_step());
  AsyncModel model;
  for (const Step& step : steps) model.run(step);
  model.end();
}

// ---- Threads of the simulator: every schedule with at most two preemptions.

using sim::SimSync;

// Each task becomes a fiber.
class FiberExecutor final : public TaskExecutor {
 public:
  explicit FiberExecutor(sim::Scheduler& scheduler) : scheduler_(scheduler) {}
  void submit(std::function<void()> task) override { scheduler_.spawn({}, std::move(task)); }
  void wait(Nanos /*limit_ns*/) override {}

 private:
  sim::Scheduler& scheduler_;
};

class AsyncSchedules : public testing::Test {
 protected:
  struct World {
    explicit World(sim::Scheduler& scheduler) : executor(scheduler), store(below, executor, sync, {.lanes = 1}) {
      sync.attach(&scheduler);
      below.before_put = [this, &scheduler] {
        EXPECT_FALSE(std::exchange(inside, true)) << "two puts of one lane at a time";
        scheduler.point({sim::PointKind::call, 7, {}});
        inside = false;
      };
    }
    ScriptedTensors below;
    FiberExecutor executor;
    SimSync sync;
    AsyncTensorStore<ScriptedTensors, SimSync> store;
    bool inside = false;
  };

  // `spawn` fills a world with fibers, `verify` looks at it when all have ended.
  template <class Spawn, class Verify>
  void in_every_schedule(Spawn&& spawn, Verify&& verify) {
    sim::Scheduler scheduler;
    sim::DepthFirst strategy(2);
    while (strategy.next_run()) {
      scheduler.reset();
      World world(scheduler);
      spawn(scheduler, world);
      const sim::RunEnd end = scheduler.run(strategy);
      ASSERT_EQ(end.verdict, sim::RunVerdict::all_ended) << end.report;
      verify(world);
    }
    EXPECT_TRUE(strategy.exhausted());
    EXPECT_GT(strategy.schedules(), 10U);
  }
};

TEST_F(AsyncSchedules, WhatWasAcceptedIsSeenByItsWriterFromThenOn) {
  in_every_schedule(
      [](sim::Scheduler& scheduler, World& world) {
        scheduler.spawn("writer", [&] {
          EXPECT_TRUE(world.store.put_tensor("a", owned_bytes("1")));
          EXPECT_EQ(value_of(world.store, "a"), "1");
          EXPECT_TRUE(world.store.put_tensor("a", owned_bytes("2")));
          EXPECT_EQ(value_of(world.store, "a"), "2");
        });
      },
      [](World& world) { EXPECT_EQ(value_of(world.below, "a"), "2"); });
}

TEST_F(AsyncSchedules, AFlushReturnsWhenWhatCameBeforeIsDoneWhoeverDoesIt) {
  in_every_schedule(
      [](sim::Scheduler& scheduler, World& world) {
        world.below.refused = {"b"};
        scheduler.spawn("writer", [&] {
          for (const char* key : {"a", "b"}) EXPECT_TRUE(world.store.put_tensor(key, owned_bytes("1")));
          EXPECT_EQ(keys_of(world.store.flush()), (std::vector<std::string>{"b"}));
          EXPECT_THAT(world.below.asked, ElementsAre("a=1", "b=1"));
        });
      },
      [](World& world) { EXPECT_THAT(world.store.flush(), IsEmpty()); });
}

TEST_F(AsyncSchedules, TwoFlushesTellEachFailureOnceBetweenThem) {
  std::vector<std::string> told;
  in_every_schedule(
      [&](sim::Scheduler& scheduler, World& world) {
        told.clear();
        world.below.refused = {"a", "b"};
        for (const std::string key : {"a", "b"}) {
          scheduler.spawn(key, [&, key] {
            EXPECT_TRUE(world.store.put_tensor(key, owned_bytes("1")));
            for (const std::string& failed : keys_of(world.store.flush())) told.push_back(failed);
          });
        }
      },
      [&](World& world) {
        EXPECT_THAT(told, UnorderedElementsAre("a", "b"));
        EXPECT_THAT(world.store.flush(), IsEmpty());
      });
}

TEST_F(AsyncSchedules, WhatWasRemovedStaysAwayWhateverWasUnderWay) {
  in_every_schedule(
      [](sim::Scheduler& scheduler, World& world) {
        scheduler.spawn("writer", [&] {
          EXPECT_TRUE(world.store.put_tensor("a", owned_bytes("1")));
          EXPECT_TRUE(world.store.remove_tensor("a"));
          EXPECT_EQ(value_of(world.store, "a"), "none");
        });
      },
      [](World& world) { EXPECT_EQ(value_of(world.below, "a"), "none"); });
}

TEST_F(AsyncSchedules, AfterCloseNothingIsAcceptedAndNothingIsLost) {
  bool accepted = false;
  std::vector<std::string> failed;
  in_every_schedule(
      [&](sim::Scheduler& scheduler, World& world) {
        world.below.refused = {"b"};
        scheduler.spawn("writer", [&] { accepted = world.store.put_tensor("b", owned_bytes("1")).has_value(); });
        scheduler.spawn("closer", [&] { failed = keys_of(world.store.close()); });
      },
      [&](World& world) {
        EXPECT_EQ(world.store.queued_puts(), 0U);
        EXPECT_EQ(failed.size() + keys_of(world.store.flush()).size(), accepted ? 1U : 0U);
      });
}

// ---- Real threads. Meant for ThreadSanitizer as well.

class ThreadsExecutor final : public TaskExecutor {
 public:
  explicit ThreadsExecutor(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~ThreadsExecutor() override {
    {
      const std::scoped_lock lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  void submit(std::function<void()> task) override {
    {
      const std::scoped_lock lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }
  void wait(Nanos /*limit_ns*/) override {}

 private:
  void work() {
    for (;;) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ended_ || !tasks_.empty(); });
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

TEST(AsyncTensorsThreads, EveryWriterFindsWhatItWroteAndAllIsStoredInTheEnd) {
  constexpr int kWriters = 3;
  constexpr int kPuts = 300;
  StdSync sync;
  MemoryTierStore<StdSync> below(sync);
  ThreadsExecutor executor(2);
  AsyncTensorStore<MemoryTierStore<StdSync>, StdSync> store(below, executor, sync, {.lanes = 2, .queued_puts_max = 8});
  const auto write = [&](int writer) {
    for (int i = 0; i < kPuts; ++i) {
      const std::string key = std::to_string(writer) + ":" + std::to_string(i % 7);
      const std::string value = std::to_string(i);
      ASSERT_TRUE(store.put_tensor(key, owned_bytes(value)));
      ASSERT_EQ(as_text(store.get_tensor(key).value()), value);
      if (i % 50 == 0) {
        ASSERT_THAT(store.flush(), IsEmpty());
      }
    }
  };
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) writers.emplace_back(write, writer);
  for (std::thread& writer : writers) writer.join();
  EXPECT_THAT(store.close(), IsEmpty());
  EXPECT_EQ(below.size(), 7U * kWriters);
  for (int writer = 0; writer < kWriters; ++writer) {
    EXPECT_EQ(as_text(below.get_tensor(std::to_string(writer) + ":0").value()), std::to_string((kPuts - 1) / 7 * 7));
  }
}

}  // namespace
}  // namespace holdfast::async_tensors
