// Files in memory whose calls fail, or whose process dies, when a test says so.
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "holdfast/fakes/memory_files.hpp"

namespace holdfast {

enum class FileFault : std::uint8_t {
  refused,      // told as failed, nothing was done
  done,         // told as failed, all was done
  torn,         // told as failed; of a write a part was done, of all else nothing
  dead_before,  // the process dies: nothing was done, and nothing is from then on
  dead_after,
  dead_torn,
};
inline constexpr FileFault kFileFaults[] = {FileFault::refused,     FileFault::done,       FileFault::torn,
                                            FileFault::dead_before, FileFault::dead_after, FileFault::dead_torn};
inline bool is_death(FileFault fault) { return fault >= FileFault::dead_before; }

struct FileFaultPoint {
  std::uint64_t call = 0;  // the nth from now, from 0
  FileFault fault = FileFault::refused;
  std::uint64_t torn_bytes = 0;
};
inline std::ostream& operator<<(std::ostream& out, const FileFaultPoint& point) {
  return out << "call " << point.call << " fault " << static_cast<int>(point.fault) << " torn " << point.torn_bytes;
}

class FlakyFiles {
 public:
  void fail(const FileFaultPoint& point) { point_ = point; }
  // True when the fault has struck since it was asked for.
  bool struck() { return !std::exchange(point_, std::nullopt).has_value(); }
  // The machine goes down with what `choice` leaves, and comes up again.
  void crash(const fakes::CrashChoice& choice) {
    files.crash(choice);
    dead_ = false;
    point_.reset();
  }

  Result<std::string> read(const std::string& path, std::uint64_t bytes_max) {
    Result<std::string> answer = error("read", path);
    const Status status = call("read", path, [&]() -> Status {
      answer = files.read(path, bytes_max);
      if (!answer) return answer.error();
      return {};
    });
    if (!status) return status.error();
    return answer;
  }
  Status write(const std::string& path, const std::string& bytes) {
    return call(
        "write", path, [&] { return files.write(path, bytes); },
        [&](std::uint64_t torn_bytes) { static_cast<void>(files.write(path, bytes.substr(0, torn_bytes))); });
  }
  Status sync(const std::string& path) {
    return call("sync", path, [&] { return files.sync(path); });
  }
  Status rename(const std::string& from, const std::string& to) {
    return call("rename", from, [&] { return files.rename(from, to); });
  }
  Status remove(const std::string& path) {
    return call("remove", path, [&] { return files.remove(path); });
  }

  fakes::MemoryFiles files;
  std::uint64_t calls = 0;

 private:
  static Error error(std::string_view call, const std::string& path) {
    Error told;
    told.origin = Origin::file_system;
    told.code = EIO;
    told.call = call;
    told.detail = path;
    return told;
  }

  template <class Do>
  Status call(std::string_view name, const std::string& path, Do&& act) {
    return call(name, path, act, [](std::uint64_t) {});
  }
  template <class Do, class DoPart>
  Status call(std::string_view name, const std::string& path, Do&& act, DoPart&& act_in_part) {
    ++calls;
    if (dead_) return error(name, path);
    if (!point_ || point_->call-- > 0) return act();
    const FileFaultPoint point = *std::exchange(point_, std::nullopt);
    if (point.fault == FileFault::done || point.fault == FileFault::dead_after) static_cast<void>(act());
    if (point.fault == FileFault::torn || point.fault == FileFault::dead_torn) act_in_part(point.torn_bytes);
    dead_ = is_death(point.fault);
    return error(name, path);
  }

  std::optional<FileFaultPoint> point_;
  bool dead_ = false;
};
static_assert(FileSystem<FlakyFiles>);

}  // namespace holdfast
