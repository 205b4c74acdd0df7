// One owner of a library from outside, as the harness drives it: a model of the Fluxon backend over the C table.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "holdfast/core/page_touch.hpp"
#include "holdfast/fakes/owner.hpp"
#include "holdfast/real_device/plugin_library.hpp"

namespace holdfast::device {

// Without the library's "inside" nothing is seen: no key, no plan, all counts 0. Without its "environment" the choices
// and events do nothing, but that a client's end is played here: its calls answer as they should, and the library's
// owner is closed, and another opened, when a new client comes. The harness's thread only.
class PluginOwner final : public fakes::Owner {
 public:
  // Adds itself to the clock, by which the library's owner lives. Throws std::runtime_error, with the library's words,
  // when it does not open.
  PluginOwner(std::shared_ptr<const PluginLibrary> library, fakes::VirtualClock& clock,
              const fakes::OwnerOptions& options = {});
  ~PluginOwner() override;
  PluginOwner(const PluginOwner&) = delete;
  PluginOwner& operator=(const PluginOwner&) = delete;

  void reset(const fakes::OwnerOptions& options) override;
  [[nodiscard]] fakes::OwnerPowers powers() const override {
    return {library_->inside() != nullptr, library_->environment() != nullptr};
  }

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
  Status put(std::string_view key, std::span<const std::byte> bytes) override;
  Result<std::vector<std::byte>> get(std::string_view key) override;

  void choose_next_commit(fakes::CommitChoice choice) override;
  void choose_next_get_start(fakes::GetStartChoice choice) override;
  void choose_next_abort(fakes::AbortChoice choice) override;
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
  [[nodiscard]] std::optional<fakes::KeyView> peek(std::string_view key) const override;
  // The view before it is no more.
  [[nodiscard]] std::optional<fakes::PlanView> plan(PlanPtr plan) const override;
  [[nodiscard]] std::optional<std::uint64_t> transferable(GetHandle handle) const override;
  [[nodiscard]] bool has_room(std::uint64_t count, std::uint64_t value_bytes) const override;
  [[nodiscard]] Segment segment() const override;
  [[nodiscard]] std::uint64_t generation() const override { return counts().generation; }
  [[nodiscard]] std::uint64_t incarnation() const override { return counts().incarnation; }
  [[nodiscard]] std::uint64_t live_plans() const override { return counts().live_plans; }
  [[nodiscard]] std::uint64_t live_handles() const override { return counts().live_handles; }
  [[nodiscard]] std::uint64_t undecided_commits() const override { return counts().undecided_commits; }
  [[nodiscard]] std::uint64_t holders() const override { return counts().holders; }
  [[nodiscard]] std::uint64_t prepared_slots() const override { return counts().prepared_slots; }
  [[nodiscard]] std::uint64_t stored_keys() const override { return counts().stored_keys; }
  [[nodiscard]] std::uint64_t stored_bytes() const override { return counts().stored_bytes; }
  [[nodiscard]] std::uint64_t held_bytes() const override { return counts().held_bytes; }
  [[nodiscard]] std::uint64_t damages() const override { return counts().damages; }
  [[nodiscard]] fakes::Place place_of(std::uintptr_t address) const override;
  void check_all_slots() override;
  [[nodiscard]] std::vector<fakes::Incident> take_incidents() override;
  [[nodiscard]] bool has_incidents() const override;
  // What pages the library says that it gave; nothing when it says nothing.
  [[nodiscard]] std::optional<holdfast_pages> pages() const;
  // Of the library's own making, where it has one; else by reading.
  void touch(const HostRange& range) const;

  [[nodiscard]] Nanos next_due_ns() const override;
  void run_due(Nanos now_ns) override;

 private:
  class Commit;
  [[nodiscard]] const holdfast_plugin_api& api() const { return library_->api(); }
  enum class Client : std::uint8_t { alive, closed, dead };

  void open();
  void shut();
  [[nodiscard]] holdfast_counts counts() const;
  void visit_stored_keys(StoredVisitor visitor, void* context) const override;
  // Of a client that has ended here.
  [[nodiscard]] Status usable(std::string_view call) const;
  [[nodiscard]] const holdfast_keys& as_keys(Keys keys);
  static void wait_until(void* self, std::int64_t instant_ns);

  const std::shared_ptr<const PluginLibrary> library_;
  fakes::VirtualClock& clock_;
  fakes::OwnerOptions options_;
  holdfast_host host_{};
  holdfast_owner* owner_ = nullptr;
  std::uint64_t opened_ = 0;      // how many times: a commit of an owner that was shut has gone with it
  std::vector<Commit*> commits_;  // that live
  Client client_ = Client::alive;
  bool waiting_ = false;  // for the clock, inside a call
  std::vector<holdfast_text> texts_;
  holdfast_keys keys_{};
  std::vector<holdfast_key_choice> choices_;
  mutable std::vector<std::string_view> plan_keys_;
  mutable std::vector<std::uintptr_t> plan_addresses_;
};
static_assert(FluxonRuntime<PluginOwner>);

}  // namespace holdfast::device
