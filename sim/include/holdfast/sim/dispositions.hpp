// error-told: what became of every fault that fired. Each has one disposition: the store told of it, counted a retry or
// an absorption that the fault table allows, or shows it in a queue.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/result.hpp"
#include "holdfast/sim/injector.hpp"

namespace holdfast::sim {

// The errors that a step's answers told of, whole chains of them.
class ToldErrors {
 public:
  void clear() { entries_.clear(); }
  void add(const Error& error);
  void add(std::span<const Error> errors);
  // Takes one away that stands for the fault; false when there is none.
  bool take(const FiredFault& fault);
  // "local_fast_put_start 7000 (fluxon), ..."; "nothing" when empty.
  [[nodiscard]] std::string to_string() const;

 private:
  struct Entry {
    Origin origin = Origin::core;
    std::int32_t code = 0;
    std::string call;
    bool taken = false;
  };
  std::vector<Entry> entries_;
};

// What else may stand for a fault. Counters are those of this step.
struct Absorptions {
  std::uint64_t read_only_fallbacks = 0;
  std::uint64_t translated_mappings = 0;
  bool put_not_published = false;  // an ingest answered "elsewhere", "adopted", "already ready" or "uncached"
};

// True when the caller could see an error: only such faults need a disposition.
bool needs_disposition(const FiredFault& fault);

// The faults that have none, in the order they fired. Takes from `told` and counts down in `absorptions`.
std::vector<FiredFault> untold(std::span<const FiredFault> faults, ToldErrors& told, Absorptions& absorptions);

// "lost local_fast_put_start 0 of step 7 (7000)".
std::string describe(const FiredFault& fault);

}  // namespace holdfast::sim
