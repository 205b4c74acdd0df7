#include "holdfast/core/unsettled_table.hpp"

#include <algorithm>

#include "holdfast/core/check.hpp"

namespace holdfast {

RemovalAnswer answer_of(const Status& removal) {
  if (removal) return RemovalAnswer::removed;
  return is_fluxon(removal.error(), FluxonErrc::key_not_found) ? RemovalAnswer::absent : RemovalAnswer::failed;
}

void UnsettledTable::set_due(Entries::iterator at, Nanos due_ns) {
  due_.erase({at->second.due_ns, at->first});
  at->second.due_ns = due_ns;
  due_.insert({due_ns, at->first});
}

void UnsettledTable::erase(Entries::iterator at) {
  due_.erase({at->second.due_ns, at->first});
  held_bytes_ -= slot_bytes(at->second.key.value_bytes);
  entries_.erase(at);
}

void UnsettledTable::note_length() { longest_ = std::max<std::uint64_t>(longest_, entries_.size() + blocked_.size()); }

void UnsettledTable::add(std::string_view key, const UnsettledKey& entry, Nanos now_ns) {
  if (const auto known = entries_.find(key); known != entries_.end()) erase(known);
  const auto at = entries_.emplace(std::string(key), Entry{entry, 0, options_.retry_first_ns}).first;
  held_bytes_ += slot_bytes(entry.value_bytes);
  set_due(at, entry.known_stored ? now_ns : bound_of(at->second));
  note_length();
}

void UnsettledTable::forget(std::string_view key) {
  if (const auto at = entries_.find(key); at != entries_.end()) erase(at);
}

void UnsettledTable::block(std::string_view key) {
  if (const auto at = blocked_.find(key); at != blocked_.end()) {
    ++at->second;
  } else {
    blocked_.emplace(std::string(key), 1);
  }
  note_length();
}

void UnsettledTable::unblock(std::string_view key) {
  const auto at = blocked_.find(key);
  check(at != blocked_.end(), "unblock without block");
  if (--at->second == 0) blocked_.erase(at);
}

PutGate UnsettledTable::gate(Keys keys, Nanos now_ns) const {
  if (entries_.empty() && blocked_.empty() && removing_.empty()) return PutGate::open;
  PutGate gate = PutGate::open;
  for (const std::string_view key : keys) {
    if (blocked_.find(key) != blocked_.end() || removing_.contains(key)) return PutGate::unsettled;
    const auto at = entries_.find(key);
    if (at == entries_.end()) continue;
    if (now_ns < bound_of(at->second)) return PutGate::unsettled;
    if (is_put(key)) return PutGate::unsettled;
    gate = PutGate::leftovers;
  }
  // What settles keys is let through.
  if (gate == PutGate::open && entries_.size() + blocked_.size() >= options_.keys_max) return PutGate::full;
  return gate;
}

bool UnsettledTable::contains_any(Keys keys) const {
  return std::any_of(keys.begin(), keys.end(),
                     [&](std::string_view key) { return contains(key) || blocked_.find(key) != blocked_.end(); });
}

bool UnsettledTable::adoptable(Keys keys, std::span<const std::uint64_t> value_bytes, Nanos now_ns) const {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto at = entries_.find(keys[i]);
    if (at == entries_.end() || now_ns < bound_of(at->second)) return false;
    const UnsettledKey& key = at->second.key;
    if (!key.ours || key.value_bytes != value_bytes[i]) return false;
  }
  return true;
}

std::vector<GroupChecksum> UnsettledTable::checksums_of(Keys keys) const {
  std::vector<GroupChecksum> checksums;
  for (const std::string_view key : keys) {
    const auto at = entries_.find(key);
    checksums.push_back(at == entries_.end() ? GroupChecksum() : at->second.key.checksum);
  }
  return checksums;
}

void UnsettledTable::end_put(Keys keys) {
  const auto put =
      std::find_if(putting_.begin(), putting_.end(), [&](Keys other) { return other.data() == keys.data(); });
  check(put != putting_.end(), "end_put without begin_put");
  putting_.erase(put);
}

bool UnsettledTable::is_put(std::string_view key) const {
  return std::any_of(putting_.begin(), putting_.end(),
                     [&](Keys keys) { return std::find(keys.begin(), keys.end(), key) != keys.end(); });
}

bool UnsettledTable::begin_removal(std::string_view key) {
  return contains(key) && !is_put(key) && removing_.emplace(key).second;
}

std::vector<std::string> UnsettledTable::due(Nanos now_ns, std::size_t most) const {
  std::vector<std::string> keys;
  for (auto at = due_.begin(); at != due_.end() && at->first <= now_ns && keys.size() < most; ++at) {
    keys.push_back(at->second);
  }
  return keys;
}

bool UnsettledTable::note_removal(std::string_view key, RemovalAnswer answer, Nanos submitted_ns) {
  if (const auto mine = removing_.find(key); mine != removing_.end()) removing_.erase(mine);
  const auto at = entries_.find(key);
  if (at == entries_.end()) return true;
  Entry& entry = at->second;
  const bool past_bound = submitted_ns >= bound_of(entry);
  switch (answer) {
    case RemovalAnswer::removed:
      // Of a value known to be stored there is nothing more to come.
      if (past_bound || entry.key.known_stored) {
        erase(at);
        return true;
      }
      set_due(at, bound_of(entry));
      return false;
    case RemovalAnswer::absent:
      if (past_bound) {
        erase(at);
        return true;
      }
      // Not routed yet, or not stored yet: it may appear until the bound.
      entry.key.known_stored = false;
      set_due(at, bound_of(entry));
      return false;
    case RemovalAnswer::failed:
      // It may have happened: only a removal after the bound can tell.
      entry.key.known_stored = false;
      set_due(at, past_bound ? submitted_ns + entry.retry_ns : bound_of(entry));
      entry.retry_ns = std::min(entry.retry_ns * 2, options_.retry_max_ns);
      return false;
  }
  return false;
}

}  // namespace holdfast
