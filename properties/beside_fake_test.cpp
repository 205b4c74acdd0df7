// A run that is made over a device and beside it over the fake one: any difference is a divergence of the fake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "holdfast/sim/campaign.hpp"
#include "holdfast/sim/scenarios.hpp"

namespace holdfast::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

enum class Lie { none, work_is_never_done, no_second_event, moves_nothing };

// A device that differs from the fake in one thing.
class OtherDevice final : public fakes::FakeCuda, private fakes::CopyMover {
 public:
  OtherDevice(fakes::Arena& arena, fakes::VirtualClock& clock, const fakes::DeviceOptions& options, Lie lie)
      : FakeCuda(arena, clock, options), lie_(lie) {
    if (lie == Lie::moves_nothing) move_with(this);
  }
  Result<bool> event_query(EventRef event) override {
    Result<bool> answer = FakeCuda::event_query(event);
    if (answer && lie_ == Lie::work_is_never_done) return false;
    return answer;
  }
  Result<EventRef> event_create() override {
    if (lie_ == Lie::no_second_event && ++created_ > 1) {
      return cuda_error(CudaErrc::memory_allocation, "event_create");
    }
    return FakeCuda::event_create();
  }

 private:
  void move(std::uint64_t /*batch*/, std::size_t /*pieces*/) override {}

  Lie lie_;
  int created_ = 0;
};

CampaignResult run_beside(const char* scenario, Lie lie) {
  SystemFactory factory(make_production_system);
  factory.beside_fake = true;
  factory.make_device = [=](fakes::Arena& arena, fakes::VirtualClock& clock, const fakes::DeviceOptions& options) {
    return std::make_unique<OtherDevice>(arena, clock, options, lie);
  };
  const auto trace = std::make_shared<const Trace>(scenario_named(scenario).value());
  CampaignOptions options;
  options.seeds = {1, 1};
  options.jobs = 1;
  options.recheck = {0, 1};
  return run_campaign(options, factory, [&](std::uint64_t) { return trace; }).value();
}

TEST(BesideFake, TheSameDeviceIsTheSame) {
  for (const char* scenario : {"abcd", "overlapped", "stuck_copy", "dead_context"}) {
    const CampaignResult result = run_beside(scenario, Lie::none);
    EXPECT_EQ(result.rechecked, 1U);
    EXPECT_EQ(result.diverged, 0U) << scenario << ": " << result.failures.front().message;
  }
}

TEST(BesideFake, AnAnswerThatDiffersIsADivergenceThatNamesTheEvent) {
  const CampaignResult result = run_beside("overlapped", Lie::no_second_event);
  EXPECT_EQ(result.diverged, 1U);
  ASSERT_THAT(result.failures, SizeIs(testing::Ge(1U)));
  EXPECT_THAT(result.failures.back().message, HasSubstr("the fake is not the device: event "));
  EXPECT_THAT(result.failures.back().message, HasSubstr("event_create"));
}

TEST(BesideFake, WorkThatIsNeverDoneIsSeen) {
  EXPECT_EQ(run_beside("overlapped_stuck", Lie::work_is_never_done).diverged, 1U);
}

TEST(BesideFake, BytesThatNeverMoveAreSeen) {
  const CampaignResult result = run_beside("abcd", Lie::moves_nothing);
  EXPECT_EQ(result.diverged, 1U);
}

}  // namespace
}  // namespace holdfast::sim
