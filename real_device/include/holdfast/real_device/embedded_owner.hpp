// A Fluxon owner inside this process, for real use: the fake owner's semantics over real shared memory, in real time,
// for several threads. No service is needed.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "holdfast/core/backend.hpp"
#include "holdfast/fakes/fluxon_owner.hpp"
#include "holdfast/real_device/shared_memory.hpp"

namespace holdfast::device {

// Another clock than the system's, by which an owner lives.
class OwnerTime {
 public:
  virtual ~OwnerTime() = default;
  [[nodiscard]] virtual Nanos now_ns() const = 0;  // never goes back
  // Comes back at that instant, or earlier. The owner's lock is held: no other thread's call goes on meanwhile.
  virtual void wait_until(Nanos instant_ns) = 0;
};

struct EmbeddedOptions {
  fakes::OwnerOptions owner;  // overwrite_checks costs two touched pages a slot
  PageChoice pages = PageChoice::best;
  OwnerTime* time = nullptr;  // outlives the owner; none: the time since it was opened, of the system's steady clock
};

// A model of FluxonBackend. Thread-safe; a call that waits lets others go on. Futures must not outlive it. When it ends
// its segments are unmapped: unregister them first.
class EmbeddedOwner final : public FluxonBackend {
 public:
  // InvalidArgument for lengths that no owner has; ResourceExhausted when the system refuses the memory.
  static Result<std::unique_ptr<EmbeddedOwner>> open(const EmbeddedOptions& options);

  Result<std::vector<Segment>> wait_local_segments_ready() override;
  Result<PlanPtr> local_fast_put_start(Keys keys, std::uint64_t value_len, const PutOptions& options) override;
  Result<Future> local_fast_put_commit(PlanPtr plan) override;
  Status put_abort(PlanPtr plan) override;
  Result<GetStart> get_start(Keys keys, bool prefix_best_effort,
                             std::span<const std::uint32_t> atomic_group_lens) override;
  Result<PlanPtr> get_transfer(GetHandle handle, std::uint64_t prefix_len) override;
  Status cancel_get_transfer(GetHandle handle) override;
  Status release_views(PlanPtr plan) override;
  Status remove(std::string_view key) override;
  Status put(std::string_view key, std::span<const std::byte> bytes) override;
  Result<std::vector<std::byte>> get(std::string_view key) override;

  // Lets happen what is due by now, this instant included.
  void run_due();
  // A new run on the same memory, as if just opened; its time is to begin anew too.
  void reset(const fakes::OwnerOptions& options);
  // What pages the live segment has by now.
  [[nodiscard]] PagesGiven pages();

  // The owner itself, at the present time, while no other call goes on.
  template <class Use>
  auto with(Use&& use) {
    std::unique_lock lock(mutex_);
    catch_up();
    // Others wait for what this may have changed.
    const Changed changed{changed_};
    return std::forward<Use>(use)(owner_);
  }

 private:
  struct Changed {
    std::condition_variable_any& condition;
    ~Changed() { condition.notify_all(); }
  };
  class Commit;

  explicit EmbeddedOwner(const EmbeddedOptions& options);
  [[nodiscard]] Nanos now_ns() const;
  void catch_up();
  void wait_until(Nanos instant_ns);  // the mutex is held

  OwnerTime* const time_;
  const Nanos opened_at_ns_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_:
  SharedMemory memory_;
  fakes::Arena heap_;  // of plan blobs
  fakes::VirtualClock clock_;
  fakes::FakeOwner owner_;
};
static_assert(FluxonRuntime<EmbeddedOwner>);

}  // namespace holdfast::device
