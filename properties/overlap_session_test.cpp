// Sessions whose copies overlap, on the engine's stream and beside it: the same rings, and every order that was
// promised.
#include <gtest/gtest.h>

#include <optional>

#include "session_fixture.hpp"

namespace holdfast {
namespace {

using testing::_;
using testing::InSequence;
using testing::Invoke;
using testing::SizeIs;

// Gives copies a stream of their own, and counts what it was told of them.
class BesideEngine final : public TestEngine, private CopyFollower {
 public:
  BesideEngine(fakes::FakeCuda& device, StreamRef on, StreamRef copies, const WorldSpec& spec)
      : TestEngine(device, on, spec), fake_(device), copies_(copies), written_(*device.event_create()) {}
  ~BesideEngine() override { EXPECT_TRUE(fake_.event_destroy(written_).has_value()); }

  CopyStream copy_stream() override {
    EXPECT_TRUE(fake_.event_record(written_, stream()).has_value());
    CopyStream on = copies_;
    on.producer = written_;
    on.follower = this;
    return on;
  }
  std::size_t followed = 0;

 private:
  void follow(StreamRef copies, std::optional<EventRef> done) override {
    ++followed;
    EXPECT_EQ(copies, copies_);
    ASSERT_TRUE(done.has_value());
    EXPECT_TRUE(fake_.stream_wait(stream(), *done).has_value());
  }

  fakes::FakeCuda& fake_;
  StreamRef copies_;
  EventRef written_;
};

class OverlapSessionTest : public SessionTest {
 protected:
  static PlanOptions overlapped() {
    PlanOptions options = plan_options();
    options.overlap = {CopyMode::overlapped, 2, 1};
    return options;
  }
  std::unique_ptr<TestBinding> bind(TestEngine& engine) {
    return std::move(*TestBinding::open(overlapping, engine, {spec, 4, 3}));
  }
  void write(TestEngine& engine, TestBinding& binding) {
    std::string history;
    for (const std::string& action : actions) {
      history += "|" + action;
      engine.generate(history);
      const Result<IngestReceipt> receipt = binding.on_chunk_finalized(action, absorbed);
      ASSERT_TRUE(receipt.has_value()) << to_string(receipt.error());
      EXPECT_EQ(receipt->kv, IngestVerdict::stored);
    }
  }
  // The key of the node behind so many actions.
  NodeKey chunk(std::size_t depth) const {
    NodeKey key = spec.root;
    for (std::size_t i = 0; i < depth; ++i) key = node_key(key, actions[i]);
    return key;
  }
  std::uint32_t resume_all(TestBinding& binding) {
    const std::vector<std::string_view> views(actions.begin(), actions.end());
    return binding.resume(views, absorbed).value().matched_chunks;
  }

  const WorldSpec spec = world_spec(kFullRing);
  const std::vector<std::string> actions{"0", "1", "2"};
  TestStore overlapping_store{runtime, overlapped()};
  TestManager overlapping{runtime, overlapping_store, {}};
};

TEST_F(OverlapSessionTest, AResumeRestoresTheColdRing) {
  TestEngine cold(device, stream, spec);
  TestEngine warm(device, stream, spec);
  const auto writer = bind(cold);
  write(cold, *writer);
  const auto reader = bind(warm);
  EXPECT_EQ(resume_all(*reader), 3U);
  EXPECT_EQ(warm.contents(), cold.contents());
  EXPECT_EQ(device.event_count(), 0U);
  EXPECT_TRUE(nothing_open());
}

TEST_F(OverlapSessionTest, TheWindowIsLookedForOnlyWhenAllLatentsHaveArrivedInOneGet) {
  TestEngine cold(device, stream, spec);
  TestEngine warm(device, stream, spec);
  const auto writer = bind(cold);
  write(cold, *writer);
  const auto reader = bind(warm);
  EXPECT_CALL(cuda, event_synchronize).Times(testing::AnyNumber());  // and those behind what is told below
  EXPECT_CALL(fluxon, release_views).Times(testing::AnyNumber());
  const InSequence order;
  EXPECT_CALL(fluxon, get_start(SizeIs(3), _, _));
  EXPECT_CALL(cuda, copy_batch(_, SizeIs(3), _));
  EXPECT_CALL(cuda, event_synchronize);
  EXPECT_CALL(fluxon, release_views);
  EXPECT_CALL(fluxon, get_start(SizeIs(4), _, _)).Times(3);
  EXPECT_CALL(cuda, copy_batch(_, SizeIs(4), _)).Times(2);
  EXPECT_CALL(cuda, event_synchronize);
  EXPECT_CALL(cuda, copy_batch(_, SizeIs(4), _));
  EXPECT_EQ(resume_all(*reader), 3U);
}

TEST_F(OverlapSessionTest, BesideTheEngineCopiesWaitForItAndItForThem) {
  const StreamRef copies = *device.create_stream();
  {
    BesideEngine cold(device, stream, copies, spec);
    BesideEngine warm(device, stream, copies, spec);
    const auto writer = bind(cold);
    EXPECT_CALL(cuda, stream_wait(copies, _)).Times(6);  // a latent and values, three times
    EXPECT_CALL(cuda, copy_batch(_, _, copies)).Times(6);
    write(cold, *writer);
    EXPECT_EQ(cold.followed, 6U);
    testing::Mock::VerifyAndClearExpectations(&cuda);
    cuda.delegate_to(device);
    EXPECT_CALL(cuda, stream_wait(copies, _)).Times(2);  // latents, window
    const auto reader = bind(warm);
    EXPECT_EQ(resume_all(*reader), 3U);
    EXPECT_EQ(warm.followed, 4U);  // all latents, and each of three chunks
    EXPECT_EQ(warm.contents(), cold.contents());
  }
  EXPECT_EQ(device.event_count(), 0U);
}

TEST_F(OverlapSessionTest, AWindowThatVanishesHalfReadIsToldToBeEmptyAndAShorterOneIsTried) {
  TestEngine cold(device, stream, spec);
  TestEngine warm(device, stream, spec);
  const auto writer = bind(cold);
  write(cold, *writer);
  settle();
  const auto reader = bind(warm);
  int transfers = 0;
  EXPECT_CALL(fluxon, get_transfer).WillRepeatedly(Invoke([&](GetHandle handle, std::uint64_t keys) {
    if (++transfers == 4) {
      // The last chunk of the window: its handle is consumed, and it is gone.
      EXPECT_TRUE(owner.cancel_get_transfer(handle).has_value());
      settle();
      EXPECT_TRUE(owner.evict(kv_locator(chunk(3)) + ":L0:k"));
      return Result<PlanPtr>(fluxon_error(FluxonErrc::key_not_found, "get_transfer"));
    }
    return owner.get_transfer(handle, keys);
  }));
  EXPECT_EQ(resume_all(*reader), 2U);
  EXPECT_THAT(warm.published, testing::ElementsAre("indices 0 0", "indices 4 4", "latents 2", "forward 2 draws 6"));
  EXPECT_TRUE(nothing_open());
}

}  // namespace
}  // namespace holdfast
