// What a build without the CUDA toolkit answers when it is asked for a device.
#include "cuda_backend.hpp"
#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/sim/device_bench.hpp"

namespace holdfast {

sim::BackendProbe device::probe_cuda_backend() {
  sim::BackendProbe probe;
  probe.reason = "this build has no device part: " HOLDFAST_NO_DEVICE_REASON;
  return probe;
}

sim::DeviceFactory device::cuda_device_factory() { return {}; }

Result<std::string> sim::bench_copies(const DeviceBenchOptions& /*options*/) {
  return cuda_error(CudaErrc::no_device, "bench_copies", "this build has no device part: " HOLDFAST_NO_DEVICE_REASON);
}

Result<std::string> sim::bench_registration(const DeviceBenchOptions& /*options*/) {
  return cuda_error(CudaErrc::no_device, "bench_registration",
                    "this build has no device part: " HOLDFAST_NO_DEVICE_REASON);
}

}  // namespace holdfast
