// The tap: the lowest layer, which sees what really happened. It looks into the fake owner and the fake device.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "holdfast/fakes/cuda_device.hpp"
#include "holdfast/fakes/memory_files.hpp"
#include "holdfast/fakes/owner.hpp"
#include "holdfast/sim/run_context.hpp"

namespace holdfast::sim {

// After every call it drains the fakes' incidents into violations (a write into a free slot, an undefined copy, a
// misuse), each attributed to the invariant that it breaks, with both culprits.
class Tap {
 public:
  Tap(RunContext& context, fakes::Owner& owner, fakes::FakeCuda& device);
  ~Tap();

  FluxonBackend& fluxon();
  CudaBackend& cuda();

  // XXH3 of the bytes stored under `key` (its recorded value length), or nothing when it is not readable.
  [[nodiscard]] std::optional<std::uint64_t> stored_digest(std::string_view key) const;
  // Readable now.
  [[nodiscard]] bool is_stored(std::string_view key) const;
  // Readable now, and damaged since it was stored.
  [[nodiscard]] bool is_damaged(std::string_view key) const;
  void for_each_stored(const std::function<void(std::string_view)>& visit) const;
  // Drains incidents now, for instance after time passed.
  void collect();
  // What is left at the end: plans, handles, holders, reservations, copies in flight. Violations of
  // quiescent-baseline name each.
  void check_baseline();
  void reset();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::sim
