// What is claimed, held against what gets said of it and against what the store had: index-agrees.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "holdfast/core/answers.hpp"
#include "monitor_impl.hpp"

namespace holdfast::sim {
namespace {

std::string_view words_of(OwnGet own) {
  switch (own) {
    case OwnGet::missed:
      return "a get of its own had missed a key of it";
    case OwnGet::found:
      return "a get of its own had found it";
    case OwnGet::failed:
      return "the get of its own had failed";
    case OwnGet::none:
      break;
  }
  return "no get of its own had asked for it";
}

}  // namespace

void Monitor::Impl::note_claimed(NodeRecord& node, Claim claim) {
  ClaimStanding& standing = node.standing[static_cast<std::size_t>(claim)];
  standing.claimed_at = ++claim_changes;
  // A snapshot's is a hint.
  standing.seen_epoch = operation.kind == Operation::restore ? 0 : segments.epoch();
}

void Monitor::Impl::note_get(Keys keys, std::span<const std::uint32_t> of, std::size_t groups,
                             const Result<GetStart>& answer) {
  if (memory_store) return;
  if (answer && !check_get_start(*answer, of.size(), std::max<std::size_t>(groups, 1))) {
    note_get(keys, of, groups, make_error(Errc::bad_answer, "get_start", "no caller can make sense of it"));
    return;
  }
  const bool all = answer && answer->raw_prefix_hit_len >= of.size();
  for (std::size_t begin = 0; begin < of.size();) {
    const KeyRecord& first = claims.at(of[begin]);
    std::size_t end = begin + 1;
    while (end < of.size() && claims.at(of[end]).node == first.node && claims.at(of[end]).claim == first.claim) ++end;
    if (first.node != kNobody) {
      note_asked({first.node, first.claim, begin, end}, keys, of.size(), answer, all);
    }
    begin = end;
  }
}

void Monitor::Impl::note_asked(const AskedRun& run, Keys keys, std::size_t asked_keys, const Result<GetStart>& answer,
                               bool all) {
  NodeRecord& node = claims.node(run.node);
  const bool own = run.end - run.begin == asked_keys;
  check_asked_for(run, node);
  if (all) {
    ClaimStanding& standing = node.standing[static_cast<std::size_t>(run.claim)];
    if (run.end - run.begin >= node.keys[static_cast<std::size_t>(run.claim)].size()) {
      if (own && standing.seen_epoch < segments.epoch() && (node.claims & bit_of(run.claim)) != 0) {
        context.marks.reach(Mark::hint_confirmed);
      }
      standing.seen_epoch = segments.epoch();
    }
    AskedClaim* asked = own ? operation.asked.find(run.node, run.claim) : nullptr;
    if (asked == nullptr) return;
    asked->own = OwnGet::found;
    asked->incomplete = false;
    return;
  }
  if (!answer) {
    if (!own) return;
    AskedClaim& asked = operation.asked.note(run.node, run.claim);
    asked.own = OwnGet::failed;
    asked.incomplete = false;
    return;
  }
  AskedClaim& asked = operation.asked.note(run.node, run.claim);
  const std::uint64_t missed = answer->raw_prefix_hit_len;
  asked.told_missing |= missed >= run.begin && missed < run.end;
  for (std::size_t i = run.begin; i < run.end && !asked.absent; ++i) asked.absent = !tap.is_stored(keys[i]);
  asked.own = own ? OwnGet::missed : OwnGet::none;
  asked.incomplete = !own;
  if (!own || (node.claims & bit_of(run.claim)) == 0) return;
  if (operation.kind == Operation::ingest) context.marks.reach(Mark::hint_gone);
  if (operation.kind == Operation::pump) context.marks.reach(Mark::probed_gone);
}

void Monitor::Impl::note_vanished(const HandleRecord& handle) {
  if (memory_store || operation.kind != Operation::resume) return;
  for (const std::uint32_t key : handle.keys) {
    const KeyRecord& record = claims.at(key);
    if (record.node == kNobody) continue;
    AskedClaim& asked = operation.asked.note(record.node, record.claim);
    asked.own = OwnGet::none;
    asked.incomplete = true;
  }
}

void Monitor::Impl::note_damaged(const HandleRecord& handle, std::span<const std::uint32_t> keys) {
  for (const std::uint32_t key : handle.damaged) {
    const KeyRecord& record = claims.at(key);
    if (record.node == kNobody || std::ranges::find(keys, key) == keys.end()) continue;
    operation.asked.note(record.node, record.claim).damaged = true;
    operation.read_damaged |= (claims.node(record.node).claims & bit_of(record.claim)) != 0;
  }
}

bool Monitor::Impl::was_found_corrupt(std::uint32_t index, Claim claim, std::string_view locator) {
  // Only who reads it can tell.
  if (operation.kind != Operation::resume) return false;
  // It may have gone with its owner since.
  if (const AskedClaim* asked = operation.asked.find(index, claim); asked != nullptr && asked->damaged) return true;
  const NodeRecord& node = claims.node(index);
  bool corrupt = false;
  each_key(claim, locator, node.shape, [&](std::size_t value, std::string_view key) {
    const std::optional<std::uint64_t> stored = tap.stored_digest(key);
    const bool has_source = node.known && (claim == Claim::latent || value < node.value_digests.size());
    const std::uint64_t source = !has_source ? 0 : claim == Claim::kv ? node.value_digests[value] : node.latent_digest;
    corrupt |= has_source && stored && *stored != source;
  });
  return corrupt;
}

// A resume reads what was claimed when it looked.
void Monitor::Impl::check_asked_for(const AskedRun& run, const NodeRecord& node) {
  if (operation.kind != Operation::resume) return;
  context.verdicts.checked(Invariant::index_agrees);
  if ((node.claims & bit_of(run.claim)) != 0) return;
  if (side_by_side && node.standing[static_cast<std::size_t>(run.claim)].withdrawn_at > operation.changes_before)
    return;
  violate(Invariant::index_agrees, Call::get_start,
          fmt::format("a resume reads the {} of {} at {} ns, which is not claimed", sim::name_of(run.claim), name(node),
                      now()),
          fmt::format("{} read without a claim", sim::name_of(run.claim)));
}

void Monitor::Impl::check_withdrawal(std::uint32_t index, Claim claim, std::string_view locator, bool corrupt) {
  if (memory_store) return;
  const NodeRecord& node = claims.node(index);
  context.verdicts.checked(Invariant::index_agrees);
  const AskedClaim* asked = operation.asked.find(index, claim);
  if (asked != nullptr && (asked->absent || asked->told_missing)) return;
  bool absent = false;
  each_key(claim, locator, node.shape,
           [&](std::size_t, std::string_view key) { absent = absent || !tap.is_stored(key); });
  if (absent) return;
  if (corrupt) {
    context.marks.reach(Mark::corrupt_found);
    return;
  }
  context.violate(
      Invariant::index_agrees, "",
      fmt::format("{} withdraws the {} of {} at {} ns, but the store has all of it, and {}", name_of(operation.kind),
                  sim::name_of(claim), name(node), now(), words_of(asked == nullptr ? OwnGet::none : asked->own)),
      fmt::format("{} withdrawn though it is there", sim::name_of(claim)));
}

// A new owner's mapping may lie where a copy is stuck, and cannot be registered, or what was registered of it cannot be
// rolled back: then nothing is asked of that owner.
bool Monitor::Impl::owner_usable() const {
  const std::uintptr_t base = segments.newest_write_base();
  if (base == 0) return true;
  const HostRegistration* registration = registrations.find(base);
  return registration != nullptr && !registration->stuck && registration->epoch == segments.epoch();
}

void Monitor::Impl::check_agreement(bool ok) {
  last_epoch_before = operation.epoch_before;
  last_read_damaged = operation.read_damaged;
  const bool refused = operation.looks_failed || operation.registration_failed || !owner_usable();
  last_doubtful = refused;
  for (const AskedClaim& asked : operation.asked.all()) {
    last_doubtful |= asked.own == OwnGet::failed;
    const NodeRecord& node = claims.node(asked.node);
    const ClaimStanding& standing = node.standing[static_cast<std::size_t>(asked.claim)];
    if ((node.claims & bit_of(asked.claim)) == 0 || standing.claimed_at > operation.changes_before) continue;
    if (asked.damaged && operation.kind == Operation::resume) {
      context.verdicts.checked(Invariant::index_agrees);
      context.violate(Invariant::index_agrees, "",
                      fmt::format("the {} of {} is still claimed at the end of {}, although a value of it that it read "
                                  "is not what was put",
                                  sim::name_of(asked.claim), name(node), name_of(operation.kind)),
                      fmt::format("{} claimed though it is corrupt", sim::name_of(asked.claim)));
    }
    // Behind a read of one claim, too, comes a probe, which may be refused; beside others because of a newer owner.
    const bool other_owner = side_by_side && segments.epoch() != operation.epoch_before;
    if (operation.kind == Operation::resume && (refused || other_owner || !ok)) continue;
    if (asked.own == OwnGet::missed) {
      context.verdicts.checked(Invariant::index_agrees);
      context.violate(Invariant::index_agrees, "",
                      fmt::format("the {} of {} is still claimed at the end of {}, although {}",
                                  sim::name_of(asked.claim), name(node), name_of(operation.kind), words_of(asked.own)),
                      fmt::format("{} claimed though it is gone", sim::name_of(asked.claim)));
    }
    if (!asked.incomplete || operation.kind != Operation::resume) continue;
    context.verdicts.checked(Invariant::index_agrees);
    context.violate(Invariant::index_agrees, "",
                    fmt::format("the {} of {} was read with others, which was incomplete, and no get of its own has "
                                "asked for it by the end of {}",
                                sim::name_of(asked.claim), name(node), name_of(operation.kind)),
                    fmt::format("{} not probed", sim::name_of(asked.claim)));
  }
}

void Monitor::Impl::relied_on(std::uint64_t identity, Claim claim) {
  if (memory_store || side_by_side) return;
  const std::uint32_t index = claims.find_identity(identity);
  if (index == kNobody) return;
  const NodeRecord& node = claims.node(index);
  context.verdicts.checked(Invariant::index_agrees);
  if (node.standing[static_cast<std::size_t>(claim)].seen_epoch >= last_epoch_before || last_doubtful) return;
  context.violate(Invariant::index_agrees, "",
                  fmt::format("a put relied on the {} of {} being ready, which this client last knew of an owner that "
                              "has gone, or not at all, and did not ask for it",
                              sim::name_of(claim), name(node)),
                  fmt::format("{} of an older generation believed", sim::name_of(claim)));
}

std::vector<std::string> Monitor::Impl::claims_not_among(std::vector<std::uint64_t> stored) const {
  std::ranges::sort(stored);
  std::vector<std::string> gone;
  claims.for_each_node([&](const NodeRecord& node) {
    for (const Claim claim : {Claim::kv, Claim::latent}) {
      if ((node.claims & bit_of(claim)) == 0) continue;
      const bool there = std::ranges::all_of(node.keys[static_cast<std::size_t>(claim)], [&](std::uint32_t key) {
        return std::ranges::binary_search(stored, claims.at(key).hash);
      });
      if (!there) gone.push_back(fmt::format("{} of {}", sim::name_of(claim), name(node)));
    }
  });
  return gone;
}

std::vector<std::string> Monitor::claims_not_stored() const {
  std::vector<std::uint64_t> stored;
  impl_->tap.for_each_stored([&](std::string_view key) { stored.push_back(hash_of(key)); });
  return impl_->claims_not_among(std::move(stored));
}
void Monitor::relied_on(std::uint64_t identity, Claim claim) { impl_->relied_on(identity, claim); }
bool Monitor::read_damaged() const { return impl_->last_read_damaged; }

}  // namespace holdfast::sim
