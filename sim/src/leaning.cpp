#include "leaning.hpp"

#include <algorithm>
#include <initializer_list>
#include <span>

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kSkewBits = 5;  // the likeliest is up to 16 times as likely as the least likely

constexpr std::uint32_t bit_of(StepKind kind) { return 1U << static_cast<unsigned>(kind); }
// Without these a trace does nothing.
constexpr std::uint32_t kNeededSteps = bit_of(StepKind::open) | bit_of(StepKind::generate);

constexpr std::array<std::uint32_t, kStepKindCount> weights_of_added() {
  std::array<std::uint32_t, kStepKindCount> weights{};
  weights.fill(2);
  weights[static_cast<std::size_t>(StepKind::open)] = 0;
  weights[static_cast<std::size_t>(StepKind::close)] = 1;
  weights[static_cast<std::size_t>(StepKind::restart)] = 1;
  weights[static_cast<std::size_t>(StepKind::owner_restart)] = 1;
  return weights;
}

// Half of what had any weight is off, or all but one.
void skew(std::span<std::uint32_t> weights, Rng& rng) {
  std::size_t had = 0;
  for (const std::uint32_t weight : weights) had += weight > 0 ? 1 : 0;
  if (had == 0) return;
  const std::uint64_t kept = rng.below(had);
  std::uint64_t index = 0;
  for (std::uint32_t& weight : weights) {
    if (weight == 0) continue;
    const bool off = rng.ratio(1, 2);
    const std::uint64_t shift = rng.below(kSkewBits);
    weight = off && index != kept ? 0 : 1U << shift;
    ++index;
  }
}

// Each bit of `all` with an even chance; at least one.
std::uint32_t half_of(std::uint32_t all, Rng& rng) {
  const std::uint32_t drawn = all & static_cast<std::uint32_t>(rng());
  return drawn != 0 ? drawn : all;
}

void lean_hard(Leaning& leaning, const Profile& profile, Rng& rng) {
  skew(leaning.episodes, rng);
  skew(leaning.shapes, rng);
  skew(leaning.layers, rng);
  skew(leaning.frame_tokens, rng);
  skew(leaning.value_sizes, rng);
  skew(leaning.choices, rng);
  skew(leaning.added_steps, rng);
  // A quarter of the steps' kinds is left out of half of the seeds.
  constexpr std::uint32_t kAllSteps = (1U << kStepKindCount) - 1;
  if (rng.ratio(1, 2)) leaning.steps_off = kAllSteps & ~kNeededSteps & half_of(half_of(kAllSteps, rng), rng);
  leaning.added_one_in = static_cast<std::uint32_t>(rng.below(2) * rng.between(4, 16));
  leaning.calls = half_of(kAllCalls, rng);
  leaning.kinds = half_of(kAllFaultKinds, rng);
  // From a site in many runs to most sites in one.
  leaning.sites.active = {1U << rng.below(kSkewBits), profile.sites.active.denominator};
  leaning.sites.drastic = {static_cast<std::uint32_t>(rng.below(3)), 2};
}

}  // namespace

Leaning draw_leaning(const Profile& profile, Rng rng) {
  Leaning leaning;
  leaning.episodes = profile.weights;
  leaning.shapes.fill(1);
  std::fill_n(leaning.layers.begin(), 3, 1);
  std::fill_n(leaning.frame_tokens.begin(), 2, 1);
  leaning.value_sizes.fill(1);
  leaning.choices = {2, 2, 2, 2, 3, 1, 1};
  leaning.sites = profile.sites;
  if (profile.swarm) {
    leaning.layers.fill(1);
    leaning.frame_tokens.fill(1);
    leaning.added_steps = weights_of_added();
    lean_hard(leaning, profile, rng);
  }
  return leaning;
}

}  // namespace holdfast::sim
