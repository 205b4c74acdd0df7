// Keys whose presence in the store is not decided yet, and values that have to go: one table per manager, by key.
//
// A key is in the table from the moment its outcome became unknown until a removal submitted after its settle bound has
// decided it, or a new commit or an adoption made it known. While it is there it is not ready, not a victim, and
// counted as held; until the bound it is refused for a new put.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/core/stats.hpp"
#include "holdfast/core/time.hpp"
#include "holdfast/core/value_checksum.hpp"

namespace holdfast {

struct UnsettledOptions {
  Nanos settle_bound_ns = kSettleBound;  // every submitted commit is decided within this
  Nanos retry_first_ns = 1 * kSecond;    // after a failed removal; doubled each time
  Nanos retry_max_ns = 30 * kSecond;
  // From so many keys on, those in quarantine included, no put begins, whatever its keys: what is in doubt is bounded
  // by this and the puts that had begun.
  std::size_t keys_max = 1 << 16;
};

struct UnsettledKey {
  std::uint64_t value_bytes = 0;
  Nanos last_commit_ns = 0;     // when its last commit had been submitted
  bool known_stored = false;    // a leftover: its commit answered 0, only its removal is open
  bool ours = true;             // false: a put found it there, its length is not on record, and it is not to be adopted
  GroupChecksum checksum = {};  // of the value by itself, as its put took it
};

// What a key's removal answered.
enum class RemovalAnswer : std::uint8_t { removed, absent, failed };
[[nodiscard]] RemovalAnswer answer_of(const Status& removal);

// How the table answers a put.
enum class PutGate : std::uint8_t {
  open,       // no key of it is in the table
  unsettled,  // refused: a key of it is not decided yet, being removed, in another put, or in quarantine
  full,       // refused: too many other keys are not decided yet
  leftovers,  // all keys of it that are here are past their bound: put, or adopt what is readable
};

// Not thread-safe by itself: its owner holds a lock.
class UnsettledTable {
 public:
  explicit UnsettledTable(const UnsettledOptions& options) : options_(options) {}

  // Adds or replaces. Its first removal is due at once for a leftover, else at the settle bound.
  void add(std::string_view key, const UnsettledKey& entry, Nanos now_ns);
  // A new commit of the key answered 0, or it was adopted: it is known again, and its removal cancelled.
  void forget(std::string_view key);
  // Keys of quarantined plans: refused until unblocked.
  void block(std::string_view key);
  void unblock(std::string_view key);

  [[nodiscard]] PutGate gate(Keys keys, Nanos now_ns) const;
  // Of `keys`, in the table or in quarantine.
  [[nodiscard]] bool contains_any(Keys keys) const;
  // True when every key is here, ours, past its bound, with this length: what is readable under all of them may be
  // adopted.
  [[nodiscard]] bool adoptable(Keys keys, std::span<const std::uint64_t> value_bytes, Nanos now_ns) const;
  // Of each key, in order; none where it is not here, or was given up after it had been ready.
  [[nodiscard]] std::vector<GroupChecksum> checksums_of(Keys keys) const;
  [[nodiscard]] bool contains(std::string_view key) const { return entries_.find(key) != entries_.end(); }

  // A put of these keys has passed the gate: until it ends, nobody else removes one of them. The caller keeps the keys.
  void begin_put(Keys keys) { putting_.push_back(keys); }
  void end_put(Keys keys);
  // Before somebody removes a key that is due: until note_removal, nobody else does, and the gate refuses it. False,
  // and it is not to be removed, when it is not here any more, another is removing it, or a put has it.
  [[nodiscard]] bool begin_removal(std::string_view key);

  // At most `most` keys whose removal is due, earliest first.
  [[nodiscard]] std::vector<std::string> due(Nanos now_ns, std::size_t most) const;
  // What the removal of `key`, submitted at `submitted_ns`, answered. True when the key is settled now, and gone.
  bool note_removal(std::string_view key, RemovalAnswer answer, Nanos submitted_ns);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] std::size_t blocked() const { return blocked_.size(); }
  // Of both.
  [[nodiscard]] ListLength length() const { return {size() + blocked(), longest_}; }
  // Slot bytes counted as held.
  [[nodiscard]] std::uint64_t held_bytes() const { return held_bytes_; }

 private:
  struct Entry {
    UnsettledKey key;
    Nanos due_ns = 0;
    Nanos retry_ns = 0;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  [[nodiscard]] bool is_put(std::string_view key) const;
  [[nodiscard]] Nanos bound_of(const Entry& entry) const { return entry.key.last_commit_ns + options_.settle_bound_ns; }
  void set_due(Entries::iterator at, Nanos due_ns);
  void erase(Entries::iterator at);
  void note_length();

  UnsettledOptions options_;
  Entries entries_;
  std::set<std::pair<Nanos, std::string>> due_;
  std::map<std::string, std::uint32_t, std::less<>> blocked_;  // how many plans hold it
  std::vector<Keys> putting_;
  std::set<std::string, std::less<>> removing_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t longest_ = 0;
};

}  // namespace holdfast
