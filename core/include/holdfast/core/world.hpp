// What a session says of its world: whose chunks it shares, how their bytes are laid out, and the ring they go into.
#pragma once

#include <cstdint>
#include <vector>

#include "holdfast/core/keys.hpp"
#include "holdfast/core/layout.hpp"
#include "holdfast/core/ring_window.hpp"
#include "holdfast/core/tensor.hpp"
#include "holdfast/core/tier_store.hpp"

namespace holdfast {

struct WorldSpec {
  NodeKey root;  // root_hash over a config that holds layout.to_config()
  Layout layout;
  RingGeometry ring;
  std::uint32_t break_even_k = 1;  // fewer matched chunks are not reused
};

// Layout and ring are sane and agree with each other. Errors as their own validate().
[[nodiscard]] Status validate_world(const WorldSpec& spec);

// The lengths of a chunk's values in key order, see KeyBatch::add_chunk.
[[nodiscard]] std::vector<std::uint64_t> value_lengths(const Layout& layout);
// What these take from a segment.
[[nodiscard]] std::uint64_t slot_bytes_of(std::span<const std::uint64_t> value_bytes);

// InvalidArgument unless `ring` holds K and V of every layer, each as long as the ring.
[[nodiscard]] Status check_ring(const WorldSpec& spec, std::span<const DeviceTensor> ring);

// The chunk that ends at `local_end_tokens` of the ring: its K and V in key order, as parts of the ring's tensors.
[[nodiscard]] Result<std::vector<DeviceTensor>> finalized_chunk(const WorldSpec& spec,
                                                                std::span<const DeviceTensor> ring,
                                                                std::uint64_t local_end_tokens);

// The copies that bring `runs` from the values of the chunks of `path` (depths, in key order chunk by chunk) into ring
// tensors.
[[nodiscard]] std::vector<ReadCopy> window_copies(const Layout& layout, std::span<const std::uint32_t> path,
                                                  std::span<const CopyRun> runs);

}  // namespace holdfast
