// The embedded owner as a library from outside: what stands behind holdfast_plugin.h in C++. An example for others, and
// the way in which the interface itself is tested.
#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/real_device/embedded_owner.hpp"
#include "holdfast/real_device/holdfast_plugin.h"

using holdfast::FluxonBackend;
using holdfast::FluxonErrc;
using holdfast::GetHandle;
using holdfast::Nanos;
using holdfast::PlanPtr;
using holdfast::Segment;
using holdfast::Status;
using holdfast::device::EmbeddedOptions;
using holdfast::device::EmbeddedOwner;
using holdfast::device::OwnerTime;
using holdfast::device::PageChoice;
using holdfast::device::PageKind;
using holdfast::device::PagesGiven;
using holdfast::fakes::FakeOwner;

namespace {

class HostTime final : public OwnerTime {
 public:
  explicit HostTime(const holdfast_host& host) : host_(host) {}
  [[nodiscard]] Nanos now_ns() const override { return host_.now_ns(host_.context); }
  void wait_until(Nanos instant_ns) override { host_.wait_until(host_.context, instant_ns); }

 private:
  const holdfast_host& host_;
};

}  // namespace

struct holdfast_commit {
  FluxonBackend::Future future;
};

struct holdfast_owner {
  std::unique_ptr<HostTime> time;
  std::unique_ptr<EmbeddedOwner> owner;
  std::vector<holdfast_text> plan_keys;  // of the view last asked for
  std::vector<std::uint64_t> plan_addresses;
};

namespace {

// ---- From one side to the other.

holdfast_text as_text(std::string_view text) { return {text.data(), text.size()}; }
std::string_view as_view(holdfast_text text) { return {text.data, static_cast<std::size_t>(text.bytes)}; }

template <std::size_t N>
void copy_text(char (&into)[N], std::string_view from) {
  const std::size_t bytes = std::min(from.size(), N - 1);
  std::memcpy(into, from.data(), bytes);
  into[bytes] = '\0';
}

// Sets as much of the caller's struct as both know; its size stays what the caller said.
template <class T>
void give(T* into, T from) {
  from.struct_size = into->struct_size;
  std::memcpy(into, &from, std::min<std::size_t>(into->struct_size, sizeof from));
}
template <class T>
T take(const T* from) {
  T known;
  std::memset(&known, 0, sizeof known);
  std::memcpy(&known, from, std::min<std::size_t>(from->struct_size, sizeof known));
  return known;
}

std::int32_t fails(holdfast_error* error, std::int32_t code, std::string_view detail) {
  copy_text(error->detail, detail);
  return code;
}
std::int32_t fails(holdfast_error* error, const holdfast::Error& why) { return fails(error, why.code, why.detail); }

// What `work` answers as a status; an exception is a failure like others.
template <class Work>
std::int32_t answer(holdfast_error* error, Work&& work) noexcept {
  try {
    const auto done = work();
    return done ? 0 : fails(error, done.error());
  } catch (const std::exception& exception) {
    return fails(error, static_cast<std::int32_t>(FluxonErrc::general), exception.what());
  }
}

std::vector<std::string_view> as_keys(const holdfast_keys* keys) {
  std::vector<std::string_view> names;
  names.reserve(keys->count);
  for (std::uint64_t i = 0; i < keys->count; ++i) names.push_back(as_view(keys->keys[i]));
  return names;
}

holdfast_segment as_segment(const Segment& from) {
  holdfast_segment segment{};
  segment.struct_size = sizeof segment;
  segment.write_ptr = from.write_ptr;
  segment.read_ptr = from.read_ptr;
  segment.len = from.len;
  segment.generation = from.generation;
  copy_text(segment.segment_label, from.segment_label);
  copy_text(segment.node_id, from.node_id);
  return segment;
}

holdfast_key_view as_key_view(const holdfast::fakes::KeyView& from) {
  holdfast_key_view view{};
  view.struct_size = sizeof view;
  view.state = static_cast<std::int32_t>(from.state);
  view.generation = from.generation;
  view.write_address = from.write_address;
  view.read_address = from.read_address;
  view.value_bytes = from.value_bytes;
  view.holders = from.holders;
  view.damaged = from.damaged ? 1 : 0;
  return view;
}

holdfast::fakes::OwnerOptions options_of(const holdfast_config& config) {
  holdfast::fakes::OwnerOptions options;
  options.segment_bytes = config.segment_bytes;
  options.grant_bytes = config.grant_bytes;
  if (config.mappings != 0) options.mappings = config.mappings;
  if (config.first_generation != 0) options.first_generation = config.first_generation;
  options.overwrite_checks = config.overwrite_checks != 0;
  return options;
}

// ---- The owner.

std::int32_t open_owner(const holdfast_host* host, const holdfast_config* wanted, holdfast_owner** owner,
                        holdfast_error* error) noexcept {
  return answer(error, [&]() -> Status {
    const holdfast_config config = take(wanted);
    auto made = std::make_unique<holdfast_owner>();
    EmbeddedOptions options;
    options.owner = options_of(config);
    options.pages = static_cast<PageChoice>(config.pages);
    if (host != nullptr && host->now_ns != nullptr) {
      made->time = std::make_unique<HostTime>(*host);
      options.time = made->time.get();
    }
    auto opened = EmbeddedOwner::open(options);
    if (!opened) return opened.error();
    made->owner = std::move(*opened);
    *owner = made.release();
    return {};
  });
}

void close_owner(holdfast_owner* owner) noexcept { delete owner; }

std::int32_t wait_local_segments_ready(holdfast_owner* owner, holdfast_segment_sink sink, void* context,
                                       holdfast_error* error) noexcept {
  return answer(error, [&]() -> Status {
    const auto segments = owner->owner->wait_local_segments_ready();
    if (!segments) return segments.error();
    for (const Segment& segment : *segments) {
      const holdfast_segment given = as_segment(segment);
      sink(context, &given);
    }
    return {};
  });
}

std::int32_t local_fast_put_start(holdfast_owner* owner, const holdfast_keys* keys, std::uint64_t value_len,
                                  const holdfast_put_options* wanted, std::uint64_t* plan_ptr,
                                  holdfast_error* error) noexcept {
  return answer(error, [&]() -> Status {
    const holdfast_put_options put = take(wanted);
    holdfast::PutOptions options;
    options.reject_if_exists = put.reject_if_exists != 0;
    options.reject_if_being_written = put.reject_if_being_written != 0;
    options.write_through = put.write_through != 0;
    if (put.mask != nullptr) options.mask = {put.mask, static_cast<std::size_t>(put.mask_count)};
    if (put.put_group_lens != nullptr) {
      options.put_group_lens = {put.put_group_lens, static_cast<std::size_t>(put.put_group_count)};
    }
    const auto plan = owner->owner->local_fast_put_start(as_keys(keys), value_len, options);
    if (!plan) return plan.error();
    *plan_ptr = plan->address;
    return {};
  });
}

std::int32_t local_fast_put_commit(holdfast_owner* owner, std::uint64_t plan_ptr, holdfast_commit** commit,
                                   holdfast_error* error) noexcept {
  return answer(error, [&]() -> Status {
    auto future = owner->owner->local_fast_put_commit({plan_ptr});
    if (!future) return future.error();
    *commit = new holdfast_commit{std::move(*future)};
    return {};
  });
}

std::int32_t commit_wait(holdfast_owner* /*owner*/, holdfast_commit* commit, std::int64_t limit_ns,
                         holdfast_codes_sink sink, void* context, holdfast_error* error) noexcept {
  return answer(error, [&]() -> Status {
    const auto codes = commit->future.wait(limit_ns);
    if (!codes) return codes.error();
    sink(context, codes->data(), codes->size());
    return {};
  });
}

void commit_drop(holdfast_owner* /*owner*/, holdfast_commit* commit) noexcept { delete commit; }

std::int32_t put_abort(holdfast_owner* owner, std::uint64_t plan_ptr, holdfast_error* error) noexcept {
  return answer(error, [&] { return owner->owner->put_abort({plan_ptr}); });
}

std::int32_t get_start(holdfast_owner* owner, const holdfast_keys* keys, std::int32_t prefix_best_effort,
                       const std::uint32_t* atomic_group_lens, std::uint64_t group_count, holdfast_get_start* into,
                       holdfast_error* error) noexcept {
  return answer(error, [&]() -> Status {
    const std::span<const std::uint32_t> groups(
        atomic_group_lens, atomic_group_lens == nullptr ? 0 : static_cast<std::size_t>(group_count));
    const auto found = owner->owner->get_start(as_keys(keys), prefix_best_effort != 0, groups);
    if (!found) return found.error();
    holdfast_get_start given{};
    given.all_hit = found->all_hit ? 1 : 0;
    given.handle = found->handle.number;
    given.raw_prefix_hit_len = found->raw_prefix_hit_len;
    given.transferable_len = found->transferable_len;
    given.prefix_hit_groups = found->prefix_hit_groups;
    given.first_miss_index = found->first_miss_index;
    given.first_miss_group = found->first_miss_group;
    give(into, given);
    return {};
  });
}

std::int32_t get_transfer(holdfast_owner* owner, std::uint64_t handle, std::uint64_t prefix_len,
                          std::uint64_t* plan_ptr, holdfast_error* error) noexcept {
  return answer(error, [&]() -> Status {
    const auto plan = owner->owner->get_transfer({handle}, prefix_len);
    if (!plan) return plan.error();
    *plan_ptr = plan->address;
    return {};
  });
}

std::int32_t cancel_get_transfer(holdfast_owner* owner, std::uint64_t handle, holdfast_error* error) noexcept {
  return answer(error, [&] { return owner->owner->cancel_get_transfer({handle}); });
}

std::int32_t release_views(holdfast_owner* owner, std::uint64_t plan_ptr, holdfast_error* error) noexcept {
  return answer(error, [&] { return owner->owner->release_views({plan_ptr}); });
}

std::int32_t remove_key(holdfast_owner* owner, holdfast_text key, holdfast_error* error) noexcept {
  return answer(error, [&] { return owner->owner->remove(as_view(key)); });
}

std::int32_t put_value(holdfast_owner* owner, holdfast_text key, const void* bytes, std::uint64_t count,
                       holdfast_error* error) noexcept {
  return answer(error, [&] {
    return owner->owner->put(as_view(key), {static_cast<const std::byte*>(bytes), static_cast<std::size_t>(count)});
  });
}

std::int32_t get_value(holdfast_owner* owner, holdfast_text key, holdfast_bytes_sink sink, void* context,
                       holdfast_error* error) noexcept {
  return answer(error, [&]() -> Status {
    const auto bytes = owner->owner->get(as_view(key));
    if (!bytes) return bytes.error();
    sink(context, bytes->data(), bytes->size());
    return {};
  });
}

void touch(holdfast_owner* /*owner*/, std::uint64_t address, std::uint64_t bytes) noexcept {
  holdfast::device::populate_pages({static_cast<std::uintptr_t>(address), bytes});
}

void pages_of(holdfast_owner* owner, holdfast_pages* into) noexcept {
  const PagesGiven given = owner->owner->pages();
  holdfast_pages pages{};
  pages.kind = given.kind == PageKind::huge_tlb           ? HOLDFAST_PAGES_HUGE_TLB
               : given.kind == PageKind::transparent_huge ? HOLDFAST_PAGES_TRANSPARENT_HUGE
                                                          : HOLDFAST_PAGES_PLAIN;
  pages.page_bytes = given.page_bytes;
  pages.present_bytes = given.present_bytes;
  pages.huge_bytes = given.huge_bytes;
  copy_text(pages.why_not_better, given.why_not_better);
  give(into, pages);
}

// ---- Looking into it.

std::int32_t number(FluxonErrc errc) { return static_cast<std::int32_t>(errc); }

std::int32_t peek(holdfast_owner* owner, holdfast_text key, holdfast_key_view* into) noexcept {
  const auto view = owner->owner->with([&](FakeOwner& inside) { return inside.peek(as_view(key)); });
  if (!view) return number(FluxonErrc::key_not_found);
  give(into, as_key_view(*view));
  return 0;
}

std::int32_t look_at_plan(holdfast_owner* owner, std::uint64_t plan, holdfast_plan_view* into) noexcept {
  return owner->owner->with([&](FakeOwner& inside) {
    const auto view = inside.plan({static_cast<std::uintptr_t>(plan)});
    if (!view) return number(FluxonErrc::invalid_argument);
    owner->plan_keys.clear();
    for (const std::string_view key : view->keys) owner->plan_keys.push_back(as_text(key));
    owner->plan_addresses.assign(view->addresses.begin(), view->addresses.end());
    holdfast_plan_view given{};
    given.is_read_plan = view->kind == holdfast::fakes::PlanKind::read ? 1 : 0;
    given.expired = view->expired ? 1 : 0;
    given.committing = view->committing ? 1 : 0;
    given.number = view->number;
    given.generation = view->generation;
    given.value_bytes = view->value_bytes;
    given.started_at_ns = view->started_at_ns;
    given.keys = owner->plan_keys.data();
    given.addresses = owner->plan_addresses.data();
    given.count = owner->plan_addresses.size();
    give(into, given);
    return 0;
  });
}

std::int32_t transferable(holdfast_owner* owner, std::uint64_t handle, std::uint64_t* values) noexcept {
  const auto found = owner->owner->with([&](FakeOwner& inside) { return inside.transferable({handle}); });
  if (!found) return number(FluxonErrc::invalid_argument);
  *values = *found;
  return 0;
}

std::int32_t has_room(holdfast_owner* owner, std::uint64_t count, std::uint64_t value_bytes) noexcept {
  return owner->owner->with([&](FakeOwner& inside) { return inside.has_room(count, value_bytes) ? 1 : 0; });
}

void count(holdfast_owner* owner, holdfast_counts* into) noexcept {
  owner->owner->with([&](FakeOwner& inside) {
    holdfast_counts counts{};
    counts.generation = inside.generation();
    counts.incarnation = inside.incarnation();
    counts.live_plans = inside.live_plans();
    counts.live_handles = inside.live_handles();
    counts.undecided_commits = inside.undecided_commits();
    counts.holders = inside.holders();
    counts.prepared_slots = inside.prepared_slots();
    counts.stored_keys = inside.stored_keys();
    counts.stored_bytes = inside.stored_bytes();
    counts.held_bytes = inside.held_bytes();
    counts.damages = inside.damages();
    give(into, counts);
  });
}

void live_segment(holdfast_owner* owner, holdfast_segment* into) noexcept {
  give(into, as_segment(owner->owner->with([](FakeOwner& inside) { return inside.segment(); })));
}

void place_of(holdfast_owner* owner, std::uint64_t address, holdfast_place* into) noexcept {
  const auto place =
      owner->owner->with([&](FakeOwner& inside) { return inside.place_of(static_cast<std::uintptr_t>(address)); });
  holdfast_place given{};
  given.kind = static_cast<std::int32_t>(place.kind);
  given.incarnation = place.incarnation;
  given.offset = place.offset;
  given.read_side = place.read_side ? 1 : 0;
  give(into, given);
}

void for_each_stored(holdfast_owner* owner, holdfast_stored_sink sink, void* context) noexcept {
  owner->owner->with([&](FakeOwner& inside) {
    inside.for_each_stored_key([&](std::string_view key, const holdfast::fakes::KeyView& view) {
      const holdfast_key_view given = as_key_view(view);
      sink(context, as_text(key), &given);
    });
  });
}

void check_all_slots(holdfast_owner* owner) noexcept {
  owner->owner->with([](FakeOwner& inside) { inside.check_all_slots(); });
}

void take_incidents(holdfast_owner* owner, holdfast_incident_sink sink, void* context) noexcept {
  const auto incidents = owner->owner->with([](FakeOwner& inside) { return inside.take_incidents(); });
  for (const auto& incident : incidents) {
    holdfast_incident given{};
    given.struct_size = sizeof given;
    given.kind = static_cast<std::int32_t>(incident.kind);
    given.found_at_ns = incident.found_at_ns;
    given.slot_offset = incident.slot_offset;
    given.first_wrong_byte = incident.first_wrong_byte;
    given.last_plan = incident.last_plan;
    given.where = as_text(incident.where);
    given.last_key = as_text(incident.last_key);
    sink(context, &given);
  }
}

std::int32_t has_incidents(holdfast_owner* owner) noexcept {
  return owner->owner->with([](FakeOwner& inside) { return inside.has_incidents() ? 1 : 0; });
}

std::int64_t next_due_ns(holdfast_owner* owner) noexcept {
  return owner->owner->with([](FakeOwner& inside) { return inside.next_due_ns(); });
}

void run_due(holdfast_owner* owner, std::int64_t /*now_ns*/) noexcept { owner->owner->run_due(); }

constexpr holdfast_inside kInside{sizeof(holdfast_inside),
                                  0,
                                  peek,
                                  look_at_plan,
                                  transferable,
                                  has_room,
                                  count,
                                  live_segment,
                                  place_of,
                                  for_each_stored,
                                  check_all_slots,
                                  take_incidents,
                                  has_incidents,
                                  next_due_ns,
                                  run_due};

// ---- What its environment decides.

void choose_next_commit(holdfast_owner* owner, const holdfast_commit_choice* wanted) noexcept {
  const holdfast_commit_choice from = take(wanted);
  holdfast::fakes::CommitChoice choice;
  for (std::uint64_t i = 0; i < from.count; ++i) {
    choice.keys.push_back({static_cast<holdfast::fakes::KeyChoice::Fate>(from.keys[i].fate), from.keys[i].code,
                           from.keys[i].stored_after_ns});
  }
  choice.answer_after_ns = from.answer_after_ns;
  choice.future_fails = from.future_fails != 0;
  if (from.has_route_after != 0) choice.route_after_ns = from.route_after_ns;
  choice.without_bound = from.without_bound != 0;
  owner->owner->with([&](FakeOwner& inside) { inside.choose_next_commit(std::move(choice)); });
}

void choose_next_get_start(holdfast_owner* owner, std::int32_t needs_transfer, std::uint64_t failing_key) noexcept {
  holdfast::fakes::GetStartChoice choice;
  choice.needs_transfer = needs_transfer != 0;
  if (failing_key != std::numeric_limits<std::uint64_t>::max()) choice.failing_key_index = failing_key;
  owner->owner->with([&](FakeOwner& inside) { inside.choose_next_get_start(choice); });
}

void choose_next_abort(holdfast_owner* owner, std::uint64_t first_reserved) noexcept {
  owner->owner->with([&](FakeOwner& inside) { inside.choose_next_abort({first_reserved}); });
}
void choose_next_release_pins(holdfast_owner* owner) noexcept {
  owner->owner->with([](FakeOwner& inside) { inside.choose_next_release_pins(); });
}
void choose_next_release_drops_after(holdfast_owner* owner, std::int64_t delay_ns) noexcept {
  owner->owner->with([&](FakeOwner& inside) { inside.choose_next_release_drops_after(delay_ns); });
}
void choose_next_cancel_pins(holdfast_owner* owner) noexcept {
  owner->owner->with([](FakeOwner& inside) { inside.choose_next_cancel_pins(); });
}
void mount_at(holdfast_owner* owner, std::int64_t instant_ns) noexcept {
  owner->owner->with([&](FakeOwner& inside) { inside.mount_at(instant_ns); });
}
std::int32_t evict(holdfast_owner* owner, holdfast_text key) noexcept {
  return owner->owner->with([&](FakeOwner& inside) { return inside.evict(as_view(key)) ? 1 : 0; });
}
std::int32_t damage(holdfast_owner* owner, holdfast_text key, std::uint64_t draw) noexcept {
  return owner->owner->with([&](FakeOwner& inside) { return inside.damage(as_view(key), draw) ? 1 : 0; });
}
void restart(holdfast_owner* owner, std::uint64_t generation_step) noexcept {
  owner->owner->with([&](FakeOwner& inside) { inside.restart(generation_step); });
}
void client_died(holdfast_owner* owner) noexcept {
  owner->owner->with([](FakeOwner& inside) { inside.client_died(); });
}
void end_client(holdfast_owner* owner) noexcept {
  owner->owner->with([](FakeOwner& inside) { inside.close(); });
}
void new_client(holdfast_owner* owner) noexcept {
  owner->owner->with([](FakeOwner& inside) { inside.new_client(); });
}
std::int32_t reset(holdfast_owner* owner, const holdfast_config* wanted, holdfast_error* error) noexcept {
  return answer(error, [&]() -> Status {
    owner->owner->reset(options_of(take(wanted)));
    return {};
  });
}

constexpr holdfast_environment kEnvironment{sizeof(holdfast_environment),
                                            0,
                                            choose_next_commit,
                                            choose_next_get_start,
                                            choose_next_abort,
                                            choose_next_release_pins,
                                            choose_next_release_drops_after,
                                            choose_next_cancel_pins,
                                            mount_at,
                                            evict,
                                            damage,
                                            restart,
                                            client_died,
                                            end_client,
                                            new_client,
                                            reset};

constexpr holdfast_plugin_api kApi{HOLDFAST_PLUGIN_ABI_VERSION,
                                   sizeof(holdfast_plugin_api),
                                   "embedded owner",
                                   HOLDFAST_VERSION,
                                   open_owner,
                                   close_owner,
                                   wait_local_segments_ready,
                                   local_fast_put_start,
                                   local_fast_put_commit,
                                   commit_wait,
                                   commit_drop,
                                   put_abort,
                                   get_start,
                                   get_transfer,
                                   cancel_get_transfer,
                                   release_views,
                                   remove_key,
                                   put_value,
                                   get_value,
                                   touch,
                                   pages_of,
                                   &kInside,
                                   &kEnvironment};

}  // namespace

extern "C" __attribute__((visibility("default"))) const holdfast_plugin_api* holdfast_plugin() { return &kApi; }
