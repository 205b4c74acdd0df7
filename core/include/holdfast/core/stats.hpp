// What a manager has done, counted and timed stage by stage: a plain value, taken at one instant, that adds up.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "holdfast/core/time.hpp"

namespace holdfast {

// A part of an operation. An operation (a lookup, a put, a read, a probe, an eviction, a pump) counts once in each
// stage that it came to, however often it came back there. No time is in two stages.
enum class Stage : std::uint8_t {
  lookup,      // the longest ready path is looked for, and referenced
  segments,    // the owner's segments are asked for, and registered where they are new
  put_start,   // plans are started and decoded
  put_copy,    // copies to the host are validated and submitted
  put_wait,    // they are waited for
  put_commit,  // plans are committed, and their futures waited for
  put_undo,    // of a put that stores nothing: plans are aborted, and what was stored is taken back
  read_start,  // gets are started, transferred and decoded
  read_copy,   // copies to the device are validated and submitted
  read_wait,   // they are waited for
  read_end,    // handles are cancelled, views released
  probe,       // values are asked for without reading them: after an incomplete read, and before an adoption
  publish,     // what was stored becomes ready; what was restored is told to the engine
  evict,       // a victim's values, or the latents that an idle world has left, are removed
  settle,      // quarantined plans are ended, and removals that are due are made
};
inline constexpr std::size_t kStageCount = 15;
// "put_start".
[[nodiscard]] std::string_view name_of(Stage stage);

struct StageStats {
  std::uint64_t operations = 0;
  std::uint64_t failures = 0;  // of them, those that failed there, refusals included
  Nanos time_ns = 0;

  StageStats& operator+=(const StageStats& other) {
    operations += other.operations;
    failures += other.failures;
    time_ns += other.time_ns;
    return *this;
  }
  friend bool operator==(const StageStats&, const StageStats&) = default;
};

// What has been copied in one direction, and was waited for with success.
struct TransferStats {
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;
  Nanos time_ns = 0;  // of each operation, from its first submission to the end of its last wait

  TransferStats& operator+=(const TransferStats& other);
  friend bool operator==(const TransferStats&, const TransferStats&) = default;
};
// Nothing where no time passed.
[[nodiscard]] std::optional<double> gib_per_second(const TransferStats& transfers);

// The length of a list. Those of several managers add up to what they hold together; the peak is the longest one's.
struct ListLength {
  std::uint64_t now = 0;
  std::uint64_t peak = 0;

  ListLength& operator+=(const ListLength& other);
  friend bool operator==(const ListLength&, const ListLength&) = default;
};

struct Stats {
  std::array<StageStats, kStageCount> stages{};
  TransferStats to_host;
  TransferStats to_device;

  std::uint64_t puts_stored = 0;
  std::uint64_t puts_adopted = 0;
  std::uint64_t puts_elsewhere = 0;  // somebody else's
  std::uint64_t puts_failed = 0;
  std::uint64_t puts_without_room = 0;  // refused before they began
  std::uint64_t reads_restored = 0;
  std::uint64_t reads_incomplete = 0;
  std::uint64_t reads_corrupt = 0;
  std::uint64_t reads_failed = 0;
  std::uint64_t hit_chunks = 0;  // of resumes
  std::uint64_t evicted_blobs = 0;
  std::uint64_t evicted_bytes = 0;      // of slots
  std::uint64_t withdrawn_blobs = 0;    // absent from the store, or corrupt
  std::uint64_t withdrawn_latents = 0;  // likewise
  std::uint64_t settled_keys = 0;       // unsettled before

  // At the instant they were asked for; 0 in what one operation adds.
  ListLength unsettled_keys;
  ListLength quarantined_plans;
  std::uint64_t accounted_bytes = 0;  // see ManagerCounts

  [[nodiscard]] StageStats& at(Stage stage) { return stages[static_cast<std::size_t>(stage)]; }
  [[nodiscard]] const StageStats& at(Stage stage) const { return stages[static_cast<std::size_t>(stage)]; }
  // Where this is what one operation has spent so far: it came to the stage, perhaps again.
  void spend(Stage stage, Nanos time_ns, bool failed) {
    StageStats& stats = at(stage);
    stats.operations = 1;
    if (failed) stats.failures = 1;
    stats.time_ns += time_ns;
  }

  Stats& operator+=(const Stats& other);
  friend bool operator==(const Stats&, const Stats&) = default;
};

// The plain counters, in a fixed order.
struct Counter {
  std::string_view name;
  std::uint64_t Stats::* value;
  // How metrics tell it: of those with one metric, each has an outcome.
  std::string_view metric;
  std::string_view outcome;
  std::string_view help;
};
[[nodiscard]] std::span<const Counter> counters();

// An operation's time in a stage, from here to the end of the scope.
template <Clock C>
class StageTimer {
 public:
  // `spent` is of this operation alone.
  StageTimer(Stats& spent, Stage stage, const C& clock)
      : spent_(spent), clock_(clock), stage_(stage), began_ns_(clock.now_ns()) {}
  ~StageTimer() { spent_.spend(stage_, clock_.now_ns() - began_ns_, failed_); }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

  void fail() { failed_ = true; }

 private:
  Stats& spent_;
  const C& clock_;
  Stage stage_;
  Nanos began_ns_;
  bool failed_ = false;
};

// What `work` gives, its time spent in the stage; failed when it gives an error.
template <Clock C, std::invocable Work>
[[nodiscard]] auto timed(Stats& spent, Stage stage, const C& clock, Work&& work) {
  StageTimer<C> timer(spent, stage, clock);
  auto answer = std::forward<Work>(work)();
  if (!answer.has_value()) timer.fail();
  return answer;
}

// The copies of one operation, batch by batch, as they were seen to have arrived.
class TransferMeter {
 public:
  void arrived(std::uint64_t bytes, Nanos submitted_ns, Nanos landed_ns);
  // One operation's, or none.
  [[nodiscard]] TransferStats total() const;

 private:
  std::uint64_t bytes_ = 0;
  Nanos first_submitted_ns_ = 0;
  Nanos last_landed_ns_ = 0;
};

}  // namespace holdfast
