// The program: commands, their options and help, and the exit status. main() only calls it.
#pragma once

#include <string>
#include <vector>

namespace holdfast::sim {

// Runs `holdfast ARGUMENTS...` and gives its exit status.
int run_program(const std::vector<std::string>& arguments);

}  // namespace holdfast::sim
