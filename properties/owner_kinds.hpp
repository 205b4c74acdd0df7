// The owners that the Plan contract's tests are run over: the fake one, its semantics over real shared memory, the same
// as a library from outside; and, where HOLDFAST_CONFORMANCE_PLUGIN names a file, that library.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "holdfast/fakes/fluxon_owner.hpp"
#include "holdfast/real_device/plugin_owner.hpp"
#include "holdfast/real_device/shared_memory.hpp"

namespace holdfast::fakes {

// An owner and what it stands on.
class OwnerUnderTest {
 public:
  virtual ~OwnerUnderTest() = default;
  virtual Owner& owner() = 0;
};

struct OwnerKind {
  std::string name;
  std::function<std::unique_ptr<OwnerUnderTest>(VirtualClock& clock, const OwnerOptions& options)> make;
  friend std::ostream& operator<<(std::ostream& out, const OwnerKind& kind) { return out << kind.name; }
};

class FakeUnderTest final : public OwnerUnderTest {
 public:
  FakeUnderTest(VirtualClock& clock, const OwnerOptions& options) : owner_(arena_, clock, options) {}
  Owner& owner() override { return owner_; }

 private:
  Arena arena_;
  FakeOwner owner_;
};

class SharedMemoryUnderTest final : public OwnerUnderTest {
 public:
  SharedMemoryUnderTest(VirtualClock& clock, const OwnerOptions& options) : owner_(memory_, heap_, clock, options) {}
  Owner& owner() override { return owner_; }

 private:
  device::SharedMemory memory_{device::PageChoice::plain};
  Arena heap_;
  FakeOwner owner_;
};

class PluginUnderTest final : public OwnerUnderTest {
 public:
  PluginUnderTest(const std::string& file, VirtualClock& clock, const OwnerOptions& options)
      : owner_(loaded(file), clock, options) {}
  Owner& owner() override { return owner_; }

 private:
  static std::shared_ptr<const device::PluginLibrary> loaded(const std::string& file) {
    auto library = device::PluginLibrary::load(file);
    if (!library) throw std::runtime_error(to_string(library.error()));
    return std::move(*library);
  }

  device::PluginOwner owner_;
};

template <class UnderTest>
OwnerKind kind_of(std::string name) {
  return {std::move(name),
          [](VirtualClock& clock, const OwnerOptions& options) { return std::make_unique<UnderTest>(clock, options); }};
}
inline OwnerKind plugin_kind(std::string name, std::string file) {
  return {std::move(name), [file = std::move(file)](VirtualClock& clock, const OwnerOptions& options) {
            return std::make_unique<PluginUnderTest>(file, clock, options);
          }};
}

inline std::vector<OwnerKind> all_owner_kinds() {
  std::vector<OwnerKind> kinds{kind_of<FakeUnderTest>("Fake"), kind_of<SharedMemoryUnderTest>("SharedMemory"),
                               plugin_kind("Plugin", HOLDFAST_EMBEDDED_OWNER)};
  if (const char* file = std::getenv("HOLDFAST_CONFORMANCE_PLUGIN")) kinds.push_back(plugin_kind("Stranger", file));
  return kinds;
}
inline std::string name_of_kind(const testing::TestParamInfo<OwnerKind>& kind) { return kind.param.name; }

}  // namespace holdfast::fakes
