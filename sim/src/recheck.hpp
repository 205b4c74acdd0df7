// Whether a trace does the same when it runs again: in the same process, and in a fresh one, both perturbed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "campaign_worker.hpp"
#include "fresh_runner.hpp"
#include "holdfast/sim/campaign.hpp"

namespace holdfast::sim {

class Recheck {
 public:
  // `enter` is told what is being done now. The other arguments outlive this.
  Recheck(const CampaignOptions& options, const SystemFactory& factory, std::function<void(WorkerPhase)> enter);

  struct Answer {
    std::string divergence;      // what differed, with the first event that did; empty = nothing
    bool needs_history = false;  // by itself the trace did not show it again
  };
  // `first` is what `executor` made of the trace.
  Answer run(const Trace& trace, const RunResult& first, Executor& executor);

 private:
  enum class Place : std::uint8_t { same_process, fresh_process };
  Answer explain(Place place, const Trace& trace, const RunResult& first, const RunResult& again, Executor& executor);
  [[nodiscard]] RunOptions options_of(bool keep_log) const;

  const CampaignOptions& options_;
  const SystemFactory& factory_;
  std::function<void(WorkerPhase)> enter_;
  std::unique_ptr<Executor> perturbed_;
  std::unique_ptr<FreshRunner> fresh_;
};

// Whether the fake device does what the real one did: call by call, and what it comes to.
class BesideFake {
 public:
  // As Recheck.
  BesideFake(const CampaignOptions& options, const SystemFactory& factory, std::function<void(WorkerPhase)> enter);

  // `real` is what `executor` made of the trace, its end state kept. What differed first; empty = nothing.
  std::string run(const Trace& trace, const RunResult& real, Executor& executor);

 private:
  [[nodiscard]] RunOptions options_of(bool keep_log) const;

  const CampaignOptions& options_;
  std::function<void(WorkerPhase)> enter_;
  Executor fake_;
};

}  // namespace holdfast::sim
