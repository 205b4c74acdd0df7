#include "campaign_worker.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "recheck.hpp"

namespace holdfast::sim {
namespace {

// Spreads a number over 64 bits.
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9E37'79B9'7F4A'7C15ULL;
  value = (value ^ value >> 30) * 0xBF58'476D'1CE4'E5B9ULL;
  value = (value ^ value >> 27) * 0x94D0'49BB'1331'11EBULL;
  return value ^ value >> 31;
}

std::uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

bool receive_block(int socket, SeedRange& block) {
  std::array<std::uint64_t, 2> bounds{};
  auto* at = reinterpret_cast<char*>(bounds.data());
  std::size_t missing = sizeof bounds;
  while (missing > 0) {
    const ssize_t bytes = read(socket, at, missing);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return false;
    at += bytes;
    missing -= static_cast<std::size_t>(bytes);
  }
  block = {bounds[0], bounds[1]};
  return true;
}

class Worker {
 public:
  Worker(int socket, WorkerSlot& slot, const CampaignOptions& options, const SystemFactory& factory,
         const TraceSource& source)
      : socket_(socket),
        slot_(slot),
        options_(options),
        factory_(factory),
        source_(source),
        executor_(factory, perturbation_numbered(options.perturbation)),
        recheck_(options, factory, [this](WorkerPhase phase) { enter(phase); }) {
    if (factory.beside_fake) beside_.emplace(options, factory, [this](WorkerPhase phase) { enter(phase); });
  }

  SeedResult run(std::uint64_t seed) {
    slot_.seed = seed;
    enter(WorkerPhase::making_trace);
    const std::shared_ptr<const Trace> trace = source_(seed);
    enter(WorkerPhase::running);
    SeedResult result;
    result.seed = seed;
    RunOptions run = options_.run;
    // Nothing under an operation can be made to return: the process ends instead.
    run.on_endless = [this](const std::string& why) {
      send_all(socket_, encode_message(WorkerMessage::endless, why));
      _exit(0);
    };
    if (options_.run.on_step) {
      run.on_step = [this](const std::string& line) {
        ++slot_.progress;
        options_.run.on_step(line);
      };
    }
    if (beside_) run.keep_end_state = true;
    const Nanos began_ns = SteadyClock{}.now_ns();
    result.run = executor_.run(*trace, run);
    result.wall_ns = SteadyClock{}.now_ns() - began_ns;
    if (beside_) {
      result.rechecked = true;
      result.divergence = beside_->run(*trace, result.run, executor_);
      if (!options_.run.keep_end_state) result.run.end_state = 0;
    }
    if (result.divergence.empty() && picked(seed, options_.recheck)) {
      const Recheck::Answer answer = recheck_.run(*trace, result.run, executor_);
      result.rechecked = true;
      result.divergence = answer.divergence;
      if (answer.needs_history) result.divergence += history(seed);
    }
    if (seeds_run_++ == 0) first_seed_ = seed;
    if (!options_.keep_results) {
      result.run.log.clear();
      result.run.frame_hashes.clear();
      result.run.session_chunks_hit.clear();
    }
    result.peak_rss_bytes = peak_rss_bytes();
    return result;
  }

 private:
  void enter(WorkerPhase phase) {
    slot_.phase = phase;
    ++slot_.progress;
  }

  [[nodiscard]] std::string history(std::uint64_t seed) const {
    if (seeds_run_ == 0) return "; it was the first seed of its process";
    return fmt::format(
        "; its process had run {0} seeds, from {1} on. The trace alone may not show it: run the campaign's command "
        "again with --seeds {1}-{2} --jobs 1",
        seeds_run_, first_seed_, seed);
  }

  int socket_;
  WorkerSlot& slot_;
  const CampaignOptions& options_;
  const SystemFactory& factory_;
  const TraceSource& source_;
  Executor executor_;
  Recheck recheck_;
  std::optional<BesideFake> beside_;
  std::uint64_t seeds_run_ = 0;
  std::uint64_t first_seed_ = 0;
};

}  // namespace

Perturbation perturbation_numbered(std::uint64_t number) {
  if (number == 0) return {};
  Perturbation perturbation;
  perturbation.arena_shift_pages = 1 + mixed(number) % 4096;
  perturbation.hash_seed = mixed(number + 1);
  perturbation.heap_shuffle = mixed(number + 3) | 1;
  perturbation.heap_fill = static_cast<std::uint8_t>(1 + mixed(number + 2) % 255);
  perturbation.other_locale = true;
  return perturbation;
}

bool picked(std::uint64_t seed, const Share& share) { return mixed(seed) % share.denominator < share.numerator; }

void serve_blocks(int socket, WorkerSlot& slot, const CampaignOptions& options, const SystemFactory& factory,
                  const TraceSource& source) {
  std::unique_ptr<Worker> worker;
  try {
    worker = std::make_unique<Worker>(socket, slot, options, factory, source);
  } catch (const std::exception& error) {
    send_all(socket, encode_message(WorkerMessage::unusable, error.what()));
    return;
  }
  SeedRange block;
  while (receive_block(socket, block)) {
    for (std::uint64_t seed = block.first; seed <= block.last; ++seed) {
      std::string message;
      try {
        message = encode_message(WorkerMessage::result, encode_result(worker->run(seed)));
      } catch (const HarnessFailure& error) {
        send_all(socket, encode_message(WorkerMessage::unusable, error.what()));
        return;
      } catch (const std::exception& error) {
        send_all(socket, encode_message(WorkerMessage::exception, error.what()));
        return;
      }
      if (!send_all(socket, message)) return;
      slot.phase = WorkerPhase::idle;
    }
    if (!send_all(socket, encode_message(WorkerMessage::block_done, {}))) return;
  }
}

}  // namespace holdfast::sim
