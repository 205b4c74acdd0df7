#include "holdfast/sim/sim_sync.hpp"

#include <fmt/format.h>

#include <source_location>

#include "holdfast/core/check.hpp"

namespace holdfast::sim {

void SimSync::Mutex::locked_twice() const {
  if (state_.holder == MutexState::kOutside) {
    broken("a mutex is locked by the thread that holds it: on a real machine this waits for ever",
           std::source_location::current());
  }
  broken(fmt::format("mutex {} is locked outside of any fiber, but held by fiber {}, which is suspended", state_.number,
                     state_.holder)
             .c_str(),
         std::source_location::current());
}

void SimSync::Mutex::not_held() const {
  broken("a mutex is unlocked that nobody holds here", std::source_location::current());
}

}  // namespace holdfast::sim
