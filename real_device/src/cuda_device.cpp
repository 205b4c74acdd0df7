#include "holdfast/real_device/cuda_device.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "copy_kernel.hpp"

namespace holdfast::device {
namespace {

void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }
cudaStream_t native(StreamRef stream) { return reinterpret_cast<cudaStream_t>(stream.native()); }
cudaEvent_t native(EventRef event) { return reinterpret_cast<cudaEvent_t>(event.native); }

Error failure(cudaError_t status, std::string_view call) {
  // The runtime keeps a failure for the next caller of cudaGetLastError, who would take it for his own.
  static_cast<void>(cudaGetLastError());
  return cuda_error(static_cast<CudaErrc>(status), call,
                    fmt::format("{}: {}", cudaGetErrorName(status), cudaGetErrorString(status)));
}

Status status_of(cudaError_t status, std::string_view call) {
  if (status != cudaSuccess) return failure(status, call);
  return {};
}

// The current device is the thread's, and the thread is the engine's: given back afterwards.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    status_ = cudaGetDevice(&before_);
    if (status_ == cudaSuccess && before_ != device) {
      status_ = cudaSetDevice(device);
      changed_ = status_ == cudaSuccess;
    }
  }
  ~CurrentDevice() {
    if (changed_) static_cast<void>(cudaSetDevice(before_));
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  [[nodiscard]] cudaError_t status() const { return status_; }

 private:
  int before_ = 0;
  bool changed_ = false;
  cudaError_t status_ = cudaSuccess;
};

// Runs `call` with `device` current.
template <class Call>
Status on_device(int device, std::string_view name, Call call) {
  const CurrentDevice current(device);
  if (current.status() != cudaSuccess) return failure(current.status(), name);
  return status_of(call(), name);
}

// Older toolkits have no batch call, or one with other arguments: single copies mean the same and only take longer.
cudaError_t submit_batch([[maybe_unused]] std::span<const Copy> copies, [[maybe_unused]] cudaStream_t stream) {
#if CUDART_VERSION >= 13000
  // The driver has copied them when the call returns; their memory serves the thread's next batch.
  thread_local std::vector<void*> dsts;
  thread_local std::vector<const void*> srcs;
  thread_local std::vector<std::size_t> sizes;
  dsts.clear();
  srcs.clear();
  sizes.clear();
  for (const Copy& copy : copies) {
    dsts.push_back(pointer(copy.dst));
    srcs.push_back(pointer(copy.src));
    sizes.push_back(copy.bytes);
  }
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t first_with_attributes = 0;
  return cudaMemcpyBatchAsync(dsts.data(), srcs.data(), sizes.data(), sizes.size(), &attributes, &first_with_attributes,
                              1, stream);
#else
  return cudaErrorNotSupported;
#endif
}

cudaError_t submit_one_by_one(CopyDirection direction, std::span<const Copy> copies, cudaStream_t stream) {
  const cudaMemcpyKind kind =
      direction == CopyDirection::device_to_host ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
  for (const Copy& copy : copies) {
    const cudaError_t status = cudaMemcpyAsync(pointer(copy.dst), pointer(copy.src), copy.bytes, kind, stream);
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

cudaError_t submit_to_kernel(std::span<const Copy> copies, cudaStream_t stream) {
  thread_local std::vector<KernelCopy> described;
  while (!copies.empty()) {
    const std::span<const Copy> now = copies.first(std::min(copies.size(), kKernelCopiesMax));
    described.clear();
    for (const Copy& copy : now) described.push_back({copy.dst, copy.src, copy.bytes});
    const cudaError_t status = launch_copies(described.data(), described.size(), stream);
    if (status != cudaSuccess) return status;
    copies = copies.subspan(now.size());
  }
  return cudaSuccess;
}

cudaError_t submit_to_engines(CopyDirection direction, std::span<const Copy> copies, cudaStream_t stream) {
  // Of thousands in one call the driver moves fewer bytes a second than of hundreds.
  constexpr std::size_t kBatchMax = 512;
  while (!copies.empty()) {
    const std::span<const Copy> now = copies.first(std::min(copies.size(), kBatchMax));
    const cudaError_t status = submit_batch(now, stream);
    // Where there are no batches, none of these copies was taken.
    if (status == cudaErrorNotSupported || status == cudaErrorCallRequiresNewerDriver) {
      static_cast<void>(cudaGetLastError());
      return submit_one_by_one(direction, copies, stream);
    }
    if (status != cudaSuccess) return status;
    copies = copies.subspan(now.size());
  }
  return cudaSuccess;
}

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(int device, const CopyThresholds& thresholds) {
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess) {
    Error error = cuda_error(CudaErrc::no_device, "open", "no CUDA driver or device can be used on this machine");
    error.causes.push_back(failure(status, "cudaGetDeviceCount"));
    return error;
  }
  if (count == 0) return cuda_error(CudaErrc::no_device, "open", "this machine has no CUDA device");
  if (device < 0 || device >= count) {
    return cuda_error(CudaErrc::invalid_device, "open",
                      fmt::format("device {} of {}: the first is number 0", device, count));
  }
  // Freeing nothing makes the context now, so that a device that cannot have one is refused here.
  if (Status made = on_device(device, "open", [] { return cudaFree(nullptr); }); !made) return std::move(made).error();
  CopyThresholds used = thresholds;
  int same_address = 0;
  if (cudaDeviceGetAttribute(&same_address, cudaDevAttrCanUseHostPointerForRegisteredMem, device) != cudaSuccess ||
      same_address == 0) {
    used = {0, 0};  // a kernel would need other addresses
  }
  return std::unique_ptr<CudaDevice>(new CudaDevice(device, used));
}

Status CudaDevice::host_register(std::uintptr_t ptr, std::uint64_t bytes, HostAccess access) {
  const unsigned flags = access == HostAccess::read_only ? cudaHostRegisterReadOnly : cudaHostRegisterDefault;
  Status done = on_device(device_, "host_register", [&] { return cudaHostRegister(pointer(ptr), bytes, flags); });
  if (done) {
    const std::scoped_lock lock(mutex_);
    registered_.insert(std::ranges::upper_bound(registered_, ptr, {}, &HostRangeOf::base), {ptr, bytes});
  }
  return done;
}

Status CudaDevice::host_unregister(std::uintptr_t ptr) {
  Status done = on_device(device_, "host_unregister", [&] { return cudaHostUnregister(pointer(ptr)); });
  if (done) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(registered_, [&](const HostRangeOf& range) { return range.base == ptr; });
  }
  return done;
}

Status CudaDevice::copy_batch(CopyDirection direction, std::span<const Copy> copies, StreamRef stream) {
  if (copies.empty()) return cuda_error(CudaErrc::invalid_value, "copy_batch", "an empty batch");
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const Copy& copy = copies[i];
    if (copy.bytes == 0 || copy.dst == 0 || copy.src == 0) {
      return cuda_error(CudaErrc::invalid_value, "copy_batch",
                        fmt::format("copy {} has {} bytes, or a null address", i, copy.bytes));
    }
  }
  thread_local CopyPlan plan;
  {
    const std::scoped_lock lock(mutex_);
    plan_copies(direction, copies, registered_, thresholds_, plan);
  }
  return on_device(device_, "copy_batch", [&] {
    const cudaError_t status = submit_to_kernel(plan.by_kernel, native(stream));
    if (status != cudaSuccess || plan.by_engine.empty()) return status;
    return submit_to_engines(direction, plan.by_engine, native(stream));
  });
}

Result<EventRef> CudaDevice::event_create() {
  cudaEvent_t event = nullptr;
  Status created =
      on_device(device_, "event_create", [&] { return cudaEventCreateWithFlags(&event, cudaEventDisableTiming); });
  if (!created) return std::move(created).error();
  return EventRef{reinterpret_cast<std::uintptr_t>(event)};
}

Status CudaDevice::event_record(EventRef event, StreamRef stream) {
  return on_device(device_, "event_record", [&] { return cudaEventRecord(native(event), native(stream)); });
}

Status CudaDevice::stream_wait(StreamRef stream, EventRef event) {
  return on_device(device_, "stream_wait", [&] { return cudaStreamWaitEvent(native(stream), native(event), 0); });
}

Result<bool> CudaDevice::event_query(EventRef event) {
  bool ready = true;
  Status asked = on_device(device_, "event_query", [&] {
    const cudaError_t status = cudaEventQuery(native(event));
    if (status != cudaErrorNotReady) return status;
    static_cast<void>(cudaGetLastError());
    ready = false;
    return cudaSuccess;
  });
  if (!asked) return std::move(asked).error();
  return ready;
}

Status CudaDevice::event_synchronize(EventRef event) {
  return on_device(device_, "event_synchronize", [&] { return cudaEventSynchronize(native(event)); });
}

Status CudaDevice::event_destroy(EventRef event) {
  return on_device(device_, "event_destroy", [&] { return cudaEventDestroy(native(event)); });
}

Status CudaDevice::stream_synchronize(StreamRef stream) {
  return on_device(device_, "stream_synchronize", [&] { return cudaStreamSynchronize(native(stream)); });
}

Result<PointerAttributes> CudaDevice::pointer_attributes(std::uintptr_t ptr) {
  cudaPointerAttributes native_attributes{};
  Status asked = on_device(device_, "pointer_attributes",
                           [&] { return cudaPointerGetAttributes(&native_attributes, pointer(ptr)); });
  if (!asked) return std::move(asked).error();
  switch (native_attributes.type) {
    case cudaMemoryTypeHost:
      return PointerAttributes{.kind = MemoryKind::registered_host, .device = -1};
    case cudaMemoryTypeDevice:
      return PointerAttributes{.kind = MemoryKind::device, .device = native_attributes.device};
    case cudaMemoryTypeUnregistered:
    case cudaMemoryTypeManaged:
      break;
  }
  return PointerAttributes{};
}

}  // namespace holdfast::device
