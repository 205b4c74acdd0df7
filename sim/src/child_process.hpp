// What all child processes of this program have in common: how they begin, and how they ended.
#pragma once

#include <sys/types.h>

#include <string>

namespace holdfast::sim {

// First thing after the fork, in the child: it ends with its parent, whatever that one dies of, leaves the terminal's
// interrupt to it, dumps no core, and complains to `complaints`.
void settle_as_child(pid_t parent, int complaints);

// "the process exited with status 3", of what waitpid gave.
std::string how_it_ended(int status);

}  // namespace holdfast::sim
