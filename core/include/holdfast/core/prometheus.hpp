// A manager's counters and timings as a Prometheus scrape reads them: the text exposition format, version 0.0.4.
#pragma once

#include <span>
#include <string>

#include "holdfast/core/result.hpp"
#include "holdfast/core/stats.hpp"

namespace holdfast {

// Put on every sample, behind its own: which manager it is, say.
struct MetricLabel {
  std::string name;
  std::string value;  // UTF-8
};

// Metrics and samples in a fixed order, none left out for being 0. InvalidArgument names a label that cannot be one, is
// there twice, or is a metric's own (stage, direction, outcome, quantile).
[[nodiscard]] Result<std::string> prometheus_text(const Stats& stats, std::span<const MetricLabel> labels = {});

}  // namespace holdfast
