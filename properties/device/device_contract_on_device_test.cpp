// The contract's lines over a real device, by itself and under the simulator's gates; and what was measured of it that
// no fake is asked for. A driver that behaves otherwise is noticed here.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "../../real_device/src/copy_kernel.hpp"
#include "../device_contract.hpp"
#include "device_fixture.hpp"
#include "holdfast/real_device/gated_cuda.hpp"
#include "holdfast/sim/executor.hpp"
#include "holdfast/sim/scenarios.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::device {
namespace {

// Everything by the driver: the kernel is only for memory that is registered.
class RealDeviceUnderTest final : public DeviceUnderTest {
 public:
  explicit RealDeviceUnderTest(fakes::Arena& /*arena*/) {}
  ~RealDeviceUnderTest() override {
    release();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (void* each : memory_) EXPECT_EQ(cudaFree(each), cudaSuccess);
    for (cudaStream_t each : streams_) EXPECT_EQ(cudaStreamDestroy(each), cudaSuccess);
  }
  CudaBackend& cuda() override { return *device_; }
  StreamRef stream() override {
    cudaStream_t made = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), cudaSuccess);
    streams_.push_back(made);
    return StreamRef::from_native(reinterpret_cast<std::uintptr_t>(made)).value();
  }
  std::uintptr_t allocate(std::uint64_t bytes) override {
    void* made = nullptr;
    EXPECT_EQ(cudaMalloc(&made, bytes), cudaSuccess);
    memory_.push_back(made);
    return reinterpret_cast<std::uintptr_t>(made);
  }
  void fill(std::uintptr_t at, char with, std::uint64_t bytes) override {
    EXPECT_EQ(cudaMemset(reinterpret_cast<void*>(at), with, bytes), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  std::string bytes(std::uintptr_t at, std::uint64_t bytes) override {
    std::string copy(bytes, '\0');
    EXPECT_EQ(cudaMemcpy(copy.data(), reinterpret_cast<void*>(at), bytes, cudaMemcpyDeviceToHost), cudaSuccess);
    return copy;
  }
  void hold(StreamRef on) override { gates_.push_back(std::make_unique<StreamGate>(as_stream(on))); }
  void release() override { gates_.clear(); }
  // Of 16 private pages the driver delivered the new bytes, so the line of the contract is not asked of it here.
  bool map_anew(std::uintptr_t /*base*/, std::uint64_t /*bytes*/) override { return false; }

 private:
  static cudaStream_t as_stream(StreamRef ref) { return reinterpret_cast<cudaStream_t>(ref.native()); }

  std::unique_ptr<CudaDevice> device_ = CudaDevice::open(0, {0, 0}).value();
  std::vector<cudaStream_t> streams_;
  std::vector<void*> memory_;
  std::vector<std::unique_ptr<StreamGate>> gates_;
};

// The fake's moments on the device. Its pages stay the same: they are the simulator's.
class GatedDeviceUnderTest final : public FakeDeviceUnderTest {
 public:
  explicit GatedDeviceUnderTest(fakes::Arena& arena) : FakeDeviceUnderTest(arena, &make) {}
  bool map_anew(std::uintptr_t /*base*/, std::uint64_t /*bytes*/) override { return false; }

 private:
  static std::unique_ptr<fakes::FakeCuda> make(fakes::Arena& arena, fakes::VirtualClock& clock,
                                               const fakes::DeviceOptions& options) {
    return std::make_unique<GatedCuda>(arena, clock, options);
  }
};

template <class Under>
DeviceKind device_kind(std::string name) {
  return {std::move(name), [](fakes::Arena& arena) { return std::make_unique<Under>(arena); }};
}

}  // namespace
}  // namespace holdfast::device

namespace holdfast {
namespace {

INSTANTIATE_TEST_SUITE_P(OnDevice, DeviceContract,
                         testing::Values(device::device_kind<FakeDeviceUnderTest>("Fake"),
                                         device::device_kind<device::RealDeviceUnderTest>("Real"),
                                         device::device_kind<device::GatedDeviceUnderTest>("Gated")),
                         [](const testing::TestParamInfo<DeviceKind>& kind) { return kind.param.name; });

}  // namespace
}  // namespace holdfast

namespace holdfast::device {
namespace {

// ---- What was measured.

TEST(MeasuredOnDevice, ABatchOnTheLegacyStreamIsRefused) {
  void* host = nullptr;
  void* memory = nullptr;
  ASSERT_EQ(cudaHostAlloc(&host, 4096, cudaHostAllocDefault), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&memory, 4096), cudaSuccess);
  std::size_t bytes = 4096;
  std::size_t first = 0;
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  const void* from = host;
  EXPECT_EQ(cudaMemcpyBatchAsync(&memory, &from, &bytes, 1, &attributes, &first, 1, nullptr), cudaErrorInvalidValue);
  static_cast<void>(cudaGetLastError());
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
}

// Ends with 0 when every call after the fault fails with its error, in every stream, after clearing and after a reset.
void fault_and_look() {
  auto device = CudaDevice::open(0).value();
  cudaStream_t own = nullptr;
  cudaStream_t another = nullptr;
  void* memory = nullptr;
  const auto is = [](cudaError_t status, cudaError_t expected, const char* what) {
    if (status == expected) return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(status));
    _exit(1);
  };
  is(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), cudaSuccess, "create");
  is(cudaStreamCreateWithFlags(&another, cudaStreamNonBlocking), cudaSuccess, "create");
  const KernelCopy wrong{0x1000, 0x2000, 64};
  is(launch_copies(&wrong, 1, own), cudaSuccess, "the launch");
  is(cudaStreamSynchronize(own), cudaErrorIllegalAddress, "its own stream");
  static_cast<void>(cudaGetLastError());
  is(cudaStreamSynchronize(another), cudaErrorIllegalAddress, "another stream");
  static_cast<void>(cudaGetLastError());
  is(cudaMalloc(&memory, 64), cudaErrorIllegalAddress, "an allocation");
  const auto event = device->event_create();
  if (event || !is_sticky(event.error())) _exit(2);
  static_cast<void>(cudaDeviceReset());
  if (cudaMalloc(&memory, 64) == cudaSuccess) _exit(3);
  _exit(0);
}

TEST(MeasuredOnDeviceDeathTest, AKernelsFaultIsStickyForEveryStreamAndSurvivesClearingAndAReset) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(fault_and_look(), testing::ExitedWithCode(0), "");
}

TEST(MeasuredOnDevice, ARefusedLaunchIsNotSticky) {
  EXPECT_NE(cudaMemcpyAsync(nullptr, nullptr, 64, cudaMemcpyDeviceToDevice, nullptr), cudaSuccess);
  static_cast<void>(cudaGetLastError());
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

// ---- The simulator over the device.

sim::RunOptions with_end_state() {
  sim::RunOptions options;
  options.keep_end_state = true;
  return options;
}

struct OnDevice {
  GatedCuda* device = nullptr;
  sim::RunResult run;
};

OnDevice run_on_device(const sim::Trace& trace) {
  OnDevice made;
  sim::SystemFactory factory(sim::make_production_system);
  factory.make_device = [&](fakes::Arena& arena, fakes::VirtualClock& clock, const fakes::DeviceOptions& options) {
    auto gated = std::make_unique<GatedCuda>(arena, clock, options);
    made.device = gated.get();
    return gated;
  };
  sim::Executor executor(factory);
  made.run = executor.run(trace, with_end_state());
  EXPECT_GT(made.device->gated_batches(), 0U);
  EXPECT_EQ(made.device->opened_to_go_on(), 0U) << "a stream was held up by another's gate";
  return made;
}

class ScenariosOnDevice : public testing::TestWithParam<std::string> {};

TEST_P(ScenariosOnDevice, GoAsOverTheFake) {
  const sim::Trace trace = sim::scenario_named(GetParam()).value();
  const OnDevice real = run_on_device(trace);
  sim::Executor fake(sim::make_production_system);
  const sim::RunResult there = fake.run(trace, with_end_state());
  EXPECT_EQ(real.run.log_hash, there.log_hash);
  EXPECT_EQ(real.run.end_state, there.end_state);
  EXPECT_EQ(real.run.frame_hashes, there.frame_hashes);
  EXPECT_TRUE(real.run.violations.empty()) << real.run.violations.front().message;
}

INSTANTIATE_TEST_SUITE_P(All, ScenariosOnDevice, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const sim::Scenario& scenario : sim::scenarios()) names.emplace_back(scenario.name);
                           return names;
                         }()),
                         [](const testing::TestParamInfo<std::string>& name) { return name.param; });

}  // namespace
}  // namespace holdfast::device
