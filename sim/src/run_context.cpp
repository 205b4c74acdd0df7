#include "holdfast/sim/run_context.hpp"

#include "holdfast/sim/text.hpp"

namespace holdfast::sim {

void RunContext::violate(Invariant invariant, std::string_view call, std::string message, std::string_view culprits) {
  const std::string kinds =
      std::string(step == kDrainStep ? std::string_view("drain") : name_of(step_kind)) + ": " + kinds_in(culprits);
  verdicts.violated({invariant, step, std::string(call), std::move(message), clock.now_ns(), kinds});
}

void RunContext::reset() {
  log.reset();
  verdicts.reset();
  marks = {};
  faults = {};
  runtime_calls = 0;
  calls.clear();
  faults_on = true;
  injected_ns = 0;
  host = 0;
  begin_step(0, StepKind{});
}

}  // namespace holdfast::sim
