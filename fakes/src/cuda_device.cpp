#include "holdfast/fakes/cuda_device.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace holdfast::fakes {
namespace {

// An event's number: its slot, and above it how often the slot was given out.
constexpr unsigned kEventSlotBits = 24;
constexpr std::uintptr_t kEventSlotMask = (std::uintptr_t{1} << kEventSlotBits) - 1;

bool overflows(std::uintptr_t base, std::uint64_t bytes) { return bytes > ~std::uintptr_t{0} - base; }

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return b > ~std::uint64_t{0} - a ? ~std::uint64_t{0} : a + b;
}

std::string hex(std::uint64_t value) {
  char text[19];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

Error refused(std::string_view call, std::string detail) {
  return cuda_error(CudaErrc::invalid_value, call, std::move(detail));
}

Error unknown_stream(std::string_view call) { return cuda_error(kInvalidResourceHandle, call, "no such stream"); }
Error unknown_event(std::string_view call) { return cuda_error(kInvalidResourceHandle, call, "no such event"); }

}  // namespace

std::string_view to_string(DeviceIncidentKind kind) {
  switch (kind) {
    case DeviceIncidentKind::unregistered_host:
      return "unregistered_host";
    case DeviceIncidentKind::unregistered_in_flight:
      return "unregistered_in_flight";
    case DeviceIncidentKind::host_freed_in_flight:
      return "host_freed_in_flight";
    case DeviceIncidentKind::device_freed_in_flight:
      return "device_freed_in_flight";
  }
  return {};
}

FakeCuda::FakeCuda(Arena& arena, VirtualClock& clock, const DeviceOptions& options) : arena_(arena), clock_(clock) {
  apply(options);
  clock_.add(*this);
}

FakeCuda::~FakeCuda() { clock_.remove(*this); }

void FakeCuda::reset(const DeviceOptions& options) {
  const std::lock_guard lock(mutex_);
  streams_.reset();
  registrations_.clear();
  registrations_.forget_declarations();
  events_.clear();
  spare_events_.clear();
  next_choice_ = {};
  call_count_ = 0;
  latched_.clear();
  dead_.reset();
  names_.clear();
  incidents_.clear();
  apply(options);
}

void FakeCuda::apply(const DeviceOptions& options) {
  options_ = options;
  // Whole units, so that every device's part starts aligned.
  const std::uint64_t device_bytes = std::max<std::uint64_t>(options.device_bytes, 1);
  options_.device_bytes = (device_bytes + kDeviceAlignBytes - 1) / kDeviceAlignBytes * kDeviceAlignBytes;
  options_.device_count = std::max(options.device_count, 1);
  const std::uint64_t bytes = options_.device_bytes * static_cast<std::uint64_t>(options_.device_count);
  if (bytes > region_bytes_) {
    heap_.clear();
    region_ = arena_.map_private(bytes);
    region_bytes_ = bytes;
  }
  heap_.reset(region_, options_.device_count, options_.device_bytes);
}

// ---- Errors.

Status FakeCuda::begin(std::string_view call) {
  ++call_count_;
  if (call_count_ >= streams_.next_due_call()) streams_.run_due_calls(call_count_);
  if (dead_) return cuda_error(*dead_, call);
  for (std::size_t i = 0; i < latched_.size(); ++i) {
    if (latched_[i].surface_at_call <= call_count_) return tell(i, call);
  }
  return {};
}

Status FakeCuda::tell(std::size_t latched, std::string_view call) {
  const Latched told = latched_[latched];
  latched_.erase(latched_.begin() + static_cast<std::ptrdiff_t>(latched));
  if (told.sticky) {
    dead_ = told.errc;
    latched_.clear();
  }
  return cuda_error(told.errc, call, "of earlier asynchronous work");
}

Status FakeCuda::tell_if_covered(StreamMark mark, std::string_view call) {
  for (std::size_t i = 0; i < latched_.size(); ++i) {
    if (streams_.covers(mark, latched_[i].mark)) return tell(i, call);
  }
  return {};
}

// ---- Registration.

Status FakeCuda::host_register(std::uintptr_t ptr, std::uint64_t bytes, HostAccess access) {
  const std::lock_guard lock(mutex_);
  if (Status begun = begin("host_register"); !begun) return begun;
  if (ptr == 0 || bytes == 0) return refused("host_register", "null or empty");
  if (overflows(ptr, bytes)) return refused("host_register", "the range overflows");
  if (heap_.overlaps(ptr, bytes)) return refused("host_register", "device memory");
  return registrations_.add({ptr, bytes, access}, options_.pinned_bytes_max);
}

Status FakeCuda::host_unregister(std::uintptr_t ptr) {
  const std::lock_guard lock(mutex_);
  if (Status begun = begin("host_unregister"); !begun) return begun;
  if (ptr == 0) return refused("host_unregister", "null");
  if (const Registration* registration = registrations_.starting_at(ptr)) {
    take_away(registration->base, registration->bytes, DeviceIncidentKind::unregistered_in_flight, "host_unregister",
              true);
  }
  return registrations_.remove(ptr);
}

Result<PointerAttributes> FakeCuda::pointer_attributes(std::uintptr_t ptr) {
  const std::lock_guard lock(mutex_);
  if (Status begun = begin("pointer_attributes"); !begun) return begun.error();
  if (const DeviceAllocation* allocation = heap_.find(ptr, 1)) {
    return PointerAttributes{MemoryKind::device, allocation->device};
  }
  const bool registered = registrations_.cover(ptr, 1) != HostCover::unregistered;
  return PointerAttributes{registered ? MemoryKind::registered_host : MemoryKind::unregistered_host, -1};
}

// ---- Copies.

Status FakeCuda::validate(CopyDirection direction, std::span<const Copy> copies, int device) {
  unregistered_.clear();
  if (copies.empty()) return refused("copy_batch", "no copies");
  const bool to_host = direction == CopyDirection::device_to_host;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const Copy& copy = copies[i];
    if (copy.dst == 0 || copy.src == 0) return refused("copy_batch", "null");
    if (copy.bytes == 0) return refused("copy_batch", "a copy of length 0");
    const std::uintptr_t on_device = to_host ? copy.src : copy.dst;
    const std::uintptr_t on_host = to_host ? copy.dst : copy.src;
    // No overflowing range is inside an allocation.
    const DeviceAllocation* allocation = heap_.find(on_device, copy.bytes);
    if (allocation == nullptr) return refused("copy_batch", "not inside one allocation of a device");
    if (allocation->device != device) return refused("copy_batch", "memory of another device");
    switch (registrations_.cover(on_host, copy.bytes)) {
      case HostCover::registered:
        break;
      case HostCover::read_only:
        if (to_host) return refused("copy_batch", "the host memory is registered read-only");
        break;
      case HostCover::part:
        return refused("copy_batch", "the host range leaves its registration");
      case HostCover::unregistered:
        if (heap_.overlaps(on_host, copy.bytes)) return refused("copy_batch", "both sides are device memory");
        if (to_host && registrations_.touches_read_only(on_host, copy.bytes)) {
          return refused("copy_batch", "the host memory is mapped read-only");
        }
        unregistered_.push_back(static_cast<std::uint32_t>(i));
        break;
    }
  }
  return {};
}

StreamQueues::Submission FakeCuda::submission(const CopyChoice& choice) const {
  const Nanos now_ns = clock_.now_ns();
  const Nanos longest_ns = std::max<Nanos>(options_.copy_time_max_ns, 1);
  return {choice, now_ns, longest_ns < kNever - now_ns ? now_ns + longest_ns : kNever, call_count_};
}

Status FakeCuda::copy_batch(CopyDirection direction, std::span<const Copy> copies, StreamRef stream) {
  const std::lock_guard lock(mutex_);
  if (Status begun = begin("copy_batch"); !begun) return begun;
  const int device = streams_.device_of(stream);
  if (device < 0) return unknown_stream("copy_batch");
  if (Status valid = validate(direction, copies, device); !valid) return valid;

  const CopyChoice choice = std::exchange(next_choice_, {});
  if (Status taken = submitting(streams_.next_batch(), direction, copies, stream, choice); !taken) return taken;
  for (const std::uint32_t index : unregistered_) {
    DeviceIncident incident;
    incident.copy = {streams_.next_batch(), index, direction, copies[index], stream.native(), clock_.now_ns()};
    incident.culprit = "copy_batch";
    incident.call = call_count_;
    incident.at_ns = clock_.now_ns();
    incidents_.push_back(std::move(incident));
  }
  const bool staged = direction == CopyDirection::host_to_device;
  streams_.submit(stream, direction, copies,
                  staged ? std::span<const std::uint32_t>(unregistered_) : std::span<const std::uint32_t>(),
                  submission(choice));
  return {};
}

void FakeCuda::choose_next_copy(const CopyChoice& choice) {
  const std::lock_guard lock(mutex_);
  next_choice_ = choice;
}

// ---- Events and waits.

FakeCuda::Event* FakeCuda::find(EventRef event) {
  const std::uintptr_t slot = (event.native & kEventSlotMask) - 1;
  if (slot >= events_.size() || !events_[slot].live) return nullptr;
  return events_[slot].generation == event.native >> kEventSlotBits ? &events_[slot] : nullptr;
}

Result<EventRef> FakeCuda::event_create() {
  const std::lock_guard lock(mutex_);
  if (Status begun = begin("event_create"); !begun) return begun.error();
  if (spare_events_.empty()) {
    spare_events_.push_back(events_.size());
    events_.emplace_back();
  }
  const std::size_t slot = spare_events_.back();
  if (slot >= kEventSlotMask) return cuda_error(CudaErrc::memory_allocation, "event_create");
  spare_events_.pop_back();
  Event& event = events_[slot];
  event.live = true;
  event.mark = {};
  return EventRef{(slot + 1) | (event.generation << kEventSlotBits)};
}

Status FakeCuda::event_record(EventRef event, StreamRef stream) {
  const std::lock_guard lock(mutex_);
  if (Status begun = begin("event_record"); !begun) return begun;
  Event* found = find(event);
  if (found == nullptr) return unknown_event("event_record");
  if (streams_.device_of(stream) < 0) return unknown_stream("event_record");
  found->mark = streams_.mark(stream);
  return {};
}

Status FakeCuda::stream_wait(StreamRef stream, EventRef event) {
  const std::lock_guard lock(mutex_);
  if (Status begun = begin("stream_wait"); !begun) return begun;
  const Event* found = find(event);
  if (found == nullptr) return unknown_event("stream_wait");
  if (streams_.device_of(stream) < 0) return unknown_stream("stream_wait");
  streams_.wait(stream, found->mark, submission({}).due_ns);
  return {};
}

Result<bool> FakeCuda::event_query(EventRef event) {
  const std::lock_guard lock(mutex_);
  if (Status begun = begin("event_query"); !begun) return begun.error();
  const Event* found = find(event);
  if (found == nullptr) return unknown_event("event_query");
  if (Status told = tell_if_covered(found->mark, "event_query"); !told) return told.error();
  return streams_.done(found->mark);
}

Status FakeCuda::event_synchronize(EventRef event) {
  const std::lock_guard lock(mutex_);
  if (Status begun = begin("event_synchronize"); !begun) return begun;
  const Event* found = find(event);
  if (found == nullptr) return unknown_event("event_synchronize");
  if (Status told = tell_if_covered(found->mark, "event_synchronize"); !told) return told;
  streams_.finish(found->mark);
  return {};
}

Status FakeCuda::event_destroy(EventRef event) {
  const std::lock_guard lock(mutex_);
  if (Status begun = begin("event_destroy"); !begun) return begun;
  Event* found = find(event);
  if (found == nullptr) return unknown_event("event_destroy");
  found->live = false;
  ++found->generation;
  spare_events_.push_back(static_cast<std::size_t>(found - events_.data()));
  return {};
}

void FakeCuda::forget_events() {
  for (std::size_t slot = 0; slot < events_.size(); ++slot) {
    if (!events_[slot].live) continue;
    events_[slot].live = false;
    ++events_[slot].generation;
    spare_events_.push_back(slot);
  }
}

Status FakeCuda::stream_synchronize(StreamRef stream) {
  const std::lock_guard lock(mutex_);
  if (Status begun = begin("stream_synchronize"); !begun) return begun;
  if (streams_.device_of(stream) < 0) return unknown_stream("stream_synchronize");
  if (Status told = tell_if_covered(streams_.mark(stream), "stream_synchronize"); !told) return told;
  streams_.finish(streams_.mark(stream));
  return {};
}

// ---- The engine's calls.

Result<std::uintptr_t> FakeCuda::allocate(std::uint64_t bytes, int device) {
  const std::lock_guard lock(mutex_);
  if (Status begun = begin("allocate"); !begun) return begun.error();
  if (device < 0 || device >= heap_.device_count()) return cuda_error(CudaErrc::invalid_device, "allocate");
  if (bytes == 0) return refused("allocate", "empty");
  const std::optional<std::uintptr_t> at = heap_.allocate(bytes, device);
  if (!at) return cuda_error(CudaErrc::memory_allocation, "allocate");
  return *at;
}

Status FakeCuda::free(std::uintptr_t address) {
  const std::lock_guard lock(mutex_);
  if (Status begun = begin("free"); !begun) return begun;
  const DeviceAllocation* allocation = heap_.starting_at(address);
  if (allocation == nullptr) return refused("free", "not the start of an allocation");
  take_away(allocation->base, allocation->bytes, DeviceIncidentKind::device_freed_in_flight, "free", true);
  heap_.free(address);
  return {};
}

Result<StreamRef> FakeCuda::create_stream(int device) {
  const std::lock_guard lock(mutex_);
  if (Status begun = begin("create_stream"); !begun) return begun.error();
  if (device < 0 || device >= heap_.device_count()) return cuda_error(CudaErrc::invalid_device, "create_stream");
  return streams_.create(device);
}

Status FakeCuda::destroy_stream(StreamRef stream) {
  const std::lock_guard lock(mutex_);
  if (Status begun = begin("destroy_stream"); !begun) return begun;
  if (!streams_.destroy(stream)) return unknown_stream("destroy_stream");
  return {};
}

Status FakeCuda::launch(StreamRef stream, std::function<void()> kernel, const CopyChoice& choice) {
  const std::lock_guard lock(mutex_);
  if (Status begun = begin("launch"); !begun) return begun;
  if (streams_.device_of(stream) < 0) return unknown_stream("launch");
  streams_.launch(stream, std::move(kernel), submission(choice));
  return {};
}

// ---- The environment's choices.

void FakeCuda::fail_later(StreamRef stream, CudaErrc errc, bool sticky, std::uint64_t surface_after_calls) {
  const std::lock_guard lock(mutex_);
  if (streams_.device_of(stream) < 0) return;
  latched_.push_back({streams_.mark(stream), errc, sticky, saturating_add(call_count_, surface_after_calls)});
}

void FakeCuda::tear_down() {
  const std::lock_guard lock(mutex_);
  streams_.destroy_all();
  registrations_.clear();
  forget_events();
  heap_.clear();
  next_choice_ = {};
  latched_.clear();
  dead_.reset();
}

void FakeCuda::client_died() {
  const std::lock_guard lock(mutex_);
  streams_.drop_work();
  registrations_.clear();
  forget_events();
  next_choice_ = {};
  std::erase_if(latched_, [](const Latched& latched) { return !latched.sticky; });
}

// ---- What the owner of host memory does.

void FakeCuda::declare_read_only(std::uintptr_t base, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  registrations_.declare_read_only(base, bytes);
}

void FakeCuda::name_host(std::uintptr_t base, std::uint64_t bytes, std::string name) {
  const std::lock_guard lock(mutex_);
  std::erase_if(names_, [&](const NamedRange& range) { return overlap(range.base, range.bytes, base, bytes); });
  names_.push_back({base, bytes, std::move(name)});
}

void FakeCuda::remapped(std::uintptr_t base, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  registrations_.remapped(base, bytes);
}

void FakeCuda::host_freed(std::uintptr_t base, std::uint64_t bytes, std::string_view culprit) {
  const std::lock_guard lock(mutex_);
  take_away(base, bytes, DeviceIncidentKind::host_freed_in_flight, culprit, false);
}

void FakeCuda::take_away(std::uintptr_t base, std::uint64_t bytes, DeviceIncidentKind kind, std::string_view culprit,
                         bool finish) {
  if (streams_.in_flight_count() == 0) return;
  const std::vector<CopyView> copies = streams_.all_touching(base, bytes);
  for (const CopyView& copy : copies) {
    DeviceIncident incident;
    incident.kind = kind;
    incident.copy = copy;
    incident.culprit = std::string(culprit) + "(" + locate(base) + ", " + hex(bytes) + ")";
    incident.call = call_count_;
    incident.at_ns = clock_.now_ns();
    incidents_.push_back(std::move(incident));
  }
  if (!finish) return;
  for (const CopyView& copy : copies) streams_.finish(streams_.mark_behind(copy));
}

// ---- Inspection.

std::optional<CopyView> FakeCuda::in_flight(std::uintptr_t base, std::uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  return streams_.oldest_touching(base, bytes);
}

std::size_t FakeCuda::in_flight_count() const {
  const std::lock_guard lock(mutex_);
  return streams_.in_flight_count();
}

bool FakeCuda::is_registered(std::uintptr_t base, std::uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  if (bytes == 0 || overflows(base, bytes)) return false;
  const HostCover cover = registrations_.cover(base, bytes);
  return cover == HostCover::registered || cover == HostCover::read_only;
}

std::string FakeCuda::location(std::uintptr_t address) const {
  const std::lock_guard lock(mutex_);
  return locate(address);
}

std::string FakeCuda::locate(std::uintptr_t address) const {
  if (heap_.contains(address)) {
    return "dev" + std::to_string(heap_.device_of(address)) + "+" + hex(heap_.offset_in_device(address));
  }
  for (const NamedRange& range : names_) {
    if (overlap(range.base, range.bytes, address, 1)) return range.name + "+" + hex(address - range.base);
  }
  if (arena_.contains(address)) return "host+" + hex(arena_.offset_of(address));
  return "host";
}

std::vector<DeviceIncident> FakeCuda::drain_incidents() {
  const std::lock_guard lock(mutex_);
  return std::exchange(incidents_, {});
}

// ---- Time.

Nanos FakeCuda::next_due_ns() const {
  const std::lock_guard lock(mutex_);
  return streams_.next_due_ns();
}

void FakeCuda::run_due(Nanos now_ns) {
  const std::lock_guard lock(mutex_);
  streams_.run_due(now_ns);
}

}  // namespace holdfast::fakes
