// The CUDA runtime the core is given: registration, batches of asynchronous copies, events, waits, attributes.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "holdfast/core/result.hpp"

namespace holdfast {

// The cudaError_t numbers that the core tells apart (Origin::cuda).
enum class CudaErrc : std::int32_t {
  invalid_value = 1,
  memory_allocation = 2,
  no_device = 100,
  invalid_device = 101,
  illegal_address = 700,
  host_memory_already_registered = 712,
  host_memory_not_registered = 713,
  launch_failure = 719,
  not_supported = 801,
};
[[nodiscard]] Error cuda_error(CudaErrc errc, std::string_view call, std::string detail = {});
[[nodiscard]] bool is_cuda(const Error& error, CudaErrc errc);
// True for errors after which every later call fails too: only tearing the context down helps.
[[nodiscard]] bool is_sticky(const Error& error);

// An explicit stream. There is no default stream here: 0 and the legacy and per-thread handles are refused.
class StreamRef {
 public:
  [[nodiscard]] static Result<StreamRef> from_native(std::uintptr_t native);
  [[nodiscard]] std::uintptr_t native() const { return native_; }
  friend bool operator==(StreamRef, StreamRef) = default;

 private:
  explicit StreamRef(std::uintptr_t native) : native_(native) {}
  std::uintptr_t native_;
};

struct EventRef {
  std::uintptr_t native = 0;
  friend bool operator==(EventRef, EventRef) = default;
};

enum class CopyDirection : std::uint8_t { device_to_host, host_to_device };
std::string_view to_string(CopyDirection direction);

// One copy of a batch; addresses in this process or on the device, by the batch's direction.
struct Copy {
  std::uintptr_t dst = 0;
  std::uintptr_t src = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Copy&, const Copy&) = default;
};

enum class HostAccess : std::uint8_t { read_write, read_only };

enum class MemoryKind : std::uint8_t { unregistered_host, registered_host, device };
struct PointerAttributes {
  MemoryKind kind = MemoryKind::unregistered_host;
  int device = -1;  // the owning device for device memory, else -1
  friend bool operator==(const PointerAttributes&, const PointerAttributes&) = default;
};

// All calls may run on several threads. Failures carry Origin::cuda; an asynchronous error of earlier work may surface
// at any call.
template <class R>
concept CudaRuntime =
    requires(R& cuda, std::uintptr_t ptr, std::uint64_t bytes, HostAccess access, CopyDirection direction,
             std::span<const Copy> copies, StreamRef stream, EventRef event) {
      // Pins [ptr, ptr + bytes). AlreadyRegistered for any overlap; InvalidValue for a read-only mapping without the
      // flag.
      { cuda.host_register(ptr, bytes, access) } -> std::same_as<Status>;
      // `ptr` is the start of a registration. Only when nothing is in flight there.
      { cuda.host_unregister(ptr) } -> std::same_as<Status>;
      // Returns before any byte moved; no order within the batch. After a failure any subset may be in flight.
      { cuda.copy_batch(direction, copies, stream) } -> std::same_as<Status>;
      { cuda.event_create() } -> std::same_as<Result<EventRef>>;
      // Captures what the stream has so far; recording again replaces it.
      { cuda.event_record(event, stream) } -> std::same_as<Status>;
      // Later work of `stream` waits for the event's last record.
      { cuda.stream_wait(stream, event) } -> std::same_as<Status>;
      // True: done (also when never recorded). False: not ready.
      { cuda.event_query(event) } -> std::same_as<Result<bool>>;
      // Everything the event covers is done when this succeeds. A failure proves nothing.
      { cuda.event_synchronize(event) } -> std::same_as<Status>;
      { cuda.event_destroy(event) } -> std::same_as<Status>;
      // Everything submitted to the stream is done when this succeeds. A failure proves nothing.
      { cuda.stream_synchronize(stream) } -> std::same_as<Status>;
      { cuda.pointer_attributes(ptr) } -> std::same_as<Result<PointerAttributes>>;
    };

}  // namespace holdfast
