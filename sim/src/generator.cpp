#include "holdfast/sim/generator.hpp"

#include <algorithm>

#include "holdfast/sim/lies.hpp"
#include "random_switches.hpp"
#include "trace_author.hpp"

namespace holdfast::sim {
namespace {

using Weights = std::array<std::uint32_t, kEpisodeCount>;

//                             write   rewrite  leftovers evict   make_room    restart   mistaken
//                                 reuse    put_trouble get_trouble store_evict owner_restart death  idle
constexpr Weights kDefaultWeights{2, 4, 1, 4, 3, 3, 3, 2, 1, 1, 2, 2, 1, 1};
constexpr Weights kCalmWeights{4, 6, 2, 0, 0, 0, 2, 0, 1, 0, 1, 0, 0, 1};

constexpr Profile kSwarm{
    .name = "swarm",
    .about = "each seed without a random half of the steps and faults, and leaning hard towards some of the rest",
    .episodes_min = 3,
    .episodes_max = 12,
    .weights = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2},
    .faults = true,
    .sites = {.eventful = {7, 8}, .active = {1, 64}, .drastic = {1, 2}, .burst = {1, 2}},
    .choice = {1, 3},
    .registration_trouble = {1, 3},
    .tight_segment = {1, 6},
    .in_memory_store = {1, 16},
    .large_values = {1, 64},
    .swarm = true};

constexpr Profile kCoverage = [] {
  Profile profile = kSwarm;
  profile.name = "coverage";
  profile.about = "keeps traces that reach a new fault, state or mark, and changes those";
  profile.episodes_max = 8;
  profile.coverage_guided = true;
  return profile;
}();

constexpr Profile kSideBySide = [] {
  Profile profile = kSwarm;
  profile.name = "side-by-side";
  profile.about = "the swarm's, with neighbouring steps that run side by side and take turns at random";
  profile.episodes_max = 8;
  profile.side_by_side = true;
  return profile;
}();

constexpr std::array<Profile, 7> kProfiles{{
    {.name = "default",
     .about = "every situation of the contract, a handful of faults each",
     .episodes_min = 6,
     .episodes_max = 11,
     .weights = kDefaultWeights,
     .faults = true,
     .sites = {.eventful = {3, 4}, .active = {1, 48}, .drastic = {1, 2}, .burst = {1, 3}},
     .choice = {1, 4},
     .registration_trouble = {1, 3},
     .tight_segment = {1, 8},
     .in_memory_store = {1, 64},
     .large_values = {1, 64}},
    {.name = "calm",
     .about = "no faults and no events: reuse, forks, eviction, restarts",
     .episodes_min = 5,
     .episodes_max = 9,
     .weights = kCalmWeights,
     .faults = false,
     .choice = {1, 4},
     .tight_segment = {1, 8},
     .in_memory_store = {1, 8}},
    {.name = "faulty",
     .about = "the default's situations with faults in most of their steps",
     .episodes_min = 4,
     .episodes_max = 8,
     .weights = kDefaultWeights,
     .faults = true,
     .sites = {.eventful = {1, 1}, .active = {1, 24}, .drastic = {1, 2}, .burst = {2, 3}},
     .choice = {1, 2},
     .registration_trouble = {1, 2},
     .tight_segment = {1, 4},
     .in_memory_store = {0, 1},
     .large_values = {1, 64}},
    {.name = "hostile",
     .about = "the runtimes answer with anything; promised are errors, no crash, no wrong bytes, no leak",
     .episodes_min = 5,
     .episodes_max = 9,
     .weights = kDefaultWeights,
     .faults = true,
     .sites = {.eventful = {1, 2}, .active = {1, 64}, .drastic = {1, 2}, .burst = {1, 8}},
     .choice = {1, 8},
     .registration_trouble = {1, 8},
     .tight_segment = {1, 8},
     .in_memory_store = {0, 1},
     .hostile = true},
    kSwarm,
    kCoverage,
    kSideBySide,
}};

}  // namespace

std::span<const Profile> profiles() { return kProfiles; }

const Profile* profile_named(std::string_view name) {
  const auto found = std::ranges::find(kProfiles, name, &Profile::name);
  return found == kProfiles.end() ? nullptr : &*found;
}

std::string generated_name(std::uint64_t seed, const Profile& profile) {
  return "seed " + std::to_string(seed) + " of " + std::string(profile.name);
}

Trace generate(std::uint64_t seed, const Profile& profile) {
  TraceAuthor author(seed, profile);
  author.begin();
  author.play_all();
  Trace trace = author.finish();
  if (profile.hostile) add_lies(trace, seed);
  if (profile.side_by_side) add_switches(trace, seed);
  return trace;
}

}  // namespace holdfast::sim
