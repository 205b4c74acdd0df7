// The manager by itself: what it evicts, what it accounts, what it saves, and what it withdraws.
#include "holdfast/core/manager.hpp"

#include <gtest/gtest.h>

#include "holdfast/core/memory_tier_store.hpp"
#include "holdfast/fakes/memory_files.hpp"
#include "session_fixture.hpp"

namespace holdfast {
namespace {

using testing::_;
using testing::Invoke;
using testing::Return;

constexpr std::uint64_t kChunkSlots = 4 * 4096;  // K and V of two layers
constexpr std::uint64_t kLatentSlot = 4096;

class ManagerTest : public SessionTest {
 protected:
  void write(const std::vector<std::string>& actions) {
    Session session = open(spec);
    generate_all(session, actions);
    settle();
  }
  Result<EvictReceipt> evict(const std::vector<std::string>& actions) {
    return manager.evict_blob(*node(spec, actions), absorbed);
  }
  void fail_removals(int times) {
    auto& expected = EXPECT_CALL(fluxon, remove).Times(testing::AtLeast(times));
    for (int i = 0; i < times; ++i) expected.WillOnce(Return(fluxon_error(FluxonErrc::network, "remove")));
    expected.WillRepeatedly(Invoke(&owner, &fakes::FakeOwner::remove));
  }
  std::string latent_key(const std::vector<std::string>& actions) { return latent_locator(node(spec, actions)->key()); }

  const WorldSpec spec = world_spec(kFullRing);
};

TEST_F(ManagerTest, ExplicitReclamationRemovesTheBlobAndKeepsTheSkeleton) {
  write({"0", "1"});
  EXPECT_EQ(owner.stored_keys(), 10U);
  const Result<EvictReceipt> receipt = evict({"0", "1"});
  ASSERT_TRUE(receipt.has_value());
  EXPECT_TRUE(receipt->evicted);
  EXPECT_EQ(receipt->freed_bytes, kChunkSlots);
  EXPECT_EQ(owner.stored_keys(), 6U);
  EXPECT_TRUE(owner.peek(latent_key({"0", "1"})).has_value());
  EXPECT_TRUE(node(spec, {"0", "1"})->skeleton().ready);
  EXPECT_FALSE(ready(spec, {"0", "1"}));
}

TEST_F(ManagerTest, RemovalIsIdempotent) {
  write({"0"});
  ASSERT_TRUE(evict({"0"})->evicted);
  EXPECT_CALL(fluxon, remove).Times(0);
  const Result<EvictReceipt> again = evict({"0"});
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(again->evicted);
}

TEST_F(ManagerTest, ABlobWhoseRemovalFailedIsKeptAndNotServedAndTriedAgain) {
  write({"0"});
  EXPECT_CALL(fluxon, remove)
      .WillOnce(Invoke(&owner, &fakes::FakeOwner::remove))
      .WillOnce(Return(fluxon_error(FluxonErrc::network, "remove")))
      .WillRepeatedly(Invoke(&owner, &fakes::FakeOwner::remove));
  const Result<EvictReceipt> failed = evict({"0"});
  ASSERT_FALSE(failed.has_value());
  EXPECT_TRUE(failed.error().is(Errc::remove_failed));
  EXPECT_TRUE(mentions(failed.error(), Origin::fluxon, 7000));
  EXPECT_TRUE(node(spec, {"0"})->blob().present);
  EXPECT_FALSE(ready(spec, {"0"}));
  EXPECT_EQ(manager.accounted_bytes(), kChunkSlots + kLatentSlot);
  Session session = open(spec);
  EXPECT_EQ(resume(session, {"0"})->matched_chunks, 0U);

  clock.advance_by(kSettleBound);
  std::vector<Error> errors;
  manager.pump(errors);
  EXPECT_FALSE(node(spec, {"0"})->blob().present);
  EXPECT_EQ(manager.accounted_bytes(), kLatentSlot);
  EXPECT_EQ(owner.stored_keys(), 1U);
}

TEST_F(ManagerTest, EveryPumpTriesOtherFailedEvictionsAgain) {
  TestManager slow{runtime, store, {.pump_evictions_max = 1}};
  TestEngine engine(device, stream, spec);
  auto session = *SessionBinding<TestManager>::open(slow, engine, {spec, 4, 3});
  for (const char* action : {"0", "1"}) {
    engine.generate(std::string("|") + action);
    ASSERT_TRUE(session->on_chunk_finalized(action, absorbed).has_value());
  }
  settle();
  Node* first = slow.find(node_key(spec.root, "0"));
  Node* second = slow.find(node_key(first->key(), "1"));
  fail_removals(8);
  ASSERT_FALSE(slow.evict_blob(*first, absorbed).has_value());
  ASSERT_FALSE(slow.evict_blob(*second, absorbed).has_value());
  std::vector<Error> errors;
  slow.pump(errors);
  EXPECT_FALSE(first->blob().present);
  EXPECT_TRUE(second->blob().present);
  slow.pump(errors);
  EXPECT_FALSE(second->blob().present);
}

TEST_F(ManagerTest, APumpTellsWhatFailedInAnEvictionThatItTriedAgain) {
  write({"0"});
  fail_removals(5);
  ASSERT_FALSE(evict({"0"}).has_value());
  std::vector<Error> errors;
  manager.pump(errors);  // one removal fails again
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_TRUE(mentions(errors[0], Origin::fluxon, 7000));
  errors.clear();
  manager.pump(errors);  // three values have gone already
  EXPECT_FALSE(node(spec, {"0"})->blob().present);
  ASSERT_EQ(errors.size(), 3U);
  for (const Error& error : errors) EXPECT_TRUE(is_fluxon(error, FluxonErrc::key_not_found)) << to_string(error);
}

TEST_F(ManagerTest, AnotherIngestAfterAFailedEvictionStoresTheChunkAgain) {
  write({"0"});
  EXPECT_CALL(fluxon, remove)
      .WillOnce(Return(fluxon_error(FluxonErrc::network, "remove")))
      .WillRepeatedly(Invoke(&owner, &fakes::FakeOwner::remove));
  ASSERT_FALSE(evict({"0"}).has_value());
  clock.advance_by(kSettleBound);
  Session session = open(spec);
  const Result<IngestReceipt> receipt = generate(session, "0");
  ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
  EXPECT_EQ(receipt->kv, IngestVerdict::stored);
  EXPECT_EQ(manager.accounted_bytes(), kChunkSlots + kLatentSlot);
  EXPECT_EQ(manager.counts().unsettled, 0U);
}

TEST_F(ManagerTest, APinnedBlobIsNotEvictedWhileItsNamespaceHasASession) {
  const WorldSpec sunk = world_spec(kShortRing);
  Session session = open(sunk);
  generate_all(session, {"0"});
  settle();
  EXPECT_CALL(fluxon, remove).Times(0);
  const Result<EvictReceipt> receipt = manager.evict_blob(*node(sunk, {"0"}), absorbed);
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(receipt.error().is(Errc::in_use));
  EXPECT_TRUE(ready(sunk, {"0"}));
}

TEST_F(ManagerTest, AReferencedBlobIsNotEvicted) {
  write({"0"});
  const std::vector<std::string_view> actions{"0"};
  Namespace* world = *manager.open(spec);
  {
    const Result<PathLease> path = manager.lookup(*world, spec, actions);
    ASSERT_EQ(path->matched_chunks(), 1U);
    EXPECT_TRUE(evict({"0"}).error().is(Errc::in_use));
  }
  EXPECT_TRUE(evict({"0"})->evicted);
}

TEST_F(ManagerTest, AFailedValuePutLeavesTheLatentPublishedAndSaysSo) {
  Session session = open(spec);
  EXPECT_CALL(fluxon, local_fast_put_start(testing::SizeIs(1), _, _));
  EXPECT_CALL(fluxon, local_fast_put_start(testing::SizeIs(4), _, _))
      .WillOnce(Return(fluxon_error(FluxonErrc::network, "local_fast_put_start")));
  const Result<IngestReceipt> receipt = generate(session, "0");
  ASSERT_TRUE(receipt.has_value());
  EXPECT_EQ(receipt->latent, IngestVerdict::stored);
  EXPECT_EQ(receipt->kv, IngestVerdict::failed);
  ASSERT_EQ(absorbed.size(), 1U);
  EXPECT_TRUE(mentions(absorbed[0], Origin::fluxon, 7000));
  EXPECT_TRUE(node(spec, {"0"})->skeleton().ready);
  EXPECT_FALSE(ready(spec, {"0"}));
}

TEST_F(ManagerTest, LengthsThatAreNotTheLayoutsAreNotStored) {
  Namespace* world = *manager.open(spec);
  Node& chunk = manager.enter(*world->root(), "0");
  const std::vector<DeviceTensor> values(4, tensor(96));
  EXPECT_CALL(fluxon, local_fast_put_start(testing::SizeIs(4), _, _)).Times(0);
  EXPECT_CALL(fluxon, local_fast_put_start(testing::SizeIs(1), _, _)).Times(1);
  const Result<IngestReceipt> refused = manager.ingest(chunk, spec.layout, values, tensor(65), stream, absorbed);
  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(refused.error().is(Errc::layout_mismatch));
  const Result<IngestReceipt> half =
      manager.ingest(chunk, spec.layout, std::span(values).first(3), tensor(64), stream, absorbed);
  ASSERT_TRUE(half.has_value()) << "the latent is stored";
  EXPECT_EQ(half->kv, IngestVerdict::failed);
  ASSERT_EQ(absorbed.size(), 1U);
  EXPECT_TRUE(absorbed[0].is(Errc::layout_mismatch));
  EXPECT_FALSE(chunk.blob().present);
}

TEST_F(ManagerTest, AChunkThatIsBeingWrittenIsElsewhereForEverybodyElse) {
  Session writer = open(spec);
  Session other = open(spec);
  EXPECT_CALL(fluxon, local_fast_put_start(testing::SizeIs(1), _, _))
      .WillOnce(Invoke([&](Keys keys, std::uint64_t value_bytes, const PutOptions& options) {
        const Result<IngestReceipt> receipt = generate(other, "0");
        EXPECT_TRUE(receipt.has_value());
        EXPECT_EQ(receipt->latent, IngestVerdict::elsewhere);
        EXPECT_EQ(receipt->kv, IngestVerdict::elsewhere);
        return owner.local_fast_put_start(keys, value_bytes, options);
      }));
  EXPECT_CALL(fluxon, local_fast_put_start(testing::SizeIs(4), _, _)).Times(1);
  EXPECT_EQ(generate(writer, "0")->kv, IngestVerdict::stored);
}

TEST_F(ManagerTest, AWorldThatIsNotSaneIsNotOpened) {
  WorldSpec insane = spec;
  insane.layout.chunk_size = 0;
  const Result<Namespace*> world = manager.open(insane);
  ASSERT_FALSE(world.has_value());
  EXPECT_TRUE(world.error().is(Errc::invalid_argument));
}

TEST_F(ManagerTest, WarmingUpRegistersWhatThePutsWillNeed) {
  ASSERT_TRUE(device.registrations().empty());
  ASSERT_TRUE(manager.warm_up(absorbed).has_value());
  EXPECT_FALSE(device.registrations().empty());
}

TEST_F(ManagerTest, ValuesOfDifferentLengthsAreAccountedOneByOneUntilTheyAreGone) {
  WorldSpec mixed = world_spec(kFullRing, 0);
  mixed.layout.mixed_kv_shapes = {{48}, {4096}, {5000}};
  Session session = open(mixed);
  ASSERT_TRUE(generate(session, "0").has_value());
  const std::uint64_t held = manager.accounted_bytes();
  ASSERT_TRUE(manager.evict_blob(*node(mixed, {"0"}), absorbed).has_value());
  ASSERT_EQ(manager.counts().unsettled, 4U) << "they are not routed yet";
  EXPECT_EQ(manager.accounted_bytes(), held);
}

TEST_F(ManagerTest, AccountedBytesAreTheSlotsOfWhatIsHeld) {
  write({"0", "1", "2"});
  EXPECT_EQ(manager.accounted_bytes(), 3 * (kChunkSlots + kLatentSlot));
  EXPECT_EQ(manager.accounted_bytes(), owner.held_bytes());
  ASSERT_TRUE(evict({"0", "1", "2"}).has_value());
  EXPECT_EQ(manager.accounted_bytes(), owner.held_bytes());
}

class CapacityTest : public ManagerTest {
 protected:
  TestManager small{runtime, store, {.capacity_bytes = 3 * (kChunkSlots + kLatentSlot)}};
  Namespace* world = *small.open(spec);
  TestEngine engine{device, stream, spec};

  Result<IngestReceipt> ingest(Node& parent, const std::string& action) {
    engine.generate("|" + action);
    const std::vector<DeviceTensor> ring = engine.ring();
    const auto values = finalized_chunk(spec, ring, engine.indices().local_end_tokens);
    return small.ingest(small.enter(parent, action), spec.layout, *values, engine.finalized_latent(), stream, absorbed);
  }
};

TEST_F(CapacityTest, APutUnderPressureEvictsTheLeastRecentlyUsedLeafFirst) {
  for (const char* action : {"0", "1", "2"}) ASSERT_TRUE(ingest(*world->root(), action).has_value());
  settle();
  const std::vector<std::string_view> first{"0"};
  ASSERT_EQ(small.lookup(*world, spec, first)->matched_chunks(), 1U);  // used again: "1" is the oldest now
  ASSERT_TRUE(ingest(*world->root(), "3").has_value());
  EXPECT_TRUE(small.find(node_key(spec.root, "0"))->blob().ready);
  EXPECT_FALSE(small.find(node_key(spec.root, "1"))->blob().ready);
  EXPECT_TRUE(small.find(node_key(spec.root, "3"))->blob().ready);
}

TEST_F(CapacityTest, EnteringAChunkCountsAsAnAccess) {
  for (const char* action : {"0", "1", "2"}) ASSERT_TRUE(ingest(*world->root(), action).has_value());
  settle();
  small.enter(*world->root(), "0");
  ASSERT_TRUE(small.make_room(1, absorbed)->evicted);
  EXPECT_TRUE(small.find(node_key(spec.root, "0"))->blob().ready);
  EXPECT_FALSE(small.find(node_key(spec.root, "1"))->blob().ready);
}

TEST_F(CapacityTest, NoChunkIsStoredBeyondTheCapacity) {
  for (const char* action : {"0", "1", "2", "3"}) {
    ASSERT_TRUE(ingest(*world->root(), action).has_value());
    settle();
  }
  EXPECT_LE(small.accounted_bytes(), 3 * (kChunkSlots + kLatentSlot));
}

TEST_F(CapacityTest, NoRoomIsMadeWhereNoneIsNeeded) {
  for (const char* action : {"0", "1", "2"}) ASSERT_TRUE(ingest(*world->root(), action).has_value());
  settle();
  ASSERT_EQ(small.accounted_bytes(), 3 * (kChunkSlots + kLatentSlot));
  EXPECT_FALSE(small.make_room(0, absorbed)->evicted);
}

TEST_F(CapacityTest, WhenNothingCanBeEvictedThePutIsRefusedAtOnce) {
  for (const char* action : {"0", "1", "2"}) ASSERT_TRUE(ingest(*world->root(), action).has_value());
  EXPECT_CALL(fluxon, local_fast_put_start).Times(0);
  EXPECT_CALL(fluxon, remove).Times(0);
  const Result<IngestReceipt> receipt = ingest(*world->root(), "3");
  ASSERT_FALSE(receipt.has_value()) << "all are younger than their routes";
  EXPECT_TRUE(receipt.error().is(Errc::out_of_room));
}

class SavedManagerTest : public ManagerTest {
 protected:
  fakes::MemoryFiles files;
  TestManager next{runtime, store, {}};
};

TEST_F(SavedManagerTest, ASnapshotRestoresWhatWasReadyAsHints) {
  write({"0", "1"});
  ASSERT_TRUE(evict({"0", "1"}).has_value());
  ASSERT_TRUE(manager.save(files, "d/snapshot.json").has_value());
  ASSERT_TRUE(next.load(files, "d/snapshot.json").has_value());
  const Node* first = next.find(node_key(spec.root, "0"));
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(first->blob().ready);
  EXPECT_FALSE(first->blob().confirmed);
  EXPECT_FALSE(first->skeleton().confirmed);
  EXPECT_EQ(next.accounted_bytes(), manager.accounted_bytes());

  TestEngine engine(device, stream, spec);
  auto binding = *SessionBinding<TestManager>::open(next, engine, {spec, 4, 3});
  const std::vector<std::string_view> actions{"0", "1"};
  EXPECT_EQ(binding->resume(actions, absorbed)->matched_chunks, 1U);
  EXPECT_TRUE(first->blob().confirmed);
  EXPECT_TRUE(first->skeleton().confirmed);
}

TEST_F(SavedManagerTest, AMissingSnapshotIsAnEmptyForest) {
  EXPECT_TRUE(next.load(files, "d/snapshot.json").has_value());
  EXPECT_EQ(next.counts().forest.nodes, 0U);
}

TEST_F(SavedManagerTest, ADamagedSnapshotIsRefusedAndLeavesTheForestAsItWas) {
  write({"0"});
  ASSERT_TRUE(manager.save(files, "d/snapshot.json").has_value());
  std::string bytes = *files.read("d/snapshot.json", 1 << 20);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(files.write("d/snapshot.json", bytes).has_value());
  const Status loaded = next.load(files, "d/snapshot.json");
  ASSERT_FALSE(loaded.has_value());
  EXPECT_TRUE(loaded.error().is(Errc::bad_snapshot));
  EXPECT_EQ(next.counts().forest.nodes, 0U);
}

// The same manager over ordinary memory.
class OwnedSnapshotsTest : public SessionTest {
 protected:
  using MemoryStore = MemoryTierStore<StdSync>;
  static_assert(!MemoryManager::kDirect && TestManager::kDirect);

  MemoryStore tensors{sync};
  const std::uint64_t staging_bytes = 256;  // two values of 96 bytes, not three
  MemoryManager memory{runtime, tensors, {arena.map_private(4096), staging_bytes}, {}};
  const WorldSpec spec = world_spec(kFullRing);

  std::unique_ptr<SessionBinding<MemoryManager>> bind(TestEngine& engine) {
    return *SessionBinding<MemoryManager>::open(memory, engine, {spec, 4, 3});
  }
};

TEST_F(OwnedSnapshotsTest, OwnedSnapshotsAreTakenWhereTheStoreIsNotAPlanStore) {
  TestEngine writer(device, stream, spec);
  auto cold = bind(writer);
  EXPECT_CALL(fluxon, local_fast_put_start).Times(0);
  EXPECT_CALL(fluxon, get_start).Times(0);
  for (const char* action : {"0", "1"}) {
    writer.generate(std::string("|") + action);
    ASSERT_TRUE(cold->on_chunk_finalized(action, absorbed).has_value());
  }
  EXPECT_EQ(tensors.size(), 10U);
  const std::string contents = writer.contents();
  std::memset(reinterpret_cast<void*>(writer.ring()[0].data), 0xEE, 64);  // the snapshots are the store's own

  TestEngine reader(device, stream, spec);
  auto warm = bind(reader);
  const std::vector<std::string_view> actions{"0", "1"};
  const Result<ResumeReceipt> receipt = warm->resume(actions, absorbed);
  ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
  EXPECT_EQ(receipt->matched_chunks, 2U);
  EXPECT_EQ(reader.contents(), contents);
}

TEST_F(OwnedSnapshotsTest, EvictionRemovesTheTensorsAndKeepsTheLatent) {
  TestEngine writer(device, stream, spec);
  auto cold = bind(writer);
  writer.generate("|0");
  ASSERT_TRUE(cold->on_chunk_finalized("0", absorbed).has_value());
  ASSERT_TRUE(memory.evict_blob(*memory.find(node_key(spec.root, "0")), absorbed)->evicted);
  EXPECT_EQ(tensors.size(), 1U);
}

TEST_F(OwnedSnapshotsTest, AFailedCopyStoresNothing) {
  TestEngine writer(device, stream, spec);
  auto cold = bind(writer);
  writer.generate("|0");
  EXPECT_CALL(cuda, copy_batch)
      .WillOnce(Invoke(&device, &fakes::FakeCuda::copy_batch))
      .WillOnce(Return(cuda_error(CudaErrc::launch_failure, "copy_batch")));
  const Result<IngestReceipt> receipt = cold->on_chunk_finalized("0", absorbed);
  ASSERT_TRUE(receipt.has_value()) << "the latent is stored";
  EXPECT_EQ(receipt->kv, IngestVerdict::failed);
  EXPECT_EQ(tensors.size(), 1U);
  EXPECT_FALSE(memory.find(node_key(spec.root, "0"))->blob().ready);
}

TEST_F(OwnedSnapshotsTest, AMissingTensorIsIncompleteAndTouchesNothing) {
  TestEngine writer(device, stream, spec);
  auto cold = bind(writer);
  for (const char* action : {"0", "1"}) {
    writer.generate(std::string("|") + action);
    ASSERT_TRUE(cold->on_chunk_finalized(action, absorbed).has_value());
  }
  ASSERT_TRUE(
      tensors.remove_tensor(kv_key(kv_locator(node_key(node_key(spec.root, "0"), "1")), 1, KvPart::v)).has_value());
  TestEngine reader(device, stream, spec);
  auto warm = bind(reader);
  const std::vector<std::string_view> actions{"0", "1"};
  EXPECT_EQ(warm->resume(actions, absorbed)->matched_chunks, 1U);
}

TEST_F(OwnedSnapshotsTest, StagingMemoryThatACopyMayStillTouchIsNeitherUsedAnewNorGivenBack) {
  OwnedSnapshots<TestRuntime, MemoryStore> snapshots{runtime, tensors, {arena.map_private(4096), staging_bytes}};
  const std::vector<std::string_view> keys{"a"};
  const std::vector<DeviceTensor> values{tensor(96)};
  EXPECT_CALL(cuda, stream_synchronize)
      .WillRepeatedly(Return(cuda_error(CudaErrc::launch_failure, "stream_synchronize")));
  EXPECT_CALL(cuda, copy_batch).Times(1);
  EXPECT_CALL(cuda, host_unregister).Times(0);
  ASSERT_FALSE(snapshots.put(keys, values, stream, absorbed).has_value());
  const Result<PutReceipt> again = snapshots.put(keys, values, stream, absorbed);
  ASSERT_FALSE(again.has_value());
  EXPECT_TRUE(mentions(again.error(), Origin::core, static_cast<std::int32_t>(Errc::quarantined)));
  const Status shut = snapshots.shut_down();
  ASSERT_FALSE(shut.has_value());
  EXPECT_TRUE(shut.error().is(Errc::quarantined));
}

TEST_F(OwnedSnapshotsTest, StagingMemoryIsRegisteredOnceAndGivenBack) {
  EXPECT_CALL(cuda, host_register).Times(1);
  TestEngine writer(device, stream, spec);
  auto cold = bind(writer);
  for (const char* action : {"0", "1"}) {
    writer.generate(std::string("|") + action);
    ASSERT_TRUE(cold->on_chunk_finalized(action, absorbed).has_value());
  }
  EXPECT_TRUE(memory.shut_down().has_value());
  EXPECT_TRUE(device.registrations().empty());
}

}  // namespace
}  // namespace holdfast
