// The sweep: every call of a trace fails in every legal way, one at a time, or two in every pair.
//
// The calls of a trace are those of a run of it; with a first fault they may be others, so a pair's second fault is
// taken from the run with the first. Each case is a trace with a number, from 1: the same in any process, and whatever
// the number of jobs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "holdfast/sim/calls.hpp"
#include "holdfast/sim/campaign.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

// One way for a call to fail: a legal fault, and how it plays.
struct Way {
  FaultKind kind{};
  std::int32_t code = 0;
  std::uint64_t arg = 0;
  bool persistent = false;
  friend bool operator==(const Way&, const Way&) = default;
};
// Every legal fault of the call with each argument that matters: delays short of and past each bound, seeds enough for
// each fate of a key, whole and half ranges, torn lengths. Each fault once more as persistent.
std::span<const Way> ways_of(Call call);
// Of each legal fault the first of those, for pairs.
std::span<const Way> plain_ways_of(Call call);

struct SweepOptions {
  std::uint32_t depth = 1;        // 2: pairs too
  std::uint64_t pairs_max = 0;    // a trace with more of them has none; 0 = no bound
  std::uint32_t jobs = 1;         // for the runs that list the calls
  Nanos hang_limit_ns = kMinute;  // likewise
};

struct SweepCase {
  std::size_t trace = 0;           // index into the swept ones
  std::vector<FaultPoint> faults;  // none: the trace as it is; then one, or two
};

// What to run: the cases of some traces, in order. Of each trace first itself, then every single fault, then pairs.
class SweepPlan {
 public:
  // Runs each trace to list its calls, and for pairs each with a first fault. What crashes, hangs or breaks a promise
  // there is a case all the same, and shows when it is run. An error is the harness's.
  static Result<SweepPlan> make(std::vector<Trace> traces, const SweepOptions& options, const SystemFactory& factory);

  [[nodiscard]] std::uint64_t cases() const { return begins_.back(); }
  // `number` is 1 to cases().
  [[nodiscard]] SweepCase at(std::uint64_t number) const;
  [[nodiscard]] std::shared_ptr<const Trace> trace(std::uint64_t number) const;

  [[nodiscard]] std::size_t traces() const { return swept_.size(); }
  [[nodiscard]] const std::string& name(std::size_t trace) const { return swept_[trace].trace.name; }
  [[nodiscard]] std::uint64_t pairs(std::size_t trace) const { return swept_[trace].pairs(); }
  // Traces that have more pairs than allowed.
  [[nodiscard]] bool too_long_for_pairs(std::size_t trace) const { return swept_[trace].too_long; }

 private:
  struct First {
    FaultPoint fault;
    std::vector<CallRecord> calls;  // from the fault's own call on, of the run with it
    std::uint64_t begin = 0;        // of its pairs among those of the trace
  };
  struct Swept {
    Trace trace;
    std::vector<FaultPoint> singles;
    std::vector<First> firsts;
    std::uint64_t pairs_end = 0;
    bool too_long = false;
    [[nodiscard]] std::uint64_t pairs() const { return pairs_end; }
  };

  Status list_singles(const SweepOptions& options, const SystemFactory& factory);
  Status list_pairs(const SweepOptions& options, const SystemFactory& factory);

  std::vector<Swept> swept_;
  std::vector<std::uint64_t> begins_{0};  // of each trace's cases, counted from 0, and the end
};

// The trace with these faults; one that stands where a fault of its own would be takes its place.
Trace with_faults(const Trace& trace, std::span<const FaultPoint> faults);

struct SweepCounts {
  std::uint64_t cases = 0;
  std::uint64_t fired = 0;   // cases in which such a fault fired
  std::uint64_t failed = 0;  // cases that broke a promise, crashed or hung
};
// A call of a trace, by the kind of the fault, which of a pair is the second one.
struct SweepRow {
  std::size_t trace = 0;
  Call call{};
  std::array<SweepCounts, kFaultKindCount> kinds{};
};

// Counts what the cases came to.
class SweepTally {
 public:
  explicit SweepTally(const SweepPlan& plan);
  // For CampaignOptions::on_result; with `run.keep_calls`, so that the calls made are known.
  void add(const SeedResult& result);
  // The cases that gave no result, and all that failed.
  void add_failures(std::span<const SeedFailure> failures);

  // Rows with cases, by trace and call.
  [[nodiscard]] std::vector<SweepRow> rows() const;
  [[nodiscard]] bool was_called(Call call) const { return called_[static_cast<std::size_t>(call)]; }
  [[nodiscard]] std::uint64_t fired() const { return fired_; }

 private:
  SweepCounts* counts_of(const SweepCase& at);

  const SweepPlan& plan_;
  std::vector<std::array<std::array<SweepCounts, kFaultKindCount>, kCallCount>> counts_;  // by trace
  std::array<bool, kCallCount> called_{};
  std::uint64_t fired_ = 0;
};

// What a sweep came to, for people and reports.
struct SweepFigures {
  std::uint32_t depth = 1;
  bool complete = false;  // every scenario and every case: what no case reached, none can
  std::uint64_t cases = 0;
  std::uint64_t pairs = 0;
  std::uint64_t fired = 0;
  std::vector<std::string> scenarios;
  std::vector<std::string> without_pairs;  // at depth 2: too long
  std::vector<SweepRow> rows;
  std::uint64_t cells_reached = 0;    // of legal_cells()
  std::vector<LegalCell> gaps;        // not reached, of calls that the store made
  std::vector<LegalCell> never_made;  // of calls that it never made, or never so
};
// Of the legal cells: those reached, those not, and those of calls that were never made.
void judge_cells(const FaultTally& faults, const SweepTally& tally, SweepFigures& figures);
// "put", "get_transfer (shorter prefix)": the calls of those never made.
std::vector<std::string> names_never_made(const SweepFigures& figures);
// Scenario by call by kind, and then call by kind: the number of cases, how many failed, and the verdict.
std::string sweep_tables(const SweepFigures& figures);
// "get_start lost 7000 (not routed)"
std::string describe(const LegalCell& cell);

}  // namespace holdfast::sim
