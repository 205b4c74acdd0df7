#include "holdfast/core/file_system.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace holdfast {
namespace {

class PosixFiles : public testing::Test {
 protected:
  PosixFiles() {
    std::string pattern = (std::filesystem::temp_directory_path() / "holdfast-files-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~PosixFiles() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }

  template <class T>
  static void expect_errno(const Result<T>& result, int code) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().origin, Origin::file_system);
    EXPECT_EQ(result.error().code, code) << to_string(result.error());
  }

  PosixFileSystem files_;
  std::string folder_;
};

TEST_F(PosixFiles, ReadsBackWhatWasWritten) {
  std::string bytes(3'000'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  ASSERT_TRUE(files_.write(path("a"), bytes));
  ASSERT_TRUE(files_.sync(path("a")));
  const Result<std::string> read = files_.read(path("a"), bytes.size());
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, bytes);
}

TEST_F(PosixFiles, WritingReplacesTheWholeFile) {
  ASSERT_TRUE(files_.write(path("a"), "a long text"));
  ASSERT_TRUE(files_.write(path("a"), "b"));
  EXPECT_EQ(files_.read(path("a"), 100).value(), "b");
}

TEST_F(PosixFiles, AMissingFileIsENOENT) {
  expect_errno(files_.read(path("none"), 1), ENOENT);
  expect_errno(files_.sync(path("none")), ENOENT);
  expect_errno(files_.remove(path("none")), ENOENT);
  expect_errno(files_.rename(path("none"), path("other")), ENOENT);
  expect_errno(files_.write(path("no/folder"), ""), ENOENT);
}

TEST_F(PosixFiles, AFileOfTheLimitIsReadAndOneByteMoreIsEFBIG) {
  ASSERT_TRUE(files_.write(path("a"), "12345"));
  EXPECT_TRUE(files_.read(path("a"), 5));
  expect_errno(files_.read(path("a"), 4), EFBIG);
}

TEST_F(PosixFiles, AFileWhoseSizeIsNotToldIsReadWholeAndBounded) {
  const Result<std::string> status = files_.read("/proc/self/status", 1 << 20);
  ASSERT_TRUE(status);
  EXPECT_NE(status->find("Name:"), std::string::npos);
  expect_errno(files_.read("/proc/self/status", 10), EFBIG);
}

TEST_F(PosixFiles, AFolderAndAPipeAreNotRead) {
  expect_errno(files_.read(folder_, 100), EISDIR);
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  expect_errno(files_.read(path("pipe"), 100), EINVAL);
}

TEST_F(PosixFiles, RenameReplacesAndAFolderCanBeSynced) {
  ASSERT_TRUE(files_.write(path("new"), "new"));
  ASSERT_TRUE(files_.write(path("old"), "old"));
  ASSERT_TRUE(files_.rename(path("new"), path("old")));
  ASSERT_TRUE(files_.sync(folder_));
  EXPECT_EQ(files_.read(path("old"), 10).value(), "new");
  expect_errno(files_.read(path("new"), 10), ENOENT);
}

TEST_F(PosixFiles, RemoveRemoves) {
  ASSERT_TRUE(files_.write(path("a"), "a"));
  ASSERT_TRUE(files_.remove(path("a")));
  expect_errno(files_.read(path("a"), 10), ENOENT);
}

TEST_F(PosixFiles, AFullDiskIsToldWithTheFile) {
  const Status written = files_.write("/dev/full", "a");
  expect_errno(written, ENOSPC);
  EXPECT_NE(to_string(written.error()).find("/dev/full"), std::string::npos);
}

// For as long as it lives, files of this process end at `bytes`: the system writes what fits, then refuses.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limited{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limited);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(PosixFiles, AShortWriteIsNotTakenForTheWhole) {
  const FileSizeLimit limit(1000);
  EXPECT_TRUE(files_.write(path("fits"), std::string(1000, 'x')));
  expect_errno(files_.write(path("too long"), std::string(1001, 'x')), EFBIG);
  EXPECT_EQ(std::filesystem::file_size(path("too long")), 1000U);
}

TEST_F(PosixFiles, WhatCannotBeSyncedIsToldWithTheReason) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  expect_errno(files_.sync(path("pipe")), EINVAL);
}

// For as long as it lives, the next file that is opened gets the number of standard input.
class NoStandardInput {
 public:
  NoStandardInput() : saved_(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)) { ::close(STDIN_FILENO); }
  NoStandardInput(const NoStandardInput&) = delete;
  NoStandardInput& operator=(const NoStandardInput&) = delete;
  ~NoStandardInput() {
    dup2(saved_, STDIN_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

TEST_F(PosixFiles, AFileThatGetsTheNumberZeroIsReadAndClosed) {
  ASSERT_TRUE(files_.write(path("a"), "a"));
  const NoStandardInput closed;
  EXPECT_EQ(files_.read(path("a"), 10).value(), "a");
  const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(next, STDIN_FILENO);
  ::close(next);
}

TEST_F(PosixFiles, AnInterruptionOfLongAgoIsNotTakenForANewOne) {
  ASSERT_TRUE(files_.write(path("a"), "a"));
  errno = EINTR;
  EXPECT_TRUE(files_.remove(path("a")));
}

// Signals that interrupt what waits, until the third opens the pipe at `path` for reading: then a writer waits no more.
class Interruptions {
 public:
  explicit Interruptions(const std::string& path) {
    path_ = path.c_str();
    struct sigaction action{};
    action.sa_handler = interrupt;
    sigaction(SIGALRM, &action, &before_);
    const itimerval often{.it_interval = {.tv_sec = 0, .tv_usec = 2000}, .it_value = {.tv_sec = 0, .tv_usec = 2000}};
    setitimer(ITIMER_REAL, &often, nullptr);
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;
  ~Interruptions() {
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
    ::close(reader_);
  }

 private:
  static void interrupt(int /*signal*/) {
    const int code = errno;
    count_ = count_ + 1;
    if (count_ == 3) reader_ = ::open(path_, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    errno = code;
  }

  static inline const char* path_ = nullptr;
  static inline volatile std::sig_atomic_t count_ = 0;
  static inline volatile std::sig_atomic_t reader_ = -1;
  struct sigaction before_{};
};

TEST_F(PosixFiles, AnInterruptedCallIsTriedAgain) {
  const std::string pipe = path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const Interruptions interruptions(pipe);
  const Status written = files_.write(pipe, "a");
  EXPECT_TRUE(written) << to_string(written.error());
}

// From now on this process is told that `call` failed with `code`, or returned 0, and the call is not carried out.
void spoil(std::uint32_t call, std::uint32_t code) {
  std::array<sock_filter, 4> filter = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{.len = filter.size(), .filter = filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::abort();
  }
}

[[noreturn]] void exit_with(const Status& status) { std::_Exit(status ? 0 : status.error().code); }

using PosixFilesDeathTest = PosixFiles;

TEST_F(PosixFilesDeathTest, AFailedCloseIsAFailureOfTheWriteOrSync) {
  const auto write = [&] {
    spoil(SYS_close, EIO);
    exit_with(files_.write(path("a"), "a"));
  };
  EXPECT_EXIT(write(), testing::ExitedWithCode(EIO), "");
  const auto sync = [&] {
    spoil(SYS_close, EIO);
    exit_with(files_.sync(path("a")));
  };
  EXPECT_EXIT(sync(), testing::ExitedWithCode(EIO), "");
}

TEST_F(PosixFilesDeathTest, AnInterruptedCloseHasClosed) {
  const auto write = [&] {
    spoil(SYS_close, EINTR);
    exit_with(files_.write(path("a"), "a"));
  };
  EXPECT_EXIT(write(), testing::ExitedWithCode(0), "");
}

TEST_F(PosixFilesDeathTest, InterruptionsWithoutEndEndTheCall) {
  const auto sync = [&] {
    spoil(SYS_fsync, EINTR);
    exit_with(files_.sync(folder_));
  };
  EXPECT_EXIT(sync(), testing::ExitedWithCode(EINTR), "");
}

TEST_F(PosixFilesDeathTest, AWriteThatTakesNothingIsEIO) {
  const auto write = [&] {
    spoil(SYS_write, 0);
    errno = 0;
    exit_with(files_.write(path("a"), "a"));
  };
  EXPECT_EXIT(write(), testing::ExitedWithCode(EIO), "");
}

}  // namespace
}  // namespace holdfast
