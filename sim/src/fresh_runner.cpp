#include "fresh_runner.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "campaign_worker.hpp"
#include "child_process.hpp"
#include "holdfast/sim/text.hpp"

extern char** environ;

namespace holdfast::sim {

FreshRunner::FreshRunner(Options options) : options_(std::move(options)) {}

FreshRunner::~FreshRunner() {
  if (pid_ >= 0) end();
}

FreshAnswer FreshRunner::run(const std::string& trace_text) {
  if (runs_ >= options_.runs_max) end();
  return ask(trace_text, false);
}

FreshAnswer FreshRunner::run_logged(const std::string& trace_text) {
  if (runs_ > 0) end();
  return ask(trace_text, true);
}

FreshAnswer FreshRunner::ask(const std::string& trace_text, bool logged) {
  if (pid_ < 0) start();
  ++runs_;
  send_all(socket_, encode_message(logged ? WorkerMessage::logged_trace : WorkerMessage::trace, trace_text));
  auto answer = receive_message(socket_, stream_);
  if (!answer) throw std::runtime_error("fresh " + end());
  FreshAnswer taken;
  if (answer->kind == WorkerMessage::unreadable) {
    taken.unreadable = std::move(answer->body);
    return taken;
  }
  if (answer->kind == WorkerMessage::exception) throw std::runtime_error(answer->body);
  auto result = decode_result(answer->body);
  if (answer->kind != WorkerMessage::result || !result) {
    throw HarnessFailure("the fresh process that runs seeds again sent what is no result");
  }
  taken.run = std::move(result->run);
  return taken;
}

void FreshRunner::start() {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw HarnessFailure(fmt::format("no socket pair for a fresh process: {}", std::strerror(errno)));
  }
  std::vector<std::string> words = options_.program;
  words.push_back(fmt::format("{}", options_.perturbation));
  for (const Invariant invariant : options_.disabled) words.emplace_back(name_of(invariant));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  const int failed = posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  socket_ = ends[0];
  if (failed != 0) {
    pid_ = -1;
    end();
    throw HarnessFailure(
        fmt::format("the fresh process that runs seeds again cannot be started: {}: {}; --recheck 0 "
                    "goes without",
                    printable(words[0]), std::strerror(failed)));
  }
  const auto greeting = receive_message(socket_, stream_);
  if (!greeting || greeting->kind != WorkerMessage::ready) {
    throw HarnessFailure(
        fmt::format("the fresh process that runs seeds again did not start: {}: {}; --recheck 0 goes "
                    "without",
                    printable(words[0]), end()));
  }
}

std::string FreshRunner::end() {
  if (socket_ >= 0) close(socket_);
  int status = 0;
  if (pid_ >= 0) {
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  }
  pid_ = -1;
  socket_ = -1;
  stream_.clear();
  runs_ = 0;
  return how_it_ended(status);
}

}  // namespace holdfast::sim
