#include "holdfast/sim/executor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "holdfast/sim/cold_ring.hpp"

namespace holdfast::sim {
namespace {

using Bytes = std::vector<std::byte>;

// What may be wrong with the store below. None of it by default.
struct Bugs {
  bool flips_a_byte = false;
  bool swaps_frames = false;
  bool forgets_the_world = false;
  bool burns_too_few_draws = false;
  bool publishes_before_it_fails = false;
  bool swallows_errors = false;
  bool keeps_a_reference = false;
  bool refuses_late_puts = false;
  bool restores_other_bytes = false;
  bool skips_syncs = false;
  bool claims_after_a_refused_snapshot = false;
  bool refuses_what_it_saved = false;
  bool serves_what_it_withdrew = false;
  bool resumes_whole_paths_only = false;
  bool stores_nothing_evicted_again = false;
  bool makes_no_room = false;
};

constexpr std::uint64_t kMuch = 1 << 20;

std::byte* at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

// What survives a client's death: the host's memory, in this store.
struct HostMemory {
  struct Value {
    std::vector<Bytes> kv;  // of each ring tensor
    Bytes latent;
    std::uint32_t n_layers = 0;
    std::uint64_t bytes = 0;
  };
  std::map<std::string, Value> values;
};

// A store that keeps copies in host memory and makes hardly a runtime call: nothing can go wrong but what it is told to
// do wrong.
class PlainStore final : public SystemUnderTest {
 public:
  PlainStore(Ports& ports, ClaimListener& claims, const Bugs& bugs, HostMemory& host)
      : ports_(ports), claims_(claims), bugs_(bugs), host_(host) {}

  Status restore() override {
    const Result<std::string> text = ports_.files.read("snapshot", 1 << 20);
    if (!text) {
      if (text.error().code == ENOENT || bugs_.swallows_errors) return {};
      if (bugs_.claims_after_a_refused_snapshot && !host_.values.empty()) claim(host_.values.begin()->first);
      return make_error(Errc::file_failed, "restore", "", text.error());
    }
    if (bugs_.refuses_what_it_saved) return make_error(Errc::bad_snapshot, "restore", "");
    std::size_t begin = 0;
    while (begin < text->size()) {
      const std::size_t end = text->find('\n', begin);
      claim(text->substr(begin, end - begin));
      begin = end + 1;
    }
    if (bugs_.restores_other_bytes) {
      for (auto& [name, value] : host_.values) value.kv[0][0] ^= std::byte{1};
    }
    return {};
  }
  Status open_session(SessionId id, const SessionSpec& spec, Engine& engine) override {
    sessions_[id] = {spec, &engine, 0};
    return {};
  }
  Status close_session(SessionId id) override {
    sessions_.erase(id);
    return {};
  }
  Result<ResumeOutcome> resume(SessionId id) override {
    Session& session = sessions_.at(id);
    Engine& engine = *session.engine;
    const Geometry& geometry = session.spec.geometry;
    ResumeOutcome outcome;
    while (outcome.matched_chunks < session.spec.actions.size() &&
           ready_.contains(name_of(session, outcome.matched_chunks))) {
      ++outcome.matched_chunks;
    }
    if (bugs_.resumes_whole_paths_only && outcome.matched_chunks < session.spec.actions.size()) return {};
    if (outcome.matched_chunks == 0) return outcome;
    const std::uint32_t chunks = outcome.matched_chunks;
    ColdRing ring;
    ring.configure(geometry);
    for (std::uint32_t i = 0; i < chunks; ++i) ring.append_chunk();
    const std::vector<DeviceTensor> tensors = engine.ring();
    for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
      const std::uint64_t bytes = tensors[tensor].bytes / geometry.ring_frames;
      for (std::size_t position = 0; position < ring.size(); ++position) {
        const std::uint64_t frame = ring[bugs_.swaps_frames ? ring.size() - 1 - position : position];
        const Bytes& value =
            host_.values.at(name_of(session, static_cast<std::uint32_t>(frame / geometry.frames_per_chunk))).kv[tensor];
        std::memcpy(at(tensors[tensor].data) + position * bytes,
                    value.data() + (frame % geometry.frames_per_chunk) * bytes, bytes);
      }
    }
    if (bugs_.flips_a_byte) at(tensors.back().data)[3] ^= std::byte{1};
    const auto targets = engine.latent_targets(chunks);
    for (std::uint32_t i = 0; i < targets->size(); ++i) {
      const Bytes& latent = host_.values.at(name_of(session, i)).latent;
      std::memcpy(at((*targets)[i].data), latent.data(), latent.size());
    }
    engine.publish_kv_indices({ring.size() * geometry.frame_tokens, ring.frames_seen() * geometry.frame_tokens});
    if (bugs_.publishes_before_it_fails) {
      engine.publish_kv_indices({0, 0});
      return make_error(Errc::get_failed, "resume");
    }
    engine.publish_latents(chunks);
    const std::uint64_t draws = static_cast<std::uint64_t>(chunks) * (geometry.timesteps - 1);
    engine.fast_forward(chunks, bugs_.burns_too_few_draws ? draws - 1 : draws);
    session.next = chunks;
    return outcome;
  }
  Result<IngestOutcome> chunk_finalized(SessionId id) override {
    Session& session = sessions_.at(id);
    const Geometry& geometry = session.spec.geometry;
    const std::string name = name_of(session, session.next++);
    if (ready_.contains(name)) return IngestOutcome{IngestResult::already_ready, IngestResult::already_ready, {}};
    if (evicted_.contains(name) && bugs_.stores_nothing_evicted_again) {
      return IngestOutcome{IngestResult::elsewhere, IngestResult::already_ready, {}};
    }
    if (bugs_.refuses_late_puts && ports_.clock.now_ns() > kMinute) return IngestOutcome{};
    HostMemory::Value value;
    value.n_layers = geometry.n_layers;
    const std::uint64_t end_frame = session.engine->indices().local_end_tokens / geometry.frame_tokens;
    for (const DeviceTensor& tensor : session.engine->ring()) {
      const std::uint64_t bytes = tensor.bytes / geometry.ring_frames;
      const std::byte* end = at(tensor.data) + end_frame * bytes;
      value.kv.emplace_back(end - bytes * geometry.frames_per_chunk, end);
      value.bytes += value.kv.back().size();
    }
    const DeviceTensor latent = session.engine->finalized_latent();
    value.latent.assign(at(latent.data), at(latent.data) + latent.bytes);
    host_.values[name] = std::move(value);
    claim(name);
    return IngestOutcome{IngestResult::published, IngestResult::published, {}};
  }
  Result<std::uint32_t> hold(SessionId id, std::uint32_t) override {
    const Session& session = sessions_.at(id);
    std::uint32_t matched = 0;
    while (matched < session.spec.actions.size() && ready_.contains(name_of(session, matched))) ++matched;
    return matched;
  }
  void unhold(std::uint32_t) override {}
  Result<EvictOutcome> evict(SessionId id, std::uint32_t depth) override {
    const std::string name = name_of(sessions_.at(id), depth);
    if (!ready_.contains(name)) return EvictOutcome{};
    if (!bugs_.serves_what_it_withdrew) ready_.erase(name);
    evicted_[name] = true;
    claims_.on_withdrawal(Claim::kv, name + ":kv");
    return EvictOutcome{true, host_.values.at(name).bytes, {}};
  }
  Result<EvictOutcome> make_room(std::uint64_t) override { return EvictOutcome{}; }
  Result<WarmUpOutcome> warm_up(const WarmUpGoOn&) override {
    const Result<PointerAttributes> attributes = ports_.cuda.pointer_attributes(4096);
    if (!attributes && !bugs_.swallows_errors) {
      return make_error(Errc::registration_failed, "warm_up", "", attributes.error());
    }
    return WarmUpOutcome();
  }
  PumpOutcome pump() override { return {}; }
  PumpOutcome probe() override { return {}; }
  Status snapshot() override {
    std::string text;
    for (const auto& [name, ready] : ready_) text += name + "\n";
    const auto sync = [&](const char* path) { return bugs_.skips_syncs ? Status{} : ports_.files.sync(path); };
    for (const Status& status :
         {ports_.files.write("new", text), sync("new"), ports_.files.rename("new", "snapshot"), sync(".")}) {
      if (!status && !bugs_.swallows_errors) return make_error(Errc::file_failed, "snapshot", "", status.error());
    }
    return {};
  }
  void device_torn_down() override {}
  Status shut_down() override { return {}; }
  [[nodiscard]] Inspection inspect() const override {
    Inspection inspection;
    inspection.ready_blobs = ready_.size();
    inspection.references = bugs_.keeps_a_reference ? 1 : 0;
    if (bugs_.makes_no_room) inspection.accounted_bytes = kMuch;
    return inspection;
  }

 private:
  struct Session {
    SessionSpec spec;
    Engine* engine = nullptr;
    std::uint32_t next = 0;
  };
  [[nodiscard]] std::string name_of(const Session& session, std::uint32_t depth) const {
    std::string name = bugs_.forgets_the_world ? "" : std::to_string(session.spec.world) + ":";
    name += std::to_string(session.spec.declared_geometry.ring_frames) + ":";
    for (std::uint32_t i = 0; i <= depth; ++i) name += session.spec.actions[i] + ",";
    return name;
  }
  void claim(const std::string& name) {
    const auto found = host_.values.find(name);
    if (found == host_.values.end()) return;
    ready_[name] = true;
    claims_.on_claim(Claim::latent, name + ":lat", {}, found->second.latent.size());
    claims_.on_claim(Claim::kv, name + ":kv", ChunkShape{found->second.n_layers}, found->second.bytes);
  }

  Ports& ports_;
  ClaimListener& claims_;
  Bugs bugs_;
  HostMemory& host_;
  std::map<SessionId, Session> sessions_;
  std::map<std::string, bool> ready_;
  std::map<std::string, bool> evicted_;
};

class ExecutorTest : public testing::Test {
 protected:
  ExecutorTest() {
    Geometry geometry;
    geometry.n_layers = 2;
    geometry.frames_per_chunk = 3;
    geometry.frame_tokens = 2;
    geometry.ring_frames = 7;
    geometry.sink_frames = 3;
    geometry.full_length = false;
    geometry.kv_token_bytes = {64, 32};
    geometry.latent_bytes = 96;
    geometry.timesteps = 3;
    trace_.in_memory_store = true;
    trace_.geometries = {geometry};
    trace_.seed = 1;
  }
  std::uint32_t add(StepKind kind, std::uint32_t of = 0, std::uint64_t amount = 0) {
    Step step;
    step.id = static_cast<std::uint32_t>(trace_.steps.size() + 1);
    step.kind = kind;
    step.of = of;
    step.amount = amount;
    trace_.steps.push_back(step);
    return step.id;
  }
  std::uint32_t open(std::vector<std::string> actions, std::uint32_t world = 1) {
    const std::uint32_t id = add(StepKind::open);
    trace_.steps.back().actions = std::move(actions);
    trace_.steps.back().world = world;
    return id;
  }
  // A session that resumes what it can and generates the rest.
  std::uint32_t play(const std::vector<std::string>& actions, std::uint32_t world = 1) {
    const std::uint32_t id = open(actions, world);
    add(StepKind::resume, id);
    for (std::size_t i = 0; i < actions.size(); ++i) add(StepKind::generate, id);
    add(StepKind::close, id);
    return id;
  }
  void fault(std::uint32_t step, Call call, FaultKind kind, std::int32_t code) {
    trace_.faults.push_back({step, call, 0, kind, code, 0, false});
  }
  RunResult run(const Bugs& bugs = {}, RunOptions options = {}) {
    options.keep_log = true;
    return executor(bugs).run(trace_, options);
  }
  Executor& executor(const Bugs& bugs = {}) {
    host_.values.clear();
    executor_ = std::make_unique<Executor>([this, bugs](Ports& ports, ClaimListener& claims, const SystemOptions&) {
      return std::make_unique<PlainStore>(ports, claims, bugs, host_);
    });
    return *executor_;
  }
  // Every violation is of this kind, and there is one.
  static void expect_only(const RunResult& result, std::vector<Invariant> invariants) {
    EXPECT_FALSE(result.violations.empty());
    for (const Violation& violation : result.violations) {
      EXPECT_NE(std::find(invariants.begin(), invariants.end(), violation.invariant), invariants.end())
          << name_of(violation.invariant) << ": " << violation.message;
    }
    for (const Invariant invariant : invariants) {
      EXPECT_TRUE(std::any_of(result.violations.begin(), result.violations.end(), [&](const Violation& violation) {
        return violation.invariant == invariant;
      })) << name_of(invariant);
    }
  }
  static std::uint64_t checked(const RunResult& result, Invariant invariant) {
    return result.checked[static_cast<std::size_t>(invariant)];
  }
  static std::uint64_t reached(const RunResult& result, Mark mark) {
    return result.marks.counts[static_cast<std::size_t>(mark)];
  }
  static void expect_held(const RunResult& result) {
    for (const Violation& violation : result.violations) {
      ADD_FAILURE() << name_of(violation.invariant) << " at step " << violation.step << ": " << violation.message;
    }
  }

  Trace trace_;
  HostMemory host_;
  std::unique_ptr<Executor> executor_;
};

TEST_F(ExecutorTest, TheAcceptanceScenarioHits) {
  play({"0", "1", "2"});
  play({"0", "1", "2"});
  play({"0", "1", "5"});
  const RunResult result = run();
  expect_held(result);
  ASSERT_EQ(result.frame_hashes.size(), 5U) << "three sessions and phase two's";
  EXPECT_EQ(result.frame_hashes[0].size(), 37U);
  EXPECT_EQ(result.frame_hashes[0], result.frame_hashes[1]);
  EXPECT_TRUE(
      std::equal(result.frame_hashes[0].begin(), result.frame_hashes[0].begin() + 25, result.frame_hashes[2].begin()));
  EXPECT_NE(result.frame_hashes[0].back(), result.frame_hashes[2].back());
  EXPECT_EQ(result.chunks_hit, 3U + 2);
  EXPECT_EQ(result.chunks_generated, 3U + 1);
  EXPECT_EQ(result.session_chunks_hit, (std::vector<std::uint64_t>{0, 3, 2, 0, 2}));
  EXPECT_GT(reached(result, Mark::full_hit), 0U);
  EXPECT_GT(reached(result, Mark::fork_resumed), 0U);
  EXPECT_GT(reached(result, Mark::ring_just_rolled), 0U);
  EXPECT_GT(checked(result, Invariant::exact_bytes), 0U);
}

TEST_F(ExecutorTest, ResumesAgreeWithTheColdRunAtEveryLength) {
  play({"0", "1", "2", "3", "4", "5"});
  for (std::size_t length = 1; length <= 6; ++length) {
    std::vector<std::string> actions{"0", "1", "2", "3", "4", "5"};
    for (std::size_t i = length; i < 6; ++i) actions[i] = "9";
    play(actions);
  }
  expect_held(run());
}

TEST_F(ExecutorTest, AWrongByteBreaksExactBytes) {
  play({"0", "1", "2"});
  play({"0", "1", "3"});
  expect_only(run({.flips_a_byte = true}), {Invariant::exact_bytes});
}

TEST_F(ExecutorTest, ACheckThatIsSwitchedOffNeitherCountsNorTrips) {
  play({"0", "1", "2"});
  play({"0", "1", "3"});
  RunOptions options;
  options.disabled = {Invariant::exact_bytes};
  const RunResult result = run({.burns_too_few_draws = true}, options);
  expect_held(result);
  EXPECT_EQ(checked(result, Invariant::exact_bytes), 0U);
}

TEST_F(ExecutorTest, FramesInAnotherOrderBreakWholeWindow) {
  play({"0", "1", "2"});
  play({"0", "1", "3"});
  expect_only(run({.swaps_frames = true}), {Invariant::whole_window});
}

TEST_F(ExecutorTest, AnotherWorldsBytesBreakIsolation) {
  play({"0", "1"}, 1);
  play({"0", "1"}, 2);
  expect_only(run({.forgets_the_world = true}), {Invariant::namespace_isolation});
}

TEST_F(ExecutorTest, TooFewDrawsBreakExactBytes) {
  play({"0", "1", "2"});
  play({"0", "1", "3"});
  expect_only(run({.burns_too_few_draws = true}), {Invariant::exact_bytes});
}

TEST_F(ExecutorTest, PublishingBeforeAFailureBreaksNoPublishOnFailure) {
  play({"0", "1", "2"});
  play({"0", "1", "3"});
  const RunResult result = run({.publishes_before_it_fails = true});
  EXPECT_EQ(result.violations.front().invariant, Invariant::no_publish_on_failure);
  EXPECT_GT(reached(result, Mark::ring_failed_after_latents), 0U);
}

TEST_F(ExecutorTest, ASwallowedErrorBreaksErrorTold) {
  fault(add(StepKind::snapshot), Call::file_sync, FaultKind::before, EIO);
  const RunResult told = run();
  expect_held(told);
  EXPECT_EQ(checked(told, Invariant::error_told), 1U);
  EXPECT_EQ(told.faults.total, 1U);
  const RunResult swallowed = run({.swallows_errors = true});
  expect_only(swallowed, {Invariant::error_told});
  EXPECT_NE(swallowed.violations[0].message.find("before file_sync 0 of step 1 (5)"), std::string::npos)
      << swallowed.violations[0].message;
}

TEST_F(ExecutorTest, WhatIsLeftAfterTheDrainBreaksTheBaseline) {
  play({"0"});
  expect_only(run({.keeps_a_reference = true}), {Invariant::quiescent_baseline});
  expect_only(run({.refuses_late_puts = true}), {Invariant::quiescent_baseline});
}

TEST_F(ExecutorTest, APathThatCannotBeResumedAgainBreaksTheBaseline) {
  play({"0", "1"});
  expect_only(run({.resumes_whole_paths_only = true}), {Invariant::quiescent_baseline});
}

TEST_F(ExecutorTest, AChunkThatCannotBeStoredAgainBreaksTheBaseline) {
  const std::uint32_t session = open({"0", "1"});
  for (int i = 0; i < 2; ++i) add(StepKind::generate, session);
  add(StepKind::evict, session);
  trace_.steps.back().depth = 1;
  expect_held(run());
  expect_only(run({.stores_nothing_evicted_again = true}), {Invariant::quiescent_baseline});
}

TEST_F(ExecutorTest, NoRoomAlthoughNothingIsInUseBreaksTheBaseline) {
  trace_.capacity_bytes = kMuch;
  play({"0"});
  expect_held(run());
  expect_only(run({.makes_no_room = true}), {Invariant::quiescent_baseline});
}

TEST_F(ExecutorTest, AResumeOfWhatWasWithdrawnBreaksWholeWindow) {
  const std::uint32_t session = open({"0", "1", "2"});
  for (int i = 0; i < 3; ++i) add(StepKind::generate, session);
  add(StepKind::evict, session);
  trace_.steps.back().depth = 1;
  add(StepKind::resume, open({"0", "1", "2"}));
  expect_held(run());
  const RunResult result = run({.serves_what_it_withdrew = true});
  EXPECT_TRUE(std::any_of(result.violations.begin(), result.violations.end(),
                          [](const Violation& violation) { return violation.invariant == Invariant::whole_window; }));
}

TEST_F(ExecutorTest, ARestartResumesWhatTheSnapshotKnew) {
  play({"0", "1", "2"});
  add(StepKind::snapshot);
  play({"0", "7"});
  add(StepKind::restart);
  play({"0", "1", "2"});
  play({"0", "7"});
  const RunResult result = run();
  expect_held(result);
  EXPECT_GT(reached(result, Mark::restart_resumed_warm), 0U);
  EXPECT_GT(checked(result, Invariant::restart_safe), 0U);
  EXPECT_EQ(result.frame_hashes[0], result.frame_hashes[2]);
}

TEST_F(ExecutorTest, WrongBytesAfterARestartBreakRestartSafe) {
  play({"0", "1", "2"});
  add(StepKind::snapshot);
  add(StepKind::restart);
  play({"0", "1", "3"});
  expect_only(run({.restores_other_bytes = true}), {Invariant::exact_bytes, Invariant::restart_safe});
}

TEST_F(ExecutorTest, ARefusedSnapshotLeavesAnEmptyStore) {
  play({"0"});
  add(StepKind::snapshot);
  fault(add(StepKind::restart), Call::file_read, FaultKind::before, EIO);
  expect_held(run());
  const RunResult result = run({.claims_after_a_refused_snapshot = true});
  EXPECT_EQ(result.violations.front().invariant, Invariant::no_publish_on_failure);
}

TEST_F(ExecutorTest, RefusingWhatWasSavedBreaksRestartSafe) {
  play({"0"});
  add(StepKind::snapshot);
  add(StepKind::restart);
  expect_only(run({.refuses_what_it_saved = true}), {Invariant::restart_safe});
}

TEST_F(ExecutorTest, ClaimsOfMoreThanTheCapacityBreakItsBound) {
  play({"0", "1"});
  const auto tells = [&] {
    const RunResult result = run();
    return std::any_of(result.violations.begin(), result.violations.end(), [](const Violation& violation) {
      return violation.invariant == Invariant::capacity_bound && violation.culprits == "drain: more than the capacity";
    });
  };
  trace_.capacity_bytes = kMuch;
  EXPECT_FALSE(tells());
  trace_.capacity_bytes = kSlotAlignment;
  EXPECT_TRUE(tells());
}

TEST_F(ExecutorTest, ACrashLosesWhatWasNotSynced) {
  play({"0", "1"});
  add(StepKind::snapshot);
  add(StepKind::restart);
  play({"0", "1"});
  std::uint64_t synced = 0;
  std::uint64_t unsynced = 0;
  for (trace_.seed = 1; trace_.seed <= 8; ++trace_.seed) {
    const RunResult with = run();
    const RunResult without = run({.skips_syncs = true});
    expect_held(with);
    expect_held(without);
    synced += with.chunks_hit;
    unsynced += without.chunks_hit;
  }
  EXPECT_EQ(synced, 8U * 2);
  EXPECT_LT(unsynced, synced);
}

TEST_F(ExecutorTest, DeathAtACallIsSurvived) {
  play({"0", "1"});
  add(StepKind::snapshot);
  const std::uint32_t second = open({"0", "1"});
  fault(add(StepKind::snapshot), Call::file_rename, FaultKind::death, 0);
  add(StepKind::generate, second);
  play({"0", "1"});
  const RunResult result = run();
  expect_held(result);
  EXPECT_EQ(result.steps_skipped, 3U) << "its session is gone, and the last one hits everything";
  EXPECT_GT(reached(result, Mark::death_during_snapshot), 0U);
  EXPECT_GT(reached(result, Mark::restart_resumed_warm), 0U);
}

TEST_F(ExecutorTest, StepsThatMakeNoSenseAreSkippedAndCounted) {
  add(StepKind::generate, 99);
  add(StepKind::unhold, 98);
  const std::uint32_t session = open({"0"});
  add(StepKind::generate, session);
  add(StepKind::generate, session);
  add(StepKind::resume, session);
  add(StepKind::evict, session);
  trace_.steps.back().depth = 4;
  const RunResult result = run();
  expect_held(result);
  EXPECT_EQ(result.steps, 2U);
  EXPECT_EQ(result.steps_skipped, 5U);
}

TEST_F(ExecutorTest, AMistakeThatNoRecordCouldTellIsSkipped) {
  trace_.geometries.push_back(trace_.geometries[0]);
  trace_.geometries[1].ring_frames = 9;
  trace_.geometries.push_back(trace_.geometries[0]);
  trace_.geometries[2].n_layers = 1;
  open({"0"});
  trace_.steps.back().declared_geometry = 1;
  open({"0"});
  trace_.steps.back().declared_geometry = 2;
  const RunResult result = run();
  EXPECT_EQ(result.steps_skipped, 1U);
}

TEST_F(ExecutorTest, AMistakeThatItsBlobsWouldNotTellMayReadButNotWrite) {
  trace_.geometries.push_back(trace_.geometries[0]);
  trace_.geometries[1].latent_bytes += 16;
  const std::uint32_t session = open({"0"});
  trace_.steps.back().geometry = 1;
  add(StepKind::resume, session);
  add(StepKind::generate, session);
  const RunResult result = run();
  expect_held(result);
  EXPECT_EQ(result.steps_skipped, 1U);
}

TEST_F(ExecutorTest, RunsAreTheSameInOneExecutorAndUnderPerturbation) {
  play({"0", "1", "2"});
  add(StepKind::snapshot);
  add(StepKind::restart);
  play({"0", "1", "4"});
  Executor& same = executor();
  const RunResult first = same.run(trace_, {});
  host_.values.clear();
  const RunResult second = same.run(trace_, {});
  host_.values.clear();
  Executor other([this](Ports& ports, ClaimListener& claims,
                        const SystemOptions&) { return std::make_unique<PlainStore>(ports, claims, Bugs{}, host_); },
                 {.arena_shift_pages = 17, .hash_seed = 99, .heap_fill = 0x5C, .other_locale = true});
  const RunResult third = other.run(trace_, {});
  EXPECT_EQ(first.log_hash, second.log_hash);
  EXPECT_EQ(first.log_hash, third.log_hash);
  EXPECT_EQ(first.frame_hashes, third.frame_hashes);
  trace_.steps.pop_back();
  host_.values.clear();
  EXPECT_NE(same.run(trace_, {}).log_hash, first.log_hash);
}

TEST_F(ExecutorTest, EveryStepIsALineForPeople) {
  play({"0", "1"});
  std::vector<std::string> lines;
  RunOptions options;
  options.on_step = [&](const std::string& line) { lines.push_back(line); };
  expect_held(run({}, options));
  ASSERT_EQ(lines.size(), trace_.steps.size());
  EXPECT_EQ(lines[1], "2 resume of 1: 0 of 2 chunks of world 1 [0,1]");
  EXPECT_EQ(lines[2], "3 generate of 1: world 1 [0], blob published, latent published");
}

}  // namespace
}  // namespace holdfast::sim
