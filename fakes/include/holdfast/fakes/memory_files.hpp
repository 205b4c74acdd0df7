// Files in memory that know what a crash would leave of them: contents count once synced, changes of a folder's entries
// once the folder is synced. No faults of its own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "holdfast/core/file_system.hpp"

namespace holdfast::fakes {

// What becomes of contents that were written and not synced.
enum class UnsyncedBytes : std::uint8_t {
  lost,  // the file is as at its last sync: empty when there was none
  torn,  // the file holds the first `torn_bytes` of what was written, or all of it if that is less
  kept,  // all of them reached the disk, as when only the process died
};

struct CrashChoice {
  UnsyncedBytes bytes = UnsyncedBytes::lost;
  std::uint64_t torn_bytes = 0;
  // So many of the unsynced changes of folders survive, oldest first: creations, renames, removals.
  std::uint64_t folder_changes_kept = 0;
};

// Nothing but a process died.
inline constexpr CrashChoice kProcessDied{UnsyncedBytes::kept, 0, ~0ULL};

// A model of FileSystem, for one thread at a time. A folder exists from the first file made in it. Syncing a file also
// makes its creation durable; a rename or a removal needs a sync of the folder that holds the entry (of a rename, the
// target's).
class MemoryFiles {
 public:
  Result<std::string> read(const std::string& path, std::uint64_t bytes_max);
  Status write(const std::string& path, const std::string& bytes);
  Status sync(const std::string& path);
  Status rename(const std::string& from, const std::string& to);
  Status remove(const std::string& path);

  void crash(const CrashChoice& choice);
  // As newly constructed.
  void reset();

  // ---- Inspection.
  [[nodiscard]] bool exists(const std::string& path) const { return entries_.contains(path); }
  [[nodiscard]] std::vector<std::string> paths() const;
  [[nodiscard]] std::size_t unsynced_folder_changes() const { return changes_.size(); }
  // Files whose contents a crash could lose.
  [[nodiscard]] std::size_t unsynced_files() const;

 private:
  struct File {
    std::string bytes;
    std::string durable_bytes;
    bool synced = false;
  };
  using FilePtr = std::shared_ptr<File>;
  using Entries = std::map<std::string, FilePtr>;
  // One change of the entries. A creation has only `to`, a removal only `from`.
  struct Change {
    std::string from;
    std::string to;
    FilePtr file;

    [[nodiscard]] bool touches(const std::string& path) const { return from == path || to == path; }
  };

  static void apply(const Change& change, Entries& entries);
  void sync_file(const std::string& path, File& file);
  void sync_folder(const std::string& folder);
  [[nodiscard]] bool is_folder(const std::string& path) const;

  Entries entries_;
  Entries durable_entries_;
  std::vector<Change> changes_;  // not durable, oldest first
  std::set<std::string> folders_;
};
static_assert(FileSystem<MemoryFiles>);

}  // namespace holdfast::fakes
