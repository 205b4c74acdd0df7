#include "holdfast/core/file_system.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace holdfast {
namespace {

constexpr int kInterruptionsMax = 1000;
constexpr std::size_t kPieceBytes = 1 << 20;

// Tries again while a signal interrupts; the last answer is the system's own.
template <class Call>
auto uninterrupted(Call call) {
  auto answer = call();
  for (int i = 0; answer < 0 && errno == EINTR && i < kInterruptionsMax; ++i) answer = call();
  return answer;
}

Error file_error(int code, std::string_view call, const std::string& path) {
  Error error;
  error.origin = Origin::file_system;
  error.code = code;
  error.call = call;
  error.detail = path;
  return error;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool valid() const { return number_ >= 0; }

  // Never tried again: after EINTR the number may already be another's.
  [[nodiscard]] bool close() {
    const int number = number_;
    number_ = -1;
    return ::close(number) == 0 || errno == EINTR;
  }

 private:
  int number_;
};

Descriptor open_file(const std::string& path, int flags) {
  return Descriptor(uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0644); }));
}

}  // namespace

Result<std::string> PosixFileSystem::read(const std::string& path, std::uint64_t bytes_max) {
  // Non-blocking: opening a pipe that nobody writes would wait for ever.
  const Descriptor file = open_file(path, O_RDONLY | O_NONBLOCK);
  if (!file.valid()) return file_error(errno, "read", path);
  struct stat status{};
  if (::fstat(file.number(), &status) != 0) return file_error(errno, "read", path);
  if (S_ISDIR(status.st_mode)) return file_error(EISDIR, "read", path);
  if (!S_ISREG(status.st_mode)) return file_error(EINVAL, "read", path);
  if (static_cast<std::uint64_t>(status.st_size) > bytes_max) return file_error(EFBIG, "read", path);

  std::string bytes;
  // The size is only a hint: the file may grow or shrink while it is read. Each turn reads a byte or ends.
  for (;;) {
    const std::size_t filled = bytes.size();
    const std::size_t hint = static_cast<std::size_t>(status.st_size) + 1;
    const std::size_t want = filled < hint ? hint - filled : kPieceBytes;
    bytes.resize(filled + want);
    const ssize_t got = uninterrupted([&] { return ::read(file.number(), bytes.data() + filled, want); });
    if (got < 0) return file_error(errno, "read", path);
    bytes.resize(filled + static_cast<std::size_t>(got));
    if (bytes.size() > bytes_max) return file_error(EFBIG, "read", path);
    if (got == 0) return bytes;
  }
}

Status PosixFileSystem::write(const std::string& path, const std::string& bytes) {
  Descriptor file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.valid()) return file_error(errno, "write", path);
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t put =
        uninterrupted([&] { return ::write(file.number(), bytes.data() + written, bytes.size() - written); });
    if (put < 0) return file_error(errno, "write", path);
    if (put == 0) return file_error(EIO, "write", path);
    written += static_cast<std::size_t>(put);
  }
  if (!file.close()) return file_error(errno, "write", path);
  return {};
}

Status PosixFileSystem::sync(const std::string& path) {
  Descriptor file = open_file(path, O_RDONLY | O_NONBLOCK);
  if (!file.valid()) return file_error(errno, "sync", path);
  if (uninterrupted([&] { return ::fsync(file.number()); }) != 0) return file_error(errno, "sync", path);
  if (!file.close()) return file_error(errno, "sync", path);
  return {};
}

Status PosixFileSystem::rename(const std::string& from, const std::string& to) {
  if (uninterrupted([&] { return std::rename(from.c_str(), to.c_str()); }) != 0) {
    return file_error(errno, "rename", from + " -> " + to);
  }
  return {};
}

Status PosixFileSystem::remove(const std::string& path) {
  if (uninterrupted([&] { return ::unlink(path.c_str()); }) != 0) return file_error(errno, "remove", path);
  return {};
}

}  // namespace holdfast
