#include "holdfast/core/put_groups.hpp"

#include <algorithm>

#include "holdfast/core/hash.hpp"

namespace holdfast {

bool has_duplicates(Keys keys) {
  // Keys of one chunk differ at their ends: hashes tell sooner that no two are equal.
  std::vector<std::uint64_t> hashes;
  hashes.reserve(keys.size());
  for (const std::string_view key : keys) hashes.push_back(hash64(key, 0));
  std::sort(hashes.begin(), hashes.end());
  if (std::adjacent_find(hashes.begin(), hashes.end()) == hashes.end()) return false;
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
