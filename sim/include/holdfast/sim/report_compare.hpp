// Two runs side by side: what broke anew, what broke no more, how fast, and what the later one no longer reached.
#pragma once

#include <string>
#include <vector>

#include "holdfast/sim/report.hpp"

namespace holdfast::sim {

struct ReportComparison {
  std::vector<std::string> broken_anew;      // causes, with the first seed and how many
  std::vector<std::string> broken_no_more;   // the same
  std::vector<std::string> coverage_lost;    // invariants never checked now, marks and fault cells not reached now
  std::vector<std::string> coverage_gained;  // the same, the other way round
  std::vector<std::string> notes;            // why the two compare badly
  double calls_per_s_before = 0;             // of real time; 0 where none passed
  double calls_per_s_now = 0;
  bool same_log = false;  // the same seeds, with the same events
};

ReportComparison compare_reports(const Report& before, const Report& now);
// Within 100 columns.
std::string comparison_text(const ReportComparison& comparison);

}  // namespace holdfast::sim
