// The warm-up: waits for the owner's segments, touches their pages and registers their mappings before anything is
// stored, so that no put pays for it.
//
// Stages, in order: waiting (bounded, where there is an executor), unregistering (the turn of others, and what an older
// generation left), touching (the mapping that is written through; the other one shows the same pages), registering (in
// pieces, both mappings; a refused second one is translated). After an error nothing is registered that was not before.
// When another operation has registered the segments already there is nothing to do, and so when it is run twice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/page_touch.hpp"
#include "holdfast/core/registration_watch.hpp"
#include "holdfast/core/task_executor.hpp"
#include "holdfast/core/time.hpp"

namespace holdfast {

enum class WarmUpStage : std::uint8_t { waiting, unregistering, touching, registering };
inline constexpr std::size_t kWarmUpStageCount = 4;
std::string_view to_string(WarmUpStage stage);

// No number goes back, but that the totals are 0 until the segments are known. At the end of a warm-up each is equal to
// its total.
struct WarmUpProgress {
  WarmUpStage stage = WarmUpStage::waiting;
  std::uint64_t touched_bytes = 0;
  std::uint64_t touch_total_bytes = 0;  // of the segments that are new
  std::uint64_t registered_bytes = 0;   // those of a refused second mapping count when they are translated
  std::uint64_t register_total_bytes = 0;
  friend bool operator==(const WarmUpProgress&, const WarmUpProgress&) = default;
};

struct WarmUpOptions {
  // How long the owner may take to have a segment mounted: TimedOut after it. Without an executor the runtime's own
  // call is waited for here, and nobody can leave it: then it takes as long as the runtime lets it.
  Nanos segments_wait_max_ns = 30 * kSecond;
  // Outlives the warm-up and what it submits; see TaskExecutor. None: everything on the caller's thread.
  TaskExecutor* executor = nullptr;
  std::size_t touchers_max = 16;               // tasks that touch at the same time, beside the caller
  std::uint64_t touch_part_bytes = 64U << 20;  // what a task touches at a time
  // How the pages are made to be there: reading them is right for any memory that is mapped, and what the owner answers
  // is believed to be. Whoever knows more of the mapping may give something quicker. Called on the executor's threads
  // too.
  TouchPages touch = read_pages;
  // Told how far it is, on the caller's thread: between waits, parts and pieces. False: Cancelled, with nothing
  // registered that was not before. A call of the runtime that has begun is not interrupted. It calls nothing of the
  // store. May be empty.
  std::function<bool(const WarmUpProgress& progress)> go_on;
};

struct WarmUpReport {
  WarmUpProgress progress;                          // as it was at the end
  std::array<Nanos, kWarmUpStageCount> stage_ns{};  // by the runtime's clock
  [[nodiscard]] Nanos ns_of(WarmUpStage stage) const { return stage_ns[static_cast<std::size_t>(stage)]; }
};

// The mappings that are written through, in parts. Sets the totals of `progress`.
std::vector<HostRange> parts_of(std::span<const Segment> segments, std::uint64_t part_bytes, WarmUpProgress& progress);

// How far one warm-up is. Used on the thread of its caller. `clock`, `sync` and `options` outlive it.
template <Clock T, Sync S>
class WarmUpRun final : public RegistrationWatch {
 public:
  WarmUpRun(const T& clock, S& sync, const WarmUpOptions& options)
      : clock_(clock), sync_(sync), options_(options), stage_began_ns_(clock.now_ns()) {}

  void enter(WarmUpStage stage) {
    const Nanos now_ns = clock_.now_ns();
    report_.stage_ns[static_cast<std::size_t>(report_.progress.stage)] += now_ns - stage_began_ns_;
    report_.progress.stage = stage;
    stage_began_ns_ = now_ns;
  }
  [[nodiscard]] bool goes_on() const { return !options_.go_on || options_.go_on(report_.progress); }

  bool before_all(std::span<const Segment> segments) override {
    std::vector<HostRange> parts = parts_of(segments, options_.touch_part_bytes, report_.progress);
    enter(WarmUpStage::touching);
    const bool touched =
        touch_parts(sync_, std::move(parts), {options_.executor, options_.touchers_max, options_.touch},
                    [&](std::uint64_t touched_bytes) {
                      report_.progress.touched_bytes = touched_bytes;
                      return goes_on();
                    });
    enter(WarmUpStage::registering);
    return touched;
  }
  bool before_piece() override { return goes_on(); }
  void done(std::uint64_t bytes) override { report_.progress.registered_bytes += bytes; }

  [[nodiscard]] WarmUpReport finish() {
    enter(report_.progress.stage);
    return report_;
  }

 private:
  const T& clock_;
  S& sync_;
  const WarmUpOptions& options_;
  Nanos stage_began_ns_;
  WarmUpReport report_;
};

}  // namespace holdfast
