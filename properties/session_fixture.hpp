// A manager and sessions over mocks of the fakes.
#pragma once

#include <gmock/gmock.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core_fixture.hpp"
#include "holdfast/core/memory_tier_store.hpp"
#include "holdfast/core/session_binding.hpp"
#include "test_engine.hpp"

namespace holdfast {

using TestStore = PlanTierStore<TestRuntime>;
using TestManager = Manager<TestRuntime, TestStore>;
using TestBinding = SessionBinding<TestManager>;
using MemoryManager = Manager<TestRuntime, MemoryTierStore<StdSync>>;

// Instantiated once, in core_instances.cpp.
extern template class Manager<TestRuntime, TestStore>;
extern template class SessionBinding<TestManager>;
extern template class OwnedSnapshots<TestRuntime, MemoryTierStore<StdSync>>;
extern template class Manager<TestRuntime, MemoryTierStore<StdSync>>;
extern template class SessionBinding<MemoryManager>;

class SessionTest : public CoreTest {
 protected:
  explicit SessionTest(const PlanOptions& options = plan_options()) : store(runtime, options) {}

  struct Session {
    std::unique_ptr<TestEngine> engine;
    std::unique_ptr<TestBinding> binding;
    std::string history;
  };

  static WorldSpec world_spec(const RingGeometry& ring, std::uint32_t latent_bytes = 64,
                              std::string_view world = "world") {
    return test_world(ring, latent_bytes, world);
  }

  Session open(const WorldSpec& spec, std::uint32_t timesteps = 4) {
    Session session;
    session.engine = std::make_unique<TestEngine>(device, stream, spec);
    SessionOptions options;
    options.world = spec;
    options.timesteps = timesteps;
    Result<std::unique_ptr<TestBinding>> binding = TestBinding::open(manager, *session.engine, options);
    EXPECT_TRUE(binding.has_value()) << to_string(binding.error());
    session.binding = std::move(*binding);
    return session;
  }

  Result<IngestReceipt> generate(Session& session, const std::string& action) {
    session.history += "|" + action;
    session.engine->generate(session.history);
    return session.binding->on_chunk_finalized(action, absorbed);
  }
  void generate_all(Session& session, const std::vector<std::string>& actions) {
    for (const std::string& action : actions) {
      const Result<IngestReceipt> receipt = generate(session, action);
      ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
    }
  }
  Result<ResumeReceipt> resume(Session& session, const std::vector<std::string>& actions) {
    const std::vector<std::string_view> views(actions.begin(), actions.end());
    Result<ResumeReceipt> receipt = session.binding->resume(views, absorbed);
    for (std::uint32_t i = 0; receipt && i < receipt->matched_chunks; ++i) session.history += "|" + actions[i];
    return receipt;
  }
  // The node of `actions` in `spec`'s world.
  Node* node(const WorldSpec& spec, const std::vector<std::string>& actions) {
    NodeKey key = spec.root;
    for (const std::string& action : actions) key = node_key(key, action);
    return manager.find(key);
  }
  [[nodiscard]] bool ready(const WorldSpec& spec, const std::vector<std::string>& actions) {
    const Node* found = node(spec, actions);
    return found != nullptr && found->blob().ready;
  }

  Absorbed absorbed;
  TestStore store;
  TestManager manager{runtime, store, {}};
};

}  // namespace holdfast
