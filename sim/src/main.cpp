// The program's entry: everything else is in the library, where tests reach it.
#include <malloc.h>

#include <string>
#include <vector>

#include "holdfast/sim/program.hpp"

int main(int argc, char** argv) {
#ifdef __GLIBC__
  // A table of megabytes that has grown out of its place goes back to the system, and what a seed let go stays.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
  return holdfast::sim::run_program(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
