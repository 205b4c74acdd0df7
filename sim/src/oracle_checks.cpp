#include <algorithm>
#include <array>
#include <string_view>

#include "holdfast/sim/cold_ring.hpp"
#include "holdfast/sim/oracle.hpp"
#include "holdfast/sim/pseudo_bytes.hpp"
#include "holdfast/sim/stand_in_engine.hpp"

namespace holdfast::sim {
namespace {

std::string text_of(const RingIndices& indices) {
  return "{" + std::to_string(indices.local_end_tokens) + ", " + std::to_string(indices.global_end_tokens) + "}";
}

}  // namespace

std::string Oracle::place(NodeIndex node, std::size_t tensor, std::uint32_t frame) const {
  const EngineLayout& sizes = layouts_[nodes_[node].layout];
  if (tensor == sizes.tensors()) return "the latent of " + describe(node);
  static constexpr std::array<std::string_view, kScaledParts> kWords{"K", "V", "the scales of K", "the scales of V"};
  const ChunkShape shape = sizes.geometry.chunk_shape();
  return std::string(kWords[static_cast<std::size_t>(shape.part_of(tensor))]) + " of layer " +
         std::to_string(shape.layer_of(tensor)) + ", frame " + std::to_string(frame) + " of " + describe(node);
}

std::optional<Oracle::Wrong> Oracle::judge(const std::byte* bytes, NodeIndex node, std::size_t tensor,
                                           std::uint32_t frame) {
  const EngineLayout& sizes = layouts_[nodes_[node].layout];
  const bool latent = tensor == sizes.tensors();
  const std::uint64_t size = latent ? sizes.geometry.latent_bytes : sizes.frame_bytes[tensor];
  const std::uint64_t digest = digest_of(bytes, size);
  if (digest == frame_digest(node, tensor, frame)) return std::nullopt;

  Wrong wrong;
  wrong.consequence = spread_.contains(digest);
  wrong.what = "should be " + place(node, tensor, frame);
  if (const std::optional<Origin> origin = origin_of(digest)) {
    const OracleNode& found = nodes_[origin->node];
    const bool same_space = found.namespace_id == nodes_[node].namespace_id && found.layout == nodes_[node].layout;
    wrong.invariant = same_space ? Invariant::whole_window : Invariant::namespace_isolation;
    wrong.what += ", holds " + place(origin->node, origin->tensor, origin->frame);
    wrong.culprit = found.layout != nodes_[node].layout ? "another layout's bytes"
                    : !same_space                       ? "another world's bytes"
                                                        : "another place's bytes";
    if (found.layout != nodes_[node].layout) wrong.what += " in another layout";
    return wrong;
  }
  std::vector<std::byte> expected(size);
  fill_pseudo_bytes(expected.data(), size, frame_seed(nodes_[node], tensor, frame));
  const auto [at, with] = std::mismatch(bytes, bytes + size, expected.begin());
  const bool one_value = std::all_of(bytes, bytes + size, [&](std::byte byte) { return byte == bytes[0]; });
  wrong.what += ", first wrong byte at " + std::to_string(at - bytes) + " of " + std::to_string(size);
  wrong.culprit = one_value ? "bytes that nobody wrote" : "bytes of nowhere";
  if (one_value) wrong.what += ", every byte is " + std::to_string(std::to_integer<int>(bytes[0]));
  return wrong;
}

void Oracle::report(Invariant invariant, const std::string& message, std::string_view culprits) {
  context_.violate(invariant, {}, message, culprits);
  if (!after_restart_) return;
  const std::string after = std::string(name_of(invariant)) + ", " + std::string(culprits);
  context_.violate(Invariant::restart_safe, {}, "after a restart: " + message, after);
}

void Oracle::count_exact(std::uint64_t times) {
  context_.verdicts.checked(Invariant::exact_bytes, times);
  if (after_restart_) context_.verdicts.checked(Invariant::restart_safe, times);
}

bool Oracle::check_resume(StandInEngine& engine, std::uint32_t matched_chunks, std::uint32_t claimed_chunks) {
  const std::span<const NodeIndex> path = engine.path();
  const EngineLayout& sizes = engine.layout();
  const Geometry& geometry = sizes.geometry;
  const StandInEngine::Published& published = engine.published();
  const std::string who = "resume of " + std::to_string(matched_chunks) + " chunks: ";

  context_.verdicts.checked(Invariant::whole_window);
  count_exact();
  const bool others =
      claimed_namespaces_.size() > (path.empty() ? 0U : claimed_namespaces_.count(nodes_[path[0]].namespace_id));
  if (others) context_.verdicts.checked(Invariant::namespace_isolation);

  if (matched_chunks > path.size()) {
    report(Invariant::whole_window, who + "the session has only " + std::to_string(path.size()), "too many chunks");
    return false;
  }
  for (std::uint32_t i = 0; i < matched_chunks; ++i) {
    if (!knows(path[i])) work_out(path[i]);
  }
  bool right = true;
  const auto wrong = [&](Invariant invariant, const std::string& message, std::string_view culprit) {
    right = false;
    report(invariant, who + message, culprit);
  };
  ColdRing ring;
  ring.configure(geometry);
  for (std::uint32_t i = 0; i < matched_chunks && ring.has_room(); ++i) ring.append_chunk();
  const RingIndices expected{ring.size() * geometry.frame_tokens, ring.frames_seen() * geometry.frame_tokens};
  if (engine.indices() != expected) {
    wrong(Invariant::whole_window,
          "published indices " + text_of(engine.indices()) + ", a cold run has " + text_of(expected), "indices");
  }
  const std::uint64_t draws = static_cast<std::uint64_t>(matched_chunks) * (geometry.timesteps - 1);
  if (published.chunks != matched_chunks || published.draws != draws) {
    wrong(Invariant::exact_bytes,
          "went on after " + std::to_string(published.chunks) + " chunks with " + std::to_string(published.draws) +
              " draws burnt, a cold run has " + std::to_string(draws),
          published.chunks != matched_chunks ? "chunks" : "draws");
  }
  const std::uint32_t latents =
      geometry.latent_bytes == 0 ? 0 : std::min({published.latents, engine.target_count(), matched_chunks});
  if (geometry.latent_bytes != 0 && latents != std::max(published.latents, matched_chunks)) {
    wrong(Invariant::exact_bytes,
          "published " + std::to_string(published.latents) + " latents, of " + std::to_string(engine.target_count()) +
              " that it asked a place for",
          "number of latents");
  }

  // One wrong frame is told; the others would say the same.
  bool held_right = true;
  const auto told = [&](const std::string& where, const Wrong& what) {
    right = held_right = false;
    if (!what.consequence)
      report(what.invariant, who + where + " " + what.what, where + " " + std::string(what.culprit));
  };
  for (std::size_t position = 0; position < ring.size() && held_right; ++position) {
    const std::uint64_t frame = ring[position];
    const NodeIndex chunk = path[frame / geometry.frames_per_chunk];
    const auto within = static_cast<std::uint32_t>(frame % geometry.frames_per_chunk);
    for (std::size_t tensor = 0; tensor < sizes.tensors() && held_right; ++tensor) {
      if (const auto what = judge(engine.frame(tensor, position), chunk, tensor, within)) {
        told("ring frame " + std::to_string(position), *what);
      }
    }
  }
  for (std::uint32_t i = 0; i < latents && held_right; ++i) {
    if (const auto what = judge(engine.latent(i), path[i], sizes.tensors(), 0)) {
      told("latent " + std::to_string(i), *what);
    }
  }
  // Right bytes that nobody claimed; of wrong ones it has been told what they are.
  if (held_right && matched_chunks > claimed_chunks) {
    wrong(Invariant::whole_window, "a blob was claimed of only " + std::to_string(claimed_chunks), "no claim");
  }
  return right;
}

bool Oracle::check_cold(StandInEngine& engine, bool failed) {
  context_.verdicts.checked(Invariant::no_publish_on_failure);
  if (after_restart_) context_.verdicts.checked(Invariant::restart_safe);
  const StandInEngine::Published& published = engine.published();
  if (!published.filled && published.latents == 0 && published.chunks == 0 && published.draws == 0) return true;
  report(Invariant::no_publish_on_failure,
         std::string(failed ? "a failed resume" : "a resume that matched nothing") + " published indices " +
             text_of(published.largest) + ", " + std::to_string(published.latents) + " latents, went on after " +
             std::to_string(published.chunks) + " chunks with " + std::to_string(published.draws) + " draws",
         failed ? "a failed resume" : "a resume that matched nothing");
  return false;
}

}  // namespace holdfast::sim
