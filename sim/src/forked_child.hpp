// A piece of work in a process of its own, so that its crash or hang can be looked at from outside.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "holdfast/core/result.hpp"
#include "holdfast/core/time.hpp"

namespace holdfast::sim {

class ForkedChild {
 public:
  // In the child, the other end.
  class Link {
   public:
    explicit Link(int fd) : fd_(fd) {}
    // Nobody listens any more: the child ends.
    void send(std::string_view bytes);
    // What was said on standard error so far is forgotten.
    static void forget_complaints();

   private:
    int fd_;
  };

  // `work` runs in the child, which ends with it. The caller has a single thread. What `work` throws ends the child
  // with its text as the complaint.
  static Result<std::unique_ptr<ForkedChild>> start(const std::function<void(Link&)>& work);
  ~ForkedChild();
  ForkedChild(const ForkedChild&) = delete;
  ForkedChild& operator=(const ForkedChild&) = delete;

  enum class Heard : std::uint8_t { bytes, silence, end };
  // Appends what the child sends next to `bytes`; waits for it at most so long.
  Heard listen(std::string& bytes, Nanos wait_ns);

  // Spent so far: on a busy machine far less than the time that passed.
  [[nodiscard]] Nanos processor_time_ns() const;

  struct Ending {
    std::string how;         // "the process ended by signal 6 (Aborted)"
    std::string complaints;  // on standard error since it was last forgotten
  };
  // Waits for a child that has ended, or ends it.
  Ending bury(bool kill_it);

 private:
  ForkedChild(pid_t pid, int pipe, int complaints) : pid_(pid), pipe_(pipe), complaints_(complaints) {}

  pid_t pid_;
  int pipe_;
  int complaints_;
};

}  // namespace holdfast::sim
