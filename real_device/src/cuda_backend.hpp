// What there is of CUDA here. Defined with the toolkit, or by the stub.
#pragma once

#include "holdfast/sim/backend_factory.hpp"

namespace holdfast::device {

sim::BackendProbe probe_cuda_backend();
sim::DeviceFactory cuda_device_factory();  // empty without the toolkit

}  // namespace holdfast::device
