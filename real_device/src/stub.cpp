// What a build without the CUDA toolkit answers when it is asked for a device.
#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/sim/backend_factory.hpp"
#include "holdfast/sim/device_bench.hpp"

namespace holdfast::sim {

BackendProbe probe_real_backend(const std::string& backend) {
  BackendProbe probe;
  if (backend == "cuda") {
    probe.reason = "this build has no device part: " HOLDFAST_NO_DEVICE_REASON;
  } else {
    probe.reason = "this build loads no runtime from outside";
  }
  return probe;
}

Result<std::string> bench_copies(const DeviceBenchOptions& /*options*/) {
  return cuda_error(CudaErrc::no_device, "bench_copies", "this build has no device part: " HOLDFAST_NO_DEVICE_REASON);
}

}  // namespace holdfast::sim
