// The top of the chain of layers where sessions take turns: before each call of the store somebody else may go on.
#pragma once

#include <memory>

#include "holdfast/core/backend.hpp"
#include "holdfast/sim/calls.hpp"

namespace holdfast::sim {

// Told of each call before it is made. It may let others run first.
class TurnTaker {
 public:
  virtual ~TurnTaker() = default;
  virtual void before(Call call) = 0;
};

// Changes no call and no answer. The referred objects outlive it.
class Turnstile {
 public:
  Turnstile(TurnTaker& turns, FluxonBackend& fluxon, CudaBackend& cuda, FileBackend& files);
  ~Turnstile();

  FluxonBackend& fluxon();
  CudaBackend& cuda();
  FileBackend& files();

 private:
  struct Fluxon;
  struct Cuda;
  struct Files;
  std::unique_ptr<Fluxon> fluxon_;
  std::unique_ptr<Cuda> cuda_;
  std::unique_ptr<Files> files_;
};

}  // namespace holdfast::sim
