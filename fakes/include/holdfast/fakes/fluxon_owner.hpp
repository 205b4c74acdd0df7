// A Fluxon owner in this process, as complete and as boring as the Plan contract: real bytes, virtual time, no faults
// of its own. What an environment may decide (a commit's fate, a route's delay, an eviction, a restart) is decided here
// by whoever runs it; failures of calls are injected above it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/backend.hpp"
#include "holdfast/fakes/arena.hpp"
#include "holdfast/fakes/owner.hpp"

namespace holdfast::fakes {

// A model of FluxonBackend: one owner with at most one client, this process. Not for several threads. Calls that wait
// (put_start for slots, wait, a mount) move the clock. Futures must not outlive it.
class FakeOwner final : public Owner {
 public:
  // Adds itself to the clock, and removes itself when destroyed.
  FakeOwner(Arena& arena, VirtualClock& clock, const OwnerOptions& options = {});
  // With segments from elsewhere; `heap` is where plan blobs lie.
  FakeOwner(SegmentMemory& segments, Arena& heap, VirtualClock& clock, const OwnerOptions& options = {});
  ~FakeOwner() override;
  FakeOwner(const FakeOwner&) = delete;
  FakeOwner& operator=(const FakeOwner&) = delete;
  void reset(const OwnerOptions& options) override;

  Result<std::vector<Segment>> wait_local_segments_ready() override;
  Result<PlanPtr> local_fast_put_start(Keys keys, std::uint64_t value_len, const PutOptions& options) override;
  Result<Future> local_fast_put_commit(PlanPtr plan) override;
  Status put_abort(PlanPtr plan) override;
  Result<GetStart> get_start(Keys keys, bool prefix_best_effort,
                             std::span<const std::uint32_t> atomic_group_lens) override;
  Result<PlanPtr> get_transfer(GetHandle handle, std::uint64_t prefix_len) override;
  Status cancel_get_transfer(GetHandle handle) override;
  Status release_views(PlanPtr plan) override;
  Status remove(std::string_view key) override;
  // Overwrites, as a put without reject flags does.
  Status put(std::string_view key, std::span<const std::byte> bytes) override;
  Result<std::vector<std::byte>> get(std::string_view key) override;

  void choose_next_commit(CommitChoice choice) override;
  void choose_next_get_start(GetStartChoice choice) override;
  void choose_next_abort(AbortChoice choice) override;
  void choose_next_release_pins() override;
  void choose_next_release_drops_after(Nanos delay_ns) override;
  void choose_next_cancel_pins() override;
  void mount_at(Nanos instant_ns) override;
  bool evict(std::string_view key) override;
  bool damage(std::string_view key, std::uint64_t draw) override;
  void restart(std::uint64_t generation_step = 1) override;
  void client_died() override;
  void close() override;
  void new_client() override;
  [[nodiscard]] std::optional<KeyView> peek(std::string_view key) const override;
  [[nodiscard]] std::optional<PlanView> plan(PlanPtr plan) const override;
  [[nodiscard]] std::optional<std::uint64_t> transferable(GetHandle handle) const override;
  [[nodiscard]] bool has_room(std::uint64_t count, std::uint64_t value_bytes) const override;
  [[nodiscard]] Segment segment() const override;
  [[nodiscard]] std::uint64_t generation() const override;
  [[nodiscard]] std::uint64_t incarnation() const override;
  [[nodiscard]] std::uint64_t live_plans() const override;
  [[nodiscard]] std::uint64_t live_handles() const override;
  [[nodiscard]] std::uint64_t undecided_commits() const override;
  [[nodiscard]] std::uint64_t holders() const override;
  [[nodiscard]] std::uint64_t prepared_slots() const override;
  [[nodiscard]] std::uint64_t stored_keys() const override;
  [[nodiscard]] std::uint64_t stored_bytes() const override;
  [[nodiscard]] std::uint64_t held_bytes() const override;
  [[nodiscard]] std::uint64_t damages() const override;
  [[nodiscard]] Place place_of(std::uintptr_t address) const override;
  void check_all_slots() override;
  [[nodiscard]] std::vector<Incident> take_incidents() override;
  [[nodiscard]] bool has_incidents() const override;

  [[nodiscard]] Nanos next_due_ns() const override;
  void run_due(Nanos now_ns) override;

 private:
  struct State;
  class Commit;
  void visit_stored_keys(StoredVisitor visitor, void* context) const override;

  std::unique_ptr<State> state_;
};
static_assert(FluxonRuntime<FakeOwner>);
static_assert(std::derived_from<FakeOwner, Owner>);

}  // namespace holdfast::fakes
