// What makes a batch of copies valid, by what its caller knows: tensors, registrations, live plans, recorded lengths.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "copy_ledger.hpp"
#include "holdfast/core/cuda_runtime.hpp"
#include "plan_ledger.hpp"
#include "segment_ledger.hpp"

namespace holdfast::sim {

// Where a copy's host side lies.
struct HostSide {
  HostPlace place;
  HostRegistration* registration = nullptr;
  PlanRecord* plan = nullptr;
  const PlanSlot* slot = nullptr;
};

struct BatchLedgers {
  const SegmentLedger& segments;
  RegistrationLedger& registrations;
  PlanLedger& plans;
  std::uint32_t operation = 0;  // that submits the batch
  std::uint32_t epoch = 0;      // of when the call began; another operation may have heard of a newer one since
};

HostSide host_side(const BatchLedgers& ledgers, CopyDirection direction, std::uintptr_t host);

// What is wrong with the host side of the copy; empty when nothing is.
std::string wrong_host_side(const BatchLedgers& ledgers, CopyDirection direction, const HostSide& side,
                            std::uint64_t bytes, Nanos now_ns);

// The indices of two copies whose destinations overlap; equal when there are none. `scratch` is only memory.
std::pair<std::size_t, std::size_t> overlapping(std::span<const Copy> copies, std::vector<std::size_t>& scratch);

}  // namespace holdfast::sim
