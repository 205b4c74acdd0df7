#include "step_through.hpp"

#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t kAround = 8;    // lines before and behind the moment
constexpr std::size_t kLiveMax = 12;  // plans, handles and batches shown
constexpr char kEscape = '\x1b';
constexpr char kInterrupt = '\x03';

// At most `width` bytes of one line.
std::string cut(const std::string& text, std::size_t width = kTextWidth) {
  std::string one_line = printable(text);
  std::ranges::replace(one_line, '\n', ' ');
  if (one_line.size() <= width) return one_line;
  std::size_t kept = width - 3;
  while (kept > 0 && (static_cast<unsigned char>(one_line[kept]) & 0xC0U) == 0x80) --kept;  // not within a character
  return one_line.substr(0, kept) + "...";
}

// Keys one by one and unseen, while it lives. Does nothing where standard input is no terminal.
class KeyByKey {
 public:
  KeyByKey() {
    terminal_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    if (!terminal_) return;
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    now.c_cc[VMIN] = 1;
    now.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &now);
  }
  ~KeyByKey() {
    if (terminal_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  KeyByKey(const KeyByKey&) = delete;
  KeyByKey& operator=(const KeyByKey&) = delete;
  [[nodiscard]] bool terminal() const { return terminal_; }

 private:
  bool terminal_ = false;
  termios before_{};
};

// Arrows are the letters that mean the same. False at the end.
bool read_key(char& key) {
  const auto next = [&key] { return read(STDIN_FILENO, &key, 1) == 1; };
  if (!next()) return false;
  if (key != kEscape) return true;
  if (!next() || key != '[' || !next()) return false;
  key = key == 'A' || key == 'D' ? 'p' : key == 'B' || key == 'C' ? 'n' : '\0';
  return true;
}

}  // namespace

template <class Wanted>
void StepView::go(bool forward, Wanted&& wanted) {
  for (std::size_t to = at_; forward ? to + 1 < chart_.columns.size() : to > 0;) {
    to = forward ? to + 1 : to - 1;
    if (!wanted(to)) continue;
    at_ = to;
    return;
  }
}

bool StepView::is_fault(std::size_t column) const {
  const auto at_it = [column](const ChartMark& mark) { return mark.column == column; };
  return std::ranges::any_of(chart_.lanes, [&](const ChartLane& lane) {
    return lane.kind == LaneKind::faults && std::ranges::any_of(lane.marks, at_it);
  });
}

bool StepView::press(char key) {
  const auto any = [](std::size_t) { return true; };
  const auto begins_step = [this](std::size_t to) {
    return to == 0 || chart_.columns[to].step != chart_.columns[to - 1].step;
  };
  const auto fault = [this](std::size_t to) { return is_fault(to); };
  switch (key) {
    case 'n':
    case ' ':
    case '\r':
      go(true, any);
      return true;
    case 'p':
      go(false, any);
      return true;
    case 's':
    case 'S':
      go(key == 's', begins_step);
      return true;
    case 'f':
    case 'F':
      go(key == 'f', fault);
      return true;
    case 'v':
      if (chart_.broken_at) at_ = *chart_.broken_at;
      return true;
    case 'g':
      at_ = 0;
      return true;
    case 'G':
      at_ = chart_.columns.empty() ? 0 : chart_.columns.size() - 1;
      return true;
    case 'q':
    case kInterrupt:
      return false;
    default:
      return true;
  }
}

std::string StepView::line(std::size_t column) const {
  const ChartColumn& moment = chart_.columns[column];
  const bool broken = chart_.broken_at && *chart_.broken_at == column;
  const std::string text = cut(fmt::format("{} {:>6}  {:>12}  {}",
                                           column == at_ ? '>'
                                           : broken      ? '!'
                                                         : ' ',
                                           chart_.first + column + 1, virtual_time_text(moment.at_ns), moment.text));
  const std::string_view code = broken ? "1;31" : column == at_ ? "1" : is_fault(column) ? "33" : "";
  return colour_ && !code.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

std::string StepView::live() const {
  std::string text;
  std::size_t shown = 0;
  std::size_t more = 0;
  for (const ChartLane& lane : chart_.lanes) {
    for (const ChartSpan& span : lane.spans) {
      const bool thing = span.kind != SpanKind::step && span.kind != SpanKind::operation;
      if (!thing || span.first > at_ || span.last < at_) continue;
      if (shown == kLiveMax) {
        ++more;
        continue;
      }
      ++shown;
      const std::string until = span.not_ended ? "no end" : fmt::format("to {}", chart_.first + span.last + 1);
      text += cut(fmt::format("  {}{}, from {} {}: {}", span.culprit ? "! " : "", span.label,
                              chart_.first + span.first + 1, until, span.detail)) +
              '\n';
    }
  }
  if (shown == 0) text += "  no plan, handle or batch\n";
  if (more > 0) text += fmt::format("  and {} more\n", more);
  return text;
}

std::string StepView::screen() const {
  if (chart_.columns.empty()) return "Nothing happened.\n";
  std::string text;
  const std::size_t begin = at_ < kAround ? 0 : at_ - kAround;
  const std::size_t end = std::min(chart_.columns.size(), at_ + kAround + 1);
  for (std::size_t i = begin; i < end; ++i) text += line(i) + '\n';
  text +=
      fmt::format("\nlive at {} of {}:\n{}\n", chart_.first + at_ + 1, chart_.first + chart_.columns.size(), live());
  return text + "n/p next, back   s/S step   f/F fault   v where it broke   g/G first, last   q leave\n";
}

void step_through(const LaneChart& chart, bool colour) {
  StepView view(chart, colour);
  const KeyByKey keys;
  char key = 0;
  do {
    fmt::print("{}{}", keys.terminal() ? "\x1b[H\x1b[J" : "\n", view.screen());
    std::fflush(stdout);
    do {
      if (!read_key(key)) return;
    } while (key == '\n' && !keys.terminal());
  } while (view.press(key == '\n' ? 'n' : key));
}

}  // namespace holdfast::sim
