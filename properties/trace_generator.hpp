// Traces for property-based tests: the project's own generator, shrunk by the project's own candidates.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <ostream>
#include <string_view>
#include <utility>

#include "holdfast/sim/generator.hpp"
#include "holdfast/sim/shrink.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

// A whole trace is for a file, not for a terminal.
inline void showValue(const Trace& trace, std::ostream& out) {
  out << trace.name << ": " << trace.steps.size() << " steps, " << trace.faults.size() << " faults, "
      << trace.choices.size() << " choices";
}

inline rc::Shrinkable<Trace> shrinkable_trace(Trace trace) {
  struct Smaller {
    Candidates walk;
    rc::Maybe<Trace> operator()() {
      auto candidate = walk.next();
      if (!candidate) return rc::Nothing;
      return std::move(*candidate);
    }
  };
  return rc::shrinkable::shrinkRecur(std::move(trace),
                                     [](const Trace& larger) { return rc::makeSeq<Smaller>(candidates(larger)); });
}

inline rc::Gen<Trace> traces_of(std::string_view profile) {
  constexpr std::uint64_t kSeedsMax = 1'000'000'000;
  const rc::Gen<std::uint64_t> seeds = rc::gen::noShrink(rc::gen::inRange<std::uint64_t>(1, kSeedsMax));
  return [seeds, profile](const rc::Random& random, int size) {
    return shrinkable_trace(generate(seeds(random, size).value(), *profile_named(profile)));
  };
}

}  // namespace holdfast::sim
