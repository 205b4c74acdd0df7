#include "holdfast/sim/run_context.hpp"

#include <array>

#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

struct NamedMoment {
  std::string_view name;  // in the log
  MomentKind kind;
};
// Faults tell of themselves: the injector knows more of them than the log has.
constexpr std::array kLoggedMoments{
    NamedMoment{"step", MomentKind::step},       NamedMoment{"step end", MomentKind::step_end},
    NamedMoment{"begin", MomentKind::operation}, NamedMoment{"end", MomentKind::operation_end},
    NamedMoment{"turn", MomentKind::turn},       NamedMoment{"drain", MomentKind::drain},
    NamedMoment{"claim", MomentKind::claim},     NamedMoment{"withdrawal", MomentKind::withdrawal},
};

}  // namespace

void RunContext::violate(Invariant invariant, std::string_view call, std::string message, std::string_view culprits,
                         std::vector<Thing> who) {
  const std::string kinds =
      std::string(step == kDrainStep ? std::string_view("drain") : name_of(step_kind)) + ": " + kinds_in(culprits);
  if (on_moment && verdicts.enabled(invariant)) {
    Moment moment{.kind = MomentKind::violated, .culprits = std::move(who), .text = message};
    if (const auto named = call_named(call)) {
      moment.of_call = true;
      moment.call = *named;
    }
    tell(std::move(moment));
  }
  verdicts.violated({invariant, step, std::string(call), std::move(message), clock.now_ns(), kinds});
}

void RunContext::watch(MomentSink sink) {
  on_moment = std::move(sink);
  about = {};
  if (!on_moment) {
    log.watch({});
    return;
  }
  log.watch([this](Nanos, const Call* call, std::string_view what, std::int32_t code, std::string text) {
    Moment moment{.kind = MomentKind::call, .code = code, .thing = std::exchange(about, {})};
    if (call != nullptr) {
      moment.of_call = true;
      moment.call = *call;
    } else if (what == "fault") {
      return;
    } else {
      const auto known = std::ranges::find(kLoggedMoments, what, &NamedMoment::name);
      moment.kind = known == kLoggedMoments.end() ? MomentKind::happening : known->kind;
      if (moment.kind == MomentKind::happening) text = std::string(what) + (text.empty() ? "" : ": ") + text;
    }
    moment.text = std::move(text);
    tell(std::move(moment));
  });
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
  about = {};
  begin_step(0, StepKind{});
}

}  // namespace holdfast::sim
