// Swim-lanes as inline SVG. Colours are the page's: only classes are named here, and no style, which the page's content
// policy refuses.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "holdfast/sim/lane_chart.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

constexpr double kGutter = 96;
constexpr double kTop = 40;
constexpr double kRow = 22;
constexpr double kBar = 16;
constexpr double kWidthWanted = 1060;  // of all columns
constexpr double kColumnMin = 7;
constexpr double kColumnMax = 30;
constexpr double kCharacter = 6.4;  // of the labels' font, on the safe side

std::string markup(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// As many characters as fit; nothing where hardly one does.
std::string fitting(std::string_view text, double width) {
  const auto room = static_cast<std::size_t>(std::max(0.0, width / kCharacter));
  if (text.size() <= room) return std::string(text);
  if (room < 3) return {};
  std::size_t bytes = room - 1;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80) --bytes;  // not within a character
  return std::string(text.substr(0, bytes)) + "\u2026";
}

std::string_view class_of(SpanKind kind) {
  constexpr std::array<std::string_view, 5> kClasses{"s-step", "s-op", "s-plan", "s-handle", "s-batch"};
  return kClasses.at(static_cast<std::size_t>(kind));
}
std::string_view class_of(ChartMarkKind kind) {
  constexpr std::array<std::string_view, 6> kClasses{"m-call", "m-failed", "m-fault", "m-event", "m-claim", "m-broken"};
  return kClasses.at(static_cast<std::size_t>(kind));
}

class Drawing {
 public:
  explicit Drawing(const LaneChart& chart) : chart_(chart) {
    const auto columns = static_cast<double>(std::max<std::size_t>(1, chart.columns.size()));
    column_ = std::clamp(kWidthWanted / columns, kColumnMin, kColumnMax);
    width_ = kGutter + columns * column_ + 8;
    height_ = kTop + static_cast<double>(chart.lanes.size()) * kRow + 4;
  }

  std::string draw(const std::string& name, const std::string& title) {
    out_ = fmt::format(
        "<svg class=\"lanes\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" "
        "aria-labelledby=\"{2}\"><title id=\"{2}\">{3}</title>\n",
        width_, height_, name, markup(title));
    axis();
    for (std::size_t i = 0; i < chart_.lanes.size(); ++i) lane(chart_.lanes[i], i);
    if (chart_.broken_at) {
      const double x = middle(*chart_.broken_at);
      out_ += fmt::format("<line class=\"broken-at\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.0f}\" y2=\"{2:.0f}\"/>\n",
                          x, kTop - 6, height_);
    }
    return out_ + "</svg>\n";
  }

 private:
  [[nodiscard]] double left(std::uint32_t column) const { return kGutter + column * column_; }
  [[nodiscard]] double middle(std::uint32_t column) const { return left(column) + column_ / 2; }

  // Above: the time wherever it changes, and the columns' numbers.
  void axis() {
    double free_from = 0;
    std::optional<Nanos> last_ns;
    for (std::uint32_t i = 0; i < chart_.columns.size(); ++i) {
      const Nanos at_ns = chart_.columns[i].at_ns;
      if (last_ns && *last_ns == at_ns) continue;
      last_ns = at_ns;
      out_ +=
          fmt::format("<line class=\"time\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"4\" y2=\"{1:.0f}\"/>", left(i), height_);
      if (left(i) < free_from) continue;
      const std::string text = virtual_time_text(at_ns);
      out_ += fmt::format("<text x=\"{:.1f}\" y=\"13\">{}</text>\n", left(i) + 3, text);
      free_from = left(i) + 9 + kCharacter * static_cast<double>(text.size());
    }
    const auto every = static_cast<std::uint32_t>(std::max(1.0, 44 / column_));
    for (std::uint32_t i = 0; i < chart_.columns.size(); ++i) {
      if ((chart_.first + i) % every != 0) continue;
      out_ += fmt::format("<text class=\"number\" x=\"{:.1f}\" y=\"29\">{}</text>", middle(i), chart_.first + i + 1);
    }
    out_ += '\n';
  }

  void lane(const ChartLane& lane, std::size_t row) {
    const double y = kTop + static_cast<double>(row) * kRow;
    if (!lane.name.empty() && row > 0) {
      out_ += fmt::format("<line class=\"lane\" x1=\"0\" x2=\"{:.0f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", width_, y - 1,
                          y - 1);
    }
    if (!lane.name.empty()) {
      out_ += fmt::format("<text class=\"name\" x=\"2\" y=\"{:.1f}\">{}</text>\n", y + 15,
                          markup(fitting(lane.name, kGutter)));
    }
    for (const ChartSpan& span : lane.spans) bar(span, y);
    for (const ChartMark& mark : lane.marks) draw_mark(mark, y, !lane.spans.empty());
  }

  void bar(const ChartSpan& span, double y) {
    const double x = left(span.first);
    const double width = left(span.last + 1) - x;
    const std::string_view before = span.begun_before ? "\u2190 " : "";
    const std::string label = fitting(fmt::format("{}{}", before, printable(span.label)), width - 4);
    std::string tip = span.label;
    if (!span.detail.empty() && span.detail != span.label) tip += ": " + span.detail;
    tip += fmt::format(" (#{}{} to {})", span.begun_before ? "before " : "", chart_.first + span.first + 1,
                       span.not_ended ? std::string("no end shown") : fmt::format("#{}", chart_.first + span.last + 1));
    out_ += fmt::format(
        "<g class=\"{}{}{}\"><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" "
        "rx=\"3\"/>",
        class_of(span.kind), span.culprit ? " culprit" : "", span.not_ended ? " open" : "", markup(tip), x + 0.5, y + 2,
        std::max(2.0, width - 1), kBar);
    if (!label.empty()) out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x + 4, y + 14, markup(label));
    out_ += "</g>\n";
  }

  // A shape of its own for each kind, so that colour is not needed to tell them apart.
  // Calls are told at the lower edge where the lane has bars, whose labels they would cross.
  void draw_mark(const ChartMark& mark, double y, bool at_bars) {
    const double x = middle(mark.column);
    const double half = std::min(5.0, column_ / 2);
    const double top = y + 3;
    const double bottom = y + 17;
    const double centre = y + 10;
    std::string shape;
    switch (mark.kind) {
      case ChartMarkKind::call:
        shape = fmt::format("M{0:.1f} {1:.1f}V{2:.1f}", x, at_bars ? bottom - 1.5 : top + 2,
                            at_bars ? y + kRow - 1 : bottom - 2);
        break;
      case ChartMarkKind::failed_call:
        shape = fmt::format("M{0:.1f} {1:.1f}L{2:.1f} {3:.1f}M{2:.1f} {1:.1f}L{0:.1f} {3:.1f}", x - half, centre - half,
                            x + half, centre + half);
        break;
      case ChartMarkKind::fault:
        shape = fmt::format("M{:.1f} {:.1f}H{:.1f}L{:.1f} {:.1f}Z", x - half - 1, top, x + half + 1, x, bottom);
        break;
      case ChartMarkKind::happening:
        shape = fmt::format("M{0:.1f} {1:.1f}L{2:.1f} {3:.1f}L{0:.1f} {4:.1f}L{5:.1f} {3:.1f}Z", x, top, x + half,
                            centre, bottom, x - half);
        break;
      case ChartMarkKind::claim:
        shape = fmt::format("M{0:.1f} {1:.1f}H{2:.1f}V{3:.1f}H{0:.1f}Z", x - half + 1, centre - half + 1, x + half - 1,
                            centre + half - 1);
        break;
      case ChartMarkKind::violation:
        shape = fmt::format("M{0:.1f} {1:.1f}L{2:.1f} {3:.1f}H{4:.1f}Z", x, top, x + half + 2, bottom, x - half - 2);
        break;
    }
    out_ += fmt::format("<g class=\"{}\"><title>{}</title><path d=\"{}\"/></g>\n", class_of(mark.kind),
                        markup(fmt::format("#{} {}: {}", chart_.first + mark.column + 1,
                                           virtual_time_text(chart_.columns[mark.column].at_ns), mark.label)),
                        shape);
  }

  const LaneChart& chart_;
  double column_ = 0;
  double width_ = 0;
  double height_ = 0;
  std::string out_;
};

}  // namespace

std::string lane_chart_svg(const LaneChart& chart, const std::string& name, const std::string& title) {
  return Drawing(chart).draw(name, title);
}

}  // namespace holdfast::sim
