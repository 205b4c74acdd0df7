// The stand-in engine with a stream for copies beside its own: each waits for the other, by events.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "holdfast/sim/stand_in_engine.hpp"

namespace holdfast::sim {
namespace {

struct NoListener final : TensorListener {
  void on_tensor(std::uintptr_t /*base*/, std::uint64_t /*bytes*/) override {}
  void on_tensor_gone(std::uintptr_t /*base*/) override {}
  void on_kernel(StreamRef /*stream*/, std::span<const RangeAccess> /*accesses*/) override {}
  void on_free(StreamRef /*stream*/, const MemoryRange& /*memory*/) override {}
};

class EngineCopyStreamTest : public testing::Test {
 protected:
  EngineCopyStreamTest() : host_(256) {
    geometry_.ring_frames = 12;
    geometry_.latent_bytes = 100;
    EXPECT_TRUE(device_.host_register(host(), host_.size(), HostAccess::read_write).has_value());
    open(engine_, &device_);
  }
  ~EngineCopyStreamTest() override {
    engine_.close();
    EXPECT_EQ(device_.event_count(), 0U);
    EXPECT_TRUE(device_.host_unregister(host()).has_value());
  }
  void open(StandInEngine& engine, CudaBackend* events) {
    const SessionSpec spec{1, geometry_, geometry_, {}};
    const std::vector<std::string> actions{"0", "1", "2", "3", "4", "5"};
    EXPECT_TRUE(engine.open(oracle_.layout_of(geometry_), oracle_.path_of(spec, actions), events).has_value());
    EXPECT_TRUE(engine.generate());
  }
  std::uintptr_t host() { return reinterpret_cast<std::uintptr_t>(host_.data()); }
  std::vector<std::byte> latent() {
    const auto* at = reinterpret_cast<const std::byte*>(engine_.finalized_latent().data);
    return {at, at + geometry_.latent_bytes};
  }
  // The latent just finalized, on its way out.
  void copy_latent(const CopyStream& on) {
    const Copy copy{host(), engine_.finalized_latent().data, geometry_.latent_bytes};
    EXPECT_TRUE(device_.copy_batch(CopyDirection::device_to_host, std::span(&copy, 1), on.stream).has_value());
  }

  fakes::VirtualClock clock_;
  fakes::Arena arena_;
  fakes::FakeCuda device_{arena_, clock_};
  RunContext context_{clock_};
  Oracle oracle_{context_};
  NoListener tensors_;
  Geometry geometry_;
  StandInEngine engine_{device_, oracle_, tensors_};
  std::vector<std::byte> host_;
};

TEST_F(EngineCopyStreamTest, CopiesGetAStreamOfTheirOwnAnEventToWaitForAndAFollower) {
  const CopyStream on = engine_.copy_stream();
  EXPECT_NE(on.stream, engine_.stream());
  ASSERT_TRUE(on.producer.has_value());
  EXPECT_TRUE(device_.stream_wait(on.stream, *on.producer).has_value());
  EXPECT_NE(on.follower, nullptr);
  EXPECT_EQ(engine_.copy_stream().stream, on.stream);
  EXPECT_EQ(device_.event_count(), 1U) << "the last one's event is destroyed";
}

TEST_F(EngineCopyStreamTest, WithoutOneTheEnginesStreamIsAllThereIs) {
  StandInEngine plain(device_, oracle_, tensors_);
  open(plain, nullptr);
  const CopyStream on = plain.copy_stream();
  EXPECT_EQ(on.stream, plain.stream());
  EXPECT_FALSE(on.producer.has_value());
  EXPECT_EQ(on.follower, nullptr);
  plain.close();
}

TEST_F(EngineCopyStreamTest, BeforeItComputesAgainTheEngineWaitsForTheCopies) {
  for (const bool with_event : {true, false}) {
    const CopyStream on = engine_.copy_stream();
    const std::vector<std::byte> was = latent();
    copy_latent(on);
    std::optional<EventRef> done;
    if (with_event) {
      done = *device_.event_create();
      EXPECT_TRUE(device_.event_record(*done, on.stream).has_value());
    }
    on.follower->follow(on.stream, done);
    if (done) {
      EXPECT_TRUE(device_.event_destroy(*done).has_value());
    }
    ASSERT_EQ(device_.in_flight_count(), 1U);
    EXPECT_TRUE(engine_.generate());
    EXPECT_EQ(device_.in_flight_count(), 0U);
    EXPECT_TRUE(std::equal(was.begin(), was.end(), host_.begin())) << "what was copied is what was there";
  }
}

TEST_F(EngineCopyStreamTest, CopiesThatItWasNotToldOfAreOverwritten) {
  const CopyStream on = engine_.copy_stream();
  copy_latent(on);
  EXPECT_TRUE(engine_.generate());
  EXPECT_EQ(device_.in_flight_count(), 1U);
  EXPECT_TRUE(device_.stream_synchronize(on.stream).has_value());
}

}  // namespace
}  // namespace holdfast::sim
