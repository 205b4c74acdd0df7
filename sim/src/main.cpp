// The program's entry: everything else is in the library, where tests reach it.
#include <string>
#include <vector>

#include "holdfast/sim/program.hpp"

int main(int argc, char** argv) {
  return holdfast::sim::run_program(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
