// Every trace that once failed, replayed: what broke then holds now.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "holdfast/sim/executor.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {
namespace {

std::vector<std::filesystem::path> corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(HOLDFAST_TEST_DATA "/../corpus")) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

TEST(Corpus, EveryTraceThatOnceFailedHolds) {
  const std::vector<std::filesystem::path> files = corpus();
  ASSERT_FALSE(files.empty());
  Executor executor(make_production_system);
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const Result<Trace> trace = read_trace(text, file.filename().string());
    ASSERT_TRUE(trace.has_value()) << to_string(trace.error());
    const RunResult result = executor.run(*trace);
    EXPECT_GT(result.runtime_calls, 0U) << file;
    for (const Violation& violation : result.violations) {
      ADD_FAILURE() << file << ": " << name_of(violation.invariant) << ": " << violation.message;
    }
  }
}

}  // namespace
}  // namespace holdfast::sim
