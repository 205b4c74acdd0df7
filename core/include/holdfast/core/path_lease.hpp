// A matched path of the trie, with references on what a resume needs, so that eviction leaves it alone.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "holdfast/core/stats.hpp"
#include "holdfast/core/trie.hpp"

namespace holdfast {

// What was known of a chunk's values, or of its latent, when its path was looked up: what a read finds is said of the
// very same ones.
struct SeenValues {
  GroupChecksum checksum = {};
  std::uint64_t incarnation = 0;
};

// Whoever takes references gives them back, under its own lock, which the caller does not hold; and is told there what
// was spent on the path meanwhile.
class PathReferences {
 public:
  virtual ~PathReferences() = default;
  virtual void release_references(std::span<Node* const> nodes, const Stats& spent) = 0;
};

// Move-only; lets go of its references on every path. The holder outlives it. Used by one thread at a time, and of its
// nodes only what is fixed is read without the holder's lock.
class PathLease {
 public:
  PathLease() = default;
  // References on every node of `window` have been taken.
  PathLease(PathReferences& holder, std::vector<Node*> chain, std::vector<Node*> window)
      : holder_(&holder), chain_(std::move(chain)), window_(std::move(window)) {}
  PathLease(PathLease&& other) noexcept
      : holder_(std::exchange(other.holder_, nullptr)),
        chain_(std::move(other.chain_)),
        window_(std::move(other.window_)),
        seen_latents_(std::move(other.seen_latents_)),
        seen_chunks_(std::move(other.seen_chunks_)),
        spent_(other.spent_) {}
  PathLease& operator=(PathLease&& other) noexcept {
    if (this != &other) {
      release();
      holder_ = std::exchange(other.holder_, nullptr);
      chain_ = std::move(other.chain_);
      window_ = std::move(other.window_);
      seen_latents_ = std::move(other.seen_latents_);
      seen_chunks_ = std::move(other.seen_chunks_);
      spent_ = other.spent_;
    }
    return *this;
  }
  ~PathLease() { release(); }

  void release() {
    if (holder_ != nullptr) std::exchange(holder_, nullptr)->release_references(window_, spent_);
  }

  // What an operation on the path took.
  void add(const Stats& spent) { spent_ += spent; }
  // Under the holder's lock.
  void see() {
    for (const Node* node : chain_)
      seen_latents_.push_back({node->skeleton().checksum(), node->skeleton_incarnation()});
    for (const Node* node : window_) seen_chunks_.push_back({node->blob().checksum(), node->blob_incarnation()});
  }
  // As seen: of each node of the chain, and of the window. Empty when nobody looked.
  [[nodiscard]] const std::vector<SeenValues>& seen_latents() const { return seen_latents_; }
  [[nodiscard]] const std::vector<SeenValues>& seen_chunks() const { return seen_chunks_; }

  [[nodiscard]] std::uint32_t matched_chunks() const { return static_cast<std::uint32_t>(chain_.size()); }
  // Every matched node, by depth.
  [[nodiscard]] const std::vector<Node*>& chain() const { return chain_; }
  // The nodes whose values the ring needs, oldest first.
  [[nodiscard]] const std::vector<Node*>& window() const { return window_; }

 private:
  PathReferences* holder_ = nullptr;
  std::vector<Node*> chain_;
  std::vector<Node*> window_;
  std::vector<SeenValues> seen_latents_;
  std::vector<SeenValues> seen_chunks_;
  Stats spent_;
};

}  // namespace holdfast
