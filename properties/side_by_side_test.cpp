// Steps that take turns: what they come to is as the switches say, again and again, and what stands still is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "forwarding_system.hpp"
#include "holdfast/sim/campaign.hpp"
#include "holdfast/sim/executor.hpp"
#include "holdfast/sim/pct_strategy.hpp"
#include "holdfast/sim/random_strategy.hpp"
#include "holdfast/sim/scenarios.hpp"

namespace holdfast::sim {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

Trace scenario(std::string_view name) {
  Result<Trace> trace = scenario_named(name);
  EXPECT_TRUE(trace) << name;
  return *trace;
}

RunOptions by(Strategy& strategy) {
  RunOptions options;
  options.strategy = &strategy;
  options.keep_end_state = true;
  return options;
}

RunOptions as_recorded() {
  RunOptions options;
  options.keep_end_state = true;
  return options;
}

std::vector<std::string> broken(const RunResult& result) {
  std::vector<std::string> names;
  for (const Violation& violation : result.violations) {
    names.push_back(std::string(name_of(violation.invariant)) + ": " + violation.message);
  }
  return names;
}

TEST(SideBySide, ByDefaultOneStepComesAfterTheOther) {
  Executor executor(make_production_system);
  for (const Scenario& each : scenarios_together()) {
    const Trace trace = scenario(each.name);
    const RunResult apart = executor.run(trace, as_recorded());
    GoOn go_on;
    const RunResult together = executor.run(trace, by(go_on));
    EXPECT_EQ(together.end_state, apart.end_state) << each.name;
    EXPECT_EQ(together.runtime_calls, apart.runtime_calls) << each.name;
    EXPECT_THAT(together.switches, IsEmpty()) << each.name;
    EXPECT_GT(together.decisions, 20U) << each.name;
  }
}

TEST(SideBySide, TheSwitchesOfARunMakeItAgain) {
  Executor executor(make_production_system);
  Executor perturbed(make_production_system, perturbation_numbered(3));
  std::uint64_t switched = 0;
  for (const Scenario& each : scenarios_together()) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Trace trace = scenario(each.name);
      RandomStrategy random({.seed = seed});
      const RunResult first = executor.run(trace, by(random));
      EXPECT_THAT(broken(first), IsEmpty()) << each.name << " " << seed;
      if (first.switches.empty()) continue;
      switched += first.switches.size();
      trace.switches = first.switches;
      const Result<Trace> read = read_trace(write_trace(trace), "here");
      ASSERT_TRUE(read) << to_string(read.error());
      ASSERT_EQ(*read, trace);
      for (Executor* again : {&executor, &perturbed}) {
        const RunResult second = again->run(*read, as_recorded());
        EXPECT_EQ(second.log_hash, first.log_hash) << each.name << " " << seed;
        EXPECT_EQ(second.end_state, first.end_state) << each.name << " " << seed;
        EXPECT_EQ(second.switches, first.switches) << each.name << " " << seed;
      }
    }
  }
  EXPECT_GT(switched, 1'000U);
}

TEST(SideBySide, ASwitchThatComesToNothingIsNone) {
  Executor executor(make_production_system);
  Trace trace = scenario("put_beside_put");
  const std::uint32_t first = trace.steps[trace.steps.size() - 2].id;
  const std::uint32_t second = trace.steps.back().id;
  const RunResult plain = executor.run(trace, as_recorded());
  // Past its last decision, to a step that has ended, and to one of a later round.
  trace.switches = {{first, 10'000, second}, {second, 3, first}, {trace.steps[0].id, 0, second}};
  const RunResult result = executor.run(trace, as_recorded());
  EXPECT_EQ(result.end_state, plain.end_state);
  EXPECT_THAT(result.switches, IsEmpty());
}

TEST(SideBySide, TheStepsBeforeAJoinHaveEndedWhenItBegins) {
  Executor executor(make_production_system);
  Trace trace = scenario("lookup_beside_commit");
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    RandomStrategy random({.seed = seed, .switches = 1, .of = 2});
    RunOptions options = by(random);
    std::vector<std::string> ended;
    options.on_step = [&](const std::string& line) { ended.push_back(line.substr(0, line.find(' '))); };
    static_cast<void>(executor.run(trace, options));
    const std::size_t before = trace.steps.size() - 2;
    ASSERT_EQ(ended.size(), trace.steps.size());
    for (std::size_t i = 0; i < before; ++i) EXPECT_EQ(ended[i], std::to_string(trace.steps[i].id));
  }
}

TEST(SideBySide, WhoeverDiesInTheMiddleOfAStepTakesTheOthersAlong) {
  Executor executor(make_production_system);
  std::uint64_t deaths = 0;
  for (const std::string_view name : {"put_beside_put", "lookup_beside_commit", "evict_beside_resume"}) {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
      Trace trace = scenario(name);
      const std::uint32_t dying = trace.steps[trace.steps.size() - 1 - seed % 2].id;
      const Call at = std::array{Call::wait_local_segments_ready, Call::copy_batch, Call::remove}[seed % 3];
      trace.faults.push_back({dying, at, 0, FaultKind::death, 0, 0, false});
      RandomStrategy random({.seed = seed, .switches = 1, .of = 3});
      const RunResult first = executor.run(trace, by(random));
      EXPECT_THAT(broken(first), IsEmpty()) << name << " " << seed;
      EXPECT_EQ(first.steps + first.steps_skipped, trace.steps.size());
      deaths += first.faults.total;
      trace.switches = first.switches;
      if (trace.switches.empty()) continue;
      EXPECT_EQ(executor.run(trace, as_recorded()).log_hash, first.log_hash) << name << " " << seed;
    }
  }
  EXPECT_GT(deaths, 30U);
}

// A store whose sessions take two mutexes, every second one in the other order.
class Crosswise final : public ForwardingSystem {
 public:
  Crosswise(Ports& ports, std::unique_ptr<SystemUnderTest> inner)
      : ForwardingSystem(std::move(inner)), first_(ports.sync), second_(ports.sync) {}
  Result<IngestOutcome> chunk_finalized(SessionId session) override {
    SimSync::Mutex& outer = session % 2 == 0 ? first_ : second_;
    SimSync::Mutex& inner = session % 2 == 0 ? second_ : first_;
    const std::scoped_lock one(outer);
    const std::scoped_lock other(inner);
    return IngestOutcome{};
  }

 private:
  SimSync::Mutex first_;
  SimSync::Mutex second_;
};

TEST(SideBySide, SessionsThatWaitForOneAnotherAreTold) {
  Executor executor([](Ports& ports, ClaimListener& claims, const SystemOptions& options) {
    return std::make_unique<Crosswise>(ports, make_production_system(ports, claims, options));
  });
  Trace trace = scenario("put_beside_put");
  const std::uint32_t first = trace.steps[trace.steps.size() - 2].id;
  const std::uint32_t second = trace.steps.back().id;
  EXPECT_THAT(broken(executor.run(trace)), Not(Contains(HasSubstr("progress"))));
  trace.switches = {{first, 1, second}};
  const std::string one = "step " + std::to_string(first) + " (generate)";
  const std::string other = "step " + std::to_string(second) + " (generate)";
  EXPECT_THAT(broken(executor.run(trace)),
              Contains(AllOf(HasSubstr("progress: deadlock: " + one + " holds mutex "), HasSubstr("which " + other),
                             HasSubstr(other + " holds mutex "), HasSubstr("which " + one))));
}

// A store that asks the owner for its segments again and again.
class Patient final : public ForwardingSystem {
 public:
  Patient(Ports& ports, std::unique_ptr<SystemUnderTest> inner) : ForwardingSystem(std::move(inner)), ports_(ports) {}
  Result<IngestOutcome> chunk_finalized(SessionId /*session*/) override {
    ports_.clock.advance_by(kMinute * 30);
    return IngestOutcome{};
  }

 private:
  Ports& ports_;
};

TEST(SideBySide, AnOperationPastItsBoundInVirtualTimeIsTold) {
  Executor executor([](Ports& ports, ClaimListener& claims, const SystemOptions& options) {
    return std::make_unique<Patient>(ports, make_production_system(ports, claims, options));
  });
  EXPECT_THAT(broken(executor.run(scenario("cold_write"))), Contains(HasSubstr("progress: ")));
}

}  // namespace
}  // namespace holdfast::sim
