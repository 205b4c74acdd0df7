// The threads that the core may have work done on: the caller's. It has none of its own.
#pragma once

#include <functional>

#include "holdfast/core/time.hpp"

namespace holdfast {

// Every task that was submitted runs, whole, before the runtime, the clock and the sync that its submitter uses are
// gone; what the submitter itself refers to may be gone by then. Its calls may come from any thread.
class TaskExecutor {
 public:
  virtual ~TaskExecutor() = default;

  // Runs `task` once, on any thread: at once, before this returns, or later. A task can take as long as the call that
  // it makes; none waits for another.
  virtual void submit(std::function<void()> task) = 0;

  // The calling thread can do nothing but wait for tasks, whoever submitted them: comes back when one has ended, and at
  // the latest after `limit_ns`. Coming back earlier, or to no purpose, does no harm. May run tasks itself.
  virtual void wait(Nanos limit_ns) = 0;
};

}  // namespace holdfast
