// Tensors as files of one folder: writes that a crash leaves whole or undone, checksums verified by every read.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/file_replace.hpp"
#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/core/hash.hpp"
#include "holdfast/core/sync.hpp"
#include "holdfast/core/tensor_file.hpp"
#include "holdfast/core/tier_store.hpp"

namespace holdfast {

struct LocalDiskOptions {
  std::string folder;  // there already, and this store's alone
  std::uint64_t key_bytes_max = 4096;
  std::uint64_t value_bytes_max = kMaxValueBytes;
  // Writes and removals at a time, 1 at least. A crash leaves no more temporary files than this, and they are used
  // again.
  std::uint32_t lanes = 8;
};

// What is wrong with a value that is longer, or has a longer key, than `options` allow.
[[nodiscard]] Status check_tensor_sizes(const LocalDiskOptions& options, std::string_view call, std::string_view key,
                                        std::uint64_t value_bytes);
// Adds which file of which key it is about, and the remedy.
[[nodiscard]] Error tensor_file_error(Error error, const std::string& path, std::string_view key);
// What a read of a tensor's file that failed means.
[[nodiscard]] Error tensor_read_error(Error cause, const LocalDiskOptions& options, const std::string& path,
                                      std::string_view key);

// Models TensorTierStore. `files` and `sync` outlive it. Thread-safe if the file system is.
//
// What succeeded survives a crash. After a put or a removal that failed, and after a crash during one, its key has the
// old value, the new one or, after a removal, none: whole in any case, and until the next one that succeeds a crash may
// change which. No other key is affected.
//
// Each key's file has a name of its own, made of a hash, so that no key reaches out of the folder. Puts and removals of
// one key take turns, reads wait for nobody.
template <FileSystem F, Sync S>
class LocalDiskTensorStore {
 public:
  LocalDiskTensorStore(F& files, S& sync, LocalDiskOptions options) : files_(files), options_(std::move(options)) {
    if (options_.folder.empty()) options_.folder = ".";
    const std::uint32_t lanes = std::max<std::uint32_t>(options_.lanes, 1);
    for (std::uint32_t i = 0; i < lanes; ++i) lanes_.emplace_back(sync, path_of(fmt::format("lane{}.tmp", i)));
  }

  // InvalidArgument: key or value is too long, nothing was done. FileFailed, with the file system's error as its cause.
  Status put_tensor(std::string_view key, std::vector<std::byte> bytes) {
    if (Status sizes = check_tensor_sizes(options_, "put_tensor", key, bytes.size()); !sizes) return sizes;
    const std::string file = encode_tensor_file(key, bytes);
    bytes = {};
    const std::string path = path_of(tensor_file_name(key));
    Lane& lane = lane_of(key);
    const std::scoped_lock turn(lane.turn);
    Status put = replace_file(files_, {.call = "put_tensor", .path = path, .temporary = lane.temporary}, file);
    if (!put) return tensor_file_error(std::move(put.error()), path, key);
    return {};
  }

  // KeyNotFound 4000: no file. TornFile, WrongLength, WrongChecksum, ForeignFile: see decode_tensor_file; the file
  // stays as it is, until the key is put again or removed. FileFailed: it may be there.
  Result<std::vector<std::byte>> get_tensor(std::string_view key) {
    return read(key,
                [](std::span<const std::byte> value) { return std::vector<std::byte>(value.begin(), value.end()); });
  }

  // True when a get would succeed now. As much work as one: the value is verified. False also for a damaged file.
  Result<bool> has_tensor(std::string_view key) {
    Result<bool> found = read(key, [](std::span<const std::byte>) { return true; });
    if (!found && (is_fluxon(found.error(), FluxonErrc::key_not_found) || is_damaged_file(found.error()))) return false;
    return found;
  }

  // Removing what is not there is a success. FileFailed: ask again; until then it may come back with a crash.
  Status remove_tensor(std::string_view key) {
    const std::string path = path_of(tensor_file_name(key));
    const std::scoped_lock turn(lane_of(key).turn);
    Status removed = files_.remove(path);
    const bool missing = !removed && is_missing_file(removed.error());
    if (!removed && !missing) return failed("remove_tensor", path, key, std::move(removed.error()));
    // Also after nothing was found: an earlier removal may not have got as far as this.
    Status synced = files_.sync(options_.folder);
    if (!synced && !(missing && is_missing_file(synced.error()))) {
      return failed("remove_tensor", path, key, std::move(synced.error()));
    }
    return {};
  }

  // Where the value of `key` is or would be.
  [[nodiscard]] std::string path_of_key(std::string_view key) const { return path_of(tensor_file_name(key)); }

 private:
  struct Lane {
    Lane(S& sync, std::string temporary_path) : turn(sync), temporary(std::move(temporary_path)) {}

    typename S::Mutex turn;  // for who writes the temporary file, or changes a file of this lane
    const std::string temporary;
  };

  [[nodiscard]] std::string path_of(const std::string& name) const { return options_.folder + "/" + name; }
  Lane& lane_of(std::string_view key) { return lanes_[hash64(key, 0) % lanes_.size()]; }

  static Error failed(std::string_view call, const std::string& path, std::string_view key, Error cause) {
    return tensor_file_error(file_failed(call, path, std::move(cause)), path, key);
  }

  template <class Use>
  auto read(std::string_view key, Use&& use) -> Result<decltype(use(std::span<const std::byte>()))> {
    const std::string path = path_of(tensor_file_name(key));
    if (Status sizes = check_tensor_sizes(options_, "get_tensor", key, 0); !sizes) return std::move(sizes.error());
    const Result<std::string> file = files_.read(path, kTensorFileHeaderBytes + key.size() + options_.value_bytes_max);
    if (!file) return tensor_read_error(file.error(), options_, path, key);
    Result<std::span<const std::byte>> value = decode_tensor_file(*file, key);
    if (!value) return tensor_file_error(std::move(value.error()), path, key);
    return use(*value);
  }

  F& files_;
  LocalDiskOptions options_;
  std::deque<Lane> lanes_;
};
static_assert(TensorTierStore<LocalDiskTensorStore<PosixFileSystem, StdSync>>);

}  // namespace holdfast
