#include "holdfast/sim/trace.hpp"

#include "readers.hpp"

namespace holdfast::fuzz {

Verdict read_as_trace(std::string_view bytes) {
  const Result<sim::Trace> trace = sim::read_trace(bytes, "input");
  if (!trace) {
    if (!trace.error().detail.starts_with("input: ")) return {false, "a refusal that does not name the file"};
    return {};
  }
  if (const Status valid = sim::validate_trace(*trace); !valid)
    return {true, "accepted, but " + to_string(valid.error())};
  const std::string written = sim::write_trace(*trace);
  const Result<sim::Trace> again = sim::read_trace(written, "written");
  if (!again) return {true, "what was written is refused: " + to_string(again.error())};
  if (*again != *trace) return {true, "what was written reads as another trace"};
  if (sim::write_trace(*again) != written) return {true, "the same trace was written in two ways"};
  return {true, {}};
}

}  // namespace holdfast::fuzz
