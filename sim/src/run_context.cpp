#include "holdfast/sim/run_context.hpp"

namespace holdfast::sim {

void RunContext::reset() {
  log.reset();
  verdicts.reset();
  marks = {};
  faults = {};
  runtime_calls = 0;
  calls.clear();
  faults_on = true;
  begin_step(0, StepKind{});
}

}  // namespace holdfast::sim
