#include "holdfast/sim/hazard_watch.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "holdfast/sim/calls.hpp"

namespace holdfast::sim {
namespace {

bool is_range(std::uintptr_t base, std::uint64_t bytes) { return bytes > 0 && bytes <= ~std::uintptr_t{0} - base; }

}  // namespace

struct HazardWatch::Impl {
  // A plan that has not ended. Records are used again.
  struct Plan {
    PlanPtr ptr;
    bool read = false;
    Nanos started_ns = 0;
    std::vector<std::uintptr_t> slots;
  };

  RunContext& context;
  FluxonBackend& below_fluxon;
  CudaBackend& below_cuda;
  HazardChecker checker;
  bool on = true;

  std::vector<Plan> plans;
  std::size_t live = 0;  // the first so many
  std::vector<MemoryRange> registrations;
  std::vector<Segment> segments;  // as the owner last told of each mapping
  std::vector<MemoryRange> renewed;
  std::vector<std::uintptr_t> let_go, held;  // scratch

  struct Fluxon;
  struct Cuda;
  std::unique_ptr<Fluxon> fluxon;
  std::unique_ptr<Cuda> cuda;

  Impl(RunContext& run, FluxonBackend& fluxon_below, CudaBackend& cuda_below, HazardChecker::Namer namer);

  [[nodiscard]] HazardCaller caller() const { return {context.host, context.clock.now_ns()}; }
  void tell(Call call) { tell(name_of(call)); }
  void tell(std::string_view call);

  void learn(std::span<const Segment> told);
  void open(PlanPtr ptr, std::size_t count, bool read, std::uint64_t value_bytes);
  [[nodiscard]] Plan* find(PlanPtr ptr);
  void forget_expired();
  void release(const Plan& plan);
  void close(Plan& plan);
};

void HazardWatch::Impl::tell(std::string_view call) {
  if (const std::uint64_t checked = checker.take_checked(); checked > 0) {
    context.verdicts.checked(Invariant::no_hazard, checked);
  }
  if (!checker.any_found()) return;
  for (Hazard& hazard : checker.take_found()) {
    context.violate(Invariant::no_hazard, call, std::move(hazard.text), hazard.kinds);
  }
}

// ---- Plans.

// A mapping that a new generation took over holds other bytes, from that generation's first plan on.
void HazardWatch::Impl::learn(std::span<const Segment> told) {
  for (const Segment& segment : told) {
    const auto known = std::ranges::find(segments, segment.write_ptr, &Segment::write_ptr);
    if (known == segments.end()) {
      segments.push_back(segment);
      if (segment.read_ptr != segment.write_ptr) checker.alias({segment.read_ptr, segment.len}, segment.write_ptr);
    } else if (known->generation == segment.generation) {
      continue;
    } else {
      known->generation = segment.generation;
      renewed.push_back({segment.write_ptr, segment.len});
    }
    for (std::size_t i = live; i-- > 0;) {
      const std::uintptr_t slot = plans[i].slots.front();
      if (slot - segment.write_ptr >= segment.len && slot - segment.read_ptr >= segment.len) close(plans[i]);
    }
  }
}

void HazardWatch::Impl::open(PlanPtr ptr, std::size_t count, bool read, std::uint64_t value_bytes) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(ptr.address);
  if (ptr.address == 0 || ptr.address % alignof(std::uint64_t) != 0 || count == 0) return;
  if (words[0] != kPlanMagic || words[1] != count) return;
  if (Plan* stale = find(ptr)) close(*stale);
  if (!read) {
    for (const MemoryRange& memory : std::exchange(renewed, {})) checker.forget(memory);
    forget_expired();
  }
  if (live == plans.size()) plans.emplace_back();
  Plan& plan = plans[live++];
  plan.ptr = ptr;
  plan.read = read;
  plan.started_ns = context.clock.now_ns();
  plan.slots.assign(words + 2, words + 2 + count);
  if (read) {
    checker.transfer(caller(), plan.slots);
    return;
  }
  checker.claim(caller(), plan.slots, value_bytes);
}

// At the time-out the owner takes the slots back by itself. A caller whose waits fail cannot order what comes then, and
// the end of such a plan says nothing of them any more.
void HazardWatch::Impl::forget_expired() {
  for (std::size_t i = live; i-- > 0;) {
    if (plans[i].read || context.clock.now_ns() - plans[i].started_ns < kPlanTimeout) continue;
    for (const std::uintptr_t slot : plans[i].slots) checker.forget_slot(slot);
    close(plans[i]);
  }
}

HazardWatch::Impl::Plan* HazardWatch::Impl::find(PlanPtr ptr) {
  for (std::size_t i = 0; i < live; ++i) {
    if (plans[i].ptr.address == ptr.address) return &plans[i];
  }
  return nullptr;
}

void HazardWatch::Impl::close(Plan& plan) { std::swap(plan, plans[--live]); }

void HazardWatch::Impl::release(const Plan& plan) {
  const auto elsewhere = [&](std::uintptr_t slot) {
    for (std::size_t i = 0; i < live; ++i) {
      const Plan& other = plans[i];
      if (&other != &plan && other.read && std::ranges::find(other.slots, slot) != other.slots.end()) return true;
    }
    return false;
  };
  let_go.clear();
  held.clear();
  for (const std::uintptr_t slot : plan.slots) (elsewhere(slot) ? held : let_go).push_back(slot);
  checker.release(caller(), let_go);
  checker.release_held(caller(), held);
}

struct HazardWatch::Impl::Fluxon final : FluxonBackend {
  Impl& watch;
  explicit Fluxon(Impl& impl) : watch(impl) {}
  [[nodiscard]] FluxonBackend& below() const { return watch.below_fluxon; }

  Result<std::vector<Segment>> wait_local_segments_ready() override {
    auto answer = below().wait_local_segments_ready();
    if (watch.on && answer) watch.learn(*answer);
    return answer;
  }
  Result<PlanPtr> local_fast_put_start(Keys keys, std::uint64_t value_len, const PutOptions& options) override {
    auto answer = below().local_fast_put_start(keys, value_len, options);
    if (watch.on && answer) {
      watch.open(*answer, keys.size(), false, value_len);
      watch.tell(Call::local_fast_put_start);
    }
    return answer;
  }
  // What ends a plan gives its memory away by being called, whatever it answers.
  Result<Future> local_fast_put_commit(PlanPtr plan) override {
    Plan* known = watch.on ? watch.find(plan) : nullptr;
    if (known != nullptr) {
      watch.checker.commit(watch.caller(), known->slots);
      watch.close(*known);
      watch.tell(Call::local_fast_put_commit);
    }
    return below().local_fast_put_commit(plan);
  }
  Status put_abort(PlanPtr plan) override {
    end(plan, Call::put_abort);
    return below().put_abort(plan);
  }
  Result<GetStart> get_start(Keys keys, bool prefix_best_effort,
                             std::span<const std::uint32_t> atomic_group_lens) override {
    return below().get_start(keys, prefix_best_effort, atomic_group_lens);
  }
  Result<PlanPtr> get_transfer(GetHandle handle, std::uint64_t prefix_len) override {
    auto answer = below().get_transfer(handle, prefix_len);
    if (watch.on && answer) watch.open(*answer, prefix_len, true, 0);
    return answer;
  }
  Status cancel_get_transfer(GetHandle handle) override { return below().cancel_get_transfer(handle); }
  Status release_views(PlanPtr plan) override {
    end(plan, Call::release_views);
    return below().release_views(plan);
  }
  // By the kind of plan: the wrong call is somebody else's matter.
  void end(PlanPtr ptr, Call call) {
    Plan* plan = watch.on ? watch.find(ptr) : nullptr;
    if (plan == nullptr) return;
    if (plan->read) {
      watch.release(*plan);
    } else {
      watch.checker.abort(watch.caller(), plan->slots);
    }
    watch.close(*plan);
    watch.tell(call);
  }
  Status remove(std::string_view key) override { return below().remove(key); }
  Status put(std::string_view key, std::span<const std::byte> bytes) override { return below().put(key, bytes); }
  Result<std::vector<std::byte>> get(std::string_view key) override { return below().get(key); }
};

// ---- The device.

struct HazardWatch::Impl::Cuda final : CudaBackend {
  Impl& watch;
  std::vector<Copy> copies;  // scratch

  explicit Cuda(Impl& impl) : watch(impl) {}
  [[nodiscard]] CudaBackend& below() const { return watch.below_cuda; }

  Status host_register(std::uintptr_t ptr, std::uint64_t bytes, HostAccess access) override {
    Status answer = below().host_register(ptr, bytes, access);
    if (watch.on && answer) watch.registrations.push_back({ptr, bytes});
    return answer;
  }
  Status host_unregister(std::uintptr_t ptr) override {
    const auto known = std::ranges::find(watch.registrations, ptr, &MemoryRange::base);
    if (known != watch.registrations.end()) {
      watch.checker.unregister(watch.caller(), *known);
      watch.tell(Call::host_unregister);
    }
    Status answer = below().host_unregister(ptr);
    if (known != watch.registrations.end() && answer) watch.registrations.erase(known);
    return answer;
  }
  // After a failure any subset may be in flight, but for an invalid argument, which is found before.
  Status copy_batch(CopyDirection direction, std::span<const Copy> batch, StreamRef stream) override {
    Status answer = below().copy_batch(direction, batch, stream);
    if (!watch.on || (!answer && is_cuda(answer.error(), CudaErrc::invalid_value))) return answer;
    watch.checker.copy_batch(watch.caller(), stream, possible(batch));
    watch.tell(Call::copy_batch);
    return answer;
  }
  // A refused batch may hold anything.
  std::span<const Copy> possible(std::span<const Copy> batch) {
    const auto is_possible = [](const Copy& copy) {
      return is_range(copy.src, copy.bytes) && is_range(copy.dst, copy.bytes);
    };
    if (std::ranges::all_of(batch, is_possible)) return batch;
    copies.clear();
    std::ranges::copy_if(batch, std::back_inserter(copies), is_possible);
    return copies;
  }
  Result<EventRef> event_create() override { return below().event_create(); }
  Status event_record(EventRef event, StreamRef stream) override {
    Status answer = below().event_record(event, stream);
    if (!watch.on) return answer;
    if (answer) {
      watch.checker.event_record(watch.caller(), event, stream);
    } else {
      watch.checker.event_forget(event);
    }
    return answer;
  }
  Status stream_wait(StreamRef stream, EventRef event) override {
    Status answer = below().stream_wait(stream, event);
    if (watch.on && answer) watch.checker.stream_wait(watch.caller(), stream, event);
    return answer;
  }
  Result<bool> event_query(EventRef event) override {
    auto answer = below().event_query(event);
    if (watch.on && answer && *answer) watch.checker.host_waited(watch.caller(), event);
    return answer;
  }
  Status event_synchronize(EventRef event) override {
    Status answer = below().event_synchronize(event);
    if (watch.on && answer) watch.checker.host_waited(watch.caller(), event);
    return answer;
  }
  Status event_destroy(EventRef event) override {
    Status answer = below().event_destroy(event);
    if (watch.on && answer) watch.checker.event_forget(event);
    return answer;
  }
  Status stream_synchronize(StreamRef stream) override {
    Status answer = below().stream_synchronize(stream);
    if (watch.on && answer) watch.checker.host_waited(watch.caller(), stream);
    return answer;
  }
  Result<PointerAttributes> pointer_attributes(std::uintptr_t ptr) override { return below().pointer_attributes(ptr); }
};

HazardWatch::Impl::Impl(RunContext& run, FluxonBackend& fluxon_below, CudaBackend& cuda_below,
                        HazardChecker::Namer namer)
    : context(run),
      below_fluxon(fluxon_below),
      below_cuda(cuda_below),
      checker(std::move(namer)),
      fluxon(std::make_unique<Fluxon>(*this)),
      cuda(std::make_unique<Cuda>(*this)) {}

HazardWatch::HazardWatch(RunContext& context, FluxonBackend& fluxon, CudaBackend& cuda, HazardChecker::Namer namer)
    : impl_(std::make_unique<Impl>(context, fluxon, cuda, std::move(namer))) {}
HazardWatch::~HazardWatch() = default;

FluxonBackend& HazardWatch::fluxon() { return *impl_->fluxon; }
CudaBackend& HazardWatch::cuda() { return *impl_->cuda; }
HazardChecker& HazardWatch::checker() { return impl_->checker; }

void HazardWatch::kernel(StreamRef stream, std::span<const RangeAccess> accesses) {
  if (!impl_->on) return;
  impl_->checker.kernel(impl_->caller(), stream, accesses);
  impl_->tell(name_of(HazardCall::kernel));
}

void HazardWatch::free_device(StreamRef stream, const MemoryRange& memory) {
  if (!impl_->on) return;
  impl_->checker.free_device(impl_->caller(), stream, memory);
  impl_->tell(name_of(HazardCall::device_free));
}

void HazardWatch::all_ended() {
  impl_->checker.forget_all();
  impl_->live = 0;
  impl_->registrations.clear();
}

void HazardWatch::reset() {
  all_ended();
  impl_->checker.reset();
  impl_->segments.clear();
  impl_->renewed.clear();
  impl_->on = impl_->context.verdicts.enabled(Invariant::no_hazard);
}

}  // namespace holdfast::sim
