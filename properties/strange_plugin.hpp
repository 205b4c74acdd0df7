// The library that is another one with something wrong; see plugin/strange_plugin.c.
#pragma once

#include <cstdlib>
#include <string>

namespace holdfast {

// What is wrong with it for those who load it, in this process and in those it starts, as long as this lives.
class StrangePlugin {
 public:
  explicit StrangePlugin(const std::string& what) {
    setenv("HOLDFAST_STRANGE", what.c_str(), 1);
    setenv("HOLDFAST_STRANGE_OVER", HOLDFAST_EMBEDDED_OWNER, 1);
  }
  ~StrangePlugin() {
    unsetenv("HOLDFAST_STRANGE");
    unsetenv("HOLDFAST_STRANGE_OVER");
  }
  StrangePlugin(const StrangePlugin&) = delete;
  StrangePlugin& operator=(const StrangePlugin&) = delete;

  [[nodiscard]] static std::string file() { return HOLDFAST_STRANGE_PLUGIN; }
  [[nodiscard]] static std::string backend() { return "plugin:" + file(); }
};

}  // namespace holdfast
