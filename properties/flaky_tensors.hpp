// A store of tensors whose calls fail when a test says so.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/memory_tier_store.hpp"
#include "holdfast/core/tensor_file.hpp"

namespace holdfast {

// Removals fail as long as they are told to; so do the put of one key, and every get.
class FlakyTensors {
 public:
  explicit FlakyTensors(StdSync& sync) : tensors_(sync) {}
  Status put_tensor(std::string_view key, std::vector<std::byte> bytes) {
    if (key == refused_key) {
      if (refused_is_stored) static_cast<void>(tensors_.put_tensor(key, std::move(bytes)));
      return fluxon_error(FluxonErrc::network, "put_tensor");
    }
    return tensors_.put_tensor(key, std::move(bytes));
  }
  Result<std::vector<std::byte>> get_tensor(std::string_view key) {
    if (failing_gets) return *failing_gets;
    return tensors_.get_tensor(key);
  }
  Result<bool> has_tensor(std::string_view key) {
    if (failing_gets && is_damaged_file(*failing_gets)) return false;
    if (failing_gets) return *failing_gets;
    return tensors_.has_tensor(key);
  }
  Status remove_tensor(std::string_view key) {
    if (failing_removals > 0) {
      --failing_removals;
      return fluxon_error(FluxonErrc::network, "remove_tensor");
    }
    return tensors_.remove_tensor(key);
  }
  [[nodiscard]] std::size_t size() const { return tensors_.size(); }

  int failing_removals = 0;
  std::string refused_key;
  bool refused_is_stored = false;  // told as failed, done all the same
  std::optional<Error> failing_gets;

 private:
  MemoryTierStore<StdSync> tensors_;
};
static_assert(TensorTierStore<FlakyTensors>);

}  // namespace holdfast
