#include "lanes.hpp"

#include <algorithm>

namespace holdfast::sim {

std::uint32_t lane_of(const Trace& trace, const Step& step) {
  switch (step.kind) {
    case StepKind::close:
    case StepKind::generate:
    case StepKind::resume:
    case StepKind::hold:
    case StepKind::evict:
      return step.of;
    case StepKind::unhold: {
      const auto hold = std::ranges::find(trace.steps, step.of, &Step::id);
      return hold == trace.steps.end() ? step.id : hold->of;
    }
    case StepKind::open:
    case StepKind::make_room:
    case StepKind::warm_up:
    case StepKind::pump:
    case StepKind::snapshot:
    case StepKind::restart:
    case StepKind::store_evict:
    case StepKind::owner_restart:
    case StepKind::pass_time:
      break;
  }
  return step.id;
}

}  // namespace holdfast::sim
