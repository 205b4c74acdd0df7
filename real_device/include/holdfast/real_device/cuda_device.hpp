// The CUDA runtime of one device, as the core's concept asks for it: a thin adapter that translates arguments and
// errors. It knows what it has registered, so that no copy spans two registrations. Its calls leave the calling
// thread's current device as they found it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "holdfast/core/backend.hpp"
#include "holdfast/real_device/copy_plan.hpp"

namespace holdfast::device {

// Failures are the runtime's own, with its number as code and its words as detail. A failure is reported once: unless
// it is sticky, the next call starts clean. Callable from any thread.
class CudaDevice final : public CudaBackend {
 public:
  // Makes the device's context. NoDevice, with the reason, when there is no driver or no device; InvalidDevice when
  // `device` is not among those there are.
  static Result<std::unique_ptr<CudaDevice>> open(int device, const CopyThresholds& thresholds = {});

  Status host_register(std::uintptr_t ptr, std::uint64_t bytes, HostAccess access) override;
  Status host_unregister(std::uintptr_t ptr) override;
  // By a kernel and one batch call, see plan_copies; a loop of single copies where toolkit or driver have no batch.
  // InvalidValue, and nothing submitted, for an empty batch and for a copy without bytes or with a null address.
  Status copy_batch(CopyDirection direction, std::span<const Copy> copies, StreamRef stream) override;
  Result<EventRef> event_create() override;
  Status event_record(EventRef event, StreamRef stream) override;
  Status stream_wait(StreamRef stream, EventRef event) override;
  Result<bool> event_query(EventRef event) override;
  Status event_synchronize(EventRef event) override;
  Status event_destroy(EventRef event) override;
  Status stream_synchronize(StreamRef stream) override;
  // Managed memory counts as unregistered host memory: it is neither a tensor of one device nor pinned.
  Result<PointerAttributes> pointer_attributes(std::uintptr_t ptr) override;

 private:
  CudaDevice(int device, const CopyThresholds& thresholds) : device_(device), thresholds_(thresholds) {}

  int device_;
  CopyThresholds thresholds_;
  std::mutex mutex_;
  std::vector<HostRangeOf> registered_;  // by base; guarded by mutex_
};

}  // namespace holdfast::device
