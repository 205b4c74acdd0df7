// Results that cannot be ignored: an expected failure is a value with an origin, a code, its causes, and the failures
// of its own clean-up beside them. No exception passes through the core.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace holdfast {

// Whose number `Error::code` is.
enum class Origin : std::uint8_t {
  core,         // an Errc
  fluxon,       // a FluxonErrc, as the runtime answered it
  fluxon_key,   // a per-key commit code (negative), see CommitCode
  cuda,         // a cudaError_t, as the runtime answered it
  file_system,  // an errno
};
std::string_view to_string(Origin origin);

// Failures that the core itself decides.
enum class Errc : std::int32_t {
  invalid_argument = 1,  // the caller's input is not what the declaration asks for
  bad_plan_blob,         // a plan's table is not what was asked for: magic, count, alignment, an address
  bad_answer,            // an answer that no honest runtime gives: counts that contradict each other, no mapping
  stale_generation,      // it belongs to an owner generation that has gone
  plan_too_old,          // past the plan's own age limit: aborted without a copy or a commit
  not_registered,        // host memory that no live registration covers whole
  not_device_memory,     // a tensor that is not device memory of the expected device
  registration_failed,   // a mapping could not be registered, or its registration could not be proven
  copy_failed,           // a batch, an event or a wait failed
  put_failed,            // nothing was published; the causes say what failed
  get_failed,            // nothing was restored; the causes say what failed
  incomplete,            // the store does not have the whole window
  layout_mismatch,       // recorded lengths are not those of the active layout
  unsettled,             // a key's outcome is not decided yet; go on uncached
  in_use,                // pinned, referenced, or being written
  not_found,             // no such node, namespace or blob
  remove_failed,         // a removal failed; it stays to be tried again
  unsupported_geometry,  // a ring that cannot be reconstructed once rolled
  bad_snapshot,          // damaged, foreign or from the future
  file_failed,           // a file operation failed
  out_of_room,           // nothing can be evicted to make room
  quarantined,           // memory that cannot be let go yet
  timed_out,             // not done within the time that the caller gave it
  cancelled,             // the caller asked to stop
  torn_file,             // a file ends before its own header says
  wrong_length,          // a file goes on after its own header says, or past what may be read
  wrong_checksum,        // a file's bytes are not those that were written
  foreign_file,          // a file of another program, version or key
  corrupt,               // values that are not those that were put: their checksum says so
};
std::string_view to_string(Errc code);

struct Error {
  Origin origin = Origin::core;
  std::int32_t code = 0;
  std::string call;               // the runtime call or the core operation that failed
  std::string detail;             // what a person needs: place, value, remedy
  std::vector<Error> causes;      // why, outermost first
  std::vector<Error> suppressed;  // failures of the clean-up after this one

  [[nodiscard]] bool is(Errc errc) const { return origin == Origin::core && code == static_cast<std::int32_t>(errc); }
};

// One line: "put_blob: put_failed: detail; because ...; while cleaning up: ...".
std::string to_string(const Error& error);

// True when `error`, one of its causes or one of its suppressed errors, at any depth, has this origin and code.
bool mentions(const Error& error, Origin origin, std::int32_t code);

[[nodiscard]] Error make_error(Errc errc, std::string_view call, std::string detail = {});
[[nodiscard]] Error make_error(Errc errc, std::string_view call, std::string detail, Error cause);

// A value or an Error. Derives from tl::expected only to make ignoring it a warning.
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using Base = tl::expected<T, Error>;
  using Base::Base;
  Result(Base base) : Base(std::move(base)) {}
  Result(Error error) : Base(tl::unexpected<Error>(std::move(error))) {}
};

template <>
class [[nodiscard]] Result<void> : public tl::expected<void, Error> {
 public:
  using Base = tl::expected<void, Error>;
  using Base::Base;
  Result() = default;
  Result(Base base) : Base(std::move(base)) {}
  Result(Error error) : Base(tl::unexpected<Error>(std::move(error))) {}
};

using Status = Result<void>;

}  // namespace holdfast
