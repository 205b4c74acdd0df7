// The bytes interface means the same over each of its implementations; keys are listed where a store can.
#include "holdfast/core/bytes_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bytes_as_text.hpp"
#include "holdfast/core/async_tensor_store.hpp"
#include "holdfast/core/local_disk_tensor_store.hpp"
#include "holdfast/core/memory_tier_store.hpp"
#include "holdfast/fakes/arena.hpp"
#include "holdfast/fakes/fluxon_owner.hpp"
#include "holdfast/fakes/memory_files.hpp"
#include "holdfast/fakes/mock_fluxon.hpp"
#include "task_executors.hpp"
#include "temporary_directory.hpp"

namespace holdfast::bytes_stores {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Each has a store, and settles what an environment may still be doing.
struct OverMemory {
  StdSync sync;
  MemoryTierStore<StdSync> tensors{sync};
  TensorBytes<MemoryTierStore<StdSync>> store{tensors};
  void settle() {}
};
struct OverFilesInMemory {
  using Tensors = LocalDiskTensorStore<fakes::MemoryFiles, StdSync>;
  fakes::MemoryFiles files;
  StdSync sync;
  Tensors tensors{files, sync, {.folder = "d"}};
  TensorBytes<Tensors> store{tensors};
  void settle() { files.crash({}); }
};
struct OverDisk {
  using Tensors = LocalDiskTensorStore<PosixFileSystem, StdSync>;
  TemporaryDirectory directory;
  PosixFileSystem files;
  StdSync sync;
  Tensors tensors{files, sync, {.folder = directory.path()}};
  TensorBytes<Tensors> store{tensors};
  void settle() {}
};
struct OverQueue {
  using Tensors = AsyncTensorStore<MemoryTierStore<StdSync>, StdSync>;
  StdSync sync;
  MemoryTierStore<StdSync> below{sync};
  QueuedExecutor executor;
  Tensors tensors{below, executor, sync, {}};
  TensorBytes<Tensors> store{tensors};
  void settle() { EXPECT_TRUE(tensors.flush().empty()); }
};
struct OverFluxon {
  fakes::Arena arena;
  fakes::VirtualClock clock;
  fakes::FakeOwner store{arena, clock, {.segment_bytes = 1 << 20, .grant_bytes = 64 << 10}};
  // Until a value is routed it cannot be removed.
  void settle() { clock.advance_by(kSecond); }
};

static_assert(BytesStore<decltype(OverMemory::store)> && EnumerableBytesStore<decltype(OverMemory::store)>);
static_assert(BytesStore<decltype(OverDisk::store)> && !EnumerableBytesStore<decltype(OverDisk::store)>);
static_assert(BytesStore<decltype(OverQueue::store)> && !EnumerableBytesStore<decltype(OverQueue::store)>);
static_assert(BytesStore<fakes::FakeOwner> && !EnumerableBytesStore<fakes::FakeOwner>);
static_assert(BytesStore<fakes::MockFluxon> && !EnumerableBytesStore<fakes::MockFluxon>);

template <class Over>
class BytesStoreTest : public testing::Test {};
using Stores = testing::Types<OverMemory, OverFilesInMemory, OverDisk, OverQueue, OverFluxon>;
TYPED_TEST_SUITE(BytesStoreTest, Stores);

TYPED_TEST(BytesStoreTest, WhatWasPutIsGotUntilItIsReplacedOrRemoved) {
  TypeParam over;
  EXPECT_TRUE(is_fluxon(over.store.get("a").error(), FluxonErrc::key_not_found));
  const std::string binary("\0\xff/..\n", 6);
  ASSERT_TRUE(over.store.put("a", text_bytes(binary)));
  ASSERT_TRUE(over.store.put("b", text_bytes("other")));
  EXPECT_EQ(as_text(over.store.get("a").value()), binary);
  ASSERT_TRUE(over.store.put("a", text_bytes("another")));
  EXPECT_EQ(as_text(over.store.get("a").value()), "another");
  over.settle();
  EXPECT_EQ(as_text(over.store.get("a").value()), "another");
  ASSERT_TRUE(over.store.remove("a"));
  EXPECT_TRUE(is_fluxon(over.store.get("a").error(), FluxonErrc::key_not_found));
  EXPECT_EQ(as_text(over.store.get("b").value()), "other");
}

TYPED_TEST(BytesStoreTest, RemovingWhatIsNotThereIsASuccessOrKeyNotFound) {
  TypeParam over;
  const Status removed = over.store.remove("a");
  EXPECT_TRUE(removed || is_fluxon(removed.error(), FluxonErrc::key_not_found));
}

// Without the real disk, whose syncs take long: it is the same store as over files in memory.
template <class Over>
class BytesStoreModel : public testing::Test {};
using QuickStores = testing::Types<OverMemory, OverFilesInMemory, OverQueue, OverFluxon>;
TYPED_TEST_SUITE(BytesStoreModel, QuickStores);

TYPED_TEST(BytesStoreModel, AnySequenceOfCallsAgreesWithAMap) {
  EXPECT_TRUE(rc::check([] {
    const auto steps = *rc::gen::container<std::vector<std::pair<int, std::string>>>(
        rc::gen::pair(rc::gen::inRange(0, 12), rc::gen::nonEmpty<std::string>()));
    TypeParam over;
    std::map<std::string, std::string> expected;
    for (const auto& [number, value] : steps) {
      const std::string key = "key/" + std::to_string(number % 4);
      if (number < 8) {
        RC_ASSERT(over.store.put(key, text_bytes(value)).has_value());
        expected[key] = value;
      } else {
        over.settle();
        static_cast<void>(over.store.remove(key));
        expected.erase(key);
      }
      const auto got = over.store.get(key);
      RC_ASSERT(got.has_value() == expected.contains(key));
      if (got) RC_ASSERT(as_text(*got) == expected[key]);
    }
    over.settle();
    for (const auto& [key, value] : expected) RC_ASSERT(as_text(over.store.get(key).value()) == value);
  }));
}

TEST(EnumerableBytes, KeysOfAPrefixAreListedInOrder) {
  OverMemory over;
  EXPECT_THAT(over.store.list_keys("").value(), IsEmpty());
  for (const char* key : {"b/2", "a", "b/1", "c", "b"}) ASSERT_TRUE(over.store.put(key, text_bytes("x")));
  EXPECT_THAT(over.store.list_keys("b/").value(), ElementsAre("b/1", "b/2"));
  EXPECT_THAT(over.store.list_keys("").value(), ElementsAre("a", "b", "b/1", "b/2", "c"));
  EXPECT_THAT(over.store.list_keys("b/3").value(), IsEmpty());
  ASSERT_TRUE(over.store.remove("b/1"));
  EXPECT_THAT(over.store.list_keys("b/").value(), ElementsAre("b/2"));
}

TEST(BytesOverFluxon, AValueThatIsNotRoutedYetIsNotFoundByARemovalAndStays) {
  OverFluxon over;
  ASSERT_TRUE(over.store.put("a", text_bytes("x")));
  EXPECT_TRUE(is_fluxon(over.store.remove("a").error(), FluxonErrc::key_not_found));
  EXPECT_TRUE(over.store.get("a").has_value());
  over.settle();
  EXPECT_TRUE(over.store.remove("a"));
}

}  // namespace
}  // namespace holdfast::bytes_stores
