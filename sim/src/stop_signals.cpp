#include "stop_signals.hpp"

namespace holdfast::sim {
namespace {

volatile std::sig_atomic_t stop_signal = 0;
extern "C" void note_stop_signal(int number) { stop_signal = number; }

}  // namespace

StopSignals::StopSignals() {
  stop_signal = 0;
  struct sigaction action{};
  action.sa_handler = note_stop_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

bool StopSignals::arrived() const { return stop_signal != 0; }

}  // namespace holdfast::sim
