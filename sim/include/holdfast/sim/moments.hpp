// What a run did, moment by moment: what a chart, a timeline and a story are made of. Only told when somebody asked.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/time.hpp"
#include "holdfast/sim/calls.hpp"

namespace holdfast::sim {

enum class ThingKind : std::uint8_t { none, put_plan, read_plan, handle, batch, stream };

// Something that lives for a while and has a number, as the monitor counts them, from 1.
struct Thing {
  ThingKind kind = ThingKind::none;
  std::uint32_t number = 0;
  friend auto operator<=>(const Thing&, const Thing&) = default;
};
// "put plan 7", "handle 3", "batch 31", "stream 1"; empty for none.
std::string to_string(const Thing& thing);

// Of a copy in a batch: the plan's slot that it reads or fills. All from 1.
struct CopyPlace {
  std::uint32_t copy = 0;
  std::uint32_t plan = 0;
  std::uint32_t slot = 0;
  friend bool operator==(const CopyPlace&, const CopyPlace&) = default;
};

enum class MomentKind : std::uint8_t {
  call,           // a call across the seam has answered
  step,           // a step begins
  step_end,       // and ends; `text` says what it came to
  operation,      // an operation of the store begins
  operation_end,  // and ends
  turn,           // another step goes on
  fault,          // an injected fault fires
  happening,      // of the environment: an owner restarts, a client starts again, the owner evicts, an incident
  claim,          // the store shows something as ready
  withdrawal,     // and no longer
  drain,          // phase two begins
  opened,         // `thing` begins to live
  closed,         // and ends; of a batch: a wait covers it
  violated,       // a promise is broken
};

struct Moment {
  MomentKind kind{};
  Nanos at_ns = 0;
  std::uint32_t step = 0;  // its id; kDrainStep in phase two
  bool of_call = false;    // `call` means something
  Call call{};
  FaultKind fault{};                // of a fault
  std::int32_t code = 0;            // what the caller saw; 0 = success
  Thing thing{};                    // what a call was about; what was opened or closed
  std::vector<CopyPlace> places{};  // of a batch: one for each plan that it copies for, the first
  std::vector<Thing> culprits{};    // of a violation
  std::string text{};               // for people, of one line
};

using MomentSink = std::function<void(Moment)>;

}  // namespace holdfast::sim
