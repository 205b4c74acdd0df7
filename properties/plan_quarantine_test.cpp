// Plans whose copies cannot be waited for: they are neither committed nor ended before a wait succeeds or the device is
// torn down, and they count as held.
#include <gtest/gtest.h>

#include "holdfast/core/plan_tier_store.hpp"
#include "plan_store_fixture.hpp"

namespace holdfast {
namespace {

using testing::_;
using testing::InSequence;
using testing::Invoke;
using testing::Return;

using PlanQuarantineTest = PlanTierStoreTest;

TEST_F(PlanQuarantineTest, AfterAFailedWaitALaterWaitPermitsTheAbortAndNothingIsCommitted) {
  EXPECT_CALL(cuda, stream_synchronize)
      .WillOnce(Return(cuda_error(CudaErrc::launch_failure, "stream_synchronize")))
      .WillOnce(Invoke(&device, &fakes::FakeCuda::stream_synchronize));
  EXPECT_CALL(fluxon, put_abort(_)).Times(1);
  EXPECT_CALL(fluxon, local_fast_put_commit).Times(0);
  const Result<PutReceipt> receipt = put({"a"}, {tensor(512)});
  ASSERT_FALSE(receipt.has_value());
  EXPECT_TRUE(nothing_open());
  EXPECT_EQ(store.quarantined(), 0U);
}

TEST_F(PlanQuarantineTest, APlanThatCannotBeWaitedForIsQuarantinedUntilAWaitSucceeds) {
  EXPECT_CALL(cuda, stream_synchronize)
      .WillOnce(Return(cuda_error(CudaErrc::launch_failure, "stream_synchronize")))
      .WillOnce(Return(cuda_error(CudaErrc::launch_failure, "stream_synchronize")))
      .WillRepeatedly(Invoke(&device, &fakes::FakeCuda::stream_synchronize));
  EXPECT_CALL(fluxon, put_abort(_)).Times(0);
  ASSERT_FALSE(put({"a"}, {tensor(512)}).has_value());
  EXPECT_EQ(store.quarantined(), 1U);
  EXPECT_EQ(store.held_bytes(), 4096U);
  const Result<PutReceipt> refused = put({"a"}, {tensor(512)});
  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(refused.error().is(Errc::unsettled));

  EXPECT_CALL(fluxon, put_abort(_)).Times(1);
  std::vector<Error> errors;
  store.pump(16, errors);
  EXPECT_EQ(store.quarantined(), 0U);
  EXPECT_TRUE(nothing_open());
  EXPECT_TRUE(put({"a"}, {tensor(512)}).has_value());
}

TEST_F(PlanQuarantineTest, PlansOfOneBatchAreInQuarantineTogetherWhenTheirPutIsDoneWithIt) {
  EXPECT_CALL(cuda, stream_synchronize).Times(testing::AtLeast(3)).WillRepeatedly([&](StreamRef) -> Status {
    EXPECT_EQ(store.quarantined(), 0U) << "a pump of another session would use the batch as well";
    return cuda_error(CudaErrc::launch_failure, "stream_synchronize");
  });
  ASSERT_FALSE(put({"a", "b"}, {tensor(512), tensor(1024)}).has_value());
  EXPECT_EQ(store.quarantined(), 2U);
}

TEST_F(PlanQuarantineTest, APlanCountsAsHeldWhileAPumpWaitsForItAndEndsIt) {
  EXPECT_CALL(cuda, stream_synchronize)
      .Times(3)
      .WillRepeatedly(Return(cuda_error(CudaErrc::launch_failure, "stream_synchronize")));
  ASSERT_FALSE(put({"a"}, {tensor(512)}).has_value());
  std::vector<Error> errors;
  store.pump(16, errors);
  EXPECT_EQ(store.quarantined(), 1U) << "counted once, however often it is waited for";
  EXPECT_EQ(store.held_bytes(), 4096U);

  const auto is_held = [&] {
    EXPECT_EQ(store.quarantined(), 1U);
    EXPECT_EQ(store.held_bytes(), 4096U) << "another session would take its room";
  };
  EXPECT_CALL(cuda, stream_synchronize).WillOnce([&](StreamRef on) {
    is_held();
    return device.stream_synchronize(on);
  });
  EXPECT_CALL(fluxon, put_abort(_)).WillOnce([&](PlanPtr plan) {
    is_held();
    return owner.put_abort(plan);
  });
  store.pump(16, errors);
  EXPECT_EQ(store.quarantined(), 0U);
  EXPECT_EQ(store.held_bytes(), 0U);
}

TEST_F(PlanQuarantineTest, APlanStaysInQuarantineWhileNoWaitSucceeds) {
  EXPECT_CALL(cuda, stream_synchronize)
      .Times(3)
      .WillRepeatedly(Return(cuda_error(CudaErrc::launch_failure, "stream_synchronize")));
  EXPECT_CALL(fluxon, put_abort(_)).Times(0);
  ASSERT_FALSE(put({"a"}, {tensor(512)}).has_value());
  std::vector<Error> errors;
  store.pump(16, errors);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_TRUE(is_cuda(errors[0], CudaErrc::launch_failure));
  EXPECT_EQ(store.quarantined(), 1U);
  EXPECT_EQ(store.held_bytes(), 4096U);
}

TEST_F(PlanQuarantineTest, TearDownEndsTheQuarantine) {
  EXPECT_CALL(cuda, stream_synchronize)
      .WillRepeatedly(Return(cuda_error(CudaErrc::illegal_address, "stream_synchronize")));
  ASSERT_FALSE(put({"a"}, {tensor(512)}).has_value());
  ASSERT_EQ(store.quarantined(), 1U);
  device.tear_down();
  std::vector<Error> errors;
  EXPECT_CALL(fluxon, put_abort(_)).Times(1);
  store.device_torn_down(errors);
  EXPECT_EQ(store.quarantined(), 0U);
  EXPECT_TRUE(errors.empty());
  const std::vector<std::string_view> keys{"a"};
  EXPECT_FALSE(store.unsettled(keys));
  EXPECT_EQ(store.registry_counts().registered_pieces, 0U) << "the registrations went with the context";
}

TEST_F(PlanQuarantineTest, ViewsAreReleasedAfterAFailedCopyOnceItWasWaitedFor) {
  ASSERT_TRUE(put({"a"}, {tensor(512)}).has_value());
  const InSequence order;
  EXPECT_CALL(cuda, copy_batch).WillOnce(Return(cuda_error(CudaErrc::launch_failure, "copy_batch")));
  EXPECT_CALL(cuda, stream_synchronize(stream));
  EXPECT_CALL(fluxon, release_views(_));
  const ReadOutcome outcome = read({"a"}, {tensor(512)});
  EXPECT_EQ(outcome.verdict, ReadVerdict::failed);
  EXPECT_TRUE(outcome.targets_touched);
}

TEST_F(PlanQuarantineTest, ViewsThatCannotBeWaitedForAreQuarantined) {
  ASSERT_TRUE(put({"a"}, {tensor(512)}).has_value());
  EXPECT_CALL(cuda, stream_synchronize)
      .WillOnce(Return(cuda_error(CudaErrc::launch_failure, "stream_synchronize")))
      .WillOnce(Return(cuda_error(CudaErrc::launch_failure, "stream_synchronize")))
      .WillRepeatedly(Invoke(&device, &fakes::FakeCuda::stream_synchronize));
  EXPECT_EQ(read({"a"}, {tensor(512)}).verdict, ReadVerdict::failed);
  EXPECT_EQ(store.quarantined(), 1U);
  EXPECT_TRUE(store.shut_down().has_value()) << "the wait succeeds at last";
  EXPECT_TRUE(nothing_open());
}

}  // namespace
}  // namespace holdfast
