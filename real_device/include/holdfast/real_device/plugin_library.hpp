// A Fluxon runtime from outside: a shared library that exports the table of holdfast_plugin.h.
#pragma once

#include <memory>
#include <string>

#include "holdfast/core/result.hpp"
#include "holdfast/real_device/holdfast_plugin.h"
#include "holdfast/sim/backend_factory.hpp"

namespace holdfast::device {

// Checked once, when it is loaded. Stays loaded as long as this lives.
class PluginLibrary {
 public:
  // InvalidArgument, with the file, what is wrong with it, and what would help: it is no library, exports no table,
  // speaks another version, or lacks functions.
  static Result<std::shared_ptr<const PluginLibrary>> load(const std::string& path);
  ~PluginLibrary();
  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;

  // As far as both sides know it: what the library does not have is null.
  [[nodiscard]] const holdfast_plugin_api& api() const { return api_; }
  [[nodiscard]] const holdfast_inside* inside() const { return api_.inside == nullptr ? nullptr : &inside_; }
  [[nodiscard]] const holdfast_environment* environment() const {
    return api_.environment == nullptr ? nullptr : &environment_;
  }
  [[nodiscard]] const sim::RuntimeInfo& info() const { return info_; }

 private:
  PluginLibrary() = default;
  // Empty, or what is wrong with it.
  [[nodiscard]] std::string read_table(void* entry);

  void* handle_ = nullptr;
  holdfast_plugin_api api_{};
  holdfast_inside inside_{};
  holdfast_environment environment_{};
  sim::RuntimeInfo info_;
};

}  // namespace holdfast::device
