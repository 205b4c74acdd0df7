// A line of the event log as people read it on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::sim {

// The line made harmless; coloured where asked: steps stand out, faults, failed calls and what is shown or withdrawn
// are told apart, and calls that say little where they succeed recede.
std::string log_line_text(std::string_view line, bool colour);

}  // namespace holdfast::sim
