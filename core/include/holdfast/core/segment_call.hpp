// Asks the owner for its segments no longer than the caller wants to, though the runtime's call has no limit of its
// own: an executor's task makes the call, and whoever gives up leaves it there.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "holdfast/core/check.hpp"
#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/core/guarded.hpp"
#include "holdfast/core/task_executor.hpp"

namespace holdfast {

struct SegmentsAnswer {
  std::uint64_t look = 0;  // see SegmentRegistry::begin_look
  std::vector<Segment> segments;
};

struct SegmentsWait {
  TaskExecutor& executor;
  Nanos limit_ns = 0;
  std::function<bool()> go_on;  // asked now and then while there is no answer; false: give up
};

// Thread-safe. However often one gives up, one task at most is left behind: while its call has not returned, the next
// one waits for the same answer. An answer that came when nobody was waiting is not used: it may be old.
//
// `fluxon` and `sync` outlive the task, not only this.
template <FluxonRuntime F, Clock T, Sync S>
class SegmentCalls {
 public:
  SegmentCalls(F& fluxon, const T& clock, S& sync) : fluxon_(fluxon), clock_(clock), sync_(sync), newest_(sync) {}

  // The runtime's own failures; TimedOut after the limit, Cancelled when `go_on` said no: the call goes on.
  // `begin_look` gives a number to a call that is made.
  Result<SegmentsAnswer> wait(const SegmentsWait& wait, const std::function<std::uint64_t()>& begin_look) {
    check(wait.limit_ns >= 0, "a limit before now");
    const Nanos began_ns = clock_.now_ns();
    const std::shared_ptr<Call> call = join_or_begin(wait.executor, begin_look);
    for (;;) {
      if (std::optional<Answer> answer = call->answer.with([](const auto& known) { return known; })) {
        if (!*answer) return std::move(answer->error());
        return SegmentsAnswer{call->look, std::move(**answer)};
      }
      const Nanos waited_ns = clock_.now_ns() - began_ns;
      if (waited_ns >= wait.limit_ns) {
        return make_error(Errc::timed_out, kName, "no owner has mounted a segment; the call goes on");
      }
      if (!wait.go_on()) return make_error(Errc::cancelled, kName, "the call goes on");
      wait.executor.wait(std::min(wait.limit_ns - waited_ns, kAskEveryNs));
    }
  }

 private:
  using Answer = Result<std::vector<Segment>>;
  static constexpr std::string_view kName = "wait_local_segments_ready";
  static constexpr Nanos kAskEveryNs = 100 * kMillisecond;

  struct Call {
    Call(S& sync, std::uint64_t number) : look(number), answer(sync) {}
    const std::uint64_t look;
    Guarded<std::optional<Answer>, S> answer;
  };

  std::shared_ptr<Call> join_or_begin(TaskExecutor& executor, const std::function<std::uint64_t()>& begin_look) {
    const auto fresh = std::make_shared<Call>(sync_, begin_look());
    const std::shared_ptr<Call> call = newest_.with([&](std::shared_ptr<Call>& newest) {
      const bool under_way = newest && !newest->answer.with([](const auto& known) { return known.has_value(); });
      if (!under_way) newest = fresh;
      return newest;
    });
    if (call == fresh) {
      executor.submit([call, &fluxon = fluxon_] {
        Answer answer = fluxon.wait_local_segments_ready();
        call->answer.with([&](auto& known) { known.emplace(std::move(answer)); });
      });
    }
    return call;
  }

  F& fluxon_;
  const T& clock_;
  S& sync_;
  Guarded<std::shared_ptr<Call>, S> newest_;
};

}  // namespace holdfast
