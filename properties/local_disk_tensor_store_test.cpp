// Tensors on a disk: what was stored is there after any crash, what failed left the old value, the new one or none, and
// nothing damaged passes for a value.
#include "holdfast/core/local_disk_tensor_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bytes_as_text.hpp"
#include "flaky_files.hpp"
#include "stepping_sync.hpp"
#include "temporary_directory.hpp"

namespace holdfast::local_disk {
namespace {

using fakes::CrashChoice;
using fakes::UnsyncedBytes;
using Value = std::optional<std::string>;
using Values = std::set<Value>;

// Everything a disk could leave of at most `changes` changes of folders that were not synced.
std::vector<CrashChoice> crash_choices(std::uint64_t changes) {
  std::vector<CrashChoice> choices;
  for (std::uint64_t kept = 0; kept <= changes; ++kept) {
    choices.push_back({UnsyncedBytes::lost, 0, kept});
    choices.push_back({UnsyncedBytes::torn, 1, kept});
    choices.push_back({UnsyncedBytes::torn, 45, kept});
    choices.push_back({UnsyncedBytes::kept, 0, kept});
  }
  return choices;
}

class Disk {
 public:
  Status put(const std::string& key, const std::string& value) { return store.put_tensor(key, owned_bytes(value)); }
  // Nothing when there is no such file; the test fails where anything else is told.
  Value get(const std::string& key) {
    const Result<std::vector<std::byte>> bytes = store.get_tensor(key);
    const Result<bool> present = store.has_tensor(key);
    EXPECT_TRUE(present.has_value());
    EXPECT_EQ(present.value_or(false), bytes.has_value());
    if (bytes) return as_text(*bytes);
    EXPECT_TRUE(is_fluxon(bytes.error(), FluxonErrc::key_not_found)) << to_string(bytes.error());
    return std::nullopt;
  }
  std::size_t temporary_files() const {
    std::size_t count = 0;
    for (const std::string& path : files.files.paths()) count += path.ends_with(".tmp") ? 1U : 0U;
    return count;
  }

  FlakyFiles files;
  SteppingSync sync;
  LocalDiskTensorStore<FlakyFiles, SteppingSync> store{files, sync, {.folder = "d", .lanes = 2}};
};

class LocalDiskTest : public testing::Test {
 protected:
  Disk disk;
};

TEST_F(LocalDiskTest, WhatWasPutIsThereUntilItIsRemoved) {
  EXPECT_EQ(disk.get("a"), std::nullopt);
  ASSERT_TRUE(disk.put("a", "one"));
  ASSERT_TRUE(disk.put("b", ""));
  EXPECT_EQ(disk.get("a"), "one");
  EXPECT_EQ(disk.get("b"), "");
  ASSERT_TRUE(disk.put("a", "another"));
  EXPECT_EQ(disk.get("a"), "another");
  ASSERT_TRUE(disk.store.remove_tensor("a"));
  EXPECT_EQ(disk.get("a"), std::nullopt);
  EXPECT_EQ(disk.get("b"), "");
  EXPECT_EQ(disk.temporary_files(), 0U);
}

TEST_F(LocalDiskTest, RemovingWhatIsNotThereIsASuccess) {
  EXPECT_TRUE(disk.store.remove_tensor("a")) << "not even the folder is there";
  ASSERT_TRUE(disk.put("b", "x"));
  EXPECT_TRUE(disk.store.remove_tensor("a"));
}

TEST_F(LocalDiskTest, WhatSucceededSurvivesEveryCrash) {
  for (const CrashChoice& choice : crash_choices(4)) {
    disk.files.files.reset();
    ASSERT_TRUE(disk.put("a", "one"));
    ASSERT_TRUE(disk.put("b", "two"));
    ASSERT_TRUE(disk.put("a", "three"));
    ASSERT_TRUE(disk.store.remove_tensor("b"));
    disk.files.crash(choice);
    EXPECT_EQ(disk.get("a"), "three");
    EXPECT_EQ(disk.get("b"), std::nullopt);
  }
}

TEST_F(LocalDiskTest, KeysAndValuesOfTheLimitAreStoredAndLongerOnesRefused) {
  LocalDiskTensorStore store(disk.files, disk.sync, {.folder = "d", .key_bytes_max = 4, .value_bytes_max = 8});
  EXPECT_TRUE(store.put_tensor("1234", owned_bytes("12345678")));
  EXPECT_TRUE(store.get_tensor("1234").has_value());
  const std::uint64_t calls = disk.files.calls;
  for (const Status& refused :
       {store.put_tensor("12345", owned_bytes("1")), store.put_tensor("1", owned_bytes("123456789"))}) {
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.error().is(Errc::invalid_argument));
  }
  EXPECT_TRUE(store.get_tensor("12345").error().is(Errc::invalid_argument));
  EXPECT_FALSE(store.has_tensor("12345").has_value());
  EXPECT_EQ(disk.files.calls, calls) << "nothing was asked of the disk";
}

TEST_F(LocalDiskTest, AFileTooLongForTheLimitIsNotReadIn) {
  ASSERT_TRUE(disk.put("a", "123456789"));
  LocalDiskTensorStore store(disk.files, disk.sync, {.folder = "d", .value_bytes_max = 8});
  const auto value = store.get_tensor("a");
  ASSERT_FALSE(value.has_value());
  EXPECT_TRUE(value.error().is(Errc::wrong_length)) << to_string(value.error());
  EXPECT_TRUE(mentions(value.error(), Origin::file_system, EFBIG));
}

TEST_F(LocalDiskTest, EachKindOfDamageIsToldApartWithItsFileItsKeyAndTheRemedy) {
  const auto after = [&](auto&& change) {
    EXPECT_TRUE(disk.put("a", "the value"));
    const std::string path = disk.store.path_of_key("a");
    std::string bytes = disk.files.files.read(path, 1000).value();
    change(bytes);
    EXPECT_TRUE(disk.files.files.write(path, bytes));
    const auto value = disk.store.get_tensor("a");
    const Result<bool> present = disk.store.has_tensor("a");
    EXPECT_TRUE(present.has_value() && !*present) << "as good as none";
    if (value) return Errc::invalid_argument;
    EXPECT_THAT(value.error().detail, testing::StartsWith(path + ": "));
    EXPECT_THAT(value.error().detail, testing::HasSubstr("(key a): remove the key, or put it again"));
    EXPECT_EQ(value.error().origin, Origin::core);
    return static_cast<Errc>(value.error().code);
  };
  EXPECT_EQ(after([](std::string& bytes) { bytes.pop_back(); }), Errc::torn_file);
  EXPECT_EQ(after([](std::string& bytes) { bytes.clear(); }), Errc::torn_file);
  EXPECT_EQ(after([](std::string& bytes) { bytes += 'x'; }), Errc::wrong_length);
  EXPECT_EQ(after([](std::string& bytes) { bytes.back() ^= 1; }), Errc::wrong_checksum);
  EXPECT_EQ(after([](std::string& bytes) { bytes = encode_tensor_file("b", {}); }), Errc::foreign_file);
  ASSERT_TRUE(disk.put("a", "again"));
  EXPECT_EQ(disk.get("a"), "again");
}

TEST_F(LocalDiskTest, AReadThatFailedSaysNeitherThereNorGone) {
  ASSERT_TRUE(disk.put("a", "x"));
  disk.files.fail({0, FileFault::refused});
  const Result<bool> present = disk.store.has_tensor("a");
  ASSERT_FALSE(present.has_value());
  EXPECT_TRUE(present.error().is(Errc::file_failed));
  EXPECT_TRUE(mentions(present.error(), Origin::file_system, EIO));
  EXPECT_THAT(present.error().detail, testing::HasSubstr("(key a)"));
}

// One operation with every fault at every call, and everything a crash may leave after a death.
struct Operation {
  std::string name;
  Value before;
  Value after;
};

class LocalDiskFaults : public testing::TestWithParam<Operation> {
 protected:
  static Status perform(Disk& disk, const Operation& operation) {
    return operation.after ? disk.put("a", *operation.after) : disk.store.remove_tensor("a");
  }
  static void prepare(Disk& disk, const Operation& operation) {
    ASSERT_TRUE(disk.put("other", "stays"));
    if (operation.before) {
      ASSERT_TRUE(disk.put("a", *operation.before));
    }
  }
  static void expect_old_or_new(Disk& disk, const Operation& operation) {
    const Value value = disk.get("a");
    EXPECT_TRUE(value == operation.before || value == operation.after) << value.value_or("none");
    EXPECT_EQ(disk.get("other"), "stays");
  }
  // Whatever failed before is over with the next success.
  static void expect_usable(Disk& disk, const Operation& operation) {
    ASSERT_TRUE(perform(disk, operation));
    EXPECT_EQ(disk.get("a"), operation.after);
    disk.files.crash({});
    EXPECT_EQ(disk.get("a"), operation.after);
    EXPECT_EQ(disk.get("other"), "stays");
  }
};

TEST_P(LocalDiskFaults, AFailureIsToldAndLeavesTheOldValueOrTheNewOne) {
  const Operation& operation = GetParam();
  std::uint64_t struck = 0;
  for (std::uint64_t call = 0; call < 8; ++call) {
    for (const FileFault fault : {FileFault::refused, FileFault::done, FileFault::torn}) {
      const FileFaultPoint point{call, fault, 45};
      SCOPED_TRACE(testing::Message() << point);
      Disk disk;
      prepare(disk, operation);
      disk.files.fail(point);
      const Status status = perform(disk, operation);
      if (!disk.files.struck()) {
        EXPECT_TRUE(status);
        continue;
      }
      ++struck;
      ASSERT_FALSE(status);
      EXPECT_TRUE(status.error().is(Errc::file_failed));
      EXPECT_TRUE(mentions(status.error(), Origin::file_system, EIO)) << to_string(status.error());
      EXPECT_THAT(status.error().detail, testing::HasSubstr(disk.store.path_of_key("a")));
      EXPECT_THAT(status.error().detail, testing::HasSubstr("(key a)"));
      expect_old_or_new(disk, operation);
      EXPECT_EQ(disk.temporary_files(), 0U);
      expect_usable(disk, operation);
    }
  }
  EXPECT_GE(struck, operation.after ? 4U * 3U : 2U * 3U) << "every call of it was struck";
}

TEST_P(LocalDiskFaults, ADeathLeavesTheOldValueOrTheNewOneWhateverTheDiskKept) {
  const Operation& operation = GetParam();
  std::uint64_t struck = 0;
  for (std::uint64_t call = 0; call < 5; ++call) {
    for (const FileFault fault : {FileFault::dead_before, FileFault::dead_after, FileFault::dead_torn}) {
      for (const CrashChoice& choice : crash_choices(4)) {
        const FileFaultPoint point{call, fault, 45};
        SCOPED_TRACE(testing::Message() << point << " changes " << choice.folder_changes_kept << " bytes "
                                        << static_cast<int>(choice.bytes));
        Disk disk;
        prepare(disk, operation);
        disk.files.fail(point);
        const Status status = perform(disk, operation);
        if (disk.files.struck()) {
          ++struck;
          EXPECT_FALSE(status);
        }
        disk.files.crash(choice);
        expect_old_or_new(disk, operation);
        EXPECT_LE(disk.temporary_files(), 1U);
        expect_usable(disk, operation);
      }
    }
  }
  EXPECT_GT(struck, 0U);
}

INSTANTIATE_TEST_SUITE_P(LocalDisk, LocalDiskFaults,
                         testing::Values(Operation{"a_put", std::nullopt, "new"},
                                         Operation{"an_overwrite", "old", "new"},
                                         Operation{"a_removal", "old", std::nullopt}),
                         [](const auto& of) { return of.param.name; });

TEST_F(LocalDiskTest, AFailedCleanUpIsToldBesideTheFailure) {
  // The write fails and so does the removal of what it left.
  class BrokenFiles {
   public:
    Result<std::string> read(const std::string&, std::uint64_t) { return failure(ENOENT); }
    Status write(const std::string&, const std::string&) { return failure(ENOSPC); }
    Status sync(const std::string&) { return {}; }
    Status rename(const std::string&, const std::string&) { return {}; }
    Status remove(const std::string&) { return failure(EROFS); }

   private:
    static Error failure(int code) {
      Error error;
      error.origin = Origin::file_system;
      error.code = code;
      return error;
    }
  } files;
  LocalDiskTensorStore store(files, disk.sync, {.folder = "d"});
  const Status status = store.put_tensor("a", {});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().detail, testing::HasSubstr("no space is left: make room"));
  ASSERT_EQ(status.error().suppressed.size(), 1U);
  EXPECT_EQ(status.error().suppressed[0].code, EROFS);
}

TEST_F(LocalDiskTest, ManyDeathsLeaveNoMoreTemporaryFilesThanLanes) {
  for (int i = 0; i < 40; ++i) {
    disk.files.fail({2, FileFault::dead_before});
    EXPECT_FALSE(disk.put("key" + std::to_string(i), "x"));
    disk.files.crash(fakes::kProcessDied);
    EXPECT_LE(disk.temporary_files(), 2U);
  }
  EXPECT_GT(disk.temporary_files(), 0U) << "or nothing was tested";
}

// ---- Any sequence of operations, faults and crashes against what each key may hold.

struct Step {
  std::uint32_t op = 0;  // 0..3 put, 4..5 remove, 6 get, 7 crash
  std::uint32_t key = 0;
  std::string value;
  std::optional<FileFaultPoint> fault;
  CrashChoice crash;
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
  out << "op " << step.op << " key " << step.key << " value " << step.value;
  if (step.fault) out << " " << *step.fault;
  return out << " kept " << step.crash.folder_changes_kept << " bytes " << static_cast<int>(step.crash.bytes) << "\n";
}

rc::Gen<Step> any_step() {
  return rc::gen::exec([] {
    Step step;
    step.op = *rc::gen::inRange<std::uint32_t>(0, 8);
    step.key = *rc::gen::inRange<std::uint32_t>(0, 4);
    step.value = *rc::gen::container<std::string>(rc::gen::inRange('a', 'z'));
    if (*rc::gen::inRange(0, 3) == 0) {
      step.fault =
          FileFaultPoint{*rc::gen::inRange<std::uint64_t>(0, 5),
                         *rc::gen::elementOf(std::vector<FileFault>(std::begin(kFileFaults), std::end(kFileFaults))),
                         *rc::gen::inRange<std::uint64_t>(0, 60)};
    }
    step.crash = {*rc::gen::element(UnsyncedBytes::lost, UnsyncedBytes::torn, UnsyncedBytes::kept),
                  *rc::gen::inRange<std::uint64_t>(0, 60), *rc::gen::inRange<std::uint64_t>(0, 6)};
    return step;
  });
}

class DiskModel {
 public:
  void run(const Step& step) {
    const std::string key = "key" + std::to_string(step.key);
    if (step.op < 6) {
      const Value after = step.op < 4 ? Value(step.value) : std::nullopt;
      if (step.fault) disk_.files.fail(*step.fault);
      const Status status = after ? disk_.put(key, *after) : disk_.store.remove_tensor(key);
      const bool struck = step.fault && disk_.files.struck();
      RC_ASSERT(status.has_value() == !struck);
      if (status) {
        may_be_[key] = {after};
      } else {
        allowed(key).insert(after);
      }
      if (struck && is_death(step.fault->fault)) crash(step);
    } else if (step.op == 7) {
      crash(step);
    }
    verify();
  }

 private:
  void crash(const Step& step) { disk_.files.crash(step.crash); }
  Values& allowed(const std::string& key) { return may_be_.try_emplace(key, Values{std::nullopt}).first->second; }
  void verify() {
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::string key = "key" + std::to_string(i);
      const auto value = disk_.store.get_tensor(key);
      if (!value) RC_ASSERT(is_fluxon(value.error(), FluxonErrc::key_not_found));
      const Value got = value ? Value(as_text(*value)) : std::nullopt;
      RC_ASSERT(allowed(key).contains(got));
      RC_ASSERT(disk_.store.has_tensor(key).value() == value.has_value());
    }
  }

  Disk disk_;
  std::map<std::string, Values> may_be_;
};

RC_GTEST_PROP(LocalDiskModel, EachKeyHoldsWhatWasStoredLastOrWhatFailedSince, ()) {
  const auto steps = *rc::gen::container<std::vector<Step>>(any_step());
  DiskModel model;
  for (const Step& step : steps) model.run(step);
}

// ---- A real file system.

class LocalDiskOnPosix : public testing::Test {
 protected:
  TemporaryDirectory directory;
  PosixFileSystem files;
  StdSync sync;
  LocalDiskTensorStore<PosixFileSystem, StdSync> store{files, sync, {.folder = directory.path()}};
};

TEST_F(LocalDiskOnPosix, ValuesAreReadBackByAnotherStoreOfTheFolder) {
  const std::string large(3 << 20, 'x');
  ASSERT_TRUE(store.put_tensor("a:kv:L0:k", owned_bytes(large)));
  ASSERT_TRUE(store.put_tensor("../b", owned_bytes("outside")));
  LocalDiskTensorStore<PosixFileSystem, StdSync> second{files, sync, {.folder = directory.path() + "/"}};
  EXPECT_EQ(second.get_tensor("a:kv:L0:k").value(), owned_bytes(large));
  EXPECT_EQ(second.get_tensor("../b").value(), owned_bytes("outside"));
  EXPECT_EQ(directory.entries().size(), 2U) << "no temporary file, nothing elsewhere";
  EXPECT_TRUE(second.remove_tensor("a:kv:L0:k"));
  EXPECT_FALSE(*store.has_tensor("a:kv:L0:k"));
  EXPECT_EQ(directory.entries().size(), 1U);
}

TEST_F(LocalDiskOnPosix, ACutOffFileIsTorn) {
  ASSERT_TRUE(store.put_tensor("a", owned_bytes("the value")));
  std::filesystem::resize_file(store.path_of_key("a"), 49);
  EXPECT_TRUE(store.get_tensor("a").error().is(Errc::torn_file));
}

TEST_F(LocalDiskOnPosix, AMissingFolderIsToldWithTheRemedy) {
  LocalDiskTensorStore<PosixFileSystem, StdSync> nowhere{files, sync, {.folder = directory.path("nowhere")}};
  const Status status = nowhere.put_tensor("a", owned_bytes("x"));
  ASSERT_FALSE(status);
  EXPECT_THAT(to_string(status.error()), testing::HasSubstr("create its folder"));
  EXPECT_TRUE(mentions(status.error(), Origin::file_system, ENOENT));
  EXPECT_TRUE(is_fluxon(nowhere.get_tensor("a").error(), FluxonErrc::key_not_found));
  EXPECT_TRUE(nowhere.remove_tensor("a"));
}

}  // namespace
}  // namespace holdfast::local_disk
