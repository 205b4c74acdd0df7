// A Plan tier store over mocks of the fakes, and puts and reads of named values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core_fixture.hpp"

namespace holdfast {

inline Error transport(std::string_view call) { return fluxon_error(FluxonErrc::network, call, "connection reset"); }

class PlanTierStoreTest : public CoreTest {
 protected:
  explicit PlanTierStoreTest(const PlanOptions& options = plan_options()) : store(runtime, options) {}

  Result<PutReceipt> put(const std::vector<std::string>& names, const std::vector<DeviceTensor>& tensors) {
    const std::vector<std::string_view> keys(names.begin(), names.end());
    return store.put(keys, tensors, stream, absorbed);
  }

  ReadOutcome read(const std::vector<std::string>& names, const std::vector<DeviceTensor>& targets) {
    const std::vector<std::string_view> keys(names.begin(), names.end());
    std::vector<std::uint64_t> value_bytes;
    std::vector<ReadCopy> copies;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      value_bytes.push_back(targets[i].bytes);
      copies.push_back({i, 0, i, 0, targets[i].bytes});
    }
    const std::vector<std::uint32_t> groups(names.size(), 1);
    return store.restore({keys, value_bytes, groups, targets, copies}, stream, absorbed);
  }

  // A choice for the next commit: `codes` in key order; 0 and transport codes are stored, the others are not.
  void choose_codes(const std::vector<std::int32_t>& codes, bool unknown_is_stored = true) {
    fakes::CommitChoice choice;
    for (const std::int32_t code : codes) {
      const bool stored = code == 0 || (unknown_is_stored && outcome_of(code) == KeyOutcome::unknown);
      choice.keys.push_back({stored ? fakes::KeyChoice::Fate::stored : fakes::KeyChoice::Fate::not_stored, code, 0});
    }
    owner.choose_next_commit(choice);
  }

  Absorbed absorbed;
  PlanTierStore<TestRuntime> store;
};

}  // namespace holdfast
