// The forest against a naive model: plain vectors, every question answered by looking at everything.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/trie.hpp"

namespace holdfast {
namespace {

constexpr std::uint32_t kWorlds = 2;

NodeKey model_root(std::uint32_t world) {
  NodeKey key;
  key.digest[31] = static_cast<std::uint8_t>(world + 1);
  return key;
}

struct ModelNode {
  std::uint32_t world = 0;
  std::vector<std::string> path;  // actions from the root
  std::uint64_t bytes = 0;
  std::uint64_t skeleton_bytes = 0;
  std::uint32_t refs = 0;
  bool present = false;
  bool ready = false;
  bool skeleton = false;
  bool writing = false;

  [[nodiscard]] bool is_below(const ModelNode& other) const {
    return world == other.world && path.size() > other.path.size() &&
           std::equal(other.path.begin(), other.path.end(), path.begin());
  }
};

struct ModelWorld {
  std::uint32_t sink = 0;
  std::uint32_t sessions = 0;
  bool exists = false;
};

// One draw; what its numbers choose depends on what there is.
struct Step {
  std::uint32_t kind = 0;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
  return out << step.kind % 16 << '(' << step.a << ',' << step.b << ')';
}

class Listener : public TrieListener {
 public:
  void on_blob_ready(const Node& node) override { change(blobs, node, 1); }
  void on_blob_withdrawn(const Node& node) override { change(blobs, node, -1); }
  void on_skeleton_ready(const Node& node) override { change(skeletons, node, 1); }
  void on_skeleton_withdrawn(const Node& node) override { change(skeletons, node, -1); }

  std::map<NodeKey, int> blobs;
  std::map<NodeKey, int> skeletons;

 private:
  static void change(std::map<NodeKey, int>& flags, const Node& node, int by) {
    flags[node.key()] += by;
    if (flags[node.key()] == 0) flags.erase(node.key());
  }
};

enum class Sinks { none, some };

class Comparison {
 public:
  Comparison(std::uint64_t seed, Sinks sinks, EvictionPolicy* policy)
      : sinks_(sinks), forest_({.hash_seed = seed, .listener = &listener_, .policy = policy}) {}

  void play(const Step& step) {
    const std::uint32_t world = step.a % kWorlds;
    ModelNode* node = nodes_.empty() ? nullptr : &nodes_[step.a % nodes_.size()];
    switch (step.kind % 16) {
      case 0:
        return open(world, sinks_ == Sinks::some ? step.b % 4 : 0);
      case 1:
        return close(world);
      case 2:
      case 3:
        return create(step);
      case 4:
        return lookup(world, step.b);
      case 5:
        return evict();
      case 6:
        return drop(world);
      default:
        break;
    }
    if (node != nullptr) change(*node, step);
  }

  void compare() {
    ForestCounts expected;
    std::map<NodeKey, int> blobs;
    std::map<NodeKey, int> skeletons;
    for (const ModelWorld& world : worlds_) expected.namespaces += world.exists ? 1 : 0;
    for (const ModelNode& node : nodes_) {
      const Node& real = real_of(node);
      RC_ASSERT(real.blob().present == node.present);
      RC_ASSERT(real.blob().ready == node.ready);
      RC_ASSERT(real.skeleton().ready == node.skeleton);
      RC_ASSERT(real.ref_count() == node.refs);
      RC_ASSERT(real.pinned() == pinned(node));
      RC_ASSERT(forest_.check_evictable(real).has_value() == evictable(node));
      RC_ASSERT(forest_.find(real.key()) == &real);
      ++expected.nodes;
      expected.references += node.refs;
      expected.blobs += node.present ? 1 : 0;
      expected.blob_bytes += node.present ? node.bytes : 0;
      expected.ready_blobs += node.ready ? 1 : 0;
      expected.ready_blob_bytes += node.ready ? node.bytes : 0;
      expected.ready_skeletons += node.skeleton ? 1 : 0;
      expected.skeleton_bytes += node.skeleton ? node.skeleton_bytes : 0;
      if (node.ready) blobs[real.key()] = 1;
      if (node.skeleton) skeletons[real.key()] = 1;
    }
    RC_ASSERT(forest_.counts() == expected);
    RC_ASSERT(listener_.blobs == blobs);
    RC_ASSERT(listener_.skeletons == skeletons);
    compare_eviction_order();
  }

 private:
  [[nodiscard]] bool has_session_or_unpinned_blob(std::uint32_t world) const {
    return worlds_[world].sessions > 0 || std::any_of(nodes_.begin(), nodes_.end(), [&](const ModelNode& node) {
             return node.world == world && node.present && node.path.size() > worlds_[world].sink;
           });
  }
  [[nodiscard]] bool pinned(const ModelNode& node) const {
    return node.path.size() <= worlds_[node.world].sink && has_session_or_unpinned_blob(node.world);
  }
  [[nodiscard]] bool evictable(const ModelNode& node) const {
    return node.present && !pinned(node) && node.refs == 0 && !node.writing;
  }

  Node& real_of(const ModelNode& node) {
    Node* at = forest_.find_namespace(model_root(node.world))->root();
    for (const std::string& action : node.path) {
      at = forest_.find_child(*at, action);
      RC_ASSERT(at != nullptr);
    }
    return *at;
  }
  ModelNode* model_of(const Node& real) {
    for (ModelNode& node : nodes_) {
      if (&real_of(node) == &real) return &node;
    }
    return nullptr;
  }

  void open(std::uint32_t world, std::uint32_t sink) {
    forest_.open_namespace({.root = model_root(world), .sink_chunks = sink});
    worlds_[world].exists = true;
    worlds_[world].sink = std::max(worlds_[world].sink, sink);
    ++worlds_[world].sessions;
  }
  void close(std::uint32_t world) {
    if (worlds_[world].sessions == 0) return;
    forest_.close_namespace(*forest_.find_namespace(model_root(world)));
    --worlds_[world].sessions;
  }
  void create(const Step& step) {
    ModelNode made;
    const std::size_t parent = step.a % (nodes_.size() + kWorlds);
    if (parent < nodes_.size()) {
      made.world = nodes_[parent].world;
      made.path = nodes_[parent].path;
    } else {
      made.world = static_cast<std::uint32_t>(parent - nodes_.size());
    }
    if (!worlds_[made.world].exists) return;
    Node& real_parent =
        made.path.empty() ? *forest_.find_namespace(model_root(made.world))->root() : real_of(nodes_[parent]);
    made.path.push_back(std::to_string(step.b % 3));
    Node* real = forest_.get_or_create(real_parent, made.path.back());
    RC_ASSERT(real->matched_chunks() == made.path.size());
    const bool known = std::any_of(nodes_.begin(), nodes_.end(), [&](const ModelNode& node) {
      return node.world == made.world && node.path == made.path;
    });
    if (!known) nodes_.push_back(made);
  }
  void lookup(std::uint32_t world, std::uint32_t digits) {
    if (!worlds_[world].exists) return;
    std::vector<std::string> actions;
    for (int i = 0; i < 5; ++i, digits /= 3) actions.push_back(std::to_string(digits % 3));
    const std::vector<std::string_view> views(actions.begin(), actions.end());
    std::size_t matched = 0;
    while (matched < actions.size() && std::any_of(
                                           nodes_.begin(), nodes_.end(),
                                           [&](const ModelNode& node) {
                                             return node.world == world && node.ready &&
                                                    node.path.size() == matched + 1 &&
                                                    std::equal(node.path.begin(), node.path.end(), actions.begin());
                                           })) {
      ++matched;
    }
    RC_ASSERT(forest_.lookup(*forest_.find_namespace(model_root(world)), views)->matched_chunks() == matched);
  }
  void evict() {
    Node* victim = forest_.first_evictable();
    if (victim == nullptr) return;
    ModelNode* node = model_of(*victim);
    RC_ASSERT(node != nullptr);
    forest_.forget_blob(*victim);
    node->present = node->ready = false;
  }
  void drop(std::uint32_t world) {
    if (!worlds_[world].exists) return;
    const bool used = std::any_of(nodes_.begin(), nodes_.end(), [&](const ModelNode& node) {
      return node.world == world && (node.refs > 0 || node.writing);
    });
    const bool allowed = !used && !has_session_or_unpinned_blob(world);
    RC_ASSERT(forest_.drop_namespace(*forest_.find_namespace(model_root(world))).has_value() == allowed);
    if (!allowed) return;
    worlds_[world] = {};
    std::erase_if(nodes_, [&](const ModelNode& node) { return node.world == world; });
  }
  void change(ModelNode& node, const Step& step) {
    Node& real = real_of(node);
    Node* const one[] = {&real};
    switch (step.kind % 16) {
      case 7:
      case 8:
      case 9: {
        const std::uint64_t bytes = 1 + step.b % 100;
        RC_ASSERT(forest_.set_blob_ready(real, {.nbytes = bytes}) == !node.ready);
        if (!node.ready) node.bytes = bytes;
        node.present = node.ready = true;
        return;
      }
      case 10:
        RC_ASSERT(forest_.withdraw_blob(real) == node.ready);
        node.ready = false;
        return;
      case 11:
        RC_ASSERT(forest_.forget_blob(real) == node.present);
        node.present = node.ready = false;
        return;
      case 12:
        if (step.b % 2 == 0) {
          RC_ASSERT(forest_.set_skeleton_ready(real, {.nbytes = step.b}) == !node.skeleton);
          if (!node.skeleton) node.skeleton_bytes = step.b;
          node.skeleton = true;
        } else {
          RC_ASSERT(forest_.withdraw_skeleton(real) == node.skeleton);
          node.skeleton = false;
        }
        return;
      case 13:
        forest_.acquire(one);
        ++node.refs;
        return;
      case 14:
        if (node.refs == 0) return;
        forest_.release(one);
        --node.refs;
        return;
      default:
        node.writing = !node.writing;
        forest_.set_being_written(real, node.writing);
        return;
    }
  }

  void compare_eviction_order() {
    std::vector<const ModelNode*> order;
    const auto refuse = [&](const Node& node) {
      order.push_back(model_of(node));
      return false;
    };
    RC_ASSERT(forest_.first_evictable(refuse, std::numeric_limits<std::uint64_t>::max()) == nullptr);
    const auto expected =
        std::count_if(nodes_.begin(), nodes_.end(), [&](const ModelNode& node) { return evictable(node); });
    RC_ASSERT(order.size() == static_cast<std::size_t>(expected));
    std::uint64_t last_access = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      RC_ASSERT(evictable(*order[i]));
      for (std::size_t later = i + 1; later < order.size(); ++later) {
        RC_ASSERT(order[later] != order[i]);
        RC_ASSERT(!order[later]->is_below(*order[i]));
      }
      // Blobs that stop being pinned go last whatever their age, so only without sinks is it the order of access.
      if (sinks_ == Sinks::some) continue;
      RC_ASSERT(real_of(*order[i]).last_access() > last_access);
      last_access = real_of(*order[i]).last_access();
    }
  }

  Sinks sinks_;
  Listener listener_;
  Forest forest_;
  ModelWorld worlds_[kWorlds];
  std::vector<ModelNode> nodes_;
};

rc::Gen<std::vector<Step>> steps() {
  const auto number = rc::gen::inRange<std::uint32_t>(0, 1000);
  return rc::gen::container<std::vector<Step>>(rc::gen::build<Step>(
      rc::gen::set(&Step::kind, number), rc::gen::set(&Step::a, number), rc::gen::set(&Step::b, number)));
}

void play(std::uint64_t seed, Sinks sinks, EvictionPolicy* policy = nullptr) {
  const std::vector<Step> played = *steps();
  Comparison comparison(seed, sinks, policy);
  for (const Step& step : played) {
    comparison.play(step);
    comparison.compare();
  }
}

RC_GTEST_PROP(TrieModel, AgreesWithTheModelAfterEveryStep, (std::uint64_t hash_seed)) { play(hash_seed, Sinks::some); }

RC_GTEST_PROP(TrieModel, AgreesWithTheModelByFrequencyToo, (std::uint64_t hash_seed)) {
  FrequencyAware policy;
  play(hash_seed, Sinks::some, &policy);
}

RC_GTEST_PROP(TrieModel, WithoutSinksEvictsInTheOrderOfAccess, (std::uint64_t hash_seed)) {
  play(hash_seed, Sinks::none);
}

}  // namespace
}  // namespace holdfast
