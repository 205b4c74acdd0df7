// What a campaign leaves behind of what failed: the traces as they were, the smallest that fail alike, and for each a
// timeline and, for the first of each kind, the story.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "holdfast/core/result.hpp"
#include "holdfast/sim/campaign.hpp"
#include "holdfast/sim/failure_story.hpp"
#include "holdfast/sim/report.hpp"
#include "holdfast/sim/shrink_failure.hpp"

namespace holdfast::sim {

struct FailureTracesOptions {
  std::string out;  // a directory with a directory `failures` in it
  TraceSource source;
  SystemFactory factory = make_production_system;
  std::vector<Invariant> disabled;
  Nanos hang_limit_ns = kMinute;
  Nanos shrink_budget_ns = 0;  // real time for all of them; 0 = none is shrunk
  std::function<void(std::uint64_t seed, const ShrinkProgress&)> progress;
};

struct FailureTraces {
  std::set<std::uint64_t> written;                 // seeds with failures/SEED.trace.json
  std::map<std::uint64_t, ShrunkTrace> shrunk;     // by seed: its own, or that of an earlier seed that failed alike
  std::map<std::uint64_t, std::string> timelines;  // by seed: failures/SEED.timeline.json
  // Of the first failure of each kind by itself, by the others too.
  std::map<std::uint64_t, std::shared_ptr<const FailureStory>> stories;
  std::vector<std::string> notes;  // why one was not shrunk
};

// Writes the originals first, those of the first failures of each kind among them; then shrinks these, a few, and
// writes each to failures/SEED.min.trace.json. What was written is run once more, the smaller trace where there is one,
// for failures/SEED.timeline.json.
Result<FailureTraces> write_failure_traces(const CampaignResult& result, const FailureTracesOptions& options);

// Names the trace as shrunk and writes it.
Status write_shrunk_trace(const std::string& file, const Trace& original, Trace shrunk);
// "17.trace.json" to "17.min.trace.json".
std::string shrunk_beside(const std::string& file);
// "shrinking seed 17: 12 of 100 steps, 1,204 tried, 0.50 s".
std::string progress_line(std::string_view what, const ShrinkProgress& now);

}  // namespace holdfast::sim
