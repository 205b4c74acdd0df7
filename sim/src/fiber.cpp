#include "holdfast/sim/fiber.hpp"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdlib>
#include <new>
#include <utility>

#include "holdfast/core/check.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HOLDFAST_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define HOLDFAST_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define HOLDFAST_ADDRESS_SANITIZER 1
#endif
#if defined(__SANITIZE_THREAD__)
#define HOLDFAST_THREAD_SANITIZER 1
#endif

#if defined(HOLDFAST_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(HOLDFAST_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
// It keeps the calls that are under way for each fiber, and those that never return would pile up.
#define HOLDFAST_UNSEEN_BY_THREAD_SANITIZER __attribute__((no_sanitize("thread")))
#else
#define HOLDFAST_UNSEEN_BY_THREAD_SANITIZER
#endif

namespace holdfast::sim {
namespace {

namespace context = boost::context::detail;

}  // namespace

struct Fiber::Stack {
  explicit Stack(std::size_t stack_bytes) {
    const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t usable_bytes = (stack_bytes + page_bytes - 1) / page_bytes * page_bytes;
    mapped_bytes = usable_bytes + page_bytes;
    void* const mapped = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    guard = static_cast<std::byte*>(mapped);
    // Without the guard an overflow would write into whatever lies below.
    if (mprotect(guard, page_bytes, PROT_NONE) != 0) {
      munmap(guard, mapped_bytes);
      throw std::bad_alloc();
    }
    lowest = guard + page_bytes;
  }
  ~Stack() {
    forget_frames();
    munmap(guard, mapped_bytes);
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  [[nodiscard]] std::byte* top() const { return guard + mapped_bytes; }
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(top() - lowest); }
  // Frames that never return leave their marks in the sanitizer's shadow.
  void forget_frames() {
#if defined(HOLDFAST_ADDRESS_SANITIZER)
    __asan_unpoison_memory_region(lowest, bytes());
#endif
  }

  std::byte* guard = nullptr;
  std::byte* lowest = nullptr;
  std::size_t mapped_bytes = 0;
};

struct Fiber::Jump {
  // The first thing done where a jump arrives. What it needs isn't on the stack that was left: that may be gone.
  HOLDFAST_UNSEEN_BY_THREAD_SANITIZER static Fiber& arrived(const context::transfer_t& transfer) {
    Fiber& from = *static_cast<Fiber*>(transfer.data);
    from.context_ = from.ended_ ? nullptr : transfer.fctx;
#if defined(HOLDFAST_ADDRESS_SANITIZER)
    __sanitizer_finish_switch_fiber(from.to_->fake_stack_, &from.bottom_, &from.size_);
#endif
    return *from.to_;
  }

  HOLDFAST_UNSEEN_BY_THREAD_SANITIZER static void enter(context::transfer_t transfer) noexcept {
    Fiber& self = arrived(transfer);
    Fiber& next = self.body_(self.argument_);
    self.ended_ = true;
    self.jump_to(next);
    std::abort();  // nobody can switch to it
  }
};

Fiber::Fiber() = default;

Fiber::Fiber(std::size_t stack_bytes) : stack_(std::make_unique<Stack>(stack_bytes)) {
  bottom_ = stack_->lowest;
  size_ = stack_->bytes();
#if defined(HOLDFAST_THREAD_SANITIZER)
  race_state_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(HOLDFAST_THREAD_SANITIZER)
  if (stack_ != nullptr) __tsan_destroy_fiber(race_state_);
#endif
}

void Fiber::start(Body body, void* argument) {
  check(stack_ != nullptr, "a fiber without a stack of its own is started");
  body_ = body;
  argument_ = argument;
  exceptions_ = {};
  ended_ = false;
  stack_->forget_frames();
  fake_stack_ = nullptr;
#if defined(HOLDFAST_THREAD_SANITIZER)
  if (context_ != nullptr) {  // the last body is forgotten, and so are its calls
    __tsan_destroy_fiber(race_state_);
    race_state_ = __tsan_create_fiber(0);
  }
#endif
  context_ = context::make_fcontext(stack_->top(), stack_->bytes(), &Jump::enter);
}

void Fiber::switch_to(Fiber& next) {
  check(&next != this, "a fiber switches to itself");
  jump_to(next);
}

HOLDFAST_UNSEEN_BY_THREAD_SANITIZER void Fiber::jump_to(Fiber& next) {
  check(next.context_ != nullptr, "a fiber is switched to that runs already, has ended or never began");
  to_ = &next;
  Exceptions& of_thread = exceptions_of_thread();
  exceptions_ = std::exchange(of_thread, next.exceptions_);
#if defined(HOLDFAST_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(ended_ ? nullptr : &fake_stack_, next.bottom_, next.size_);
#endif
#if defined(HOLDFAST_THREAD_SANITIZER)
  if (stack_ == nullptr) race_state_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(next.race_state_, 0);
#endif
  Jump::arrived(context::jump_fcontext(std::exchange(next.context_, nullptr), this));
}

// The ABI for C++ says what these begin with, not what they are called.
Fiber::Exceptions& Fiber::exceptions_of_thread() { return *reinterpret_cast<Exceptions*>(abi::__cxa_get_globals()); }

}  // namespace holdfast::sim
