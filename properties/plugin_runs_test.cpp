// The same traces over the embedded owner as a library from outside: the event log is the fake owner's, byte for byte;
// and one that cannot be looked into breaks no promise by that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "holdfast/sim/backend_factory.hpp"
#include "holdfast/sim/executor.hpp"
#include "holdfast/sim/generator.hpp"
#include "strange_plugin.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kSeedsCompared = 120;

SystemFactory over_plugin(const std::string& file) {
  SystemFactory factory = make_production_system;
  factory.make_owner = owner_factory_of("plugin:" + file).value();
  return factory;
}

TEST(PluginRuns, TheEmbeddedOwnersLogIsTheFakeOnes) {
  Executor fake(make_production_system);
  Executor plugin(over_plugin(HOLDFAST_EMBEDDED_OWNER));
  for (const std::string_view profile : {"default", "hostile", "side-by-side"}) {
    for (std::uint64_t seed = 1; seed <= kSeedsCompared; ++seed) {
      const Trace trace = generate(seed, *profile_named(profile));
      const RunResult expected = fake.run(trace);
      const RunResult result = plugin.run(trace);
      ASSERT_EQ(result.log_hash, expected.log_hash) << profile << " seed " << seed;
      EXPECT_EQ(result.checked, expected.checked) << profile << " seed " << seed;
      EXPECT_EQ(result.frame_hashes, expected.frame_hashes);
      EXPECT_TRUE(result.violations.empty());
    }
  }
}

TEST(PluginRuns, WhatCannotBeLookedIntoIsHeldToWhatCanBeDecided) {
  for (const char* how : {"opaque", "no_environment"}) {
    const StrangePlugin strange(how);
    const BackendProbe probe = probe_real_backend(StrangePlugin::backend());
    ASSERT_TRUE(probe.usable) << probe.reason;
    Executor executor(over_plugin(StrangePlugin::file()));
    RunOptions options;
    options.disabled = probe.undecidable;
    std::uint64_t checks = 0;
    for (std::uint64_t seed = 1; seed <= kSeedsCompared; ++seed) {
      const RunResult result = executor.run(generate(seed, *profile_named("default")), options);
      for (const Violation& violation : result.violations) {
        ADD_FAILURE() << how << " seed " << seed << ": " << name_of(violation.invariant) << " at " << violation.call
                      << ": " << violation.message;
      }
      for (const std::uint64_t count : result.checked) checks += count;
    }
    EXPECT_GT(checks, kSeedsCompared * 100);
  }
}

TEST(PluginRuns, WrongBytesAreFoundAlthoughNobodyCanLookInside) {
  for (const char* how : {"swap", "opaque_swap"}) {
    const StrangePlugin strange(how);
    Executor executor(over_plugin(StrangePlugin::file()));
    RunOptions options;
    options.disabled = probe_real_backend(StrangePlugin::backend()).undecidable;
    bool found = false;
    for (std::uint64_t seed = 1; seed <= kSeedsCompared && !found; ++seed) {
      for (const Violation& violation : executor.run(generate(seed, *profile_named("default")), options).violations) {
        found |= violation.invariant == Invariant::exact_bytes;
      }
    }
    EXPECT_TRUE(found) << how;
  }
}

}  // namespace
}  // namespace holdfast::sim
