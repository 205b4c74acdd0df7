#include "holdfast/core/file_system.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

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

TEST_F(PosixFiles, AShortWriteGoesOnUntilAllIsWritten) {
  // A pipe takes only what fits at a time.
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const std::string bytes(1'000'000, 'x');
  std::size_t received = 0;
  std::thread reader([&] {
    const int pipe = open(path("pipe").c_str(), O_RDONLY);
    char buffer[4096];
    for (ssize_t got = 1; got > 0;) {
      got = read(pipe, buffer, sizeof buffer);
      if (got > 0) received += static_cast<std::size_t>(got);
    }
    close(pipe);
  });
  const Status written = files_.write(path("pipe"), bytes);
  reader.join();
  EXPECT_TRUE(written);
  EXPECT_EQ(received, bytes.size());
}

}  // namespace
}  // namespace holdfast
