// One report of many: of the shards of a run, or of runs over different seeds.
#pragma once

#include <vector>

#include "holdfast/core/result.hpp"
#include "holdfast/sim/report.hpp"

namespace holdfast::sim {

// In order of their seeds. Bad input where they don't belong together: another backend, profile, version of a runtime
// or set of checks, the same seeds twice, or a missing shard.
Result<Report> merge_reports(std::vector<Report> reports);

}  // namespace holdfast::sim
