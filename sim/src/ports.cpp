#include "holdfast/sim/ports.hpp"

#include "holdfast/core/check.hpp"

namespace holdfast::sim {

void SimSync::Mutex::lock() {
  check(!held_, "a mutex is locked by the thread that holds it: on a real machine this waits for ever");
  held_ = true;
}

void SimSync::Mutex::unlock() {
  check(held_, "a mutex is unlocked that nobody holds");
  held_ = false;
}

}  // namespace holdfast::sim
