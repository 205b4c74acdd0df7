// holdfast replay --step: a recorded run on a terminal, forward and back, one key each.
#pragma once

#include <string>
#include <string_view>

#include "holdfast/sim/lane_chart.hpp"

namespace holdfast::sim {

class StepView {
 public:
  // The chart outlives it, and has a column for every moment.
  StepView(const LaneChart& chart, bool colour) : chart_(chart), colour_(colour) {}

  // One key; false: to leave. What it does not know it ignores.
  bool press(char key);
  // The moment with those around it, what is live at it, and the keys; no line is longer than kTextWidth.
  [[nodiscard]] std::string screen() const;

 private:
  template <class Wanted>
  void go(bool forward, Wanted&& wanted);
  [[nodiscard]] bool is_fault(std::size_t column) const;
  [[nodiscard]] std::string line(std::size_t column) const;
  [[nodiscard]] std::string live() const;

  const LaneChart& chart_;
  bool colour_;
  std::size_t at_ = 0;
};

// Shows the chart on standard output and takes keys from standard input until `q` or its end; a terminal gives each key
// at once.
void step_through(const LaneChart& chart, bool colour);

}  // namespace holdfast::sim
