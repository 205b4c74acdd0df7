// The runtimes that a program can be given by name. The simulator declares the factory; the device part, or its stub in
// a build without the toolkit, defines it when the program is linked.
#pragma once

#include <string>
#include <vector>

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
};

// The fakes, which are always there.
BackendProbe probe_fake_backend();
// `backend` is "cuda" or "plugin:FILE". Defined in real_device/.
BackendProbe probe_real_backend(const std::string& backend);

}  // namespace holdfast::sim
