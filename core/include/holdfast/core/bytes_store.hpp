// Whole values by key, for approximate reuse and whoever else needs no plans: put, get, remove, and, where a store can,
// the list of its keys.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/backend.hpp"
#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/core/result.hpp"
#include "holdfast/core/tier_store.hpp"

namespace holdfast {

// All calls may run concurrently where the store says so of its own. Values are copied in and out. Over an owner that a
// cache of exact prefixes shares, keys must not look like its locators (see keys.hpp): begin them with a name of your
// own.
template <class S>
concept BytesStore = requires(S& store, std::string_view key, std::span<const std::byte> bytes) {
  // Replaces what is there. Owners refuse an empty value: InvalidArgument 1001.
  { store.put(key, bytes) } -> std::same_as<Status>;
  // KeyNotFound 4000 when there is none.
  { store.get(key) } -> std::same_as<Result<std::vector<std::byte>>>;
  // Success, or KeyNotFound 4000, when there is none. An owner also says 4000 of a value that it has not routed yet,
  // and that value stays: who must be sure asks again.
  { store.remove(key) } -> std::same_as<Status>;
};

// A capability: owners and disks have it not.
template <class S>
concept EnumerableBytesStore = BytesStore<S> && requires(S& store, std::string_view prefix) {
  // In order, those that begin with `prefix`. What changes meanwhile may be in it or not.
  { store.list_keys(prefix) } -> std::same_as<Result<std::vector<std::string>>>;
};

// Every Fluxon runtime is one as it is.
static_assert(BytesStore<FluxonBackend> && !EnumerableBytesStore<FluxonBackend>);

// A TensorTierStore as a BytesStore; enumerable if that lists its keys. `tensors` outlives it.
template <TensorTierStore Store>
class TensorBytes {
 public:
  explicit TensorBytes(Store& tensors) : tensors_(tensors) {}

  Status put(std::string_view key, std::span<const std::byte> bytes) {
    return tensors_.put_tensor(key, {bytes.begin(), bytes.end()});
  }
  Result<std::vector<std::byte>> get(std::string_view key) { return tensors_.get_tensor(key); }
  Status remove(std::string_view key) { return tensors_.remove_tensor(key); }
  Result<std::vector<std::string>> list_keys(std::string_view prefix)
    requires requires(Store& store) {
      { store.list_keys(prefix) } -> std::same_as<Result<std::vector<std::string>>>;
    }
  {
    return tensors_.list_keys(prefix);
  }

 private:
  Store& tensors_;
};

}  // namespace holdfast
