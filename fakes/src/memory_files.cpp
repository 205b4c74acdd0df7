#include "holdfast/fakes/memory_files.hpp"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

namespace holdfast::fakes {
namespace {

Error file_error(int code, std::string_view call, std::string detail) {
  Error error;
  error.origin = Origin::file_system;
  error.code = code;
  error.call = call;
  error.detail = std::move(detail);
  return error;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string without_last_slash(const std::string& path) {
  return path.size() > 1 && path.back() == '/' ? path.substr(0, path.size() - 1) : path;
}

}  // namespace

Result<std::string> MemoryFiles::read(const std::string& path, std::uint64_t bytes_max) {
  if (is_folder(path)) return file_error(EISDIR, "read", path);
  const auto found = entries_.find(path);
  if (found == entries_.end()) return file_error(ENOENT, "read", path);
  if (found->second->bytes.size() > bytes_max) return file_error(EFBIG, "read", path);
  return found->second->bytes;
}

Status MemoryFiles::write(const std::string& path, const std::string& bytes) {
  if (path.empty()) return file_error(ENOENT, "write", path);
  if (path.back() == '/' || is_folder(path)) return file_error(EISDIR, "write", path);
  FilePtr& file = entries_[path];
  if (!file) {
    file = std::make_shared<File>();
    changes_.push_back({{}, path, file});
    folders_.insert(folder_of(path));
  }
  file->bytes = bytes;
  file->synced = false;
  return {};
}

Status MemoryFiles::sync(const std::string& path) {
  if (is_folder(path)) {
    sync_folder(without_last_slash(path));
    return {};
  }
  const auto found = entries_.find(path);
  if (found == entries_.end()) return file_error(ENOENT, "sync", path);
  sync_file(path, *found->second);
  return {};
}

Status MemoryFiles::rename(const std::string& from, const std::string& to) {
  const auto found = entries_.find(from);
  if (found == entries_.end() || to.empty()) return file_error(ENOENT, "rename", from + " -> " + to);
  if (is_folder(to)) return file_error(EISDIR, "rename", from + " -> " + to);
  if (from == to) return {};
  changes_.push_back({from, to, found->second});
  apply(changes_.back(), entries_);
  folders_.insert(folder_of(to));
  return {};
}

Status MemoryFiles::remove(const std::string& path) {
  if (is_folder(path)) return file_error(EISDIR, "remove", path);
  if (!entries_.contains(path)) return file_error(ENOENT, "remove", path);
  changes_.push_back({path, {}, {}});
  apply(changes_.back(), entries_);
  return {};
}

void MemoryFiles::apply(const Change& change, Entries& entries) {
  if (!change.from.empty()) entries.erase(change.from);
  if (!change.to.empty()) entries[change.to] = change.file;
}

void MemoryFiles::sync_file(const std::string& path, File& file) {
  file.durable_bytes = file.bytes;
  file.synced = true;
  const auto created = std::find_if(changes_.begin(), changes_.end(), [&](const Change& change) {
    return change.from.empty() && change.to == path && change.file.get() == &file;
  });
  if (created == changes_.end()) return;
  // What happened to this name before would else happen again on top of it.
  std::vector<Change> later;
  for (auto change = changes_.begin(); change != changes_.end(); ++change) {
    if (change <= created && change->touches(path)) {
      apply(*change, durable_entries_);
    } else {
      later.push_back(std::move(*change));
    }
  }
  changes_ = std::move(later);
}

void MemoryFiles::sync_folder(const std::string& folder) {
  std::vector<Change> later;
  for (Change& change : changes_) {
    if (folder_of(change.to.empty() ? change.from : change.to) == folder) {
      apply(change, durable_entries_);
    } else {
      later.push_back(std::move(change));
    }
  }
  changes_ = std::move(later);
}

bool MemoryFiles::is_folder(const std::string& path) const { return folders_.contains(without_last_slash(path)); }

void MemoryFiles::crash(const CrashChoice& choice) {
  for (std::size_t i = 0; i < changes_.size() && i < choice.folder_changes_kept; ++i) {
    apply(changes_[i], durable_entries_);
  }
  changes_.clear();
  for (const auto& [path, file] : durable_entries_) {
    if (!file->synced && choice.bytes != UnsyncedBytes::lost) {
      const bool torn = choice.bytes == UnsyncedBytes::torn;
      file->durable_bytes = torn ? file->bytes.substr(0, choice.torn_bytes) : file->bytes;
    }
    file->bytes = file->durable_bytes;
    file->synced = true;
  }
  entries_ = durable_entries_;
}

void MemoryFiles::reset() {
  entries_.clear();
  durable_entries_.clear();
  changes_.clear();
  folders_.clear();
}

std::vector<std::string> MemoryFiles::paths() const {
  std::vector<std::string> paths;
  paths.reserve(entries_.size());
  for (const auto& [path, file] : entries_) paths.push_back(path);
  return paths;
}

std::size_t MemoryFiles::unsynced_files() const {
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const auto& entry) { return !entry.second->synced; }));
}

}  // namespace holdfast::fakes
