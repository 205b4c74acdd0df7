#include "holdfast/sim/log_text.hpp"

#include <fmt/format.h>

#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

constexpr std::string_view kBehindTime = " ms  ";
constexpr std::string_view kSteps = "1";  // as a terminal's SGR codes
constexpr std::string_view kFaults = "33";
constexpr std::string_view kFailures = "31";
constexpr std::string_view kClaims = "32";
constexpr std::string_view kWithdrawals = "35";
constexpr std::string_view kLittle = "2";

// "... -> 5": a call that failed.
bool ends_with_a_code(std::string_view line) {
  const std::size_t arrow = line.rfind(" -> ");
  if (arrow == std::string_view::npos || arrow + 4 == line.size()) return false;
  return line.substr(arrow + 4).find_first_not_of("-0123456789") == std::string_view::npos;
}

std::string_view code_of(std::string_view line, std::string_view what) {
  if (ends_with_a_code(line)) return kFailures;
  if (what.starts_with("step ") || what.starts_with("drain")) return kSteps;
  if (what.starts_with("fault ") || what.starts_with("owner ") || what.starts_with("restart ")) return kFaults;
  if (what.starts_with("claim ")) return kClaims;
  if (what.starts_with("withdrawal ")) return kWithdrawals;
  const bool little = what.starts_with("begin ") || what.starts_with("end ") || what.starts_with("turn ") ||
                      what.starts_with("pointer_attributes ") || what.starts_with("event_");
  return little ? kLittle : std::string_view();
}

}  // namespace

std::string log_line_text(std::string_view line, bool colour) {
  std::string text = printable(line);
  const std::size_t time = line.find(kBehindTime);
  if (!colour || time == std::string_view::npos) return text;
  const std::string_view code = code_of(line, line.substr(time + kBehindTime.size()));
  return code.empty() ? text : fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

}  // namespace holdfast::sim
