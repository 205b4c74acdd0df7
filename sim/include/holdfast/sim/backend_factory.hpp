// The runtimes that a program can be given by name. The simulator declares the factory; the device part, or its stub in
// a build without the toolkit, defines it when the program is linked.
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/result.hpp"
#include "holdfast/sim/executor.hpp"
#include "holdfast/sim/invariants.hpp"

namespace holdfast::sim {

// What the program says of itself at the start and in reports.
struct RuntimeInfo {
  std::string role;  // "fluxon", "cuda"
  std::string name;
  std::string version;
  std::string path;    // of a library loaded at run time; else empty
  std::string sha256;  // of that library
};

struct BackendProbe {
  bool usable = false;
  std::string reason;  // why not, and what would help
  std::vector<RuntimeInfo> runtimes;
  std::vector<Invariant> undecidable;  // checks that need to look where this backend cannot be looked into
};

// The fakes, which are always there.
BackendProbe probe_fake_backend();
// `backend` is "cuda", "both" or "plugin:FILE". Loads what it names; a process that has asked for a device must not
// fork and use it in its child. Defined in real_device/.
BackendProbe probe_real_backend(const std::string& backend);

// The owner of a backend: of "plugin:FILE" one of that library, of any other the fake one (empty). InvalidArgument,
// with the place and the remedy, when there is none to be had. Defined in real_device/.
Result<OwnerFactory> owner_factory_of(const std::string& backend);

// The same of the device: of "cuda" and "both" one that carries out on the first device what the fake one decides. Made
// in the process that uses it, never before it forked.
Result<DeviceFactory> device_factory_of(const std::string& backend);

// The checks that an owner with these powers does not let be decided.
std::vector<Invariant> undecidable_for(const fakes::OwnerPowers& powers);

}  // namespace holdfast::sim
