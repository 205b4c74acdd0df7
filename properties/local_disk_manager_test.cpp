// A manager whose tensors are on a disk, by themselves and behind a queue: what a crash leaves is resumed right or
// computed anew, what is damaged is not restored, and a failed put leaves no file behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flaky_files.hpp"
#include "holdfast/core/async_tensor_store.hpp"
#include "holdfast/core/local_disk_tensor_store.hpp"
#include "session_fixture.hpp"
#include "task_executors.hpp"

namespace holdfast::local_disk_manager {
namespace {

using Disk = LocalDiskTensorStore<FlakyFiles, StdSync>;

// A store over files, made anew after each death.
struct Plain {
  using Store = Disk;
  Plain(FlakyFiles& files, StdSync& sync) : store(files, sync, {.folder = "d"}) {}
  Store store;
};
struct Queued {
  using Store = AsyncTensorStore<Disk, StdSync>;
  Queued(FlakyFiles& files, StdSync& sync)
      : disk(files, sync, {.folder = "d"}), store(disk, executor, sync, {.lanes = 2}) {}
  Disk disk;
  QueuedExecutor executor;
  Store store;
};

template <class Kind>
class LocalDiskManagerTest : public CoreTest {
 protected:
  using ManagerType = Manager<TestRuntime, typename Kind::Store>;
  using Binding = SessionBinding<ManagerType>;

  // One life of the process.
  struct Life {
    explicit Life(LocalDiskManagerTest& test)
        : kind(test.files, test.sync), manager(test.runtime, kind.store, {test.arena.map_private(4096), 512}, {}) {}
    Kind kind;
    ManagerType manager;
  };
  struct Session {
    std::unique_ptr<TestEngine> engine;
    std::unique_ptr<Binding> binding;
  };

  LocalDiskManagerTest() { begin(); }
  void begin() {
    life.reset();
    life = std::make_unique<Life>(*this);
  }
  void save() { ASSERT_TRUE(life->manager.save(files, "snapshots/forest").has_value()); }
  void die_and_begin_again() {
    files.crash({});
    begin();
    ASSERT_TRUE(life->manager.load(files, "snapshots/forest").has_value());
  }

  Session open() {
    Session session{std::make_unique<TestEngine>(device, stream, spec), nullptr};
    session.binding = std::move(*Binding::open(life->manager, *session.engine, {spec, 4, 3}));
    return session;
  }
  Result<IngestReceipt> generate(Session& session, const std::string& history) {
    session.engine->generate(history);
    return session.binding->on_chunk_finalized(history.substr(history.rfind('|') + 1), absorbed);
  }
  std::string write_two_chunks() {
    Session cold = open();
    EXPECT_TRUE(generate(cold, "|0").has_value());
    EXPECT_TRUE(generate(cold, "|0|1").has_value());
    return cold.engine->contents();
  }
  std::string cold_ring(std::uint32_t chunks) {
    TestEngine engine(device, stream, spec);
    std::string history;
    for (std::uint32_t i = 0; i < chunks; ++i) engine.generate(history += "|" + std::to_string(i));
    return engine.contents();
  }
  // How many of two chunks are there, and right.
  std::uint32_t resume(Session& session) {
    const std::vector<std::string_view> actions{"0", "1"};
    const Result<ResumeReceipt> receipt = session.binding->resume(actions, absorbed);
    EXPECT_TRUE(receipt.has_value()) << to_string(receipt.error());
    if (!receipt) return 0;
    EXPECT_EQ(session.engine->contents(), cold_ring(receipt->matched_chunks));
    return receipt->matched_chunks;
  }
  std::uint32_t chunks_resumed() {
    Session session = open();
    return resume(session);
  }
  std::size_t tensor_files() const {
    std::size_t count = 0;
    for (const std::string& path : files.files.paths()) count += path.ends_with(".tensor") ? 1U : 0U;
    return count;
  }
  NodeKey second_chunk() const { return node_key(node_key(spec.root, "0"), "1"); }

  FlakyFiles files;
  const WorldSpec spec = test_world(kFullRing, 64, "world");
  Absorbed absorbed;
  std::unique_ptr<Life> life;
};

using Kinds = testing::Types<Plain, Queued>;
TYPED_TEST_SUITE(LocalDiskManagerTest, Kinds);

TYPED_TEST(LocalDiskManagerTest, WhatIsReadyIsOnTheDiskAndResumedAfterACrash) {
  const std::string ring = this->write_two_chunks();
  EXPECT_EQ(this->tensor_files(), 10U);
  EXPECT_EQ(this->files.files.unsynced_files() + this->files.files.unsynced_folder_changes(), 0U);
  this->save();
  this->die_and_begin_again();
  EXPECT_EQ(this->chunks_resumed(), 2U);
  EXPECT_EQ(this->cold_ring(2), ring);
}

TYPED_TEST(LocalDiskManagerTest, ADamagedTensorIsNotRestoredAndItsChunkIsPutAgain) {
  this->write_two_chunks();
  const std::string path = Disk(this->files, this->sync, {.folder = "d"})
                               .path_of_key(kv_key(kv_locator(this->second_chunk()), 1, KvPart::v));
  std::string bytes = *this->files.files.read(path, 1 << 20);
  bytes.back() ^= 1;
  ASSERT_TRUE(this->files.files.write(path, bytes));
  auto session = this->open();
  EXPECT_EQ(this->resume(session), 1U);
  std::vector<Error> errors;
  this->life->manager.pump(errors);
  ASSERT_TRUE(this->generate(session, "|0|1").has_value());
  EXPECT_EQ(this->chunks_resumed(), 2U);
}

TYPED_TEST(LocalDiskManagerTest, AReadThatFailedWithdrawsNothing) {
  this->write_two_chunks();
  auto session = this->open();
  this->files.fail({3, FileFault::refused});
  const std::vector<std::string_view> actions{"0", "1"};
  const Result<ResumeReceipt> receipt = session.binding->resume(actions, this->absorbed);
  EXPECT_TRUE(this->files.struck());
  EXPECT_TRUE(!receipt.has_value() || receipt->matched_chunks == 0);
  EXPECT_EQ(this->chunks_resumed(), 2U);
}

TYPED_TEST(LocalDiskManagerTest, AFileCallThatFailsInAPutLeavesNothingReadyThatIsNotThereAndNoFileBehind) {
  std::uint64_t struck = 0;
  for (std::uint64_t call = 0; call < 24; ++call) {
    for (const FileFault fault : {FileFault::refused, FileFault::done, FileFault::torn}) {
      const FileFaultPoint point{call, fault, 45};
      SCOPED_TRACE(testing::Message() << point);
      this->files.files.reset();
      this->begin();
      auto session = this->open();
      ASSERT_TRUE(this->generate(session, "|0").has_value());
      this->files.fail(point);
      const Result<IngestReceipt> receipt = this->generate(session, "|0|1");
      if (!this->files.struck()) {
        EXPECT_TRUE(receipt.has_value() && receipt->kv == IngestVerdict::stored);
        continue;
      }
      ++struck;
      const bool stored = receipt.has_value() && receipt->kv == IngestVerdict::stored;
      EXPECT_FALSE(stored);
      std::vector<Error> errors;
      this->life->manager.pump(errors);
      EXPECT_TRUE(errors.empty());
      EXPECT_EQ(this->life->manager.counts().unsettled, 0U);
      const Node* node = this->life->manager.find(this->second_chunk());
      EXPECT_FALSE(node->blob().ready);
      EXPECT_EQ(this->tensor_files(), 5U + (node->skeleton().ready ? 1U : 0U));
      EXPECT_EQ(this->chunks_resumed(), 1U);
    }
  }
  EXPECT_EQ(struck, 20U * 3U) << "the four calls of each of the five tensors";
}

}  // namespace
}  // namespace holdfast::local_disk_manager
