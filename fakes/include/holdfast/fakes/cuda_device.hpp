// A CUDA device that never was: copies that move late and in no order, registrations, events and errors as measured on
// a real one. Deterministic, with no faults of its own: lateness and errors are choices that the environment makes.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/backend.hpp"
#include "holdfast/fakes/arena.hpp"
#include "holdfast/fakes/cuda_device_heap.hpp"
#include "holdfast/fakes/cuda_device_registrations.hpp"
#include "holdfast/fakes/cuda_device_streams.hpp"
#include "holdfast/fakes/virtual_clock.hpp"

namespace holdfast::fakes {

struct DeviceOptions {
  int device_count = 1;
  std::uint64_t device_bytes = 64ULL << 20;  // of each device
  // Work left alone happens by itself, at the latest this long after its submission.
  Nanos copy_time_max_ns = kSecond;
  // Registering more host memory than this at once is refused. Every mapping counts by itself.
  std::uint64_t pinned_bytes_max = ~0ULL;
};

enum class DeviceIncidentKind : std::uint8_t {
  unregistered_host,       // submitted from or to host memory that no registration covers: staged, must never happen
  unregistered_in_flight,  // the registration ended under the copy
  host_freed_in_flight,    // the host memory was given away under the copy
  device_freed_in_flight,  // the device memory was freed under the copy
};
std::string_view to_string(DeviceIncidentKind kind);

// Undefined behaviour on a real device. It did no harm here, but nobody may count on that.
struct DeviceIncident {
  DeviceIncidentKind kind = DeviceIncidentKind::unregistered_host;
  CopyView copy;
  std::string culprit;     // the call that took the memory away, with its place
  std::uint64_t call = 0;  // its number among all calls, see FakeCuda::call_count
  Nanos at_ns = 0;
};

// The resource handle is not one: an event or a stream that was never made or has been destroyed.
inline constexpr CudaErrc kInvalidResourceHandle{400};

// A model of CudaBackend; callable from any thread. What it does beyond the concept's contract:
// - Work moves at the moment its CopyChoice says, by default when a wait covers it; whatever a stream holds before it,
//   and whatever that waits for, moves first. Sources are read, destinations written, when it moves.
// - A batch with an empty, null or overflowing copy, with a device range that is not inside one live allocation of the
//   stream's device, or with a host range that is partly registered is refused with invalid_value before any byte
//   moved; so is writing to a read-only registration or mapping. Overlapping destinations pass.
// - Unregistered host memory passes, is read at submission, and leaves a DeviceIncident.
// - There is no current device: a stream knows its own, registrations and events hold for all devices.
// A class derived from it may carry out on a real device what is decided here, and give that one's answers.
class FakeCuda : public CudaBackend, public TimedActor {
 public:
  // Adds itself to the clock. Arena and clock outlive it.
  FakeCuda(Arena& arena, VirtualClock& clock, const DeviceOptions& options = {});
  ~FakeCuda() override;
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;

  // As newly constructed, for the next run in this process. Reset the clock first.
  virtual void reset(const DeviceOptions& options = {});

  // ---- The runtime's calls, as core makes them.
  Status host_register(std::uintptr_t ptr, std::uint64_t bytes, HostAccess access) override;
  Status host_unregister(std::uintptr_t ptr) override;
  Status copy_batch(CopyDirection direction, std::span<const Copy> copies, StreamRef stream) override;
  Result<EventRef> event_create() override;
  Status event_record(EventRef event, StreamRef stream) override;
  Status stream_wait(StreamRef stream, EventRef event) override;
  Result<bool> event_query(EventRef event) override;
  Status event_synchronize(EventRef event) override;
  Status event_destroy(EventRef event) override;
  Status stream_synchronize(StreamRef stream) override;
  Result<PointerAttributes> pointer_attributes(std::uintptr_t ptr) override;

  // ---- The engine's calls: device memory, streams, kernels. They fail in a dead context too.
  // Memory of `device`, readable and writable by the process, aligned to 256 bytes. Fresh memory holds
  // kFreshDeviceByte, freed memory kFreedDeviceByte.
  virtual Result<std::uintptr_t> allocate(std::uint64_t bytes, int device = 0);
  // Copies in flight there are finished first, and each leaves a DeviceIncident.
  virtual Status free(std::uintptr_t address);
  // Native numbers 16, 17, ...; none is given twice between two resets.
  virtual Result<StreamRef> create_stream(int device = 0);
  // Work still in it goes on.
  virtual Status destroy_stream(StreamRef stream);
  // Work in stream order that is no copy. `kernel` runs when it moves; it must not call the device.
  Status launch(StreamRef stream, std::function<void()> kernel, const CopyChoice& choice = {});
  // Before its kernels read device memory here, and after they wrote some. Nothing to do where the memory is here.
  virtual void fetch(std::uintptr_t /*base*/, std::uint64_t /*bytes*/) {}
  virtual void wrote(std::uintptr_t /*base*/, std::uint64_t /*bytes*/) {}

  // ---- The environment's choices.
  // Holds for the next batch that is accepted.
  void choose_next_copy(const CopyChoice& choice);
  // The work that `stream` holds now fails with `errc`: told by the next stream or event synchronize or query that
  // covers that work, or by whatever call comes `surface_after_calls` calls from now, if that is earlier. A failing
  // wait moves nothing; the copies stay in flight. Sticky: once told, every call fails, until tear_down.
  void fail_later(StreamRef stream, CudaErrc errc, bool sticky, std::uint64_t surface_after_calls = kNeverByCalls);
  // The context is destroyed: allocations, streams, registrations, events and errors are gone; work in flight is
  // dropped.
  virtual void tear_down();
  // The process died: work in flight is dropped, registrations and events are gone. Streams and allocations belong to
  // the engine and stay, and so does a sticky error.
  virtual void client_died();

  // ---- What the owner of host memory does.
  // Registering any byte of it needs HostAccess::read_only, and no copy may write there.
  void declare_read_only(std::uintptr_t base, std::uint64_t bytes);
  void declare_read_only(const DualRegion& region) { declare_read_only(region.read_base, region.bytes); }
  // How `location` calls the range, say "seg0".
  void name_host(std::uintptr_t base, std::uint64_t bytes, std::string name);
  // The range is about to be mapped anew at the same address; call it while the old bytes still stand. Registrations
  // of it keep delivering and receiving the old bytes.
  void remapped(std::uintptr_t base, std::uint64_t bytes);
  // The range is given away: each copy in flight there leaves a DeviceIncident that names `culprit`.
  void host_freed(std::uintptr_t base, std::uint64_t bytes, std::string_view culprit);

  // ---- Inspection.
  // The oldest copy in flight that touches the range.
  [[nodiscard]] std::optional<CopyView> in_flight(std::uintptr_t base, std::uint64_t bytes) const;
  [[nodiscard]] std::size_t in_flight_count() const;
  // Valid until the next call that changes them.
  [[nodiscard]] std::span<const Registration> registrations() const { return registrations_.all(); }
  // True when one registration covers the whole range.
  [[nodiscard]] bool is_registered(std::uintptr_t base, std::uint64_t bytes) const;
  [[nodiscard]] std::size_t allocation_count() const { return heap_.allocation_count(); }
  [[nodiscard]] std::size_t event_count() const { return events_.size() - spare_events_.size(); }
  [[nodiscard]] std::size_t stream_count() const { return streams_.live_count(); }
  // The runtime's and the engine's calls since the last reset.
  [[nodiscard]] std::uint64_t call_count() const { return call_count_; }
  [[nodiscard]] bool context_dead() const { return dead_.has_value(); }
  // "dev0+0x200", "seg0+0x40" for a named range, else "host+0x.." from the start of the arena, or "host" outside of it.
  [[nodiscard]] std::string location(std::uintptr_t address) const;
  // Moves out what has happened since the last time, oldest first.
  [[nodiscard]] std::vector<DeviceIncident> drain_incidents();
  [[nodiscard]] bool has_incidents() const { return !incidents_.empty(); }

  // ---- Time.
  [[nodiscard]] Nanos next_due_ns() const override;
  void run_due(Nanos now_ns) override;

 protected:
  // A batch that is valid and about to be queued, and how it is to move. A failure is the answer of copy_batch. Called
  // with the lock.
  virtual Status submitting(std::uint64_t /*batch*/, CopyDirection /*direction*/, std::span<const Copy> /*copies*/,
                            StreamRef /*stream*/, const CopyChoice& /*choice*/) {
    return {};
  }
  // The moves are its; called with the lock.
  void move_with(CopyMover* mover) { streams_.move_with(mover); }
  // The memory of all devices.
  [[nodiscard]] std::uintptr_t region() const { return region_; }
  [[nodiscard]] std::uint64_t region_bytes() const { return region_bytes_; }
  [[nodiscard]] bool is_allocated(std::uintptr_t address) const { return heap_.find(address, 1) != nullptr; }

 private:
  struct Event {
    bool live = false;
    std::uint64_t generation = 0;  // how often the slot was given out
    StreamMark mark;               // of no stream when never recorded
  };
  // An asynchronous error that nobody has been told of.
  struct Latched {
    StreamMark mark;  // the failed work
    CudaErrc errc = CudaErrc::launch_failure;
    bool sticky = false;
    std::uint64_t surface_at_call = kNeverByCalls;
  };
  struct NamedRange {
    std::uintptr_t base = 0;
    std::uint64_t bytes = 0;
    std::string name;
  };

  // Counts the call, moves work that is due by it, and tells an error that is.
  [[nodiscard]] Status begin(std::string_view call);
  [[nodiscard]] Status tell(std::size_t latched, std::string_view call);
  // Tells an error of the work before `mark`.
  [[nodiscard]] Status tell_if_covered(StreamMark mark, std::string_view call);
  [[nodiscard]] Event* find(EventRef event);
  void forget_events();
  // Fills `unregistered_`.
  [[nodiscard]] Status validate(CopyDirection direction, std::span<const Copy> copies, int device);
  [[nodiscard]] StreamQueues::Submission submission(const CopyChoice& choice) const;
  // A DeviceIncident for each copy in flight that touches the range; `finish` moves them and what comes before them.
  void take_away(std::uintptr_t base, std::uint64_t bytes, DeviceIncidentKind kind, std::string_view culprit,
                 bool finish);
  void apply(const DeviceOptions& options);
  [[nodiscard]] std::string locate(std::uintptr_t address) const;

  Arena& arena_;
  VirtualClock& clock_;
  mutable std::mutex mutex_;  // guards everything below, during a call
  DeviceOptions options_;
  std::uintptr_t region_ = 0;
  std::uint64_t region_bytes_ = 0;
  DeviceHeap heap_;
  HostRegistrations registrations_;
  StreamQueues streams_{registrations_};
  std::vector<Event> events_;
  std::vector<std::size_t> spare_events_;
  CopyChoice next_choice_;
  std::uint64_t call_count_ = 0;
  std::vector<Latched> latched_;
  std::optional<CudaErrc> dead_;
  std::vector<NamedRange> names_;
  std::vector<DeviceIncident> incidents_;
  std::vector<std::uint32_t> unregistered_;  // scratch
};

}  // namespace holdfast::fakes
