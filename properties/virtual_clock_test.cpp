// The virtual clock: what falls due on the way happens at its own instant, in order.
#include "holdfast/fakes/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::fakes {
namespace {

using History = std::vector<std::pair<Nanos, std::string>>;

// Does something at each of its instants, and notes when it was asked to.
class Ticks final : public TimedActor {
 public:
  Ticks(std::string name, std::vector<Nanos> instants_ns, const VirtualClock& clock, History& history)
      : name_(std::move(name)), instants_ns_(std::move(instants_ns)), clock_(clock), history_(history) {}

  [[nodiscard]] Nanos next_due_ns() const override { return instants_ns_.empty() ? kNever : instants_ns_.front(); }
  void run_due(Nanos now_ns) override {
    EXPECT_EQ(now_ns, clock_.now_ns());
    while (next_due_ns() <= now_ns) {
      history_.emplace_back(now_ns, name_);
      instants_ns_.erase(instants_ns_.begin());
      if (add_at_ns != kNever) instants_ns_.push_back(std::exchange(add_at_ns, kNever));
    }
  }

  Nanos add_at_ns = kNever;  // one more, from within the next run

 private:
  std::string name_;
  std::vector<Nanos> instants_ns_;
  const VirtualClock& clock_;
  History& history_;
};

struct VirtualClockTest : testing::Test {
  VirtualClock clock;
  History history;
};

TEST_F(VirtualClockTest, WhatFallsDueOnTheWayHappensAtItsOwnInstantInTimeOrder) {
  Ticks first("first", {30, 50}, clock, history);
  Ticks second("second", {10, 40}, clock, history);
  clock.add(first);
  clock.add(second);
  clock.advance_to(45);
  EXPECT_EQ(history, (History{{10, "second"}, {30, "first"}, {40, "second"}}));
  EXPECT_EQ(clock.now_ns(), 45);
  EXPECT_EQ(clock.next_due_ns(), 50);
}

TEST_F(VirtualClockTest, AtOneInstantActorsRunInTheOrderInWhichTheyWereAdded) {
  Ticks first("first", {20}, clock, history);
  Ticks second("second", {20}, clock, history);
  clock.add(second);
  clock.add(first);
  clock.advance_by(20);
  EXPECT_EQ(history, (History{{20, "second"}, {20, "first"}}));
}

TEST_F(VirtualClockTest, WhatComesUpOnTheWayHappensOnTheWay) {
  Ticks ticks("ticks", {10}, clock, history);
  ticks.add_at_ns = 25;
  clock.add(ticks);
  clock.advance_to(30);
  EXPECT_EQ(history, (History{{10, "ticks"}, {25, "ticks"}}));
}

TEST_F(VirtualClockTest, TimeNeverGoesBack) {
  clock.advance_to(30);
  clock.advance_to(10);
  EXPECT_EQ(clock.now_ns(), 30);
}

TEST_F(VirtualClockTest, ARemovedActorIsNotRun) {
  Ticks ticks("ticks", {10}, clock, history);
  clock.add(ticks);
  clock.remove(ticks);
  clock.advance_to(20);
  EXPECT_TRUE(history.empty());
  EXPECT_EQ(clock.next_due_ns(), kNever);
}

}  // namespace
}  // namespace holdfast::fakes
