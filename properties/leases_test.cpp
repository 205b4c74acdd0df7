// A lease ends what it holds exactly once, whoever forgets it.
#include <gtest/gtest.h>

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core_fixture.hpp"
#include "holdfast/core/get_handle_lease.hpp"
#include "holdfast/core/path_lease.hpp"
#include "holdfast/core/put_plan_lease.hpp"
#include "holdfast/core/read_plan_lease.hpp"

namespace holdfast {
namespace {

using testing::_;
using testing::Return;

class LeasesTest : public CoreTest {
 protected:
  LeasesTest() {
    EXPECT_TRUE(owner.put("a", std::vector<std::byte>(512)).has_value());
    Result<std::vector<Segment>> segments = context.live_segments(absorbed);
    EXPECT_TRUE(segments.has_value());
    generation = segments->front().generation;
  }

  PutPlanLease<TestRuntime> put_plan() {
    const Result<PlanPtr> plan = owner.local_fast_put_start(fresh, 512, PutOptions{});
    EXPECT_TRUE(plan.has_value());
    return {context, *plan, {fresh, 512, generation, clock.now_ns()}};
  }
  GetHandleLease<TestRuntime> handle() {
    const Result<GetStart> start = owner.get_start(there, true, {});
    EXPECT_TRUE(start.has_value());
    return {context, start->handle, GenerationCall(context.registry, generation)};
  }
  ReadPlanLease<TestRuntime> read_plan() {
    Result<ReadPlanLease<TestRuntime>> plan = handle().transfer(there);
    EXPECT_TRUE(plan.has_value());
    return std::move(*plan);
  }
  // What the clean-ups had nobody to tell.
  std::vector<Error> notes() {
    std::vector<Error> errors;
    context.end_quarantined(Landing::wait, errors);
    return errors;
  }
  static Error lost(std::string_view call) { return fluxon_error(FluxonErrc::network, call); }

  PlanContext<TestRuntime> context{runtime, plan_options()};
  const std::vector<std::string_view> there{"a"};
  const std::vector<std::string_view> fresh{"b"};
  std::vector<Error> absorbed;
  std::uint64_t generation = 0;
};

TEST_F(LeasesTest, WhatNobodyEndedIsEnded) {
  EXPECT_CALL(fluxon, put_abort(_)).Times(1);
  EXPECT_CALL(fluxon, cancel_get_transfer(_)).Times(1);
  EXPECT_CALL(fluxon, release_views(_)).Times(1);
  put_plan();
  handle();
  read_plan();
  EXPECT_TRUE(nothing_open());
  EXPECT_TRUE(notes().empty());
}

TEST_F(LeasesTest, WhatNobodyEndedAndCouldNotBeEndedIsToldByTheNextPump) {
  EXPECT_CALL(fluxon, put_abort(_)).WillOnce(Return(lost("put_abort")));
  EXPECT_CALL(fluxon, cancel_get_transfer(_)).WillOnce(Return(lost("cancel_get_transfer")));
  EXPECT_CALL(fluxon, release_views(_)).WillOnce(Return(lost("release_views")));
  put_plan();
  handle();
  read_plan();
  const std::vector<Error> told = notes();
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0].call, "put_abort");
  EXPECT_EQ(told[1].call, "cancel_get_transfer");
  EXPECT_EQ(told[2].call, "release_views");
}

TEST_F(LeasesTest, WhatEndedIsNotEndedAgain) {
  PutPlanLease<TestRuntime> put = put_plan();
  ASSERT_TRUE(put.abort().has_value());
  EXPECT_DEATH((void)put.abort(), "abort of an ended plan");
  EXPECT_DEATH((void)put.commit(), "commit of an ended plan");
  GetHandleLease<TestRuntime> get = handle();
  ASSERT_TRUE(get.cancel().has_value());
  EXPECT_DEATH((void)get.cancel(), "cancel of an ended handle");
  EXPECT_DEATH((void)get.transfer(there), "transfer of an ended handle");
  ReadPlanLease<TestRuntime> read = read_plan();
  ASSERT_TRUE(read.release().has_value());
  EXPECT_DEATH((void)read.release(), "release of an ended plan");
}

TEST_F(LeasesTest, APlanWhoseCopiesHaveNotArrivedIsNotCommitted) {
  PutPlanLease<TestRuntime> put = put_plan();
  EXPECT_DEATH((void)put.commit(), "commit of a plan whose copies have not arrived");
}

class Holder : public PathReferences {
 public:
  void release_references(std::span<Node* const> nodes, const Stats& spent) override {
    released.push_back(nodes.size());
    told += spent;
  }
  std::vector<std::size_t> released;
  Stats told;
};

TEST(PathLeaseTest, GivenAnotherPathItLetsGoOfItsOwn) {
  Holder holder;
  {
    PathLease held(holder, {}, std::vector<Node*>(1));
    held = PathLease(holder, {}, std::vector<Node*>(2));
    EXPECT_EQ(holder.released, std::vector<std::size_t>{1});
    EXPECT_EQ(held.window().size(), 2U);
  }
  EXPECT_EQ(holder.released, (std::vector<std::size_t>{1, 2}));
}

TEST(PathLeaseTest, WhatWasSpentOnItIsToldOnceWhereverItGoes) {
  Holder holder;
  Stats spent;
  spent.hit_chunks = 3;
  {
    PathLease first(holder, {}, {});
    first.add(spent);
    PathLease second(std::move(first));
    second.add(spent);
    PathLease third(holder, {}, {});
    third = std::move(second);
    EXPECT_EQ(holder.told, Stats{});
  }
  EXPECT_EQ(holder.told.hit_chunks, 6U);
}

}  // namespace
}  // namespace holdfast
