// What the fuzzers found once, and the seeds they start from, held against every reader's promises without a fuzzer.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/readers.hpp"

namespace holdfast::fuzz {
namespace {

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::string bytes_of_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class FuzzInputs : public testing::TestWithParam<Reader> {
 protected:
  static std::filesystem::path folder(std::string_view kind) {
    return std::filesystem::path(HOLDFAST_TEST_DATA "/../fuzz") / kind / GetParam().name;
  }
};

// A seed that is refused leads the fuzzer nowhere.
TEST_P(FuzzInputs, EverySeedIsAcceptedAndKeepsTheReadersPromises) {
  const std::vector<std::filesystem::path> seeds = files_in(folder("seeds"));
  EXPECT_FALSE(seeds.empty());
  for (const std::filesystem::path& file : seeds) {
    const Verdict verdict = GetParam().read(bytes_of_file(file));
    EXPECT_TRUE(verdict.accepted) << file;
    EXPECT_EQ(verdict.broken, "") << file;
  }
}

TEST_P(FuzzInputs, EverySeedCutShortOrChangedIsReadOrRefused) {
  for (const std::filesystem::path& file : files_in(folder("seeds"))) {
    const std::string bytes = bytes_of_file(file);
    for (std::size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 64) {
      EXPECT_EQ(GetParam().read(bytes.substr(0, at)).broken, "") << file << " cut at " << at;
      std::string changed = bytes;
      changed[at] ^= 1;
      EXPECT_EQ(GetParam().read(changed).broken, "") << file << " changed at " << at;
    }
  }
}

TEST_P(FuzzInputs, WhatOnceFailedHolds) {
  for (const std::filesystem::path& file : files_in(folder("regressions"))) {
    EXPECT_EQ(GetParam().read(bytes_of_file(file)).broken, "") << file;
  }
}

INSTANTIATE_TEST_SUITE_P(Readers, FuzzInputs, testing::ValuesIn(kReaders),
                         [](const testing::TestParamInfo<Reader>& reader) { return std::string(reader.param.name); });

}  // namespace
}  // namespace holdfast::fuzz
