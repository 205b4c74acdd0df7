// Files as the core needs them: whole files, an explicit sync, an atomic rename. Failures carry Origin::file_system.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include "holdfast/core/result.hpp"

namespace holdfast {

template <class F>
concept FileSystem = requires(F& files, const std::string& path, const std::string& bytes, std::uint64_t bytes_max) {
  // The whole file; ENOENT when there is none, EFBIG when it is longer than `bytes_max`.
  { files.read(path, bytes_max) } -> std::same_as<Result<std::string>>;
  // Creates or truncates, and writes. After a failure the file may hold any prefix.
  { files.write(path, bytes) } -> std::same_as<Status>;
  // What was written, or the renamed entry of a folder, survives a crash once this succeeded.
  { files.sync(path) } -> std::same_as<Status>;
  // Replaces `to` by `from` in one step.
  { files.rename(path, path) } -> std::same_as<Status>;
  { files.remove(path) } -> std::same_as<Status>;
};

// Production: POSIX. `sync` of a folder syncs its entries.
class PosixFileSystem {
 public:
  Result<std::string> read(const std::string& path, std::uint64_t bytes_max);
  Status write(const std::string& path, const std::string& bytes);
  Status sync(const std::string& path);
  Status rename(const std::string& from, const std::string& to);
  Status remove(const std::string& path);
};
static_assert(FileSystem<PosixFileSystem>);

}  // namespace holdfast
