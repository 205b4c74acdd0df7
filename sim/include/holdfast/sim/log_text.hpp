// A line of the event log as people read it on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::sim {

// The line made harmless, with what happened in a column of its own. Coloured where asked: steps stand out, faults,
// failed calls and what is shown or withdrawn are told apart, and what says little recedes.
std::string log_line_text(std::string_view line, bool colour);

}  // namespace holdfast::sim
