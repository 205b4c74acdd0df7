// An engine that writes what a test tells it to, and the worlds that it computes in.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/engine.hpp"
#include "holdfast/core/sha256.hpp"
#include "holdfast/core/world.hpp"
#include "holdfast/fakes/cuda_device.hpp"

namespace holdfast {

inline constexpr RingGeometry kShortRing{1, 2, 3, 1, false};  // rolls from the fourth chunk on
inline constexpr RingGeometry kFullRing{1, 2, 16, 0, true};

// A world with two layers, whose values are 48 bytes a token.
inline WorldSpec test_world(const RingGeometry& ring, std::uint32_t latent_bytes, std::string_view world) {
  WorldSpec spec;
  spec.layout.n_layers = 2;
  spec.layout.kv_shape = {48};
  spec.layout.kv_dtype = "uint8";
  if (latent_bytes > 0) {
    spec.layout.latent_shape = {latent_bytes};
    spec.layout.latent_dtype = "uint8";
  }
  spec.layout.chunk_size = ring.frames_per_chunk;
  spec.layout.frame_tokens = ring.frame_tokens;
  spec.ring = ring;
  spec.root = root_hash({world, "prompt", config_hash({"{}", "weights"})});
  return spec;
}

// An engine whose chunks are a function of the actions so far: byte b of frame f of chunk n of tensor t is made from
// (history, t, f). Its ring is a vector of frames that is shifted when it is full, as a runtime's is.
class TestEngine : public Engine {
 public:
  TestEngine(fakes::FakeCuda& device, StreamRef on, const WorldSpec& spec) : device_(device), stream_(on), spec_(spec) {
    for (const std::uint64_t bytes : value_lengths(spec.layout)) {
      frame_bytes_.push_back(bytes / spec.layout.chunk_size);
      ring_.push_back(allocate(frame_bytes_.back() * spec.ring.ring_frames));
    }
    if (spec.layout.has_latent()) latent_ = allocate(spec.layout.latent_bytes());
  }

  StreamRef stream() override { return stream_; }
  std::vector<DeviceTensor> ring() override { return ring_; }
  RingIndices indices() override { return indices_; }
  DeviceTensor finalized_latent() override { return latent_; }
  Result<std::vector<DeviceTensor>> latent_targets(std::uint32_t chunks) override {
    targets_.clear();
    for (std::uint32_t i = 0; i < chunks; ++i) targets_.push_back(allocate(spec_.layout.latent_bytes()));
    return targets_;
  }
  void publish_kv_indices(RingIndices indices) override {
    published.push_back("indices " + std::to_string(indices.local_end_tokens) + " " +
                        std::to_string(indices.global_end_tokens));
    indices_ = indices;
  }
  void publish_latents(std::uint32_t chunks) override { published.push_back("latents " + std::to_string(chunks)); }
  void fast_forward(std::uint32_t chunks, std::uint64_t draws) override {
    published.push_back("forward " + std::to_string(chunks) + " draws " + std::to_string(draws));
  }

  // Computes the chunk that `history` (all actions up to and with it) leads to.
  void generate(const std::string& history) {
    const std::uint32_t frames = spec_.ring.frames_per_chunk;
    const std::uint64_t tokens = spec_.ring.frame_tokens;
    std::uint64_t held = indices_.local_end_tokens / tokens;
    const std::uint64_t over = held + frames > spec_.ring.ring_frames ? held + frames - spec_.ring.ring_frames : 0;
    for (std::size_t t = 0; t < ring_.size(); ++t) {
      auto* base = reinterpret_cast<std::uint8_t*>(ring_[t].data);
      const std::uint64_t size = frame_bytes_[t];
      const std::uint64_t sink = spec_.ring.sink_frames;
      if (over > 0) std::memmove(base + sink * size, base + (sink + over) * size, (held - sink - over) * size);
      for (std::uint32_t f = 0; f < frames; ++f) fill(base + (held - over + f) * size, size, history, t, f);
    }
    if (latent_.bytes > 0) fill(reinterpret_cast<std::uint8_t*>(latent_.data), latent_.bytes, history, 99, 0);
    held = held - over + frames;
    indices_ = {held * tokens, indices_.global_end_tokens + frames * tokens};
  }

  // Everything that the ring holds up to its end, tensor by tensor.
  [[nodiscard]] std::string contents() const {
    std::string all;
    for (std::size_t t = 0; t < ring_.size(); ++t) {
      const std::uint64_t bytes = indices_.local_end_tokens / spec_.ring.frame_tokens * frame_bytes_[t];
      all.append(reinterpret_cast<const char*>(ring_[t].data), bytes);
    }
    return all;
  }
  [[nodiscard]] const std::vector<DeviceTensor>& targets() const { return targets_; }

  std::vector<std::string> published;

 private:
  DeviceTensor allocate(std::uint64_t bytes) { return {*device_.allocate(bytes), bytes, 0, true}; }
  static void fill(std::uint8_t* at, std::uint64_t bytes, const std::string& history, std::size_t tensor,
                   std::uint32_t frame) {
    const std::string seed = history + "/" + std::to_string(tensor) + "/" + std::to_string(frame);
    const Digest digest = sha256_parts(std::vector<std::string_view>{seed});
    for (std::uint64_t i = 0; i < bytes; ++i) at[i] = static_cast<std::uint8_t>(digest[i % digest.size()] + i / 32);
  }

  fakes::FakeCuda& device_;
  StreamRef stream_;
  WorldSpec spec_;
  std::vector<std::uint64_t> frame_bytes_;
  std::vector<DeviceTensor> ring_;
  DeviceTensor latent_;
  std::vector<DeviceTensor> targets_;
  RingIndices indices_;
};

}  // namespace holdfast
