// Fibers: a function stops where it switches away, and goes on there with what it had.
#include "holdfast/sim/fiber.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::sim {
namespace {

// A fiber that runs a function and goes on to `home` when it has ended.
struct Task {
  Task(Fiber& home_fiber, std::function<void(Task&)> what) : home(home_fiber), function(std::move(what)) { begin(); }
  void begin() { fiber.start(&Task::run, this); }
  void go() { home.switch_to(fiber); }
  void pause() { fiber.switch_to(home); }
  static Fiber& run(void* argument) {
    Task& self = *static_cast<Task*>(argument);
    self.function(self);
    return self.home;
  }

  Fiber& home;
  std::function<void(Task&)> function;
  Fiber fiber{Fiber::kStackBytes};
};

TEST(FiberTest, GoesOnWhereItStopped) {
  Fiber home;
  std::vector<std::string> seen;
  Task task(home, [&](Task& self) {
    for (int i = 0; i < 3; ++i) {
      seen.push_back("task " + std::to_string(i));
      self.pause();
    }
    seen.push_back("end");
  });
  for (int i = 0; i < 4; ++i) {
    seen.push_back("home");
    task.go();
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"home", "task 0", "home", "task 1", "home", "task 2", "home", "end"}));
}

TEST(FiberTest, OneSwitchesToAnotherDirectly) {
  Fiber home;
  std::string seen;
  Task* second_task = nullptr;
  Task first(home, [&](Task& self) {
    seen += "a";
    self.fiber.switch_to(second_task->fiber);
    seen += "c";
  });
  Task second(home, [&](Task& self) {
    seen += "b";
    self.fiber.switch_to(first.fiber);
    seen += "e";
  });
  second_task = &second;
  first.go();
  seen += "d";
  second.go();
  EXPECT_EQ(seen, "abcde");
}

TEST(FiberTest, AStackServesOneBodyAfterAnother) {
  Fiber home;
  constexpr int kRuns = 20'000;
  int ended = 0;
  const void* first_frame = nullptr;
  int other_frames = 0;
  Task task(home, [&](Task& self) {
    const int local = ended;
    if (first_frame == nullptr) first_frame = &local;
    if (first_frame != &local) ++other_frames;
    self.pause();
    ended = local + 1;
  });
  for (int i = 0; i < kRuns; ++i) {
    if (i > 0) task.begin();
    task.go();
    task.go();
  }
  EXPECT_EQ(ended, kRuns);
  EXPECT_EQ(other_frames, 0);
}

// What a forgotten frame left in a sanitizer's shadow would be found in the frames of the next body.
TEST(FiberTest, AStackServesAgainAfterABodyThatIsForgotten) {
  Fiber home;
  int sum = 0;
  const std::function<void(Task&, int)> down = [&](Task& self, int depth) {
    volatile char block[200] = {};
    block[depth] = 1;
    if (depth > 0) {
      down(self, depth - 1);
    } else {
      self.pause();
    }
    sum += block[depth];
  };
  Task task(home, [&](Task& self) { down(self, 20); });
  for (int i = 0; i < 100; ++i) {
    task.go();  // and never again
    task.begin();
  }
  EXPECT_EQ(sum, 0);
  task.function = [&](Task& /*self*/) {
    volatile char block[8'000];
    for (volatile char& byte : block) byte = 1;
    for (const volatile char& byte : block) sum += byte;
  };
  task.begin();
  task.go();
  EXPECT_EQ(sum, 8'000);
}

TEST(FiberTest, EachHandlesItsOwnException) {
  Fiber home;
  const auto message = [] {
    try {
      std::rethrow_exception(std::current_exception());
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
  };
  std::vector<std::string> seen;
  const auto handle = [&](const char* what) {
    return [&seen, &message, what](Task& self) {
      try {
        throw std::runtime_error(what);
      } catch (const std::runtime_error&) {
        self.pause();
        seen.push_back(message());
        self.pause();
        seen.push_back(message());
      }
      EXPECT_EQ(std::current_exception(), nullptr);
    };
  };
  Task first(home, handle("first"));
  Task second(home, handle("second"));
  for (int i = 0; i < 3; ++i) {
    first.go();
    EXPECT_EQ(std::current_exception(), nullptr);
    second.go();
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"first", "second", "first", "second"}));
}

TEST(FiberTest, ADestructorMaySwitchWhileAnExceptionIsInFlight) {
  Fiber home;
  struct Pauses {
    Task& task;
    ~Pauses() { task.pause(); }
  };
  bool caught = false;
  Task task(home, [&](Task& self) {
    try {
      const Pauses pauses{self};
      throw std::runtime_error("in flight");
    } catch (const std::runtime_error&) {
      caught = true;
    }
  });
  task.go();
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  task.go();
  EXPECT_TRUE(caught);
}

int overflow(int depth) {
  volatile char block[1'000] = {};
  block[0] = static_cast<char>(depth);
  return depth == 0 ? 0 : overflow(depth - 1) + block[0];
}

TEST(FiberDeathTest, AnOverflowMeetsTheGuardPage) {
  const auto overflowing = [] {
    Fiber home;
    Task task(home, [&](Task& /*self*/) { overflow(1'300); });
    // What is mapped next lies right below, and may be written to.
    const Fiber below(Fiber::kStackBytes);
    task.go();
  };
  EXPECT_DEATH(overflowing(), "");
}

TEST(FiberDeathTest, NobodySwitchesToOneThatHasEnded) {
  EXPECT_EXIT(
      {
        Fiber home;
        Task task(home, [](Task& /*self*/) {});
        task.go();
        task.go();
      },
      testing::KilledBySignal(SIGABRT), "switched to that runs already, has ended or never began");
}

}  // namespace
}  // namespace holdfast::sim
