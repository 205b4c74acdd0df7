#include "campaign_worker.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <memory>
#include <utility>

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

// False: the parent has gone, and nobody waits for a result.
bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string first_difference(const std::vector<std::string>& plain, const std::vector<std::string>& perturbed) {
  const auto [a, b] = std::mismatch(plain.begin(), plain.end(), perturbed.begin(), perturbed.end());
  if (a == plain.end() && b == perturbed.end()) {
    return fmt::format("the hashes differ, though all {} events read the same: something is hashed that is not said",
                       plain.size());
  }
  const auto text = [](auto at, auto end) { return at == end ? std::string("(the log ends)") : *at; };
  return fmt::format("event {} was\n  {}\nand when run again\n  {}", a - plain.begin() + 1, text(a, plain.end()),
                     text(b, perturbed.end()));
}

class Worker {
 public:
  Worker(WorkerSlot& slot, const CampaignOptions& options, const SystemFactory& factory, const TraceSource& source)
      : slot_(slot),
        options_(options),
        factory_(factory),
        source_(source),
        executor_(factory, perturbation_numbered(options.perturbation)) {}

  SeedResult run(std::uint64_t seed) {
    slot_.seed = seed;
    enter(WorkerPhase::making_trace);
    const std::shared_ptr<const Trace> trace = source_(seed);
    enter(WorkerPhase::running);
    SeedResult result;
    result.seed = seed;
    RunOptions run = options_.run;
    if (options_.run.on_step) {
      run.on_step = [this](const std::string& line) {
        ++slot_.progress;
        options_.run.on_step(line);
      };
    }
    result.run = executor_.run(*trace, run);
    if (picked(seed, options_.recheck)) {
      enter(WorkerPhase::rechecking);
      recheck(*trace, result);
    }
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

  void recheck(const Trace& trace, SeedResult& result) {
    if (!perturbed_) {
      perturbed_ = std::make_unique<Executor>(factory_, perturbation_numbered(options_.recheck_perturbation));
    }
    RunOptions plain;
    plain.disabled = options_.run.disabled;
    const RunResult again = perturbed_->run(trace, plain);
    result.rechecked = true;
    if (again.log_hash == result.run.log_hash && again.log_events == result.run.log_events) return;
    plain.keep_log = true;
    const RunResult first = executor_.run(trace, plain);
    ++slot_.progress;
    const RunResult second = perturbed_->run(trace, plain);
    result.divergence =
        first.log_hash == second.log_hash
            ? fmt::format(
                  "log hash {:016x} of the first run, {:016x} when run again; two runs more with the log kept "
                  "were the same: what a run does depends on what ran before it",
                  result.run.log_hash, again.log_hash)
            : first_difference(first.log, second.log);
  }

  WorkerSlot& slot_;
  const CampaignOptions& options_;
  const SystemFactory& factory_;
  const TraceSource& source_;
  Executor executor_;
  std::unique_ptr<Executor> perturbed_;
};

}  // namespace

Perturbation perturbation_numbered(std::uint64_t number) {
  if (number == 0) return {};
  Perturbation perturbation;
  perturbation.arena_shift_pages = 1 + mixed(number) % 4096;
  perturbation.hash_seed = mixed(number + 1);
  perturbation.heap_fill = static_cast<std::uint8_t>(1 + mixed(number + 2) % 255);
  perturbation.other_locale = true;
  return perturbation;
}

bool picked(std::uint64_t seed, const Share& share) { return mixed(seed) % share.denominator < share.numerator; }

void serve_blocks(int socket, WorkerSlot& slot, const CampaignOptions& options, const SystemFactory& factory,
                  const TraceSource& source) {
  std::unique_ptr<Worker> worker;
  try {
    worker = std::make_unique<Worker>(slot, options, factory, source);
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
