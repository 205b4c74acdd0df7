// Where copies run, and what orders them with the work of others on the same tensors.
#pragma once

#include <optional>

#include "holdfast/core/cuda_runtime.hpp"

namespace holdfast {

// Whoever works on the tensors of copies on another stream than theirs.
class CopyFollower {
 public:
  virtual ~CopyFollower() = default;
  // A batch was submitted to `copies`, or a part of it. Work that touches its tensors from now on waits for `done`,
  // which is recorded behind the batch and valid during this call only: a stream's wait captures it. None: copies do
  // not overlap, or it could not be recorded; such work waits for all that `copies` holds now.
  virtual void follow(StreamRef copies, std::optional<EventRef> done) = 0;
};

struct CopyStream {
  // The order of this stream is all that is needed. Implicit: a stream is where copies run.
  CopyStream(StreamRef on) : stream(on) {}

  StreamRef stream;
  std::optional<EventRef> producer;  // what the tensors' owner has done so far: the copies wait for it
  CopyFollower* follower = nullptr;  // told of every batch; outlives the operation
};

}  // namespace holdfast
