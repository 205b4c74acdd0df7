#include "holdfast/core/local_disk_tensor_store.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kKeyShown = 128;

std::string shown(std::string_view key) {
  if (key.size() <= kKeyShown) return std::string(key);
  return fmt::format("{}... of {} bytes", key.substr(0, kKeyShown), key.size());
}

}  // namespace

Status check_tensor_sizes(const LocalDiskOptions& options, std::string_view call, std::string_view key,
                          std::uint64_t value_bytes) {
  if (key.size() > options.key_bytes_max) {
    return make_error(Errc::invalid_argument, call,
                      fmt::format("key {}: longer than key_bytes_max, {} bytes", shown(key), options.key_bytes_max));
  }
  if (value_bytes > options.value_bytes_max) {
    return make_error(Errc::invalid_argument, call,
                      fmt::format("the value of key {} has {} bytes, more than value_bytes_max, {}", shown(key),
                                  value_bytes, options.value_bytes_max));
  }
  return {};
}

Error tensor_file_error(Error error, const std::string& path, std::string_view key) {
  if (is_damaged_file(error)) {
    error.detail = fmt::format("{}: {} (key {}): remove the key, or put it again", path, error.detail, shown(key));
  } else {
    error.detail += fmt::format(" (key {})", shown(key));
  }
  return error;
}

Error tensor_read_error(Error cause, const LocalDiskOptions& options, const std::string& path, std::string_view key) {
  if (is_missing_file(cause)) {
    return fluxon_error(FluxonErrc::key_not_found, "get_tensor", fmt::format("{}: no file (key {})", path, shown(key)));
  }
  if (cause.origin == Origin::file_system && cause.code == EFBIG) {
    return tensor_file_error(make_error(Errc::wrong_length, "get_tensor",
                                        fmt::format("it is too long for a value of at most value_bytes_max, {} bytes",
                                                    options.value_bytes_max),
                                        std::move(cause)),
                             path, key);
  }
  return tensor_file_error(file_failed("get_tensor", path, std::move(cause)), path, key);
}

}  // namespace holdfast
