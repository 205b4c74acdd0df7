// Reads a report.json back: what reports are merged and compared from.
#pragma once

#include <string>

#include "holdfast/core/result.hpp"
#include "holdfast/sim/report.hpp"

namespace holdfast::sim {

// `file` is a report.json; `prefix` goes before the paths of traces and timelines in it, which are relative to its
// directory. What a report.json does not hold is not there: of fault cells only whether they were reached, of a sweep
// none of its tables, of a failed seed that is not listed no message. Bad input where it is no such report.
Result<Report> read_report(const std::string& file, const std::string& prefix);

}  // namespace holdfast::sim
