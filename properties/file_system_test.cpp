#include "holdfast/core/file_system.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
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

}  // namespace
}  // namespace holdfast
