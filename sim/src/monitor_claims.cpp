// What the store under test claims to hold, held against what its caller can know of each key.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "monitor_impl.hpp"

namespace holdfast::sim {
namespace {

constexpr std::string_view kOperationNames[] = {"none",    "open",      "resume",   "ingest", "hold",
                                                "evict",   "make_room", "warm_up",  "pump",   "snapshot",
                                                "restore", "close",     "shut_down"};

}  // namespace

std::string_view name_of(Operation operation) { return kOperationNames[static_cast<std::size_t>(operation)]; }

std::string Monitor::Impl::name(const NodeRecord& node) const {
  if (!node.name.empty()) return node.name;
  return node.identity == 0 ? "a node that the harness never saw" : fmt::format("node {}", node.identity);
}

void Monitor::Impl::begin(Operation kind, std::uint32_t source) {
  operation.begin(kind, source, ++last_ordinal);
  operation.epoch_before = segments.epoch();
  operation.changes_before = claim_changes;
  context.log.event(now(), "begin", std::array{static_cast<std::uint64_t>(kind)}, [&] {
    return source == kNobody ? std::string(name_of(kind))
                             : fmt::format("{} of {}", name_of(kind), name(claims.node(source)));
  });
}

void Monitor::Impl::endless() const {
  const std::string where = context.step == kDrainStep
                                ? std::string("the drain")
                                : fmt::format("step {} ({})", context.step, name_of(context.step_kind));
  const std::string what =
      fmt::format("no end: the operation {} of {} had made {} runtime calls by {:.6f} s of virtual time",
                  name_of(operation.kind), where, operation.calls, static_cast<double>(now()) / 1e9);
  if (context.on_endless) context.on_endless(what);
  fmt::print(stderr, "{}\n", what);
  std::abort();
}

void Monitor::Impl::end_warm_up(bool ok) {
  if (ok) {
    warm_epoch = segments.epoch();
  } else if (const HostRegistration* left = registrations.left_by(operation.ordinal)) {
    context.violate(Invariant::no_publish_on_failure, "",
                    fmt::format("warm_up failed, but registration {} that it made ({} bytes) is still there at {} ns",
                                left->ordinal, left->bytes, now()),
                    "registration of a failed warm_up");
  }
}

void Monitor::Impl::end(bool ok) {
  learn_what_was_heard();
  context.log.event(now(), "end", std::array{static_cast<std::uint64_t>(operation.kind), std::uint64_t{ok}},
                    [&] { return fmt::format("{}, {}", name_of(operation.kind), ok ? "ok" : "failed"); });
  if (!ok) {
    context.verdicts.checked(Invariant::no_publish_on_failure);
    if (operation.claims_made > 0) {
      context.violate(Invariant::no_publish_on_failure, "",
                      fmt::format("{} failed, but made {} claims", name_of(operation.kind), operation.claims_made),
                      fmt::format("claims of a failed {}", name_of(operation.kind)));
    }
  }
  if (operation.kind == Operation::warm_up) end_warm_up(ok);
  if (operation.kind == Operation::ingest && is_warm()) context.verdicts.checked(Invariant::progress);
  for (const OperationRecord::Claimed& given : operation.given_up) {
    const NodeRecord& node = claims.node(given.node);
    if ((node.claims & bit_of(given.claim)) != 0) continue;
    context.violate(Invariant::no_publish_on_failure, "",
                    fmt::format("{} withdrew the {} of {} and did not put it back, although each key of it answered 0 "
                                "and nothing has spoken against it since",
                                name_of(operation.kind), sim::name_of(given.claim), name(node)),
                    fmt::format("{} given up in {}", sim::name_of(given.claim), name_of(operation.kind)));
  }
  for (const OperationRecord::Claimed& removal : operation.removed) {
    const NodeRecord& node = claims.node(removal.node);
    if ((node.claims & bit_of(removal.claim)) == 0) continue;
    // Withdrawn as it should be, and stored anew by another operation meanwhile.
    if (node.withdrawals[static_cast<std::size_t>(removal.claim)] != removal.withdrawals) continue;
    context.violate(Invariant::ready_after_commit, "",
                    fmt::format("the {} of {} is still claimed at the end of {}, in which one of its keys was removed",
                                sim::name_of(removal.claim), name(node), name_of(operation.kind)),
                    fmt::format("{} claim and removal", sim::name_of(removal.claim)));
  }
  check_agreement(ok);
  const bool evicts = operation.kind == Operation::evict || operation.kind == Operation::make_room;
  if (evicts && claims.held() + claims.pinned() > 0) context.verdicts.checked(Invariant::pinned_stays);
  operation.begin(Operation::none, kNobody, ++last_ordinal);
}

bool Monitor::Impl::proven(Claim claim, std::uint32_t node, std::string_view locator, const ChunkShape& shape) {
  bool by_code = true;
  bool by_reading = true;
  std::uint32_t plan = 0;
  std::string missing;
  each_key(claim, locator, shape, [&](std::size_t index, std::string_view key_name) {
    const std::uint32_t key = claims.key(key_name);
    claims.assign(key, node, claim);
    const KeyRecord& record = claims.at(key);
    // That its owner has gone since, as another operation may have heard by now, the next read finds out.
    const bool own = side_by_side && record.stored_operation == operation.ordinal;
    const bool stored = record.stored && (own || record.epoch == segments.epoch());
    if (!stored && by_code) missing = key_name;
    by_code = by_code && stored;
    if (index == 0) plan = record.read_plan;
    by_reading =
        by_reading && record.read_plan != 0 && record.read_plan == plan && record.read_operation == operation.ordinal;
  });
  if (by_code || by_reading) return true;
  const std::uint32_t key = claims.key(missing);
  const Nanos committed_ns = claims.at(key).last_commit_ns;
  context.violate(
      Invariant::ready_after_commit, "",
      fmt::format("the {} of {} is claimed at {} ns during {}, but {} has no code 0 of its own since it was last not "
                  "stored ({}), and no read plan of this operation, {} s after the last commit, covers the whole claim",
                  sim::name_of(claim), name(claims.node(node)), now(), name_of(operation.kind), missing,
                  committed_ns == KeyRecord::kNeverCommitted ? "never committed"
                                                             : fmt::format("last committed at {} ns", committed_ns),
                  kSettleBound / kSecond),
      fmt::format("{} claim and {}", sim::name_of(claim),
                  committed_ns == KeyRecord::kNeverCommitted ? "no commit" : "a commit without code 0"));
  return false;
}

void Monitor::Impl::check_bytes(Claim claim, const NodeRecord& node, std::string_view locator,
                                const ChunkShape& shape) {
  if (!node.known) return;
  const std::size_t values = claim == Claim::kv ? node.value_digests.size() : 1;
  if (claim == Claim::kv && values != shape.values()) {
    context.violate(Invariant::ready_after_commit, "",
                    fmt::format("the kv of {} is claimed with {} values in {} layers, its source has {}", name(node),
                                shape.values(), shape.n_layers, values),
                    "kv claim and number of values");
    return;
  }
  bool all_there = true;
  each_key(claim, locator, shape, [&](std::size_t index, std::string_view key_name) {
    // A value may have gone again: evicted, or with its owner.
    const std::optional<std::uint64_t> stored = tap.stored_digest(key_name);
    if (!stored) {
      all_there = false;
      return;
    }
    const std::uint64_t source = claim == Claim::kv ? node.value_digests[index] : node.latent_digest;
    if (*stored == source) return;
    context.violate(Invariant::ready_after_commit, "",
                    fmt::format("{} of {} is claimed at {} ns during {}, but the stored bytes (hash {:016x}) are not "
                                "the source's (hash {:016x})",
                                key_name, name(node), now(), name_of(operation.kind), *stored, source),
                    fmt::format("{} claim and other bytes", sim::name_of(claim)));
  });
  if (all_there) context.verdicts.checked(Invariant::ready_after_commit);
}

void Monitor::Impl::claim(Claim claim, std::string_view locator, const ChunkShape& shape) {
  const std::uint32_t node = claims.node_of_locator(locator, operation.source);
  context.log.event(now(), "claim", std::array{hash_of(locator), static_cast<std::uint64_t>(claim)},
                    [&] { return fmt::format("{} of {}", sim::name_of(claim), name(claims.node(node))); });
  ++operation.claims_made;
  claims.node(node).claims |= bit_of(claim);
  note_claimed(claims.node(node), claim);
  if (claim == Claim::kv) claims.node(node).shape = shape;
  if (operation.kind == Operation::restore) {  // a hint, until a get confirms it
    each_key(claim, locator, shape,
             [&](std::size_t, std::string_view key_name) { claims.assign(claims.key(key_name), node, claim); });
    return;
  }
  context.verdicts.checked(Invariant::ready_after_commit);
  if (memory_store) {
    // Which copies are of which value nobody tells; beside others, those of the operation.
    if (const FlightBatch* batch =
            side_by_side ? copies.oldest_of_operation(operation.ordinal) : copies.oldest_to_host()) {
      context.violate(Invariant::ready_after_commit, "",
                      fmt::format("the {} of {} is claimed at {} ns while {} may be in flight", sim::name_of(claim),
                                  name(claims.node(node)), now(), describe(*batch)),
                      fmt::format("{} claim and batch {}", sim::name_of(claim), to_string(batch->direction)));
    }
    return;
  }
  if (proven(claim, node, locator, shape)) check_bytes(claim, claims.node(node), locator, shape);
}

std::string Monitor::Impl::why_it_stays(const NodeRecord& node, Claim claim) const {
  if (claim == Claim::latent && !world_goes) return "latents are the skeleton, which always stays";
  if (node.pinned) return "the node is pinned";
  if (node.holds > 0) return fmt::format("the node is referenced {} times", node.holds);
  for (const std::uint32_t key : node.keys[static_cast<std::size_t>(claim)]) {
    if (const PlanRecord* reader = plans.reader_of(key)) return fmt::format("{} reads it", describe(*reader));
    const KeyRecord& record = claims.at(key);
    // What this eviction itself left in doubt is no objection, nor what an earlier client did: this one cannot know.
    if (claims.unknown(record, segments.epoch()) && record.unknown_operation != operation.ordinal &&
        record.unknown_operation > last_of_earlier_client) {
      return fmt::format("a key of it is unsettled (last committed at {} ns)", record.last_commit_ns);
    }
  }
  return {};
}

bool Monitor::Impl::surely_stored(const NodeRecord& node, Claim claim) const {
  const std::vector<std::uint32_t>& keys = node.keys[static_cast<std::size_t>(claim)];
  return !keys.empty() && std::ranges::all_of(keys, [&](std::uint32_t key) {
    const KeyRecord& record = claims.at(key);
    return record.stored && record.epoch == segments.epoch() && !claims.unknown(record, segments.epoch());
  });
}

void Monitor::Impl::withdraw(Claim claim, std::string_view locator) {
  const std::uint32_t index = claims.node_of_locator(locator, kNobody);
  NodeRecord& node = claims.node(index);
  context.log.event(now(), "withdrawal", std::array{hash_of(locator), static_cast<std::uint64_t>(claim)},
                    [&] { return fmt::format("{} of {}", sim::name_of(claim), name(node)); });
  if ((node.claims & bit_of(claim)) == 0) return;
  node.claims &= ~bit_of(claim);
  node.withdrawn_operation[static_cast<std::size_t>(claim)] = operation.ordinal;
  ++node.withdrawals[static_cast<std::size_t>(claim)];
  node.standing[static_cast<std::size_t>(claim)].withdrawn_at = ++claim_changes;
  if (!operation.may_evict(index)) {
    context.verdicts.checked(Invariant::no_publish_on_failure);
    const bool corrupt = !memory_store && was_found_corrupt(index, claim, locator);
    if (!corrupt && surely_stored(node, claim)) operation.given_up.push_back({index, claim, 0});
    check_withdrawal(index, claim, locator, corrupt);
    return;
  }
  context.verdicts.checked(Invariant::pinned_stays);
  const std::string why = why_it_stays(node, claim);
  if (why.empty()) return;
  context.violate(Invariant::pinned_stays, "",
                  fmt::format("{} withdraws the {} of {} at {} ns, but {}", name_of(operation.kind),
                              sim::name_of(claim), name(node), now(), why),
                  fmt::format("{} withdrawal, {}", sim::name_of(claim), why));
}

void Monitor::Impl::hold(std::uint64_t identity) {
  claims.hold(identity, true);
  context.verdicts.checked(Invariant::pinned_stays);
  const NodeRecord& node = claims.node(claims.find_identity(identity));
  if ((node.claims & bit_of(Claim::kv)) != 0) return;
  context.violate(
      Invariant::pinned_stays, "",
      fmt::format("references to {} were taken, but its {} is not ready: withdrawn between the look and the "
                  "reference",
                  name(node), sim::name_of(Claim::kv)),
      "a reference to what is not ready");
}

void Monitor::Impl::removing(std::uint32_t key, std::string_view key_name) {
  const KeyRecord& record = claims.at(key);
  if (record.node == kNobody) return;
  const NodeRecord& node = claims.node(record.node);
  const auto which = static_cast<std::size_t>(record.claim);
  const bool claimed = (node.claims & bit_of(record.claim)) != 0;
  const bool being_evicted = node.withdrawn_operation[which] == operation.ordinal && operation.may_evict(record.node);
  if (!claimed && !being_evicted) {
    // A leftover; or a blob whose eviction failed before, and which is a victim again only when its keys are decided.
    const bool in_doubt = record.removal_not_found && claims.unknown(record, segments.epoch()) &&
                          record.unknown_operation != operation.ordinal &&
                          record.unknown_operation > last_of_earlier_client &&
                          now() < record.last_commit_ns + kSettleBound;
    if (!in_doubt || !operation.may_evict(record.node)) return;
    context.verdicts.checked(Invariant::pinned_stays);
    violate(
        Invariant::pinned_stays, Call::remove,
        fmt::format("{} evicts {} again at {} ns, but {} is unsettled: its removal found nothing within {} s of its "
                    "last commit",
                    name_of(operation.kind), name(node), now(), key_name, kSettleBound / kSecond),
        "a removal in doubt");
    return;
  }
  if (claimed) operation.removed.push_back({record.node, record.claim, node.withdrawals[which]});
  context.verdicts.checked(Invariant::pinned_stays);
  // Its withdrawal has told already.
  if (!claimed) return;
  const std::string why = why_it_stays(node, record.claim);
  if (why.empty()) return;
  violate(Invariant::pinned_stays, Call::remove,
          fmt::format("{} of the claimed {} of {} is removed at {} ns during {}, but {}", key_name,
                      sim::name_of(record.claim), name(node), now(), name_of(operation.kind), why),
          fmt::format("{} removal, {}", sim::name_of(record.claim), why));
}

void Monitor::Impl::removed(std::uint32_t key, const Status& answer) {
  KeyRecord& record = claims.at(key);
  if (record.removal_not_found) context.marks.reach(Mark::leftover_removal_repeated);
  if (record.removal_lost) context.marks.reach(Mark::removal_lost_repeated);
  const bool leftover = record.node == kNobody || (claims.node(record.node).claims & bit_of(record.claim)) == 0;
  if (answer && leftover && operation.commit_failed && record.stored_operation == operation.ordinal) {
    context.marks.reach(Mark::leftovers_removed);
  }
  record.removal_not_found = record.removal_lost = false;
  if (answer) {
    claims.decide(key, false);
    return;
  }
  record.stored = false;
  record.read_plan = 0;
  const bool within_bound = now() < record.last_commit_ns + kSettleBound;
  if (is_fluxon(answer.error(), FluxonErrc::key_not_found)) {
    record.removal_not_found = within_bound && leftover;
    if (!within_bound) {
      claims.decide(key, false);
      return;
    }
  } else {
    record.removal_lost = is_fluxon(answer.error(), FluxonErrc::network);
  }
  if (!claims.unknown(record, segments.epoch())) record.unknown_operation = operation.ordinal;
  record.epoch = segments.epoch();
}

bool Monitor::Impl::unsettled(const NodeRecord& node) const {
  return std::ranges::any_of(node.keys, [&](const std::vector<std::uint32_t>& keys) {
    return std::ranges::any_of(keys,
                               [&](std::uint32_t key) { return claims.unknown(claims.at(key), segments.epoch()); });
  });
}

}  // namespace holdfast::sim
