// This machine's answer to who asks for a backend by name.
#include "holdfast/sim/backend_factory.hpp"

#include "cuda_backend.hpp"
#include "holdfast/real_device/plugin_owner.hpp"

namespace holdfast::sim {
namespace {

constexpr std::string_view kPlugin = "plugin:";

}  // namespace

BackendProbe probe_real_backend(const std::string& backend) {
  if (!backend.starts_with(kPlugin)) return device::probe_cuda_backend();
  BackendProbe probe;
  auto library = device::PluginLibrary::load(backend.substr(kPlugin.size()));
  if (!library) {
    probe.reason = library.error().detail;
    return probe;
  }
  probe.usable = true;
  probe.runtimes.push_back((*library)->info());
  probe.undecidable = undecidable_for({(*library)->inside() != nullptr, (*library)->environment() != nullptr});
  return probe;
}

Result<OwnerFactory> owner_factory_of(const std::string& backend) {
  if (!backend.starts_with(kPlugin)) return OwnerFactory{};
  auto library = device::PluginLibrary::load(backend.substr(kPlugin.size()));
  if (!library) return library.error();
  return OwnerFactory([plugin = std::move(*library)](fakes::Arena& /*arena*/, fakes::VirtualClock& clock) {
    return std::make_unique<device::PluginOwner>(plugin, clock);
  });
}

Result<DeviceFactory> device_factory_of(const std::string& backend) {
  return backend == "cuda" || backend == "both" ? device::cuda_device_factory() : DeviceFactory{};
}

}  // namespace holdfast::sim
