#include "child_process.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace holdfast::sim {

void settle_as_child(pid_t parent, int complaints) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_DFL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  dup2(complaints, STDERR_FILENO);
}

std::string how_it_ended(int status) {
  if (WIFEXITED(status)) return fmt::format("the process exited with status {}", WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  const char* words = sigdescr_np(number);
  return fmt::format("the process ended by signal {} ({}{})", number, words == nullptr ? "unknown" : words,
                     number == SIGKILL ? "; perhaps the system ran out of memory" : "");
}

}  // namespace holdfast::sim
