// Capacity: what is accounted against what is claimed and what is held, and what a put may begin to add.
#include "executor_impl.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kKeysLookedAtMax = 1 << 12;

}  // namespace

// Claims and plans that are live take slots whatever the store believes; what it accounts has this put in it by now.
void Executor::Impl::check_put_fits(std::uint64_t slots) {
  context.verdicts.checked(Invariant::capacity_bound);
  const auto violate = [&](std::uint64_t bytes, std::string_view what) {
    context.violate(Invariant::capacity_bound, name_of(Call::local_fast_put_start),
                    "a put of " + std::to_string(slots) + " bytes starts, and with it " + std::to_string(bytes) +
                        " bytes are " + std::string(what) + ": more than the capacity of " +
                        std::to_string(trace->capacity_bytes),
                    "a put over the limit");
  };
  const std::uint64_t taken = book.claimed_slot_bytes() + monitor.live_put_bytes() + slots;
  if (taken > trace->capacity_bytes) return violate(taken, "claimed or put");
  // Beside others it may not be asked: its locks are turns.
  if (side_by_side) return;
  const std::uint64_t accounted = system->inspect().accounted_bytes;
  if (accounted > trace->capacity_bytes) violate(accounted, "accounted");
}

std::optional<std::uint64_t> Executor::Impl::held_and_known() {
  if (book.incarnation() == 1) return owner.stored_bytes();
  // What an earlier client stored, or was storing, this one need not know.
  if (undecided_at_death || owner.stored_keys() > kKeysLookedAtMax) return std::nullopt;
  std::uint64_t held = 0;
  owner.for_each_stored_key([&](std::string_view key, const fakes::KeyView& view) {
    if (!old_keys.contains(key)) held += slot_bytes(view.value_bytes);
  });
  return held;
}

void Executor::Impl::check_accounts() {
  // A store in ordinary memory holds nothing of the owner's. After a lie anything may be held.
  if (trace->in_memory_store || hostile || !context.verdicts.enabled(Invariant::capacity_bound)) return;
  context.verdicts.checked(Invariant::capacity_bound);
  const Inspection now = system->inspect();
  const std::uint64_t known = book.claimed_slot_bytes() + now.in_doubt_bytes;
  if (now.accounted_bytes != known) {
    context.violate(Invariant::capacity_bound, {},
                    "the store accounts " + std::to_string(now.accounted_bytes) + " bytes; its claims take " +
                        std::to_string(book.claimed_slot_bytes()) + ", and " + std::to_string(now.in_doubt_bytes) +
                        " are in doubt",
                    now.accounted_bytes > known ? "accounted and not there" : "there and not accounted");
  }
  const std::optional<std::uint64_t> held = held_and_known();
  if (!held || now.accounted_bytes >= *held) return;
  context.violate(Invariant::capacity_bound, {},
                  "the store accounts " + std::to_string(now.accounted_bytes) + " bytes, but the owner holds " +
                      std::to_string(*held) + " of it",
                  "held and not accounted");
}

void Executor::Impl::check_capacity() {
  if (trace->capacity_bytes == 0) return;
  context.verdicts.checked(Invariant::capacity_bound);
  if (book.claimed_slot_bytes() <= trace->capacity_bytes) return;
  context.violate(Invariant::capacity_bound, {},
                  "what is claimed takes " + std::to_string(book.claimed_slot_bytes()) + " bytes of a capacity of " +
                      std::to_string(trace->capacity_bytes),
                  "more than the capacity");
}

}  // namespace holdfast::sim
