// SIGINT and SIGTERM end long work in good order; a second one has its usual effect.
#pragma once

#include <csignal>

namespace holdfast::sim {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  [[nodiscard]] bool arrived() const;

 private:
  struct sigaction interrupt_{};
  struct sigaction terminate_{};
};

}  // namespace holdfast::sim
