#include "holdfast/core/result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/fluxon_runtime.hpp"

namespace holdfast {
namespace {

std::string_view fluxon_name(std::int32_t code) {
  switch (static_cast<FluxonErrc>(code)) {
    case FluxonErrc::general:
      return "general";
    case FluxonErrc::invalid_argument:
      return "invalid_argument";
    case FluxonErrc::timeout:
      return "timeout";
    case FluxonErrc::resource_exhausted:
      return "resource_exhausted";
    case FluxonErrc::backend_unavailable:
      return "backend_unavailable";
    case FluxonErrc::store_closed:
      return "store_closed";
    case FluxonErrc::key_not_found:
      return "key_not_found";
    case FluxonErrc::key_already_exists:
      return "key_already_exists";
    case FluxonErrc::value_too_large:
      return "value_too_large";
    case FluxonErrc::key_being_written:
      return "key_being_written";
    case FluxonErrc::network:
      return "network";
    case FluxonErrc::transfer_block_failed:
      return "transfer_block_failed";
  }
  return {};
}

std::string_view commit_name(std::int32_t code) {
  switch (static_cast<CommitCode>(code)) {
    case CommitCode::stored:
      return "stored";
    case CommitCode::unknown:
      return "unknown";
    case CommitCode::owner_restarted:
      return "owner_restarted";
    case CommitCode::reservation_gone:
      return "reservation_gone";
    case CommitCode::timeout:
      return "timeout";
  }
  return {};
}

std::string_view cuda_name(std::int32_t code) {
  switch (static_cast<CudaErrc>(code)) {
    case CudaErrc::invalid_value:
      return "invalid_value";
    case CudaErrc::memory_allocation:
      return "memory_allocation";
    case CudaErrc::no_device:
      return "no_device";
    case CudaErrc::invalid_device:
      return "invalid_device";
    case CudaErrc::illegal_address:
      return "illegal_address";
    case CudaErrc::host_memory_already_registered:
      return "host_memory_already_registered";
    case CudaErrc::host_memory_not_registered:
      return "host_memory_not_registered";
    case CudaErrc::launch_failure:
      return "launch_failure";
    case CudaErrc::not_supported:
      return "not_supported";
  }
  return {};
}

std::string_view errno_name(std::int32_t code) {
  // Not strerror: its words depend on the locale.
  const char* words = strerrordesc_np(code);
  return words == nullptr ? std::string_view{} : std::string_view{words};
}

std::string code_text(const Error& error) {
  std::string_view name;
  switch (error.origin) {
    case Origin::core:
      name = to_string(static_cast<Errc>(error.code));
      if (!name.empty()) return std::string(name);
      break;
    case Origin::fluxon:
      name = fluxon_name(error.code);
      break;
    case Origin::fluxon_key:
      name = commit_name(error.code);
      break;
    case Origin::cuda:
      name = cuda_name(error.code);
      break;
    case Origin::file_system:
      name = errno_name(error.code);
      break;
  }
  if (name.empty()) return fmt::format("{} {}", to_string(error.origin), error.code);
  return fmt::format("{} {} {}", to_string(error.origin), error.code, name);
}

// Keeps the one line one line, whatever a path or a key holds.
void append_text(std::string& out, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
}

void append_error(std::string& out, const Error& error);

void append_nested(std::string& out, std::string_view word, const Error& error) {
  // Parentheses tell a cause's own causes from its siblings.
  const bool nested = !error.causes.empty() || !error.suppressed.empty();
  out += word;
  if (nested) out += '(';
  append_error(out, error);
  if (nested) out += ')';
}

void append_error(std::string& out, const Error& error) {
  if (!error.call.empty()) {
    append_text(out, error.call);
    out += ": ";
  }
  out += code_text(error);
  if (!error.detail.empty()) {
    out += ": ";
    append_text(out, error.detail);
  }
  for (const Error& cause : error.causes) append_nested(out, "; because ", cause);
  for (const Error& failure : error.suppressed) append_nested(out, "; while cleaning up: ", failure);
}

}  // namespace

std::string_view to_string(Origin origin) {
  switch (origin) {
    case Origin::core:
      return "core";
    case Origin::fluxon:
      return "fluxon";
    case Origin::fluxon_key:
      return "fluxon_key";
    case Origin::cuda:
      return "cuda";
    case Origin::file_system:
      return "file_system";
  }
  return {};
}

std::string_view to_string(Errc code) {
  switch (code) {
    case Errc::invalid_argument:
      return "invalid_argument";
    case Errc::bad_plan_blob:
      return "bad_plan_blob";
    case Errc::bad_answer:
      return "bad_answer";
    case Errc::stale_generation:
      return "stale_generation";
    case Errc::plan_too_old:
      return "plan_too_old";
    case Errc::not_registered:
      return "not_registered";
    case Errc::not_device_memory:
      return "not_device_memory";
    case Errc::registration_failed:
      return "registration_failed";
    case Errc::copy_failed:
      return "copy_failed";
    case Errc::put_failed:
      return "put_failed";
    case Errc::get_failed:
      return "get_failed";
    case Errc::incomplete:
      return "incomplete";
    case Errc::layout_mismatch:
      return "layout_mismatch";
    case Errc::unsettled:
      return "unsettled";
    case Errc::in_use:
      return "in_use";
    case Errc::not_found:
      return "not_found";
    case Errc::remove_failed:
      return "remove_failed";
    case Errc::unsupported_geometry:
      return "unsupported_geometry";
    case Errc::bad_snapshot:
      return "bad_snapshot";
    case Errc::file_failed:
      return "file_failed";
    case Errc::out_of_room:
      return "out_of_room";
    case Errc::quarantined:
      return "quarantined";
    case Errc::timed_out:
      return "timed_out";
    case Errc::cancelled:
      return "cancelled";
    case Errc::torn_file:
      return "torn_file";
    case Errc::wrong_length:
      return "wrong_length";
    case Errc::wrong_checksum:
      return "wrong_checksum";
    case Errc::foreign_file:
      return "foreign_file";
    case Errc::corrupt:
      return "corrupt";
  }
  return {};
}

std::string to_string(const Error& error) {
  std::string out;
  append_error(out, error);
  return out;
}

bool mentions(const Error& error, Origin origin, std::int32_t code) {
  if (error.origin == origin && error.code == code) return true;
  const auto within = [&](const Error& inner) { return mentions(inner, origin, code); };
  return std::any_of(error.causes.begin(), error.causes.end(), within) ||
         std::any_of(error.suppressed.begin(), error.suppressed.end(), within);
}

Error make_error(Errc errc, std::string_view call, std::string detail) {
  Error error;
  error.origin = Origin::core;
  error.code = static_cast<std::int32_t>(errc);
  error.call = call;
  error.detail = std::move(detail);
  return error;
}

Error make_error(Errc errc, std::string_view call, std::string detail, Error cause) {
  Error error = make_error(errc, call, std::move(detail));
  error.causes.push_back(std::move(cause));
  return error;
}

}  // namespace holdfast
