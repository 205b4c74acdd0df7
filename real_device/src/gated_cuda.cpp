#include "holdfast/real_device/gated_cuda.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include "copy_kernel.hpp"
#include "normalised.hpp"

namespace holdfast::device {
namespace {

constexpr std::size_t kWords = 4096;
// Real time. What waits longer than this for the device is held up by another stream's gate.
constexpr std::chrono::milliseconds kHeldUp{100};

cudaStream_t native_stream(StreamRef stream) { return reinterpret_cast<cudaStream_t>(stream.native()); }
cudaEvent_t native_event(EventRef event) { return reinterpret_cast<cudaEvent_t>(event.native); }
StreamRef ref_of(cudaStream_t stream) {
  return StreamRef::from_native(reinterpret_cast<std::uintptr_t>(stream)).value();
}

void must(cudaError_t status, const char* call) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status));
}

std::unique_ptr<CudaDevice> opened(const CopyThresholds& thresholds) {
  // Streams that share a queue of the device would wait at each other's gates.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  auto device = CudaDevice::open(0, thresholds);
  if (!device) throw std::runtime_error(to_string(device.error()));
  return std::move(*device);
}

StreamRef new_real_stream() {
  cudaStream_t made = nullptr;
  must(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return ref_of(made);
}

using StreamWaitValue = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned);

// The runtime has no such call; its driver has.
StreamWaitValue wait_value_call() {
  static const StreamWaitValue call = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    constexpr unsigned kSince = 12000;
    must(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &found, kSince, cudaEnableDefault, &result),
         "cudaGetDriverEntryPointByVersion");
    if (found == nullptr) throw std::runtime_error("this driver has no cuStreamWaitValue32");
    return reinterpret_cast<StreamWaitValue>(found);
  }();
  return call;
}

}  // namespace

GatedCuda::GatedCuda(fakes::Arena& arena, fakes::VirtualClock& clock, const fakes::DeviceOptions& options)
    : FakeCuda(arena, clock, options),
      device_(opened({})),
      engines_(opened({.to_device_bytes = 0, .to_host_bytes = 0})),
      own_(new_real_stream()) {
  void* words = nullptr;
  must(cudaHostAlloc(&words, kWords * sizeof(std::uint32_t), cudaHostAllocMapped), "cudaHostAlloc");
  words_ = static_cast<volatile std::uint32_t*>(words);
  void* seen = nullptr;
  must(cudaHostGetDevicePointer(&seen, words, 0), "cudaHostGetDevicePointer");
  words_on_device_ = reinterpret_cast<std::uintptr_t>(seen);
  for (std::size_t word = kWords; word > 0; --word) spare_words_.push_back(word - 1);
  fit_memory();
  move_with(this);
}

GatedCuda::~GatedCuda() {
  settle();
  drop_client();
  drop_streams();
  for (const StreamRef stream : spare_streams_) static_cast<void>(cudaStreamDestroy(native_stream(stream)));
  static_cast<void>(cudaStreamDestroy(native_stream(own_)));
  for (const EventRef event : spare_events_) static_cast<void>(cudaEventDestroy(native_event(event)));
  if (mirror_ != 0) static_cast<void>(cudaHostUnregister(reinterpret_cast<void*>(mirror_)));
  static_cast<void>(cudaFree(reinterpret_cast<void*>(memory_)));
  static_cast<void>(cudaFreeHost(const_cast<std::uint32_t*>(words_)));
  static_cast<void>(cudaGetLastError());
  move_with(nullptr);
}

void GatedCuda::reset(const fakes::DeviceOptions& options) {
  settle();
  drop_client();
  drop_streams();
  FakeCuda::reset(options);
  fit_memory();
}

// The mirror may lie elsewhere now, or be longer.
void GatedCuda::fit_memory() {
  if (mirror_ == region() && memory_bytes_ == region_bytes()) return;
  if (mirror_ != 0) must(cudaHostUnregister(reinterpret_cast<void*>(mirror_)), "cudaHostUnregister");
  if (memory_ != 0) must(cudaFree(reinterpret_cast<void*>(memory_)), "cudaFree");
  mirror_ = memory_ = 0;
  void* made = nullptr;
  must(cudaMalloc(&made, region_bytes()), "cudaMalloc");
  memory_ = reinterpret_cast<std::uintptr_t>(made);
  memory_bytes_ = region_bytes();
  must(cudaHostRegister(reinterpret_cast<void*>(region()), region_bytes(), cudaHostRegisterDefault),
       "cudaHostRegister");
  mirror_ = region();
}

// ---- Gates.

Status GatedCuda::submitting(std::uint64_t batch, CopyDirection direction, std::span<const Copy> copies,
                             StreamRef stream, const fakes::CopyChoice& choice) {
  Stream* on = find(stream);
  if (on == nullptr) return cuda_error(fakes::kInvalidResourceHandle, "copy_batch", "no such stream");
  const bool pinned = std::ranges::all_of(copies, [&](const Copy& copy) {
    return is_pinned(direction == CopyDirection::device_to_host ? copy.dst : copy.src, copy.bytes);
  });
  // Both ways are gone: the kernel takes only what is registered.
  CudaDevice& way = pinned && batch % 2 == 0 ? *device_ : *engines_;
  // What is not registered the driver copies before it comes back, and so waits for all that is before it.
  if (!pinned) open_all();
  const std::size_t count = copies.size();
  fakes::fill_order(order_, choice.split ? 2 * count : count, choice.order_seed);
  Batch& made = batches_[batch];
  ++gated_batches_;
  for (std::size_t first = 0; first < order_.size(); first += count) {
    pieces_.clear();
    for (std::size_t i = first; i < first + count; ++i) {
      const Copy& copy = copies[order_[i] % count];
      const std::uint64_t half = choice.split ? copy.bytes / 2 : copy.bytes;
      const std::uint64_t from = order_[i] < count ? 0 : half;
      const std::uint64_t bytes = order_[i] < count ? half : copy.bytes - half;
      if (bytes > 0) pieces_.push_back({on_device(copy.dst) + from, on_device(copy.src) + from, bytes});
    }
    Stage& stage = made.stages.emplace_back();
    stage.pieces_end = first + count;
    if (Status taken = submit_stage(stage, direction, pieces_, *on, way, pinned); !taken) {
      for (Stage& each : made.stages) finish(each);
      batches_.erase(batch);
      return taken;
    }
  }
  on->last_batch = batch;
  return {};
}

Status GatedCuda::submit_stage(Stage& stage, CopyDirection direction, std::span<const Copy> pieces,
                               const Stream& stream, CudaDevice& way, bool held_back) {
  if (spare_words_.empty()) throw std::runtime_error("more batches in flight than there are gates");
  stage.word = spare_words_.back();
  spare_words_.pop_back();
  words_[stage.word] = held_back ? 0 : 1;
  stage.opened = !held_back;
  stage.moved = spare_event();
  const CUresult held =
      wait_value_call()(reinterpret_cast<CUstream>(stream.real.native()),
                        words_on_device_ + stage.word * sizeof(std::uint32_t), 1, CU_STREAM_WAIT_VALUE_GEQ);
  if (held != CUDA_SUCCESS) throw std::runtime_error("cuStreamWaitValue32: " + std::to_string(held));
  Status taken = pieces.empty() ? Status() : way.copy_batch(direction, pieces, stream.real);
  must(cudaEventRecord(native_event(stage.moved), native_stream(stream.real)), "cudaEventRecord");
  return taken;
}

void GatedCuda::open(Stage& stage) {
  // Behind everything that the host wrote before: the device reads it from the moment it sees the word.
  __atomic_store_n(&words_[stage.word], 1U, __ATOMIC_SEQ_CST);
  stage.opened = true;
}

void GatedCuda::open_all() {
  for (auto& [number, batch] : batches_) {
    for (Stage& stage : batch.stages) open(stage);
  }
}

void GatedCuda::finish(Stage& stage) {
  open(stage);
  await(stage.moved);
  spare_events_.push_back(stage.moved);
  spare_words_.push_back(stage.word);
}

void GatedCuda::move(std::uint64_t batch, std::size_t pieces) {
  const auto found = batches_.find(batch);
  if (found == batches_.end()) return;
  std::vector<Stage>& stages = found->second.stages;
  std::size_t moved = 0;
  while (moved < stages.size() && stages[moved].pieces_end <= pieces) finish(stages[moved++]);
  stages.erase(stages.begin(), stages.begin() + static_cast<std::ptrdiff_t>(moved));
  if (stages.empty()) batches_.erase(found);
}

void GatedCuda::await(EventRef real) {
  const auto begun = std::chrono::steady_clock::now();
  bool patient = true;
  for (std::uint32_t turn = 0; cudaEventQuery(native_event(real)) == cudaErrorNotReady; ++turn) {
    static_cast<void>(cudaGetLastError());
    if (turn % 64 != 63) continue;
    sched_yield();
    if (!patient || std::chrono::steady_clock::now() - begun < kHeldUp) continue;
    patient = false;
    if (std::ranges::any_of(batches_, [](const auto& each) {
          return std::ranges::any_of(each.second.stages, [](const Stage& stage) { return !stage.opened; });
        })) {
      ++opened_to_go_on_;
      open_all();
    }
  }
  // What the work itself came to is told by the call that waits for it.
  static_cast<void>(cudaGetLastError());
}

bool GatedCuda::behind_closed_gate(const Event& event) const {
  const auto found = batches_.find(event.batch);
  return found != batches_.end() &&
         std::ranges::any_of(found->second.stages, [](const Stage& stage) { return !stage.opened; });
}

void GatedCuda::settle() {
  open_all();
  for (auto& [number, batch] : batches_) {
    for (Stage& stage : batch.stages) finish(stage);
  }
  batches_.clear();
}

void GatedCuda::drop_client() {
  for (const HostRangeOf& range : pinned_) static_cast<void>(device_->host_unregister(range.base));
  pinned_.clear();
  for (const auto& [number, event] : events_) static_cast<void>(device_->event_destroy(event.real));
  events_.clear();
}

void GatedCuda::drop_streams() {
  for (const auto& [number, stream] : streams_) spare_streams_.push_back(stream.real);
  streams_.clear();
}

void GatedCuda::client_died() {
  settle();
  FakeCuda::client_died();
  drop_client();
}

void GatedCuda::tear_down() {
  settle();
  FakeCuda::tear_down();
  drop_client();
  drop_streams();
}

// ---- The runtime's calls: the fake says what is to move before, the device answers.

GatedCuda::Stream* GatedCuda::find(StreamRef stream) {
  const auto found = streams_.find(stream.native());
  return found == streams_.end() ? nullptr : &found->second;
}

GatedCuda::Event* GatedCuda::find(EventRef event) {
  const auto found = events_.find(event.native);
  return found == events_.end() ? nullptr : &found->second;
}

bool GatedCuda::is_pinned(std::uintptr_t base, std::uint64_t bytes) const {
  return std::ranges::any_of(pinned_, [&](const HostRangeOf& range) {
    return base >= range.base && base - range.base < range.bytes && bytes <= range.bytes - (base - range.base);
  });
}

Status GatedCuda::host_register(std::uintptr_t ptr, std::uint64_t bytes, HostAccess access) {
  Status fake = FakeCuda::host_register(ptr, bytes, access);
  if (context_dead() || is_device_memory(ptr)) return fake;
  Status real = device_->host_register(ptr, bytes, access);
  if (real) pinned_.push_back({ptr, bytes});
  if (fake && !real) static_cast<void>(FakeCuda::host_unregister(ptr));
  return real;
}

Status GatedCuda::host_unregister(std::uintptr_t ptr) {
  Status fake = FakeCuda::host_unregister(ptr);
  if (context_dead() || is_device_memory(ptr)) return fake;
  // The driver may wait for whatever is under way.
  if (!batches_.empty()) {
    ++opened_to_unregister_;
    open_all();
  }
  Status real = device_->host_unregister(ptr);
  if (real) std::erase_if(pinned_, [&](const HostRangeOf& range) { return range.base == ptr; });
  return real;
}

Status GatedCuda::copy_batch(CopyDirection direction, std::span<const Copy> copies, StreamRef stream) {
  Status fake = FakeCuda::copy_batch(direction, copies, stream);
  const Stream* on = find(stream);
  if (fake || on == nullptr || context_dead() || !is_harmless(copies)) return fake;
  return device_->copy_batch(direction, copies, on->real);
}

Result<EventRef> GatedCuda::event_create() {
  Result<EventRef> fake = FakeCuda::event_create();
  if (!fake) return fake;
  Result<EventRef> real = device_->event_create();
  if (!real) return real;
  events_[fake->native] = {*real, 0};
  return fake;
}

Status GatedCuda::event_record(EventRef event, StreamRef stream) {
  Status fake = FakeCuda::event_record(event, stream);
  Event* known = find(event);
  const Stream* on = find(stream);
  if (known == nullptr || on == nullptr || context_dead()) return fake;
  known->batch = on->last_batch;
  return device_->event_record(known->real, on->real);
}

Status GatedCuda::stream_wait(StreamRef stream, EventRef event) {
  Status fake = FakeCuda::stream_wait(stream, event);
  const Event* known = find(event);
  const Stream* on = find(stream);
  if (known == nullptr || on == nullptr || context_dead()) return fake;
  return device_->stream_wait(on->real, known->real);
}

Result<bool> GatedCuda::event_query(EventRef event) {
  Result<bool> fake = FakeCuda::event_query(event);
  const Event* known = find(event);
  if (known == nullptr || context_dead() || !fake) return fake;
  if (*fake) await(known->real);
  const bool held = behind_closed_gate(*known);
  Result<bool> real = device_->event_query(known->real);
  if (!real) return real;
  return done_of(*fake, *real, held);
}

Status GatedCuda::event_synchronize(EventRef event) {
  Status fake = FakeCuda::event_synchronize(event);
  const Event* known = find(event);
  if (known == nullptr || context_dead()) return fake;
  await(known->real);
  return device_->event_synchronize(known->real);
}

Status GatedCuda::event_destroy(EventRef event) {
  Status fake = FakeCuda::event_destroy(event);
  const Event* known = find(event);
  if (known == nullptr || context_dead()) return fake;
  const EventRef real = known->real;
  events_.erase(event.native);
  return device_->event_destroy(real);
}

Status GatedCuda::stream_synchronize(StreamRef stream) {
  Status fake = FakeCuda::stream_synchronize(stream);
  const Stream* on = find(stream);
  if (on == nullptr || context_dead()) return fake;
  const EventRef reached = spare_event();
  must(cudaEventRecord(native_event(reached), native_stream(on->real)), "cudaEventRecord");
  await(reached);
  spare_events_.push_back(reached);
  return device_->stream_synchronize(on->real);
}

Result<PointerAttributes> GatedCuda::pointer_attributes(std::uintptr_t ptr) {
  Result<PointerAttributes> fake = FakeCuda::pointer_attributes(ptr);
  if (context_dead() || (is_device_memory(ptr) && !is_allocated(ptr))) return fake;
  return device_->pointer_attributes(on_device(ptr));
}

// ---- The engine's calls.

Result<std::uintptr_t> GatedCuda::allocate(std::uint64_t bytes, int device) {
  Result<std::uintptr_t> made = FakeCuda::allocate(bytes, device);
  if (made) wrote(*made, bytes);
  return made;
}

Result<StreamRef> GatedCuda::create_stream(int device) {
  Result<StreamRef> made = FakeCuda::create_stream(device);
  if (!made) return made;
  if (spare_streams_.empty()) spare_streams_.push_back(new_real_stream());
  streams_.insert_or_assign(made->native(), Stream{spare_streams_.back(), 0});
  spare_streams_.pop_back();
  return made;
}

Status GatedCuda::destroy_stream(StreamRef stream) {
  Status fake = FakeCuda::destroy_stream(stream);
  if (const Stream* on = find(stream)) {
    // Whoever gets it next comes after the work that it still holds.
    spare_streams_.insert(spare_streams_.begin(), on->real);
    streams_.erase(stream.native());
  }
  return fake;
}

void GatedCuda::fetch(std::uintptr_t base, std::uint64_t bytes) {
  if (is_device_memory(base)) copy_now(base, on_device(base), bytes);
}

void GatedCuda::wrote(std::uintptr_t base, std::uint64_t bytes) {
  if (is_device_memory(base)) copy_now(on_device(base), base, bytes);
}

void GatedCuda::copy_now(std::uintptr_t dst, std::uintptr_t src, std::uint64_t bytes) {
  if (bytes == 0) return;
  const KernelCopy copy{dst, src, bytes};
  must(launch_copies(&copy, 1, native_stream(own_)), "launch");
  const EventRef done = spare_event();
  must(cudaEventRecord(native_event(done), native_stream(own_)), "cudaEventRecord");
  await(done);
  spare_events_.push_back(done);
}

EventRef GatedCuda::spare_event() {
  if (spare_events_.empty()) {
    cudaEvent_t made = nullptr;
    must(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    return {reinterpret_cast<std::uintptr_t>(made)};
  }
  const EventRef event = spare_events_.back();
  spare_events_.pop_back();
  return event;
}

}  // namespace holdfast::device
