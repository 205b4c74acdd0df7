#include "holdfast/sim/log_text.hpp"

#include <fmt/format.h>

#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

constexpr std::string_view kBehindTime = " ms  ";
constexpr std::size_t kWhatWidth = 25;    // of the longest call's name
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

// The call's name, or the kind of event: of one word but for these.
std::string_view what_of(std::string_view text) {
  for (const std::string_view two : {"step end", "owner restart", "owner evicts"}) {
    if (text.starts_with(two)) return two;
  }
  return text.substr(0, text.find(' '));
}

std::string_view code_of(std::string_view line, std::string_view what) {
  if (ends_with_a_code(line)) return kFailures;
  if (what.starts_with("step") || what == "drain") return kSteps;
  if (what == "fault" || what.starts_with("owner") || what == "restart") return kFaults;
  if (what == "claim") return kClaims;
  if (what == "withdrawal") return kWithdrawals;
  const bool little =
      what == "begin" || what == "end" || what == "turn" || what == "pointer_attributes" || what.starts_with("event_");
  return little ? kLittle : std::string_view();
}

}  // namespace

std::string log_line_text(std::string_view line, bool colour) {
  const std::size_t time = line.find(kBehindTime);
  if (time == std::string_view::npos) return printable(line);
  const std::string_view happened = line.substr(time + kBehindTime.size());
  const std::string_view what = what_of(happened);
  std::string text = printable(fmt::format("{}{:<{}}{}", line.substr(0, time + kBehindTime.size()), what, kWhatWidth,
                                           happened.substr(what.size())));
  text.erase(text.find_last_not_of(' ') + 1);
  const std::string_view code = code_of(line, what);
  return colour && !code.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

}  // namespace holdfast::sim
