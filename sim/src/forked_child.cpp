#include "forked_child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>

#include "child_process.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t kComplaintsMax = 6000;
constexpr int kThrewStatus = 70;

Error failed(std::string_view what, int number) {
  Error error;
  error.origin = Origin::file_system;
  error.code = number;
  error.call = "forked child";
  error.detail = fmt::format("{}: {}", what, std::strerror(number));
  return error;
}

[[noreturn]] void be_child(pid_t parent, int pipe, int complaints,
                           const std::function<void(ForkedChild::Link&)>& work) {
  settle_as_child(parent, complaints);
  std::signal(SIGPIPE, SIG_IGN);
  ForkedChild::Link link(pipe);
  try {
    work(link);
  } catch (const std::exception& error) {
    const std::string text = fmt::format("an exception was thrown: {}\n", error.what());
    static_cast<void>(!write(STDERR_FILENO, text.data(), text.size()));
    _exit(kThrewStatus);
  }
  _exit(0);
}

}  // namespace

void ForkedChild::Link::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = write(fd_, bytes.data(), bytes.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) _exit(0);
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void ForkedChild::Link::forget_complaints() {
  static_cast<void>(!ftruncate(STDERR_FILENO, 0));
  lseek(STDERR_FILENO, 0, SEEK_SET);
}

Result<std::unique_ptr<ForkedChild>> ForkedChild::start(const std::function<void(Link&)>& work) {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return failed("no pipe", errno);
  const int complaints = memfd_create("holdfast-child", MFD_CLOEXEC);
  std::fflush(nullptr);  // or the child would write it again
  const pid_t parent = getpid();
  const pid_t pid = complaints < 0 ? -1 : fork();
  if (pid < 0) {
    const int number = errno;
    close(ends[0]);
    close(ends[1]);
    if (complaints >= 0) close(complaints);
    return failed("no child process", number);
  }
  if (pid == 0) {
    close(ends[0]);
    be_child(parent, ends[1], complaints, work);
  }
  close(ends[1]);
  return std::unique_ptr<ForkedChild>(new ForkedChild(pid, ends[0], complaints));
}

ForkedChild::~ForkedChild() {
  if (pid_ > 0) static_cast<void>(bury(true));
  close(pipe_);
  close(complaints_);
}

ForkedChild::Heard ForkedChild::listen(std::string& bytes, Nanos wait_ns) {
  pollfd polled{pipe_, POLLIN, 0};
  const auto wait_ms = static_cast<int>(std::clamp<Nanos>(wait_ns / kMillisecond, 0, 60'000));
  if (poll(&polled, 1, wait_ms) <= 0) return Heard::silence;
  std::array<char, 1 << 16> piece{};
  const ssize_t got = read(pipe_, piece.data(), piece.size());
  if (got < 0 && errno == EINTR) return Heard::silence;
  if (got <= 0) return Heard::end;
  bytes.append(piece.data(), static_cast<std::size_t>(got));
  return Heard::bytes;
}

Nanos ForkedChild::processor_time_ns() const {
  clockid_t clock{};
  timespec spent{};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &spent) != 0) return 0;
  return Nanos{spent.tv_sec} * kSecond + spent.tv_nsec;
}

ForkedChild::Ending ForkedChild::bury(bool kill_it) {
  if (kill_it) kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
  Ending ending;
  ending.how = how_it_ended(status);
  std::string text(kComplaintsMax, '\0');
  const ssize_t got = pread(complaints_, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  ending.complaints = printable(text);
  return ending;
}

}  // namespace holdfast::sim
