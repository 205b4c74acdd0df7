// What the caller of a registration sees of it, and has a say in.
#pragma once

#include <cstdint>
#include <span>

#include "holdfast/core/fluxon_runtime.hpp"

namespace holdfast {

// Called by SegmentRegistry::ensure on the thread that called it, in this order, and only where there is something to
// register. The registry's turn is held: no call from here may come to the same registry.
class RegistrationWatch {
 public:
  virtual ~RegistrationWatch() = default;
  // These are registered next; what they replace has been unregistered. False: nothing is registered.
  virtual bool before_all(std::span<const Segment> segments) = 0;
  // False: what this call has registered is unregistered.
  virtual bool before_piece() = 0;
  // So many bytes more of the mappings need nothing any more: registered, or answered by translation.
  virtual void done(std::uint64_t bytes) = 0;
};

}  // namespace holdfast
