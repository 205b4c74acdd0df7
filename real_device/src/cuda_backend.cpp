#include "cuda_backend.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <memory>
#include <string>

#include "holdfast/real_device/cuda_device.hpp"
#include "holdfast/real_device/gated_cuda.hpp"

namespace holdfast::device {
namespace {

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace

sim::BackendProbe probe_cuda_backend() {
  sim::BackendProbe probe;
  int runtime = 0;
  int driver = 0;
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  static_cast<void>(cudaDriverGetVersion(&driver));
  probe.runtimes.push_back({"cuda", "CUDA runtime",
                            driver == 0 ? fmt::format("{}, no driver", version_text(runtime))
                                        : fmt::format("{}, driver {}", version_text(runtime), version_text(driver)),
                            "", ""});
  if (const auto device = CudaDevice::open(0)) {
    probe.usable = true;
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, 0) == cudaSuccess)
      probe.runtimes.back().name += std::string(" on ") + properties.name;
  } else {
    probe.reason = "there is no device to use: " + to_string(device.error());
  }
  return probe;
}

sim::DeviceFactory cuda_device_factory() {
  return [](fakes::Arena& arena, fakes::VirtualClock& clock, const fakes::DeviceOptions& options) {
    return std::make_unique<GatedCuda>(arena, clock, options);
  };
}

}  // namespace holdfast::device
