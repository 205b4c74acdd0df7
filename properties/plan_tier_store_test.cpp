// The Plan tier store against the Plan contract: what a put and a read call, in which order, and how each path ends.
#include "holdfast/core/plan_tier_store.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "plan_store_fixture.hpp"

namespace holdfast {
namespace {

using testing::_;
using testing::InSequence;
using testing::Invoke;
using testing::Return;

TEST_F(PlanTierStoreTest, APutStoresTheBytesOfItsTensors) {
  const std::vector<DeviceTensor> values{tensor(512, 1), tensor(512, 2), tensor(512, 3)};
  const Result<PutReceipt> receipt = put({"a", "b", "c"}, values);
  ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
  EXPECT_EQ(receipt->verdict, PutVerdict::stored);
  EXPECT_EQ(stored("a"), bytes_of(values[0]));
  EXPECT_EQ(stored("b"), bytes_of(values[1]));
  EXPECT_EQ(stored("c"), bytes_of(values[2]));
  EXPECT_TRUE(nothing_open());
}

TEST_F(PlanTierStoreTest, APutCopiesThenWaitsThenCommits) {
  const InSequence order;
  EXPECT_CALL(fluxon, local_fast_put_start(_, 512, _));
  EXPECT_CALL(cuda, copy_batch(CopyDirection::device_to_host, testing::SizeIs(2), stream));
  EXPECT_CALL(cuda, stream_synchronize(stream));
  EXPECT_CALL(fluxon, local_fast_put_commit(_));
  ASSERT_TRUE(put({"a", "b"}, {tensor(512), tensor(512)}).has_value());
}

TEST_F(PlanTierStoreTest, APutAlwaysSetsTheRejectFlags) {
  EXPECT_CALL(fluxon, local_fast_put_start(_, _, _))
      .WillOnce(Invoke([&](Keys keys, std::uint64_t value_len, const PutOptions& options) {
        EXPECT_TRUE(options.reject_if_exists);
        EXPECT_TRUE(options.reject_if_being_written);
        return owner.local_fast_put_start(keys, value_len, options);
      }));
  ASSERT_TRUE(put({"a"}, {tensor(512)}).has_value());
}

TEST_F(PlanTierStoreTest, AReadStartsTransfersCopiesWaitsThenReleases) {
  ASSERT_TRUE(put({"a", "b"}, {tensor(512), tensor(512)}).has_value());
  const InSequence order;
  EXPECT_CALL(fluxon, get_start(testing::SizeIs(2), _, _));
  EXPECT_CALL(fluxon, get_transfer(_, 2));
  EXPECT_CALL(cuda, copy_batch(CopyDirection::host_to_device, testing::SizeIs(2), stream));
  EXPECT_CALL(cuda, stream_synchronize(stream));
  EXPECT_CALL(fluxon, release_views(_));
  EXPECT_EQ(read({"a", "b"}, {tensor(512), tensor(512)}).verdict, ReadVerdict::restored);
}

TEST_F(PlanTierStoreTest, DescriptorsKeepKeyOrderInBothDirections) {
  const std::vector<DeviceTensor> sources{tensor(512, 1), tensor(512, 2), tensor(512, 3)};
  std::vector<std::uintptr_t> put_sources;
  EXPECT_CALL(cuda, copy_batch(CopyDirection::device_to_host, _, _))
      .WillOnce(Invoke([&](CopyDirection direction, std::span<const Copy> copies, StreamRef on) {
        for (const Copy& copy : copies) put_sources.push_back(copy.src);
        return device.copy_batch(direction, copies, on);
      }));
  ASSERT_TRUE(put({"a", "b", "c"}, sources).has_value());
  EXPECT_EQ(put_sources, (std::vector{sources[0].data, sources[1].data, sources[2].data}));

  const std::vector<DeviceTensor> targets{tensor(512), tensor(512), tensor(512)};
  std::vector<std::uintptr_t> read_targets;
  EXPECT_CALL(cuda, copy_batch(CopyDirection::host_to_device, _, _))
      .WillOnce(Invoke([&](CopyDirection direction, std::span<const Copy> copies, StreamRef on) {
        for (const Copy& copy : copies) read_targets.push_back(copy.dst);
        return device.copy_batch(direction, copies, on);
      }));
  ASSERT_EQ(read({"a", "b", "c"}, targets).verdict, ReadVerdict::restored);
  EXPECT_EQ(read_targets, (std::vector{targets[0].data, targets[1].data, targets[2].data}));
  for (std::size_t i = 0; i < targets.size(); ++i) EXPECT_EQ(bytes_of(targets[i]), bytes_of(sources[i]));
}

TEST_F(PlanTierStoreTest, OneSynchronizePerBatch) {
  EXPECT_CALL(cuda, stream_synchronize(_)).Times(1);
  ASSERT_TRUE(put({"a", "b", "c"}, {tensor(512), tensor(1024), tensor(4096)}).has_value());
  testing::Mock::VerifyAndClearExpectations(&cuda);
  cuda.delegate_to(device);
  EXPECT_CALL(cuda, stream_synchronize(_)).Times(1);
  EXPECT_EQ(read({"a", "b", "c"}, {tensor(512), tensor(1024), tensor(4096)}).verdict, ReadVerdict::restored);
}

TEST_F(PlanTierStoreTest, ValuesOfOneSizeShareOnePlan) {
  EXPECT_CALL(fluxon, local_fast_put_start(testing::SizeIs(3), 512, _)).Times(1);
  ASSERT_TRUE(put({"a", "b", "c"}, {tensor(512), tensor(512), tensor(512)}).has_value());
}

TEST_F(PlanTierStoreTest, ValuesOfMixedSizesGetOnePlanPerSizeAndOneBatch) {
  EXPECT_CALL(fluxon, local_fast_put_start(testing::ElementsAre("a", "c"), 512, _)).Times(1);
  EXPECT_CALL(fluxon, local_fast_put_start(testing::ElementsAre("b"), 1024, _)).Times(1);
  EXPECT_CALL(fluxon, local_fast_put_start(testing::ElementsAre("d"), 8192, _)).Times(1);
  EXPECT_CALL(cuda, copy_batch(_, testing::SizeIs(4), _)).Times(1);
  EXPECT_CALL(fluxon, local_fast_put_commit(_)).Times(3);
  const std::vector<DeviceTensor> values{tensor(512, 1), tensor(1024, 2), tensor(512, 3), tensor(8192, 4)};
  ASSERT_TRUE(put({"a", "b", "c", "d"}, values).has_value());
  EXPECT_EQ(stored("c"), bytes_of(values[2]));
  EXPECT_EQ(stored("d"), bytes_of(values[3]));
}

RC_GTEST_FIXTURE_PROP(PlanTierStoreTest, WhatIsPutIsReadBackWhateverItsSizes, ()) {
  const auto sizes = *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(1, 9000));
  RC_PRE(!sizes.empty() && sizes.size() <= 12);
  std::vector<std::string> names;
  std::vector<DeviceTensor> sources;
  std::vector<DeviceTensor> targets;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    names.push_back("k" + std::to_string(i));
    sources.push_back(tensor(sizes[i], static_cast<std::uint8_t>(i * 31 + 1)));
    targets.push_back(tensor(sizes[i]));
  }
  RC_ASSERT(put(names, sources).has_value());
  RC_ASSERT(read(names, targets).verdict == ReadVerdict::restored);
  for (std::size_t i = 0; i < sizes.size(); ++i) RC_ASSERT(bytes_of(targets[i]) == bytes_of(sources[i]));
  RC_ASSERT(nothing_open());
}

TEST_F(PlanTierStoreTest, TensorsThatAreNotDeviceMemoryStartNothing) {
  EXPECT_CALL(fluxon, local_fast_put_start).Times(0);
  DeviceTensor foreign = tensor(512);
  foreign.data = reinterpret_cast<std::uintptr_t>(&foreign);
  const Result<PutReceipt> receipt = put({"a"}, {foreign});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(receipt.error().is(Errc::not_device_memory));
}

TEST_F(PlanTierStoreTest, TensorsThatAreNotContiguousOrEmptyOrOnTwoDevicesStartNothing) {
  EXPECT_CALL(fluxon, local_fast_put_start).Times(0);
  DeviceTensor strided = tensor(512);
  strided.contiguous = false;
  DeviceTensor empty = tensor(512);
  empty.bytes = 0;
  DeviceTensor elsewhere = tensor(512);
  elsewhere.device = 1;
  for (const std::vector<DeviceTensor>& tensors :
       {std::vector{tensor(512), strided}, std::vector{tensor(512), empty}, std::vector{tensor(512), elsewhere}}) {
    const Result<PutReceipt> receipt = put({"a", "b"}, tensors);
    ASSERT_FALSE(receipt.has_value());
    EXPECT_TRUE(receipt.error().is(Errc::invalid_argument)) << to_string(receipt.error());
  }
}

TEST_F(PlanTierStoreTest, ABadPlanBlobIsAbortedBeforeAnyCopy) {
  EXPECT_CALL(fluxon, local_fast_put_start)
      .WillOnce(Invoke([&](Keys keys, std::uint64_t bytes, const PutOptions& options) {
        Result<PlanPtr> plan = owner.local_fast_put_start(keys, bytes, options);
        reinterpret_cast<std::uint64_t*>(plan->address)[0] ^= 1;
        return plan;
      }));
  EXPECT_CALL(cuda, copy_batch).Times(0);
  EXPECT_CALL(fluxon, put_abort(_)).Times(1);
  const Result<PutReceipt> receipt = put({"a"}, {tensor(512)});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(mentions(receipt.error(), Origin::core, static_cast<std::int32_t>(Errc::bad_plan_blob)));
  EXPECT_TRUE(nothing_open());
}

TEST_F(PlanTierStoreTest, SegmentsThatAreNoMappingsStartNothing) {
  Segment unmapped = owner.segment();
  unmapped.read_ptr = 0;
  EXPECT_CALL(fluxon, wait_local_segments_ready).WillOnce(Return(std::vector<Segment>{unmapped}));
  EXPECT_CALL(cuda, host_register).Times(0);
  EXPECT_CALL(fluxon, local_fast_put_start).Times(0);
  const Result<PutReceipt> receipt = put({"a"}, {tensor(512)});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(mentions(receipt.error(), Origin::core, static_cast<std::int32_t>(Errc::bad_answer)));
}

TEST_F(PlanTierStoreTest, ARefusedSecondPlanAbortsTheFirstWithNothingSubmitted) {
  EXPECT_CALL(fluxon, local_fast_put_start(_, 512, _)).Times(1);
  EXPECT_CALL(fluxon, local_fast_put_start(_, 1024, _)).WillOnce(Return(transport("local_fast_put_start")));
  EXPECT_CALL(cuda, copy_batch).Times(0);
  EXPECT_CALL(fluxon, put_abort(_)).Times(1);
  const Result<PutReceipt> receipt = put({"a", "b"}, {tensor(512), tensor(1024)});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(mentions(receipt.error(), Origin::fluxon, 7000));
  EXPECT_TRUE(nothing_open());
  EXPECT_EQ(owner.prepared_slots(), 0U);
}

TEST_F(PlanTierStoreTest, APartlySubmittedBatchIsWaitedForBeforeTheAbort) {
  const InSequence order;
  EXPECT_CALL(cuda, copy_batch)
      .WillOnce(Invoke([&](CopyDirection direction, std::span<const Copy> copies, StreamRef on) {
        EXPECT_TRUE(device.copy_batch(direction, copies.first(1), on).has_value());
        return Status(cuda_error(CudaErrc::launch_failure, "copy_batch"));
      }));
  EXPECT_CALL(cuda, stream_synchronize(stream));
  EXPECT_CALL(fluxon, put_abort(_));
  EXPECT_CALL(fluxon, local_fast_put_commit).Times(0);
  const Result<PutReceipt> receipt = put({"a", "b"}, {tensor(512), tensor(512)});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(mentions(receipt.error(), Origin::cuda, 719));
  EXPECT_TRUE(nothing_open());
}

TEST_F(PlanTierStoreTest, APlanPastItsAgeIsAbortedWithoutACommit) {
  EXPECT_CALL(cuda, stream_synchronize).WillOnce(Invoke([&](StreamRef on) {
    clock.advance_by(21 * kMinute);
    return device.stream_synchronize(on);
  }));
  EXPECT_CALL(fluxon, put_abort(_)).Times(1);
  EXPECT_CALL(fluxon, local_fast_put_commit).Times(0);
  const Result<PutReceipt> receipt = put({"a"}, {tensor(512)});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(mentions(receipt.error(), Origin::core, static_cast<std::int32_t>(Errc::plan_too_old)));
}

TEST_F(PlanTierStoreTest, APlanOfTheGreatestAgeIsCommitted) {
  EXPECT_CALL(cuda, stream_synchronize).WillOnce(Invoke([&](StreamRef on) {
    clock.advance_by(plan_options().plan_age_max_ns);
    return device.stream_synchronize(on);
  }));
  EXPECT_TRUE(put({"a"}, {tensor(512)}).has_value());
}

TEST_F(PlanTierStoreTest, APlanPastItsAgeIsAbortedWithoutACopy) {
  EXPECT_CALL(fluxon, local_fast_put_start(_, 1024, _))
      .WillOnce(Invoke([&](Keys keys, std::uint64_t bytes, const PutOptions& options) {
        clock.advance_by(21 * kMinute);
        return owner.local_fast_put_start(keys, bytes, options);
      }));
  EXPECT_CALL(fluxon, local_fast_put_start(_, 512, _)).Times(1);
  EXPECT_CALL(cuda, copy_batch).Times(0);
  EXPECT_CALL(fluxon, put_abort(_)).Times(2);
  ASSERT_FALSE(put({"a", "b"}, {tensor(512), tensor(1024)}).has_value());
}

TEST_F(PlanTierStoreTest, ANonzeroCodeFailsThePutAndWhatWasStoredIsRemoved) {
  choose_codes({0, -118, 0}, false);
  // Their routes exist when the removals come.
  EXPECT_CALL(fluxon, remove("a"));
  EXPECT_CALL(fluxon, remove("c"));
  EXPECT_CALL(fluxon, remove("b")).Times(0);
  const Result<PutReceipt> receipt = put({"a", "b", "c"}, {tensor(512), tensor(512), tensor(512)});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(receipt.error().is(Errc::put_failed));
  EXPECT_TRUE(mentions(receipt.error(), Origin::fluxon_key, -118));
}

TEST_F(PlanTierStoreTest, ALeftoverWhoseRemovalAnswered4000IsRemovedAfterTheBound) {
  choose_codes({0, -118}, false);
  ASSERT_FALSE(put({"a", "b"}, {tensor(512), tensor(512)}).has_value());
  EXPECT_EQ(store.unsettled_keys(), 1U) << "stored, not routed: its removal answered 4000";
  std::vector<Error> errors;
  store.pump(16, errors);
  EXPECT_EQ(store.unsettled_keys(), 1U);
  clock.advance_by(kSettleBound);
  store.pump(16, errors);
  EXPECT_EQ(store.unsettled_keys(), 0U);
  EXPECT_EQ(owner.stored_keys(), 0U);
}

TEST_F(PlanTierStoreTest, AnUnknownOutcomeIsUnsettledUntilARemovalAfterTheBound) {
  choose_codes({-608, -608});
  ASSERT_FALSE(put({"a", "b"}, {tensor(512), tensor(512)}).has_value());
  EXPECT_EQ(store.unsettled_keys(), 2U);
  EXPECT_EQ(store.held_bytes(), 2U * 4096);
  const Result<PutReceipt> early = put({"a", "b"}, {tensor(512), tensor(512)});
  ASSERT_FALSE(early.has_value());
  EXPECT_TRUE(early.error().is(Errc::unsettled));
  clock.advance_by(kSettleBound);
  std::vector<Error> errors;
  EXPECT_EQ(store.pump(16, errors), 2U);
  EXPECT_EQ(owner.stored_keys(), 0U);
  EXPECT_TRUE(put({"a", "b"}, {tensor(512), tensor(512)}).has_value());
}

TEST_F(PlanTierStoreTest, AnotherPutBeginsWhileOneIsUnsettledAsLongAsFewKeysAre) {
  PlanOptions options = plan_options();
  options.unsettled.keys_max = 2;
  PlanTierStore<TestRuntime> bounded(runtime, options);
  const auto put_one = [&](std::string_view key) {
    return bounded.put(std::span(&key, 1), std::vector{tensor(512)}, stream, absorbed);
  };
  choose_codes({-608});
  ASSERT_FALSE(put_one("a").has_value());
  EXPECT_TRUE(put_one("b").has_value());
  choose_codes({-608});
  ASSERT_FALSE(put_one("c").has_value());
  EXPECT_CALL(fluxon, local_fast_put_start).Times(0);
  const Result<PutReceipt> refused = put_one("d");
  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(refused.error().is(Errc::unsettled));
  const std::vector<std::string_view> other{"d"};
  EXPECT_FALSE(bounded.unsettled(other)) << "it is not that key which is in doubt";
  testing::Mock::VerifyAndClearExpectations(&fluxon);
  fluxon.delegate_to(owner);
  clock.advance_by(kSettleBound);
  std::vector<Error> errors;
  EXPECT_EQ(bounded.pump(16, errors), 2U);
  EXPECT_TRUE(put_one("d").has_value());
}

TEST_F(PlanTierStoreTest, WhatIsReadableAfterTheBoundIsAdoptedAndItsRemovalCancelled) {
  choose_codes({-608, -103});
  const std::vector<DeviceTensor> values{tensor(512, 1), tensor(512, 2)};
  ASSERT_FALSE(put({"a", "b"}, values).has_value());
  clock.advance_by(kSettleBound);
  EXPECT_CALL(fluxon, local_fast_put_commit).Times(0);
  EXPECT_CALL(cuda, copy_batch).Times(0);
  EXPECT_CALL(fluxon, remove).Times(0);
  const Result<PutReceipt> receipt = put({"a", "b"}, values);
  ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
  EXPECT_EQ(receipt->verdict, PutVerdict::adopted);
  EXPECT_EQ(store.unsettled_keys(), 0U);
  std::vector<Error> errors;
  store.pump(16, errors);
  EXPECT_EQ(stored("a"), bytes_of(values[0]));
  EXPECT_TRUE(nothing_open());
}

TEST_F(PlanTierStoreTest, AReleaseThatFailsAfterAnAdoptionIsTold) {
  choose_codes({-608, -103});
  const std::vector<DeviceTensor> values{tensor(512, 1), tensor(512, 2)};
  ASSERT_FALSE(put({"a", "b"}, values).has_value());
  clock.advance_by(kSettleBound);
  absorbed.clear();
  EXPECT_CALL(fluxon, release_views(_)).WillOnce(Return(transport("release_views")));
  const Result<PutReceipt> receipt = put({"a", "b"}, values);
  ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
  EXPECT_EQ(receipt->verdict, PutVerdict::adopted);
  EXPECT_TRUE(std::ranges::any_of(absorbed, [](const Error& error) { return error.call == "release_views"; }));
}

TEST_F(PlanTierStoreTest, APartOfABlobIsNotAdoptedButRemovedAndPutAgain) {
  choose_codes({-608, -118}, true);
  const std::vector<DeviceTensor> values{tensor(512, 1), tensor(512, 2)};
  ASSERT_FALSE(put({"a", "b"}, values).has_value());
  clock.advance_by(kSettleBound);
  const Result<PutReceipt> receipt = put({"a", "b"}, values);
  ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
  EXPECT_EQ(receipt->verdict, PutVerdict::stored);
  EXPECT_EQ(store.unsettled_keys(), 0U);
}

TEST_F(PlanTierStoreTest, AValueOfAnotherLengthIsNotAdopted) {
  choose_codes({-608});
  ASSERT_FALSE(put({"a"}, {tensor(512)}).has_value());
  clock.advance_by(kSettleBound);
  const DeviceTensor longer = tensor(1024, 9);
  const Result<PutReceipt> receipt = put({"a"}, {longer});
  ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
  EXPECT_EQ(receipt->verdict, PutVerdict::stored);
  EXPECT_EQ(stored("a"), bytes_of(longer));
}

TEST_F(PlanTierStoreTest, AFailedFutureLeavesEveryKeyUnknown) {
  fakes::CommitChoice choice;
  choice.future_fails = true;
  owner.choose_next_commit(choice);
  ASSERT_FALSE(put({"a", "b"}, {tensor(512), tensor(512)}).has_value());
  EXPECT_EQ(store.unsettled_keys(), 2U);
}

TEST_F(PlanTierStoreTest, AFutureLaterThanThePatienceLeavesEveryKeyUnknown) {
  fakes::CommitChoice choice;
  choice.answer_after_ns = kMinute;
  owner.choose_next_commit(choice);
  const Result<PutReceipt> receipt = put({"a"}, {tensor(512)});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(mentions(receipt.error(), Origin::fluxon, 1002));
  EXPECT_EQ(store.unsettled_keys(), 1U);
}

TEST_F(PlanTierStoreTest, AListOfCodesOfTheWrongLengthLeavesEveryKeyUnknown) {
  EXPECT_CALL(fluxon, local_fast_put_commit(_)).WillOnce(Invoke([&](PlanPtr plan) -> Result<FluxonBackend::Future> {
    EXPECT_TRUE(owner.local_fast_put_commit(plan).has_value());
    return fakes::future_answering(std::vector<std::int32_t>{0});
  }));
  ASSERT_FALSE(put({"a", "b"}, {tensor(512), tensor(512)}).has_value());
  EXPECT_EQ(store.unsettled_keys(), 2U);
}

TEST_F(PlanTierStoreTest, ACommittedPlanIsNeverAborted) {
  EXPECT_CALL(fluxon, put_abort).Times(0);
  choose_codes({-608});
  ASSERT_FALSE(put({"a"}, {tensor(512)}).has_value());
}

TEST_F(PlanTierStoreTest, AFailedCommitCallEndsItsPlanAndTheOthersAreAborted) {
  EXPECT_CALL(fluxon, local_fast_put_commit(_))
      .WillOnce(Return(fluxon_error(FluxonErrc::invalid_argument, "local_fast_put_commit")));
  EXPECT_CALL(fluxon, put_abort(_)).Times(1);
  ASSERT_FALSE(put({"a", "b"}, {tensor(512), tensor(1024)}).has_value());
  EXPECT_EQ(store.unsettled_keys(), 0U) << "a refused commit stores nothing";
}

TEST_F(PlanTierStoreTest, ACommitRefusedByAClosedClientStoresNothing) {
  EXPECT_CALL(fluxon, local_fast_put_commit(_))
      .WillOnce(Return(fluxon_error(FluxonErrc::general, "local_fast_put_commit")))
      .WillOnce(Return(fluxon_error(FluxonErrc::store_closed, "local_fast_put_commit")));
  ASSERT_FALSE(put({"a"}, {tensor(512)}).has_value());
  ASSERT_FALSE(put({"b"}, {tensor(512)}).has_value());
  EXPECT_EQ(store.unsettled_keys(), 0U);
}

TEST_F(PlanTierStoreTest, ACommitThatFailedOtherwiseLeavesEveryKeyUnknown) {
  EXPECT_CALL(fluxon, local_fast_put_commit(_)).WillOnce(Return(transport("local_fast_put_commit")));
  ASSERT_FALSE(put({"a", "b"}, {tensor(512), tensor(512)}).has_value());
  EXPECT_EQ(store.unsettled_keys(), 2U);
}

TEST_F(PlanTierStoreTest, AKeyBeingWrittenElsewhereIsNoErrorAndNoPublication) {
  EXPECT_CALL(fluxon, local_fast_put_start)
      .WillOnce(Return(fluxon_error(FluxonErrc::key_being_written, "local_fast_put_start")));
  const Result<PutReceipt> receipt = put({"a"}, {tensor(512)});
  ASSERT_TRUE(receipt.has_value());
  EXPECT_EQ(receipt->verdict, PutVerdict::elsewhere);
  ASSERT_EQ(absorbed.size(), 1U);
  EXPECT_TRUE(is_fluxon(absorbed[0], FluxonErrc::key_being_written));
}

TEST_F(PlanTierStoreTest, AnOrphanOfAnEarlierIncarnationIsRemovedAfterTheBound) {
  const std::vector<std::byte> bytes(512);
  ASSERT_TRUE(owner.put("a", bytes).has_value());
  const Result<PutReceipt> receipt = put({"a"}, {tensor(512)});
  ASSERT_TRUE(receipt.has_value());
  EXPECT_EQ(receipt->verdict, PutVerdict::elsewhere);
  clock.advance_by(kSettleBound);
  std::vector<Error> errors;
  store.pump(16, errors);
  EXPECT_EQ(owner.stored_keys(), 0U);
}

TEST_F(PlanTierStoreTest, AMissCancelsItsHandle) {
  ASSERT_TRUE(put({"a"}, {tensor(512)}).has_value());
  EXPECT_CALL(fluxon, cancel_get_transfer(_)).Times(1);
  EXPECT_CALL(fluxon, get_transfer).Times(0);
  const ReadOutcome outcome = read({"a", "b"}, {tensor(512), tensor(512)});
  EXPECT_EQ(outcome.verdict, ReadVerdict::incomplete);
  EXPECT_FALSE(outcome.targets_touched);
  EXPECT_TRUE(nothing_open());
}

TEST_F(PlanTierStoreTest, AnAnswerThatContradictsItselfCancelsItsHandle) {
  ASSERT_TRUE(put({"a"}, {tensor(512)}).has_value());
  EXPECT_CALL(fluxon, get_start)
      .Times(2)
      .WillRepeatedly(Invoke([&](Keys keys, bool best_effort, std::span<const std::uint32_t> groups) {
        Result<GetStart> start = owner.get_start(keys, best_effort, groups);
        start->prefix_hit_groups = 9;
        return start;
      }));
  EXPECT_CALL(fluxon, get_transfer).Times(0);
  EXPECT_CALL(fluxon, cancel_get_transfer(_)).Times(2);
  const ReadOutcome outcome = read({"a"}, {tensor(512)});
  EXPECT_EQ(outcome.verdict, ReadVerdict::failed);
  EXPECT_TRUE(mentions(outcome.error, Origin::core, static_cast<std::int32_t>(Errc::bad_answer)));
  const std::vector<std::string_view> keys{"a"};
  const Result<Presence> there = store.probe(keys, absorbed);
  ASSERT_FALSE(there.has_value());
  EXPECT_TRUE(there.error().is(Errc::bad_answer));
  EXPECT_TRUE(nothing_open());
}

TEST_F(PlanTierStoreTest, ABadPlanBlobOfAReadIsReleasedBeforeAnyCopy) {
  ASSERT_TRUE(put({"a"}, {tensor(512)}).has_value());
  EXPECT_CALL(fluxon, get_transfer).WillOnce(Invoke([&](GetHandle handle, std::uint64_t keys) {
    Result<PlanPtr> plan = owner.get_transfer(handle, keys);
    reinterpret_cast<std::uint64_t*>(plan->address)[0] ^= 1;
    return plan;
  }));
  EXPECT_CALL(cuda, copy_batch).Times(0);
  EXPECT_CALL(fluxon, release_views(_)).Times(1);
  const ReadOutcome outcome = read({"a"}, {tensor(512)});
  EXPECT_EQ(outcome.verdict, ReadVerdict::failed);
  EXPECT_FALSE(outcome.targets_touched);
  EXPECT_TRUE(mentions(outcome.error, Origin::core, static_cast<std::int32_t>(Errc::bad_plan_blob)));
}

TEST_F(PlanTierStoreTest, TargetsThatAreNotDeviceMemoryStartNothing) {
  EXPECT_CALL(fluxon, get_start).Times(0);
  DeviceTensor foreign = tensor(512);
  foreign.data = reinterpret_cast<std::uintptr_t>(&foreign);
  const ReadOutcome outcome = read({"a"}, {foreign});
  EXPECT_EQ(outcome.verdict, ReadVerdict::failed);
  EXPECT_TRUE(outcome.error.is(Errc::not_device_memory));
}

TEST_F(PlanTierStoreTest, ARefusedTransferCancelsItsHandle) {
  ASSERT_TRUE(put({"a"}, {tensor(512)}).has_value());
  EXPECT_CALL(fluxon, get_transfer).WillOnce(Return(fluxon_error(FluxonErrc::invalid_argument, "get_transfer")));
  EXPECT_CALL(fluxon, cancel_get_transfer(_)).Times(1);
  const ReadOutcome outcome = read({"a"}, {tensor(512)});
  EXPECT_EQ(outcome.verdict, ReadVerdict::failed);
  EXPECT_TRUE(nothing_open());
}

TEST_F(PlanTierStoreTest, ATransferThatConsumedItsHandleIsNotCancelled) {
  ASSERT_TRUE(put({"a"}, {tensor(512)}).has_value());
  EXPECT_CALL(fluxon, cancel_get_transfer).Times(0);
  EXPECT_CALL(fluxon, get_transfer)
      .WillOnce(Return(fluxon_error(FluxonErrc::key_not_found, "get_transfer")))
      .WillOnce(Return(transport("get_transfer")));
  EXPECT_EQ(read({"a"}, {tensor(512)}).verdict, ReadVerdict::incomplete);
  EXPECT_EQ(read({"a"}, {tensor(512)}).verdict, ReadVerdict::failed);
}

TEST_F(PlanTierStoreTest, ALostReleaseIsAbsorbedAndNotTriedAgain) {
  ASSERT_TRUE(put({"a"}, {tensor(512)}).has_value());
  EXPECT_CALL(fluxon, release_views(_)).WillOnce(Return(transport("release_views")));
  EXPECT_EQ(read({"a"}, {tensor(512)}).verdict, ReadVerdict::restored);
  ASSERT_EQ(absorbed.size(), 1U);
}

TEST_F(PlanTierStoreTest, APlanOfAnOlderGenerationIsNotEnded) {
  EXPECT_CALL(cuda, copy_batch).WillOnce(Invoke([&](CopyDirection, std::span<const Copy>, StreamRef) {
    owner.restart();
    // Another operation meets the new generation first.
    Absorbed other;
    EXPECT_TRUE(store.warm_up(other).has_value());
    return Status(cuda_error(CudaErrc::launch_failure, "copy_batch"));
  }));
  EXPECT_CALL(fluxon, put_abort).Times(0);
  ASSERT_FALSE(put({"a"}, {tensor(512)}).has_value());
}

TEST_F(PlanTierStoreTest, RemovalIsIdempotent) {
  ASSERT_TRUE(put({"a"}, {tensor(512)}).has_value());
  clock.advance_by(2 * kSettleBound);
  const std::vector<std::string_view> keys{"a"};
  const std::vector<std::uint64_t> lengths{512};
  const RemoveOutcome first = store.remove({keys, lengths, 0}, absorbed);
  EXPECT_EQ(first.removed, 1U);
  EXPECT_TRUE(absorbed.empty());
  const RemoveOutcome second = store.remove({keys, lengths, 0}, absorbed);
  EXPECT_EQ(second.removed, 1U) << "absent, after its bound: gone";
  EXPECT_EQ(second.queued + second.failures.size(), 0U);
  ASSERT_EQ(absorbed.size(), 1U);
  EXPECT_TRUE(is_fluxon(absorbed[0], FluxonErrc::key_not_found));
}

TEST_F(PlanTierStoreTest, ARemovalThatFindsNothingAtTheBoundIsDone) {
  const std::vector<std::string_view> keys{"a"};
  const std::vector<std::uint64_t> lengths{512};
  const Nanos committed_ns = clock.now_ns();
  clock.advance_by(kSettleBound);
  const RemoveOutcome outcome = store.remove({keys, lengths, committed_ns}, absorbed);
  EXPECT_EQ(outcome.removed, 1U);
  EXPECT_FALSE(store.unsettled(keys));
}

TEST_F(PlanTierStoreTest, ARemovalThatFindsNothingBeforeTheBoundIsQueued) {
  ASSERT_TRUE(put({"a"}, {tensor(512)}).has_value());
  const std::vector<std::string_view> keys{"a"};
  const std::vector<std::uint64_t> lengths{512};
  const RemoveOutcome outcome = store.remove({keys, lengths, clock.now_ns()}, absorbed);
  EXPECT_EQ(outcome.queued, 1U) << "stored, not routed yet: it would appear later";
  EXPECT_TRUE(store.unsettled(keys));
}

TEST_F(PlanTierStoreTest, ThePlanStoreMovesBytesWithoutAStagingCopy) {
  const Segment segment = owner.segment();
  EXPECT_CALL(cuda, copy_batch)
      .WillRepeatedly(Invoke([&](CopyDirection direction, std::span<const Copy> copies, StreamRef on) {
        for (const Copy& copy : copies) {
          const std::uintptr_t host = direction == CopyDirection::device_to_host ? copy.dst : copy.src;
          const bool in_segment = (host >= segment.write_ptr && host < segment.write_ptr + segment.len) ||
                                  (host >= segment.read_ptr && host < segment.read_ptr + segment.len);
          EXPECT_TRUE(in_segment);
        }
        return device.copy_batch(direction, copies, on);
      }));
  ASSERT_TRUE(put({"a", "b"}, {tensor(512), tensor(512)}).has_value());
  ASSERT_EQ(read({"a", "b"}, {tensor(512), tensor(512)}).verdict, ReadVerdict::restored);
}

TEST_F(PlanTierStoreTest, ShutDownUnregistersWhatItRegistered) {
  ASSERT_TRUE(put({"a"}, {tensor(512)}).has_value());
  EXPECT_FALSE(device.registrations().empty());
  EXPECT_TRUE(store.shut_down().has_value());
  EXPECT_TRUE(device.registrations().empty());
}

}  // namespace
}  // namespace holdfast
