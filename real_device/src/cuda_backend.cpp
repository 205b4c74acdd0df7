#include "cuda_backend.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "holdfast/real_device/cuda_device.hpp"

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
  const auto device = CudaDevice::open(0);
  probe.reason = device ? "the simulator cannot drive a device yet; its CUDA runtime can be used by itself"
                        : "there is no device to use: " + to_string(device.error());
  return probe;
}

}  // namespace holdfast::device
