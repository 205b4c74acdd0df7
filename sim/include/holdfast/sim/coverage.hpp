// Coverage-guided traces: what reached something new is kept, and the next traces are made of it.
//
// New is a cell of the fault table, a mark, two marks in one run, or a cell and a mark in one run. What was reached
// before by a dearer trace is taken over by the cheaper one, so that the corpus stays small and quick.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "holdfast/sim/campaign.hpp"
#include "holdfast/sim/generator.hpp"
#include "holdfast/sim/trace_mutator.hpp"

namespace holdfast::sim {

struct CoverageFigures {
  std::uint64_t seeds = 0;  // run so far
  std::uint64_t corpus = 0;
  std::uint64_t cells = 0;
  std::uint64_t marks = 0;
  std::uint64_t pairs = 0;
  friend bool operator==(const CoverageFigures&, const CoverageFigures&) = default;
};

class CoverageCorpus {
 public:
  explicit CoverageCorpus(std::size_t entries_max = 4096) : entries_max_(entries_max) {}

  // Keeps it when it reached something new or at less cost. `run` has its calls. Tells whether something was new.
  bool offer(std::shared_ptr<const Trace> trace, const RunResult& run);

  // The trace of a seed: a mutant of what was kept so far, or, for some seeds and as long as nothing was, what
  // `profile` makes of it.
  [[nodiscard]] Trace make(std::uint64_t seed, const Profile& profile) const;

  // `seeds` is left 0.
  [[nodiscard]] CoverageFigures figures() const;

 private:
  struct Entry {
    RanTrace ran;
    std::uint64_t cost = 0;   // runtime calls
    std::uint64_t owned = 0;  // features of which it is the cheapest
  };
  static constexpr std::size_t kMarksAt = kLegalCellCount;
  static constexpr std::size_t kCellPairsAt = kMarksAt + kMarkCount;
  static constexpr std::size_t kMarkPairsAt = kCellPairsAt + kLegalCellCount * kMarkCount;
  static constexpr std::size_t kFeatureCount = kMarkPairsAt + kMarkCount * kMarkCount;

  [[nodiscard]] const RanTrace& pick(Rng& rng) const;
  // Of a cell that was not reached, one that was: of the same call, and in the same state where there is one.
  [[nodiscard]] std::optional<std::size_t> beside(std::size_t cell, Rng& rng) const;

  std::size_t entries_max_;
  std::map<std::uint64_t, Entry> entries_;  // by the order in which they came
  std::uint64_t next_id_ = 1;
  std::vector<std::uint64_t> owners_ = std::vector<std::uint64_t>(kFeatureCount);  // entry ids; 0: not reached
  std::vector<std::size_t> reached_;                                               // cells and marks
  std::vector<std::size_t> wanted_ = all_cells();                                  // cells not reached
  std::uint64_t pairs_ = 0;
  static std::vector<std::size_t> all_cells();
};

struct CoverageOptions {
  CampaignOptions campaign;
  std::uint64_t generation_seeds = 256;  // traces that are made of one and the same corpus
};

struct CoverageResult {
  CampaignResult campaign;
  std::vector<CoverageFigures> over_time;  // as seeds double, and at the end
  // Of the first seeds that failed; later failures have none.
  std::map<std::uint64_t, std::shared_ptr<const Trace>> failed;
};

// As run_campaign, generation by generation: the traces of one depend on the seeds and on those before, so that the
// result does not depend on the number of jobs. A seed means nothing without all before it.
Result<CoverageResult> run_coverage(const CoverageOptions& options, const SystemFactory& factory,
                                    const Profile& profile, const ProgressSink& progress = {});

}  // namespace holdfast::sim
