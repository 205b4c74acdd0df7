// A campaign: many seeds, run in child processes, so that a crash or a hang becomes the verdict of exactly one seed
// and the rest goes on.
//
// The result is that of running the seeds one by one in order: it does not depend on the number of jobs, nor on which
// worker ran what. Only `wall_ns`, `slowest`, `peak_rss_bytes` and where a time budget or an interruption cut it off
// vary.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/core/result.hpp"
#include "holdfast/core/time.hpp"
#include "holdfast/sim/arguments.hpp"
#include "holdfast/sim/executor.hpp"

namespace holdfast::sim {

// The trace of a seed: the same each time it is asked, in any process. Shared, because a workload's is large.
using TraceSource = std::function<std::shared_ptr<const Trace>(std::uint64_t seed)>;

struct SeedResult;
struct CampaignOptions {
  SeedRange seeds;
  std::uint32_t jobs = 1;                  // worker processes
  Nanos hang_limit_ns = kMinute;           // real time for one run of one seed
  Nanos time_budget_ns = 0;                // real time, after which no more seeds are begun; 0 = none
  Share recheck{1, 20};                    // share of the seeds that are run again, perturbed
  std::uint64_t recheck_perturbation = 1;  // see perturbation_numbered; in a fresh process, one more
  // The program, and its first words, that runs them again in a process of its own (see fresh_process.hpp): one that
  // has the same system and trace reader. Empty: they run again in the same process only.
  std::vector<std::string> fresh_program;
  std::uint64_t failed_seeds_max = 10;  // stop when so many have failed; 0 = never
  std::optional<Invariant> stop_at;     // stop when this one has been violated
  std::uint64_t perturbation = 0;       // of the first run
  RunOptions run;                       // of the first run; `on_step` is called in the worker
  bool keep_results = false;            // give back each seed's whole result
  // Called in the caller's own process, in order of seeds.
  std::function<void(const SeedResult&)> on_result;
};

// 0 changes nothing; every other number moves all that must not show.
Perturbation perturbation_numbered(std::uint64_t number);

enum class FailureKind : std::uint8_t {
  violation,   // a promise was broken
  crash,       // the process ended by a signal, by an exit, or by an exception
  hang,        // no end within the hang limit, or no end of runtime calls
  divergence,  // run again with another perturbation, it went another way: the harness, or the store, is not
               // deterministic
};
std::string_view name_of(FailureKind kind);

struct SeedFailure {
  std::uint64_t seed = 0;
  FailureKind kind{};
  std::vector<Violation> violations;  // of kind `violation`; else empty
  std::string message;                // of the other kinds
  bool has_trace = true;              // false: it failed while the trace was being made
};

struct SeedResult {
  std::uint64_t seed = 0;
  RunResult run;
  bool rechecked = false;
  std::string divergence;  // what differed when run again; empty = nothing
  std::uint64_t peak_rss_bytes = 0;
  Nanos wall_ns = 0;  // real time of the first run
};

// A case that took longer, or did more, than most others.
struct NotableCase {
  std::uint64_t seed = 0;
  Nanos wall_ns = 0;
  std::uint64_t runtime_calls = 0;
  std::uint64_t steps = 0;
  Nanos virtual_ns = 0;
};
inline constexpr std::size_t kNotableCasesMax = 5;

struct CampaignResult {
  std::uint64_t seeds_run = 0;
  std::uint64_t rechecked = 0;
  std::uint64_t diverged = 0;
  std::array<std::uint64_t, kInvariantCount> checked{};
  std::array<std::uint64_t, kInvariantCount> violated{};
  MarkCounts marks;
  FaultTally faults;
  std::uint64_t log_hash = 0;  // of all runs; a sum, so that those of shards add up
  std::uint64_t log_events = 0;
  std::uint64_t runtime_calls = 0;
  std::uint64_t steps = 0;
  std::uint64_t steps_skipped = 0;
  Nanos virtual_ns = 0;
  std::uint64_t chunks_hit = 0, chunks_generated = 0, evictions = 0;
  std::uint64_t bytes_to_host = 0, bytes_to_device = 0;
  Stats stats;
  std::uint64_t exempt_keys = 0;
  std::vector<SeedFailure> failures;  // in order of seeds; a seed may have a violation and a divergence
  std::vector<SeedResult> results;    // in order of seeds, when kept
  std::vector<NotableCase> slowest;   // in real time; at most kNotableCasesMax, most first
  std::vector<NotableCase> longest;   // in runtime calls; the same
  std::string stopped;                // why not all seeds were run; empty = they were
  bool interrupted = false;           // by a signal
  Nanos wall_ns = 0;
  std::uint64_t peak_rss_bytes = 0;  // of the largest worker
};

// What one seed adds to a campaign's result.
CampaignResult result_of(SeedResult seed, bool keep_result);
// Adds what a later part of the seeds came to.
void merge(CampaignResult& into, CampaignResult from);
// Why no more seeds are to be run; empty = there is no reason. `failed_seeds` are those of `result`.
std::string why_to_stop(const CampaignOptions& options, const CampaignResult& result, std::uint64_t failed_seeds);

struct CampaignProgress {
  std::uint64_t seeds_run = 0;
  std::uint64_t seeds_all = 0;
  std::uint64_t runtime_calls = 0;
  std::uint64_t failed_seeds = 0;
  Nanos elapsed_ns = 0;
  Nanos time_budget_ns = 0;
};
// Called several times a second, from the caller's own process.
using ProgressSink = std::function<void(const CampaignProgress&)>;

// An error means that the harness failed: no process or no memory could be had, or a worker died without a seed.
// SIGINT and SIGTERM end it after the seeds in progress. The caller has a single thread.
Result<CampaignResult> run_campaign(const CampaignOptions& options, const SystemFactory& factory,
                                    const TraceSource& source, const ProgressSink& progress = {});

}  // namespace holdfast::sim
