#include "holdfast/sim/explore.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <new>
#include <unordered_set>

#include "forked_child.hpp"
#include "holdfast/sim/depth_first.hpp"
#include "holdfast/sim/pct_strategy.hpp"
#include "holdfast/sim/random_strategy.hpp"
#include "holdfast/sim/sleep_sets.hpp"

namespace holdfast::sim {
namespace {

constexpr std::array<std::string_view, 4> kNames{"random", "pct", "dfs", "sleep-sets"};
constexpr std::uint64_t kSwitchesMax = 1 << 14;  // of one run that are told; a run has as many decisions
constexpr std::uint64_t kRandomRuns = 1000;
constexpr Nanos kLookEvery = 100 * kMillisecond;

// What the child found so far. In memory that both processes have, so that it outlives a crash.
struct Findings {
  std::atomic<std::uint64_t> interleavings{0};
  std::atomic<std::uint64_t> redundant{0};
  std::atomic<std::uint64_t> end_states{0};
  std::atomic<std::uint64_t> decisions_max{0};
  std::atomic<bool> covered{false};
  std::atomic<bool> diverged{false};
  std::atomic<bool> failed{false};
  std::atomic<bool> ended{false};          // by itself
  std::atomic<bool> cut{false};            // the current run switched more often than is told
  std::atomic<std::uint64_t> switches{0};  // of the current run
  std::array<StepSwitch, kSwitchesMax> switched{};
};

class SharedFindings {
 public:
  static Result<SharedFindings> make() {
    void* at = mmap(nullptr, sizeof(Findings), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return Error{Origin::file_system, errno, "mmap", "memory shared with a child", {}, {}};
    return SharedFindings(new (at) Findings);
  }
  SharedFindings(SharedFindings&& other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
  SharedFindings& operator=(SharedFindings&&) = delete;
  ~SharedFindings() {
    if (at_ != nullptr) munmap(at_, sizeof(Findings));
  }
  Findings& operator*() const { return *at_; }
  Findings* operator->() const { return at_; }

 private:
  explicit SharedFindings(Findings* at) : at_(at) {}
  Findings* at_;
};

// One way through the schedules, and what is known when it has come to its end.
class Search {
 public:
  explicit Search(const ExploreOptions& options, std::uint64_t estimated_points) {
    switch (options.by) {
      case ExploreBy::random:
        random_ = std::make_unique<RandomStrategy>(RandomStrategyOptions{.seed = options.seed});
        break;
      case ExploreBy::pct:
        random_ = std::make_unique<PctStrategy>(PctStrategyOptions{options.seed, options.depth, estimated_points});
        break;
      case ExploreBy::dfs:
        depth_first_ = std::make_unique<DepthFirst>(options.preemptions_max);
        break;
      case ExploreBy::sleep_sets:
        sleep_sets_ = std::make_unique<SleepSets>();
        break;
    }
  }
  Strategy& strategy() {
    if (random_) return *random_;
    if (depth_first_) return *depth_first_;
    return *sleep_sets_;
  }
  [[nodiscard]] bool covered() const {
    return depth_first_ ? depth_first_->exhausted() : sleep_sets_ && sleep_sets_->exhausted();
  }
  [[nodiscard]] bool diverged() const {
    return depth_first_ ? depth_first_->diverged() : sleep_sets_ && sleep_sets_->diverged();
  }

 private:
  std::unique_ptr<Strategy> random_;
  std::unique_ptr<DepthFirst> depth_first_;
  std::unique_ptr<SleepSets> sleep_sets_;
};

void raise_to(std::atomic<std::uint64_t>& most, std::uint64_t value) {
  if (value > most) most = value;
}

void search(const Trace& trace, const SystemFactory& factory, const ExploreOptions& options, Findings& findings) {
  Executor executor(factory);
  RunOptions run;
  run.disabled = options.disabled;
  run.keep_end_state = true;
  run.on_switch = [&](const StepSwitch& change) {
    const std::uint64_t at = findings.switches;
    if (at >= kSwitchesMax) {
      findings.cut = true;
      return;
    }
    findings.switched[at] = change;
    findings.switches = at + 1;
  };
  GoOn as_it_is;
  run.strategy = &as_it_is;
  const std::uint64_t points = std::max<std::uint64_t>(executor.run(trace, run).decisions, 1);
  Search way(options, points);
  run.strategy = &way.strategy();
  const bool by_chance = options.by == ExploreBy::random || options.by == ExploreBy::pct;
  const std::uint64_t runs_max = options.runs_max == 0 && by_chance ? kRandomRuns : options.runs_max;
  const SteadyClock clock;
  const Nanos begin_ns = clock.now_ns();
  std::unordered_set<std::uint64_t> states;
  for (;;) {
    const std::uint64_t runs = findings.interleavings + findings.redundant;
    if (runs_max > 0 && runs >= runs_max) break;
    if (options.time_budget_ns > 0 && clock.now_ns() - begin_ns >= options.time_budget_ns) break;
    if (!way.strategy().next_run()) break;
    findings.switches = 0;
    findings.cut = false;
    const RunResult result = executor.run(trace, run);
    raise_to(findings.decisions_max, result.decisions);
    if (!result.violations.empty()) {
      ++findings.interleavings;
      findings.failed = true;
      return;
    }
    if (result.redundant) {
      ++findings.redundant;
      continue;
    }
    ++findings.interleavings;
    states.insert(result.end_state);
    findings.end_states = states.size();
  }
  findings.covered = way.covered();
  findings.diverged = way.diverged();
  findings.ended = true;
}

}  // namespace

std::string_view name_of(ExploreBy by) { return kNames[static_cast<std::size_t>(by)]; }

std::optional<ExploreBy> explore_by_named(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<ExploreBy>(found - kNames.begin());
}

Result<Exploration> explore(const Trace& trace, const SystemFactory& factory, const ExploreOptions& options,
                            const ExploreProgress& progress) {
  Result<SharedFindings> findings = SharedFindings::make();
  if (!findings) return findings.error();
  auto child = ForkedChild::start([&](ForkedChild::Link&) { search(trace, factory, options, **findings); });
  if (!child) return child.error();
  std::string bytes;
  bool hung = false;
  std::uint64_t runs_seen = 0;
  const SteadyClock clock;
  Nanos seen_ns = clock.now_ns();
  while ((*child)->listen(bytes, kLookEvery) != ForkedChild::Heard::end) {
    const std::uint64_t runs = (*findings)->interleavings + (*findings)->redundant;
    if (progress) progress((*findings)->interleavings);
    if (runs != runs_seen) {
      runs_seen = runs;
      seen_ns = clock.now_ns();
    } else if (clock.now_ns() - seen_ns > options.hang_limit_ns) {
      hung = true;
      break;
    }
  }
  static_cast<void>((*child)->bury(hung));  // what it died of is seen again when the trace is run
  const Findings& found = **findings;
  Exploration result;
  result.interleavings = found.interleavings;
  result.redundant = found.redundant;
  result.end_states = found.end_states;
  result.decisions_max = found.decisions_max;
  result.covered = found.covered;
  result.diverged = found.diverged;
  if (found.ended) return result;
  if (!found.failed) ++result.interleavings;
  result.cut = found.cut;
  result.failing = trace;
  result.failing->switches.assign(found.switched.begin(),
                                  found.switched.begin() + static_cast<std::ptrdiff_t>(found.switches.load()));
  return result;
}

}  // namespace holdfast::sim
