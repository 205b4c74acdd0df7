// A directory for one test, gone with it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast {

class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_(::testing::TempDir() + "holdfast-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary directory");
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string path(const std::string& name) const { return path_ + "/" + name; }
  // Names of what lies in it, or in a directory inside it, sorted.
  [[nodiscard]] std::vector<std::string> entries(const std::string& inside = ".") const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path(inside))) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::string path_;
};

}  // namespace holdfast
