// The project's own store with a planted bug: an eviction after a resume goes wrong. With a second one the periodic
// work goes wrong too, in another way, so that shrinking has something to slip onto.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include "forwarding_system.hpp"
#include "holdfast/sim/executor.hpp"

namespace holdfast::sim {

enum class Trouble : std::uint8_t { none, breaks_promise, aborts, hangs };

class EvictionTrouble final : public ForwardingSystem {
 public:
  EvictionTrouble(Ports& ports, ClaimListener& listener, const SystemOptions& options, Trouble at_evict,
                  Trouble at_snapshot)
      : ForwardingSystem(make_production_system(ports, listener, options)),
        listener_(listener),
        at_evict_(at_evict),
        at_snapshot_(at_snapshot) {}

  Result<ResumeOutcome> resume(SessionId session) override {
    auto outcome = ForwardingSystem::resume(session);
    resumed_ = resumed_ || (outcome && outcome->matched_chunks > 0);
    return outcome;
  }
  Result<EvictOutcome> evict(SessionId session, std::uint32_t depth) override {
    auto outcome = ForwardingSystem::evict(session, depth);
    if (resumed_ && outcome) go_wrong(at_evict_, Claim::kv, "evicted after a resume\n");
    return outcome;
  }
  Status snapshot() override {
    go_wrong(at_snapshot_, Claim::latent, "a snapshot was asked for\n");
    return ForwardingSystem::snapshot();
  }

 private:
  void go_wrong(Trouble trouble, Claim claim, std::string_view words) {
    switch (trouble) {
      case Trouble::none:
        break;
      case Trouble::breaks_promise:
        listener_.on_claim(claim, "bad:claim", {1}, 256);  // of something that was never put
        listener_.on_withdrawal(claim, "bad:claim");
        break;
      case Trouble::aborts:
        static_cast<void>(!write(STDERR_FILENO, words.data(), words.size()));
        std::abort();
      case Trouble::hangs:
        for (volatile bool forever = true; forever;) continue;
        break;
    }
  }

  ClaimListener& listener_;
  Trouble at_evict_;
  Trouble at_snapshot_;
  bool resumed_ = false;
};

struct Planted {
  Trouble at_evict = Trouble::none;
  Trouble at_snapshot = Trouble::none;
};

inline SystemFactory system_with(Planted planted) {
  return [planted](Ports& ports, ClaimListener& listener, const SystemOptions& options) {
    return std::make_unique<EvictionTrouble>(ports, listener, options, planted.at_evict, planted.at_snapshot);
  };
}

}  // namespace holdfast::sim
