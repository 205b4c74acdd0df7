// What a build without the CUDA toolkit answers when it is asked for a device.
#include "holdfast/sim/backend_factory.hpp"

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

}  // namespace holdfast::sim
