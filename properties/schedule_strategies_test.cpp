// What each strategy finds, what the exhaustive ones cover, and that a seed gives the same schedule everywhere.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/sim/depth_first.hpp"
#include "holdfast/sim/pct_strategy.hpp"
#include "holdfast/sim/random_strategy.hpp"
#include "holdfast/sim/recorded_strategy.hpp"
#include "holdfast/sim/scheduler.hpp"
#include "holdfast/sim/sim_sync.hpp"
#include "holdfast/sim/sleep_sets.hpp"

namespace holdfast::sim {
namespace {

// ---- Programs with a bug. Made anew for each run.

struct Toy {
  explicit Toy(Scheduler& of_run) : scheduler(of_run) { sync.attach(&of_run); }
  void call() const { scheduler.point({PointKind::call, 0, {}}); }
  void spawn(std::function<void()> body) const { scheduler.spawn({}, std::move(body)); }

  Scheduler& scheduler;
  SimSync sync;
};

// Two count up in two calls each.
struct LostUpdate : Toy {
  static constexpr std::uint64_t kPreemptions = 1;  // that it takes
  explicit LostUpdate(Scheduler& of_run) : Toy(of_run) {
    for (int i = 0; i < 2; ++i) {
      spawn([this] {
        call();
        const int before = count;
        call();
        count = before + 1;
      });
    }
  }
  [[nodiscard]] bool wrong(const RunEnd& /*end*/) const { return count != 2; }
  int count = 0;
};

// One looks whether a blob is there, and takes it under a second lock; the other takes it away in between.
struct CheckThenAct : Toy {
  static constexpr std::uint64_t kPreemptions = 1;
  explicit CheckThenAct(Scheduler& of_run) : Toy(of_run) {
    spawn([this] {
      bool found = false;
      {
        const std::scoped_lock lock(mutex);
        found = there;
      }
      const std::scoped_lock lock(mutex);
      if (found) taken_from_nothing = !there;
    });
    spawn([this] {
      call();
      const std::scoped_lock lock(mutex);
      there = false;
    });
  }
  [[nodiscard]] bool wrong(const RunEnd& /*end*/) const { return taken_from_nothing; }
  SimSync::Mutex mutex{sync};
  bool there = true;
  bool taken_from_nothing = false;
};

struct LockOrder : Toy {
  static constexpr std::uint64_t kPreemptions = 1;
  explicit LockOrder(Scheduler& of_run) : Toy(of_run) {
    const auto both = [this](SimSync::Mutex& outer_mutex, SimSync::Mutex& inner_mutex) {
      spawn([&] {
        const std::scoped_lock outer(outer_mutex);
        const std::scoped_lock inner(inner_mutex);
      });
    };
    both(first, second);
    both(second, first);
  }
  [[nodiscard]] static bool wrong(const RunEnd& end) { return end.verdict == RunVerdict::deadlock; }
  SimSync::Mutex first{sync};
  SimSync::Mutex second{sync};
};

// One writes a value in two halves, the other reads the old first half and the new one of a value half written.
struct TornRead : Toy {
  static constexpr std::uint64_t kPreemptions = 2;
  explicit TornRead(Scheduler& of_run) : Toy(of_run) {
    spawn([this] {
      call();
      value = 1;
      call();
      value = 2;
    });
    spawn([this] {
      call();
      const int before = value;
      call();
      torn = before == 0 && value == 1;
    });
  }
  [[nodiscard]] bool wrong(const RunEnd& /*end*/) const { return torn; }
  int value = 0;
  bool torn = false;
};

struct Found {
  std::uint64_t runs = 0;                      // until then, or in all
  std::optional<std::vector<Switch>> choices;  // of the first run that went wrong
};

template <class Program>
Found find(Strategy& strategy, std::uint64_t runs_max) {
  Scheduler scheduler;
  Found found;
  while (found.runs < runs_max && strategy.next_run()) {
    ++found.runs;
    scheduler.reset();
    Program program(scheduler);
    const RunEnd end = scheduler.run(strategy);
    if (program.wrong(end)) found.choices = scheduler.choices();
    scheduler.run_out();
    if (found.choices) return found;
  }
  return found;
}

template <class Program>
class BugTest : public testing::Test {};
using Programs = testing::Types<LostUpdate, CheckThenAct, LockOrder, TornRead>;
TYPED_TEST_SUITE(BugTest, Programs);

TYPED_TEST(BugTest, GoingOnDoesNotFindIt) {
  GoOn strategy;
  EXPECT_FALSE(find<TypeParam>(strategy, 3).choices);
}

TYPED_TEST(BugTest, RandomFindsIt) {
  RandomStrategy strategy({.seed = 1, .switches = 1, .of = 4});
  EXPECT_TRUE(find<TypeParam>(strategy, 200).choices);
}

TYPED_TEST(BugTest, PctOfItsDepthFindsIt) {
  PctStrategy strategy({.seed = 1, .depth = TypeParam::kPreemptions + 1, .estimated_points = 8});
  EXPECT_TRUE(find<TypeParam>(strategy, 400).choices);
}

// With too few changes of priority there are too few preemptions.
TYPED_TEST(BugTest, PctOfALowerDepthDoesNot) {
  PctStrategy strategy({.seed = 1, .depth = TypeParam::kPreemptions, .estimated_points = 8});
  EXPECT_FALSE(find<TypeParam>(strategy, 400).choices);
}

TYPED_TEST(BugTest, DepthFirstFindsItWithinItsPreemptionsAndNotWithFewer) {
  DepthFirst enough(TypeParam::kPreemptions);
  EXPECT_TRUE(find<TypeParam>(enough, 1'000).choices);
  EXPECT_FALSE(enough.exhausted());
  DepthFirst too_few(TypeParam::kPreemptions - 1);
  EXPECT_FALSE(find<TypeParam>(too_few, 1'000).choices);
  EXPECT_TRUE(too_few.exhausted());
}

TYPED_TEST(BugTest, SleepSetsFindIt) {
  SleepSets strategy;
  EXPECT_TRUE(find<TypeParam>(strategy, 1'000).choices);
}

TYPED_TEST(BugTest, TheRecordedChoicesShowItAgain) {
  RandomStrategy random({.seed = 1, .switches = 1, .of = 4});
  const std::optional<std::vector<Switch>> choices = find<TypeParam>(random, 200).choices;
  ASSERT_TRUE(choices);
  RecordedStrategy recorded(*choices);
  const Found again = find<TypeParam>(recorded, 1);
  ASSERT_TRUE(again.choices);
  EXPECT_EQ(*again.choices, *choices);
}

// ---- A seed and its schedule.

// Who did each operation: a digit each.
class Noted final : public Strategy {
 public:
  explicit Noted(Strategy& chooser) : chooser_(chooser) {}
  bool next_run() override {
    schedule.clear();
    return chooser_.next_run();
  }
  FiberId choose(const Decision& decision) override {
    const FiberId chosen = chooser_.choose(decision);
    schedule += static_cast<char>('0' + (chosen == kNoFiber ? decision.go_on : chosen));
    return chosen;
  }
  std::string schedule;

 private:
  Strategy& chooser_;
};

class Counted final : public Strategy {
 public:
  explicit Counted(Strategy& chooser) : chooser_(chooser) {}
  bool next_run() override { return chooser_.next_run(); }
  FiberId choose(const Decision& decision) override {
    const FiberId chosen = chooser_.choose(decision);
    if (decision.from_can_go_on && chosen != decision.from) ++preemptions;
    return chosen;
  }
  std::uint64_t preemptions = 0;

 private:
  Strategy& chooser_;
};

// The schedules of three fibers of six points each.
std::vector<std::string> schedules(Strategy& strategy, int runs) {
  Scheduler scheduler;
  Noted noted(strategy);
  std::vector<std::string> all;
  for (int run = 0; run < runs && noted.next_run(); ++run) {
    scheduler.reset();
    for (int fiber = 0; fiber < 3; ++fiber) {
      scheduler.spawn({}, [&] {
        for (int i = 1; i < 6; ++i) scheduler.point({PointKind::call, 0, {}});
      });
    }
    scheduler.run(noted);
    all.push_back(noted.schedule);
  }
  return all;
}

TEST(ScheduleTest, ASeedGivesTheSameRandomSchedulesEverywhere) {
  RandomStrategy strategy({.seed = 7, .switches = 1, .of = 3});
  EXPECT_EQ(schedules(strategy, 3),
            (std::vector<std::string>{"211110022222101000", "000200102222211111", "222212111112000000"}));
}

TEST(ScheduleTest, ASeedGivesTheSamePrioritiesEverywhere) {
  PctStrategy strategy({.seed = 7, .depth = 3, .estimated_points = 18});
  EXPECT_EQ(schedules(strategy, 3),
            (std::vector<std::string>{"222221111110200000", "122222200000011111", "000000111222222111"}));
}

TEST(ScheduleTest, WithoutSwitchesRandomGoesOn) {
  RandomStrategy strategy({.seed = 7, .switches = 0, .of = 3});
  for (const std::string& schedule : schedules(strategy, 20)) {
    std::string changes = schedule;
    changes.erase(std::unique(changes.begin(), changes.end()), changes.end());
    EXPECT_EQ(changes.size(), 3) << schedule;
  }
}

// The promise of its authors: of n fibers that pass k points a bug of depth d is found by one of n * k^(d-1) runs.
TEST(ScheduleTest, PctFindsABugOfADepthAsOftenAsItPromises) {
  constexpr int kRuns = 2'000;
  constexpr int kPoints = 6;
  PctStrategy strategy({.seed = 3, .depth = 2, .estimated_points = kPoints});
  int found = 0;
  for (int i = 0; i < kRuns; ++i) found += find<LostUpdate>(strategy, 1).choices ? 1 : 0;
  EXPECT_GE(found, kRuns / (2 * kPoints));
}

// A run may have parts whose fibers and decisions are numbered from 0 each: its changes of priority are not more for
// it.
TEST(ScheduleTest, PctPreemptsNoOftenerInARunOfSeveralParts) {
  constexpr std::uint32_t kDepth = 3;
  Scheduler scheduler;
  PctStrategy pct({.seed = 5, .depth = kDepth, .estimated_points = 24});
  std::uint64_t preemptions_most = 0;
  for (int run = 0; run < 300 && pct.next_run(); ++run) {
    Counted counted(pct);
    for (int part = 0; part < 2; ++part) {
      scheduler.reset();
      for (int fiber = 0; fiber < 2; ++fiber) {
        scheduler.spawn({}, [&] {
          for (int i = 1; i < 6; ++i) scheduler.point({PointKind::call, 0, {}});
        });
      }
      scheduler.run(counted);
    }
    preemptions_most = std::max(preemptions_most, counted.preemptions);
  }
  EXPECT_EQ(preemptions_most, kDepth - 1);
}

TEST(ScheduleTest, ARecordedChoiceIsMadeAtItsDecisionOnly) {
  RecordedStrategy strategy({{0, 0, 1}, {1, 0, 0}});
  EXPECT_EQ(schedules(strategy, 1), (std::vector<std::string>{"010000011111222222"}));
}

TEST(ScheduleTest, OfRecordedChoicesThoseThatCannotBeMadeChangeNothing) {
  // Never reached; of a fiber that has ended; of one that isn't there; twice for one decision, the later counts.
  RecordedStrategy strategy({{0, 99, 1}, {1, 3, 2}, {1, 2, 9}, {0, 1, 1}, {0, 1, 2}});
  EXPECT_EQ(schedules(strategy, 1), (std::vector<std::string>{"002222220000111111"}));
}

// ---- How many schedules there are.

std::uint64_t choose_of(std::uint64_t all, std::uint64_t some) {
  std::uint64_t ways = 1;
  for (std::uint64_t i = 0; i < some; ++i) ways = ways * (all - i) / (i + 1);
  return some > all ? 0 : ways;
}

// Of two fibers with exactly so many preemptions. The last block of each but the last fiber ends it, so that there are
// two more blocks than preemptions; a fiber of n operations falls into b blocks in C(n-1, b-1) ways; either may be
// first.
std::uint64_t schedules_of_two(std::uint64_t first, std::uint64_t second, std::uint64_t preemptions) {
  const std::uint64_t more = (preemptions + 1) / 2;
  const std::uint64_t fewer = preemptions / 2;
  return choose_of(first - 1, more) * choose_of(second - 1, fewer) +
         choose_of(second - 1, more) * choose_of(first - 1, fewer);
}

std::vector<std::uint64_t> covered(std::uint64_t first, std::uint64_t second, std::uint64_t preemptions_max) {
  Scheduler scheduler;
  DepthFirst strategy(preemptions_max);
  while (strategy.next_run()) {
    scheduler.reset();
    for (const std::uint64_t points : {first, second}) {
      scheduler.spawn({}, [&scheduler, points] {
        for (std::uint64_t i = 1; i < points; ++i) scheduler.point({PointKind::call, 0, {}});
      });
    }
    scheduler.run(strategy);
  }
  EXPECT_TRUE(strategy.exhausted());
  return strategy.schedules_by_preemptions();
}

TEST(DepthFirstTest, TwoSessionsOfSixtyPointsHaveSevenThousandSchedulesOfTwoPreemptions) {
  EXPECT_EQ(covered(60, 60, 2), (std::vector<std::uint64_t>{2, 118, 6'962}));
  EXPECT_EQ(schedules_of_two(60, 60, 0) + schedules_of_two(60, 60, 1) + schedules_of_two(60, 60, 2), 7'082);
  EXPECT_EQ(7'082 + schedules_of_two(60, 60, 3), 208'980);
}

TEST(DepthFirstTest, CoversAsManyAsTheFormulaSays) {
  for (const auto& [first, second] : {std::pair{1, 1}, {1, 4}, {5, 3}, {8, 8}}) {
    for (std::uint64_t preemptions_max = 0; preemptions_max <= 4; ++preemptions_max) {
      std::vector<std::uint64_t> expected;
      for (std::uint64_t exactly = 0; exactly <= preemptions_max; ++exactly) {
        expected.push_back(schedules_of_two(first, second, exactly));
      }
      while (expected.back() == 0) expected.pop_back();
      EXPECT_EQ(covered(first, second, preemptions_max), expected) << first << " " << second << " " << preemptions_max;
    }
  }
}

// ---- Generated programs: locks, calls, and accesses under them.

constexpr std::uint64_t kMutexes = 3;

enum class Act : std::uint8_t { call, lock, unlock, write, read };
struct Op {
  Act act{};
  std::size_t object = 0;  // a mutex, or the variable it guards; kMutexes is what calls reach
};
using Body = std::vector<Op>;
using ToyProgram = std::vector<Body>;

bool is_point(const Op& op) { return op.act == Act::call || op.act == Act::lock; }

// Any numbers make a body: what they ask for is done where it makes sense, until it has so many points.
Body body_from(const std::vector<std::uint8_t>& numbers, int points_max) {
  Body body;
  std::vector<std::size_t> held;
  bool called = false;  // since the last point: what calls reach may be touched
  int points = 0;
  for (const std::uint8_t number : numbers) {
    const std::size_t mutex = number / 8 % kMutexes;
    const std::size_t reached = called ? kMutexes : held.empty() ? kMutexes + 1 : held.back();
    const Act act = std::array{Act::call,   Act::lock,  Act::lock,  Act::lock,
                               Act::unlock, Act::write, Act::write, Act::read}[number % 8];
    if (act == Act::call || act == Act::lock) {
      if (points == points_max || (act == Act::lock && std::ranges::find(held, mutex) != held.end())) continue;
      ++points;
      called = act == Act::call;
      if (act == Act::lock) held.push_back(mutex);
      body.push_back({act, mutex});
    } else if (act == Act::unlock) {
      if (held.empty()) continue;
      body.push_back({act, held.back()});
      held.pop_back();
    } else if (reached <= kMutexes) {
      body.push_back({act, reached});
    }
  }
  for (; !held.empty(); held.pop_back()) body.push_back({Act::unlock, held.back()});
  return body;
}

rc::Gen<ToyProgram> programs() {
  const auto numbers = rc::gen::container<std::vector<std::uint8_t>>(14, rc::gen::arbitrary<std::uint8_t>());
  return rc::gen::map(
      rc::gen::pair(rc::gen::container<std::vector<std::vector<std::uint8_t>>>(3, numbers), rc::gen::inRange(2, 4)),
      [](const std::pair<std::vector<std::vector<std::uint8_t>>, int>& made) {
        ToyProgram program;
        for (int i = 0; i < made.second; ++i) {
          program.push_back(body_from(made.first[static_cast<std::size_t>(i)], made.second == 2 ? 4 : 2));
        }
        return program;
      });
}

std::string text_of(const ToyProgram& program) {
  std::string text;
  for (const Body& body : program) {
    for (const Op& op : body) {
      text += std::array{"call", "lock", "unlock", "write", "read"}[static_cast<std::size_t>(op.act)];
      text += " " + std::to_string(op.object) + ", ";
    }
    text += "; ";
  }
  return text;
}

// One run of it in fibers.
class Running : public Toy {
 public:
  Running(Scheduler& of_run, const ToyProgram& program) : Toy(of_run), seen_(program.size()) {
    for (std::size_t i = 0; i < kMutexes; ++i) mutexes_.push_back(std::make_unique<SimSync::Mutex>(sync));
    for (std::size_t fiber = 0; fiber < program.size(); ++fiber) {
      spawn([this, &program, fiber] {
        for (const Op& op : program[fiber]) run(op, fiber);
      });
    }
  }
  // What each saw, what is left, and whether all ended.
  [[nodiscard]] std::string end_state(const RunEnd& end) const {
    std::string text = end.verdict == RunVerdict::all_ended ? "" : "deadlock";
    for (const std::uint64_t value : values_) text += " " + std::to_string(value);
    for (const std::uint64_t value : seen_) text += " " + std::to_string(value);
    return text;
  }

 private:
  void run(const Op& op, std::size_t fiber) {
    switch (op.act) {
      case Act::call:
        return call();
      case Act::lock:
        return mutexes_[op.object]->lock();
      case Act::unlock:
        return mutexes_[op.object]->unlock();
      case Act::write:
        values_[op.object] = values_[op.object] * 5 + fiber + 1;
        return;
      case Act::read:
        seen_[fiber] = seen_[fiber] * 31 + values_[op.object] + 1;
        return;
    }
  }

  std::vector<std::unique_ptr<SimSync::Mutex>> mutexes_;
  std::array<std::uint64_t, kMutexes + 1> values_{};
  std::vector<std::uint64_t> seen_;
};

struct Exploration {
  std::set<std::string> end_states;
  std::map<std::string, int> schedules;  // how often each was run
};

Exploration explore(Strategy& strategy, const ToyProgram& program) {
  Scheduler scheduler;
  Exploration explored;
  Noted noted(strategy);
  while (noted.next_run()) {
    scheduler.reset();
    Running running(scheduler, program);
    const RunEnd end = scheduler.run(noted);
    if (!scheduler.redundant()) {
      explored.end_states.insert(running.end_state(end));
      ++explored.schedules[noted.schedule];
    }
    scheduler.run_out();
  }
  return explored;
}

// The same rules, written down without fibers: every schedule with at most so many preemptions.
class BruteForce {
 public:
  BruteForce(const ToyProgram& program, std::uint64_t preemptions_max)
      : program_(program), preemptions_max_(preemptions_max) {}
  std::set<std::string> schedules() {
    go({std::vector<int>(program_.size(), -1), {}, {}, 0});
    return std::move(schedules_);
  }

 private:
  struct State {
    std::vector<int> next;  // op of each fiber; -1 before it begins
    std::set<std::size_t> locked;
    std::string schedule;
    std::uint64_t preemptions = 0;
  };

  [[nodiscard]] bool can_go_on(const State& state, std::size_t fiber) const {
    const int next = state.next[fiber];
    if (next < 0) return true;
    if (next == static_cast<int>(program_[fiber].size())) return false;
    const Op& op = program_[fiber][static_cast<std::size_t>(next)];
    return op.act != Act::lock || !state.locked.contains(op.object);
  }
  void take(State& state, std::size_t fiber) const {
    int& next = state.next[fiber];
    const Body& body = program_[fiber];
    if (next >= 0 && body[static_cast<std::size_t>(next)].act == Act::lock) {
      state.locked.insert(body[static_cast<std::size_t>(next)].object);
    }
    for (++next; next < static_cast<int>(body.size()) && !is_point(body[static_cast<std::size_t>(next)]); ++next) {
      const Op& op = body[static_cast<std::size_t>(next)];
      if (op.act == Act::unlock) state.locked.erase(op.object);
    }
  }
  void go(const State& state) {
    bool ended = true;
    const bool begun = !state.schedule.empty();
    const auto last = begun ? static_cast<std::size_t>(state.schedule.back() - '0') : 0;
    for (std::size_t fiber = 0; fiber < program_.size(); ++fiber) {
      if (!can_go_on(state, fiber)) continue;
      ended = false;
      State after = state;
      after.schedule += static_cast<char>('0' + fiber);
      if (begun && fiber != last && can_go_on(state, last)) ++after.preemptions;
      if (after.preemptions > preemptions_max_) continue;
      take(after, fiber);
      go(after);
    }
    if (ended) schedules_.insert(state.schedule);
  }

  const ToyProgram& program_;
  std::uint64_t preemptions_max_;
  std::set<std::string> schedules_;
};

RC_GTEST_PROP(DepthFirstProperty, CoversEachScheduleWithinTheBoundOnce, ()) {
  const ToyProgram program = *programs();
  const auto preemptions_max = *rc::gen::inRange<std::uint64_t>(0, 4);
  DepthFirst strategy(preemptions_max);
  const Exploration explored = explore(strategy, program);
  std::set<std::string> distinct;
  for (const auto& [schedule, times] : explored.schedules) {
    if (times != 1) RC_FAIL("run twice: " + schedule);
    distinct.insert(schedule);
  }
  if (distinct != BruteForce(program, preemptions_max).schedules()) RC_FAIL(text_of(program));
  RC_ASSERT(strategy.exhausted());
  RC_ASSERT(strategy.schedules() == distinct.size());
}

RC_GTEST_PROP(SleepSetsProperty, ReachEveryEndStateThatThereIs, ()) {
  const ToyProgram program = *programs();
  DepthFirst unpruned(DepthFirst::kUnbounded);
  SleepSets pruned;
  const Exploration all = explore(unpruned, program);
  const Exploration some = explore(pruned, program);
  if (some.end_states != all.end_states) RC_FAIL(text_of(program));
  RC_ASSERT(pruned.exhausted());
  RC_ASSERT(pruned.schedules() == some.schedules.size());
  RC_ASSERT(pruned.schedules() <= unpruned.schedules());
  RC_CLASSIFY(pruned.schedules() < unpruned.schedules(), "pruned");
  RC_CLASSIFY(all.end_states.size() > 1, "several end states");
}

// ---- Sleep sets.

std::vector<Body> lockers(std::size_t first, std::size_t second) {
  return {{{Act::lock, first}, {Act::write, first}, {Act::unlock, first}},
          {{Act::lock, second}, {Act::write, second}, {Act::unlock, second}}};
}

TEST(SleepSetsTest, WhatSharesNothingHasOneSchedule) {
  SleepSets strategy;
  explore(strategy, lockers(0, 1));
  EXPECT_TRUE(strategy.exhausted());
  EXPECT_EQ(strategy.schedules(), 1);
}

TEST(SleepSetsTest, WhatSharesAMutexHasOneForEachOrder) {
  SleepSets strategy;
  EXPECT_EQ(explore(strategy, lockers(1, 1)).end_states.size(), 2);
  EXPECT_EQ(strategy.schedules(), 2);
}

TEST(SleepSetsTest, CallsOfTwoHaveOneForEachOrder) {
  const Body three(3, {Act::call, 0});
  SleepSets strategy;
  explore(strategy, {three, three});
  EXPECT_EQ(strategy.schedules(), choose_of(6, 3));
}

TEST(SleepSetsTest, ARunThatIsNothingNewIsToldAndEnds) {
  Scheduler scheduler;
  SleepSets strategy;
  std::uint64_t redundant = 0;
  while (strategy.next_run()) {
    scheduler.reset();
    const ToyProgram program = lockers(0, 1);
    const Running running(scheduler, program);
    EXPECT_EQ(scheduler.run(strategy).verdict, RunVerdict::all_ended);
    redundant += scheduler.redundant() ? 1 : 0;
  }
  EXPECT_GT(redundant, 0);
  EXPECT_EQ(strategy.redundant(), redundant);
}

// Of a part whose rest is not asked for it isn't known who went on.
TEST(SleepSetsTest, NothingIsAsleepWhereThePartBeforeWasAskedNoMore) {
  Scheduler scheduler;
  SleepSets strategy;
  const ToyProgram second_part = lockers(0, 0);
  while (strategy.next_run()) {
    scheduler.reset();
    scheduler.spawn({}, [] {});
    scheduler.spawn({}, [&] { scheduler.ask_no_more(); });
    scheduler.run(strategy);
    scheduler.reset();
    const Running running(scheduler, second_part);
    scheduler.run(strategy);
  }
  // Either of the first part may begin, and so may either of the second.
  EXPECT_EQ(strategy.schedules(), 4);
}

// ---- A program that isn't the same from run to run.

template <class Exhaustive>
void expect_diverged(Exhaustive strategy) {
  Scheduler scheduler;
  int run = 0;
  while (run < 100 && strategy.next_run()) {
    ++run;
    scheduler.reset();
    for (int fiber = 0; fiber < (run == 2 ? 3 : 2); ++fiber) {
      scheduler.spawn({}, [&] { scheduler.point({PointKind::call, 0, {}}); });
    }
    EXPECT_EQ(scheduler.run(strategy).verdict, RunVerdict::all_ended);
  }
  EXPECT_EQ(run, 2);
  EXPECT_TRUE(strategy.diverged());
  EXPECT_FALSE(strategy.exhausted());
  EXPECT_EQ(strategy.schedules(), 1);
}

TEST(DivergenceTest, EndsAnExhaustiveSearchAndIsTold) {
  expect_diverged(DepthFirst(2));
  expect_diverged(SleepSets());
}

}  // namespace
}  // namespace holdfast::sim
