#include "holdfast/core/plan_blob.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast {
namespace {

constexpr std::uintptr_t kWordBytes = sizeof(std::uint64_t);
constexpr std::string_view kCall = "decode_plan_blob";

Error bad(std::string detail) { return make_error(Errc::bad_plan_blob, kCall, std::move(detail)); }

bool inside(std::uintptr_t base, std::uint64_t len, std::uintptr_t address, std::uint64_t bytes) {
  return address >= base && address - base <= len && bytes <= len - (address - base);
}

// No two values share a slot.
Status check_apart(std::span<const std::uintptr_t> addresses, std::span<const std::uint64_t> value_bytes) {
  std::vector<std::pair<std::uintptr_t, std::size_t>> ordered(addresses.size());
  for (std::size_t i = 0; i < ordered.size(); ++i) ordered[i] = {addresses[i], i};
  std::sort(ordered.begin(), ordered.end());
  const auto clash = std::adjacent_find(ordered.begin(), ordered.end(), [&](const auto& one, const auto& next) {
    return next.first - one.first < slot_bytes(value_bytes[one.second]);
  });
  if (clash == ordered.end()) return {};
  return bad(fmt::format("values {} and {} are in one slot", clash->second, std::next(clash)->second));
}

}  // namespace

Status check_plan_table(PlanPtr plan, std::uint64_t values) {
  if (plan.address == 0) return bad("the plan pointer is null");
  if (plan.address % kWordBytes != 0) return bad("the plan pointer is not 8-byte aligned");
  const auto* words = reinterpret_cast<const std::uint64_t*>(plan.address);
  if (words[0] != kPlanMagic) return bad(fmt::format("magic is {:#018x}, not {:#018x}", words[0], kPlanMagic));
  if (words[1] != values) return bad(fmt::format("count is {}, {} keys were asked for", words[1], values));
  return {};
}

Result<std::vector<std::uintptr_t>> decode_plan_blob(const PlanBlobRequest& request) {
  if (Status table = check_plan_table(request.plan, request.value_bytes.size()); !table) {
    return std::move(table.error());
  }
  const auto* words = reinterpret_cast<const std::uint64_t*>(request.plan.address);
  std::vector<std::uintptr_t> addresses(words + 2, words + 2 + request.value_bytes.size());
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (addresses[i] == 0) return bad(fmt::format("the address of value {} is null", i));
    const auto base_of = [&](const Segment& segment) {
      return request.side == PlanSide::write ? segment.write_ptr : segment.read_ptr;
    };
    const auto home = std::find_if(request.live.begin(), request.live.end(), [&](const Segment& segment) {
      return inside(base_of(segment), segment.len, addresses[i], request.value_bytes[i]);
    });
    if (home == request.live.end()) {
      return bad(fmt::format("value {} of {} bytes is not whole inside one live segment", i, request.value_bytes[i]));
    }
    if ((addresses[i] - base_of(*home)) % kSlotAlignment != 0) {
      return bad(fmt::format("value {} is not at the beginning of a slot", i));
    }
  }
  if (Status apart = check_apart(addresses, request.value_bytes); !apart) return std::move(apart.error());
  return addresses;
}

}  // namespace holdfast
