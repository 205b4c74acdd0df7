// How long a segment takes to be made ready, by what its pages are when it is registered.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/core/time.hpp"
#include "holdfast/real_device/cuda_device.hpp"
#include "holdfast/real_device/shared_memory.hpp"
#include "holdfast/sim/device_bench.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::device {
namespace {

constexpr std::uint64_t kPieceBytes = 512ULL << 20;  // registered at once, as a grant is
constexpr unsigned kTouchersMax = 16;

struct Way {
  const char* name;
  PageChoice pages;
  bool touched;
};
constexpr Way kWays[] = {{"4 KiB pages, untouched", PageChoice::plain, false},
                         {"4 KiB pages, touched before", PageChoice::plain, true},
                         {"transparent huge pages, touched before", PageChoice::transparent_huge, true},
                         {"reserved huge pages, touched before", PageChoice::huge_tlb, true}};

double seconds_since(Nanos begin_ns) { return static_cast<double>(SteadyClock().now_ns() - begin_ns) / 1e9; }

void touch_by_many(std::uintptr_t base, std::uint64_t bytes, unsigned touchers) {
  std::vector<std::thread> threads;
  const std::uint64_t part = (bytes / touchers + kPageBytes) / kPageBytes * kPageBytes;
  for (std::uint64_t at = 0; at < bytes; at += part) {
    threads.emplace_back([=] { populate_pages({base + at, std::min(part, bytes - at)}); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Seconds, or the refusal; what was registered is unregistered again.
struct Registered {
  double seconds = 0;
  std::string refused;
};
Registered register_in_pieces(CudaDevice& device, std::uintptr_t base, std::uint64_t bytes, HostAccess access,
                              std::vector<std::uintptr_t>& held) {
  const Nanos begin_ns = SteadyClock().now_ns();
  for (std::uint64_t at = 0; at < bytes; at += kPieceBytes) {
    const Status done = device.host_register(base + at, std::min(kPieceBytes, bytes - at), access);
    if (!done) return {0, fmt::format("refused ({})", done.error().detail.substr(0, done.error().detail.find(':')))};
    held.push_back(base + at);
  }
  return {seconds_since(begin_ns), {}};
}

std::string cell(const Registered& registered) {
  return registered.refused.empty() ? fmt::format("{:.2f} s", registered.seconds) : registered.refused;
}

struct Measured {
  std::vector<std::string> row;
  double ready = 0;  // touched and one mapping registered
};

Measured measure(CudaDevice& device, const Way& way, std::uint64_t bytes, unsigned touchers) {
  Measured measured;
  SharedMemory memory(way.pages);
  fakes::DualRegion region;
  try {
    region = memory.map_segment(bytes);
  } catch (const std::bad_alloc&) {
    measured.row = {way.name, "", "", "", "", "the system gives none"};
    return measured;
  }
  const PagesGiven given = memory.pages(region);
  if (way.pages == PageChoice::transparent_huge && given.kind != PageKind::transparent_huge) {
    measured.row = {way.name, "", "", "", "", "the system gives none: " + given.why_not_better};
    return measured;
  }
  double touch = 0;
  if (way.touched) {
    const Nanos begin_ns = SteadyClock().now_ns();
    touch_by_many(region.write_base, bytes, touchers);
    touch = seconds_since(begin_ns);
  }
  std::vector<std::uintptr_t> held;
  const Registered written = register_in_pieces(device, region.write_base, bytes, HostAccess::read_write, held);
  const Registered read = register_in_pieces(device, region.read_base, bytes, HostAccess::read_only, held);
  for (const std::uintptr_t base : held) static_cast<void>(device.host_unregister(base).has_value());
  if (written.refused.empty()) measured.ready = touch + written.seconds;
  measured.row = {way.name,      way.touched ? fmt::format("{:.2f} s", touch) : "",
                  cell(written), measured.ready > 0 ? fmt::format("{:.2f} s", measured.ready) : "",
                  cell(read),    ""};
  return measured;
}

}  // namespace
}  // namespace holdfast::device

namespace holdfast::sim {

Result<std::string> bench_registration(const DeviceBenchOptions& options) {
  auto opened = device::CudaDevice::open(0);
  if (!opened) return std::move(opened.error());
  const unsigned touchers = std::clamp(std::thread::hardware_concurrency(), 1U, device::kTouchersMax);
  using Align = Table::Align;
  Table table({Align::left, Align::right, Align::right, Align::right, Align::right, Align::left});
  table.add({"pages", "touch", "register", "ready", "second mapping", ""});
  double untouched = 0;
  for (const device::Way& way : device::kWays) {
    device::Measured measured = device::measure(**opened, way, options.segment_bytes, touchers);
    if (!way.touched) untouched = measured.ready;
    if (way.touched && measured.ready > 0 && untouched > 0) {
      measured.row.back() = fmt::format("{:.0f}% of untouched", 100 * measured.ready / untouched);
    }
    table.add(std::move(measured.row));
    if (options.progress) options.progress(way.name);
  }
  return fmt::format("a segment of {} GiB in shared memory, made ready once each way; {} threads touch\n\n{}",
                     options.segment_bytes >> 30, touchers, table.text());
}

}  // namespace holdfast::sim
