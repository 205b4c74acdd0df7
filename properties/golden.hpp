// The vectors that the public CacheSeek code computed: what our arithmetic has to agree with.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "holdfast/core/sha256.hpp"

namespace holdfast::test {

inline const nlohmann::json& golden(const std::string& section) {
  static const nlohmann::json all = [] {
    std::ifstream file(std::string(HOLDFAST_TEST_DATA) + "/golden.json");
    if (!file) throw std::runtime_error("golden.json is missing in " HOLDFAST_TEST_DATA);
    return nlohmann::json::parse(file);
  }();
  return all.at(section);
}

inline std::string from_hex(const nlohmann::json& hex) { return bytes_from_hex(hex.get<std::string>()).value(); }

}  // namespace holdfast::test
