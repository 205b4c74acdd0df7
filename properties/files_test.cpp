// The program's own files: bounded when read, whole when written.
#include "holdfast/sim/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "temporary_directory.hpp"

namespace holdfast::sim {
namespace {

using ::testing::HasSubstr;

void expect_refused(const Result<std::string>& result, const std::string& words) {
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().is(Errc::invalid_argument));
  EXPECT_THAT(result.error().detail, HasSubstr(words));
}

TEST(InputFile, IsReadWhole) {
  const TemporaryDirectory directory;
  const std::string text = std::string(100'000, 'x') + '\0' + "end";
  ASSERT_TRUE(write_output_file(directory.path("a"), text));
  EXPECT_EQ(read_input_file(directory.path("a"), 1 << 20).value(), text);
}

TEST(InputFile, IsRefusedWhenMissingTooLongOrNoFile) {
  const TemporaryDirectory directory;
  expect_refused(read_input_file(directory.path("missing"), 10), "No such file");
  expect_refused(read_input_file(directory.path("."), 10), "no regular file");
  ASSERT_TRUE(write_output_file(directory.path("long"), "12345678901"));
  expect_refused(read_input_file(directory.path("long"), 10), "has 11 bytes; at most 10 are read");
  ASSERT_EQ(mkfifo(directory.path("pipe").c_str(), 0600), 0);
  expect_refused(read_input_file(directory.path("pipe"), 10), "no regular file");
}

TEST(OutputFile, ReplacesTheOldOneAndLeavesNothingElse) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(write_output_file(directory.path("a"), "old"));
  ASSERT_TRUE(write_output_file(directory.path("a"), "new"));
  EXPECT_EQ(read_input_file(directory.path("a"), 10).value(), "new");
  EXPECT_EQ(directory.entries(), std::vector<std::string>{"a"});
}

TEST(OutputFile, ThatCannotBeWrittenSaysSoAndLeavesTheOldOne) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(write_output_file(directory.path("missing/a"), "text"));
  ASSERT_TRUE(make_directory(directory.path("taken/inside")));
  const Status status = write_output_file(directory.path("taken"), "text");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().detail, HasSubstr("cannot write"));
  EXPECT_EQ(directory.entries(), std::vector<std::string>{"taken"});
}

TEST(MakeDirectory, MakesParentsAndTakesWhatIsThere) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(make_directory(directory.path("a/b/c")));
  EXPECT_TRUE(make_directory(directory.path("a/b/c")));
  ASSERT_TRUE(write_output_file(directory.path("file"), ""));
  EXPECT_FALSE(make_directory(directory.path("file")));
}

TEST(Sha256OfFile, IsThatOfItsBytes) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(write_output_file(directory.path("abc"), "abc"));
  EXPECT_EQ(sha256_of_file(directory.path("abc")).value(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace holdfast::sim
