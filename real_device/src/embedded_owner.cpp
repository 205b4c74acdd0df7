#include "holdfast/real_device/embedded_owner.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <string>

namespace holdfast::device {
namespace {

constexpr std::uint64_t kHeapBytes = 1ULL << 30;  // address space only
constexpr Nanos kLongestWait = kMinute;           // whoever waits longer looks now and then

Nanos steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Error open_error(FluxonErrc errc, std::string detail) {
  return fluxon_error(errc, "open_embedded_owner", std::move(detail));
}

}  // namespace

class EmbeddedOwner::Commit final : public PendingCommit {
 public:
  Commit(EmbeddedOwner& owner, Future future) : owner_(owner), future_(std::make_unique<Future>(std::move(future))) {}
  ~Commit() override {
    owner_.with([&](fakes::FakeOwner&) { future_.reset(); });
  }
  Commit(const Commit&) = delete;
  Commit& operator=(const Commit&) = delete;
  Result<std::vector<std::int32_t>> wait(Nanos limit_ns) override {
    return owner_.with([&](fakes::FakeOwner&) { return future_->wait(limit_ns); });
  }

 private:
  EmbeddedOwner& owner_;
  std::unique_ptr<Future> future_;
};

Result<std::unique_ptr<EmbeddedOwner>> EmbeddedOwner::open(const EmbeddedOptions& options) {
  const std::uint64_t grant_bytes = options.owner.grant_bytes;
  if (options.owner.segment_bytes == 0 || grant_bytes == 0 || grant_bytes % kSlotAlignment != 0) {
    return open_error(FluxonErrc::invalid_argument, "a segment of no bytes, or grants that are not whole slots");
  }
  if (options.owner.mappings == 0) return open_error(FluxonErrc::invalid_argument, "no mapping");
  try {
    return std::unique_ptr<EmbeddedOwner>(new EmbeddedOwner(options));
  } catch (const std::bad_alloc&) {
    return open_error(FluxonErrc::resource_exhausted, "the system refuses " +
                                                          std::to_string(options.owner.segment_bytes) +
                                                          " bytes of shared memory of the pages that were asked for");
  }
}

EmbeddedOwner::EmbeddedOwner(const EmbeddedOptions& options)
    : time_(options.time),
      opened_at_ns_(steady_now_ns()),
      memory_(options.pages),
      heap_({.reserve_bytes = kHeapBytes}),
      owner_(memory_, heap_, clock_, options.owner) {
  clock_.wait_with([this](Nanos instant_ns) { wait_until(instant_ns); });
}

Nanos EmbeddedOwner::now_ns() const { return time_ != nullptr ? time_->now_ns() : steady_now_ns() - opened_at_ns_; }

// What falls due at this very instant waits until time goes on, or until somebody lets it happen: as it would without a
// clock of somebody else's.
void EmbeddedOwner::catch_up() {
  const Nanos now = now_ns();
  if (now > clock_.now_ns()) clock_.advance_to(now);
}

void EmbeddedOwner::run_due() {
  const std::scoped_lock lock(mutex_);
  clock_.advance_to(now_ns());
  changed_.notify_all();
}

void EmbeddedOwner::wait_until(Nanos instant_ns) {
  if (time_ != nullptr) {
    time_->wait_until(instant_ns);
  } else {
    // Called with the lock, which others get meanwhile.
    changed_.wait_for(mutex_, std::chrono::nanoseconds(std::clamp<Nanos>(instant_ns - now_ns(), 0, kLongestWait)));
  }
  clock_.advance_to(now_ns());
}

Result<std::vector<Segment>> EmbeddedOwner::wait_local_segments_ready() {
  return with([](fakes::FakeOwner& owner) { return owner.wait_local_segments_ready(); });
}
Result<PlanPtr> EmbeddedOwner::local_fast_put_start(Keys keys, std::uint64_t value_len, const PutOptions& options) {
  return with([&](fakes::FakeOwner& owner) { return owner.local_fast_put_start(keys, value_len, options); });
}
Result<EmbeddedOwner::Future> EmbeddedOwner::local_fast_put_commit(PlanPtr plan) {
  Result<Future> future = with([&](fakes::FakeOwner& owner) { return owner.local_fast_put_commit(plan); });
  if (!future) return std::move(future.error());
  return Future(std::make_unique<Commit>(*this, std::move(*future)));
}
Status EmbeddedOwner::put_abort(PlanPtr plan) {
  return with([&](fakes::FakeOwner& owner) { return owner.put_abort(plan); });
}
Result<GetStart> EmbeddedOwner::get_start(Keys keys, bool prefix_best_effort,
                                          std::span<const std::uint32_t> atomic_group_lens) {
  return with([&](fakes::FakeOwner& owner) { return owner.get_start(keys, prefix_best_effort, atomic_group_lens); });
}
Result<PlanPtr> EmbeddedOwner::get_transfer(GetHandle handle, std::uint64_t prefix_len) {
  return with([&](fakes::FakeOwner& owner) { return owner.get_transfer(handle, prefix_len); });
}
Status EmbeddedOwner::cancel_get_transfer(GetHandle handle) {
  return with([&](fakes::FakeOwner& owner) { return owner.cancel_get_transfer(handle); });
}
Status EmbeddedOwner::release_views(PlanPtr plan) {
  return with([&](fakes::FakeOwner& owner) { return owner.release_views(plan); });
}
Status EmbeddedOwner::remove(std::string_view key) {
  return with([&](fakes::FakeOwner& owner) { return owner.remove(key); });
}
Status EmbeddedOwner::put(std::string_view key, std::span<const std::byte> bytes) {
  return with([&](fakes::FakeOwner& owner) { return owner.put(key, bytes); });
}
Result<std::vector<std::byte>> EmbeddedOwner::get(std::string_view key) {
  return with([&](fakes::FakeOwner& owner) { return owner.get(key); });
}

void EmbeddedOwner::reset(const fakes::OwnerOptions& options) {
  const std::scoped_lock lock(mutex_);
  clock_.reset();
  owner_.reset(options);
  catch_up();
  changed_.notify_all();
}

PagesGiven EmbeddedOwner::pages() {
  return with([&](fakes::FakeOwner& owner) {
    const Segment segment = owner.segment();
    return memory_.pages({segment.write_ptr, segment.read_ptr, segment.len});
  });
}

}  // namespace holdfast::device
