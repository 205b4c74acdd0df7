// Parts of report.json that are long enough for files of their own.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "holdfast/sim/report.hpp"

namespace holdfast::sim {

// As LaneKind, SpanKind and ChartMarkKind.
inline constexpr std::array<std::string_view, 11> kLaneKinds{
    "violations", "faults", "session", "store", "claims", "owner", "device", "stream", "plans", "handles", "files"};
inline constexpr std::array<std::string_view, 5> kSpanKinds{"step", "operation", "plan", "handle", "batch"};
inline constexpr std::array<std::string_view, 6> kMarkKinds{"call",      "failed call", "fault",
                                                            "happening", "claim",       "violation"};

// Failures by cause, with their story and swim-lanes.
nlohmann::ordered_json causes_json(const Report& report);
// All failed seeds, by what failed.
nlohmann::ordered_json failures_json(const CampaignResult& result);
// Call by kind, where legal or fired.
nlohmann::ordered_json fault_matrix_json(const FaultTally& faults);
// The slowest and the longest cases.
nlohmann::ordered_json notable_cases_json(const CampaignResult& result);

}  // namespace holdfast::sim
