#include "holdfast/sim/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

constexpr Nanos kLineEveryNs = 5 * kSecond;

bool is_terminal(std::FILE* stream) {
  const char* term = std::getenv("TERM");
  return isatty(fileno(stream)) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

}  // namespace

ProgressStyle progress_style(std::FILE* stream, bool quiet) {
  if (quiet) return ProgressStyle::none;
  return is_terminal(stream) ? ProgressStyle::redrawn : ProgressStyle::lines;
}

bool may_colour(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  return is_terminal(stream) && (no_color == nullptr || *no_color == '\0');
}

std::string progress_line(const CampaignProgress& progress) {
  if (progress.seeds_all == 1) return fmt::format("running for {}", seconds_text(progress.elapsed_ns));
  const double seconds = std::max(static_cast<double>(progress.elapsed_ns) / 1e9, 1e-3);
  const double rate = static_cast<double>(progress.seeds_run) / seconds;
  const auto calls = static_cast<std::uint64_t>(static_cast<double>(progress.runtime_calls) / seconds);
  double left_s = static_cast<double>(progress.seeds_all - progress.seeds_run) / std::max(rate, 1e-9);
  if (progress.time_budget_ns > 0) {
    left_s = std::min(left_s, static_cast<double>(progress.time_budget_ns - progress.elapsed_ns) / 1e9);
  }
  const std::string left = progress.seeds_run == 0 && progress.time_budget_ns == 0
                               ? std::string("?")
                               : seconds_text(static_cast<Nanos>(std::clamp(left_s, 0.0, 9e8) * 1e9));
  return fmt::format("{} of {} seeds, {:.0f} seeds/s, {} calls/s, {} violated, {} left",
                     with_thousands(progress.seeds_run), with_thousands(progress.seeds_all), rate,
                     with_thousands(calls), with_thousands(progress.failed_seeds), left);
}

void Progress::show(const std::string& line, Nanos elapsed_ns) {
  if (style_ == ProgressStyle::redrawn) {
    std::fputs(("\r" + line + "\x1b[K").c_str(), stream_);
    drawn_ = true;
  } else if (style_ == ProgressStyle::lines && elapsed_ns - shown_ns_ >= kLineEveryNs) {
    std::fputs((line + "\n").c_str(), stream_);
    shown_ns_ = elapsed_ns;
  }
  std::fflush(stream_);
}

void Progress::finish() {
  if (drawn_) std::fputs("\r\x1b[K", stream_);
  std::fflush(stream_);
  drawn_ = false;
}

}  // namespace holdfast::sim
