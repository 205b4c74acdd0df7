// RapidCheck's stateful runner over the same system and the same checks, as one would use it who has no simulator: a
// command is a step, with a fault or without, drawn where the model allows it. For the scoreboard of ci/mutants.
// Usage: holdfast_rapidcheck INVARIANT CASES SEED
// Prints "caught CASE" or "missed CASES"; the exit status is 0, or 2 for bad usage.
#include <rapidcheck.h>
#include <rapidcheck/state.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/check.hpp"
#include "holdfast/sim/executor.hpp"
#include "holdfast/sim/sweep.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint32_t kSessionChunks = 4;
constexpr std::uint32_t kFaultShare = 3;  // one command of so many has a fault
constexpr std::uint32_t kNthMax = 4;

struct Model {
  struct Session {
    std::uint32_t id = 0;
    std::uint32_t chunks = 0;
  };
  std::vector<Session> open;
  std::vector<std::uint32_t> holds;
  std::uint32_t next_id = 1;
};

// What the commands did, to be carried out as a whole.
struct Script {
  Trace trace;
};

std::uint64_t below(std::uint64_t limit) { return *rc::gen::inRange<std::uint64_t>(0, limit); }

class StepCommand : public rc::state::Command<Model, Script> {
 public:
  void apply(Model& model) const override {
    ++model.next_id;
    for (std::size_t i = 0; i < model.open.size(); ++i) {
      if (model.open[i].id != step_.of) continue;
      if (step_.kind == StepKind::generate) ++model.open[i].chunks;
      if (step_.kind == StepKind::close) model.open.erase(model.open.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (step_.kind == StepKind::open) model.open.push_back({model.next_id - 1, 0});
    if (step_.kind == StepKind::hold) model.holds.push_back(model.next_id - 1);
    if (step_.kind == StepKind::unhold) std::erase(model.holds, step_.of);
    if (step_.kind == StepKind::restart) model.open.clear(), model.holds.clear();
  }
  void run(const Model& model, Script& script) const override {
    Step step = step_;
    step.id = model.next_id;
    script.trace.steps.push_back(std::move(step));
    if (fault_) {
      script.trace.faults.push_back(*fault_);
      script.trace.faults.back().step = model.next_id;
    }
  }
  void show(std::ostream& out) const override { out << name_of(step_.kind); }

 protected:
  explicit StepCommand(StepKind kind) { step_.kind = kind; }

  void of_a_session(const Model& model) {
    RC_PRE(!model.open.empty());
    step_.of = model.open[below(model.open.size())].id;
  }
  void may_fail() {
    if (below(kFaultShare) != 0) return;
    const Call call = static_cast<Call>(below(kCallCount));
    RC_PRE(!ways_of(call).empty());
    const Way& way = ways_of(call)[below(ways_of(call).size())];
    fault_ = FaultPoint{.call = call,
                        .nth = static_cast<std::uint32_t>(below(kNthMax)),
                        .kind = way.kind,
                        .code = way.code,
                        .arg = way.arg,
                        .persistent = way.persistent};
  }

  Step step_;
  std::optional<FaultPoint> fault_;
};

class Open final : public StepCommand {
 public:
  explicit Open(const Model& /*model*/) : StepCommand(StepKind::open) {
    step_.world = 1;
    step_.geometry = step_.declared_geometry = static_cast<std::uint32_t>(below(2));
    for (std::uint32_t i = 0; i < kSessionChunks; ++i) step_.actions.push_back(std::to_string(below(2)));
  }
};

template <StepKind kKind>
class OfASession final : public StepCommand {
 public:
  explicit OfASession(const Model& model) : StepCommand(kKind) {
    of_a_session(model);
    if (kKind == StepKind::evict || kKind == StepKind::store_evict) {
      step_.depth = static_cast<std::uint32_t>(below(kSessionChunks));
    }
    if (kKind == StepKind::store_evict) step_.amount = below(2);
    may_fail();
  }
  void checkPreconditions(const Model& model) const override {
    for (const Model::Session& session : model.open) {
      if (session.id == step_.of) {
        RC_PRE(kKind != StepKind::generate || session.chunks < kSessionChunks);
        return;
      }
    }
    RC_PRE(false);
  }
};

class Unhold final : public StepCommand {
 public:
  explicit Unhold(const Model& model) : StepCommand(StepKind::unhold) {
    RC_PRE(!model.holds.empty());
    step_.of = model.holds[below(model.holds.size())];
  }
};

template <StepKind kKind>
class OfNobody final : public StepCommand {
 public:
  explicit OfNobody(const Model& /*model*/) : StepCommand(kKind) {
    if (kKind == StepKind::pass_time) step_.amount = below(2) == 0 ? below(2 * kSecond) : below(2 * kMinute);
    if (kKind == StepKind::make_room) step_.amount = below(64) * kSlotAlignment;
    may_fail();
  }
};

Trace empty_trace() {
  Trace trace;
  trace.name = "rapidcheck";
  trace.segment_bytes = 1 << 20;
  trace.grant_bytes = 1 << 18;
  trace.capacity_bytes = below(2) == 0 ? 0 : 48 * kSlotAlignment;
  trace.batches_in_flight = static_cast<std::uint32_t>(below(3));
  trace.copy_stream = below(2) == 0;
  Geometry rolling;
  rolling.n_layers = 2;
  rolling.frames_per_chunk = 2;
  rolling.ring_frames = 5;
  rolling.sink_frames = 1;
  rolling.full_length = false;
  rolling.kv_token_bytes = {64, 96};
  Geometry whole;
  whole.n_layers = 2;
  whole.ring_frames = kSessionChunks;
  whole.latent_bytes = 512;
  trace.geometries = {rolling, whole};
  return trace;
}

bool breaks(Executor& executor, const Trace& trace, Invariant invariant) {
  const Status valid = validate_trace(trace);
  check(valid.has_value(), "every command is a step that a trace may have");
  for (const Violation& violation : executor.run(trace).violations) {
    if (violation.invariant == invariant) return true;
  }
  return false;
}

void search(Invariant invariant) {
  Executor executor(make_production_system);
  std::uint64_t run = 0;
  bool caught = false;
  static_cast<void>(rc::check([&] {
    if (caught) return;
    ++run;
    Script script{empty_trace()};
    rc::state::check(Model{}, script,
                     rc::state::gen::execOneOfWithArgs<
                         Open, OfASession<StepKind::generate>, OfASession<StepKind::resume>,
                         OfASession<StepKind::close>, OfASession<StepKind::hold>, Unhold, OfASession<StepKind::evict>,
                         OfASession<StepKind::store_evict>, OfNobody<StepKind::make_room>, OfNobody<StepKind::warm_up>,
                         OfNobody<StepKind::pump>, OfNobody<StepKind::snapshot>, OfNobody<StepKind::restart>,
                         OfNobody<StepKind::owner_restart>, OfNobody<StepKind::pass_time>>());
    caught = breaks(executor, script.trace, invariant);
    RC_ASSERT(!caught);
  }));
  std::printf(caught ? "caught %llu\n" : "missed %llu\n", static_cast<unsigned long long>(run));
}

}  // namespace
}  // namespace holdfast::sim

int main(int argc, char** argv) {
  using namespace holdfast::sim;
  std::uint64_t cases = 0, seed = 0;
  const auto number = [&](int at, std::uint64_t& into) {
    const std::string_view text = argv[at];
    return std::from_chars(text.data(), text.data() + text.size(), into).ptr == text.data() + text.size() && into > 0;
  };
  const auto invariant = argc == 4 ? invariant_named(argv[1]) : std::nullopt;
  if (!invariant || !number(2, cases) || !number(3, seed)) {
    std::fputs("usage: holdfast_rapidcheck INVARIANT CASES SEED\n", stderr);
    return 2;
  }
  // The only way to tell RapidCheck; nothing is shrunk, since only the first catch counts.
  const std::string parameters =
      "seed=" + std::to_string(seed) + " max_success=" + std::to_string(cases) + " noshrink=1";
  ::setenv("RC_PARAMS", parameters.c_str(), 1);
  search(*invariant);
  return 0;
}
