// What the core is given, bundled: one type names the four seams, one object holds a reference to each.
#pragma once

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/core/sync.hpp"
#include "holdfast/core/time.hpp"

namespace holdfast {

// The referred objects outlive everything made from it.
template <FluxonRuntime F, CudaRuntime C, Clock T, Sync S>
struct RuntimeOf {
  using Fluxon = F;
  using Cuda = C;
  using ClockType = T;
  using SyncType = S;

  F& fluxon;
  C& cuda;
  T& clock;
  S& sync;
};

template <class R>
concept Runtime = requires(R& runtime) {
  requires FluxonRuntime<typename R::Fluxon>;
  requires CudaRuntime<typename R::Cuda>;
  requires Clock<typename R::ClockType>;
  requires Sync<typename R::SyncType>;
  { runtime.fluxon } -> std::convertible_to<typename R::Fluxon&>;
  { runtime.cuda } -> std::convertible_to<typename R::Cuda&>;
  { runtime.clock } -> std::convertible_to<typename R::ClockType&>;
  { runtime.sync } -> std::convertible_to<typename R::SyncType&>;
};

}  // namespace holdfast
