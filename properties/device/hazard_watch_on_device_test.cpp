// The hazard watch above a real CUDA runtime: right histories hold and their bytes are right; wrong ones are named,
// also where the device was quick enough for the bytes to come out right.
#include "device_fixture.hpp"
#include "holdfast/core/plan_tier_store.hpp"

namespace holdfast::device {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class HazardWatchOnDevice : public DeviceTest {
 protected:
  HazardWatchOnDevice() { register_segment(); }
};

TEST_F(HazardWatchOnDevice, APutAndAReadAsTheyShouldBe) {
  stored({"a", "b"});
  for (const char* key : {"a", "b"}) {
    const auto view = owner.peek(key);
    ASSERT_TRUE(view);
    EXPECT_EQ(host_bytes(view->read_address, kValueBytes),
              device_bytes(tensor + (*key == 'a' ? 0 : kValueBytes), kValueBytes));
  }
  const std::uintptr_t target = new_tensor(kValueBytes, 99);
  const PlanPtr plan = read_started({"b"});
  copy_in(plan, target);
  ASSERT_TRUE(watch.cuda().stream_synchronize(stream));
  ASSERT_TRUE(watch.fluxon().release_views(plan));
  EXPECT_EQ(device_bytes(target, kValueBytes), device_bytes(tensor + kValueBytes, kValueBytes));
  EXPECT_THAT(violated(), IsEmpty());
  EXPECT_GE(hazard_checks(), 3U);  // a commit of two, a release
}

TEST_F(HazardWatchOnDevice, ACommitWhileTheCopyIsStillToCome) {
  StreamGate gate(native(stream));
  const PlanPtr plan = put_started({"a"});
  copy_out(plan);
  const std::string before = host_bytes(slot_of(plan), kValueBytes);
  EXPECT_NE(before, device_bytes(tensor, kValueBytes));
  commit(plan);
  EXPECT_EQ(host_bytes(owner.peek("a")->read_address, kValueBytes), before) << "stale bytes are readable now";
  EXPECT_THAT(violated(), ElementsAre("no-hazard"));
  EXPECT_THAT(message(), AllOf(HasSubstr("copy_batch writes"), HasSubstr("local_fast_put_commit publishes"),
                               HasSubstr("owed by stream_synchronize")));
  gate.open();
}

TEST_F(HazardWatchOnDevice, ACommitOfBytesThatHappenToHaveArrived) {
  const PlanPtr plan = put_started({"a"});
  copy_out(plan);
  ASSERT_EQ(cudaStreamSynchronize(native(stream)), cudaSuccess);  // nobody's wait: time, as it were
  EXPECT_EQ(host_bytes(slot_of(plan), kValueBytes), device_bytes(tensor, kValueBytes));
  commit(plan);
  EXPECT_THAT(violated(), ElementsAre("no-hazard"));
}

TEST_F(HazardWatchOnDevice, AnEventCoversWhatItsStreamHadBeforeItsRecord) {
  const PlanPtr covered = put_started({"covered"});
  copy_out(covered);
  ASSERT_TRUE(watch.cuda().event_synchronize(recorded(stream)));
  commit(covered);
  EXPECT_THAT(violated(), IsEmpty());

  const EventRef early = recorded(stream);
  const PlanPtr later = put_started({"later"});
  copy_out(later);
  ASSERT_TRUE(watch.cuda().event_synchronize(early));
  commit(later);
  EXPECT_EQ(violated().size(), 1U);

  const PlanPtr other = put_started({"other"});
  copy_out(other);
  ASSERT_TRUE(watch.cuda().event_synchronize(recorded(engine)));
  commit(other);
  EXPECT_EQ(violated().size(), 2U);
}

TEST_F(HazardWatchOnDevice, AQueryIsAWaitOnceItSaysDone) {
  StreamGate gate(native(stream));
  const PlanPtr plan = put_started({"a"});
  copy_out(plan);
  const EventRef event = recorded(stream);
  EXPECT_FALSE(watch.cuda().event_query(event).value());
  gate.open();
  ASSERT_EQ(cudaStreamSynchronize(native(stream)), cudaSuccess);
  EXPECT_TRUE(watch.cuda().event_query(event).value());
  commit(plan);
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(HazardWatchOnDevice, AQueryThatSaysNotReadyIsNone) {
  StreamGate gate(native(stream));
  const PlanPtr plan = put_started({"a"});
  copy_out(plan);
  EXPECT_FALSE(watch.cuda().event_query(recorded(stream)).value());
  commit(plan);
  EXPECT_THAT(violated(), ElementsAre("no-hazard"));
}

TEST_F(HazardWatchOnDevice, TheProducersEventOrdersItsKernelBeforeTheCopy) {
  StreamGate gate(native(engine));
  produce(0x5a, engine);
  ASSERT_TRUE(watch.cuda().stream_wait(stream, recorded(engine)));
  const PlanPtr plan = put_started({"a"});
  copy_out(plan);
  gate.open();
  ASSERT_TRUE(watch.cuda().stream_synchronize(stream));
  EXPECT_EQ(host_bytes(slot_of(plan), kValueBytes), std::string(kValueBytes, '\x5a'));
  commit(plan);
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(HazardWatchOnDevice, AProducersEventThatNobodyWaitsFor) {
  StreamGate gate(native(engine));
  produce(0x5a, engine);
  const PlanPtr plan = put_started({"a"});
  copy_out(plan);
  ASSERT_TRUE(watch.cuda().stream_synchronize(stream));
  EXPECT_NE(host_bytes(slot_of(plan), kValueBytes), std::string(kValueBytes, '\x5a')) << "the copy took older bytes";
  EXPECT_THAT(violated(), ElementsAre("no-hazard"));
  EXPECT_THAT(message(), HasSubstr("an engine's kernel writes"));
  gate.open();
}

TEST_F(HazardWatchOnDevice, TheEngineWaitsForTheCopyBeforeItOverwrites) {
  const PlanPtr plan = put_started({"a"});
  copy_out(plan);
  ASSERT_TRUE(watch.cuda().stream_wait(engine, recorded(stream)));
  produce(1, engine);
  EXPECT_THAT(violated(), IsEmpty());
  const PlanPtr other = put_started({"b"});
  ASSERT_TRUE(watch.cuda().stream_wait(stream, recorded(engine)));
  copy_out(other);
  produce(2, engine);
  EXPECT_THAT(violated(), ElementsAre("no-hazard"));
}

TEST_F(HazardWatchOnDevice, AReadPlanReleasedUnderItsCopy) {
  stored({"a"});
  StreamGate gate(native(stream));
  const PlanPtr plan = read_started({"a"});
  copy_in(plan, tensor);
  ASSERT_TRUE(watch.fluxon().release_views(plan));
  EXPECT_THAT(violated(), Contains("no-hazard"));
  gate.open();
}

// The driver itself may wait here: the caller must not count on it.
TEST_F(HazardWatchOnDevice, AMappingUnregisteredUnderACopyThatUsesIt) {
  copy_out(put_started({"a"}));
  unregister(owner.segment().read_ptr);
  EXPECT_THAT(violated(), IsEmpty()) << "the copy uses the other mapping";
  unregister(owner.segment().write_ptr);
  EXPECT_THAT(violated(), Contains("no-hazard"));
}

// ---- The production core, on whatever streams it takes.

using Store = PlanTierStore<RuntimeOf<FluxonBackend, CudaBackend, fakes::VirtualClock, StdSync>>;

class StoreOnDevice : public DeviceTest, public testing::WithParamInterface<bool> {
 protected:
  DeviceTensor tensor_of(std::uint64_t bytes, std::uint8_t fill) { return {new_tensor(bytes, fill), bytes, 0, true}; }
};

TEST_P(StoreOnDevice, PutsAndRestoresHoldAndTheirBytesAreRight) {
  StdSync sync;
  RuntimeOf<FluxonBackend, CudaBackend, fakes::VirtualClock, StdSync> runtime{watch.fluxon(), watch.cuda(), clock,
                                                                              sync};
  PlanOptions options;
  options.registry.piece_bytes = owner_options().grant_bytes;
  if (GetParam()) options.overlap = {.mode = CopyMode::overlapped, .batch_bytes_min = 1};
  Store store(runtime, options);
  Absorbed absorbed;
  constexpr std::size_t kRounds = 20;
  constexpr std::uint64_t kSizes[] = {kValueBytes, 65536, 1, kValueBytes + 3};
  for (std::size_t round = 0; round < kRounds; ++round) {
    std::vector<std::string> names;
    std::vector<DeviceTensor> values;
    std::vector<DeviceTensor> targets;
    std::vector<std::uint64_t> value_bytes;
    std::vector<ReadCopy> copies;
    for (const std::uint64_t bytes : kSizes) {
      const std::size_t i = names.size();
      names.push_back(std::to_string(round) + ":" + std::to_string(i));
      values.push_back(tensor_of(bytes, static_cast<std::uint8_t>(17 * round + i)));
      targets.push_back(tensor_of(bytes, 0xee));
      value_bytes.push_back(bytes);
      copies.push_back({i, 0, i, 0, bytes});
    }
    const Names keys(names.begin(), names.end());
    const Result<PutReceipt> put = store.put(keys, values, stream, absorbed);
    ASSERT_TRUE(put) << to_string(put.error());
    ASSERT_EQ(put->verdict, PutVerdict::stored);
    clock.advance_by(kSecond);
    const std::vector<std::uint32_t> groups(keys.size(), 1);
    const ReadOutcome read = store.restore({keys, value_bytes, groups, targets, copies}, stream, absorbed);
    ASSERT_EQ(read.verdict, ReadVerdict::restored) << to_string(read.error);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(device_bytes(targets[i].data, value_bytes[i]), device_bytes(values[i].data, value_bytes[i]));
    }
    RemoveOutcome removed = store.remove({keys, value_bytes, clock.now_ns()}, absorbed);
    EXPECT_THAT(removed.failures, IsEmpty());
    clock.advance_by(kSecond);
  }
  // The mapping for reading is mapped read-only, which this runtime has to be told.
  ASSERT_EQ(absorbed.size(), 1U);
  EXPECT_TRUE(is_cuda(absorbed.front(), CudaErrc::invalid_value)) << to_string(absorbed.front());
  EXPECT_EQ(store.registry_counts().read_only_fallbacks, 1U);
  EXPECT_TRUE(store.shut_down());
  EXPECT_THAT(violated(), IsEmpty()) << message();
  EXPECT_GE(hazard_checks(), 2 * kRounds);
}

INSTANTIATE_TEST_SUITE_P(Modes, StoreOnDevice, testing::Bool(), [](const testing::TestParamInfo<bool>& mode) {
  return mode.param ? "Overlapped" : "Synchronous";
});

}  // namespace
}  // namespace holdfast::device
