// What the core needs of an inference runtime: a ring, private latent targets, and places to publish to. Adapting a
// runtime means implementing this; neither store nor manager is touched.
#pragma once

#include <cstdint>
#include <vector>

#include "holdfast/core/copy_stream.hpp"
#include "holdfast/core/result.hpp"
#include "holdfast/core/tensor.hpp"

namespace holdfast {

// How far the ring is filled, in tokens: `local` in physical order, `global` in the sequence.
struct RingIndices {
  std::uint64_t local_end_tokens = 0;
  std::uint64_t global_end_tokens = 0;
  friend bool operator==(const RingIndices&, const RingIndices&) = default;
};

// All calls come from within a binding's hooks, on the caller's thread. The tensors and the stream stay valid for the
// session's life. Frame f of a ring tensor is its bytes [f * frame_bytes, (f + 1) * frame_bytes).
class Engine {
 public:
  virtual ~Engine() = default;
  // Where the engine's own work on its tensors runs.
  virtual StreamRef stream() = 0;
  // Where copies run: on the engine's own stream, whose order is all that is needed. An engine that lets its work go on
  // beside them gives another stream, with an event recorded behind what it has done to its tensors so far, and follows
  // the copies. The event is used until the next call, and not after the hook.
  virtual CopyStream copy_stream() { return stream(); }
  // The tensors of layer 0, those of layer 1, ..., in key order (K, V, and their scales where K and V are quantised):
  // each the whole ring.
  virtual std::vector<DeviceTensor> ring() = 0;
  // How far the ring is filled now.
  virtual RingIndices indices() = 0;
  // The latent of the chunk just finalized.
  virtual DeviceTensor finalized_latent() = 0;
  // One private target per chunk, visible to nobody until publish_latents.
  virtual Result<std::vector<DeviceTensor>> latent_targets(std::uint32_t chunks) = 0;

  // In this order, and only after every transfer they stand on succeeded. `publish_kv_indices({0, 0})` says "empty":
  // the ring's bytes are undefined.
  virtual void publish_kv_indices(RingIndices indices) = 0;
  virtual void publish_latents(std::uint32_t chunks) = 0;
  // Generation goes on after `chunks`; the engine burns `draws` random draws first, or it diverges silently.
  virtual void fast_forward(std::uint32_t chunks, std::uint64_t draws) = 0;
};

}  // namespace holdfast
