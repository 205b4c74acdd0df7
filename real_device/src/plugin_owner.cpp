#include "holdfast/real_device/plugin_owner.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

namespace holdfast::device {
namespace {

// A struct of the interface, of the size that this side knows.
template <class T>
T sized() {
  T fresh;
  std::memset(&fresh, 0, sizeof fresh);
  fresh.struct_size = sizeof fresh;
  return fresh;
}

holdfast_text as_text(std::string_view text) { return {text.data(), text.size()}; }
std::string_view as_view(const holdfast_text& text) {
  return {text.data, text.data == nullptr ? 0 : static_cast<std::size_t>(text.bytes)};
}
template <std::size_t N>
std::string as_string(const char (&text)[N]) {
  return {text, strnlen(text, N)};
}

Error told(std::int32_t code, std::string_view call, const holdfast_error& error) {
  return {Origin::fluxon, code, std::string(call), as_string(error.detail), {}, {}};
}

// One call: its status, and the words when it failed.
template <class Ask>
Status ask(std::string_view call, Ask&& make_call) {
  auto error = sized<holdfast_error>();
  const std::int32_t code = make_call(&error);
  if (code == 0) return {};
  return told(code, call, error);
}

Segment as_segment(const holdfast_segment& segment) {
  return {as_string(segment.segment_label),
          static_cast<std::uintptr_t>(segment.write_ptr),
          static_cast<std::uintptr_t>(segment.read_ptr),
          segment.len,
          segment.generation,
          as_string(segment.node_id)};
}

fakes::KeyView as_key_view(const holdfast_key_view& from) {
  fakes::KeyView view;
  view.state = static_cast<fakes::KeyState>(from.state);
  view.generation = from.generation;
  view.write_address = from.write_address;
  view.read_address = from.read_address;
  view.value_bytes = from.value_bytes;
  view.holders = from.holders;
  view.damaged = from.damaged != 0;
  return view;
}

holdfast_config config_of(const fakes::OwnerOptions& options) {
  auto config = sized<holdfast_config>();
  config.mappings = options.mappings;
  config.segment_bytes = options.segment_bytes;
  config.grant_bytes = options.grant_bytes;
  config.first_generation = options.first_generation;
  // Small segments that come and go: looking for huge pages each time would be most of a run.
  config.pages = HOLDFAST_PAGES_PLAIN;
  config.overwrite_checks = options.overwrite_checks ? 1 : 0;
  return config;
}

}  // namespace

class PluginOwner::Commit final : public PendingCommit {
 public:
  Commit(PluginOwner& owner, holdfast_commit* commit) : owner_(owner), of_(owner.opened_), commit_(commit) {
    owner_.commits_.push_back(this);
  }
  ~Commit() override {
    std::erase(owner_.commits_, this);
    drop();
  }
  Commit(const Commit&) = delete;
  Commit& operator=(const Commit&) = delete;

  // The library's part of it, while its owner is there.
  void drop() {
    if (owner_.opened_ == of_ && commit_ != nullptr) {
      owner_.api().commit_drop(owner_.owner_, std::exchange(commit_, nullptr));
    }
  }

  Result<std::vector<std::int32_t>> wait(Nanos limit_ns) override {
    constexpr std::string_view kCall = "future.wait";
    if (owner_.opened_ != of_) return fluxon_error(FluxonErrc::store_closed, kCall, "its client is gone");
    if (Status usable = owner_.usable(kCall); !usable) return std::move(usable.error());
    std::vector<std::int32_t> codes;
    const auto take = [](void* into, const std::int32_t* from, std::uint64_t count) {
      static_cast<std::vector<std::int32_t>*>(into)->assign(from, from + count);
    };
    Status waited = ask(kCall, [&](holdfast_error* error) {
      return owner_.api().commit_wait(owner_.owner_, commit_, limit_ns, take, &codes, error);
    });
    if (!waited) return std::move(waited.error());
    return codes;
  }

 private:
  PluginOwner& owner_;
  std::uint64_t of_;
  holdfast_commit* commit_;
};

PluginOwner::PluginOwner(std::shared_ptr<const PluginLibrary> library, fakes::VirtualClock& clock,
                         const fakes::OwnerOptions& options)
    : library_(std::move(library)), clock_(clock), options_(options) {
  host_ = sized<holdfast_host>();
  host_.context = this;
  host_.now_ns = [](void* self) -> std::int64_t { return static_cast<PluginOwner*>(self)->clock_.now_ns(); };
  host_.wait_until = &PluginOwner::wait_until;
  open();
  clock_.add(*this);
}

PluginOwner::~PluginOwner() {
  clock_.remove(*this);
  shut();
}

void PluginOwner::open() {
  const holdfast_config config = config_of(options_);
  holdfast_owner* owner = nullptr;
  const Status opened = ask("open", [&](holdfast_error* error) { return api().open(&host_, &config, &owner, error); });
  if (!opened || owner == nullptr) {
    throw std::runtime_error(fmt::format("plug-in {} does not open: {}", library_->info().path,
                                         opened ? "it gave no owner" : to_string(opened.error())));
  }
  owner_ = owner;
  ++opened_;
  client_ = Client::alive;
}

void PluginOwner::shut() {
  for (Commit* commit : commits_) commit->drop();
  if (owner_ != nullptr) api().close(std::exchange(owner_, nullptr));
  ++opened_;
}

// What is due inside is then the library's own business: it has a call under way.
void PluginOwner::wait_until(void* self, std::int64_t instant_ns) {
  auto& owner = *static_cast<PluginOwner*>(self);
  const bool before = std::exchange(owner.waiting_, true);
  owner.clock_.wait_until(instant_ns);
  owner.waiting_ = before;
}

void PluginOwner::reset(const fakes::OwnerOptions& options) {
  options_ = options;
  if (const holdfast_environment* environment = library_->environment()) {
    const holdfast_config config = config_of(options_);
    const Status done = ask("reset", [&](holdfast_error* error) { return environment->reset(owner_, &config, error); });
    if (!done) {
      throw std::runtime_error(
          fmt::format("plug-in {} cannot begin anew: {}", library_->info().path, to_string(done.error())));
    }
    client_ = Client::alive;
    return;
  }
  shut();
  open();
}

Status PluginOwner::usable(std::string_view call) const {
  if (client_ == Client::closed) return fluxon_error(FluxonErrc::general, call, "the client is closed");
  if (client_ == Client::dead) return fluxon_error(FluxonErrc::store_closed, call, "the client is gone");
  return {};
}

const holdfast_keys& PluginOwner::as_keys(Keys keys) {
  texts_.clear();
  for (const std::string_view key : keys) texts_.push_back(as_text(key));
  keys_ = {texts_.data(), texts_.size()};
  return keys_;
}

// ---- The calls.

Result<std::vector<Segment>> PluginOwner::wait_local_segments_ready() {
  constexpr std::string_view kCall = "wait_local_segments_ready";
  if (Status can = usable(kCall); !can) return std::move(can.error());
  std::vector<Segment> segments;
  const auto take = [](void* into, const holdfast_segment* segment) {
    static_cast<std::vector<Segment>*>(into)->push_back(as_segment(*segment));
  };
  Status ready = ask(
      kCall, [&](holdfast_error* error) { return api().wait_local_segments_ready(owner_, take, &segments, error); });
  if (!ready) return std::move(ready.error());
  return segments;
}

Result<PlanPtr> PluginOwner::local_fast_put_start(Keys keys, std::uint64_t value_len, const PutOptions& options) {
  constexpr std::string_view kCall = "local_fast_put_start";
  if (Status can = usable(kCall); !can) return std::move(can.error());
  auto put = sized<holdfast_put_options>();
  put.reject_if_exists = options.reject_if_exists ? 1 : 0;
  put.reject_if_being_written = options.reject_if_being_written ? 1 : 0;
  put.write_through = options.write_through ? 1 : 0;
  put.mask = options.mask.empty() ? nullptr : options.mask.data();
  put.mask_count = options.mask.size();
  put.put_group_lens = options.put_group_lens.empty() ? nullptr : options.put_group_lens.data();
  put.put_group_count = options.put_group_lens.size();
  std::uint64_t plan = 0;
  const holdfast_keys& named = as_keys(keys);
  Status started = ask(kCall, [&](holdfast_error* error) {
    return api().local_fast_put_start(owner_, &named, value_len, &put, &plan, error);
  });
  if (!started) return std::move(started.error());
  return PlanPtr{static_cast<std::uintptr_t>(plan)};
}

Result<PluginOwner::Future> PluginOwner::local_fast_put_commit(PlanPtr plan) {
  constexpr std::string_view kCall = "local_fast_put_commit";
  if (Status can = usable(kCall); !can) return std::move(can.error());
  holdfast_commit* commit = nullptr;
  Status submitted = ask(
      kCall, [&](holdfast_error* error) { return api().local_fast_put_commit(owner_, plan.address, &commit, error); });
  if (!submitted) return std::move(submitted.error());
  return Future(std::make_unique<Commit>(*this, commit));
}

Status PluginOwner::put_abort(PlanPtr plan) {
  constexpr std::string_view kCall = "put_abort";
  if (Status can = usable(kCall); !can) return can;
  return ask(kCall, [&](holdfast_error* error) { return api().put_abort(owner_, plan.address, error); });
}

Result<GetStart> PluginOwner::get_start(Keys keys, bool prefix_best_effort,
                                        std::span<const std::uint32_t> atomic_group_lens) {
  constexpr std::string_view kCall = "get_start";
  if (Status can = usable(kCall); !can) return std::move(can.error());
  auto found = sized<holdfast_get_start>();
  const holdfast_keys& named = as_keys(keys);
  Status started = ask(kCall, [&](holdfast_error* error) {
    return api().get_start(owner_, &named, prefix_best_effort ? 1 : 0,
                           atomic_group_lens.empty() ? nullptr : atomic_group_lens.data(), atomic_group_lens.size(),
                           &found, error);
  });
  if (!started) return std::move(started.error());
  GetStart answer;
  answer.handle = {found.handle};
  answer.raw_prefix_hit_len = found.raw_prefix_hit_len;
  answer.transferable_len = found.transferable_len;
  answer.prefix_hit_groups = found.prefix_hit_groups;
  answer.first_miss_index = found.first_miss_index;
  answer.first_miss_group = found.first_miss_group;
  answer.all_hit = found.all_hit != 0;
  return answer;
}

Result<PlanPtr> PluginOwner::get_transfer(GetHandle handle, std::uint64_t prefix_len) {
  constexpr std::string_view kCall = "get_transfer";
  if (Status can = usable(kCall); !can) return std::move(can.error());
  std::uint64_t plan = 0;
  Status done = ask(kCall, [&](holdfast_error* error) {
    return api().get_transfer(owner_, handle.number, prefix_len, &plan, error);
  });
  if (!done) return std::move(done.error());
  return PlanPtr{static_cast<std::uintptr_t>(plan)};
}

Status PluginOwner::cancel_get_transfer(GetHandle handle) {
  constexpr std::string_view kCall = "cancel_get_transfer";
  if (Status can = usable(kCall); !can) return can;
  return ask(kCall, [&](holdfast_error* error) { return api().cancel_get_transfer(owner_, handle.number, error); });
}

Status PluginOwner::release_views(PlanPtr plan) {
  constexpr std::string_view kCall = "release_views";
  if (Status can = usable(kCall); !can) return can;
  return ask(kCall, [&](holdfast_error* error) { return api().release_views(owner_, plan.address, error); });
}

Status PluginOwner::remove(std::string_view key) {
  constexpr std::string_view kCall = "remove";
  if (Status can = usable(kCall); !can) return can;
  return ask(kCall, [&](holdfast_error* error) { return api().remove(owner_, as_text(key), error); });
}

Status PluginOwner::put(std::string_view key, std::span<const std::byte> bytes) {
  constexpr std::string_view kCall = "put";
  if (Status can = usable(kCall); !can) return can;
  return ask(kCall,
             [&](holdfast_error* error) { return api().put(owner_, as_text(key), bytes.data(), bytes.size(), error); });
}

Result<std::vector<std::byte>> PluginOwner::get(std::string_view key) {
  constexpr std::string_view kCall = "get";
  if (Status can = usable(kCall); !can) return std::move(can.error());
  std::vector<std::byte> bytes;
  const auto take = [](void* into, const void* from, std::uint64_t count) {
    const auto* first = static_cast<const std::byte*>(from);
    static_cast<std::vector<std::byte>*>(into)->assign(first, first + count);
  };
  Status done = ask(kCall, [&](holdfast_error* error) { return api().get(owner_, as_text(key), take, &bytes, error); });
  if (!done) return std::move(done.error());
  return bytes;
}

// ---- What its environment decides.

void PluginOwner::choose_next_commit(fakes::CommitChoice choice) {
  const holdfast_environment* environment = library_->environment();
  if (environment == nullptr) return;
  choices_.clear();
  for (const fakes::KeyChoice& key : choice.keys) {
    choices_.push_back({static_cast<std::int32_t>(key.fate), key.code, key.stored_after_ns});
  }
  auto chosen = sized<holdfast_commit_choice>();
  chosen.future_fails = choice.future_fails ? 1 : 0;
  chosen.without_bound = choice.without_bound ? 1 : 0;
  chosen.has_route_after = choice.route_after_ns ? 1 : 0;
  chosen.answer_after_ns = choice.answer_after_ns;
  chosen.route_after_ns = choice.route_after_ns.value_or(0);
  chosen.keys = choices_.data();
  chosen.count = choices_.size();
  environment->choose_next_commit(owner_, &chosen);
}
void PluginOwner::choose_next_get_start(fakes::GetStartChoice choice) {
  if (const holdfast_environment* environment = library_->environment()) {
    environment->choose_next_get_start(owner_, choice.needs_transfer ? 1 : 0,
                                       choice.failing_key_index.value_or(std::numeric_limits<std::uint64_t>::max()));
  }
}
void PluginOwner::choose_next_abort(fakes::AbortChoice choice) {
  if (const holdfast_environment* environment = library_->environment()) {
    environment->choose_next_abort(owner_, choice.first_reserved_key_index);
  }
}
void PluginOwner::choose_next_release_pins() {
  if (const holdfast_environment* environment = library_->environment()) environment->choose_next_release_pins(owner_);
}
void PluginOwner::choose_next_release_drops_after(Nanos delay_ns) {
  if (const holdfast_environment* environment = library_->environment()) {
    environment->choose_next_release_drops_after(owner_, delay_ns);
  }
}
void PluginOwner::choose_next_cancel_pins() {
  if (const holdfast_environment* environment = library_->environment()) environment->choose_next_cancel_pins(owner_);
}
void PluginOwner::mount_at(Nanos instant_ns) {
  if (const holdfast_environment* environment = library_->environment()) environment->mount_at(owner_, instant_ns);
}
bool PluginOwner::evict(std::string_view key) {
  const holdfast_environment* environment = library_->environment();
  return environment != nullptr && environment->evict(owner_, as_text(key)) != 0;
}
bool PluginOwner::damage(std::string_view key, std::uint64_t draw) {
  const holdfast_environment* environment = library_->environment();
  return environment != nullptr && environment->damage(owner_, as_text(key), draw) != 0;
}
void PluginOwner::restart(std::uint64_t generation_step) {
  if (const holdfast_environment* environment = library_->environment()) environment->restart(owner_, generation_step);
}
void PluginOwner::client_died() {
  if (const holdfast_environment* environment = library_->environment()) {
    environment->client_died(owner_);
  } else if (client_ == Client::alive) {
    client_ = Client::dead;
  }
}
void PluginOwner::close() {
  if (const holdfast_environment* environment = library_->environment()) {
    environment->end_client(owner_);
  } else if (client_ == Client::alive) {
    client_ = Client::closed;
  }
}
void PluginOwner::new_client() {
  if (const holdfast_environment* environment = library_->environment()) {
    environment->new_client(owner_);
    return;
  }
  shut();
  open();
}

// ---- Looking.

std::optional<fakes::KeyView> PluginOwner::peek(std::string_view key) const {
  const holdfast_inside* inside = library_->inside();
  auto view = sized<holdfast_key_view>();
  if (inside == nullptr || inside->peek(owner_, as_text(key), &view) != 0) return std::nullopt;
  return as_key_view(view);
}

std::optional<fakes::PlanView> PluginOwner::plan(PlanPtr plan) const {
  const holdfast_inside* inside = library_->inside();
  auto from = sized<holdfast_plan_view>();
  if (inside == nullptr || inside->look_at_plan(owner_, plan.address, &from) != 0) return std::nullopt;
  plan_keys_.clear();
  plan_addresses_.clear();
  for (std::uint64_t i = 0; i < from.count; ++i) {
    plan_keys_.push_back(as_view(from.keys[i]));
    plan_addresses_.push_back(static_cast<std::uintptr_t>(from.addresses[i]));
  }
  fakes::PlanView view;
  view.kind = from.is_read_plan != 0 ? fakes::PlanKind::read : fakes::PlanKind::put;
  view.number = from.number;
  view.generation = from.generation;
  view.keys = plan_keys_;
  view.addresses = plan_addresses_;
  view.value_bytes = from.value_bytes;
  view.started_at_ns = from.started_at_ns;
  view.expired = from.expired != 0;
  view.committing = from.committing != 0;
  return view;
}

std::optional<std::uint64_t> PluginOwner::transferable(GetHandle handle) const {
  const holdfast_inside* inside = library_->inside();
  std::uint64_t values = 0;
  if (inside == nullptr || inside->transferable(owner_, handle.number, &values) != 0) return std::nullopt;
  return values;
}

bool PluginOwner::has_room(std::uint64_t count, std::uint64_t value_bytes) const {
  const holdfast_inside* inside = library_->inside();
  return inside == nullptr || inside->has_room(owner_, count, value_bytes) != 0;
}

Segment PluginOwner::segment() const {
  if (const holdfast_inside* inside = library_->inside()) {
    auto segment = sized<holdfast_segment>();
    inside->segment(owner_, &segment);
    return as_segment(segment);
  }
  Segment first;
  const auto take = [](void* into, const holdfast_segment* segment) {
    auto& found = *static_cast<Segment*>(into);
    if (found.len == 0) found = as_segment(*segment);
  };
  static_cast<void>(ask("wait_local_segments_ready", [&](holdfast_error* error) {
                      return api().wait_local_segments_ready(owner_, take, &first, error);
                    }).has_value());
  return first;
}

holdfast_counts PluginOwner::counts() const {
  auto counts = sized<holdfast_counts>();
  if (const holdfast_inside* inside = library_->inside()) {
    inside->count(owner_, &counts);
  } else {
    counts.incarnation = 1;
  }
  return counts;
}

void PluginOwner::visit_stored_keys(StoredVisitor visitor, void* context) const {
  const holdfast_inside* inside = library_->inside();
  if (inside == nullptr) return;
  struct Visit {
    StoredVisitor visitor;
    void* context;
  } visit{visitor, context};
  const auto pass_on = [](void* to, holdfast_text key, const holdfast_key_view* view) {
    const auto& next = *static_cast<const Visit*>(to);
    next.visitor(next.context, as_view(key), as_key_view(*view));
  };
  inside->for_each_stored(owner_, pass_on, &visit);
}

fakes::Place PluginOwner::place_of(std::uintptr_t address) const {
  const holdfast_inside* inside = library_->inside();
  if (inside == nullptr) return {};
  auto from = sized<holdfast_place>();
  inside->place_of(owner_, address, &from);
  fakes::Place place;
  place.kind = static_cast<fakes::Place::Kind>(from.kind);
  place.incarnation = from.incarnation;
  place.read_side = from.read_side != 0;
  place.offset = from.offset;
  return place;
}

void PluginOwner::check_all_slots() {
  if (const holdfast_inside* inside = library_->inside()) inside->check_all_slots(owner_);
}

std::vector<fakes::Incident> PluginOwner::take_incidents() {
  std::vector<fakes::Incident> incidents;
  const holdfast_inside* inside = library_->inside();
  if (inside == nullptr) return incidents;
  const auto take = [](void* into, const holdfast_incident* from) {
    fakes::Incident incident;
    incident.kind = static_cast<fakes::IncidentKind>(from->kind);
    incident.found_at_ns = from->found_at_ns;
    incident.where = as_view(from->where);
    incident.slot_offset = from->slot_offset;
    incident.first_wrong_byte = from->first_wrong_byte;
    incident.last_key = as_view(from->last_key);
    incident.last_plan = from->last_plan;
    static_cast<std::vector<fakes::Incident>*>(into)->push_back(std::move(incident));
  };
  inside->take_incidents(owner_, take, &incidents);
  return incidents;
}

bool PluginOwner::has_incidents() const {
  const holdfast_inside* inside = library_->inside();
  return inside != nullptr && inside->has_incidents(owner_) != 0;
}

std::optional<holdfast_pages> PluginOwner::pages() const {
  if (api().pages == nullptr) return std::nullopt;
  auto pages = sized<holdfast_pages>();
  api().pages(owner_, &pages);
  return pages;
}

void PluginOwner::touch(const HostRange& range) const {
  if (api().touch != nullptr) {
    api().touch(owner_, range.base, range.bytes);
  } else {
    read_pages(range);
  }
}

Nanos PluginOwner::next_due_ns() const {
  const holdfast_inside* inside = library_->inside();
  return waiting_ || inside == nullptr ? fakes::kNever : inside->next_due_ns(owner_);
}

void PluginOwner::run_due(Nanos now_ns) {
  if (!waiting_) library_->inside()->run_due(owner_, now_ns);
}

}  // namespace holdfast::device
