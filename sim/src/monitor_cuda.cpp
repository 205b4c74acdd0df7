// The device's calls as their caller makes them: what was submitted, what a wait covers, what is registered.
#include <fmt/format.h>

#include <algorithm>

#include "holdfast/sim/text.hpp"
#include "monitor_impl.hpp"

namespace holdfast::sim {
namespace {

// How an address appears in the log: what kind of memory, which one, and where in it.
enum class PlaceKind : std::uint64_t { unknown, tensor, write_mapping, read_mapping, registration };

std::uint64_t word(PlaceKind kind, std::uint32_t ordinal) {
  return static_cast<std::uint64_t>(kind) << 32U | std::uint64_t{ordinal};
}

}  // namespace

void Monitor::Impl::covered(CopyMark mark, Call by) {
  copies.cover(mark, [&](const FlightBatch& batch) {
    if (context.on_moment) tell_closed({ThingKind::batch, batch.ordinal}, by);
    for (const FlightCopy& copy : batch.copies) {
      if (copy.plan == FlightCopy::kNoPlan) continue;
      PlanRecord& plan = plans.plan(copy.plan);
      if (plan.ordinal == copy.plan_ordinal && plan.in_flight > 0) --plan.in_flight;
    }
  });
}

void Monitor::Impl::wait_failed(CopyMark mark, Call call) {
  copies.each_covered(mark, [&](const FlightBatch& batch) {
    for (const FlightCopy& copy : batch.copies) {
      if (copy.plan == FlightCopy::kNoPlan) continue;
      PlanRecord& plan = plans.plan(copy.plan);
      if (plan.ordinal != copy.plan_ordinal || plan.wait_failed) continue;
      plan.wait_failed = true;
      plan.failed_ns = now();
      plan.failed_call = call;
    }
  });
}

void Monitor::Impl::all_landed() {
  copies.drop_all([&](const FlightBatch& batch) {
    if (context.on_moment) {
      context.tell({.kind = MomentKind::closed,
                    .thing = {ThingKind::batch, batch.ordinal},
                    .text = "the end of the device context"});
    }
    for (const FlightCopy& copy : batch.copies) {
      if (copy.plan == FlightCopy::kNoPlan) continue;
      PlanRecord& plan = plans.plan(copy.plan);
      if (plan.ordinal != copy.plan_ordinal) continue;
      plan.in_flight = 0;
      plan.torn_down = true;
      if (plan.submission_failed || plan.wait_failed) continue;
      plan.wait_failed = true;  // what was in flight then never arrived for sure
      plan.failed_ns = now();
      plan.failed_call = Call::stream_synchronize;
    }
  });
}

const DeviceRange* Monitor::Impl::tensor_at(std::uintptr_t address, std::uint64_t bytes) {
  const auto holds = [&](const DeviceRange& tensor) {
    return address >= tensor.base && address - tensor.base < tensor.bytes &&
           bytes <= tensor.bytes - (address - tensor.base);
  };
  if (last_tensor < tensors.size() && holds(tensors[last_tensor])) return &tensors[last_tensor];
  const auto after = std::ranges::upper_bound(tensors, address, {}, &DeviceRange::base);
  if (after == tensors.begin() || !holds(*(after - 1))) return nullptr;
  last_tensor = static_cast<std::size_t>(after - 1 - tensors.begin());
  return &tensors[last_tensor];
}

struct Monitor::Impl::Cuda final : CudaBackend {
  Impl& monitor;
  std::vector<HostSide> sides;       // of the batch's copies
  std::vector<std::size_t> scratch;  // for its overlaps

  explicit Cuda(Impl& impl) : monitor(impl) {}

  [[nodiscard]] CudaBackend& below() const { return monitor.below_cuda; }

  void log_host(std::uintptr_t address) {
    const HostPlace place = monitor.segments.locate(address);
    if (place.segment == kNowhere) {
      monitor.fields.push_back(word(PlaceKind::unknown, 0));
      monitor.fields.push_back(0);
      return;
    }
    monitor.fields.push_back(word(place.read_side ? PlaceKind::read_mapping : PlaceKind::write_mapping, place.segment));
    monitor.fields.push_back(place.offset);
  }
  [[nodiscard]] std::string host_text(std::uintptr_t address) const {
    const HostPlace place = monitor.segments.locate(address);
    if (place.segment == kNowhere) return "memory of its own";
    return fmt::format("{} mapping {}+{:#x}", place.read_side ? "read" : "write", place.segment, place.offset);
  }

  Status host_register(std::uintptr_t ptr, std::uint64_t bytes, HostAccess access) override {
    if (monitor.is_warm() && monitor.segments.is_live(monitor.segments.locate(ptr).segment)) {
      monitor.violate(Invariant::progress, Call::host_register,
                      fmt::format("{}, {} bytes, is registered at {} ns although a warm-up has succeeded for this "
                                  "generation",
                                  host_text(ptr), bytes, monitor.now()),
                      "registration after a warm-up");
    }
    Status answer = below().host_register(ptr, bytes, access);
    auto& fields = monitor.count_call();
    fields = {bytes, static_cast<std::uint64_t>(access)};
    log_host(ptr);
    const HostRegistration registration{
        ptr, bytes, access, monitor.registration_ordinal + 1, monitor.segments.epoch(), monitor.operation.ordinal};
    if (answer) {
      ++monitor.registration_ordinal;
      monitor.registrations.add(registration);
    } else {
      monitor.operation.registration_failed = true;
      if (is_cuda(answer.error(), CudaErrc::host_memory_already_registered)) {
        ++monitor.registration_ordinal;
        monitor.registrations.refused(registration);
      }
    }
    monitor.log(Call::host_register, answer, [&] {
      return fmt::format("{}, {} bytes{}{}", host_text(ptr), bytes,
                         access == HostAccess::read_only ? ", read-only" : "",
                         answer ? fmt::format(": registration {}", registration.ordinal) : "");
    });
    return answer;
  }

  Status host_unregister(std::uintptr_t ptr) override {
    const HostRegistration* known = monitor.registrations.find(ptr);
    const std::uint32_t ordinal = known == nullptr ? 0 : known->ordinal;
    if (known != nullptr) {
      if (known->copies > 0) monitor.context.verdicts.checked(Invariant::abort_after_sync);
      if (const FlightBatch* batch = monitor.copies.oldest_in(known->base, known->bytes)) {
        monitor.violate(
            Invariant::abort_after_sync, Call::host_unregister,
            fmt::format("registration {} ({}, {} bytes) is unregistered at {} ns while {} may be in flight: "
                        "no successful wait covers it",
                        ordinal, host_text(ptr), known->bytes, monitor.now(), describe(*batch)),
            fmt::format("batch {}", to_string(batch->direction)), {{ThingKind::batch, batch->ordinal}});
      }
      if (monitor.operation.registration_failed && known->operation == monitor.operation.ordinal) {
        monitor.context.marks.reach(Mark::registration_rolled_back);
      }
    }
    Status answer = below().host_unregister(ptr);
    monitor.count_call().push_back(ordinal);
    monitor.log(Call::host_unregister, answer, [&] { return fmt::format("registration {}", ordinal); });
    if (answer || is_cuda(answer.error(), CudaErrc::host_memory_not_registered)) {
      monitor.registrations.erase(ptr);
    } else {
      monitor.registrations.stuck(ptr);
    }
    return answer;
  }

  void wrong(std::size_t index, std::span<const Copy> batch, CopyDirection direction, std::string_view why) {
    monitor.violate(Invariant::validated_batch, Call::copy_batch,
                    fmt::format("copy {} of {} ({} bytes, {}), submitted at {} ns: {}", index, batch.size(),
                                batch[index].bytes, to_string(direction), monitor.now(), why),
                    fmt::format("copy {}, {}", to_string(direction), why));
  }

  // The first thing that is wrong; each copy's sides are logged on the way.
  void check(CopyDirection direction, std::span<const Copy> batch) {
    monitor.context.verdicts.checked(Invariant::validated_batch);
    const BatchLedgers ledgers{monitor.segments, monitor.registrations, monitor.plans, monitor.operation.ordinal,
                               monitor.epoch_at_call()};
    const bool to_host = direction == CopyDirection::device_to_host;
    bool told = false;
    const auto tell = [&](std::size_t index, std::string_view why) {
      if (!std::exchange(told, true)) wrong(index, batch, direction, why);
    };
    if (batch.empty()) {
      monitor.violate(Invariant::validated_batch, Call::copy_batch,
                      fmt::format("a batch without copies is submitted at {} ns", monitor.now()), "no copies");
    }
    sides.clear();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Copy& copy = batch[i];
      const std::uintptr_t host = to_host ? copy.dst : copy.src;
      const std::uintptr_t device = to_host ? copy.src : copy.dst;
      sides.push_back(host_side(ledgers, direction, host));
      const HostSide& side = sides.back();
      const DeviceRange* tensor = monitor.tensor_at(device, copy.bytes);
      log_sides(side, host, tensor, device, copy.bytes);
      if (copy.bytes == 0) {
        tell(i, "it has no length");
      } else if (tensor == nullptr) {
        tell(i, "its device memory lies in no declared tensor");
      } else if (const std::string why = wrong_host_side(ledgers, direction, side, copy.bytes, monitor.now());
                 !why.empty()) {
        tell(i, why);
      } else if (monitor.registrations.covering(host, copy.bytes) != side.registration) {
        tell(i, fmt::format("it reaches past the end of registration {}", side.registration->ordinal));
      }
    }
    if (const auto [one, other] = overlapping(batch, scratch); one != other) {
      tell(other, fmt::format("its destination overlaps that of copy {}", one));
    }
  }

  void log_sides(const HostSide& side, std::uintptr_t host, const DeviceRange* tensor, std::uintptr_t device,
                 std::uint64_t bytes) {
    auto& fields = monitor.fields;
    if (side.place.segment != kNowhere) {
      fields.push_back(
          word(side.place.read_side ? PlaceKind::read_mapping : PlaceKind::write_mapping, side.place.segment));
      fields.push_back(side.place.offset);
    } else {
      const HostRegistration* registration = side.registration;
      fields.push_back(word(registration == nullptr ? PlaceKind::unknown : PlaceKind::registration,
                            registration == nullptr ? 0 : registration->ordinal));
      fields.push_back(registration == nullptr ? 0 : host - registration->base);
    }
    fields.push_back(
        word(tensor == nullptr ? PlaceKind::unknown : PlaceKind::tensor, tensor == nullptr ? 0 : tensor->ordinal));
    fields.push_back(tensor == nullptr ? 0 : device - tensor->base);
    fields.push_back(bytes);
  }

  Status copy_batch(CopyDirection direction, std::span<const Copy> batch, StreamRef stream) override {
    const std::uint32_t on = monitor.copies.stream_of(stream);
    auto& fields = monitor.count_call();
    fields = {static_cast<std::uint64_t>(direction), batch.size(), on};
    check(direction, batch);
    const Nanos submitted_ns = monitor.now();
    Status answer = below().copy_batch(direction, batch, stream);
    submitted(direction, batch, on, submitted_ns, answer.has_value());
    monitor.about(ThingKind::stream, on);
    monitor.log(Call::copy_batch, answer, [&] { return batch_text(direction, batch, on); });
    return answer;
  }

  void submitted(CopyDirection direction, std::span<const Copy> batch, std::uint32_t stream, Nanos at_ns, bool ok) {
    const bool to_host = direction == CopyDirection::device_to_host;
    if (monitor.copies.oldest_of_operation(monitor.operation.ordinal) != nullptr) {
      monitor.context.marks.reach(Mark::batches_overlapped);
    }
    FlightBatch& flight = monitor.copies.submit(stream);
    flight.direction = direction;
    flight.at_ns = at_ns;
    flight.step = monitor.context.step;
    flight.operation = monitor.operation.ordinal;
    flight.failed = !ok;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      FlightCopy copy{to_host ? batch[i].dst : batch[i].src, batch[i].bytes};
      if (sides[i].registration != nullptr) ++sides[i].registration->copies;
      if (PlanRecord* plan = sides[i].plan) {
        copy.plan = monitor.plans.index_of(*plan);
        copy.plan_ordinal = plan->ordinal;
        ++plan->copies;
        ++plan->in_flight;
        if (!ok && !plan->submission_failed) {
          plan->submission_failed = true;
          plan->failed_ns = monitor.now();
          plan->failed_call = Call::copy_batch;
        }
      }
      flight.copies.push_back(copy);
    }
    if (monitor.context.on_moment) monitor.tell_submitted(flight, sides);
  }

  [[nodiscard]] std::string batch_text(CopyDirection direction, std::span<const Copy> batch,
                                       std::uint32_t stream) const {
    std::uint64_t bytes = 0;
    for (const Copy& copy : batch) bytes += copy.bytes;
    std::string text = fmt::format("{}, {} bytes, {}, stream {}", counted(batch.size(), "copy", "copies"), bytes,
                                   to_string(direction), stream);
    std::uint32_t last = 0;
    for (const HostSide& side : sides) {
      if (side.plan == nullptr || side.plan->ordinal == last) continue;
      text += fmt::format("{}{}", last == 0 ? "; plan " : ", ", side.plan->ordinal);
      last = side.plan->ordinal;
    }
    return text;
  }

  Result<EventRef> event_create() override {
    auto answer = below().event_create();
    monitor.count_call().push_back(answer ? monitor.copies.create_event(*answer) : 0);
    if (!answer && is_cuda(answer.error(), CudaErrc::memory_allocation)) {
      monitor.context.marks.reach(Mark::event_refused);
    }
    monitor.log(Call::event_create, answer, [&] { return fmt::format("event {}", monitor.fields.front()); });
    return answer;
  }

  Status event_record(EventRef event, StreamRef stream) override {
    Status answer = below().event_record(event, stream);
    const std::uint32_t on = monitor.copies.stream_of(stream);
    if (answer) {
      monitor.copies.record_event(event, on);
    } else {
      monitor.copies.forget_record(event);
      may_be_theirs(on, Call::event_record);
    }
    return logged(Call::event_record, event, on, std::move(answer));
  }

  Status stream_wait(StreamRef stream, EventRef event) override {
    Status answer = below().stream_wait(stream, event);
    const std::uint32_t on = monitor.copies.stream_of(stream);
    if (answer) {
      monitor.copies.stream_waits(on, event);
      monitor.context.marks.reach(Mark::copied_beside_the_engine);
    } else {
      may_be_theirs(on, Call::stream_wait);
    }
    return logged(Call::stream_wait, event, on, std::move(answer));
  }

  // An asynchronous error is told once, by whatever call comes next: after this one a wait that succeeds says nothing
  // of what the stream held.
  void may_be_theirs(std::uint32_t stream, Call call) { monitor.wait_failed(monitor.copies.all_of(stream), call); }

  Status logged(Call call, EventRef event, std::uint32_t stream, Status answer) {
    const std::uint32_t ordinal = monitor.copies.event_of(event);
    monitor.count_call() = {ordinal, stream};
    if (stream != 0) monitor.about(ThingKind::stream, stream);
    monitor.log(call, answer, [&] {
      return stream == 0 ? fmt::format("event {}", ordinal) : fmt::format("event {}, stream {}", ordinal, stream);
    });
    return answer;
  }

  Result<bool> event_query(EventRef event) override {
    auto answer = below().event_query(event);
    const std::uint32_t ordinal = monitor.copies.event_of(event);
    monitor.count_call() = {ordinal, std::uint64_t{answer && *answer}};
    monitor.log(Call::event_query, answer,
                [&] { return fmt::format("event {}{}", ordinal, answer ? (*answer ? ": done" : ": not ready") : ""); });
    if (!answer) {
      monitor.wait_failed(monitor.copies.captured(event), Call::event_query);
    } else if (*answer) {
      monitor.covered(monitor.copies.captured(event), Call::event_query);
    }
    return answer;
  }

  Status event_synchronize(EventRef event) override {
    Status answer = below().event_synchronize(event);
    waited(answer, monitor.copies.captured(event), Call::event_synchronize);
    return logged(Call::event_synchronize, event, 0, std::move(answer));
  }

  void waited(const Status& answer, CopyMark mark, Call call) {
    if (answer) {
      monitor.covered(mark, call);
    } else {
      monitor.wait_failed(mark, call);
    }
  }

  Status event_destroy(EventRef event) override {
    Status answer = below().event_destroy(event);
    Status told = logged(Call::event_destroy, event, 0, std::move(answer));
    if (told) monitor.copies.destroy_event(event);
    return told;
  }

  Status stream_synchronize(StreamRef stream) override {
    Status answer = below().stream_synchronize(stream);
    const std::uint32_t on = monitor.copies.stream_of(stream);
    waited(answer, monitor.copies.all_of(on), Call::stream_synchronize);
    monitor.count_call().push_back(on);
    monitor.about(ThingKind::stream, on);
    monitor.log(Call::stream_synchronize, answer, [&] { return fmt::format("stream {}", on); });
    return answer;
  }

  Result<PointerAttributes> pointer_attributes(std::uintptr_t ptr) override {
    auto answer = below().pointer_attributes(ptr);
    auto& fields = monitor.count_call();
    const DeviceRange* tensor = monitor.tensor_at(ptr, 1);
    if (tensor != nullptr) {
      fields.push_back(word(PlaceKind::tensor, tensor->ordinal));
      fields.push_back(ptr - tensor->base);
    } else {
      log_host(ptr);
    }
    if (answer) {
      fields.push_back(static_cast<std::uint64_t>(answer->kind));
      if (answer->kind != MemoryKind::device) {
        monitor.registrations.attributes(ptr, answer->kind == MemoryKind::registered_host);
      }
    }
    monitor.log(Call::pointer_attributes, answer, [&] {
      return tensor != nullptr ? fmt::format("tensor {}+{:#x}", tensor->ordinal, ptr - tensor->base) : host_text(ptr);
    });
    return answer;
  }
};

std::unique_ptr<CudaBackend> Monitor::Impl::make_cuda() { return std::make_unique<Cuda>(*this); }

}  // namespace holdfast::sim
