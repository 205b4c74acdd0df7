// The plain tier store: tensors in ordinary memory, for tests, small caches, and machines without an owner.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/core/sync.hpp"
#include "holdfast/core/tier_store.hpp"

namespace holdfast {

// Models TensorTierStore. Thread-safe. Owns every byte it was given.
template <Sync S>
class MemoryTierStore {
 public:
  explicit MemoryTierStore(S& sync) : mutex_(sync) {}

  Status put_tensor(std::string_view key, std::vector<std::byte> bytes) {
    const std::scoped_lock lock(mutex_);
    values_.insert_or_assign(std::string(key), std::move(bytes));
    return {};
  }
  Result<std::vector<std::byte>> get_tensor(std::string_view key) {
    const std::scoped_lock lock(mutex_);
    const auto at = values_.find(key);
    if (at == values_.end()) return fluxon_error(FluxonErrc::key_not_found, "get_tensor", std::string(key));
    return at->second;
  }
  Result<bool> has_tensor(std::string_view key) {
    const std::scoped_lock lock(mutex_);
    return values_.find(key) != values_.end();
  }
  Status remove_tensor(std::string_view key) {
    const std::scoped_lock lock(mutex_);
    if (const auto at = values_.find(key); at != values_.end()) values_.erase(at);
    return {};
  }
  // In order, those that begin with `prefix`.
  Result<std::vector<std::string>> list_keys(std::string_view prefix) const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> keys;
    for (auto at = values_.lower_bound(prefix); at != values_.end() && at->first.starts_with(prefix); ++at) {
      keys.push_back(at->first);
    }
    return keys;
  }
  [[nodiscard]] std::size_t size() const {
    const std::scoped_lock lock(mutex_);
    return values_.size();
  }

 private:
  mutable typename S::Mutex mutex_;
  std::map<std::string, std::vector<std::byte>, std::less<>> values_;  // guarded by mutex_
};
static_assert(TensorTierStore<MemoryTierStore<StdSync>>);

}  // namespace holdfast
