// Phase two always runs: after whatever strikes the last call of the last step, everything drains and a clean session
// is stored and resumed.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/sim/executor.hpp"
#include "holdfast/sim/trace_builder.hpp"

namespace holdfast::sim {
namespace {

constexpr std::int32_t kIllegalAddress = 700;

// A session is stored and a snapshot taken; the last step is one of another session, or the store's own.
enum class LastStep : std::uint8_t { generate, resume, evict, warm_up, pump, snapshot, restart };
constexpr LastStep kLastSteps[] = {LastStep::generate, LastStep::resume,   LastStep::evict,  LastStep::warm_up,
                                   LastStep::pump,     LastStep::snapshot, LastStep::restart};

Trace trace_ending_with(LastStep last) {
  TraceBuilder builder("a last step");
  Geometry geometry;
  geometry.n_layers = 2;
  geometry.ring_frames = 4;
  geometry.latent_bytes = 256;
  geometry.timesteps = 3;
  const std::uint32_t g = builder.geometry(geometry);
  const auto first = builder.open({.world = 1, .geometry = g, .actions = {"0", "1"}});
  builder.generate(first);
  builder.generate(first);
  builder.snapshot();
  const auto second = builder.open({.world = 1, .geometry = g, .actions = {"0", "1", "2"}});
  switch (last) {
    case LastStep::generate:
      builder.resume(second);
      builder.generate(second);
      break;
    case LastStep::resume:
      builder.resume(second);
      break;
    case LastStep::evict:
      builder.evict(first, 1);
      break;
    case LastStep::warm_up:
      builder.owner_restart();
      builder.warm_up();
      break;
    case LastStep::pump:
      builder.pass_time(kMinute);
      builder.pump();
      break;
    case LastStep::snapshot:
      builder.snapshot();
      break;
    case LastStep::restart:
      builder.restart();
      break;
  }
  return builder.finish();
}

class Drain : public testing::Test {
 protected:
  RunResult run(const Trace& trace) {
    RunOptions options;
    options.keep_log = true;
    options.keep_calls = true;
    return executor_.run(trace, options);
  }

  // The calls of the last step when nothing goes wrong.
  std::vector<CallRecord> calls_of_last_step(const Trace& trace) {
    std::vector<CallRecord> calls;
    for (const CallRecord& call : run(trace).calls) {
      if (call.step == trace.steps.back().id) calls.push_back(call);
    }
    return calls;
  }

  // How many of the places where the fault is legal were struck; each ended as it must.
  std::size_t strike_everywhere(FaultKind kind, std::int32_t code) {
    std::size_t struck = 0;
    for (const LastStep last : kLastSteps) {
      const Trace plain = trace_ending_with(last);
      for (const CallRecord& call : calls_of_last_step(plain)) {
        if (!is_legal(call.call, kind, code)) continue;
        Trace trace = plain;
        trace.faults.push_back({plain.steps.back().id, call.call, call.nth, kind, code, 0, false});
        SCOPED_TRACE(std::string(name_of(call.call)) + " " + std::to_string(call.nth) + " of " +
                     std::string(name_of(plain.steps.back().kind)));
        const RunResult result = run(trace);
        EXPECT_EQ(result.faults.total, 1U);
        expect_drained(result);
        ++struck;
      }
    }
    return struck;
  }

  static bool has_event(const RunResult& result, const std::string& event) {
    return std::any_of(result.log.begin(), result.log.end(),
                       [&](const std::string& line) { return line.find(" ms  " + event) != std::string::npos; });
  }

  static void expect_drained(const RunResult& result) {
    for (const Violation& violation : result.violations) ADD_FAILURE() << violation.message;
    EXPECT_TRUE(has_event(result, "drain"));
    EXPECT_GT(result.checked[static_cast<std::size_t>(Invariant::quiescent_baseline)], 0U);
    // The clean writer, then the clean reader, which finds both chunks.
    ASSERT_GE(result.session_chunks_hit.size(), 2U);
    EXPECT_EQ(result.session_chunks_hit.back(), 2U);
  }

  Executor executor_{make_production_system};
};

TEST_F(Drain, RunsAfterEveryLastStep) {
  for (const LastStep last : kLastSteps) expect_drained(run(trace_ending_with(last)));
}

TEST_F(Drain, RunsOfATraceWithoutSteps) {
  Trace trace;
  trace.geometries.resize(1);
  expect_drained(run(trace));
}

TEST_F(Drain, RunsAfterADeathAtAnyCallOfTheLastStep) { EXPECT_GT(strike_everywhere(FaultKind::death, 0), 30U); }

TEST_F(Drain, RunsAfterAnOwnersRestartAtAnyCallOfTheLastStep) { EXPECT_GT(strike_everywhere(FaultKind::gone, 0), 30U); }

TEST_F(Drain, RunsAfterTheLossOfTheDeviceContextAtAnyCallOfTheLastStep) {
  EXPECT_GT(strike_everywhere(FaultKind::before, kIllegalAddress), 2U);
}

TEST_F(Drain, ADeadDeviceContextIsTornDownAndTheClientStartsAgain) {
  Trace trace = trace_ending_with(LastStep::resume);
  trace.faults.push_back(
      {trace.steps.back().id, Call::stream_synchronize, 0, FaultKind::before, kIllegalAddress, 0, false});
  const RunResult result = run(trace);
  ASSERT_EQ(result.faults.total, 1U);
  const auto at = [&](const std::string& event) {
    return std::find_if(result.log.begin(), result.log.end(),
                        [&](const std::string& line) { return line.find(" ms  " + event) != std::string::npos; });
  };
  ASSERT_NE(at("restart"), result.log.end());
  EXPECT_LT(at("drain"), at("restart"));
  expect_drained(result);
}

TEST_F(Drain, RunsAfterAnOwnersRestartAsTheLastStep) {
  Trace trace = trace_ending_with(LastStep::resume);
  Step step;
  step.id = trace.steps.back().id + 1;
  step.kind = StepKind::owner_restart;
  trace.steps.push_back(step);
  expect_drained(run(trace));
}

TEST_F(Drain, RunsAfterADeathAtEveryCallOfOneKindInTheLastStep) {
  Trace trace = trace_ending_with(LastStep::restart);
  trace.faults.push_back({trace.steps.back().id, Call::file_read, 0, FaultKind::death, 0, 0, true});
  const RunResult result = run(trace);
  EXPECT_GT(result.faults.total, 1U) << "its successors die too, until faults are over";
  expect_drained(result);
}

}  // namespace
}  // namespace holdfast::sim
