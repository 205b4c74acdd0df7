// The fresh process of a campaign whose store leaks: leaky_program LEAK PERTURBATION [INVARIANT]...
#include <string>
#include <vector>

#include "holdfast/sim/fresh_process.hpp"
#include "leaky_system.hpp"

int main(int argc, char** argv) {
  using namespace holdfast::sim;
  const std::vector<std::string> words(argv + 1, argv + argc);
  for (const NamedLeak& named : kLeaks) {
    if (words.empty() || words.front() != named.name) continue;
    in_a_fresh_process() = true;
    return serve_fresh_runs({words.begin() + 1, words.end()}, leaky_factory(named.leak));
  }
  return 2;
}
