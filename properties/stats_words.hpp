// Counters and timings in words, so that a test names what it expects and nothing else may be there.
#pragma once

#include <fmt/format.h>

#include <ostream>
#include <string>
#include <vector>

#include "holdfast/core/stats.hpp"

namespace holdfast {

// "put_start 2", or "put_start 2, 1 failed, 3 s": of each stage that an operation came to, in order.
inline std::vector<std::string> stages_in(const Stats& stats) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < kStageCount; ++i) {
    const StageStats& stage = stats.stages[i];
    if (stage == StageStats{}) continue;
    std::string text = fmt::format("{} {}", name_of(static_cast<Stage>(i)), stage.operations);
    if (stage.failures > 0) text += fmt::format(", {} failed", stage.failures);
    if (stage.time_ns > 0) text += fmt::format(", {} s", static_cast<double>(stage.time_ns) / kSecond);
    words.push_back(text);
  }
  return words;
}

// "puts_stored 2": of each counter that is not 0, in order.
inline std::vector<std::string> counts_in(const Stats& stats) {
  std::vector<std::string> words;
  for (const Counter& counter : counters()) {
    if (stats.*counter.value > 0) words.push_back(fmt::format("{} {}", counter.name, stats.*counter.value));
  }
  return words;
}

inline void PrintTo(const StageStats& stage, std::ostream* out) {
  *out << fmt::format("{} operations, {} failed, {} ns", stage.operations, stage.failures, stage.time_ns);
}
inline void PrintTo(const TransferStats& transfers, std::ostream* out) {
  *out << fmt::format("{} operations, {} bytes, {} ns", transfers.operations, transfers.bytes, transfers.time_ns);
}
inline void PrintTo(const ListLength& length, std::ostream* out) {
  *out << fmt::format("{} now, {} at most", length.now, length.peak);
}
inline void PrintTo(const Stats& stats, std::ostream* out) {
  *out << fmt::format("{}; {}", fmt::join(stages_in(stats), ", "), fmt::join(counts_in(stats), ", "));
}

}  // namespace holdfast
