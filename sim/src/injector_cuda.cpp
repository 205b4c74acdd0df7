// Faults and choices at the calls to the device.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "holdfast/sim/rng.hpp"
#include "injector_impl.hpp"

namespace holdfast::sim {
namespace {

constexpr std::int32_t cuda_code(CudaErrc errc) { return static_cast<std::int32_t>(errc); }

std::string_view cuda_worded(std::int32_t code) {
  switch (static_cast<CudaErrc>(code)) {
    case CudaErrc::invalid_value:
      return "invalid argument";
    case CudaErrc::memory_allocation:
      return "out of memory";
    case CudaErrc::illegal_address:
      return "an illegal memory access was encountered";
    case CudaErrc::host_memory_already_registered:
      return "part or all of the requested memory range is already mapped";
    case CudaErrc::launch_failure:
      return "unspecified launch failure";
    case CudaErrc::not_supported:
      return "operation not supported";
    default:
      return "failed";
  }
}

}  // namespace

struct Injector::Impl::Cuda final : CudaBackend {
  Impl& injector;
  std::vector<Copy> subset;

  explicit Cuda(Impl& impl) : injector(impl) {}

  [[nodiscard]] CudaBackend& below() const { return injector.below_cuda; }

  Error told(const FaultPoint& point, std::string subject = {}) {
    if (point.code == cuda_code(CudaErrc::illegal_address)) {
      injector.context_dead = true;
      if (injector.owner.live_plans() > 0) injector.context.marks.reach(Mark::context_dead_plan_open);
    }
    injector.fire(point, Origin::cuda, point.code, std::move(subject));
    return cuda_failure(point.call, point.code, cuda_worded(point.code));
  }

  // The call fails for everybody, or finds a fault of its own, or goes through.
  template <class Answer, class Through>
  Answer call(Call which, Through&& through) {
    const Arrival arrival = injector.arrive(which);
    if (arrival.dead) return dead_cuda(which);
    if (injector.context_dead) return context_lost(which);
    if (arrival.fault != nullptr) return told(*arrival.fault);
    Answer answer = through();
    injector.leave(arrival);
    return answer;
  }

  static Error context_lost(Call which) {
    constexpr std::int32_t kSticky = cuda_code(CudaErrc::illegal_address);
    return cuda_failure(which, kSticky, cuda_worded(kSticky));
  }

  Status host_register(std::uintptr_t ptr, std::uint64_t bytes, HostAccess access) override {
    const Arrival arrival = injector.arrive(Call::host_register, {.host = ptr});
    if (arrival.dead) return dead_cuda(Call::host_register);
    if (injector.context_dead) return context_lost(Call::host_register);
    if (arrival.fault != nullptr) {
      const FaultPoint& point = *arrival.fault;
      if (point.code != cuda_code(CudaErrc::host_memory_already_registered)) return told(point);
      // Somebody else was first; what the attributes say of the range must be true.
      const std::uint64_t half = bytes / 2;
      // The whole of it only where others map it too: nobody registers the store's own memory and means it.
      const bool whole = point.arg == 0 && (injector.mappings.empty() || injector.mapping_of(ptr) != nullptr) &&
                         !injector.strangers_seen.contains(ptr);
      const std::uint64_t first = point.arg >= 2 ? half : 0;
      const std::uint64_t length = whole ? bytes : point.arg <= 1 ? half : bytes - half;
      // Two of them with a part each would look like one with the whole, and neither keeps it.
      const bool nobody = std::ranges::none_of(injector.strangers, [&](const Stranger& stranger) {
        return stranger.base >= ptr && stranger.base - ptr < bytes;
      });
      if (nobody && below().host_register(ptr + first, length, access)) {
        injector.strangers.push_back({ptr + first, whole, injector.owner.incarnation()});
        if (whole) injector.strangers_seen.insert(ptr);
      }
      Status answer = below().host_register(ptr, bytes, access);
      if (!answer && is_cuda(answer.error(), CudaErrc::host_memory_already_registered)) return told(point);
      return answer;
    }
    Status answer = below().host_register(ptr, bytes, access);
    injector.leave(arrival);
    return answer;
  }

  Status host_unregister(std::uintptr_t ptr) override {
    return call<Status>(Call::host_unregister, [&] { return below().host_unregister(ptr); });
  }

  Status copy_batch(CopyDirection direction, std::span<const Copy> copies, StreamRef stream) override {
    const Arrival arrival = injector.arrive(Call::copy_batch, {.copies = copies});
    if (arrival.dead) return dead_cuda(Call::copy_batch);
    if (injector.context_dead) return context_lost(Call::copy_batch);
    const bool chosen = injector.has_choices(Call::copy_batch) && choose_copy();
    Status answer;
    if (arrival.fault == nullptr) {
      answer = below().copy_batch(direction, copies, stream);
    } else {
      if (arrival.fault->kind == FaultKind::part) {
        Rng rng(arrival.fault->arg);
        subset.clear();
        for (const Copy& copy : copies) {
          if (rng.ratio(1, 2)) subset.push_back(copy);
        }
        if (!subset.empty()) static_cast<void>(below().copy_batch(direction, subset, stream));
      }
      answer = told(*arrival.fault, arrival.fault->kind == FaultKind::part
                                        ? fmt::format("{} of {} copies", subset.size(), copies.size())
                                        : std::string());
    }
    if (chosen) injector.device.choose_next_copy({});  // in case that nothing was submitted
    injector.leave(arrival);
    return answer;
  }

  bool choose_copy() {
    using enum ChoiceKind;
    const std::uint32_t nth = injector.current_nth(Call::copy_batch);
    const auto choice_of = [&](ChoiceKind kind) { return injector.choice_at(Call::copy_batch, nth, std::array{kind}); };
    fakes::CopyChoice copy;
    bool chosen = false;
    if (choice_of(copy_at_submit) != nullptr) {
      copy.moment = fakes::CopyMoment::at_submission;
      chosen = true;
    }
    if (const Choice* at = choice_of(copy_after_calls)) {
      copy.moment = fakes::CopyMoment::after_calls;
      copy.calls = at->arg;
      chosen = true;
    }
    if (const Choice* at = choice_of(copy_order)) {
      copy.order_seed = at->arg;
      chosen = true;
    }
    if (const Choice* at = choice_of(copy_split)) {
      copy.split = true;
      copy.order_seed = at->arg;
      chosen = true;
    }
    if (chosen) injector.device.choose_next_copy(copy);
    return chosen;
  }

  Result<EventRef> event_create() override {
    return call<Result<EventRef>>(Call::event_create, [&] { return below().event_create(); });
  }
  Status event_record(EventRef event, StreamRef stream) override {
    return call<Status>(Call::event_record, [&] { return below().event_record(event, stream); });
  }
  Status stream_wait(StreamRef stream, EventRef event) override {
    return call<Status>(Call::stream_wait, [&] { return below().stream_wait(stream, event); });
  }
  Result<bool> event_query(EventRef event) override {
    const Arrival arrival = injector.arrive(Call::event_query);
    if (arrival.dead) return dead_cuda(Call::event_query);
    if (injector.context_dead) return context_lost(Call::event_query);
    if (arrival.fault != nullptr) {
      if (arrival.fault->kind != FaultKind::late) return told(*arrival.fault);
      injector.fire(*arrival.fault, Origin::core, 0, "not ready");
      return false;
    }
    auto answer = below().event_query(event);
    injector.leave(arrival);
    return answer;
  }
  Status event_synchronize(EventRef event) override {
    return call<Status>(Call::event_synchronize, [&] { return below().event_synchronize(event); });
  }
  Status event_destroy(EventRef event) override {
    return call<Status>(Call::event_destroy, [&] { return below().event_destroy(event); });
  }
  Status stream_synchronize(StreamRef stream) override {
    return call<Status>(Call::stream_synchronize, [&] { return below().stream_synchronize(stream); });
  }
  Result<PointerAttributes> pointer_attributes(std::uintptr_t ptr) override {
    return call<Result<PointerAttributes>>(Call::pointer_attributes, [&] { return below().pointer_attributes(ptr); });
  }
};

std::unique_ptr<CudaBackend> Injector::Impl::make_cuda() { return std::make_unique<Cuda>(*this); }

}  // namespace holdfast::sim
