// What a failure's trace did, told in plain words and drawn: for whoever has two minutes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/sim/lane_chart.hpp"
#include "holdfast/sim/record_run.hpp"
#include "holdfast/sim/shrink_failure.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

struct FailureStory {
  std::uint64_t seed = 0;              // whose trace was run; another seed's when that one failed alike
  std::string trace_file;              // relative to the report; empty = none was written
  std::string timeline_file;           // the same
  std::vector<std::string> sentences;  // the first says what happened, the others how it came to that
  LaneChart chart;
  std::string trace;                   // as text
  std::uint64_t trace_bytes_more = 0;  // of it that were left out
};
inline constexpr std::uint32_t kStoryColumnsMax = 240;
inline constexpr std::size_t kStoryTraceBytesMax = 12'000;

// Of the first violation in `run` that is the target; of how it was broken off, for a crash or a hang.
FailureStory tell_story(const Trace& trace, const RecordedRun& run, const FailureTarget& target);

}  // namespace holdfast::sim
