// What the harness asks of a warm-up: that it stops when it is told to, never goes back, ends at its end, leaves
// nothing when it fails, and leaves the puts nothing to register.
#include <functional>
#include <memory>
#include <string>

#include "forwarding_system.hpp"
#include "holdfast/sim/executor.hpp"
#include "holdfast/sim/trace_builder.hpp"
#include "monitor_fixture.hpp"

namespace holdfast::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// ---- What the monitor decides.

TEST_F(MonitorTest, ARegistrationThatAFailedWarmUpLetStandIsSeen) {
  const Segment segment = owner.segment();
  ASSERT_TRUE(cuda().host_unregister(segment.write_ptr));
  monitor.begin(Operation::warm_up);
  ASSERT_TRUE(cuda().host_register(segment.write_ptr, segment.len, HostAccess::read_write));
  monitor.end(false);
  EXPECT_THAT(violated(), ElementsAre("no-publish-on-failure"));
  EXPECT_THAT(message(), HasSubstr("still there"));
}

TEST_F(MonitorTest, AFailedWarmUpThatTookItsRegistrationsBackIsRight) {
  const Segment segment = owner.segment();
  ASSERT_TRUE(cuda().host_unregister(segment.write_ptr));
  monitor.begin(Operation::warm_up);
  ASSERT_TRUE(cuda().host_register(segment.write_ptr, segment.len, HostAccess::read_write));
  ASSERT_TRUE(cuda().host_unregister(segment.write_ptr));
  monitor.end(false);
  EXPECT_THAT(violated(), IsEmpty()) << "the other mapping's was there before";
}

TEST_F(MonitorTest, ARegistrationThatCannotBeTakenBackMayStand) {
  const Segment segment = owner.segment();
  ASSERT_TRUE(cuda().host_unregister(segment.write_ptr));
  inject({{.call = Call::host_unregister, .kind = FaultKind::before, .code = code_of(CudaErrc::invalid_value)}});
  monitor.begin(Operation::warm_up);
  ASSERT_TRUE(cuda().host_register(segment.write_ptr, segment.len, HostAccess::read_write));
  ASSERT_FALSE(cuda().host_unregister(segment.write_ptr));
  monitor.end(false);
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(MonitorTest, ARegistrationInWhatAWarmUpMadeReadyIsSeen) {
  const Segment segment = owner.segment();
  monitor.begin(Operation::warm_up);
  monitor.end(true);
  monitor.begin_ingest(source());
  ASSERT_TRUE(cuda().host_unregister(segment.write_ptr));
  ASSERT_TRUE(cuda().host_register(segment.write_ptr, segment.len, HostAccess::read_write));
  monitor.end(true);
  EXPECT_THAT(violated(), ElementsAre("progress"));
  EXPECT_THAT(message(), HasSubstr("although a warm-up has succeeded"));
}

TEST_F(MonitorTest, ANewerOwnersSegmentIsNotReadyByAnOlderWarmUp) {
  monitor.begin(Operation::warm_up);
  monitor.end(true);
  monitor.begin_ingest(source());
  restart_owner_and_learn();
  monitor.end(true);
  EXPECT_THAT(violated(), IsEmpty());
}

TEST_F(MonitorTest, NorIsAnythingAfterTheDevicesTearDown) {
  monitor.begin(Operation::warm_up);
  monitor.end(true);
  monitor.device_torn_down();
  const Segment segment = owner.segment();
  ASSERT_TRUE(device.host_unregister(segment.write_ptr));
  monitor.begin_ingest(source());
  ASSERT_TRUE(cuda().host_register(segment.write_ptr, segment.len, HostAccess::read_write));
  monitor.end(true);
  EXPECT_THAT(violated(), IsEmpty());
}

// ---- What the executor decides, of the project's own store with something wrong in its warm-up.

using WarmUp = std::function<Result<WarmUpOutcome>(SystemUnderTest&, const WarmUpGoOn&)>;

class OddWarmUp final : public ForwardingSystem {
 public:
  OddWarmUp(std::unique_ptr<SystemUnderTest> inner, WarmUp warm_up)
      : ForwardingSystem(std::move(inner)), warm_up_(std::move(warm_up)) {}
  Result<WarmUpOutcome> warm_up(const WarmUpGoOn& go_on) override { return warm_up_(inner(), go_on); }

 private:
  WarmUp warm_up_;
};

// The violations of one warm-up that is cancelled when it asks for the nth time.
std::string wrong_with(const WarmUp& warm_up, std::uint64_t cancelled_at = 0) {
  Executor executor([&](Ports& ports, ClaimListener& listener, const SystemOptions& options) {
    return std::make_unique<OddWarmUp>(make_production_system(ports, listener, options), warm_up);
  });
  TraceBuilder builder("warm-up");
  builder.trace().grant_bytes = builder.trace().segment_bytes / 4;
  builder.geometry({});
  builder.warm_up(cancelled_at);
  const RunResult result = executor.run(builder.finish());
  std::string messages;
  for (const Violation& violation : result.violations) {
    EXPECT_EQ(violation.invariant, Invariant::progress);
    messages += violation.message + "\n";
  }
  return messages;
}

Result<WarmUpOutcome> as_it_is(SystemUnderTest& system, const WarmUpGoOn& go_on) { return system.warm_up(go_on); }

TEST(WarmUpChecks, TheProjectsOwnIsRightCancelledAtAnyMomentOrNot) {
  constexpr std::uint64_t kAsks = 1 + 5 + 8;
  for (std::uint64_t moment = 0; moment <= kAsks + 1; ++moment) EXPECT_EQ(wrong_with(as_it_is, moment), "") << moment;
}

TEST(WarmUpChecks, ProgressThatGoesBackIsSeen) {
  const auto goes_back = [](SystemUnderTest& system, const WarmUpGoOn& go_on) {
    return system.warm_up([&](WarmUpReached reached) {
      if (reached.registered_bytes == reached.register_total_bytes / 2) reached.registered_bytes = 0;
      return go_on(reached);
    });
  };
  EXPECT_THAT(wrong_with(goes_back), HasSubstr("went back"));
}

TEST(WarmUpChecks, ProgressBeyondItsTotalIsSeen) {
  const auto too_far = [](SystemUnderTest& system, const WarmUpGoOn& go_on) {
    return system.warm_up([&](WarmUpReached reached) {
      reached.touched_bytes = reached.touch_total_bytes + 1;
      return go_on(reached);
    });
  };
  EXPECT_THAT(wrong_with(too_far), HasSubstr("beyond its total"));
}

TEST(WarmUpChecks, OneThatGoesOnAfterItWasToldToStopIsSeen) {
  const auto deaf = [](SystemUnderTest& system, const WarmUpGoOn& go_on) {
    return system.warm_up([&](const WarmUpReached& reached) {
      static_cast<void>(go_on(reached));
      return true;
    });
  };
  const std::string wrong = wrong_with(deaf, 9);
  EXPECT_THAT(wrong, HasSubstr("asked again"));
  EXPECT_THAT(wrong, HasSubstr("was told to stop, and succeeded"));
  EXPECT_EQ(wrong_with(deaf), "") << "nobody told it to";
}

TEST(WarmUpChecks, ASuccessBeforeTheEndIsSeen) {
  const auto early = [](SystemUnderTest& system, const WarmUpGoOn& go_on) {
    auto outcome = system.warm_up(go_on);
    outcome->reached.touched_bytes -= 1;
    return outcome;
  };
  EXPECT_THAT(wrong_with(early), HasSubstr("succeeded before its end"));
}

}  // namespace
}  // namespace holdfast::sim
