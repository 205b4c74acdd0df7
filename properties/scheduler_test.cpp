// Controlled concurrency: which fiber goes on at a point, who waits for a mutex, and how a run ends.
#include "holdfast/sim/scheduler.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/sim/recorded_strategy.hpp"
#include "holdfast/sim/sim_sync.hpp"

namespace holdfast::sim {
namespace {

using Lines = std::vector<std::string>;

class SchedulerTest : public testing::Test {
 protected:
  SchedulerTest() { sync_.attach(&scheduler_); }

  void call(std::uint64_t number) { scheduler_.point({PointKind::call, number, {}}); }
  RunEnd go_on() {
    GoOn strategy;
    return scheduler_.run(strategy);
  }
  RunEnd replay(std::vector<Switch> choices) {
    RecordedStrategy strategy(std::move(choices));
    return scheduler_.run(strategy);
  }
  // Says its name before and after each of `calls` points.
  FiberId spawn_talker(const std::string& name, int calls) {
    return scheduler_.spawn(name, [this, name, calls] {
      lines_.push_back(name + "0");
      for (int i = 1; i <= calls; ++i) {
        call(7);
        lines_.push_back(name + std::to_string(i));
      }
    });
  }
  // Locks one mutex, then the other within it.
  void spawn_locker(SimSync::Mutex& first, SimSync::Mutex& second) {
    scheduler_.spawn({}, [&] {
      const std::scoped_lock outer(first);
      const std::scoped_lock inner(second);
    });
  }

  Scheduler scheduler_;
  SimSync sync_;
  Lines lines_;
};

TEST_F(SchedulerTest, ByDefaultEachFiberRunsToItsEndInOrderOfSpawning) {
  spawn_talker("a", 2);
  spawn_talker("b", 1);
  const RunEnd end = go_on();
  EXPECT_EQ(lines_, (Lines{"a0", "a1", "a2", "b0", "b1"}));
  EXPECT_EQ(end.verdict, RunVerdict::all_ended);
  EXPECT_EQ(end.report, "");
  EXPECT_EQ(end.points, 5);
  EXPECT_EQ(end.switches, 1);
  EXPECT_TRUE(scheduler_.choices().empty());
}

TEST_F(SchedulerTest, AChoiceSwitchesAtItsPointAndIsTold) {
  spawn_talker("a", 2);
  spawn_talker("b", 1);
  const std::vector<Switch> choices{{kNoFiber, 0, 1}, {1, 0, 0}, {0, 1, 1}};
  replay(choices);
  EXPECT_EQ(lines_, (Lines{"b0", "a0", "a1", "b1", "a2"}));
  EXPECT_EQ(scheduler_.choices(), choices);
}

TEST_F(SchedulerTest, WhoWaitsForAMutexGoesOnOnceItIsFree) {
  SimSync::Mutex mutex(sync_);
  const auto body = [&](const char* name) {
    return [this, &mutex, name] {
      const std::scoped_lock lock(mutex);
      lines_.push_back(std::string(name) + " in");
      EXPECT_TRUE(scheduler_.can_go_on(scheduler_.current()));
      call(7);
      lines_.push_back(std::string(name) + " out");
    };
  };
  scheduler_.spawn({}, body("a"));
  scheduler_.spawn({}, body("b"));
  // Away from the first while it holds the mutex: the second comes to the lock, and the first has to go on.
  const RunEnd end = replay({{0, 1, 1}});
  EXPECT_EQ(lines_, (Lines{"a in", "a out", "b in", "b out"}));
  EXPECT_EQ(end.verdict, RunVerdict::all_ended);
  EXPECT_EQ(end.switches, 3);
}

// An unlock is no point: who waited goes on at the next one, if it is chosen.
TEST_F(SchedulerTest, AnUnlockSwitchesNowhere) {
  SimSync::Mutex mutex(sync_);
  scheduler_.spawn({}, [&] {
    {
      const std::scoped_lock lock(mutex);
      call(7);
    }
    lines_.emplace_back("a unlocked");
    EXPECT_TRUE(scheduler_.can_go_on(1));
    call(7);
    lines_.emplace_back("a ends");
  });
  scheduler_.spawn({}, [&] {
    const std::scoped_lock lock(mutex);
    lines_.emplace_back("b in");
  });
  replay({{0, 1, 1}, {0, 2, 1}});
  EXPECT_EQ(lines_, (Lines{"a unlocked", "b in", "a ends"}));
}

TEST_F(SchedulerTest, TheStrategySeesWhatEachIsAboutToDoAndHolds) {
  SimSync::Mutex first(sync_);
  SimSync::Mutex second(sync_);
  struct Looks final : Strategy {
    Lines lines;
    bool next_run() override { return true; }
    FiberId choose(const Decision& decision) override {
      std::string line = decision.from == kNoFiber ? "start" : "from " + std::to_string(decision.from);
      line += " " + std::to_string(decision.nth) + (decision.from_can_go_on ? " can go on:" : ":");
      for (const FiberId fiber : decision.runnable) {
        const Point& pending = decision.scheduler.pending(fiber);
        line += " " + decision.scheduler.name(fiber) + "/" + std::to_string(static_cast<int>(pending.kind)) + "." +
                std::to_string(pending.object) + std::string(pending.name);
        for (const std::uint64_t held : decision.scheduler.held(fiber)) line += "+" + std::to_string(held);
      }
      lines.push_back(line);
      // To the other one at its second lock.
      return decision.from == 0 && decision.nth == 2 ? 1 : decision.go_on;
    }
  } strategy;
  scheduler_.spawn("x", [&] {
    const std::scoped_lock outer(first);
    const std::scoped_lock inner(second);
    scheduler_.point({PointKind::call, 9, "put"});
  });
  scheduler_.spawn("y", [&] { const std::scoped_lock lock(first); });
  scheduler_.run(strategy);
  EXPECT_EQ(strategy.lines,
            (Lines{"start 0: x/0.0 y/0.0", "from 0 0 can go on: x/2.0 y/0.0", "from 0 1 can go on: x/2.1+0 y/0.0",
                   "from 0 2 can go on: x/1.9put+0+1 y/0.0", "from 1 0: x/1.9put+0+1", "from 0 3: y/2.0"}));
}

TEST_F(SchedulerTest, TheHarnessIsToldOfEachSwitch) {
  std::vector<std::pair<FiberId, FiberId>> told;
  scheduler_.on_switch([&](FiberId from, FiberId to) { told.emplace_back(from, to); });
  spawn_talker("a", 1);
  spawn_talker("b", 1);
  replay({{0, 0, 1}});
  using Told = std::vector<std::pair<FiberId, FiberId>>;
  EXPECT_EQ(told, (Told{{kNoFiber, 0}, {0, 1}, {1, 0}, {0, kNoFiber}}));
}

TEST_F(SchedulerTest, AFiberMaySpawnAnother) {
  scheduler_.spawn("a", [&] {
    lines_.emplace_back("a spawns");
    EXPECT_EQ(spawn_talker("b", 1), 1);
    call(7);
    lines_.emplace_back("a ends");
  });
  const RunEnd end = replay({{0, 0, 1}});
  EXPECT_EQ(lines_, (Lines{"a spawns", "b0", "b1", "a ends"}));
  EXPECT_EQ(end.verdict, RunVerdict::all_ended);
}

// A stack is free again at the end of its fiber, not only at the next reset.
TEST_F(SchedulerTest, AChainOfSpawnsTakesNoMoreStacksThanAreAliveAtOnce) {
  std::set<const void*> frames;
  std::function<void(int)> link = [&](int left) {
    const int local = left;
    frames.insert(&local);
    if (left > 0) scheduler_.spawn({}, [&link, left] { link(left - 1); });
  };
  scheduler_.spawn({}, [&] { link(100); });
  EXPECT_EQ(go_on().verdict, RunVerdict::all_ended);
  EXPECT_EQ(frames.size(), 2);
}

TEST_F(SchedulerTest, OutsideOfAnyFiberAPointDoesNothing) {
  call(7);
  EXPECT_EQ(scheduler_.current(), kNoFiber);
  EXPECT_EQ(go_on().points, 0);
}

TEST_F(SchedulerTest, LocksTakenInOppositeOrdersAreADeadlockThatIsToldInWords) {
  SimSync::Mutex first(sync_);
  SimSync::Mutex second(sync_);
  spawn_locker(first, second);
  spawn_locker(second, first);
  const RunEnd end = replay({{0, 1, 1}});
  EXPECT_EQ(end.verdict, RunVerdict::deadlock);
  EXPECT_EQ(end.report,
            "deadlock: fiber 0 holds mutex 0 and waits for mutex 1, which fiber 1 holds; "
            "fiber 1 holds mutex 1 and waits for mutex 0, which fiber 0 holds");
  EXPECT_EQ(scheduler_.alive().size(), 2);
}

TEST_F(SchedulerTest, AMutexLockedTwiceByAFiberIsADeadlock) {
  SimSync::Mutex mutex(sync_);
  scheduler_.spawn("session 4", [&] {
    const std::scoped_lock outer(mutex);
    const std::scoped_lock inner(mutex);
  });
  spawn_talker("a", 1);
  const RunEnd end = go_on();
  EXPECT_EQ(end.report, "deadlock: session 4 holds mutex 0 and waits for mutex 0, which it holds itself");
  EXPECT_EQ(lines_, (Lines{"a0", "a1"}));
}

TEST_F(SchedulerTest, AMutexHeldOutsideIsWaitedFor) {
  SimSync::Mutex mutex(sync_);
  scheduler_.spawn({}, [&] {
    const std::scoped_lock lock(mutex);
    lines_.emplace_back("in");
  });
  {
    const std::scoped_lock lock(mutex);
    EXPECT_EQ(go_on().report, "deadlock: fiber 0 waits for mutex 0, which is held outside of any fiber");
  }
  EXPECT_EQ(go_on().verdict, RunVerdict::all_ended);
  EXPECT_EQ(lines_, (Lines{"in"}));
}

TEST(SchedulerBoundTest, ARunThatPassesTooManyPointsMakesNoProgress) {
  Scheduler scheduler({.points_max = 100});
  SimSync sync;
  sync.attach(&scheduler);
  SimSync::Mutex mutex(sync);
  bool flag = false;
  scheduler.spawn("spins", [&] {
    const std::scoped_lock lock(mutex);
    while (!flag) scheduler.point({PointKind::call, 3, "is_ready"});
  });
  scheduler.spawn("sets", [&] {
    const std::scoped_lock lock(mutex);
    flag = true;
  });
  scheduler.spawn("later", [] {});
  RecordedStrategy strategy({{0, 1, 1}});
  const RunEnd end = scheduler.run(strategy);
  EXPECT_EQ(end.verdict, RunVerdict::no_progress);
  EXPECT_EQ(end.points, 100);
  EXPECT_EQ(end.report,
            "no progress in 100 points: spins holds mutex 0 and comes to is_ready; "
            "sets waits for mutex 0, which spins holds; later has not begun");
  // Dead anyway: its calls answer at once.
  flag = true;
  EXPECT_EQ(scheduler.run_out().verdict, RunVerdict::all_ended);
  EXPECT_TRUE(scheduler.alive().empty());
}

TEST(SchedulerBoundTest, AsManyPointsAsTheBoundAreProgress) {
  Scheduler scheduler({.points_max = 3});
  scheduler.spawn({}, [&] {
    scheduler.point({PointKind::call, 3, {}});
    scheduler.point({PointKind::call, 3, {}});
  });
  GoOn strategy;
  EXPECT_EQ(scheduler.run(strategy).verdict, RunVerdict::all_ended);
}

TEST(SchedulerBoundTest, WhatNeverEndsMakesNoProgressInARunOutEither) {
  Scheduler scheduler({.points_max = 50});
  scheduler.spawn("spins", [&] {
    for (;;) scheduler.point({PointKind::call, 3, {}});
  });
  GoOn strategy;
  EXPECT_EQ(scheduler.run(strategy).report, "no progress in 50 points: spins comes to call 3");
  EXPECT_EQ(scheduler.run_out().report, "no progress in 100 points: spins comes to call 3");
  scheduler.reset();
  EXPECT_TRUE(scheduler.alive().empty());
  bool ran = false;
  scheduler.spawn({}, [&] { ran = true; });
  EXPECT_EQ(scheduler.run(strategy).points, 1);
  EXPECT_TRUE(ran);
}

TEST_F(SchedulerTest, ARunOutEndsADeadlockAndLetsEverythingGo) {
  SimSync::Mutex first(sync_);
  SimSync::Mutex second(sync_);
  const auto owned = std::make_shared<int>(1);
  const auto body = [&, owned](SimSync::Mutex& outer_mutex, SimSync::Mutex& inner_mutex) {
    return [&, owned] {
      const std::shared_ptr<int> kept = owned;
      const std::scoped_lock outer(outer_mutex);
      const std::scoped_lock inner(inner_mutex);
      call(7);
      lines_.emplace_back("in");
    };
  };
  scheduler_.spawn({}, body(first, second));
  scheduler_.spawn({}, body(second, first));
  EXPECT_EQ(replay({{0, 1, 1}}).verdict, RunVerdict::deadlock);
  EXPECT_EQ(owned.use_count(), 6);  // in both bodies and on both stacks
  EXPECT_EQ(scheduler_.run_out().verdict, RunVerdict::all_ended);
  EXPECT_EQ(owned.use_count(), 2);
  EXPECT_EQ(lines_, (Lines{"in", "in"}));
}

TEST_F(SchedulerTest, ARunOutStillExcludesWhereItCan) {
  SimSync::Mutex mutex(sync_);
  const auto body = [&](const char* name) {
    return [this, &mutex, name] {
      call(7);
      const std::scoped_lock lock(mutex);
      lines_.push_back(std::string(name) + " in");
      call(7);
      lines_.push_back(std::string(name) + " out");
    };
  };
  Scheduler& scheduler = scheduler_;
  scheduler_.spawn({}, body("a"));
  scheduler_.spawn({}, [&] { throw std::runtime_error("stop"); });
  // The first is left within its lock.
  scheduler_.spawn({}, body("b"));
  RecordedStrategy strategy({{kNoFiber, 0, 2}, {2, 2, 1}});
  EXPECT_THROW(scheduler.run(strategy), std::runtime_error);
  EXPECT_EQ(scheduler_.run_out().verdict, RunVerdict::all_ended);
  EXPECT_EQ(lines_, (Lines{"b in", "b out", "a in", "a out"}));
}

TEST_F(SchedulerTest, OnceNobodyIsAskedEachGoesOnByDefault) {
  scheduler_.spawn("dies", [&] {
    call(7);
    scheduler_.ask_no_more();
    call(7);
    lines_.emplace_back("dead");
  });
  spawn_talker("b", 2);
  replay({{0, 0, 1}, {1, 0, 0}, {0, 1, 1}, {1, 1, 0}});
  EXPECT_EQ(lines_, (Lines{"b0", "dead", "b1", "b2"}));
  EXPECT_EQ(scheduler_.choices(), (std::vector<Switch>{{0, 0, 1}, {1, 0, 0}}));
}

TEST_F(SchedulerTest, ARunMayHaveSeveralParts) {
  spawn_talker("a", 1);
  EXPECT_EQ(go_on().points, 2);
  EXPECT_EQ(spawn_talker("b", 1), 1);
  EXPECT_EQ(spawn_talker("c", 0), 2);
  const RunEnd end = replay({{kNoFiber, 1, 2}});
  EXPECT_EQ(end.points, 5);
  EXPECT_EQ(lines_, (Lines{"a0", "a1", "c0", "b0", "b1"}));
  scheduler_.reset();
  EXPECT_EQ(spawn_talker("d", 0), 0);
  const RunEnd next = go_on();
  EXPECT_EQ(next.points, 1);
  EXPECT_EQ(next.switches, 0);
}

TEST_F(SchedulerTest, WhatABodyThrowsIsThrownByTheRun) {
  scheduler_.spawn({}, [&] {
    call(7);
    throw std::runtime_error("of a fiber");
  });
  spawn_talker("b", 1);
  std::string what;
  try {
    go_on();
  } catch (const std::runtime_error& error) {
    what = error.what();
  }
  EXPECT_EQ(what, "of a fiber");
  EXPECT_EQ(lines_, Lines{});
  EXPECT_EQ(go_on().verdict, RunVerdict::all_ended);
  EXPECT_EQ(lines_, (Lines{"b0", "b1"}));
}

TEST_F(SchedulerTest, AResetForgetsWhatHasNotEnded) {
  SimSync::Mutex mutex(sync_);
  const auto captured = std::make_shared<int>(1);
  scheduler_.spawn({}, [&, captured] {
    const std::scoped_lock lock(mutex);
    const std::scoped_lock again(mutex);
  });
  EXPECT_EQ(go_on().verdict, RunVerdict::deadlock);
  EXPECT_EQ(captured.use_count(), 2);
  scheduler_.reset();
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_TRUE(scheduler_.alive().empty());
  spawn_talker("b", 1);
  EXPECT_EQ(go_on().verdict, RunVerdict::all_ended);
}

TEST_F(SchedulerTest, MutexesAreNumberedInOrderOfConstructionSinceTheSchedulerWasAttached) {
  std::vector<std::uint64_t> numbers;
  const auto lock_one = [&](SimSync::Mutex& mutex) {
    scheduler_.spawn({}, [&] {
      const std::scoped_lock lock(mutex);
      numbers.push_back(scheduler_.held(scheduler_.current())[0]);
    });
    go_on();
  };
  SimSync::Mutex first(sync_);
  SimSync::Mutex second(sync_);
  lock_one(second);
  lock_one(first);
  sync_.attach(&scheduler_);
  SimSync::Mutex third(sync_);
  lock_one(third);
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{1, 0, 0}));
}

// ---- Bugs of whoever uses it.

using SimSyncDeathTest = SchedulerTest;

TEST_F(SimSyncDeathTest, WithoutASchedulerAMutexLockedTwiceEndsTheProcess) {
  sync_.attach(nullptr);
  SimSync::Mutex mutex(sync_);
  mutex.lock();
  EXPECT_EXIT(mutex.lock(), testing::KilledBySignal(SIGABRT), "locked by the thread that holds it");
  mutex.unlock();
  EXPECT_EXIT(mutex.unlock(), testing::KilledBySignal(SIGABRT), "unlocked that nobody holds");
}

TEST_F(SimSyncDeathTest, OutsideOfAnyFiberWhatASuspendedFiberHoldsIsNotLocked) {
  SimSync::Mutex mutex(sync_);
  scheduler_.spawn({}, [&] {
    const std::scoped_lock lock(mutex);
    const std::scoped_lock again(mutex);
  });
  go_on();
  EXPECT_EXIT(mutex.lock(), testing::KilledBySignal(SIGABRT),
              "mutex 0 is locked outside of any fiber, but held by fiber 0, which is suspended");
}

TEST_F(SimSyncDeathTest, AFiberUnlocksOnlyWhatItHolds) {
  SimSync::Mutex mutex(sync_);
  scheduler_.spawn({}, [&] { mutex.unlock(); });
  EXPECT_EXIT(go_on(), testing::KilledBySignal(SIGABRT), "unlocked by a fiber that doesn't hold it");
}

TEST_F(SimSyncDeathTest, AFiberDoesNotEndWithAMutexHeld) {
  SimSync::Mutex mutex(sync_);
  scheduler_.spawn({}, [&] { mutex.lock(); });
  EXPECT_EXIT(go_on(), testing::KilledBySignal(SIGABRT), "a fiber ends while it holds a mutex");
}

TEST_F(SimSyncDeathTest, AStrategyChoosesAmongThoseThatCanGoOn) {
  struct Wrong final : Strategy {
    bool next_run() override { return true; }
    FiberId choose(const Decision& /*decision*/) override { return 5; }
  } strategy;
  spawn_talker("a", 1);
  EXPECT_EXIT(scheduler_.run(strategy), testing::KilledBySignal(SIGABRT), "chose a fiber that can't go on");
}

}  // namespace
}  // namespace holdfast::sim
