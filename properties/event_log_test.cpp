// The event log: one hash over everything that happened, the same wherever the run is repeated.
#include "holdfast/sim/event_log.hpp"

#include <gtest/gtest.h>

#include <array>

#include "holdfast/sim/log_text.hpp"

namespace holdfast::sim {
namespace {

using Fields = std::vector<std::uint64_t>;

void call(EventLog& log, Nanos at_ns, Call call, std::int32_t code, const Fields& fields) {
  log.call(at_ns, call, code, fields, [] { return std::string("text"); });
}

std::uint64_t hash_after(Nanos at_ns, Call what, std::int32_t code, const Fields& fields) {
  EventLog log;
  call(log, at_ns, what, code, fields);
  return log.hash();
}

TEST(EventLog, TheSameEventsHaveTheSameHashWithAndWithoutText) {
  EventLog silent;
  EventLog kept;
  kept.keep_text(true);
  for (EventLog* log : {&silent, &kept}) {
    call(*log, 5, Call::remove, 4000, {1, 2});
    log->event(6, "claim", Fields{3}, [] { return std::string("kv"); });
  }
  EXPECT_EQ(silent.hash(), kept.hash());
  EXPECT_EQ(silent.events(), 2U);
  EXPECT_TRUE(silent.lines().empty());
  EXPECT_EQ(kept.lines().size(), 2U);
}

TEST(EventLog, TimeCallCodeAndFieldsAllCount) {
  const std::uint64_t hash = hash_after(5, Call::remove, 0, {1, 2});
  EXPECT_NE(hash, hash_after(6, Call::remove, 0, {1, 2}));
  EXPECT_NE(hash, hash_after(5, Call::get, 0, {1, 2}));
  EXPECT_NE(hash, hash_after(5, Call::remove, 4000, {1, 2}));
  EXPECT_NE(hash, hash_after(5, Call::remove, 0, {1, 3}));
  EXPECT_NE(hash, hash_after(5, Call::remove, 0, {2, 1}));
  EXPECT_NE(hash, hash_after(5, Call::remove, 0, {1, 2, 0}));
}

TEST(EventLog, TheOrderOfEventsCounts) {
  EventLog one;
  EventLog other;
  call(one, 5, Call::remove, 0, {});
  call(one, 5, Call::get, 0, {});
  call(other, 5, Call::get, 0, {});
  call(other, 5, Call::remove, 0, {});
  EXPECT_NE(one.hash(), other.hash());
}

TEST(EventLog, AnEventIsNeverTakenForACall) {
  EventLog log;
  log.event(5, name_of(Call::remove), Fields{1}, [] { return std::string(); });
  EXPECT_NE(log.hash(), hash_after(5, Call::remove, 0, {1}));
}

TEST(EventLog, TextIsOnlyAskedForWhenItIsKept) {
  EventLog log;
  bool asked = false;
  log.event(0, "claim", Fields{}, [&] {
    asked = true;
    return std::string();
  });
  EXPECT_FALSE(asked);
}

TEST(EventLog, ALineSaysWhenWhatAndHowItEnded) {
  EventLog log;
  log.keep_text(true);
  log.call(1'500'002, Call::remove, 4000, Fields{}, [] { return std::string("key a"); });
  EXPECT_EQ(log.lines().front(), "         1.500002 ms  remove key a -> 4000");
}

TEST(EventLog, TheHashIsTheSameOnEveryMachine) {
  EXPECT_EQ(hash_after(5, Call::remove, -608, {1, 1ULL << 40}), 7226291508628613868U);
}

TEST(EventLog, AfterAResetItIsAsNew) {
  EventLog log;
  const std::uint64_t empty = log.hash();
  call(log, 5, Call::remove, 0, {1});
  log.reset();
  EXPECT_EQ(log.hash(), empty);
  EXPECT_EQ(log.events(), 0U);
}

// ---- As people read it.

TEST(LogText, TextsAreInOneColumn) {
  EventLog log;
  log.keep_text(true);
  const auto text = [] { return std::string("text"); };
  log.call(5, Call::get, 0, Fields{}, text);
  log.call(kMinute, Call::wait_local_segments_ready, 4000, Fields{}, text);
  log.event(6, "step end", Fields{}, text);
  log.event(6, "drain", Fields{}, [] { return std::string(); });
  std::vector<std::string> shown;
  for (const std::string& line : log.lines()) shown.push_back(log_line_text(line, false));
  ASSERT_EQ(shown.size(), 4U);
  EXPECT_EQ(shown[0], "         0.000005 ms  get                       text");
  EXPECT_EQ(shown[1], "     60000.000000 ms  wait_local_segments_ready text -> 4000");
  EXPECT_EQ(shown[2], "         0.000006 ms  step end                  text");
  EXPECT_EQ(shown[3], "         0.000006 ms  drain");
}

TEST(LogText, ColourTellsStepsFaultsFailuresAndClaimsApart) {
  const auto code_of = [](const std::string& happened) {
    const std::string text = log_line_text("         0.000005 ms  " + happened, true);
    return text.starts_with("\x1b[") ? text.substr(2, text.find('m') - 2) : std::string();
  };
  EXPECT_EQ(code_of("step 1 warm_up"), "1");
  EXPECT_EQ(code_of("fault time of stream_synchronize 1"), "33");
  EXPECT_EQ(code_of("host_register the mapping -> 1"), "31");
  EXPECT_EQ(code_of("claim kv of world 1"), "32");
  EXPECT_EQ(code_of("withdrawal kv of world 1"), "35");
  EXPECT_EQ(code_of("pointer_attributes tensor 5"), "2");
  EXPECT_EQ(code_of("remove key -> value"), "");
  EXPECT_EQ(log_line_text("step \x1b[31m", true), "step \uFFFD[31m");
}

}  // namespace
}  // namespace holdfast::sim
