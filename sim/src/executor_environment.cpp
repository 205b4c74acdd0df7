// The steps that are nobody's call: evictions by the owner, its restarts, the client's deaths, time.
#include <algorithm>

#include "claim_ledger.hpp"
#include "executor_impl.hpp"
#include "holdfast/sim/pseudo_bytes.hpp"

namespace holdfast::sim {
namespace {

constexpr Nanos kPassMax = 365LL * 24 * 60 * kMinute;  // of one step; more than any time-out
constexpr int kDeathsMax = 4;                          // in one step

// Which of the unsynced bytes and folder changes a crash leaves: differs from death to death, not from run to run.
fakes::CrashChoice crash_choice(const Trace& trace, std::uint32_t step, std::uint32_t incarnation) {
  const std::uint64_t draw = mix(mix(trace.seed, step), incarnation);
  fakes::CrashChoice choice;
  switch (draw % 3) {
    case 0:
      choice.bytes = fakes::UnsyncedBytes::lost;
      break;
    case 1:
      choice.bytes = fakes::UnsyncedBytes::torn;
      choice.torn_bytes = (draw >> 8) % 256;
      break;
    default:
      choice.bytes = fakes::UnsyncedBytes::kept;
      break;
  }
  choice.folder_changes_kept = (draw >> 16) % 3;
  return choice;
}

std::string key_of_value(const std::string& locator, const ChunkShape& shape, std::size_t value) {
  return locator + ":L" + std::to_string(shape.layer_of(value)) +
         std::string(kPartSuffixes[static_cast<std::size_t>(shape.part_of(value))]);
}

}  // namespace

Executor::Impl::Ending Executor::Impl::store_evict(const Step& step) {
  Ending ending;
  const Session* session = find(step.of, false);
  if (session == nullptr || step.depth >= session->path.size()) {
    ending.skipped = true;
    return ending;
  }
  const NodeIndex index = session->path[step.depth];
  const std::uint64_t identity = oracle.node(index).identity;
  const Claim claim = step.amount % 2 == 0 ? Claim::kv : Claim::latent;
  const std::string locator = book.locator_of(identity, claim);
  if (locator.empty()) {
    ending.skipped = true;
    return ending;
  }
  if (step.amount >= kDamageBlob) return damage(step, index, claim, locator);
  std::uint64_t evicted = 0;
  if (claim == Claim::latent) {
    evicted = owner.evict(locator) ? 1 : 0;
  } else {
    const ChunkShape shape = oracle.layout(oracle.node(index).layout).geometry.chunk_shape();
    for (std::size_t value = 0; value < shape.values(); ++value) {
      evicted += owner.evict(key_of_value(locator, shape, value)) ? 1 : 0;
    }
  }
  const ClaimBook::Node& node = book_node(index);
  if (evicted > 0 && (claim == Claim::kv ? node.kv : node.latent)) context.marks.reach(Mark::store_evicted_ready);
  ending.first = evicted;
  if (wants_text()) ending.text = std::to_string(evicted) + " values of " + oracle.describe(index);
  return ending;
}

// One byte of one value, as it lies in the owner. Only of what is ready, and only where the store has a checksum of it.
Executor::Impl::Ending Executor::Impl::damage(const Step& step, NodeIndex index, Claim claim,
                                              const std::string& locator) {
  Ending ending;
  const ClaimBook::Node& node = book_node(index);
  if (!trace->checksums || trace->in_memory_store || !(claim == Claim::kv ? node.kv : node.latent)) {
    ending.skipped = true;
    return ending;
  }
  std::string key = locator;
  const std::uint64_t draw = mix(trace->seed, step.id);
  if (claim == Claim::kv) {
    const ChunkShape shape = oracle.layout(oracle.node(index).layout).geometry.chunk_shape();
    key = key_of_value(locator, shape, (draw >> 32) % shape.values());
  }
  ending.skipped = !owner.damage(key, draw >> 8);
  if (!ending.skipped) ending.first = 1;
  if (wants_text()) ending.text = "a byte of a value of " + oracle.describe(index);
  return ending;
}

Executor::Impl::Ending Executor::Impl::owner_restart() {
  injector.restart_owner();
  Ending ending;
  ending.first = owner.generation();
  return ending;
}

Executor::Impl::Ending Executor::Impl::pass_time(const Step& step) {
  const Nanos length = step.amount > static_cast<std::uint64_t>(kPassMax) ? kPassMax : static_cast<Nanos>(step.amount);
  clock.advance_by(length);
  Ending ending;
  ending.first = static_cast<std::uint64_t>(length);
  if (wants_text()) ending.text = std::to_string(length) + " ns";
  return ending;
}

Executor::Impl::Ending Executor::Impl::restart() {
  Ending ending;
  static_cast<void>(restart_client(ending));
  return ending;
}

// ---- Death.

// Keys that the owner has from this incarnation, or may yet have: its successor need not know of them.
void Executor::Impl::note_old_keys() {
  undecided_at_death |= owner.undecided_commits() > 0 || owner.prepared_slots() > 0;
  owner.for_each_stored_key([&](std::string_view key, const fakes::KeyView&) { old_keys.emplace(key); });
}

void Executor::Impl::drop_sessions(bool context_gone) {
  for (Session& session : sessions) {
    if (!session.open) continue;
    keep_output(session);
    if (context_gone) {
      session.engine->abandon();
    } else {
      session.engine->close();
    }
    spare_engines.push_back(std::move(session.engine));
    session.open = false;
  }
  for (const auto& [id, hold] : holds) {
    for (const std::uint64_t identity : hold.identities) monitor.unhold(identity);
  }
  holds.clear();
}

bool Executor::Impl::restart_client(Ending& ending) {
  const bool context_gone = injector.context_dead() || device.context_dead();
  // A copy that a real device lets come to its end does so before its memory is another's.
  device.client_died();
  owner.client_died();
  hazards.all_ended();
  note_old_keys();
  // What the dying store's destructors try is not the store's doing any more.
  Stats told = system->inspect().stats;
  told.unsettled_keys.now = told.quarantined_plans.now = told.accounted_bytes = 0;  // with the store
  result.stats += told;
  const bool faults_on = context.faults_on;
  context.faults_on = false;
  system.reset();
  context.faults_on = faults_on;
  drop_sessions(context_gone);
  if (context_gone) {
    spare_engines.clear();
    device.tear_down();
    hazards.all_ended();
    injector.tear_down();
    monitor.device_torn_down();
  }
  files.crash(crash_choice(*trace, context.step, book.incarnation()));
  injector.new_incarnation();
  monitor.new_incarnation();
  book.client_died();
  oracle.after_restart();

  system = factory(side_by_side ? turn_ports : ports, book, system_options);
  context.log.event(clock.now_ns(), "restart", std::array{static_cast<std::uint64_t>(book.incarnation())},
                    [&] { return "incarnation " + std::to_string(book.incarnation()); });
  const std::size_t fired = injector.fired().size();
  const Status restored = operate(Operation::restore, ending, [&] { return system->restore(); });
  if (injector.client_dead()) return false;
  if (!restored) {
    if (mentions(restored.error(), Origin::core, static_cast<std::int32_t>(Errc::bad_snapshot))) {
      context.marks.reach(Mark::torn_snapshot_refused);
      // What is there was renamed when it was whole.
      context.verdicts.checked(Invariant::restart_safe);
      if (injector.fired().size() == fired) {
        context.violate(Invariant::restart_safe, {}, "what was saved is refused: " + to_string(restored.error()),
                        "a snapshot refused");
      }
    }
    context.verdicts.checked(Invariant::no_publish_on_failure);
    const Inspection left = system->inspect();
    if (left.ready_blobs + left.ready_latents + left.nodes > 0 || book.blobs() > 0) {
      context.violate(Invariant::no_publish_on_failure, {},
                      "a refused snapshot left " + std::to_string(left.nodes) + " nodes, " +
                          std::to_string(left.ready_blobs) + " ready blobs and " + std::to_string(left.ready_latents) +
                          " ready latents; " + std::to_string(book.blobs()) + " blobs were claimed",
                      "what a refused snapshot left");
    }
  } else if (wants_text()) {
    ending.text +=
        (ending.text.empty() ? "" : "; ") + std::string("restored ") + std::to_string(book.blobs()) + " blobs";
  }
  ending.second = book.blobs();
  return true;
}

void Executor::Impl::survive_death(Ending& ending) {
  for (int death = 0; death < kDeathsMax; ++death) {
    if (death + 1 == kDeathsMax) context.faults_on = false;
    if (system->inspect().quarantined > 0) context.marks.reach(Mark::death_with_quarantine);
    if (restart_client(ending)) break;
    context.marks.reach(Mark::death_in_restart);
  }
  context.faults_on = context.step != kDrainStep;
}

// Every copy in flight is gone with the context, and so is every engine.
void Executor::Impl::tear_down_device() {
  const std::uint64_t quarantined = system->inspect().quarantined;
  for (Session& session : sessions) {
    if (session.open) session.engine->abandon();
  }
  spare_engines.clear();
  device.tear_down();
  hazards.all_ended();
  injector.tear_down();
  monitor.device_torn_down();
  system->device_torn_down();
  if (quarantined > 0 && system->inspect().quarantined == 0) context.marks.reach(Mark::quarantine_torn_down);
  monitor.check_all_ended();  // while the client that began them is still there
}

}  // namespace holdfast::sim
