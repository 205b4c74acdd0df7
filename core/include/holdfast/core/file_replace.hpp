// Replacing a whole file in one step, so that a crash leaves the old contents or the new ones, never a mixture.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "holdfast/core/file_system.hpp"

namespace holdfast {

// "." for a bare name.
[[nodiscard]] std::string folder_of(const std::string& path);
[[nodiscard]] bool is_missing_file(const Error& error);
// FileFailed, with the path and, where the system's number says what to do about it, the remedy.
[[nodiscard]] Error file_failed(std::string_view call, const std::string& path, Error cause);

struct FileReplacement {
  std::string_view call;  // whose errors they are
  std::string path;
  std::string temporary;  // in the same folder, and nobody else's meanwhile
};

// Writes the temporary file, syncs it, renames it over the path, syncs the folder. After a failure the file is the old
// one or, when only the folder's sync failed, the new one, which a crash may still undo; no temporary file is left,
// unless the error tells of a clean-up that failed. After a crash one may be.
template <FileSystem F>
[[nodiscard]] Status replace_file(F& files, const FileReplacement& target, const std::string& bytes) {
  Status written = files.write(target.temporary, bytes);
  if (written) written = files.sync(target.temporary);
  if (written) written = files.rename(target.temporary, target.path);
  if (!written) {
    Error error = file_failed(target.call, target.path, std::move(written.error()));
    if (Status removed = files.remove(target.temporary); !removed && !is_missing_file(removed.error())) {
      error.suppressed.push_back(std::move(removed.error()));
    }
    return error;
  }
  if (Status synced = files.sync(folder_of(target.path)); !synced) {
    return file_failed(target.call, target.path, std::move(synced.error()));
  }
  return {};
}

}  // namespace holdfast
