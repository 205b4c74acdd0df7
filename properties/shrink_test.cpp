// Shrinking: candidates are valid and lead to an end; what is left fails as before and can lose nothing more.
#include "holdfast/sim/shrink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "holdfast/sim/generator.hpp"
#include "holdfast/sim/shrink_failure.hpp"
#include "holdfast/sim/trace_builder.hpp"
#include "troubled_system.hpp"

namespace holdfast::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr Planted kBreaks{Trouble::breaks_promise, Trouble::none};

Trace generated(std::uint64_t seed, std::string_view profile = "default") {
  return generate(seed, *profile_named(profile));
}

// The first trace of the generator's that fails with the bug.
Trace failing_trace(const Planted& planted) {
  Executor executor(system_with(planted));
  for (std::uint64_t seed = 1;; ++seed) {
    Trace trace = generated(seed);
    const RunResult result = executor.run(trace);
    const bool at_evict = !result.violations.empty() && result.violations.front().culprits.starts_with("evict");
    if (at_evict) return trace;
  }
}

// Fails as `trace` does with the bug, judged in this process.
class FailsAlike {
 public:
  FailsAlike(const Planted& planted, const Trace& trace) : executor_(system_with(planted)) {
    target_ = target_of(executor_.run(trace).violations.at(0));
  }
  bool operator()(const Trace& candidate) {
    return find_target(executor_.run(candidate).violations, target_) != nullptr;
  }

 private:
  Executor executor_;
  FailureTarget target_;
};

Trace without_step(const Trace& trace, std::set<std::uint32_t> ids) {
  Trace less = trace;
  const auto goes = [&](std::uint32_t id) { return ids.contains(id); };
  std::erase_if(less.steps, [&](const Step& step) { return goes(step.id); });
  std::erase_if(less.faults, [&](const FaultPoint& fault) { return goes(fault.step); });
  std::erase_if(less.choices, [&](const Choice& choice) { return goes(choice.step); });
  return less;
}

// Everything that "1-minimal" speaks of, made by itself.
std::vector<Trace> single_removals(const Trace& trace) {
  std::vector<Trace> all;
  for (const Step& step : trace.steps) {
    all.push_back(without_step(trace, {step.id}));
    if (step.kind != StepKind::open) continue;
    std::set<std::uint32_t> session{step.id};
    for (const Step& other : trace.steps) {
      if (other.of != 0 && session.contains(other.of)) session.insert(other.id);
    }
    all.push_back(without_step(trace, session));
    if (step.actions.size() < 2) continue;
    all.push_back(trace);
    const auto at = std::ranges::find(all.back().steps, step.id, &Step::id);
    at->actions.pop_back();
  }
  for (std::size_t i = 0; i < trace.faults.size(); ++i) {
    all.push_back(trace);
    all.back().faults.erase(all.back().faults.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (std::size_t i = 0; i < trace.choices.size(); ++i) {
    all.push_back(trace);
    all.back().choices.erase(all.back().choices.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return all;
}

Geometry small_geometry() {
  Geometry geometry;
  geometry.ring_frames = 2;
  return geometry;
}

// Fails with the planted bugs at its evict and at its snapshot; its pump is for nothing.
Trace small_trace() {
  TraceBuilder build("small");
  build.geometry(small_geometry());
  build.generate(build.open({.world = 0, .geometry = 0, .actions = {"0", "1"}}));
  build.pump();
  const auto reader = build.open({.world = 0, .geometry = 0, .actions = {"0"}});
  build.resume(reader);
  build.evict(reader, 0);
  build.snapshot();
  return build.finish();
}

TEST(Candidates, AreValidAndSmaller) {
  for (const Profile& profile : profiles()) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      const Trace trace = generate(seed, profile);
      Candidates walk = candidates(trace);
      std::size_t count = 0;
      while (const auto candidate = walk.next()) {
        ++count;
        const Status valid = validate_trace(*candidate);
        ASSERT_TRUE(valid) << to_string(valid.error());
        ASSERT_TRUE(is_smaller(*candidate, trace));
        ASSERT_FALSE(is_smaller(trace, *candidate));
      }
      EXPECT_GT(count, trace.steps.size() + trace.faults.size() + trace.choices.size());
    }
  }
}

TEST(Candidates, HoldEverySingleRemoval) {
  const Trace trace = generated(5);
  std::vector<Trace> all;
  Candidates walk = candidates(trace);
  while (auto candidate = walk.next()) all.push_back(std::move(*candidate));
  for (const Trace& removed : single_removals(trace)) EXPECT_NE(std::ranges::find(all, removed), all.end());
}

TEST(Candidates, BeginWithTheBoldest) {
  const Trace trace = generated(5);
  const auto first = candidates(trace).next();
  ASSERT_TRUE(first);
  EXPECT_LE(first->steps.size(), trace.steps.size() / 2);
}

TEST(Candidates, AreTheSameForTheSameTrace) {
  Candidates one = candidates(generated(5));
  Candidates other = candidates(generated(5));
  for (auto candidate = one.next(); candidate; candidate = one.next()) ASSERT_EQ(other.next(), candidate);
  EXPECT_FALSE(other.next());
}

// Whatever is kept: each step of the way is smaller in a well-founded order.
RC_GTEST_PROP(Shrink, EndsWhateverIsKept, ()) {
  const Trace trace = generated(*rc::gen::inRange<std::uint64_t>(1, 1'000'000));
  const auto one_in = *rc::gen::inRange<std::uint32_t>(1, 5);
  std::uint32_t asked = 0;
  const Shrunk shrunk =
      shrink(trace, [&](const Trace&) { return ++asked % one_in == 0; }, {.now_ns = [] { return 0; }});
  RC_ASSERT(shrunk.one_minimal);
  if (one_in == 1) RC_ASSERT(shrunk.trace.steps.empty());
}

TEST(Shrink, LeavesTheFewStepsThatTheBugNeeds) {
  const Trace trace = failing_trace(kBreaks);
  ASSERT_GT(trace.steps.size(), 20U);
  FailsAlike fails(kBreaks, trace);
  const Shrunk shrunk = shrink(trace, std::ref(fails));
  std::vector<StepKind> kinds;
  for (const Step& step : shrunk.trace.steps) kinds.push_back(step.kind);
  EXPECT_THAT(kinds, ::testing::ElementsAre(StepKind::open, StepKind::generate, StepKind::open, StepKind::resume,
                                            StepKind::evict));
  EXPECT_THAT(shrunk.trace.faults, SizeIs(0));
  EXPECT_THAT(shrunk.trace.choices, SizeIs(0));
  EXPECT_THAT(shrunk.trace.geometries, SizeIs(1));
  EXPECT_EQ(shrunk.trace.geometries[0].n_layers, 1U);
  EXPECT_TRUE(shrunk.trace.geometries[0].full_length);
}

TEST(Shrink, IsOneMinimalByEverySingleRemoval) {
  const Trace trace = failing_trace(kBreaks);
  FailsAlike fails(kBreaks, trace);
  const Shrunk shrunk = shrink(trace, std::ref(fails));
  EXPECT_TRUE(shrunk.one_minimal);
  EXPECT_TRUE(fails(shrunk.trace));
  for (const Trace& removed : single_removals(shrunk.trace)) EXPECT_FALSE(validate_trace(removed) && fails(removed));
}

TEST(Shrink, GivesTheSameResultEachTime) {
  const Trace trace = failing_trace(kBreaks);
  FailsAlike one(kBreaks, trace);
  FailsAlike other(kBreaks, trace);
  const Shrunk first = shrink(trace, std::ref(one));
  const Shrunk second = shrink(trace, std::ref(other));
  EXPECT_EQ(first.trace, second.trace);
  EXPECT_EQ(first.tried, second.tried);
}

TEST(Shrink, EndsWhenTheTimeIsOver) {
  const Trace trace = failing_trace(kBreaks);
  FailsAlike fails(kBreaks, trace);
  Nanos now_ns = 0;
  std::uint64_t runs = 0;
  const auto slow = [&](const Trace& candidate) {
    now_ns += kSecond;
    ++runs;
    return fails(candidate);
  };
  const Shrunk shrunk = shrink(trace, slow, {.time_budget_ns = 20 * kSecond, .now_ns = [&] { return now_ns; }});
  EXPECT_EQ(runs, 20U);
  EXPECT_FALSE(shrunk.one_minimal);
  EXPECT_TRUE(fails(shrunk.trace));
  EXPECT_LT(shrunk.trace.steps.size(), trace.steps.size());
}

TEST(ShrinkFailure, ATraceThatHoldsIsNoFailure) {
  const auto shrunk = shrink_failure(small_trace(), make_production_system, {});
  ASSERT_TRUE(shrunk);
  EXPECT_FALSE(shrunk->failed);
}

TEST(ShrinkFailure, KeepsTheInvariantAndItsCulprits) {
  // The snapshot breaks the same invariant, by a claim of the other kind, and takes less.
  const auto shrunk =
      shrink_failure(small_trace(), system_with({Trouble::breaks_promise, Trouble::breaks_promise}), {});
  ASSERT_TRUE(shrunk) << to_string(shrunk.error());
  ASSERT_TRUE(shrunk->failed);
  EXPECT_TRUE(shrunk->one_minimal);
  EXPECT_THAT(shrunk->trace.steps, SizeIs(5));
  ASSERT_TRUE(shrunk->violation);
  EXPECT_EQ(shrunk->violation->invariant, Invariant::ready_after_commit);
  EXPECT_THAT(shrunk->violation->culprits, HasSubstr("evict: kv claim"));
}

TEST(ShrinkFailure, ShrinksACrashToOneWithTheSameLastWords) {
  const auto shrunk = shrink_failure(small_trace(), system_with({Trouble::aborts, Trouble::aborts}), {});
  ASSERT_TRUE(shrunk) << to_string(shrunk.error());
  EXPECT_EQ(shrunk->target.kind, FailureKind::crash);
  EXPECT_TRUE(shrunk->one_minimal);
  EXPECT_THAT(shrunk->trace.steps, SizeIs(5));
  EXPECT_THAT(shrunk->message, HasSubstr("signal 6"));
  EXPECT_THAT(shrunk->message, HasSubstr("evicted after a resume"));
}

TEST(ShrinkFailure, ShrinksAHang) {
  ShrinkOptions options;
  options.time_budget_ns = 10 * kMinute;
  options.hang_limit_ns = 200 * kMillisecond;
  const auto shrunk = shrink_failure(small_trace(), system_with({Trouble::hangs, Trouble::none}), options);
  ASSERT_TRUE(shrunk) << to_string(shrunk.error());
  EXPECT_EQ(shrunk->target.kind, FailureKind::hang);
  EXPECT_TRUE(shrunk->one_minimal);
  EXPECT_THAT(shrunk->trace.steps, SizeIs(5));
}

// A candidate that takes the process along is not the failure that is being shrunk.
TEST(ShrinkFailure, GoesOnBehindACandidateThatCrashes) {
  TraceBuilder build("crashes when its generate step is gone");
  build.geometry(small_geometry());
  build.generate(build.open({.world = 0, .geometry = 0, .actions = {"0"}}));
  const auto reader = build.open({.world = 0, .geometry = 0, .actions = {"0"}});
  build.resume(reader);
  build.evict(reader, 0);
  build.pump();
  const Trace trace = build.finish();
  // Aborts when the trace's resume found nothing, as it does once the generate step is gone. The drain has its own.
  const SystemFactory fragile = [](Ports& ports, ClaimListener& listener, const SystemOptions& options) {
    class Fragile final : public ForwardingSystem {
     public:
      using ForwardingSystem::ForwardingSystem;
      Result<ResumeOutcome> resume(SessionId id) override {
        auto outcome = ForwardingSystem::resume(id);
        constexpr SessionId kOfTheTrace = 100;
        if (id < kOfTheTrace && outcome && outcome->matched_chunks == 0) std::abort();
        return outcome;
      }
    };
    return std::make_unique<Fragile>(
        std::make_unique<EvictionTrouble>(ports, listener, options, Trouble::breaks_promise, Trouble::none));
  };
  const auto around = shrink_failure(trace, fragile, {});
  ASSERT_TRUE(around) << to_string(around.error());
  EXPECT_EQ(around->target.kind, FailureKind::violation);
  EXPECT_TRUE(around->one_minimal);
  EXPECT_THAT(around->trace.steps, SizeIs(5));
}

TEST(ShrinkFailure, TakesTheInvariantThatItIsAskedFor) {
  ShrinkOptions options;
  options.invariant = Invariant::exact_bytes;
  const auto shrunk = shrink_failure(small_trace(), system_with(kBreaks), options);
  ASSERT_TRUE(shrunk);
  EXPECT_FALSE(shrunk->failed);
}

}  // namespace
}  // namespace holdfast::sim
