// The file calls as their caller makes them: counted and logged.
#include <fmt/format.h>

#include "monitor_impl.hpp"

namespace holdfast::sim {

struct Monitor::Impl::Files final : FileBackend {
  Impl& monitor;

  explicit Files(Impl& impl) : monitor(impl) {}

  [[nodiscard]] FileBackend& below() const { return monitor.below_files; }

  Result<std::string> read(const std::string& path, std::uint64_t bytes_max) override {
    auto answer = below().read(path, bytes_max);
    monitor.count_call() = {hash_of(path), answer ? answer->size() : 0, answer ? hash_of(*answer) : 0};
    monitor.log(Call::file_read, answer,
                [&] { return answer ? fmt::format("{}: {} bytes", path, answer->size()) : path; });
    return answer;
  }
  Status write(const std::string& path, const std::string& bytes) override {
    Status answer = below().write(path, bytes);
    monitor.count_call() = {hash_of(path), bytes.size(), hash_of(bytes)};
    monitor.log(Call::file_write, answer, [&] { return fmt::format("{}: {} bytes", path, bytes.size()); });
    return answer;
  }
  Status sync(const std::string& path) override { return logged(Call::file_sync, path, below().sync(path)); }
  Status rename(const std::string& from, const std::string& to) override {
    Status answer = below().rename(from, to);
    monitor.count_call() = {hash_of(from), hash_of(to)};
    monitor.log(Call::file_rename, answer, [&] { return fmt::format("{} to {}", from, to); });
    return answer;
  }
  Status remove(const std::string& path) override { return logged(Call::file_remove, path, below().remove(path)); }

  Status logged(Call call, const std::string& path, Status answer) {
    monitor.count_call() = {hash_of(path)};
    monitor.log(call, answer, [&] { return path; });
    return answer;
  }
};

std::unique_ptr<FileBackend> Monitor::Impl::make_files() { return std::make_unique<Files>(*this); }

}  // namespace holdfast::sim
