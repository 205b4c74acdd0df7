// A seed is shorthand for a trace: the same everywhere, always valid, and within the profile's promise.
#include "holdfast/sim/generator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "holdfast/sim/executor.hpp"

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
  EXPECT_EQ(digest_of_seed(0, "default"), 548042709523188040U);
  EXPECT_EQ(digest_of_seed(17, "default"), 7285885711616161971U);
  EXPECT_EQ(digest_of_seed(~0ULL, "default"), 9557904853209027034U);
  EXPECT_EQ(digest_of_seed(17, "calm"), 8508745227251854420U);
  EXPECT_EQ(digest_of_seed(17, "faulty"), 11393594213538072523U);
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

using Site = std::tuple<Call, FaultKind, std::int32_t>;

// In how many of the seeds each site has faults, and how many it has there.
struct SiteCount {
  int seeds = 0;
  int faults = 0;
};
std::map<Site, SiteCount> sites_of(const Profile& profile, std::uint64_t seeds) {
  std::map<Site, SiteCount> sites;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    std::map<Site, int> here;
    const Trace trace = generate(seed, profile);
    for (const FaultPoint& fault : trace.faults) ++here[{fault.call, fault.kind, fault.code}];
    for (const auto& [site, faults] : here) {
      ++sites[site].seeds;
      sites[site].faults += faults;
    }
  }
  return sites;
}

// Episodes without faults of their own.
Profile quiet_episodes() {
  Profile profile = *profile_named("default");
  profile.weights = {1, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0};
  profile.registration_trouble = {0, 1};
  profile.sites.burst = {0, 1};
  return profile;
}

TEST(GeneratorSites, ASiteIsOffInMostTracesAndFiresOftenWhereItIsOn) {
  Profile profile = quiet_episodes();
  constexpr int kSeeds = 2'000;
  const std::map<Site, SiteCount> sites = sites_of(profile, kSeeds);
  for (const Site& site :
       {Site{Call::local_fast_put_start, FaultKind::lost, 7000}, Site{Call::copy_batch, FaultKind::part, 719},
        Site{Call::get_transfer, FaultKind::part, 4000}, Site{Call::commit_wait, FaultKind::evict, 0}}) {
    ASSERT_TRUE(sites.contains(site)) << name_of(std::get<0>(site));
    const SiteCount& count = sites.at(site);
    EXPECT_GT(count.seeds, kSeeds / 200) << name_of(std::get<0>(site));
    EXPECT_LT(count.seeds, kSeeds / 10) << name_of(std::get<0>(site));
    EXPECT_GT(count.faults, 2 * count.seeds) << name_of(std::get<0>(site));
  }
  profile.sites.eventful = {0, 1};
  EXPECT_TRUE(sites_of(profile, 100).empty());
}

TEST(GeneratorSites, FaultsAreAlsoAtTheCallsOfPumpsEvictionsSnapshotsAndRestarts) {
  std::map<std::pair<StepKind, Call>, int> faults;
  for (std::uint64_t seed = 0; seed < 2'000; ++seed) {
    const Trace trace = generate(seed, *profile_named("default"));
    std::map<std::uint32_t, StepKind> kinds;
    for (const Step& step : trace.steps) kinds[step.id] = step.kind;
    for (const FaultPoint& fault : trace.faults) ++faults[{kinds.at(fault.step), fault.call}];
  }
  for (const auto& place :
       {std::pair(StepKind::pump, Call::remove), std::pair(StepKind::pump, Call::put_abort),
        std::pair(StepKind::make_room, Call::remove), std::pair(StepKind::evict, Call::remove),
        std::pair(StepKind::snapshot, Call::file_remove), std::pair(StepKind::restart, Call::file_read),
        std::pair(StepKind::warm_up, Call::host_unregister),
        std::pair(StepKind::generate, Call::wait_local_segments_ready),
        std::pair(StepKind::resume, Call::pointer_attributes)}) {
    EXPECT_GT(faults[place], 10) << name_of(place.first) << ", " << name_of(place.second);
  }
}

TEST(GeneratorSites, InABurstEveryCallToTheOwnerFailsForGood) {
  Profile profile = quiet_episodes();
  profile.sites.eventful = {0, 1};
  profile.sites.burst = {1, 1};
  int whole = 0;
  int several_steps = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    std::map<std::uint32_t, std::set<Call>> failing;
    const Trace trace = generate(seed, profile);
    for (const FaultPoint& fault : trace.faults) {
      if (fault.persistent) failing[fault.step].insert(fault.call);
    }
    int steps = 0;
    for (const auto& [step, calls] : failing) {
      steps += calls.contains(Call::get_start) && calls.contains(Call::get_transfer) && calls.contains(Call::remove) &&
                       calls.contains(Call::wait_local_segments_ready)
                   ? 1
                   : 0;
    }
    whole += steps > 0 ? 1 : 0;
    several_steps += steps > 1 ? 1 : 0;
  }
  EXPECT_GT(whole, 50);
  EXPECT_GT(several_steps, 25);
}

TEST(GeneratorSwarm, EachSeedLacksKindsOfStepsAndFaultsThatOthersHave) {
  std::map<StepKind, int> seeds_with;
  std::map<Call, int> seeds_failing;
  std::map<FaultKind, int> seeds_of_kind;
  constexpr int kSeeds = 1'000;
  int without_faults = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Trace trace = generate(seed, *profile_named("swarm"));
    std::set<StepKind> steps;
    std::set<Call> calls;
    std::set<FaultKind> kinds;
    for (const Step& step : trace.steps) steps.insert(step.kind);
    for (const FaultPoint& fault : trace.faults) {
      calls.insert(fault.call);
      kinds.insert(fault.kind);
    }
    without_faults += trace.faults.empty() ? 1 : 0;
    for (const StepKind kind : steps) ++seeds_with[kind];
    for (const Call call : calls) ++seeds_failing[call];
    for (const FaultKind kind : kinds) ++seeds_of_kind[kind];
  }
  EXPECT_LT(without_faults, kSeeds / 3);
  for (const StepKind kind : {StepKind::resume, StepKind::close, StepKind::evict, StepKind::hold, StepKind::make_room,
                              StepKind::snapshot, StepKind::restart, StepKind::owner_restart, StepKind::pass_time,
                              StepKind::store_evict, StepKind::warm_up, StepKind::pump}) {
    EXPECT_GT(seeds_with[kind], kSeeds / 20) << name_of(kind);
    EXPECT_LT(seeds_with[kind], kSeeds * 19 / 20) << name_of(kind);
  }
  for (const Call call : {Call::local_fast_put_start, Call::commit_wait, Call::get_start, Call::get_transfer,
                          Call::remove, Call::copy_batch, Call::host_register, Call::file_write}) {
    EXPECT_GT(seeds_failing[call], kSeeds / 50) << name_of(call);
    EXPECT_LT(seeds_failing[call], kSeeds * 2 / 3) << name_of(call);
  }
  for (const FaultKind kind : {FaultKind::before, FaultKind::lost, FaultKind::part, FaultKind::late, FaultKind::gone,
                               FaultKind::evict, FaultKind::time, FaultKind::death}) {
    EXPECT_GT(seeds_of_kind[kind], kSeeds / 20) << name_of(kind);
    EXPECT_LT(seeds_of_kind[kind], kSeeds * 9 / 10) << name_of(kind);
  }
}

TEST(GeneratorSwarm, ASeedLeansHardTowardsSomeOfWhatIsLeft) {
  int leaning = 0;
  constexpr int kSeeds = 500;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    std::map<std::pair<Call, FaultKind>, int> counts;
    const Trace trace = generate(seed, *profile_named("swarm"));
    int most = 0;
    for (const FaultPoint& fault : trace.faults) most = std::max(most, ++counts[{fault.call, fault.kind}]);
    leaning += trace.faults.size() >= 4 && 2 * static_cast<std::size_t>(most) > trace.faults.size() ? 1 : 0;
  }
  EXPECT_GT(leaning, kSeeds / 20);
}

TEST(GeneratorSwarm, LargeValuesAreDrawnNowAndThen) {
  int large = 0;
  for (std::uint64_t seed = 0; seed < 2'000; ++seed) {
    const Trace trace = generate(seed, *profile_named("default"));
    const Geometry& g = trace.geometries.front();
    large += std::uint64_t{g.kv_token_bytes.front()} * g.frame_tokens * g.frames_per_chunk >= kLargeValueBytes ? 1 : 0;
  }
  EXPECT_GT(large, 10);
  EXPECT_LT(large, 100);
}

TEST(GeneratorSideBySide, StepsOfASeedTakeTurns) {
  std::uint64_t taken = 0;
  constexpr std::uint64_t kSeeds = 20;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Trace trace = generate(seed, *profile_named("side-by-side"));
    Executor executor(make_production_system);
    const RunResult& run = executor.run(trace, {});
    EXPECT_TRUE(run.violations.empty()) << trace.name;
    taken += run.switches.size();
  }
  EXPECT_GT(taken, 5 * kSeeds);
}

TEST(GeneratorSideBySide, NoStepSleepsPastAPlansAgeInTheMiddleOfAnother) {
  constexpr Nanos kSpare = 10 * kMinute;  // a plan is used until 20 minutes old, its owner waits 30
  std::uint64_t slept = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Nanos within = 0;
    std::uint64_t together = 0;
    for (const Step& step : generate(seed, *profile_named("side-by-side")).steps) {
      if (step.join) within = 0, together = 0;
      if (step.kind == StepKind::pass_time) within += static_cast<Nanos>(step.amount);
      slept += step.kind == StepKind::pass_time ? 1 : 0;
      ASSERT_TRUE(++together == 1 || within < kSpare) << "seed " << seed << ", step " << step.id;
    }
  }
  EXPECT_GT(slept, 100U);
}

TEST(Generator, ProfilesAreFoundByName) {
  for (const Profile& profile : profiles()) EXPECT_EQ(profile_named(profile.name), &profile);
  EXPECT_EQ(profile_named("default "), nullptr);
}

}  // namespace
}  // namespace holdfast::sim
