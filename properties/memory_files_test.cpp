// What a crash leaves of files in memory is what a disk could leave.
#include "holdfast/fakes/memory_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace holdfast::fakes {
namespace {

constexpr std::uint64_t kAnySize = ~0ULL;

template <class R>
int code_of(const R& result) {
  if (result) return 0;
  EXPECT_EQ(result.error().origin, Origin::file_system);
  return result.error().code;
}

class MemoryFilesTest : public testing::Test {
 protected:
  std::string read(const std::string& path) {
    const Result<std::string> bytes = files.read(path, kAnySize);
    return bytes ? *bytes : "none: " + std::to_string(bytes.error().code);
  }
  const std::string none = "none: " + std::to_string(ENOENT);

  MemoryFiles files;
};

TEST_F(MemoryFilesTest, WhatWasWrittenIsRead) {
  const std::string bytes("a\0b", 3);
  ASSERT_TRUE(files.write("d/f", bytes));
  EXPECT_EQ(read("d/f"), bytes);
  ASSERT_TRUE(files.write("d/f", "x"));
  EXPECT_EQ(read("d/f"), "x");
}

TEST_F(MemoryFilesTest, AMissingFileIsEnoent) {
  EXPECT_EQ(code_of(files.read("d/f", kAnySize)), ENOENT);
  EXPECT_EQ(code_of(files.sync("d/f")), ENOENT);
  EXPECT_EQ(code_of(files.rename("d/f", "d/g")), ENOENT);
  EXPECT_EQ(code_of(files.remove("d/f")), ENOENT);
  EXPECT_EQ(code_of(files.write("", "x")), ENOENT);
}

TEST_F(MemoryFilesTest, AFileLongerThanAskedForIsEfbig) {
  ASSERT_TRUE(files.write("f", "12345"));
  EXPECT_TRUE(files.read("f", 5));
  EXPECT_EQ(code_of(files.read("f", 4)), EFBIG);
}

TEST_F(MemoryFilesTest, AFolderIsNoFile) {
  ASSERT_TRUE(files.write("d/f", "x"));
  EXPECT_EQ(code_of(files.read("d", kAnySize)), EISDIR);
  EXPECT_EQ(code_of(files.write("d", "x")), EISDIR);
  EXPECT_EQ(code_of(files.write("d/", "x")), EISDIR);
  EXPECT_EQ(code_of(files.rename("d/f", "d")), EISDIR);
  EXPECT_EQ(code_of(files.remove("d")), EISDIR);
  EXPECT_TRUE(files.sync("d/"));
}

TEST_F(MemoryFilesTest, RenameReplacesInOneStep) {
  ASSERT_TRUE(files.write("d/new", "new"));
  ASSERT_TRUE(files.write("d/f", "old"));
  ASSERT_TRUE(files.rename("d/new", "d/f"));
  EXPECT_EQ(read("d/f"), "new");
  EXPECT_FALSE(files.exists("d/new"));
  EXPECT_THAT(files.paths(), testing::ElementsAre("d/f"));
  const std::size_t changes = files.unsynced_folder_changes();
  ASSERT_TRUE(files.rename("d/f", "d/f"));
  EXPECT_EQ(read("d/f"), "new");
  EXPECT_EQ(files.unsynced_folder_changes(), changes);
}

TEST_F(MemoryFilesTest, WhatWasNeverSyncedIsLost) {
  ASSERT_TRUE(files.write("d/f", "x"));
  files.crash({});
  EXPECT_EQ(read("d/f"), none);
}

TEST_F(MemoryFilesTest, ASyncedFileSurvives) {
  ASSERT_TRUE(files.write("d/f", "x"));
  EXPECT_EQ(files.unsynced_files(), 1U);
  ASSERT_TRUE(files.sync("d/f"));
  EXPECT_EQ(files.unsynced_files(), 0U);
  files.crash({});
  EXPECT_EQ(read("d/f"), "x");
}

TEST_F(MemoryFilesTest, AnUnsyncedOverwriteLeavesTheOldBytesAPrefixOrTheNew) {
  const auto after = [&](const CrashChoice& choice) {
    files.reset();
    EXPECT_TRUE(files.write("d/f", "old"));
    EXPECT_TRUE(files.sync("d/f"));
    EXPECT_TRUE(files.write("d/f", "newer"));
    files.crash(choice);
    return read("d/f");
  };
  EXPECT_EQ(after({}), "old");
  EXPECT_EQ(after({.bytes = UnsyncedBytes::torn, .torn_bytes = 0}), "");
  EXPECT_EQ(after({.bytes = UnsyncedBytes::torn, .torn_bytes = 2}), "ne");
  EXPECT_EQ(after({.bytes = UnsyncedBytes::torn, .torn_bytes = 99}), "newer");
  EXPECT_EQ(after({.bytes = UnsyncedBytes::kept}), "newer");
}

TEST_F(MemoryFilesTest, SyncedBytesAreNeverTorn) {
  ASSERT_TRUE(files.write("d/f", "whole"));
  ASSERT_TRUE(files.sync("d/f"));
  files.crash({.bytes = UnsyncedBytes::torn, .torn_bytes = 1});
  EXPECT_EQ(read("d/f"), "whole");
}

TEST_F(MemoryFilesTest, ARenameIsLostUntilItsFolderIsSynced) {
  ASSERT_TRUE(files.write("d/f", "old"));
  ASSERT_TRUE(files.sync("d/f"));
  ASSERT_TRUE(files.write("d/new", "new"));
  ASSERT_TRUE(files.sync("d/new"));
  ASSERT_TRUE(files.rename("d/new", "d/f"));
  files.crash({});
  EXPECT_EQ(read("d/f"), "old");
  EXPECT_EQ(read("d/new"), "new");

  ASSERT_TRUE(files.rename("d/new", "d/f"));
  ASSERT_TRUE(files.sync("d"));
  EXPECT_EQ(files.unsynced_folder_changes(), 0U);
  files.crash({});
  EXPECT_EQ(read("d/f"), "new");
  EXPECT_EQ(read("d/new"), none);
}

TEST_F(MemoryFilesTest, SyncingAnotherFolderKeepsNoRename) {
  ASSERT_TRUE(files.write("e/g", "x"));
  ASSERT_TRUE(files.write("d/new", "new"));
  ASSERT_TRUE(files.sync("d/new"));
  ASSERT_TRUE(files.rename("d/new", "d/f"));
  ASSERT_TRUE(files.sync("e"));
  files.crash({});
  EXPECT_EQ(read("d/f"), none);
  EXPECT_EQ(read("e/g"), "");
}

TEST_F(MemoryFilesTest, AnUnsyncedRenameMaySurviveWithoutTheBytes) {
  ASSERT_TRUE(files.write("d/f", "old"));
  ASSERT_TRUE(files.sync("d/f"));
  ASSERT_TRUE(files.write("d/new", "new"));
  ASSERT_TRUE(files.rename("d/new", "d/f"));
  files.crash({.folder_changes_kept = 2});
  EXPECT_EQ(read("d/f"), "") << "renamed before its bytes were synced";
}

TEST_F(MemoryFilesTest, FolderChangesSurviveOldestFirst) {
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(files.write(name, "x"));
  files.crash({.bytes = UnsyncedBytes::kept, .folder_changes_kept = 2});
  EXPECT_THAT(files.paths(), testing::ElementsAre("a", "b"));
}

TEST_F(MemoryFilesTest, ARemovalIsLostUntilItsFolderIsSynced) {
  ASSERT_TRUE(files.write("d/f", "x"));
  ASSERT_TRUE(files.sync("d/f"));
  ASSERT_TRUE(files.remove("d/f"));
  EXPECT_EQ(read("d/f"), none);
  files.crash({});
  EXPECT_EQ(read("d/f"), "x");
  ASSERT_TRUE(files.remove("d/f"));
  ASSERT_TRUE(files.sync("d"));
  files.crash({});
  EXPECT_EQ(read("d/f"), none);
}

TEST_F(MemoryFilesTest, AFileSyncedAfterItsNameWasRemovedAndMadeAgainSurvivesTheFolderSync) {
  ASSERT_TRUE(files.write("d/f", "first"));
  ASSERT_TRUE(files.sync("d/f"));
  ASSERT_TRUE(files.remove("d/f"));
  ASSERT_TRUE(files.write("d/f", "second"));
  ASSERT_TRUE(files.sync("d/f"));
  ASSERT_TRUE(files.sync("d"));
  files.crash({});
  EXPECT_EQ(read("d/f"), "second");
}

TEST_F(MemoryFilesTest, WhenOnlyAProcessDiedEverythingIsThere) {
  ASSERT_TRUE(files.write("d/f", "old"));
  ASSERT_TRUE(files.write("d/new", "new"));
  ASSERT_TRUE(files.rename("d/new", "d/f"));
  files.crash(kProcessDied);
  EXPECT_EQ(read("d/f"), "new");
  EXPECT_THAT(files.paths(), testing::ElementsAre("d/f"));
  files.crash({});
  EXPECT_EQ(read("d/f"), "new") << "what survived one crash survives the next";
}

TEST_F(MemoryFilesTest, TheFolderOfABareNameIsTheCurrentOneAndOfASlashedNameTheRoot) {
  ASSERT_TRUE(files.write("f", "x"));
  ASSERT_TRUE(files.rename("f", "g"));
  ASSERT_TRUE(files.sync("."));
  ASSERT_TRUE(files.write("/f", "x"));
  ASSERT_TRUE(files.sync("/"));
  EXPECT_EQ(files.unsynced_folder_changes(), 0U);
}

}  // namespace
}  // namespace holdfast::fakes
