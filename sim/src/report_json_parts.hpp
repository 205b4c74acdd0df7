// Parts of report.json that are long enough for files of their own.
#pragma once

#include <nlohmann/json.hpp>

#include "holdfast/sim/report.hpp"

namespace holdfast::sim {

// Failures by cause, with their story and swim-lanes.
nlohmann::ordered_json causes_json(const Report& report);
// Call by kind, where legal or fired.
nlohmann::ordered_json fault_matrix_json(const FaultTally& faults);
// The slowest and the longest cases.
nlohmann::ordered_json notable_cases_json(const CampaignResult& result);

}  // namespace holdfast::sim
