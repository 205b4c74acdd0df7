#include "holdfast/sim/fresh_process.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <limits>
#include <optional>

#include "campaign_worker.hpp"
#include "holdfast/sim/backend_factory.hpp"
#include "holdfast/sim/report.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

constexpr int kSocket = STDIN_FILENO;

bool is_socket(int fd) {
  struct stat about{};
  return fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode);
}

// It ends with the worker, whatever that one dies of, even if that happened before the signal was asked for.
void end_with_the_worker() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pollfd peer{kSocket, POLLIN, 0};
  if (poll(&peer, 1, 0) > 0 && (peer.revents & POLLHUP) != 0) _exit(0);
}

struct FreshOptions {
  std::string backend = "fake";
  std::uint64_t perturbation = 0;
  RunOptions run;
};

std::optional<FreshOptions> options_in(const std::vector<std::string>& words) {
  FreshOptions options;
  std::size_t at = 0;
  if (at < words.size() && words[at].starts_with(kFreshBackend)) {
    options.backend = words[at++].substr(kFreshBackend.size());
  }
  if (at >= words.size()) return std::nullopt;
  auto number = parse_count(kFreshProcessCommand, words[at++], 0, std::numeric_limits<std::uint64_t>::max());
  if (!number) return std::nullopt;
  options.perturbation = *number;
  for (std::size_t i = at; i < words.size(); ++i) {
    const auto invariant = invariant_named(words[i]);
    if (!invariant) return std::nullopt;
    options.run.disabled.push_back(*invariant);
  }
  return options;
}

std::string answer_to(const ReceivedMessage& request, RunOptions options, Executor& executor) {
  options.keep_log = request.kind == WorkerMessage::logged_trace;
  try {
    auto trace = read_trace(request.body, "the trace's text");
    if (!trace) return encode_message(WorkerMessage::unreadable, explain(trace.error()));
    SeedResult result;
    result.seed = trace->seed;
    result.run = executor.run(*trace, options);
    return encode_message(WorkerMessage::result, encode_result(result));
  } catch (const std::exception& error) {
    return encode_message(WorkerMessage::exception, error.what());
  }
}

}  // namespace

int serve_fresh_runs(const std::vector<std::string>& words, const SystemFactory& factory) {
  const auto options = options_in(words);
  if (!options || !is_socket(kSocket)) {
    fmt::print(stderr, "holdfast {}: is what a campaign starts to run seeds again; use 'holdfast run'\n",
               kFreshProcessCommand);
    return static_cast<int>(ExitStatus::bad_usage);
  }
  end_with_the_worker();
  SystemFactory asked = factory;
  if (options->backend != "fake") {
    auto owner = owner_factory_of(options->backend);
    if (!owner) {
      fmt::print(stderr, "{}\n", printable(explain(owner.error())));
      return static_cast<int>(ExitStatus::bad_usage);
    }
    asked.make_owner = std::move(*owner);
    auto device = device_factory_of(options->backend);
    if (!device) {
      fmt::print(stderr, "{}\n", printable(explain(device.error())));
      return static_cast<int>(ExitStatus::bad_usage);
    }
    asked.make_device = std::move(*device);
  }
  Executor executor(asked, perturbation_numbered(options->perturbation));
  if (!send_all(kSocket, encode_message(WorkerMessage::ready, {}))) return 0;
  std::string stream;
  while (const auto request = receive_message(kSocket, stream)) {
    if (!send_all(kSocket, answer_to(*request, options->run, executor))) return 0;
  }
  return 0;
}

}  // namespace holdfast::sim
