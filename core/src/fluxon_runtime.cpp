#include "holdfast/core/fluxon_runtime.hpp"

#include <utility>

namespace holdfast {

KeyOutcome outcome_of(std::int32_t commit_code) {
  switch (static_cast<CommitCode>(commit_code)) {
    case CommitCode::stored:
      return KeyOutcome::stored;
    case CommitCode::owner_restarted:
    case CommitCode::reservation_gone:
      return KeyOutcome::not_stored;
    case CommitCode::unknown:
    case CommitCode::timeout:
      break;
  }
  return KeyOutcome::unknown;
}

Error fluxon_error(FluxonErrc errc, std::string_view call, std::string detail) {
  Error error;
  error.origin = Origin::fluxon;
  error.code = static_cast<std::int32_t>(errc);
  error.call = call;
  error.detail = std::move(detail);
  return error;
}

bool is_fluxon(const Error& error, FluxonErrc errc) {
  return error.origin == Origin::fluxon && error.code == static_cast<std::int32_t>(errc);
}

}  // namespace holdfast
