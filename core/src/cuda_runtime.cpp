#include "holdfast/core/cuda_runtime.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast {
namespace {

// The errors that CUDA documents as leaving the process or the context beyond use, and the uncorrectable memory and
// link errors. Refused launches (701, 720 and their like) are not among them.
constexpr std::array<std::int32_t, 16> kSticky = {
    214,  // ECC uncorrectable
    220,  // NVLink uncorrectable
    226,  // contained
    700,  // illegal address
    702,  // launch timeout
    709,  // context is destroyed
    710,  // assert
    714,  // hardware stack error
    715,  // illegal instruction
    716,  // misaligned address
    717,  // invalid address space
    718,  // invalid program counter
    719,  // launch failure
    721,  // tensor memory leak
    810,  // MPS client terminated
    911,  // external device
};

constexpr std::uintptr_t kLegacyStream = 1;
constexpr std::uintptr_t kPerThreadStream = 2;

}  // namespace

Error cuda_error(CudaErrc errc, std::string_view call, std::string detail) {
  Error error;
  error.origin = Origin::cuda;
  error.code = static_cast<std::int32_t>(errc);
  error.call = call;
  error.detail = std::move(detail);
  return error;
}

bool is_cuda(const Error& error, CudaErrc errc) {
  return error.origin == Origin::cuda && error.code == static_cast<std::int32_t>(errc);
}

bool is_sticky(const Error& error) {
  return error.origin == Origin::cuda && std::find(kSticky.begin(), kSticky.end(), error.code) != kSticky.end();
}

Result<StreamRef> StreamRef::from_native(std::uintptr_t native) {
  if (native == 0 || native == kLegacyStream || native == kPerThreadStream) {
    return make_error(Errc::invalid_argument, "StreamRef",
                      "the default stream is refused (0, legacy 1, per-thread 2): pass a stream you created");
  }
  return StreamRef(native);
}

std::string_view to_string(CopyDirection direction) {
  switch (direction) {
    case CopyDirection::device_to_host:
      return "device_to_host";
    case CopyDirection::host_to_device:
      return "host_to_device";
  }
  return {};
}

}  // namespace holdfast
