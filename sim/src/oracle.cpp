#include "holdfast/sim/oracle.hpp"

#include <algorithm>

#include "holdfast/core/check.hpp"
#include "holdfast/sim/pseudo_bytes.hpp"

namespace holdfast::sim {
namespace {

// Everything in it but break_even_k, which decides what is reused and not what is computed.
std::uint64_t digest_of_geometry(const Geometry& geometry) {
  std::vector<std::uint64_t> words{geometry.n_layers,     geometry.frames_per_chunk, geometry.frame_tokens,
                                   geometry.ring_frames,  geometry.sink_frames,      geometry.full_length ? 1U : 0U,
                                   geometry.latent_bytes, geometry.timesteps,        geometry.kv_token_bytes.size()};
  words.insert(words.end(), geometry.kv_token_bytes.begin(), geometry.kv_token_bytes.end());
  // Others keep the digest that they have.
  if (geometry.scale_token_bytes != 0) words.push_back(geometry.scale_token_bytes);
  return digest_of(words.data(), words.size() * sizeof(std::uint64_t));
}

constexpr std::uint64_t kNamespaceTag = 0x6e61'6d65;

}  // namespace

std::uint64_t Oracle::mix_seed(std::uint64_t a, std::uint64_t b) { return mix(a, b); }

void Oracle::reset(std::uint64_t hash_seed) {
  layouts_.clear();
  nodes_.clear();
  digests_.clear();
  by_seed_ = decltype(by_seed_)(16, SeededHash{hash_seed});
  spread_.clear();
  claimed_namespaces_.clear();
  origins_.clear();
  origins_made_for_ = 0;
  after_restart_ = false;
}

LayoutIndex Oracle::layout_of(const Geometry& geometry) {
  const std::uint64_t digest = digest_of_geometry(geometry);
  for (std::size_t i = 0; i < layouts_.size(); ++i) {
    if (layouts_[i].digest == digest) return static_cast<LayoutIndex>(i);
  }
  EngineLayout layout;
  layout.geometry = geometry;
  layout.digest = digest;
  for (std::size_t tensor = 0; tensor < geometry.tensors(); ++tensor) {
    layout.frame_bytes.push_back(geometry.token_bytes(tensor) * geometry.frame_tokens);
    layout.frame_bytes_total += layout.frame_bytes.back();
  }
  layouts_.push_back(std::move(layout));
  return static_cast<LayoutIndex>(layouts_.size() - 1);
}

std::uint64_t Oracle::namespace_of(std::uint32_t world, const Geometry& declared) const {
  return mix(mix(kNamespaceTag, world), digest_of_geometry(declared));
}

std::vector<NodeIndex> Oracle::path_of(const SessionSpec& spec, std::span<const std::string> actions) {
  const LayoutIndex layout = layout_of(spec.geometry);
  const std::uint64_t namespace_id = namespace_of(spec.world, spec.declared_geometry);
  std::vector<NodeIndex> path;
  path.reserve(actions.size());
  std::uint64_t identity = namespace_id;
  NodeIndex parent = kNoNode;
  for (const std::string& action : actions) {
    identity = mix(identity, digest_of(action));
    const std::uint64_t seed = mix(identity, layouts_[layout].digest);
    const auto [at, fresh] = by_seed_.try_emplace(seed, static_cast<NodeIndex>(nodes_.size()));
    if (fresh) {
      OracleNode node;
      node.identity = identity;
      node.namespace_id = namespace_id;
      node.seed = seed;
      node.parent = parent;
      node.depth = static_cast<std::uint32_t>(path.size());
      node.world = spec.world;
      node.layout = layout;
      node.action = action;
      nodes_.push_back(node);
    }
    parent = at->second;
    path.push_back(parent);
  }
  return path;
}

std::string Oracle::describe(NodeIndex index) const {
  std::vector<std::string_view> actions;
  for (NodeIndex at = index; at != kNoNode; at = nodes_[at].parent) actions.push_back(nodes_[at].action);
  std::string text = "world " + std::to_string(nodes_[index].world) + " [";
  // Long paths are told by their end.
  constexpr std::size_t kShownMax = 8;
  if (actions.size() > kShownMax) {
    text += "..." + std::to_string(actions.size() - kShownMax) + "...,";
    actions.resize(kShownMax);
  }
  for (auto action = actions.rbegin(); action != actions.rend(); ++action) {
    if (action != actions.rbegin()) text += ',';
    text += *action;
  }
  return text + "]";
}

void Oracle::learn(NodeIndex index, std::span<const std::byte* const> values, const std::byte* latent) {
  OracleNode& node = nodes_[index];
  check(node.first_digest == ~0ULL, "a node is digested once");
  const EngineLayout& sizes = layouts_[node.layout];
  const std::uint32_t frames = sizes.geometry.frames_per_chunk;
  node.first_digest = digests_.size();
  for (std::size_t tensor = 0; tensor < sizes.tensors(); ++tensor) {
    const std::uint64_t bytes = sizes.frame_bytes[tensor];
    for (std::uint32_t frame = 0; frame < frames; ++frame) {
      digests_.push_back(digest_of(values[tensor] + frame * bytes, bytes));
    }
  }
  // A chunk of one frame is its own value.
  for (std::size_t tensor = 0; frames > 1 && tensor < sizes.tensors(); ++tensor) {
    digests_.push_back(digest_of(values[tensor], sizes.value_bytes(tensor)));
  }
  node.latent_digest = sizes.geometry.latent_bytes == 0 ? node.seed : digest_of(latent, sizes.geometry.latent_bytes);
  if (node.parent != kNoNode && !knows(node.parent)) work_out(node.parent);
  const std::uint64_t above = node.parent == kNoNode ? kChainStart : nodes_[node.parent].chain;
  node.chain = mix(above, node.latent_digest);
}

void Oracle::work_out(NodeIndex index) {
  // The chain goes down from the top; an ancestor is worked out by its own call, so there is no deep recursion.
  std::vector<NodeIndex> unknown;
  for (NodeIndex at = index; at != kNoNode && !knows(at); at = nodes_[at].parent) unknown.push_back(at);
  for (auto at = unknown.rbegin(); at != unknown.rend(); ++at) {
    const OracleNode& node = nodes_[*at];
    const EngineLayout& sizes = layouts_[node.layout];
    const std::uint32_t frames = sizes.geometry.frames_per_chunk;
    scratch_.resize(sizes.frame_bytes_total * frames + sizes.geometry.latent_bytes);
    std::vector<const std::byte*> values;
    std::byte* next = scratch_.data();
    for (std::size_t tensor = 0; tensor < sizes.tensors(); ++tensor) {
      values.push_back(next);
      for (std::uint32_t frame = 0; frame < frames; ++frame) {
        fill_pseudo_bytes(next, sizes.frame_bytes[tensor], frame_seed(node, tensor, frame));
        next += sizes.frame_bytes[tensor];
      }
    }
    fill_pseudo_bytes(next, sizes.geometry.latent_bytes, frame_seed(node, sizes.tensors(), 0));
    learn(*at, values, next);
  }
}

std::uint64_t Oracle::frame_digest(NodeIndex index, std::size_t tensor, std::uint32_t frame) const {
  const OracleNode& node = nodes_[index];
  const EngineLayout& sizes = layouts_[node.layout];
  if (tensor == sizes.tensors()) return node.latent_digest;
  return digests_[node.first_digest + tensor * sizes.geometry.frames_per_chunk + frame];
}

std::uint64_t Oracle::value_digest(NodeIndex index, std::size_t tensor) const {
  const OracleNode& node = nodes_[index];
  const EngineLayout& sizes = layouts_[node.layout];
  const std::uint32_t frames = sizes.geometry.frames_per_chunk;
  if (frames == 1) return digests_[node.first_digest + tensor];
  return digests_[node.first_digest + sizes.tensors() * frames + tensor];
}

std::optional<Oracle::Origin> Oracle::origin_of(std::uint64_t digest) {
  if (origins_made_for_ != digests_.size()) {
    origins_made_for_ = digests_.size();
    origins_.clear();
    for (NodeIndex index = 0; index < nodes_.size(); ++index) {
      if (!knows(index)) continue;
      const EngineLayout& sizes = layouts_[nodes_[index].layout];
      const auto tensors = static_cast<std::uint32_t>(sizes.tensors());
      for (std::uint32_t tensor = 0; tensor < tensors; ++tensor) {
        for (std::uint32_t frame = 0; frame < sizes.geometry.frames_per_chunk; ++frame) {
          origins_.try_emplace(frame_digest(index, tensor, frame), Origin{index, tensor, frame});
        }
      }
      origins_.try_emplace(nodes_[index].latent_digest, Origin{index, tensors, 0});
    }
  }
  const auto found = origins_.find(digest);
  if (found == origins_.end()) return std::nullopt;
  return found->second;
}

}  // namespace holdfast::sim
