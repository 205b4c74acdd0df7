// The whole chain of layers over the fakes, with one registered segment, one stream and one tensor, and no store above.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/fakes/fluxon_owner.hpp"
#include "holdfast/sim/injector.hpp"
#include "holdfast/sim/monitor.hpp"
#include "holdfast/sim/tap.hpp"

namespace holdfast::sim {

using Names = std::vector<std::string_view>;
using Codes = std::vector<std::int32_t>;

template <class T>
std::int32_t code_of(const Result<T>& answer) {
  return answer ? 0 : answer.error().code;
}
inline std::int32_t code_of(FluxonErrc errc) { return static_cast<std::int32_t>(errc); }
inline std::int32_t code_of(CudaErrc errc) { return static_cast<std::int32_t>(errc); }

class FilePort final : public FileBackend {
 public:
  Result<std::string> read(const std::string& path, std::uint64_t bytes_max) override {
    return files.read(path, bytes_max);
  }
  Status write(const std::string& path, const std::string& bytes) override { return files.write(path, bytes); }
  Status sync(const std::string& path) override { return files.sync(path); }
  Status rename(const std::string& from, const std::string& to) override { return files.rename(from, to); }
  Status remove(const std::string& path) override { return files.remove(path); }

  fakes::MemoryFiles files;
};

class LayerChain : public testing::Test {
 protected:
  static constexpr std::uint64_t kValueBytes = 256;
  static constexpr std::uint64_t kTensorBytes = 64 << 10;

  static fakes::OwnerOptions owner_options() {
    fakes::OwnerOptions options;
    options.grant_bytes = 16 * kSlotAlignment;
    options.segment_bytes = 4 * options.grant_bytes;
    return options;
  }

  explicit LayerChain(std::uint64_t arena_shift_pages = 0) : arena({.base_shift_pages = arena_shift_pages}) {
    const Segment segment = owner.segment();
    device.declare_read_only(segment.read_ptr, segment.len);
    tensor = device.allocate(kTensorBytes).value();
    for (std::uint64_t i = 0; i < kTensorBytes; ++i) bytes_at(tensor)[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
    monitor.declare_tensor(tensor, kTensorBytes);
    context.begin_step(1, StepKind::generate);
    injector.begin_step();
    learn_and_register();
  }

  static std::uint8_t* bytes_at(std::uintptr_t address) { return reinterpret_cast<std::uint8_t*>(address); }

  FluxonBackend& fluxon() { return monitor.fluxon(); }
  CudaBackend& cuda() { return monitor.cuda(); }

  void learn_and_register() {
    const Segment segment = fluxon().wait_local_segments_ready().value().front();
    EXPECT_TRUE(cuda().host_register(segment.write_ptr, segment.len, HostAccess::read_write));
    EXPECT_TRUE(cuda().host_register(segment.read_ptr, segment.len, HostAccess::read_only));
  }

  // The faults of step 1, where the tests begin.
  void inject(std::vector<FaultPoint> faults, std::vector<Choice> choices = {}) {
    trace.faults = std::move(faults);
    trace.choices = std::move(choices);
    for (FaultPoint& fault : trace.faults) fault.step = 1;
    for (Choice& choice : trace.choices) choice.step = 1;
    context.begin_step(1, context.step_kind);
    injector.load(trace);
    injector.begin_step();
  }
  void next_step(std::uint32_t id, StepKind kind) {
    context.begin_step(id, kind);
    injector.begin_step();
  }

  std::vector<std::uintptr_t> addresses_of(PlanPtr plan, std::size_t count) const {
    if (plan.address == 0) return std::vector<std::uintptr_t>(count);
    const auto* words = reinterpret_cast<const std::uint64_t*>(plan.address);
    return {words + 2, words + 2 + count};
  }
  PlanPtr start(const Names& keys, std::uint64_t bytes = kValueBytes) {
    Result<PlanPtr> plan = fluxon().local_fast_put_start(keys, bytes, {});
    EXPECT_TRUE(plan) << to_string(plan.error());
    return plan.value_or(PlanPtr{});
  }
  // One copy for each key, tensor byte i * bytes on.
  std::vector<Copy> copies_of(PlanPtr plan, std::size_t count, CopyDirection direction,
                              std::uint64_t bytes = kValueBytes) const {
    std::vector<Copy> copies;
    const auto addresses = addresses_of(plan, count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uintptr_t on_device = tensor + i * bytes;
      if (direction == CopyDirection::device_to_host) {
        copies.push_back({addresses[i], on_device, bytes});
      } else {
        copies.push_back({on_device, addresses[i], bytes});
      }
    }
    return copies;
  }
  Status copy_out(PlanPtr plan, std::size_t count, std::uint64_t bytes = kValueBytes) {
    return cuda().copy_batch(CopyDirection::device_to_host,
                             copies_of(plan, count, CopyDirection::device_to_host, bytes), stream);
  }
  FluxonBackend::Future commit(PlanPtr plan) { return std::move(fluxon().local_fast_put_commit(plan).value()); }
  // A whole put as it should be.
  Result<Codes> put(const Names& keys, std::uint64_t bytes = kValueBytes) {
    const PlanPtr plan = start(keys, bytes);
    EXPECT_TRUE(copy_out(plan, keys.size(), bytes));
    EXPECT_TRUE(cuda().stream_synchronize(stream));
    return commit(plan).wait(10 * kSecond);
  }
  void pass(Nanos length_ns) { clock.advance_by(length_ns); }
  void put_and_route(const Names& keys) {
    EXPECT_EQ(put(keys).value(), Codes(keys.size(), 0));
    pass(kSecond);
  }
  GetStart look(const Names& keys) { return fluxon().get_start(keys, true, {}).value(); }
  PlanPtr read(const Names& keys) { return fluxon().get_transfer(look(keys).handle, keys.size()).value(); }

  std::uint64_t tensor_digest(std::uint64_t offset, std::uint64_t bytes = kValueBytes) const {
    return XXH3_64bits(reinterpret_cast<const void*>(tensor + offset), bytes);
  }

  // The names of the invariants violated so far.
  std::vector<std::string> violated() const {
    std::vector<std::string> names;
    for (const Violation& violation : context.verdicts.violations()) names.emplace_back(name_of(violation.invariant));
    return names;
  }
  std::string message() const {
    return context.verdicts.violations().empty() ? std::string() : context.verdicts.violations().front().message;
  }
  std::uint64_t checks(Invariant invariant) const {
    return context.verdicts.checks()[static_cast<std::size_t>(invariant)];
  }
  std::uint64_t reached(Mark mark) const { return context.marks.counts[static_cast<std::size_t>(mark)]; }

  fakes::Arena arena;
  fakes::VirtualClock clock;
  fakes::FakeOwner owner{arena, clock, owner_options()};
  fakes::FakeCuda device{arena, clock, {.device_bytes = 1 << 20, .copy_time_max_ns = 3600 * kSecond}};
  FilePort files;
  RunContext context{clock};
  Tap tap{context, owner, device};
  Injector injector{context, tap.fluxon(), tap.cuda(), files, owner, device};
  Monitor monitor{context, injector.fluxon(), injector.cuda(), injector.files(), tap};
  StreamRef stream = device.create_stream().value();
  std::uintptr_t tensor = 0;
  Trace trace;
};

}  // namespace holdfast::sim
