// Which values go into one put plan: one value size per plan, and no more keys than a group may have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/core/tensor.hpp"

namespace holdfast {

struct PutGroup {
  std::uint64_t value_bytes = 0;
  std::vector<std::size_t> members;    // indices into the put's keys, in their order
  std::vector<std::string_view> keys;  // views of the put's keys
};

// One key twice in a plan is undefined in the owner.
[[nodiscard]] bool has_duplicates(Keys keys);

// Groups in the order in which their sizes first appear.
[[nodiscard]] std::vector<PutGroup> group_by_size(Keys keys, std::span<const DeviceTensor> tensors);

}  // namespace holdfast
