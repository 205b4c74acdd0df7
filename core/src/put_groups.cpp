#include "holdfast/core/put_groups.hpp"

#include <algorithm>

namespace holdfast {

bool has_duplicates(Keys keys) {
  std::vector<std::string_view> sorted(keys.begin(), keys.end());
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

std::vector<PutGroup> group_by_size(Keys keys, std::span<const DeviceTensor> tensors) {
  std::vector<PutGroup> groups;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const PutGroup& candidate) {
      return candidate.value_bytes == tensors[i].bytes && candidate.keys.size() < kMaxPutGroupKeys;
    });
    if (group == groups.end()) {
      groups.push_back({tensors[i].bytes, {}, {}});
      group = std::prev(groups.end());
      group->members.reserve(keys.size());
      group->keys.reserve(keys.size());
    }
    group->members.push_back(i);
    group->keys.push_back(keys[i]);
  }
  return groups;
}

}  // namespace holdfast
