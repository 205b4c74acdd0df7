// Each part of capacity-bound, seen failing: a store that lies of what it holds, or takes more than it may.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "forwarding_system.hpp"
#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/sim/executor.hpp"
#include "holdfast/sim/scenarios.hpp"

namespace holdfast::sim {
namespace {

// How the store below goes wrong; each does nothing by default.
struct Wrong {
  std::uint64_t capacity_times = 1;
  std::int64_t accounted_slots = 0;
  bool puts_a_key_of_its_own = false;
};

class WrongSystem final : public ForwardingSystem {
 public:
  WrongSystem(std::unique_ptr<SystemUnderTest> inner, Ports& ports, const Wrong& wrong)
      : ForwardingSystem(std::move(inner)), ports_(ports), wrong_(wrong) {}

  Result<IngestOutcome> chunk_finalized(SessionId session) override {
    if (wrong_.puts_a_key_of_its_own) {
      const std::vector<std::byte> bytes(100);
      EXPECT_TRUE(ports_.fluxon.put("a key of its own", bytes).has_value());
    }
    return ForwardingSystem::chunk_finalized(session);
  }
  [[nodiscard]] Inspection inspect() const override {
    Inspection inspection = ForwardingSystem::inspect();
    inspection.accounted_bytes += static_cast<std::uint64_t>(wrong_.accounted_slots) * kSlotAlignment;
    return inspection;
  }

 private:
  Ports& ports_;
  const Wrong wrong_;
};

RunResult run(const std::string& scenario, const Wrong& wrong = {}) {
  Executor executor(
      [&](Ports& ports, ClaimListener& claims, SystemOptions options) -> std::unique_ptr<SystemUnderTest> {
        options.capacity_bytes *= wrong.capacity_times;
        return std::make_unique<WrongSystem>(make_production_system(ports, claims, options), ports, wrong);
      });
  return executor.run(*scenario_named(scenario), {});
}

bool breaks(const RunResult& result, std::string_view what) {
  return std::any_of(result.violations.begin(), result.violations.end(), [&](const Violation& violation) {
    return violation.invariant == Invariant::capacity_bound && violation.culprits.find(what) != std::string::npos;
  });
}

TEST(CapacityChecks, HoldOfTheStoreAsItIs) {
  const RunResult result = run("make_room");
  EXPECT_TRUE(result.violations.empty()) << result.violations.front().message;
  EXPECT_GT(result.checked[static_cast<std::size_t>(Invariant::capacity_bound)], 4U);
}

// At the first plan of the put that goes over, when all that is claimed fits still.
TEST(CapacityChecks, SeeAPutThatStartsOverTheLimit) {
  const RunResult result = run("make_room", {.capacity_times = 4});
  EXPECT_TRUE(breaks(result, "a put over the limit"));
  EXPECT_EQ(result.violations.front().call, name_of(Call::local_fast_put_start));
  EXPECT_EQ(result.violations.front().message,
            "a put of 8192 bytes starts, and with it 40960 bytes are accounted: more than the capacity of 32768");
}

TEST(CapacityChecks, SeeWhatIsAccountedAndNotThere) {
  EXPECT_TRUE(breaks(run("make_room", {.accounted_slots = 1}), "accounted and not there"));
}

TEST(CapacityChecks, SeeWhatIsThereAndNotAccounted) {
  EXPECT_TRUE(breaks(run("make_room", {.accounted_slots = -1}), "there and not accounted"));
}

TEST(CapacityChecks, SeeWhatTheOwnerHoldsAndNobodyAccounts) {
  EXPECT_TRUE(breaks(run("make_room", {.puts_a_key_of_its_own = true}), "held and not accounted"));
}

}  // namespace
}  // namespace holdfast::sim
