// The fake owner's segment, registered with a real device; streams, memory and gates of that device.
#pragma once

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/fakes/fluxon_owner.hpp"
#include "holdfast/real_device/cuda_device.hpp"
#include "holdfast/sim/hazard_watch.hpp"

namespace holdfast::device {

// Holds what is submitted to a stream after it until it is opened. Open before anything waits for the stream; registers
// and frees of memory wait for it too.
class StreamGate {
 public:
  explicit StreamGate(cudaStream_t stream) {
    EXPECT_EQ(cudaLaunchHostFunc(
                  stream, [](void* opened) { static_cast<std::atomic<bool>*>(opened)->wait(false); }, opened_.get()),
              cudaSuccess);
  }
  ~StreamGate() { open(); }
  StreamGate(const StreamGate&) = delete;
  StreamGate& operator=(const StreamGate&) = delete;

  void open() {
    opened_->store(true);
    opened_->notify_all();
  }

 private:
  std::unique_ptr<std::atomic<bool>> opened_ = std::make_unique<std::atomic<bool>>(false);
};

using Names = std::vector<std::string_view>;

class DeviceTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kValueBytes = 4096;
  static constexpr std::uint64_t kTensorBytes = 1 << 20;

  static fakes::OwnerOptions owner_options() {
    fakes::OwnerOptions options;
    options.segment_bytes = 8 << 20;
    options.grant_bytes = 2 << 20;
    return options;
  }

  DeviceTest() {
    for (StreamRef* ref : {&stream, &engine}) *ref = new_stream();
    tensor = new_tensor(kTensorBytes);
    EXPECT_TRUE(watch.fluxon().wait_local_segments_ready());
  }
  ~DeviceTest() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (const std::uintptr_t base : registered_) EXPECT_TRUE(device->host_unregister(base));
    for (const std::uintptr_t memory : memory_) EXPECT_EQ(cudaFree(reinterpret_cast<void*>(memory)), cudaSuccess);
    for (cudaStream_t each : streams_) EXPECT_EQ(cudaStreamDestroy(each), cudaSuccess);
  }

  // Both mappings, for tests without a store that would do so.
  void register_segment() {
    const Segment segment = owner.segment();
    for (const std::uintptr_t base : {segment.write_ptr, segment.read_ptr}) {
      const HostAccess access = base == segment.write_ptr ? HostAccess::read_write : HostAccess::read_only;
      ASSERT_TRUE(watch.cuda().host_register(base, segment.len, access));
      registered_.push_back(base);
    }
  }
  void unregister(std::uintptr_t base) {
    ASSERT_TRUE(watch.cuda().host_unregister(base));
    std::erase(registered_, base);
  }

  StreamRef new_stream() {
    cudaStream_t made = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), cudaSuccess);
    streams_.push_back(made);
    return StreamRef::from_native(reinterpret_cast<std::uintptr_t>(made)).value();
  }
  static cudaStream_t native(StreamRef ref) { return reinterpret_cast<cudaStream_t>(ref.native()); }

  // Device memory with a pattern in it.
  std::uintptr_t new_tensor(std::uint64_t bytes, std::uint8_t fill = 1) {
    void* made = nullptr;
    EXPECT_EQ(cudaMalloc(&made, bytes), cudaSuccess);
    memory_.push_back(reinterpret_cast<std::uintptr_t>(made));
    const std::string pattern = pattern_of(bytes, fill);
    EXPECT_EQ(cudaMemcpy(made, pattern.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return memory_.back();
  }
  static std::string pattern_of(std::uint64_t bytes, std::uint8_t fill) {
    std::string pattern(bytes, '\0');
    for (std::uint64_t i = 0; i < bytes; ++i) pattern[i] = static_cast<char>(fill + i * 7 + i / 256);
    return pattern;
  }
  // What the device holds, whatever streams there are: waits for none of them.
  static std::string device_bytes(std::uintptr_t at, std::uint64_t bytes) {
    std::string copy(bytes, '\0');
    cudaStream_t own = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(copy.data(), reinterpret_cast<void*>(at), bytes, cudaMemcpyDeviceToHost, own),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(own), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(own), cudaSuccess);
    return copy;
  }
  static std::string host_bytes(std::uintptr_t at, std::uint64_t bytes) {
    return {reinterpret_cast<const char*>(at), static_cast<std::size_t>(bytes)};
  }

  PlanPtr put_started(const Names& keys) { return watch.fluxon().local_fast_put_start(keys, kValueBytes, {}).value(); }
  PlanPtr read_started(const Names& keys) {
    const GetHandle handle = watch.fluxon().get_start(keys, true, {}).value().handle;
    return watch.fluxon().get_transfer(handle, keys.size()).value();
  }
  static std::uintptr_t slot_of(PlanPtr plan, std::size_t i = 0) {
    return reinterpret_cast<const std::uint64_t*>(plan.address)[2 + i];
  }
  // Key i's value is the tensor's i-th kValueBytes.
  void copy(PlanPtr plan, std::size_t count, CopyDirection direction, std::uintptr_t memory, StreamRef on) {
    std::vector<Copy> copies;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uintptr_t slot = slot_of(plan, i);
      const std::uintptr_t here = memory + i * kValueBytes;
      copies.push_back(direction == CopyDirection::device_to_host ? Copy{slot, here, kValueBytes}
                                                                  : Copy{here, slot, kValueBytes});
    }
    ASSERT_TRUE(watch.cuda().copy_batch(direction, copies, on));
  }
  void copy_out(PlanPtr plan, std::size_t count = 1) {
    copy(plan, count, CopyDirection::device_to_host, tensor, stream);
  }
  void copy_in(PlanPtr plan, std::uintptr_t memory) { copy(plan, 1, CopyDirection::host_to_device, memory, stream); }
  void commit(PlanPtr plan) {
    Result<FluxonBackend::Future> pending = watch.fluxon().local_fast_put_commit(plan);
    ASSERT_TRUE(pending);
    ASSERT_TRUE(pending->wait(kSecond));
    clock.advance_by(kSecond);
  }
  void stored(const Names& keys) {
    const PlanPtr plan = put_started(keys);
    copy_out(plan, keys.size());
    ASSERT_TRUE(watch.cuda().stream_synchronize(stream));
    commit(plan);
  }
  // The engine overwrites the tensor in the order of its stream.
  void produce(std::uint8_t byte, StreamRef on) {
    const sim::RangeAccess all{{tensor, kTensorBytes}, true};
    watch.kernel(on, std::span(&all, 1));
    ASSERT_EQ(cudaMemsetAsync(reinterpret_cast<void*>(tensor), byte, kTensorBytes, native(on)), cudaSuccess);
  }
  EventRef recorded(StreamRef on) {
    const EventRef event = watch.cuda().event_create().value();
    EXPECT_TRUE(watch.cuda().event_record(event, on));
    return event;
  }

  // The names of the invariants violated so far.
  [[nodiscard]] std::vector<std::string> violated() const {
    std::vector<std::string> names;
    for (const sim::Violation& violation : context.verdicts.violations()) {
      names.emplace_back(name_of(violation.invariant));
    }
    return names;
  }
  [[nodiscard]] std::string message() const {
    return context.verdicts.violations().empty() ? std::string() : context.verdicts.violations().front().message;
  }
  [[nodiscard]] std::uint64_t hazard_checks() const {
    return context.verdicts.checks()[static_cast<std::size_t>(sim::Invariant::no_hazard)];
  }

 private:
  std::vector<cudaStream_t> streams_;
  std::vector<std::uintptr_t> memory_;
  std::vector<std::uintptr_t> registered_;

 protected:
  fakes::Arena arena;
  fakes::VirtualClock clock;
  fakes::FakeOwner owner{arena, clock, owner_options()};
  std::unique_ptr<CudaDevice> device = CudaDevice::open(0).value();
  sim::RunContext context{clock};
  sim::HazardWatch watch{context, owner, *device, [](std::uintptr_t address) { return std::to_string(address); }};
  StreamRef stream = StreamRef::from_native(0x100).value();  // of the store's copies
  StreamRef engine = stream;
  std::uintptr_t tensor = 0;
};

}  // namespace holdfast::device
