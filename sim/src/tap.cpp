#include "holdfast/sim/tap.hpp"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <vector>

namespace holdfast::sim {
namespace {

constexpr std::size_t kClaimsNamedMax = 8;  // keys that a baseline violation lists

Invariant broken_by(fakes::IncidentKind kind) {
  switch (kind) {
    case fakes::IncidentKind::free_slot_written:
      return Invariant::abort_after_sync;
    case fakes::IncidentKind::red_zone_written:
    case fakes::IncidentKind::duplicate_key:
      return Invariant::validated_batch;
    case fakes::IncidentKind::abort_of_read_plan:
    case fakes::IncidentKind::release_of_put_plan:
      break;
  }
  return Invariant::one_terminal;
}

Invariant broken_by(fakes::DeviceIncidentKind kind) {
  return kind == fakes::DeviceIncidentKind::unregistered_host ? Invariant::validated_batch
                                                              : Invariant::abort_after_sync;
}

}  // namespace

struct Tap::Impl {
  RunContext& context;
  fakes::Owner& owner;
  fakes::FakeCuda& device;

  struct Fluxon;
  struct Cuda;
  std::unique_ptr<Fluxon> fluxon;
  std::unique_ptr<Cuda> cuda;

  // One plan's memory, as far as it matters when the plan ends.
  struct Ending {
    struct Range {
      std::uintptr_t address = 0;
      std::uint64_t bytes = 0;
    };
    std::uint64_t number = 0;
    std::vector<Range> ranges;
  };
  Ending ending;

  Impl(RunContext& run, fakes::Owner& fake_owner, fakes::FakeCuda& fake_device);

  void collect(std::string_view call) {
    if (owner.has_incidents()) collect_owner(call);
    if (device.has_incidents()) collect_device(call);
  }
  void collect_owner(std::string_view call);
  void collect_device(std::string_view call);
  [[nodiscard]] std::string describe(const fakes::CopyView& copy) const;

  // Notes the plan's memory before the call that ends it, if copies are in flight anywhere at all.
  void before_end(PlanPtr plan);
  void after_end(std::string_view call);
  void count_holders(std::string& text) const;
};

struct Tap::Impl::Fluxon final : FluxonBackend {
  Impl& tap;
  explicit Fluxon(Impl& impl) : tap(impl) {}

  template <class T>
  T seen(T answer, std::string_view call) {
    tap.collect(call);
    return answer;
  }

  Result<std::vector<Segment>> wait_local_segments_ready() override {
    return seen(tap.owner.wait_local_segments_ready(), "wait_local_segments_ready");
  }
  Result<PlanPtr> local_fast_put_start(Keys keys, std::uint64_t value_len, const PutOptions& options) override {
    return seen(tap.owner.local_fast_put_start(keys, value_len, options), "local_fast_put_start");
  }
  Result<Future> local_fast_put_commit(PlanPtr plan) override {
    return seen(tap.owner.local_fast_put_commit(plan), "local_fast_put_commit");
  }
  Status put_abort(PlanPtr plan) override {
    tap.before_end(plan);
    auto answer = tap.owner.put_abort(plan);
    tap.after_end("put_abort");
    return answer;
  }
  Result<GetStart> get_start(Keys keys, bool prefix_best_effort,
                             std::span<const std::uint32_t> atomic_group_lens) override {
    return seen(tap.owner.get_start(keys, prefix_best_effort, atomic_group_lens), "get_start");
  }
  Result<PlanPtr> get_transfer(GetHandle handle, std::uint64_t prefix_len) override {
    return seen(tap.owner.get_transfer(handle, prefix_len), "get_transfer");
  }
  Status cancel_get_transfer(GetHandle handle) override {
    return seen(tap.owner.cancel_get_transfer(handle), "cancel_get_transfer");
  }
  Status release_views(PlanPtr plan) override {
    tap.before_end(plan);
    auto answer = tap.owner.release_views(plan);
    tap.after_end("release_views");
    return answer;
  }
  Status remove(std::string_view key) override { return seen(tap.owner.remove(key), "remove"); }
  Status put(std::string_view key, std::span<const std::byte> bytes) override {
    return seen(tap.owner.put(key, bytes), "put");
  }
  Result<std::vector<std::byte>> get(std::string_view key) override { return seen(tap.owner.get(key), "get"); }
};

struct Tap::Impl::Cuda final : CudaBackend {
  Impl& tap;
  explicit Cuda(Impl& impl) : tap(impl) {}

  template <class T>
  T seen(T answer, std::string_view call) {
    tap.collect(call);
    return answer;
  }

  Status host_register(std::uintptr_t ptr, std::uint64_t bytes, HostAccess access) override {
    return seen(tap.device.host_register(ptr, bytes, access), "host_register");
  }
  Status host_unregister(std::uintptr_t ptr) override {
    return seen(tap.device.host_unregister(ptr), "host_unregister");
  }
  Status copy_batch(CopyDirection direction, std::span<const Copy> copies, StreamRef stream) override {
    return seen(tap.device.copy_batch(direction, copies, stream), "copy_batch");
  }
  Result<EventRef> event_create() override { return seen(tap.device.event_create(), "event_create"); }
  Status event_record(EventRef event, StreamRef stream) override {
    return seen(tap.device.event_record(event, stream), "event_record");
  }
  Status stream_wait(StreamRef stream, EventRef event) override {
    return seen(tap.device.stream_wait(stream, event), "stream_wait");
  }
  Result<bool> event_query(EventRef event) override { return seen(tap.device.event_query(event), "event_query"); }
  Status event_synchronize(EventRef event) override {
    return seen(tap.device.event_synchronize(event), "event_synchronize");
  }
  Status event_destroy(EventRef event) override { return seen(tap.device.event_destroy(event), "event_destroy"); }
  Status stream_synchronize(StreamRef stream) override {
    return seen(tap.device.stream_synchronize(stream), "stream_synchronize");
  }
  Result<PointerAttributes> pointer_attributes(std::uintptr_t ptr) override {
    return seen(tap.device.pointer_attributes(ptr), "pointer_attributes");
  }
};

Tap::Impl::Impl(RunContext& run, fakes::Owner& fake_owner, fakes::FakeCuda& fake_device)
    : context(run),
      owner(fake_owner),
      device(fake_device),
      fluxon(std::make_unique<Fluxon>(*this)),
      cuda(std::make_unique<Cuda>(*this)) {}

void Tap::Impl::collect_owner(std::string_view call) {
  for (const fakes::Incident& incident : owner.take_incidents()) {
    std::string message = fmt::format("{}; seen at {} at {} ns", to_string(incident), call, context.clock.now_ns());
    context.log.event(incident.found_at_ns, "incident",
                      std::array{static_cast<std::uint64_t>(incident.kind), incident.slot_offset,
                                 incident.first_wrong_byte, incident.last_plan},
                      [&] { return message; });
    context.violate(broken_by(incident.kind), call, std::move(message), to_string(incident.kind));
  }
}

std::string Tap::Impl::describe(const fakes::CopyView& copy) const {
  return fmt::format("copy {} of batch {} ({}, {} bytes, {} and {}, submitted at {} ns)", copy.index, copy.batch,
                     to_string(copy.direction), copy.copy.bytes, device.location(copy.host()),
                     device.location(copy.device()), copy.submitted_at_ns);
}

void Tap::Impl::collect_device(std::string_view call) {
  for (const fakes::DeviceIncident& incident : device.drain_incidents()) {
    std::string message =
        incident.kind == fakes::DeviceIncidentKind::unregistered_host
            ? fmt::format("{} touches host memory that no registration covers", describe(incident.copy))
            : fmt::format("{} was in flight when {} took its memory away at {} ns: {}", describe(incident.copy),
                          incident.culprit, incident.at_ns, to_string(incident.kind));
    context.log.event(incident.at_ns, "incident",
                      std::array{static_cast<std::uint64_t>(incident.kind), incident.copy.batch,
                                 static_cast<std::uint64_t>(incident.copy.index), incident.copy.copy.bytes},
                      [&] { return message; });
    context.violate(broken_by(incident.kind), call, std::move(message),
                    fmt::format("copy {}, {}", to_string(incident.copy.direction), to_string(incident.kind)));
  }
}

void Tap::Impl::before_end(PlanPtr plan) {
  ending.ranges.clear();
  if (device.in_flight_count() == 0) return;
  const auto view = owner.plan(plan);
  if (!view || view->expired) return;  // past the plan time-out its slots may be another's
  ending.number = view->number;
  for (std::size_t i = 0; i < view->addresses.size(); ++i) {
    const auto key = owner.peek(view->keys[i]);
    // A value that another plan or handle pins too keeps its bytes.
    if (view->kind == fakes::PlanKind::read && key && key->holders > 1) continue;
    const std::uint64_t bytes = view->kind == fakes::PlanKind::read && key ? key->value_bytes : view->value_bytes;
    ending.ranges.push_back({view->addresses[i], bytes});
    // Copies may use the other mapping of the same bytes.
    if (key && key->write_address != view->addresses[i]) ending.ranges.push_back({key->write_address, bytes});
  }
}

void Tap::Impl::after_end(std::string_view call) {
  if (!ending.ranges.empty()) {
    const std::string culprit = fmt::format("{} of the owner's plan {}", call, ending.number);
    for (const Ending::Range& range : ending.ranges) device.host_freed(range.address, range.bytes, culprit);
    ending.ranges.clear();
  }
  collect(call);
}

void Tap::Impl::count_holders(std::string& text) const {
  std::size_t named = 0;
  owner.for_each_stored_key([&](std::string_view key, const fakes::KeyView& view) {
    if (view.holders == 0 || named++ >= kClaimsNamedMax) return;
    text += fmt::format("{}{} ({})", named == 1 ? ": " : ", ", key, view.holders);
  });
  if (named > kClaimsNamedMax) text += fmt::format(" and {} more keys", named - kClaimsNamedMax);
}

Tap::Tap(RunContext& context, fakes::Owner& owner, fakes::FakeCuda& device)
    : impl_(std::make_unique<Impl>(context, owner, device)) {}
Tap::~Tap() = default;

FluxonBackend& Tap::fluxon() { return *impl_->fluxon; }
CudaBackend& Tap::cuda() { return *impl_->cuda; }

std::optional<std::uint64_t> Tap::stored_digest(std::string_view key) const {
  const auto view = impl_->owner.peek(key);
  if (!view || view->state == fakes::KeyState::prepared) return std::nullopt;
  // The mapping it was written through: its pages are there already.
  return XXH3_64bits(reinterpret_cast<const void*>(view->write_address), view->value_bytes);
}

bool Tap::is_stored(std::string_view key) const {
  const auto view = impl_->owner.peek(key);
  return view && view->state != fakes::KeyState::prepared;
}

bool Tap::is_damaged(std::string_view key) const {
  if (impl_->owner.damages() == 0) return false;
  const auto view = impl_->owner.peek(key);
  return view && view->damaged;
}

void Tap::for_each_stored(const std::function<void(std::string_view)>& visit) const {
  impl_->owner.for_each_stored_key([&](std::string_view key, const fakes::KeyView&) { visit(key); });
}

void Tap::collect() { impl_->collect(""); }

void Tap::check_baseline() {
  Impl& tap = *impl_;
  tap.owner.check_all_slots();
  tap.collect("");
  tap.context.verdicts.checked(Invariant::quiescent_baseline);
  const auto none = [&](std::uint64_t count, std::string_view what) {
    if (count == 0) return;
    std::string message = fmt::format("{} {} left after the drain, at {} ns", count, what, tap.context.clock.now_ns());
    if (what == "holders") tap.count_holders(message);
    tap.context.violate(Invariant::quiescent_baseline, "", std::move(message), what);
  };
  none(tap.owner.live_plans(), "live plans");
  none(tap.owner.live_handles(), "live handles");
  none(tap.owner.undecided_commits(), "undecided commits");
  none(tap.owner.holders(), "holders");
  none(tap.owner.prepared_slots(), "prepared slots");
  none(tap.device.in_flight_count(), "copies in flight");
  none(tap.device.event_count(), "events");
}

void Tap::reset() { impl_->ending = {}; }

}  // namespace holdfast::sim
