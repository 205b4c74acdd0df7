// What the monitor keeps of the operation that is running.
#pragma once

#include <cstdint>
#include <vector>

#include "asked_claims.hpp"
#include "claim_ledger.hpp"
#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/sim/monitor.hpp"

namespace holdfast::sim {

// What happened within one operation of the store under test.
struct OperationRecord {
  Operation kind = Operation::none;
  std::uint32_t ordinal = 1;  // never 0
  std::uint32_t source = kNobody;
  std::uint32_t claims_made = 0;
  std::uint64_t calls = 0;
  bool registration_failed = false;
  bool looks_failed = false;   // it asked for the segments, and was not told
  bool commit_failed = false;  // of one plan, while another of the operation stored
  bool read_damaged = false;   // it was given values, of what is claimed, that were damaged
  struct Claimed {
    std::uint32_t node = kNobody;
    Claim claim = Claim::kv;
    std::uint32_t withdrawals = 0;  // of it so far
  };
  // An answer of wait_local_segments_ready, and which it was of all, until the operation goes on; 0 = none.
  std::uint64_t heard = 0;
  std::vector<Segment> heard_of;
  std::uint32_t epoch_at_call = 0;   // when its last call began
  std::uint32_t epoch_at_get = 0;    // when its last get_start did
  std::uint32_t epoch_before = 0;    // when it began
  std::uint64_t changes_before = 0;  // of claims
  AskedClaims asked;
  std::vector<Claimed> removed;   // claims of which a key was asked to go
  std::vector<Claimed> given_up;  // claims withdrawn, not to evict them, of which nothing was shown false or in doubt

  void begin(Operation operation, std::uint32_t of_source, std::uint32_t its_ordinal) {
    kind = operation;
    ordinal = its_ordinal;
    source = of_source;
    claims_made = 0;
    calls = 0;
    registration_failed = looks_failed = commit_failed = read_damaged = false;
    asked.clear();
    heard = 0;
    removed.clear();
    given_up.clear();
  }
  // It takes blobs away to make room.
  [[nodiscard]] bool may_evict(std::uint32_t node) const {
    return kind == Operation::evict || kind == Operation::make_room || (kind == Operation::ingest && node != source);
  }
};

}  // namespace holdfast::sim
