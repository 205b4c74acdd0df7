// The A/B/C/D gate passes what the acceptance scenario asks for, and nothing less.
#include "holdfast/sim/abcd_gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A's and B's frames are alike, C's and D's are; the first 25 are the same for all.
RunResult good_run() {
  RunResult run;
  for (const std::uint64_t fork : {0U, 0U, 1000U, 1000U}) {
    std::vector<std::uint64_t> frames;
    for (std::uint64_t i = 0; i < 37; ++i) frames.push_back(i < 25 ? i : fork + i);
    run.frame_hashes.push_back(frames);
  }
  run.session_chunks_hit = {0, 3, 2, 0};
  return run;
}

TEST(AbcdGate, PassesFullHitAndForkThatEqualTheirColdRuns) {
  const AbcdVerdict verdict = judge_abcd(good_run());
  EXPECT_THAT(verdict.failure, IsEmpty());
  EXPECT_THAT(verdict.table, HasSubstr("37 equal A's"));
  EXPECT_THAT(verdict.table, HasSubstr("37 equal D's"));
}

TEST(AbcdGate, FailsWhenASessionHitsMoreOrLessThanItMust) {
  for (std::size_t session = 0; session < 4; ++session) {
    RunResult run = good_run();
    run.session_chunks_hit[session] ^= 1;
    EXPECT_THAT(judge_abcd(run).failure, HasSubstr("chunks, not")) << session;
  }
}

TEST(AbcdGate, FailsWhenASingleFrameDiffers) {
  for (const std::size_t session : {1U, 2U}) {
    for (const std::size_t frame : {0U, 24U, 36U}) {
      RunResult run = good_run();
      run.frame_hashes[session][frame] ^= 1;
      EXPECT_THAT(judge_abcd(run).failure, HasSubstr("36 of ")) << session << " " << frame;
    }
  }
}

TEST(AbcdGate, FailsWhenFramesAreMissingEverywhere) {
  RunResult run = good_run();
  for (auto& frames : run.frame_hashes) frames.pop_back();
  EXPECT_THAT(judge_abcd(run).failure, HasSubstr("made 36 frames, not 37"));
}

TEST(AbcdGate, FailsWhenASessionIsMissing) {
  RunResult run = good_run();
  run.frame_hashes.pop_back();
  EXPECT_THAT(judge_abcd(run).failure, HasSubstr("not four"));
}

TEST(AbcdGate, LooksAwayFromTheSessionsOfPhaseTwo) {
  RunResult run = good_run();
  run.frame_hashes.emplace_back();
  run.session_chunks_hit.push_back(1);
  EXPECT_THAT(judge_abcd(run).failure, IsEmpty());
}

}  // namespace
}  // namespace holdfast::sim
