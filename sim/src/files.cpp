#include "holdfast/sim/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

Error failed(std::string_view what, const std::string& path, int number) {
  Error error;
  error.origin = Origin::file_system;
  error.code = number;
  error.detail = fmt::format("{} {}: {}", what, path, std::strerror(number));
  return error;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) static_cast<void>(close(fd_));
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Result<std::string> read_input_file(const std::string& path, std::uint64_t bytes_max) {
  // Not blocking: a named pipe is refused, not waited for.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return refusal(path, fmt::format("cannot be opened: {}", std::strerror(errno)));
  struct stat facts{};
  if (fstat(file.get(), &facts) != 0) return refusal(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  if (!S_ISREG(facts.st_mode)) return refusal(path, "is no regular file");
  if (static_cast<std::uint64_t>(facts.st_size) > bytes_max) {
    return refusal(path, fmt::format("has {} bytes; at most {} are read", facts.st_size, bytes_max));
  }
  std::string text;
  std::array<char, 1 << 16> piece{};
  for (;;) {
    const ssize_t bytes = read(file.get(), piece.data(), piece.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return refusal(path, fmt::format("cannot be read: {}", std::strerror(errno)));
    if (bytes == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(bytes));
    if (text.size() > bytes_max) return refusal(path, fmt::format("grows beyond {} bytes", bytes_max));
  }
}

Status write_output_file(const std::string& path, const std::string& text) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  int failure = 0;
  {
    const Descriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (file.get() < 0) return failed("cannot write", path, errno);
    std::string_view rest = text;
    while (!rest.empty() && failure == 0) {
      const ssize_t bytes = write(file.get(), rest.data(), rest.size());
      if (bytes < 0 && errno != EINTR) failure = errno;
      if (bytes > 0) rest.remove_prefix(static_cast<std::size_t>(bytes));
    }
    if (failure == 0 && fsync(file.get()) != 0 && errno != EINVAL) failure = errno;
  }
  if (failure == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) failure = errno;
  if (failure == 0) return {};
  static_cast<void>(unlink(temporary.c_str()));
  return failed("cannot write", path, failure);
}

Status make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return failed("cannot make the directory", path, error.value());
  if (!std::filesystem::is_directory(path, error)) return failed("cannot make the directory", path, ENOTDIR);
  return {};
}

Result<std::string> sha256_of_file(const std::string& path) {
  auto text = read_input_file(path, 4ULL << 30);
  if (!text) return text.error();
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  if (EVP_Digest(text->data(), text->size(), digest.data(), &bytes, EVP_sha256(), nullptr) != 1) {
    return failed("cannot hash", path, EIO);
  }
  std::string hex;
  for (unsigned int i = 0; i < bytes; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace holdfast::sim
