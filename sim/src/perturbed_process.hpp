// What a perturbation changes in the process itself: the heap's fill and order, and the locale. Undone at the end.
#pragma once

#include <locale>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/sim/executor.hpp"

namespace holdfast::sim {

class PerturbedProcess {
 public:
  explicit PerturbedProcess(const Perturbation& perturbation);
  ~PerturbedProcess();
  PerturbedProcess(const PerturbedProcess&) = delete;
  PerturbedProcess& operator=(const PerturbedProcess&) = delete;

 private:
  bool filled_ = false;
  std::vector<std::unique_ptr<char[]>> blocks_;  // those that keep the others apart
  bool relocated_ = false;
  std::string c_locale_;
  std::locale locale_;
};

}  // namespace holdfast::sim
