// What the traces of one seed lean towards. Without swarm testing every seed of a profile has the same leaning; with it
// each has its own, in which much is switched off and little else is as likely as the rest.
#pragma once

#include <array>
#include <cstdint>

#include "fault_sites.hpp"
#include "holdfast/sim/generator.hpp"
#include "holdfast/sim/rng.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

// How a ring of a path of some chunks comes to lie at the path's end.
enum class RingShape : std::uint8_t { full_length, exactly_full, just_rolled, deep_rolled, wide_sink, not_dividing };
inline constexpr std::size_t kRingShapeCount = 6;
inline constexpr std::size_t kLayersMax = 6;
inline constexpr std::size_t kFrameTokensMax = 3;
inline constexpr std::size_t kValueSizesMax = 3;

// Weights, unless it says otherwise.
struct Leaning {
  std::array<std::uint32_t, kEpisodeCount> episodes{};
  std::array<std::uint32_t, kRingShapeCount> shapes{};
  std::array<std::uint32_t, kLayersMax> layers{};             // 1, 2, ...
  std::array<std::uint32_t, kFrameTokensMax> frame_tokens{};  // 1, 2, ...
  std::array<std::uint32_t, kValueSizesMax> value_sizes{};    // 1, 2, ...
  std::array<std::uint32_t, kChoiceKindCount> choices{};
  std::array<std::uint32_t, kStepKindCount> added_steps{};
  std::uint32_t steps_off = 0;     // a bit for each StepKind that is left out
  std::uint32_t added_one_in = 0;  // of the episodes' steps one more is added behind; 0 = behind none
  CallSet calls = kAllCalls;
  FaultKindSet kinds = kAllFaultKinds;
  FaultSites sites;
};

Leaning draw_leaning(const Profile& profile, Rng rng);

}  // namespace holdfast::sim
