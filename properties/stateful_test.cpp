// Whole runs as properties: the project's generator makes them, its candidates shrink them, and what fails is left
// behind as a trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "holdfast/sim/executor.hpp"
#include "holdfast/sim/files.hpp"
#include "holdfast/sim/shrink_failure.hpp"
#include "temporary_directory.hpp"
#include "trace_generator.hpp"
#include "troubled_system.hpp"

namespace holdfast::sim {
namespace {

using ::testing::IsEmpty;

// Every promise holds in a run of the trace. The first that fails says what is shrunk; the last that fails alike, which
// is the smallest, stays behind in the file.
class WholeRuns {
 public:
  WholeRuns(SystemFactory factory, std::string file) : executor_(std::move(factory)), file_(std::move(file)) {}

  void check(const Trace& trace) {
    const RunResult result = executor_.run(trace);
    if (result.violations.empty()) return;
    if (!target_) target_ = target_of(result.violations.front());
    const Violation* violation = find_target(result.violations, *target_);
    if (violation == nullptr) return;
    if (const Status written = write_output_file(file_, write_trace(trace)); !written)
      RC_FAIL(to_string(written.error()));
    RC_FAIL(to_string(*target_) + ": " + violation->message + "\nholdfast replay " + file_);
  }

 private:
  Executor executor_;
  std::string file_;
  std::optional<FailureTarget> target_;
};

std::string file_here(const std::string& name) { return (std::filesystem::current_path() / name).string(); }

TEST(WholeRuns, KeepEveryPromise) {
  WholeRuns runs(make_production_system, file_here("whole-runs.failed.trace.json"));
  EXPECT_TRUE(
      rc::check("every promise holds in runs of the default profile", [&] { runs.check(*traces_of("default")); }));
}

TEST(WholeRuns, KeepEveryPromiseUnderManyFaults) {
  WholeRuns runs(make_production_system, file_here("whole-runs-faulty.failed.trace.json"));
  EXPECT_TRUE(
      rc::check("every promise holds in runs of the faulty profile", [&] { runs.check(*traces_of("faulty")); }));
}

// Of a store with a planted bug the property fails, shrinks, and leaves a trace that fails in the same way.
TEST(WholeRuns, LeaveTheSmallestTraceOfABugBehind) {
  const TemporaryDirectory directory;
  const std::string file = directory.path("failed.trace.json");
  const Planted planted{Trouble::breaks_promise, Trouble::none};
  WholeRuns runs(system_with(planted), file);
  EXPECT_FALSE(rc::check("a broken store holds", [&] { runs.check(*traces_of("default")); }));

  const auto text = read_input_file(file, 1 << 20);
  ASSERT_TRUE(text);
  const auto trace = read_trace(*text, file);
  ASSERT_TRUE(trace) << to_string(trace.error());
  Executor broken(system_with(planted));
  const RunResult result = broken.run(*trace);
  ASSERT_FALSE(result.violations.empty());
  EXPECT_EQ(result.violations.front().invariant, Invariant::ready_after_commit);
  EXPECT_EQ(result.violations.front().culprits, "evict: kv claim and no commit");
  EXPECT_TRUE(Executor(make_production_system).run(*trace).violations.empty());

  // Nothing smaller fails alike. The run needs a write, a resume and an eviction, of one session or of two.
  EXPECT_THAT(trace->faults, IsEmpty());
  EXPECT_LE(trace->steps.size(), 8U);
  const FailureTarget target = target_of(result.violations.front());
  Candidates smaller = candidates(*trace);
  while (const auto candidate = smaller.next()) {
    EXPECT_EQ(find_target(broken.run(*candidate).violations, target), nullptr) << write_trace(*candidate);
  }
}

}  // namespace
}  // namespace holdfast::sim
