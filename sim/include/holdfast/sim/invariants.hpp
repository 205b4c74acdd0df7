// The promises that are checked, and what breaking one looks like.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/time.hpp"

namespace holdfast::sim {

enum class Invariant : std::uint8_t {
  ready_after_commit,
  sync_before_commit,
  abort_after_sync,
  no_publish_on_failure,
  one_terminal,
  validated_batch,
  no_hazard,
  whole_window,
  exact_bytes,
  namespace_isolation,
  pinned_stays,
  capacity_bound,
  index_agrees,
  restart_safe,
  error_told,
  progress,
  quiescent_baseline,
};
inline constexpr std::size_t kInvariantCount = 17;
std::string_view name_of(Invariant invariant);     // "ready-after-commit"
std::string_view promise_of(Invariant invariant);  // one sentence
std::optional<Invariant> invariant_named(std::string_view name);

struct Violation {
  Invariant invariant{};
  std::uint32_t step = 0;  // the step's id; kDrainStep in phase two
  std::string call;        // the call at which it showed, empty at the end of a step
  std::string message;     // both culprits, times, the missing edge or the first wrong byte
  Nanos at_ns = 0;         // virtual
  // The kinds of what met: the step's, and what the check found, without numbers. With the invariant and the call this
  // says whether another run breaks the same thing.
  std::string culprits{};
};
inline constexpr std::uint32_t kDrainStep = 0xFFFF'FFFF;

// Counts checks whose antecedent held and that could have failed, and keeps the violations of one run.
class Verdicts {
 public:
  // Switches a check off: it is neither counted nor violated.
  void disable(Invariant invariant) { disabled_[static_cast<std::size_t>(invariant)] = true; }
  [[nodiscard]] bool enabled(Invariant invariant) const { return !disabled_[static_cast<std::size_t>(invariant)]; }
  void checked(Invariant invariant, std::uint64_t times = 1) {
    if (enabled(invariant)) checked_[static_cast<std::size_t>(invariant)] += times;
  }
  void violated(Violation violation);
  void reset();  // keeps what is disabled

  [[nodiscard]] const std::array<std::uint64_t, kInvariantCount>& checks() const { return checked_; }
  // In the order found; bounded at kKeptMax, the rest only counted.
  [[nodiscard]] const std::vector<Violation>& violations() const { return violations_; }
  [[nodiscard]] bool held() const { return violations_.empty(); }

 private:
  static constexpr std::size_t kKeptMax = 32;
  std::array<bool, kInvariantCount> disabled_{};
  std::array<std::uint64_t, kInvariantCount> checked_{};
  std::vector<Violation> violations_;
};

}  // namespace holdfast::sim
