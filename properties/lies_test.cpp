// Lies of the runtimes: each is told above an owner that did what it should, and every one that can be told from the
// truth ends in an error that names it.
#include "holdfast/sim/lies.hpp"

#include <functional>
#include <limits>
#include <set>

#include "holdfast/core/answers.hpp"
#include "holdfast/core/plan_blob.hpp"
#include "holdfast/sim/executor.hpp"
#include "holdfast/sim/generator.hpp"
#include "layer_chain.hpp"

namespace holdfast::sim {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

FaultPoint lie_at(Call call, Lie lie, std::uint64_t arg = 0) {
  return {.call = call, .kind = FaultKind::lie, .code = static_cast<std::int32_t>(lie), .arg = arg};
}

class LiesTest : public LayerChain {
 protected:
  FluxonBackend& calls() { return injector.fluxon(); }

  // What the core makes of a plan that is lied about.
  Result<std::vector<std::uintptr_t>> decoded(PlanSide side, PlanPtr plan, std::size_t count) {
    const std::vector<std::uint64_t> bytes(count, kValueBytes);
    const std::vector<Segment> live{owner.segment()};
    return decode_plan_blob({plan, side, bytes, live});
  }
  PlanPtr put_plan(const Names& keys) { return calls().local_fast_put_start(keys, kValueBytes, {}).value(); }
  PlanPtr read_plan(const Names& keys) {
    const GetStart start = calls().get_start(keys, true, {}).value();
    return calls().get_transfer(start.handle, keys.size()).value();
  }
  void store(const Names& keys) {
    ASSERT_TRUE(calls().local_fast_put_commit(put_plan(keys))->wait(kSecond));
    pass(kSecond);
  }
};

std::vector<Lie> plan_lies() {
  std::vector<Lie> lies;
  for (const LegalLie& lie : legal_lies()) {
    if (lie.call == Call::local_fast_put_start && lie.lie != Lie::unheard_of_error) lies.push_back(lie.lie);
  }
  return lies;
}

TEST(LieTable, HasNoCellTwiceAndSaysWhatIsToldOfEach) {
  std::set<std::pair<Call, Lie>> seen;
  for (const LegalLie& lie : legal_lies()) {
    EXPECT_TRUE(seen.emplace(lie.call, lie.lie).second) << lie.note;
    EXPECT_EQ(find_lie(lie.call, static_cast<std::int32_t>(lie.lie)), &lie);
    EXPECT_EQ(lie.code == 0, lie.told_as.empty()) << lie.note;
    EXPECT_FALSE(lie.note.empty());
    EXPECT_FALSE(is_legal(lie.call, FaultKind::lie, static_cast<std::int32_t>(lie.lie)));
  }
  EXPECT_EQ(find_lie(Call::remove, static_cast<std::int32_t>(Lie::bad_magic)), nullptr);
}

TEST_F(LiesTest, EveryLieAboutAPutPlanIsRefusedWhereverItStrikes) {
  for (const Lie lie : plan_lies()) {
    for (std::uint64_t arg = 0; arg < 12; ++arg) {
      inject({lie_at(Call::local_fast_put_start, lie, arg)});
      const PlanPtr plan = put_plan({"a", "b", "c"});
      const auto addresses = decoded(PlanSide::write, plan, 3);
      ASSERT_FALSE(addresses) << static_cast<int>(lie) << " " << arg;
      EXPECT_TRUE(addresses.error().is(Errc::bad_plan_blob));
      ASSERT_THAT(injector.fired(), SizeIs(1));
      EXPECT_EQ(injector.fired().front().told_as, "decode_plan_blob");
      owner.restart();  // it kept its side of the plan, whatever was said of it
      ASSERT_TRUE(owner.wait_local_segments_ready());
      static_cast<void>(owner.local_fast_put_start(Names{"x"}, kValueBytes, {}));
    }
  }
}

TEST_F(LiesTest, EveryLieAboutAReadPlanIsRefused) {
  inject({});
  store({"a", "b", "c"});
  for (const Lie lie : plan_lies()) {
    inject({lie_at(Call::get_transfer, lie, 1)});
    const auto addresses = decoded(PlanSide::read, read_plan({"a", "b", "c"}), 3);
    ASSERT_FALSE(addresses) << static_cast<int>(lie);
    EXPECT_TRUE(addresses.error().is(Errc::bad_plan_blob));
  }
}

TEST_F(LiesTest, ALieThatCannotBeToldIsNotCounted) {
  inject({lie_at(Call::local_fast_put_start, Lie::doubled_address)});
  const PlanPtr plan = put_plan({"alone"});
  EXPECT_TRUE(decoded(PlanSide::write, plan, 1));
  EXPECT_THAT(injector.fired(), IsEmpty());
}

TEST_F(LiesTest, LiesAboutSegmentsAreRefused) {
  for (const Lie lie : {Lie::no_segment, Lie::null_segment, Lie::empty_segment, Lie::endless_segment}) {
    for (const std::uint64_t arg : {0U, 1U}) {
      inject({lie_at(Call::wait_local_segments_ready, lie, arg)});
      const auto segments = calls().wait_local_segments_ready();
      ASSERT_TRUE(segments);
      EXPECT_FALSE(check_segments(*segments)) << static_cast<int>(lie);
    }
  }
}

TEST_F(LiesTest, LiesAboutCountsAreRefused) {
  inject({});
  store({"a", "b"});
  for (const Lie lie : {Lie::counts_past_the_keys, Lie::contradictory_counts}) {
    for (const std::uint64_t arg : {0U, 1U, 2U, 3U}) {
      inject({lie_at(Call::get_start, lie, arg)});
      const auto start = calls().get_start(Names{"a", "b"}, true, {});
      ASSERT_TRUE(start);
      EXPECT_FALSE(check_get_start(*start, 2, 1)) << static_cast<int>(lie) << " " << arg;
    }
  }
}

TEST_F(LiesTest, ListsOfCodesHaveAnotherLength) {
  for (const Lie lie : {Lie::too_few_codes, Lie::too_many_codes, Lie::no_codes}) {
    inject({lie_at(Call::commit_wait, lie)});
    const auto codes = calls()
                           .local_fast_put_commit(put_plan({"a" + std::to_string(static_cast<int>(lie)),
                                                            "b" + std::to_string(static_cast<int>(lie))}))
                           ->wait(kSecond);
    ASSERT_TRUE(codes);
    EXPECT_NE(codes->size(), 2U);
    EXPECT_THAT(injector.fired(), SizeIs(1));
  }
}

TEST_F(LiesTest, AKeyMayBeStoredLongAfterTheSettleBound) {
  inject({lie_at(Call::commit_wait, Lie::stored_without_bound, 7)});
  const auto codes = calls().local_fast_put_commit(put_plan({"a", "b", "c", "d"}))->wait(kSecond);
  ASSERT_TRUE(codes);
  EXPECT_THAT(*codes, testing::Each(static_cast<std::int32_t>(CommitCode::timeout)));
  pass(kSettleBound + kSecond);
  const std::uint64_t within = owner.stored_keys();
  pass(kWithoutBound);
  EXPECT_LT(within, owner.stored_keys());
  EXPECT_EQ(owner.stored_keys(), 4U);
}

TEST_F(LiesTest, ARemovalThatIsSaidToBeDoneLeavesTheKey) {
  inject({});
  store({"a"});
  inject({lie_at(Call::remove, Lie::not_done)});
  EXPECT_TRUE(calls().remove("a"));
  EXPECT_TRUE(owner.peek("a"));
}

TEST_F(LiesTest, NoLieOutlivesItsStep) {
  inject({lie_at(Call::wait_local_segments_ready, Lie::no_segment),
          {.call = Call::wait_local_segments_ready, .kind = FaultKind::death}});
  static_cast<void>(calls().wait_local_segments_ready());
  injector.new_incarnation();
  inject({});
  const auto segments = calls().wait_local_segments_ready();
  ASSERT_TRUE(segments);
  EXPECT_TRUE(check_segments(*segments));
}

TEST(HostileProfile, ItsTracesLieAndAreValid) {
  const Profile& profile = *profile_named("hostile");
  int hostile = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Trace trace = generate(seed, profile);
    const Status valid = validate_trace(trace);
    ASSERT_TRUE(valid) << seed << ": " << to_string(valid.error());
    hostile += is_hostile(trace) ? 1 : 0;
  }
  EXPECT_GT(hostile, 190);
  EXPECT_FALSE(is_hostile(generate(1, *profile_named("default"))));
}

// Each lie of the table in a step that makes its call, over a store that has something to lose.
TEST(HostileProfile, NoLieBreaksAPromise) {
  const Profile& calm = *profile_named("calm");
  Executor executor(make_production_system);
  std::uint64_t fired = 0;
  for (const LegalLie& lie : legal_lies()) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      Trace trace = generate(seed, calm);
      trace.in_memory_store = false;
      for (const Step& step : trace.steps) {
        FaultPoint point = lie_at(lie.call, lie.lie, seed);
        point.step = step.id;
        trace.faults.push_back(point);
      }
      ASSERT_TRUE(validate_trace(trace));
      const RunResult result = executor.run(trace);
      fired += result.faults.fired[static_cast<std::size_t>(lie.call)][static_cast<std::size_t>(FaultKind::lie)];
      EXPECT_THAT(result.violations, IsEmpty())
          << lie.note << " of " << name_of(lie.call) << ", seed " << seed << ": " << result.violations.front().message;
    }
  }
  EXPECT_GT(fired, 500U);
}

}  // namespace
}  // namespace holdfast::sim
