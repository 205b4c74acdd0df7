// A seed is shorthand for a trace: the same everywhere, always valid, and within the profile's promise.
#include "holdfast/sim/generator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace holdfast::sim {
namespace {

// FNV-1a: nothing that the generator itself uses.
std::uint64_t digest(std::string_view text) {
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325;
  for (const char c : text) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100'0000'01B3;
  return hash;
}

std::uint64_t digest_of_seed(std::uint64_t seed, std::string_view profile) {
  return digest(write_trace(generate(seed, *profile_named(profile))));
}

// Whoever changes the generator on purpose changes these, and tells that old seeds now mean other traces.
TEST(Generator, ASeedIsTheSameTraceOnEveryMachine) {
  EXPECT_EQ(digest_of_seed(0, "default"), 3366892361639106196U);
  EXPECT_EQ(digest_of_seed(17, "default"), 13618689349736616342U);
  EXPECT_EQ(digest_of_seed(~0ULL, "default"), 5883169519099836347U);
  EXPECT_EQ(digest_of_seed(17, "calm"), 10341043534034219608U);
  EXPECT_EQ(digest_of_seed(17, "faulty"), 10024797552432453100U);
}

TEST(Generator, TheSameSeedTwiceIsTheSameTrace) {
  for (const Profile& profile : profiles()) EXPECT_EQ(generate(5, profile), generate(5, profile)) << profile.name;
}

TEST(Generator, SeedsDiffer) {
  std::set<std::uint64_t> digests;
  constexpr std::uint64_t kSeeds = 500;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) digests.insert(digest_of_seed(seed, "default"));
  EXPECT_EQ(digests.size(), kSeeds);
}

TEST(Generator, EveryTraceIsValid) {
  for (const Profile& profile : profiles()) {
    for (std::uint64_t seed = 0; seed < 2'000; ++seed) {
      const Trace trace = generate(seed, profile);
      const Status valid = validate_trace(trace);
      ASSERT_TRUE(valid) << profile.name << " " << seed << ": " << to_string(valid.error());
      ASSERT_EQ(trace.seed, seed);
    }
  }
}

TEST(Generator, TheCalmProfileHasNeitherFaultsNorEvents) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Trace trace = generate(seed, *profile_named("calm"));
    ASSERT_TRUE(trace.faults.empty()) << seed;
    for (const Step& step : trace.steps) {
      ASSERT_NE(step.kind, StepKind::store_evict) << seed;
      ASSERT_NE(step.kind, StepKind::owner_restart) << seed;
      ASSERT_EQ(step.declared_geometry, step.geometry) << seed;
    }
  }
}

TEST(Generator, LayoutsMeetTheirTwinsOnTheSamePath) {
  int twins = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Trace trace = generate(seed, *profile_named("default"));
    const auto opens = [&](std::uint32_t geometry, const std::vector<std::string>& actions) {
      return std::ranges::any_of(trace.steps, [&](const Step& step) {
        return step.kind == StepKind::open && step.geometry == geometry && step.declared_geometry == geometry &&
               step.actions == actions;
      });
    };
    for (const Step& step : trace.steps) {
      if (step.kind != StepKind::open || step.geometry != 0) continue;
      if (trace.geometries.size() < 2 || !opens(1, step.actions)) continue;
      ++twins;
      break;
    }
  }
  EXPECT_GT(twins, 10);
}

TEST(Generator, TheDefaultProfileMakesStepsFaultsAndChoicesOfEveryKind) {
  std::array<int, kStepKindCount> steps{};
  std::array<int, kFaultKindCount> faults{};
  std::array<int, kChoiceKindCount> choices{};
  for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
    const Trace trace = generate(seed, *profile_named("default"));
    for (const Step& step : trace.steps) ++steps[static_cast<std::size_t>(step.kind)];
    for (const FaultPoint& fault : trace.faults) ++faults[static_cast<std::size_t>(fault.kind)];
    for (const Choice& choice : trace.choices) ++choices[static_cast<std::size_t>(choice.kind)];
  }
  for (std::size_t i = 0; i < kStepKindCount; ++i) EXPECT_GT(steps[i], 100) << name_of(static_cast<StepKind>(i));
  for (std::size_t i = 0; i < kFaultKindCount; ++i) {
    const auto kind = static_cast<FaultKind>(i);
    if (kind == FaultKind::lie) {
      EXPECT_EQ(faults[i], 0);
    } else {
      EXPECT_GT(faults[i], 20) << name_of(kind);
    }
  }
  for (std::size_t i = 0; i < kChoiceKindCount; ++i) EXPECT_GT(choices[i], 50) << name_of(static_cast<ChoiceKind>(i));
}

// Rings in every position that the arithmetic tells apart, at the end of the longest session.
TEST(Generator, EveryKindOfRingIsDrawn) {
  int full_length = 0;
  int exactly_full = 0;
  int just_rolled = 0;
  int deep_rolled = 0;
  int wide_sink = 0;
  int not_dividing = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Trace trace = generate(seed, *profile_named("default"));
    for (const Step& step : trace.steps) {
      if (step.kind != StepKind::open) continue;
      const Geometry& g = trace.geometries[step.geometry];
      const std::uint64_t frames = step.actions.size() * g.frames_per_chunk;
      if (g.full_length) {
        ++full_length;
        continue;
      }
      exactly_full += frames == g.ring_frames ? 1 : 0;
      just_rolled += frames > g.ring_frames && frames - g.ring_frames < g.frames_per_chunk ? 1 : 0;
      deep_rolled += frames >= 2ULL * g.ring_frames ? 1 : 0;
      wide_sink += g.sink_frames > g.frames_per_chunk ? 1 : 0;
      not_dividing += (g.ring_frames - g.sink_frames) % g.frames_per_chunk != 0 ? 1 : 0;
    }
  }
  for (const int count : {full_length, exactly_full, just_rolled, deep_rolled, wide_sink, not_dividing})
    EXPECT_GT(count, 50);
}

TEST(Generator, ProfilesAreFoundByName) {
  for (const Profile& profile : profiles()) EXPECT_EQ(profile_named(profile.name), &profile);
  EXPECT_EQ(profile_named("default "), nullptr);
}

}  // namespace
}  // namespace holdfast::sim
