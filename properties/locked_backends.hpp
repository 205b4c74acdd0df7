// The fakes for several threads: one mutex around every call of their world, and failures that a thread asks for.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/backend.hpp"
#include "holdfast/fakes/cuda_device.hpp"
#include "holdfast/fakes/fluxon_owner.hpp"
#include "holdfast/fakes/memory_files.hpp"

namespace holdfast {

// Of the calls that this thread makes, each `every`-th fails, in the way that the contract allows it to; 0: none.
struct ThreadFaults {
  std::uint64_t every = 0;
  std::uint64_t calls = 0;

  static ThreadFaults& mine() {
    thread_local ThreadFaults faults;
    return faults;
  }
  static bool strikes() {
    ThreadFaults& faults = mine();
    return faults.every > 0 && ++faults.calls % faults.every == 0;
  }
  // Which of two ways the failure takes.
  static bool takes_effect() { return mine().calls / mine().every % 2 == 0; }
};

// Owner, device, files and clock of one world, and the mutex that guards them all.
struct LockedWorld {
  explicit LockedWorld(const fakes::OwnerOptions& options) : owner(arena, clock, options), device(arena, clock) {}

  template <class Use>
  auto with(Use&& use) {
    const std::scoped_lock lock(mutex);
    return std::forward<Use>(use)();
  }

  std::mutex mutex;
  // Guarded by mutex:
  fakes::Arena arena;
  fakes::VirtualClock clock;
  fakes::FakeOwner owner;
  fakes::FakeCuda device;
  fakes::MemoryFiles files;
};

class LockedClock {
 public:
  explicit LockedClock(LockedWorld& world) : world_(world) {}
  [[nodiscard]] Nanos now_ns() const {
    return world_.with([&] { return world_.clock.now_ns(); });
  }

 private:
  LockedWorld& world_;
};
static_assert(Clock<LockedClock>);

class LockedFluxon final : public FluxonBackend {
 public:
  explicit LockedFluxon(LockedWorld& world) : world_(world) {}

  Result<std::vector<Segment>> wait_local_segments_ready() override {
    if (ThreadFaults::strikes()) return network("wait_local_segments_ready");
    return world_.with([&] { return world_.owner.wait_local_segments_ready(); });
  }
  Result<PlanPtr> local_fast_put_start(Keys keys, std::uint64_t value_len, const PutOptions& options) override {
    if (ThreadFaults::strikes()) return network("local_fast_put_start");
    return world_.with([&] { return world_.owner.local_fast_put_start(keys, value_len, options); });
  }
  Result<Future> local_fast_put_commit(PlanPtr plan) override {
    return world_.with([&]() -> Result<Future> {
      Result<Future> future = world_.owner.local_fast_put_commit(plan);
      if (!future) return std::move(future.error());
      return Future(std::make_unique<Commit>(world_, std::move(*future)));
    });
  }
  // Calls that end something end it all the same when they fail.
  Status put_abort(PlanPtr plan) override {
    return ended("put_abort", [&] { return world_.owner.put_abort(plan); });
  }
  Result<GetStart> get_start(Keys keys, bool prefix_best_effort,
                             std::span<const std::uint32_t> atomic_group_lens) override {
    if (ThreadFaults::strikes()) return network("get_start");
    return world_.with([&] { return world_.owner.get_start(keys, prefix_best_effort, atomic_group_lens); });
  }
  Result<PlanPtr> get_transfer(GetHandle handle, std::uint64_t prefix_len) override {
    const bool fails = ThreadFaults::strikes();
    return world_.with([&]() -> Result<PlanPtr> {
      if (!fails) return world_.owner.get_transfer(handle, prefix_len);
      static_cast<void>(world_.owner.cancel_get_transfer(handle).has_value());
      return network("get_transfer");
    });
  }
  Status cancel_get_transfer(GetHandle handle) override {
    return ended("cancel_get_transfer", [&] { return world_.owner.cancel_get_transfer(handle); });
  }
  Status release_views(PlanPtr plan) override {
    return ended("release_views", [&] { return world_.owner.release_views(plan); });
  }
  Status remove(std::string_view key) override {
    const bool fails = ThreadFaults::strikes();
    if (fails && !ThreadFaults::takes_effect()) return network("remove");
    Status removed = world_.with([&] { return world_.owner.remove(key); });
    if (fails) return network("remove");
    return removed;
  }
  Status put(std::string_view key, std::span<const std::byte> bytes) override {
    return world_.with([&] { return world_.owner.put(key, bytes); });
  }
  Result<std::vector<std::byte>> get(std::string_view key) override {
    return world_.with([&] { return world_.owner.get(key); });
  }

 private:
  class Commit final : public PendingCommit {
   public:
    Commit(LockedWorld& world, Future future) : world_(world), future_(std::make_unique<Future>(std::move(future))) {}
    ~Commit() override {
      world_.with([&] { future_.reset(); });
    }
    Commit(const Commit&) = delete;
    Commit& operator=(const Commit&) = delete;
    Result<std::vector<std::int32_t>> wait(Nanos limit_ns) override {
      Result<std::vector<std::int32_t>> codes = world_.with([&] { return future_->wait(limit_ns); });
      if (ThreadFaults::strikes()) return network("commit_wait");
      return codes;
    }

   private:
    LockedWorld& world_;
    std::unique_ptr<Future> future_;
  };

  static Error network(std::string_view call) { return fluxon_error(FluxonErrc::network, call); }
  template <class End>
  Status ended(std::string_view call, End&& end) {
    const bool fails = ThreadFaults::strikes();
    Status done = world_.with(std::forward<End>(end));
    if (fails) return network(call);
    return done;
  }

  LockedWorld& world_;
};

class LockedCuda final : public CudaBackend {
 public:
  explicit LockedCuda(LockedWorld& world) : world_(world) {}

  Status host_register(std::uintptr_t ptr, std::uint64_t bytes, HostAccess access) override {
    if (ThreadFaults::strikes()) return cuda_error(CudaErrc::memory_allocation, "host_register");
    return world_.with([&] { return world_.device.host_register(ptr, bytes, access); });
  }
  Status host_unregister(std::uintptr_t ptr) override {
    if (ThreadFaults::strikes()) return cuda_error(CudaErrc::invalid_value, "host_unregister");
    return world_.with([&] { return world_.device.host_unregister(ptr); });
  }
  // After a failure all of it is in flight, or nothing.
  Status copy_batch(CopyDirection direction, std::span<const Copy> copies, StreamRef stream) override {
    const bool fails = ThreadFaults::strikes();
    if (fails && !ThreadFaults::takes_effect()) return cuda_error(CudaErrc::launch_failure, "copy_batch");
    Status submitted = world_.with([&] { return world_.device.copy_batch(direction, copies, stream); });
    if (fails) return cuda_error(CudaErrc::launch_failure, "copy_batch");
    return submitted;
  }
  Result<EventRef> event_create() override {
    return world_.with([&] { return world_.device.event_create(); });
  }
  Status event_record(EventRef event, StreamRef stream) override {
    return world_.with([&] { return world_.device.event_record(event, stream); });
  }
  Status stream_wait(StreamRef stream, EventRef event) override {
    return world_.with([&] { return world_.device.stream_wait(stream, event); });
  }
  Result<bool> event_query(EventRef event) override {
    return world_.with([&] { return world_.device.event_query(event); });
  }
  Status event_synchronize(EventRef event) override {
    if (ThreadFaults::strikes()) return cuda_error(CudaErrc::launch_failure, "event_synchronize");
    return world_.with([&] { return world_.device.event_synchronize(event); });
  }
  Status event_destroy(EventRef event) override {
    return world_.with([&] { return world_.device.event_destroy(event); });
  }
  Status stream_synchronize(StreamRef stream) override {
    if (ThreadFaults::strikes()) return cuda_error(CudaErrc::launch_failure, "stream_synchronize");
    return world_.with([&] { return world_.device.stream_synchronize(stream); });
  }
  Result<PointerAttributes> pointer_attributes(std::uintptr_t ptr) override {
    return world_.with([&] { return world_.device.pointer_attributes(ptr); });
  }

 private:
  LockedWorld& world_;
};

class LockedFiles final : public FileBackend {
 public:
  explicit LockedFiles(LockedWorld& world) : world_(world) {}

  Result<std::string> read(const std::string& path, std::uint64_t bytes_max) override {
    return world_.with([&] { return world_.files.read(path, bytes_max); });
  }
  Status write(const std::string& path, const std::string& bytes) override {
    if (ThreadFaults::strikes()) return no_space("write", path);
    return world_.with([&] { return world_.files.write(path, bytes); });
  }
  Status sync(const std::string& path) override {
    if (ThreadFaults::strikes()) return no_space("sync", path);
    return world_.with([&] { return world_.files.sync(path); });
  }
  Status rename(const std::string& from, const std::string& to) override {
    if (ThreadFaults::strikes()) return no_space("rename", from);
    return world_.with([&] { return world_.files.rename(from, to); });
  }
  Status remove(const std::string& path) override {
    return world_.with([&] { return world_.files.remove(path); });
  }

 private:
  static Error no_space(std::string_view call, const std::string& path) {
    return {Origin::file_system, ENOSPC, std::string(call), path, {}, {}};
  }

  LockedWorld& world_;
};

}  // namespace holdfast
