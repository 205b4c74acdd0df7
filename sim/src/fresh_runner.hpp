// The worker's side of a fresh process: starts it when it is first needed, gives it traces, and takes a new one when
// the old has run so many that it is not fresh any more.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "holdfast/sim/campaign.hpp"

namespace holdfast::sim {

// The harness itself cannot go on: no seed is to blame.
struct HarnessFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What the fresh process did with a trace. It says why when its text could not even be read.
struct FreshAnswer {
  RunResult run;
  std::string unreadable;
};

class FreshRunner {
 public:
  struct Options {
    std::vector<std::string> program;  // an executable and its first words; it calls serve_fresh_runs with the rest
    std::uint64_t perturbation = 0;
    std::vector<Invariant> disabled;
    std::uint32_t runs_max = 1;  // of one process
  };
  explicit FreshRunner(Options options);
  ~FreshRunner();
  FreshRunner(const FreshRunner&) = delete;
  FreshRunner& operator=(const FreshRunner&) = delete;

  // Throws HarnessFailure when the process cannot be had, std::runtime_error when the run ends it or throws.
  FreshAnswer run(const std::string& trace_text);
  // In a process that has run nothing yet, with the log kept as text.
  FreshAnswer run_logged(const std::string& trace_text);

 private:
  FreshAnswer ask(const std::string& trace_text, bool logged);
  void start();
  // How it ended: "the process ended by signal 11 (...)".
  std::string end();

  Options options_;
  pid_t pid_ = -1;  // -1: none
  int socket_ = -1;
  std::string stream_;
  std::uint32_t runs_ = 0;
};

}  // namespace holdfast::sim
