// The smallest trace that still does what a trace does: first what smaller traces there are, then which of them to
// keep.
//
// "Smaller" is a well-founded order on traces, so that every shrinking ends: fewer steps; then fewer faults, choices,
// switches, actions and geometries; then fewer special settings; then smaller numbers. Each candidate is valid and
// smaller than the trace it was made from.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "holdfast/core/time.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

// Traces are compared by these numbers, the first that differs decides.
std::vector<std::uint64_t> size_of(const Trace& trace);
[[nodiscard]] bool is_smaller(const Trace& a, const Trace& b);

// One way to make a trace smaller. Edits are listed in the order of their fields.
struct Edit {
  enum class Pass : std::uint8_t {
    drop_many_steps,  // 8 or more in a row
    drop_session,     // its open step, and all steps that name it or a hold of it
    drop_few_steps,   // 4 or 2 in a row
    drop_step,
    merge_session,  // its steps, and its actions if they go on, become those of an earlier session
    drop_faults,    // many in a row, at last single ones
    drop_choices,
    drop_switches,
    cut_actions,     // at the end of a session
    right_layout,    // of a session that is mistaken about it
    merge_geometry,  // its sessions take another one, and it goes
    plain_setting,   // of the trace or of a geometry: none instead of some, or the usual instead of a special one
    fewer_sizes,     // of values in a geometry
    plain_fault,     // the first one in the table of faults that its call has
    plain_choice,
    small_worlds,  // numbered from 0
    small_actions,
    smaller_number,
  };
  static constexpr Pass kLastPass = Pass::smaller_number;
  Pass pass{};
  std::uint32_t level = 0;    // of many in a row: from the longest row to the shortest
  std::uint32_t at = 0;       // which step, session, fault, ... ; rows count from the end
  std::uint32_t variant = 0;  // the boldest first
  friend auto operator<=>(const Edit&, const Edit&) = default;
};

// The smaller traces of one trace, the boldest first. It makes each when it is asked for it.
class Candidates {
 public:
  explicit Candidates(Trace trace);
  std::optional<Trace> next();
  // The trace that next() gave last takes the place of the one that it was made from; the walk goes on where it is.
  void accept();
  [[nodiscard]] const Trace& trace() const { return trace_; }

 private:
  void list_from(Edit::Pass pass);

  Trace trace_;
  std::vector<std::uint64_t> size_;
  Trace given_;
  Edit given_by_{};
  Edit::Pass pass_{};
  std::vector<Edit> edits_;  // of this pass
  std::size_t next_ = 0;
};

// A pure function: the same for our shrinker and for property-based tests.
inline Candidates candidates(const Trace& trace) { return Candidates(trace); }

// Walks through the candidates until none of a whole walk was kept: then taking away any one step, session, fault,
// choice, switch or last action of a session, among others, was tried in vain.
class Shrinker {
 public:
  explicit Shrinker(const Trace& trace) : walk_(trace) {}
  // The next to try; nothing when the smallest is found.
  [[nodiscard]] const Trace* proposal();
  void decide(bool keep);
  [[nodiscard]] const Trace& smallest() const { return walk_.trace(); }
  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] std::uint64_t tried() const { return tried_; }
  [[nodiscard]] std::uint64_t kept() const { return kept_; }

 private:
  Candidates walk_;
  std::optional<Trace> proposal_;
  bool kept_in_walk_ = false;
  bool finished_ = false;
  std::uint64_t tried_ = 0;
  std::uint64_t kept_ = 0;
};

struct ShrinkLimits {
  Nanos time_budget_ns = 10 * kSecond;
  std::function<Nanos()> now_ns;  // empty: the steady clock
};

struct Shrunk {
  Trace trace;
  bool one_minimal = false;  // false: the time was over first
  std::uint64_t tried = 0;
  std::uint64_t kept = 0;
};

// `still_fails` is a function of the trace alone, and true of `trace`.
Shrunk shrink(const Trace& trace, const std::function<bool(const Trace&)>& still_fails,
              const ShrinkLimits& limits = {});

}  // namespace holdfast::sim
