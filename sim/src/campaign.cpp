#include "holdfast/sim/campaign.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "campaign_worker.hpp"
#include "child_process.hpp"
#include "holdfast/sim/text.hpp"
#include "stop_signals.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kBlockSeedsMax = 16;  // also how far a time budget is overrun
constexpr std::uint64_t kBlocksAheadMax = 8;  // per job: bounds what waits to be counted in order
constexpr std::uint32_t kLostWorkersMax = 3;  // deaths that no seed can be blamed for
constexpr int kPollMs = 50;
constexpr std::size_t kForwardedBytesMax = 1 << 16;

Nanos now_ns() { return SteadyClock{}.now_ns(); }

Error system_failure(std::string_view what, int number) {
  Error error;
  error.origin = Origin::file_system;
  error.code = number;
  error.call = "campaign";
  error.detail = fmt::format("{}: {}", what, std::strerror(number));
  return error;
}

Error harness_failure(std::string detail) {
  Error error;
  error.origin = Origin::file_system;
  error.code = ECHILD;
  error.call = "campaign";
  error.detail = std::move(detail);
  return error;
}

struct WorkerProcess {
  pid_t pid = -1;  // -1: none
  int socket = -1;
  int complaints = -1;  // what it writes to standard error
  WorkerSlot* slot = nullptr;
  std::string stream;
  std::optional<SeedRange> block;  // what is left of it
  std::uint64_t progress = 0;
  Nanos progress_at_ns = 0;
  bool hung = false;
  std::optional<std::string> exception;
  std::optional<std::string> endless;
};

struct Outcome {
  std::optional<SeedResult> result;
  std::optional<SeedFailure> failure;  // crash or hang
};

std::string complaints_of(const WorkerProcess& worker, std::size_t bytes_max) {
  std::string text;
  const off_t bytes = lseek(worker.complaints, 0, SEEK_END);
  if (bytes <= 0) return text;
  text.resize(std::min<std::size_t>(static_cast<std::size_t>(bytes), 1 << 20));
  const ssize_t got = pread(worker.complaints, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return printable(text, bytes_max);
}

std::string_view doing(WorkerPhase phase) {
  switch (phase) {
    case WorkerPhase::making_trace:
      return "while its trace was being made";
    case WorkerPhase::rechecking:
      return "when it was run again in the same process, perturbed";
    case WorkerPhase::rechecking_fresh:
      return "when it was run again in a fresh process, perturbed";
    case WorkerPhase::idle:
    case WorkerPhase::running:
      break;
  }
  return "while it ran";
}

class Campaign {
 public:
  Campaign(const CampaignOptions& options, const SystemFactory& factory, const TraceSource& source,
           const ProgressSink& progress)
      : options_(options),
        factory_(factory),
        source_(source),
        progress_(progress),
        begin_ns_(now_ns()),
        next_seed_(options.seeds.first),
        frontier_(options.seeds.first),
        workers_(std::max<std::uint32_t>(1, options.jobs)) {
    const std::uint64_t fair = options.seeds.count() / workers_.size();
    block_seeds_ = std::clamp<std::uint64_t>(fair, 1, kBlockSeedsMax);
  }
  ~Campaign() {
    for (WorkerProcess& worker : workers_) end(worker, SIGKILL);
    if (slots_ != nullptr) munmap(slots_, slots_bytes());
  }
  Campaign(const Campaign&) = delete;
  Campaign& operator=(const Campaign&) = delete;

  Result<CampaignResult> run() {
    void* shared = mmap(nullptr, slots_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return system_failure("no shared memory", errno);
    slots_ = static_cast<WorkerSlot*>(shared);
    for (std::size_t i = 0; i < workers_.size(); ++i) workers_[i].slot = new (slots_ + i) WorkerSlot{};

    while (!over_) {
      look_at_the_clock();
      if (auto status = hand_out(); !status) return status.error();
      if (!any_busy()) break;
      if (auto status = listen(); !status) return status.error();
      kill_hung();
      accept();
      report_progress(false);
    }
    for (WorkerProcess& worker : workers_) end(worker, over_ ? SIGKILL : 0);
    report_progress(true);
    result_.interrupted = signals_.arrived();
    result_.wall_ns = now_ns() - begin_ns_;
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::size_t slots_bytes() const { return workers_.size() * sizeof(WorkerSlot); }

  [[nodiscard]] bool any_busy() const {
    return std::any_of(workers_.begin(), workers_.end(), [](const WorkerProcess& worker) { return worker.block; });
  }

  void look_at_the_clock() {
    if (!result_.stopped.empty()) return;
    if (signals_.arrived()) {
      result_.stopped = "interrupted by a signal";
    } else if (options_.time_budget_ns > 0 && now_ns() - begin_ns_ >= options_.time_budget_ns) {
      result_.stopped = fmt::format("the time budget of {} was spent", seconds_text(options_.time_budget_ns));
    }
  }

  std::optional<SeedRange> next_block() {
    if (!again_.empty()) {  // what a dead worker left of its block is finished even when no more is begun
      const SeedRange block = again_.front();
      again_.pop_front();
      return block;
    }
    const std::uint64_t ahead_max = kBlocksAheadMax * block_seeds_ * workers_.size();
    if (!result_.stopped.empty() || next_seed_ > options_.seeds.last || next_seed_ - frontier_ >= ahead_max) {
      return std::nullopt;
    }
    const SeedRange block{next_seed_, std::min(options_.seeds.last, next_seed_ + block_seeds_ - 1)};
    next_seed_ = block.last + 1;
    return block;
  }

  Status hand_out() {
    for (WorkerProcess& worker : workers_) {
      if (worker.block) continue;
      const auto block = next_block();
      if (!block) return {};
      if (worker.pid < 0) {
        if (auto status = start(worker); !status) return status;
      }
      worker.block = block;
      worker.progress = worker.slot->progress;
      worker.progress_at_ns = now_ns();
      const std::uint64_t bounds[2] = {block->first, block->last};
      // Sixteen bytes always fit; a worker that has died is noticed when it is listened to.
      static_cast<void>(send(worker.socket, bounds, sizeof bounds, MSG_NOSIGNAL));
    }
    return {};
  }

  Status start(WorkerProcess& worker) {
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return system_failure("no socket pair", errno);
    const int complaints = memfd_create("holdfast-worker", MFD_CLOEXEC);
    std::fflush(nullptr);  // or the child would write it again
    const pid_t parent = getpid();
    const pid_t pid = complaints < 0 ? -1 : fork();
    if (pid < 0) {
      const int number = errno;
      close(ends[0]);
      close(ends[1]);
      if (complaints >= 0) close(complaints);
      return system_failure("no worker process", number);
    }
    if (pid == 0) {
      close(ends[0]);
      for (const WorkerProcess& other : workers_) {
        if (other.socket >= 0) close(other.socket);
      }
      be_worker(parent, ends[1], complaints, *worker.slot);
    }
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    WorkerSlot* slot = worker.slot;
    worker = WorkerProcess{};
    worker.pid = pid;
    worker.socket = ends[0];
    worker.complaints = complaints;
    worker.slot = slot;
    return {};
  }

  [[noreturn]] void be_worker(pid_t parent, int socket, int complaints, WorkerSlot& slot) {
    settle_as_child(parent, complaints);
    slot.phase = WorkerPhase::idle;
    serve_blocks(socket, slot, options_, factory_, source_);
    std::fflush(nullptr);
    _exit(0);
  }

  Status listen() {
    std::vector<pollfd> polled;
    std::vector<WorkerProcess*> owners;
    for (WorkerProcess& worker : workers_) {
      if (worker.pid < 0) continue;
      polled.push_back({worker.socket, POLLIN, 0});
      owners.push_back(&worker);
    }
    if (poll(polled.data(), polled.size(), kPollMs) <= 0) return {};
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      if (auto status = read_from(*owners[i]); !status) return status;
    }
    return {};
  }

  Status read_from(WorkerProcess& worker) {
    char piece[1 << 16];
    for (;;) {
      const ssize_t bytes = read(worker.socket, piece, sizeof piece);
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
      if (bytes <= 0) return bury(worker);
      worker.stream.append(piece, static_cast<std::size_t>(bytes));
      while (auto message = take_message(worker.stream)) {
        if (auto status = understand(worker, std::move(*message)); !status) return status;
      }
    }
  }

  Status understand(WorkerProcess& worker, ReceivedMessage message) {
    switch (message.kind) {
      case WorkerMessage::result: {
        auto result = decode_result(message.body);
        if (!result || !worker.block || result->seed != worker.block->first) {
          return harness_failure("a worker sent what is no result");
        }
        worker.block->first = result->seed + 1;
        worker.progress_at_ns = now_ns();
        const std::uint64_t seed = result->seed;
        outcomes_[seed].result = std::move(*result);
        return {};
      }
      case WorkerMessage::block_done:
        worker.block.reset();
        return {};
      case WorkerMessage::exception:
        worker.exception = std::move(message.body);
        return {};
      case WorkerMessage::endless:
        worker.endless = std::move(message.body);
        return {};
      case WorkerMessage::unusable:
        return harness_failure(fmt::format("a worker cannot go on: {}", printable(message.body)));
      case WorkerMessage::ready:
      case WorkerMessage::trace:
      case WorkerMessage::logged_trace:
      case WorkerMessage::unreadable:
      case WorkerMessage::moment:
        break;
    }
    return harness_failure("a worker sent a message of no known kind");
  }

  // The worker is dead: exactly the seed in its slot is to blame; the rest of its block goes on elsewhere.
  Status bury(WorkerProcess& worker) {
    int status = 0;
    pid_t buried = -1;
    do {
      buried = waitpid(worker.pid, &status, 0);
    } while (buried < 0 && errno == EINTR);
    const WorkerPhase phase = worker.slot->phase;
    const std::optional<SeedRange> left = worker.block;
    const bool blamed =
        left && left->first <= left->last && phase != WorkerPhase::idle && worker.slot->seed == left->first;
    const std::string said = complaints_of(worker, 6000);
    SeedFailure failure;
    failure.kind = worker.hung || worker.endless ? FailureKind::hang : FailureKind::crash;
    if (worker.hung) {
      failure.message =
          fmt::format("no end within {} of real time {}", seconds_text(options_.hang_limit_ns), doing(phase));
    } else if (worker.endless) {
      failure.message = fmt::format("{} {}", printable(*worker.endless), doing(phase));
    } else if (worker.exception) {
      failure.message =
          fmt::format("an exception ended the process {}: {}", doing(phase), printable(*worker.exception));
    } else {
      failure.message = fmt::format("{} {}", how_it_ended(status), doing(phase));
    }
    if (!said.empty()) failure.message += "; it had written:\n" + said;
    forget(worker);
    if (!left) return {};
    if (!blamed) {
      if (++lost_workers_ > kLostWorkersMax) {
        return harness_failure(fmt::format("workers die, and no seed is to blame: {}\n{}", how_it_ended(status), said));
      }
      if (left->first <= left->last) again_.push_front(*left);
      return {};
    }
    failure.seed = left->first;
    failure.has_trace = phase != WorkerPhase::making_trace;
    outcomes_[failure.seed].failure = std::move(failure);
    if (left->first < left->last) again_.push_front({left->first + 1, left->last});
    return {};
  }

  void forget(WorkerProcess& worker) {
    if (worker.socket >= 0) close(worker.socket);
    if (worker.complaints >= 0) close(worker.complaints);
    WorkerSlot* slot = worker.slot;
    worker = WorkerProcess{};
    worker.slot = slot;
  }

  // The end of its stream ends an idle worker; `signal` one that is busy with what is not wanted any more.
  void end(WorkerProcess& worker, int signal) {
    if (worker.pid < 0) return;
    shutdown(worker.socket, SHUT_RDWR);
    if (signal != 0) kill(worker.pid, signal);
    while (waitpid(worker.pid, nullptr, 0) < 0 && errno == EINTR) continue;
    const std::string said = complaints_of(worker, kForwardedBytesMax);
    if (!said.empty()) std::fputs(said.c_str(), stderr);
    forget(worker);
  }

  // A worker that is starting, or between seeds, is slow only because the machine is.
  [[nodiscard]] Nanos limit_of(const WorkerProcess& worker) const {
    if (worker.slot->phase != WorkerPhase::idle) return options_.hang_limit_ns;
    return std::max(options_.hang_limit_ns, kMinute);
  }

  void kill_hung() {
    const Nanos now = now_ns();
    for (WorkerProcess& worker : workers_) {
      if (!worker.block || worker.hung) continue;
      const std::uint64_t progress = worker.slot->progress;
      if (progress != worker.progress) {
        worker.progress = progress;
        worker.progress_at_ns = now;
      } else if (now - worker.progress_at_ns > limit_of(worker)) {
        worker.hung = true;
        kill(worker.pid, SIGKILL);
      }
    }
  }

  // Counts the outcomes that are next in order.
  void accept() {
    while (!over_) {
      const auto next = outcomes_.find(frontier_);
      if (next == outcomes_.end()) return;
      Outcome outcome = std::move(next->second);
      outcomes_.erase(next);
      const std::uint64_t seed = frontier_++;
      const std::size_t failures_before = result_.failures.size();
      if (outcome.failure) {
        ++result_.seeds_run;
        result_.failures.push_back(std::move(*outcome.failure));
      }
      if (outcome.result) {
        if (options_.on_result) options_.on_result(*outcome.result);
        merge(result_, result_of(std::move(*outcome.result), options_.keep_results));
      }
      if (result_.failures.size() > failures_before) ++failed_seeds_;
      std::string why = why_to_stop(options_, result_, failed_seeds_);
      if (why.empty()) continue;
      over_ = true;
      if (seed < options_.seeds.last) result_.stopped = std::move(why);
    }
  }

  void report_progress(bool last) {
    const Nanos now = now_ns();
    if (!progress_ || (!last && now - progress_told_ns_ < 100 * kMillisecond)) return;
    progress_told_ns_ = now;
    progress_({result_.seeds_run, options_.seeds.count(), result_.runtime_calls, failed_seeds_, now - begin_ns_,
               options_.time_budget_ns});
  }

  const CampaignOptions& options_;
  const SystemFactory& factory_;
  const TraceSource& source_;
  const ProgressSink& progress_;
  StopSignals signals_;
  Nanos begin_ns_;
  Nanos progress_told_ns_ = 0;
  std::uint64_t next_seed_;  // of a block not handed out yet
  std::uint64_t frontier_;   // the first seed not counted yet
  std::uint64_t block_seeds_ = 1;
  std::uint32_t lost_workers_ = 0;
  std::uint64_t failed_seeds_ = 0;
  bool over_ = false;
  std::vector<WorkerProcess> workers_;
  WorkerSlot* slots_ = nullptr;
  std::deque<SeedRange> again_;
  std::map<std::uint64_t, Outcome> outcomes_;
  CampaignResult result_;
};

}  // namespace

Result<CampaignResult> run_campaign(const CampaignOptions& options, const SystemFactory& factory,
                                    const TraceSource& source, const ProgressSink& progress) {
  return Campaign(options, factory, source, progress).run();
}

}  // namespace holdfast::sim
