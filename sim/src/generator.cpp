#include "holdfast/sim/generator.hpp"

#include <algorithm>

#include "holdfast/sim/lies.hpp"
#include "trace_author.hpp"

namespace holdfast::sim {
namespace {

using Weights = std::array<std::uint32_t, kEpisodeCount>;

//                             write   rewrite  leftovers evict   make_room    restart   mistaken
//                                 reuse    put_trouble get_trouble store_evict owner_restart death  idle
constexpr Weights kDefaultWeights{2, 4, 1, 4, 3, 3, 3, 2, 1, 1, 2, 2, 1, 1};
constexpr Weights kCalmWeights{4, 6, 2, 0, 0, 0, 2, 0, 1, 0, 1, 0, 0, 1};

constexpr std::array<Profile, 4> kProfiles{{
    {.name = "default",
     .about = "every situation of the contract, a handful of faults each",
     .episodes_min = 6,
     .episodes_max = 11,
     .weights = kDefaultWeights,
     .faults = true,
     .stray_fault = {1, 4},
     .choice = {1, 4},
     .registration_trouble = {1, 3},
     .tight_segment = {1, 8},
     .in_memory_store = {1, 64}},
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
     .stray_fault = {1, 2},
     .choice = {1, 2},
     .registration_trouble = {1, 2},
     .tight_segment = {1, 4},
     .in_memory_store = {0, 1}},
    {.name = "hostile",
     .about = "the runtimes answer with anything; promised are errors, no crash, no wrong bytes, no leak",
     .episodes_min = 5,
     .episodes_max = 9,
     .weights = kDefaultWeights,
     .faults = true,
     .stray_fault = {1, 8},
     .choice = {1, 8},
     .registration_trouble = {1, 8},
     .tight_segment = {1, 8},
     .in_memory_store = {0, 1},
     .hostile = true},
}};

}  // namespace

std::span<const Profile> profiles() { return kProfiles; }

const Profile* profile_named(std::string_view name) {
  const auto found = std::ranges::find(kProfiles, name, &Profile::name);
  return found == kProfiles.end() ? nullptr : &*found;
}

Trace generate(std::uint64_t seed, const Profile& profile) {
  TraceAuthor author(seed, profile);
  author.begin();
  author.play_all();
  Trace trace = author.finish();
  if (profile.hostile) add_lies(trace, seed);
  return trace;
}

}  // namespace holdfast::sim
