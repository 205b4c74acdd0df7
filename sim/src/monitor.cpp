#include "holdfast/sim/monitor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "monitor_impl.hpp"

namespace holdfast::sim {

Monitor::Impl::Impl(RunContext& run, FluxonBackend& fluxon_below, CudaBackend& cuda_below, FileBackend& files_below,
                    const Tap& tap_below)
    : context(run),
      below_fluxon(fluxon_below),
      below_cuda(cuda_below),
      below_files(files_below),
      tap(tap_below),
      fluxon(make_fluxon()),
      cuda(make_cuda()),
      files(make_files()) {}

void Monitor::Impl::hear(std::span<const Segment> told) {
  operation.heard = ++heard;
  operation.heard_of.assign(told.begin(), told.end());
  if (!side_by_side) learn_what_was_heard();
}

void Monitor::Impl::learn_what_was_heard() {
  if (operation.heard <= known) return;
  known = operation.heard;
  if (!segments.learn(operation.heard_of)) return;
  const std::vector<Thing> before = context.on_moment ? live_things() : std::vector<Thing>();
  if (plans.end_stale(segments, now()) > 0) context.marks.reach(Mark::stale_not_used);
  if (context.on_moment) tell_gone(before, "a new generation of the owner");
}

void Monitor::Impl::check_all_ended() {
  context.verdicts.checked(Invariant::one_terminal);
  for (const std::uint32_t index : plans.live_plans()) {
    context.violate(Invariant::one_terminal, "",
                    fmt::format("{} never ended; it is {} ns", describe(plans.plan(index)), now()),
                    describe(plans.plan(index)), {thing_of(plans.plan(index))});
  }
  for (const std::uint32_t index : plans.live_handles()) {
    context.violate(Invariant::one_terminal, "",
                    fmt::format("{} never ended; it is {} ns", describe(plans.handle(index)), now()),
                    describe(plans.handle(index)), {{ThingKind::handle, plans.handle(index).ordinal}});
  }
}

void Monitor::Impl::new_incarnation() {
  const std::vector<Thing> before = context.on_moment ? live_things() : std::vector<Thing>();
  plans.forget_live();
  copies.drop_all([](const FlightBatch&) {});
  if (context.on_moment) tell_gone(before, "the end of the client");
  registrations.reset();
  warm_epoch = kNowhere;
  segments.forget();
  claims.forget_claims();
  last_of_earlier_client = last_ordinal;
  operation.begin(Operation::none, kNobody, ++last_ordinal);
}

void Monitor::Impl::device_torn_down() {
  all_landed();
  registrations.reset();
  warm_epoch = kNowhere;
}

void Monitor::Impl::reset() {
  new_incarnation();
  plans.reset();
  copies.reset();
  claims.reset();
  segments = {};
  operation.ordinal = last_ordinal = 1;
  last_of_earlier_client = 0;
  tensors.clear();
  last_tensor = 0;
  tensor_ordinal = registration_ordinal = 0;
  memory_store = side_by_side = world_goes = false;
  watch_put = nullptr;
  heard = known = 0;
  claim_changes = last_epoch_before = 0;
  last_doubtful = false;
}

Monitor::Monitor(RunContext& context, FluxonBackend& fluxon, CudaBackend& cuda, FileBackend& files, const Tap& tap)
    : impl_(std::make_unique<Impl>(context, fluxon, cuda, files, tap)) {}
Monitor::~Monitor() = default;

FluxonBackend& Monitor::fluxon() { return *impl_->fluxon; }
CudaBackend& Monitor::cuda() { return *impl_->cuda; }
FileBackend& Monitor::files() { return *impl_->files; }

void Monitor::begin(Operation operation) { impl_->begin(operation, kNobody); }
void Monitor::begin_ingest(const ChunkSource& source) {
  impl_->begin(Operation::ingest, impl_->claims.node_of_source(source));
}
void Monitor::end(bool ok) { impl_->end(ok); }
void Monitor::swap_operation(OperationRecord& others) { std::swap(impl_->operation, others); }

void Monitor::comes_to_a_call() { impl_->operation.epoch_at_call = impl_->segments.epoch(); }
void Monitor::goes_on() { impl_->learn_what_was_heard(); }

void Monitor::expect_side_by_side() { impl_->side_by_side = true; }
void Monitor::expect_memory_store() { impl_->memory_store = true; }

void Monitor::watch_puts(PutWatch watch) { impl_->watch_put = std::move(watch); }
std::uint64_t Monitor::live_put_bytes() const {
  std::uint64_t bytes = 0;
  for (const std::uint32_t index : impl_->plans.live_plans()) {
    const PlanRecord& plan = impl_->plans.plan(index);
    if (plan.sort == PlanSort::put) bytes += plan.keys.size() * slot_bytes(plan.value_bytes);
  }
  return bytes;
}
void Monitor::lets_worlds_go(bool idle) { impl_->world_goes = idle; }

void Monitor::declare_tensor(std::uintptr_t base, std::uint64_t bytes) {
  auto& tensors = impl_->tensors;
  const auto at = std::ranges::upper_bound(tensors, base, {}, &DeviceRange::base);
  tensors.insert(at, {base, bytes, ++impl_->tensor_ordinal});
}
void Monitor::forget_tensor(std::uintptr_t base) {
  std::erase_if(impl_->tensors, [&](const DeviceRange& tensor) { return tensor.base == base; });
}

void Monitor::hold(std::uint64_t identity) { impl_->hold(identity); }
void Monitor::unhold(std::uint64_t identity) { impl_->claims.hold(identity, false); }
void Monitor::pin(std::uint64_t identity, bool pinned) { impl_->claims.pin(identity, pinned); }

bool Monitor::unsettled(std::uint64_t identity) const {
  const std::uint32_t node = impl_->claims.find_identity(identity);
  return node != kNobody && impl_->unsettled(impl_->claims.node(node));
}
unsigned Monitor::claims(std::uint64_t identity) const {
  const std::uint32_t node = impl_->claims.find_identity(identity);
  return node == kNobody ? 0 : impl_->claims.node(node).claims;
}
std::uint64_t Monitor::identity_of(std::string_view locator) const {
  const std::uint32_t node = impl_->claims.find_locator(locator);
  return node == kNobody ? 0 : impl_->claims.node(node).identity;
}

void Monitor::new_incarnation() { impl_->new_incarnation(); }
void Monitor::device_torn_down() { impl_->device_torn_down(); }
void Monitor::check_all_ended() { impl_->check_all_ended(); }

void Monitor::on_claim(Claim claim, std::string_view locator, const ChunkShape& shape, std::uint64_t /*nbytes*/) {
  impl_->claim(claim, locator, shape);
}
void Monitor::on_withdrawal(Claim claim, std::string_view locator) { impl_->withdraw(claim, locator); }

void Monitor::reset() { impl_->reset(); }

}  // namespace holdfast::sim
