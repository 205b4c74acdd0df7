#include "holdfast/core/file_replace.hpp"

#include <cerrno>

namespace holdfast {
namespace {

std::string_view remedy_of(const Error& cause) {
  if (cause.origin != Origin::file_system) return {};
  switch (cause.code) {
    case ENOENT:
      return ": there is no such folder or file: create its folder";
    case ENOSPC:
    case EDQUOT:
      return ": no space is left: make room, or choose another folder";
    case EACCES:
    case EPERM:
    case EROFS:
      return ": give this process the right to it, or choose another folder";
    case EMFILE:
    case ENFILE:
      return ": too many files are open: raise the limit";
    case EIO:
      return ": the disk failed: look into the system's log, or choose another one";
    default:
      return {};
  }
}

}  // namespace

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool is_missing_file(const Error& error) { return error.origin == Origin::file_system && error.code == ENOENT; }

Error file_failed(std::string_view call, const std::string& path, Error cause) {
  std::string detail = path;
  detail += remedy_of(cause);
  return make_error(Errc::file_failed, call, std::move(detail), std::move(cause));
}

}  // namespace holdfast
