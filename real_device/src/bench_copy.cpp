#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "holdfast/core/plan_tier_store.hpp"
#include "holdfast/core/time.hpp"
#include "holdfast/fakes/fluxon_owner.hpp"
#include "holdfast/real_device/cuda_device.hpp"
#include "holdfast/sim/device_bench.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::device {
namespace {

using sim::DeviceBenchOptions;
using sim::Table;

constexpr std::uint64_t kPoolBytes = 2ULL << 30;   // of host and of device memory
constexpr std::uint64_t kMovedMax = 512ULL << 20;  // by one measurement, but for larger values
constexpr std::size_t kBatchValues = 4096;         // as many as one plan has
constexpr std::size_t kWindowValues = 560;         // of 7 chunks of 40 layers
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kDeviceGap = 256;
constexpr double kGiB = 1ULL << 30;

// Throws what a call of the runtime said; bench_copies gives it back as an error.
void must(cudaError_t status, std::string_view call) {
  if (status != cudaSuccess) throw cuda_error(static_cast<CudaErrc>(status), call, cudaGetErrorString(status));
}
template <class T>
T must(Result<T> result) {
  if (!result) throw std::move(result.error());
  return std::move(*result);
}
void must(const Status& status) {
  if (!status) throw status.error();
}

// Shared memory, as a segment's is, whose pages are there.
class HostPool {
 public:
  HostPool() : fd_(memfd_create("holdfast-bench", MFD_CLOEXEC)) {
    if (fd_ < 0 || ftruncate(fd_, kPoolBytes) != 0) throw std::bad_alloc();
    void* at = mmap(nullptr, kPoolBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    base_ = reinterpret_cast<std::uintptr_t>(at);
  }
  ~HostPool() {
    munmap(reinterpret_cast<void*>(base_), kPoolBytes);
    close(fd_);
  }
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;
  [[nodiscard]] std::uintptr_t base() const { return base_; }

 private:
  int fd_;
  std::uintptr_t base_ = 0;
};

class DevicePool {
 public:
  explicit DevicePool(std::uint64_t bytes) { must(cudaMalloc(&at_, bytes), "cudaMalloc"); }
  ~DevicePool() { static_cast<void>(cudaFree(at_)); }
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;
  [[nodiscard]] std::uintptr_t base() const { return reinterpret_cast<std::uintptr_t>(at_); }

 private:
  void* at_ = nullptr;
};

StreamRef new_stream() {
  cudaStream_t stream = nullptr;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return StreamRef::from_native(reinterpret_cast<std::uintptr_t>(stream)).value();
}
cudaStream_t stream_of(StreamRef stream) { return reinterpret_cast<cudaStream_t>(stream.native()); }

double seconds_of(const std::function<void()>& work) {
  const SteadyClock clock;
  const Nanos begin_ns = clock.now_ns();
  work();
  return static_cast<double>(clock.now_ns() - begin_ns) / 1e9;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::string size_text(std::uint64_t bytes) {
  for (const char* unit : {"B", "KiB", "MiB"}) {
    if (bytes < 1024) return fmt::format("{} {}", bytes, unit);
    bytes /= 1024;
  }
  return fmt::format("{} GiB", bytes);
}

// `count` values of `bytes`, each with a gap behind it, in no order on either side.
std::vector<Copy> shuffled(CopyDirection direction, std::uint64_t bytes, std::size_t count, std::uintptr_t host,
                           std::uintptr_t device) {
  std::minstd_rand random(static_cast<unsigned>(bytes / 64 + count));
  std::vector<std::size_t> slots(count), places(count);
  std::iota(slots.begin(), slots.end(), 0);
  std::iota(places.begin(), places.end(), 0);
  std::ranges::shuffle(slots, random);
  std::ranges::shuffle(places, random);
  const std::uint64_t slot_stride = (bytes + 2 * kPage - 1) / kPage * kPage;
  const std::uint64_t place_stride = bytes + kDeviceGap;
  std::vector<Copy> copies(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uintptr_t in_host = host + slots[i] * slot_stride;
    const std::uintptr_t on_device = device + places[i] * place_stride;
    copies[i] =
        direction == CopyDirection::device_to_host ? Copy{in_host, on_device, bytes} : Copy{on_device, in_host, bytes};
  }
  return copies;
}

cudaMemcpyKind kind_of(CopyDirection direction) {
  return direction == CopyDirection::device_to_host ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
}

void one_by_one(CopyDirection direction, std::span<const Copy> copies, StreamRef stream) {
  for (const Copy& copy : copies) {
    must(cudaMemcpyAsync(reinterpret_cast<void*>(copy.dst), reinterpret_cast<void*>(copy.src), copy.bytes,
                         kind_of(direction), stream_of(stream)),
         "cudaMemcpyAsync");
  }
}

void in_batches(CudaDevice& device, CopyDirection direction, std::span<const Copy> copies, StreamRef stream) {
  while (!copies.empty()) {
    const std::span<const Copy> now = copies.first(std::min(copies.size(), kBatchValues));
    must(device.copy_batch(direction, now, stream));
    copies = copies.subspan(now.size());
  }
}

class CopyBench {
 public:
  explicit CopyBench(const DeviceBenchOptions& options) : options_(options) {
    must(automatic_->host_register(host_.base(), kPoolBytes, HostAccess::read_write));
  }
  ~CopyBench() { static_cast<void>(automatic_->host_unregister(host_.base())); }
  CopyBench(const CopyBench&) = delete;
  CopyBench& operator=(const CopyBench&) = delete;

  std::string sizes() {
    using Align = Table::Align;
    Table table({Align::right, Align::left, Align::right, Align::right, Align::right, Align::right, Align::right});
    table.add({"value", "direction", "one copy", "one by one", "driver's batch", "kernel", "holdfast"});
    constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
    for (const std::uint64_t bytes : {1 * kKiB, 4 * kKiB, 16 * kKiB, 64 * kKiB, 96 * kKiB, 128 * kKiB, 256 * kKiB,
                                      512 * kKiB, 1 * kMiB, 2 * kMiB, 4608 * kKiB, 64 * kMiB, 1024 * kMiB}) {
      for (const CopyDirection direction : {CopyDirection::host_to_device, CopyDirection::device_to_host}) {
        table.add(row(direction, bytes));
      }
      if (options_.progress) options_.progress(fmt::format("copies of {}", size_text(bytes)));
    }
    return fmt::format(
        "GiB/s of one copy of as many bytes; the others as parts of it, shuffled, with gaps; medians of "
        "{}\n\n{}",
        options_.repetitions, table.text());
  }

  std::string both_ways() {
    constexpr std::uint64_t kValueBytes = 64 << 10;
    const std::size_t count = kMovedMax / 2 / kValueBytes;
    const std::vector<Copy> in =
        shuffled(CopyDirection::host_to_device, kValueBytes, count, host_.base(), device_.base());
    const std::vector<Copy> out = shuffled(CopyDirection::device_to_host, kValueBytes, count,
                                           host_.base() + kPoolBytes / 2, device_.base() + kPoolBytes / 2);
    std::vector<double> big, ours;
    for (std::uint32_t i = 0; i <= options_.repetitions; ++i) {
      big.push_back(seconds_of([&] {
        const Copy whole_in{device_.base(), host_.base(), kMovedMax / 2};
        const Copy whole_out{host_.base() + kPoolBytes / 2, device_.base() + kPoolBytes / 2, kMovedMax / 2};
        one_by_one(CopyDirection::host_to_device, std::span(&whole_in, 1), stream_);
        one_by_one(CopyDirection::device_to_host, std::span(&whole_out, 1), other_);
        wait();
      }));
      ours.push_back(seconds_of([&] {
        in_batches(*automatic_, CopyDirection::host_to_device, in, stream_);
        in_batches(*automatic_, CopyDirection::device_to_host, out, other_);
        wait();
      }));
    }
    const double limit = rate(big, kMovedMax), reached = rate(ours, kMovedMax);
    return fmt::format(
        "both directions at once, 64 KiB values: {:.1f} GiB/s in all, {:.0f}% of two big copies ({:.1f})\n", reached,
        100 * reached / limit, limit);
  }

 private:
  void wait() {
    must(cudaStreamSynchronize(stream_of(stream_)), "cudaStreamSynchronize");
    must(cudaStreamSynchronize(stream_of(other_)), "cudaStreamSynchronize");
  }
  // The first is not counted.
  static double rate(std::vector<double> seconds, std::uint64_t bytes) {
    seconds.erase(seconds.begin());
    return static_cast<double>(bytes) / median(std::move(seconds)) / kGiB;
  }

  std::vector<std::string> row(CopyDirection direction, std::uint64_t bytes) {
    const std::uint64_t slot_stride = (bytes + 2 * kPage - 1) / kPage * kPage;
    const std::size_t count = std::max<std::size_t>(
        1, std::min({kMovedMax / bytes, kPoolBytes / slot_stride, kPoolBytes / (bytes + kDeviceGap)}));
    const std::uint64_t moved = count * bytes;
    const std::vector<Copy> copies = shuffled(direction, bytes, count, host_.base(), device_.base());
    const Copy whole = direction == CopyDirection::device_to_host ? Copy{host_.base(), device_.base(), moved}
                                                                  : Copy{device_.base(), host_.base(), moved};
    std::array<std::vector<double>, 5> seconds;
    for (std::uint32_t i = 0; i <= options_.repetitions; ++i) {
      const auto timed = [&](std::size_t way, const auto& submit) {
        seconds[way].push_back(seconds_of([&] {
          submit();
          wait();
        }));
      };
      timed(0, [&] { one_by_one(direction, std::span(&whole, 1), stream_); });
      timed(1, [&] { one_by_one(direction, copies, stream_); });
      timed(2, [&] { in_batches(*engines_, direction, copies, stream_); });
      timed(3, [&] { in_batches(*kernel_, direction, copies, stream_); });
      timed(4, [&] { in_batches(*automatic_, direction, copies, stream_); });
    }
    const double limit = rate(seconds[0], moved);
    std::vector<std::string> cells{size_text(bytes),
                                   direction == CopyDirection::device_to_host ? "to host" : "to device",
                                   fmt::format("{:.1f}", limit)};
    for (std::size_t way = 1; way < seconds.size(); ++way) {
      cells.push_back(fmt::format("{:.1f}%", 100 * rate(seconds[way], moved) / limit));
    }
    return cells;
  }

  const DeviceBenchOptions& options_;
  std::unique_ptr<CudaDevice> automatic_ = must(CudaDevice::open(0));
  // Registrations are the process's: these two only know of none, so that they join nothing.
  std::unique_ptr<CudaDevice> engines_ = must(CudaDevice::open(0, {0, 0}));
  std::unique_ptr<CudaDevice> kernel_ = must(CudaDevice::open(0, {~0ULL, ~0ULL}));
  HostPool host_;
  DevicePool device_{kPoolBytes};
  StreamRef stream_ = new_stream();
  StreamRef other_ = new_stream();
};

// ---- The whole store: put and restore, end to end, against the same bytes in one copy.

class StoreBench {
 public:
  explicit StoreBench(const DeviceBenchOptions& options) : options_(options) {}

  std::string run() {
    using Align = Table::Align;
    Table table({Align::right, Align::right, Align::left, Align::right, Align::right, Align::right});
    table.add({"value", "values", "operation", "one copy", "store", "core and owner"});
    for (const std::uint64_t bytes : {std::uint64_t{16} << 10, std::uint64_t{64} << 10, std::uint64_t{512} << 10}) {
      for (const std::size_t values : {std::size_t{80}, kWindowValues}) {
        for (auto& row : rows(bytes, values)) table.add(std::move(row));
      }
      if (options_.progress) options_.progress(fmt::format("the store with values of {}", size_text(bytes)));
    }
    return fmt::format(
        "the whole store, against one copy of as many bytes (GiB/s); core and owner: what is left when\n"
        "the time of the copies by themselves is taken away\n\n{}",
        table.text());
  }

 private:
  using StoreRuntime = RuntimeOf<FluxonBackend, CudaBackend, fakes::VirtualClock, StdSync>;

  std::vector<std::vector<std::string>> rows(std::uint64_t bytes, std::size_t count) {
    fakes::OwnerOptions owner_options;
    owner_options.segment_bytes = kPoolBytes / 2;
    owner_options.grant_bytes = kPoolBytes / 2;
    owner_options.overwrite_checks = false;
    fakes::Arena arena;
    fakes::VirtualClock clock;
    fakes::FakeOwner owner(arena, clock, owner_options);
    std::unique_ptr<CudaDevice> device = must(CudaDevice::open(0));
    DevicePool memory((bytes + kDeviceGap) * count);
    const StreamRef stream = new_stream();
    StdSync sync;
    FluxonBackend& fluxon = owner;
    CudaBackend& cuda = *device;
    StoreRuntime runtime{fluxon, cuda, clock, sync};
    PlanOptions plan_options;
    plan_options.registry.piece_bytes = owner_options.grant_bytes;
    plan_options.overlap = {.mode = CopyMode::overlapped};
    PlanTierStore<StoreRuntime> store(runtime, plan_options);

    std::vector<std::string> names;
    std::vector<DeviceTensor> tensors;
    std::vector<ReadCopy> copies;
    for (std::size_t i = 0; i < count; ++i) {
      names.push_back(std::string(64, 'a') + ":L" + std::to_string(i));
      tensors.push_back({memory.base() + i * (bytes + kDeviceGap), bytes, 0, true});
      copies.push_back({i, 0, i, 0, bytes});
    }
    const std::vector<std::string_view> keys(names.begin(), names.end());
    const std::vector<std::uint64_t> value_bytes(count, bytes);
    const std::vector<std::uint32_t> groups(count / 80, 80);
    const std::uint64_t moved = bytes * count;
    std::array<std::vector<double>, 6> seconds;
    for (std::uint32_t i = 0; i < 4 * options_.repetitions + 1; ++i) {
      Absorbed absorbed;
      const auto timed = [&](std::size_t way, const std::function<void()>& work) {
        const double took = seconds_of(work);
        if (i > 0) seconds[way].push_back(took);  // the first one registers the segment
      };
      timed(0, [&] { static_cast<void>(must(store.put(keys, tensors, stream, absorbed))); });
      clock.advance_by(kSecond);
      timed(1, [&] {
        const ReadOutcome read = store.restore({keys, value_bytes, groups, tensors, copies}, stream, absorbed);
        if (read.verdict != ReadVerdict::restored) throw read.error;
      });
      // The same bytes by themselves, value by value and as one.
      const std::uintptr_t slots = owner.segment().write_ptr;
      for (const CopyDirection direction : {CopyDirection::device_to_host, CopyDirection::host_to_device}) {
        std::vector<Copy> plain;
        for (std::size_t at = 0; at < count; ++at) {
          const std::uintptr_t slot = slots + at * ((bytes + kPage - 1) / kPage * kPage);
          plain.push_back(direction == CopyDirection::device_to_host ? Copy{slot, tensors[at].data, bytes}
                                                                     : Copy{tensors[at].data, slot, bytes});
        }
        const Copy whole = direction == CopyDirection::device_to_host ? Copy{slots, memory.base(), moved}
                                                                      : Copy{memory.base(), slots, moved};
        const std::size_t first = direction == CopyDirection::device_to_host ? 2 : 4;
        timed(first, [&] {
          must(device->copy_batch(direction, plain, stream));
          must(device->stream_synchronize(stream));
        });
        timed(first + 1, [&] {
          one_by_one(direction, std::span(&whole, 1), stream);
          must(device->stream_synchronize(stream));
        });
      }
      must(store.remove({keys, value_bytes, clock.now_ns()}, absorbed).failures.empty()
               ? Status()
               : Status(make_error(Errc::incomplete, "bench", "a value could not be removed")));
      clock.advance_by(kSecond);
    }
    must(store.shut_down());
    const auto row = [&](std::size_t way, std::size_t first, const char* name) {
      const double took = median(seconds[way]), copied = median(seconds[first]), whole = median(seconds[first + 1]);
      return std::vector<std::string>{
          size_text(bytes),
          std::to_string(count),
          name,
          fmt::format("{:.1f}", static_cast<double>(moved) / whole / kGiB),
          fmt::format("{:.1f}%", 100 * whole / took),
          fmt::format("{:.2f} us a value", 1e6 * (took - copied) / static_cast<double>(count))};
    };
    return {row(0, 2, "put"), row(1, 4, "restore")};
  }

  const DeviceBenchOptions& options_;
};

}  // namespace
}  // namespace holdfast::device

namespace holdfast::sim {

Result<std::string> bench_copies(const DeviceBenchOptions& options) {
  if (auto opened = device::CudaDevice::open(0); !opened) return std::move(opened.error());
  try {
    device::CopyBench copies(options);
    std::string text = copies.sizes();
    text += "\n" + copies.both_ways();
    return text + "\n" + device::StoreBench(options).run();
  } catch (const Error& error) {
    return error;
  }
}

}  // namespace holdfast::sim
