// A function with a stack of its own, within one thread: it gives the thread away and goes on where it stopped.
#pragma once

#include <cstddef>
#include <memory>

namespace holdfast::sim {

// Switching is symmetric: whoever runs names who runs next. A fiber stays on the thread it was made on, and so do those
// it switches to.
//
// The stack is mapped once, with a guard page below it, and serves one body after another: who runs many short fibers
// keeps the objects. AddressSanitizer and ThreadSanitizer are told of every switch.
//
// A switch may stand anywhere, within a catch block or a destructor that an exception runs too: which exceptions are in
// flight belongs to the fiber. An exception never leaves a body: that ends the process.
class Fiber {
 public:
  // Returns the fiber that goes on once this one has ended; it isn't this one.
  using Body = Fiber& (*)(void* argument);

  static constexpr std::size_t kStackBytes = std::size_t{1} << 20;  // only what is touched takes memory

  // Stands for whoever calls this, a thread's own stack or another fiber: only a place to switch from and back to.
  Fiber();
  // With a stack of at least `stack_bytes`, and nothing to do yet. Throws std::bad_alloc where none can be mapped.
  explicit Fiber(std::size_t stack_bytes);
  // Not the one that runs. One that has begun and not ended is forgotten: what its frames own is leaked.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next switch to this fiber calls `body(argument)`. It has a stack and isn't the one that runs; a body that has
  // begun and not ended is forgotten, as by the destructor.
  void start(Body body, void* argument);

  // This fiber runs: it stops here, and `next` goes on where it stopped or begins. Returns when somebody switches back.
  void switch_to(Fiber& next);

 private:
  struct Stack;
  struct Jump;
  // What the C++ runtime keeps per thread: the exceptions being handled, and how many are in flight.
  struct Exceptions {
    void* handled = nullptr;
    unsigned int in_flight = 0;
  };

  static Exceptions& exceptions_of_thread();
  void jump_to(Fiber& next);

  std::unique_ptr<Stack> stack_;
  void* context_ = nullptr;  // where it goes on; nullptr while it runs or has nothing to do
  Body body_ = nullptr;
  void* argument_ = nullptr;
  Fiber* to_ = nullptr;  // where it switched to last
  Exceptions exceptions_;
  bool ended_ = false;  // leaves its stack for good

  // For the sanitizers: the stack's lowest byte and size, and what they keep for it.
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
  void* fake_stack_ = nullptr;
  void* race_state_ = nullptr;
};

}  // namespace holdfast::sim
