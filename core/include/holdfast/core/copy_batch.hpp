// A batch of copies between device tensors and host memory, submitted only when every copy of it is valid.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/registration_map.hpp"
#include "holdfast/core/result.hpp"
#include "holdfast/core/tensor.hpp"

namespace holdfast {

// Contiguous, not empty, no overflow, all on the device of the first. InvalidArgument names the tensor.
[[nodiscard]] Status check_tensors(std::span<const DeviceTensor> tensors);

// check_tensors, and each is device memory of its device, as the runtime's attributes say.
template <CudaRuntime Cuda>
[[nodiscard]] Status validate_tensors(Cuda& cuda, std::span<const DeviceTensor> tensors) {
  if (Status checked = check_tensors(tensors); !checked) return checked;
  for (const DeviceTensor& tensor : tensors) {
    Result<PointerAttributes> attributes = cuda.pointer_attributes(tensor.data);
    if (!attributes) {
      return make_error(Errc::not_device_memory, "validate_tensors", "no attributes", std::move(attributes.error()));
    }
    if (attributes->kind != MemoryKind::device || attributes->device != tensor.device) {
      return make_error(Errc::not_device_memory, "validate_tensors",
                        "a tensor is not memory of device " + std::to_string(tensor.device));
    }
  }
  return {};
}

class CopyBatch {
 public:
  explicit CopyBatch(CopyDirection direction) : direction_(direction) {}

  void reserve(std::size_t copies);
  // Bytes [offset, offset + bytes) of `tensor`, to or from `host`.
  void add(const DeviceTensor& tensor, std::uint64_t offset, std::uintptr_t host, std::uint64_t bytes);

  // Everything or nothing: no copy empty, each whole inside its tensor and inside one live registration of `registry`,
  // no two destinations overlapping. Host addresses are translated to registered ones.
  template <class Registry>
  [[nodiscard]] Status validate(const Registry& registry) {
    std::vector<HostRange> written;
    return validate(registry, written);
  }
  // The same, where earlier batches of one operation write `written` already; this one's destinations are added.
  template <class Registry>
  [[nodiscard]] Status validate(const Registry& registry, std::vector<HostRange>& written) {
    if (Status checked = check_device_side(); !checked) return checked;
    if (Status translated = registry.translate(host_); !translated) return translated;
    return build_copies(written);
  }

  [[nodiscard]] CopyDirection direction() const { return direction_; }
  // In the order of `add`; empty before validate() succeeded.
  [[nodiscard]] std::span<const Copy> copies() const { return copies_; }
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  struct DeviceSide {
    DeviceTensor tensor;
    std::uint64_t offset = 0;
  };
  [[nodiscard]] Status check_device_side() const;
  [[nodiscard]] Status build_copies(std::vector<HostRange>& written);

  CopyDirection direction_;
  std::vector<DeviceSide> device_;
  std::vector<HostRange> host_;
  std::vector<Copy> copies_;
};

}  // namespace holdfast
