// The ways in which each call may fail, and with which arguments.
#include <algorithm>

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/sim/sweep.hpp"

namespace holdfast::sim {
namespace {

using Args = std::vector<std::uint64_t>;

constexpr std::uint64_t kShort = kSecond;
constexpr std::uint64_t kPastPatience = 11 * kSecond;  // of a commit's future
constexpr std::uint64_t kPastSettling = kSettleBound + kSecond;
constexpr std::uint64_t kPastHandles = kHandleTimeout + kSecond;
constexpr std::uint64_t kPastPlanAge = 21 * kMinute;  // the core's own limit, before the owner's
constexpr std::uint64_t kPastPlans = kPlanTimeout + kMinute;
constexpr std::uint64_t kBetweenPlanLimits = 9 * kMinute;  // as long as nobody can tell at a copy
constexpr std::uint64_t kAfterTheCall = 1;                 // an odd delay passes before the answer

// The most telling one first.
Args delays_of(Call call) {
  switch (call) {
    case Call::local_fast_put_start:
      return {kPutStartWaitLimit, kShort, kPutStartWaitLimit - kSecond + kAfterTheCall};
    case Call::commit_wait:
      return {kPastPatience, kShort, kPastSettling};
    case Call::get_transfer:
      return {kPastHandles, kShort, kPastHandles + kAfterTheCall};
    case Call::stream_synchronize:
    case Call::event_synchronize:
    case Call::event_query:
      return {kPastPlanAge, kShort, kPastPlans, kPastPlanAge + kAfterTheCall};
    case Call::file_read:
    case Call::file_write:
    case Call::file_sync:
    case Call::file_rename:
    case Call::file_remove:
      return {kPastSettling, kShort};
    default:
      return {kPastPlans, kShort, kPastSettling + kAfterTheCall};
  }
}

// Which keys, copies or bytes a partial failure takes: each seed draws others.
Args parts_of(const LegalFault& fault) {
  switch (fault.call) {
    case Call::commit_wait:
      // One key of two or four, not stored; one, stored; some; some or all decided later.
      if (outcome_of(fault.code) == KeyOutcome::unknown) return {26, 11, 0, 7, 2, 1};
      return {26, 0};
    case Call::get_start:
      return {0, 1, 7};
    case Call::copy_batch:
      return {1, 2, 3};
    case Call::file_read:
    case Call::file_write:
      return {40, 0};
    default:
      return {0, 1};
  }
}

Args args_of(const LegalFault& fault) {
  switch (fault.kind) {
    case FaultKind::before:
      if (fault.code == static_cast<std::int32_t>(CudaErrc::host_memory_already_registered)) return {0, 1, 2};
      return {0};
    case FaultKind::lost:
      if (fault.call == Call::commit_wait) return {0, 1, 3};
      return {0};
    case FaultKind::part:
      return parts_of(fault);
    case FaultKind::late:
      return delays_of(fault.call);
    case FaultKind::evict:
      return {0, 1, 2};
    case FaultKind::time:
      if (fault.call == Call::copy_batch) return {kBetweenPlanLimits, kPastHandles};
      return {kPastPlans, kPastSettling, kPastHandles, kPastPlanAge};
    case FaultKind::death:
      if (fault.call == Call::file_write) return {40, 0, 1 << 20};
      if (fault.call == Call::file_rename) return {1, 0};
      return {0};
    case FaultKind::gone:
    case FaultKind::lie:
      return {0};
  }
  return {0};
}

struct Ways {
  std::array<std::vector<Way>, kCallCount> all;
  std::array<std::vector<Way>, kCallCount> plain;

  Ways() {
    for (const LegalFault& fault : legal_faults()) {
      const auto call = static_cast<std::size_t>(fault.call);
      const Args args = args_of(fault);
      for (const std::uint64_t arg : args) all[call].push_back({fault.kind, fault.code, arg, false});
      all[call].push_back({fault.kind, fault.code, args.front(), true});
      plain[call].push_back({fault.kind, fault.code, args.front(), false});
    }
  }
};

const Ways& table() {
  static const Ways ways;
  return ways;
}

}  // namespace

std::span<const Way> ways_of(Call call) { return table().all.at(static_cast<std::size_t>(call)); }
std::span<const Way> plain_ways_of(Call call) { return table().plain.at(static_cast<std::size_t>(call)); }

}  // namespace holdfast::sim
