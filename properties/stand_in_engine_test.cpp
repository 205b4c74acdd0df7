#include "holdfast/sim/stand_in_engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

namespace holdfast::sim {
namespace {

struct Tensors final : TensorListener {
  void on_tensor(std::uintptr_t base, std::uint64_t bytes) override { live[base] = bytes; }
  void on_tensor_gone(std::uintptr_t base) override { EXPECT_EQ(live.erase(base), 1U); }
  std::map<std::uintptr_t, std::uint64_t> live;
};

Geometry geometry_of(std::uint32_t chunk, std::uint32_t ring, std::uint32_t sinks, bool full_length) {
  Geometry geometry;
  geometry.n_layers = 2;
  geometry.frames_per_chunk = chunk;
  geometry.frame_tokens = 2;
  geometry.ring_frames = ring;
  geometry.sink_frames = sinks;
  geometry.full_length = full_length;
  geometry.kv_token_bytes = {64, 32, 48};
  geometry.latent_bytes = 100;
  geometry.timesteps = 4;
  return geometry;
}

std::byte* bytes_at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

class StandInEngineTest : public testing::Test {
 protected:
  std::unique_ptr<StandInEngine> open(const Geometry& geometry, const std::vector<std::string>& actions) {
    auto engine = std::make_unique<StandInEngine>(device_, oracle_, tensors_);
    const SessionSpec spec{1, geometry, geometry, {}};
    auto path = oracle_.path_of(spec, actions);
    EXPECT_TRUE(engine->open(oracle_.layout_of(geometry), std::move(path)).has_value());
    return engine;
  }
  // What a perfect store does: the ring and the latents of `from`, which stands after `chunks` chunks.
  void restore(StandInEngine& engine, StandInEngine& from, std::uint32_t chunks,
               const std::vector<std::vector<std::byte>>& latents) {
    const Geometry& geometry = engine.layout().geometry;
    auto targets = engine.latent_targets(chunks);
    ASSERT_TRUE(targets.has_value());
    for (std::uint32_t i = 0; i < chunks; ++i) std::memcpy(bytes_at((*targets)[i].data), latents[i].data(), 100);
    const auto to = engine.ring();
    const auto source = from.ring();
    for (std::size_t i = 0; i < to.size(); ++i)
      std::memcpy(bytes_at(to[i].data), bytes_at(source[i].data), to[i].bytes);
    engine.publish_kv_indices(from.indices());
    engine.publish_latents(chunks);
    engine.fast_forward(chunks, static_cast<std::uint64_t>(chunks) * (geometry.timesteps - 1));
  }
  static std::vector<std::byte> latent(StandInEngine& engine) {
    const DeviceTensor tensor = engine.finalized_latent();
    return {bytes_at(tensor.data), bytes_at(tensor.data) + tensor.bytes};
  }
  std::size_t violations(Invariant invariant) {
    const auto& all = context_.verdicts.violations();
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [&](const Violation& one) { return one.invariant == invariant; }));
  }

  fakes::VirtualClock clock_;
  fakes::Arena arena_;
  fakes::FakeCuda device_{arena_, clock_};
  RunContext context_{clock_};
  Oracle oracle_{context_};
  Tensors tensors_;
  std::vector<std::string> actions_{"0", "1", "2", "3", "4", "5"};
};

TEST_F(StandInEngineTest, ThreeChunksOfThreeFramesGive37OutputFrames) {
  auto engine = open(geometry_of(3, 9, 0, true), {"0", "1", "2"});
  while (engine->can_generate()) EXPECT_TRUE(engine->generate());
  EXPECT_EQ(engine->chunks_done(), 3U);
  EXPECT_EQ(engine->frame_hashes().size(), 37U);
  EXPECT_EQ(engine->indices(), (RingIndices{18, 18}));
}

TEST_F(StandInEngineTest, ARolledRingHoldsTheBytesOfTheFramesThatAColdRingHas) {
  auto engine = open(geometry_of(3, 7, 3, false), actions_);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(engine->generate());
  EXPECT_EQ(engine->indices(), (RingIndices{14, 30}));
  const std::uint64_t logical[] = {0, 1, 2, 11, 12, 13, 14};
  for (std::size_t position = 0; position < 7; ++position) {
    const NodeIndex node = engine->path()[logical[position] / 3];
    for (std::size_t tensor = 0; tensor < 4; ++tensor) {
      EXPECT_FALSE(oracle_.judge(engine->frame(tensor, position), node, tensor,
                                 static_cast<std::uint32_t>(logical[position] % 3)));
    }
  }
}

TEST_F(StandInEngineTest, AResumedRunGivesTheColdRunsFrames) {
  for (const bool full_length : {true, false}) {
    const Geometry geometry = full_length ? geometry_of(2, 12, 0, true) : geometry_of(2, 5, 1, false);
    for (std::uint32_t chunks = 1; chunks < 6; ++chunks) {
      auto cold = open(geometry, actions_);
      auto warm = open(geometry, actions_);
      std::vector<std::vector<std::byte>> latents;
      for (std::uint32_t i = 0; i < chunks; ++i) {
        EXPECT_TRUE(cold->generate());
        latents.push_back(latent(*cold));
      }
      warm->begin_resume();
      restore(*warm, *cold, chunks, latents);
      EXPECT_TRUE(oracle_.check_resume(*warm, chunks, chunks));
      warm->end_resume_warm(chunks, true);
      while (cold->can_generate()) EXPECT_TRUE(cold->generate());
      while (warm->can_generate()) EXPECT_TRUE(warm->generate());
      EXPECT_EQ(cold->frame_hashes(), warm->frame_hashes());
    }
  }
  EXPECT_TRUE(context_.verdicts.held());
  EXPECT_GT(context_.verdicts.checks()[static_cast<std::size_t>(Invariant::exact_bytes)], 0U);
}

class WrongResumeTest : public StandInEngineTest {
 protected:
  // A resume of three chunks of which `harm` spoils something; gives what the oracle says.
  template <class Harm>
  bool resume(Harm&& harm) {
    cold_ = open(geometry_, actions_);
    warm_ = open(geometry_, actions_);
    std::vector<std::vector<std::byte>> latents;
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(cold_->generate());
      latents.push_back(latent(*cold_));
    }
    warm_->begin_resume();
    restore(*warm_, *cold_, 3, latents);
    harm();
    const bool right = oracle_.check_resume(*warm_, 3, claimed_);
    warm_->end_resume_warm(3, right);
    return right;
  }
  Geometry geometry_ = geometry_of(2, 5, 1, false);
  std::uint32_t claimed_ = 3;
  std::unique_ptr<StandInEngine> cold_, warm_;
};

TEST_F(WrongResumeTest, OneWrongByteInTheRingIsSeenAndSpreads) {
  EXPECT_FALSE(resume([&] { *bytes_at(warm_->ring()[3].data + 7) ^= std::byte{1}; }));
  EXPECT_EQ(violations(Invariant::exact_bytes), 1U);
  EXPECT_FALSE(warm_->generate());
  EXPECT_TRUE(cold_->generate());
  EXPECT_NE(warm_->frame_hashes().back(), cold_->frame_hashes().back());
  EXPECT_NE(warm_->value_digests()[0], cold_->value_digests()[0]);
  EXPECT_EQ(violations(Invariant::exact_bytes), 1U) << "what follows from it is not told again";
}

TEST_F(WrongResumeTest, FramesInAnotherOrderBreakWholeWindow) {
  EXPECT_FALSE(resume([&] {
    const std::uint64_t bytes = warm_->layout().frame_bytes[0];
    std::swap_ranges(bytes_at(warm_->ring()[0].data) + bytes, bytes_at(warm_->ring()[0].data) + 2 * bytes,
                     bytes_at(warm_->ring()[0].data) + 2 * bytes);
  }));
  EXPECT_EQ(violations(Invariant::whole_window), 1U);
  EXPECT_EQ(violations(Invariant::exact_bytes), 0U);
}

TEST_F(WrongResumeTest, WrongIndicesBreakWholeWindow) {
  EXPECT_FALSE(resume([&] { warm_->publish_kv_indices({10, 10}); }));
  EXPECT_EQ(violations(Invariant::whole_window), 1U);
}

TEST_F(WrongResumeTest, MoreChunksThanWereEverClaimedBreakWholeWindow) {
  claimed_ = 2;
  EXPECT_FALSE(resume([] {}));
  EXPECT_EQ(violations(Invariant::whole_window), 1U);
}

TEST_F(WrongResumeTest, AWrongLatentIsSeenAndChangesEveryLaterFrame) {
  EXPECT_FALSE(resume([&] { const_cast<std::byte*>(warm_->latent(1))[5] ^= std::byte{1}; }));
  EXPECT_EQ(violations(Invariant::exact_bytes), 1U);
  EXPECT_EQ(warm_->frame_hashes()[8], cold_->frame_hashes()[8]);
  EXPECT_NE(warm_->frame_hashes()[9], cold_->frame_hashes()[9]);
  EXPECT_FALSE(warm_->generate());
}

TEST_F(StandInEngineTest, LatentsPublishedWithoutAPlaceForThemBreakExactBytes) {
  auto cold = open(geometry_of(2, 5, 1, false), actions_);
  auto warm = open(geometry_of(2, 5, 1, false), actions_);
  EXPECT_TRUE(cold->generate());
  warm->begin_resume();
  const auto to = warm->ring();
  const auto from = cold->ring();
  for (std::size_t i = 0; i < to.size(); ++i) std::memcpy(bytes_at(to[i].data), bytes_at(from[i].data), to[i].bytes);
  warm->publish_kv_indices(cold->indices());
  warm->publish_latents(1);
  warm->fast_forward(1, 3);
  EXPECT_FALSE(oracle_.check_resume(*warm, 1, 1));
  EXPECT_EQ(violations(Invariant::exact_bytes), 1U);
}

TEST_F(WrongResumeTest, TooFewDrawsDiverge) {
  EXPECT_FALSE(resume([&] {
    warm_->begin_resume();
    warm_->end_resume_cold();
    warm_->publish_kv_indices(cold_->indices());
    warm_->publish_latents(3);
    warm_->fast_forward(3, 8);
  }));
  EXPECT_EQ(violations(Invariant::exact_bytes), 1U);
  EXPECT_FALSE(warm_->generate());
}

TEST_F(WrongResumeTest, AWrongResumeAfterARestartBreaksRestartSafeToo) {
  oracle_.after_restart();
  EXPECT_FALSE(resume([&] { *bytes_at(warm_->ring()[0].data) ^= std::byte{1}; }));
  EXPECT_EQ(violations(Invariant::restart_safe), 1U);
}

TEST_F(StandInEngineTest, AFailedResumeThatPublishedBreaksNoPublishOnFailure) {
  auto engine = open(geometry_of(2, 8, 0, true), actions_);
  engine->begin_resume();
  EXPECT_TRUE(oracle_.check_cold(*engine, true));
  engine->publish_kv_indices({0, 0});
  EXPECT_TRUE(oracle_.check_cold(*engine, true)) << "saying that the ring is empty only withdraws";
  engine->publish_kv_indices({4, 4});
  engine->publish_kv_indices({0, 0});
  EXPECT_FALSE(oracle_.check_cold(*engine, true));
  EXPECT_EQ(violations(Invariant::no_publish_on_failure), 1U);
}

TEST_F(StandInEngineTest, BytesThatChangeLaterAreFoundByTheNextChunkOrAtTheEnd) {
  auto engine = open(geometry_of(2, 12, 0, true), actions_);
  EXPECT_TRUE(engine->generate());
  *bytes_at(engine->ring()[0].data) ^= std::byte{1};
  EXPECT_FALSE(engine->generate());
  EXPECT_EQ(violations(Invariant::exact_bytes), 1U);

  auto other = open(geometry_of(2, 12, 0, true), actions_);
  EXPECT_TRUE(other->generate());
  *bytes_at(other->ring()[0].data) ^= std::byte{1};
  other->close();
  EXPECT_EQ(violations(Invariant::exact_bytes), 2U);
}

TEST_F(StandInEngineTest, AChunkIsComputedAfterWhatItsStreamStillHolds) {
  alignas(4096) static std::byte host[4096];
  std::memset(host, 0x5A, sizeof(host));
  ASSERT_TRUE(device_.host_register(reinterpret_cast<std::uintptr_t>(host), sizeof(host), HostAccess::read_write));
  auto engine = open(geometry_of(2, 12, 0, true), actions_);
  const Copy copy{engine->ring()[0].data, reinterpret_cast<std::uintptr_t>(host), 64};
  ASSERT_TRUE(device_.copy_batch(CopyDirection::host_to_device, std::span(&copy, 1), engine->stream()));
  EXPECT_TRUE(engine->generate());
  ASSERT_TRUE(device_.stream_synchronize(engine->stream()));
  engine->close();
  EXPECT_TRUE(context_.verdicts.held()) << "the late copy must not land on the chunk";
  EXPECT_FALSE(device_.has_incidents());
}

TEST_F(StandInEngineTest, EveryTensorIsDeclaredAndGivenBack) {
  auto engine = open(geometry_of(2, 12, 0, true), actions_);
  EXPECT_EQ(tensors_.live.size(), 5U);
  ASSERT_TRUE(engine->latent_targets(4).has_value());
  EXPECT_EQ(tensors_.live.size(), 9U);
  ASSERT_TRUE(engine->latent_targets(2).has_value());
  EXPECT_EQ(tensors_.live.size(), 7U);
  engine->close();
  EXPECT_TRUE(tensors_.live.empty());
  EXPECT_EQ(device_.allocation_count(), 0U);
  engine.reset();
  EXPECT_EQ(device_.stream_count(), 0U);
}

}  // namespace
}  // namespace holdfast::sim
