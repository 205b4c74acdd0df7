#include "holdfast/sim/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "holdfast/sim/invariants.hpp"

namespace holdfast::sim {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// The length of the UTF-8 sequence at the start of `text` when it is a character that XML 1.0 allows, else 0.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return 0;
  std::uint32_t code = lead & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::array<std::uint32_t, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
  const bool overlong = code < kSmallest[bytes];
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  const bool control = code < 0xA0;  // C1 controls drive terminals too
  if (overlong || surrogate || control || code > 0x10FFFF || (code & 0xFFFE) == 0xFFFE) return 0;
  return bytes;
}

// Columns on a terminal: one for each character; wide ones are not in our texts.
std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string printable(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const char c = text.front();
    std::size_t bytes = character_bytes(text);
    if (bytes == 1 && (c == '\n' || c == '\t' || (c >= 0x20 && c != 0x7F))) {
      safe += c;
    } else if (bytes > 1) {
      safe += text.substr(0, bytes);
    } else {
      safe += kReplacement;
      bytes = 1;
    }
    text.remove_prefix(bytes);
  }
  return safe;
}

std::string printable(std::string_view text, std::size_t bytes_max) {
  constexpr std::string_view kGap = "\n[...]\n";
  if (text.size() <= bytes_max) return printable(text);
  const std::size_t kept = bytes_max > kGap.size() ? bytes_max - kGap.size() : 0;
  const std::size_t head = kept * 2 / 3;
  return printable(std::string(text.substr(0, head)) + std::string(kGap) +
                   std::string(text.substr(text.size() - (kept - head))));
}

std::string kinds_in(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_hex = [&](char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); };
  std::string kinds;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(') {
      ++depth;
      if (!kinds.empty() && kinds.back() == ' ') kinds.pop_back();
    } else if (c == ')') {
      if (depth > 0) --depth;
    } else if (depth == 0 && is_digit(c)) {
      const bool hex = text.substr(i).starts_with("0x");
      if (hex) i += 2;
      while (i < text.size() && (hex ? is_hex(text[i]) : is_digit(text[i]))) ++i;
      --i;
      kinds += '#';
    } else if (depth == 0) {
      kinds += c;
    }
  }
  return kinds;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

std::string with_thousands(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, ",");
  return digits;
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string seconds_text(std::int64_t length_ns) {
  const double seconds = static_cast<double>(length_ns) / 1e9;
  if (seconds < 10) return fmt::format("{:.2f} s", seconds);
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 7200) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string step_text(std::uint32_t step) {
  return step == kDrainStep ? std::string("the drain") : fmt::format("step {}", step);
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  if (count == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", with_thousands(count), one)
                      : fmt::format("{} {}", with_thousands(count), many);
}

std::string hex_text(std::uint64_t value) { return fmt::format("{:016x}", value); }

Error refusal(std::string_view place, std::string detail) {
  return make_error(Errc::invalid_argument, place, std::move(detail));
}

std::string explain(const Error& error) {
  std::string text = error.detail.empty() ? to_string(error) : error.detail;
  const bool named = error.call.empty() || error.detail.empty() || text.starts_with(error.call);
  if (!named) text = fmt::format("{}: {}", error.call, text);
  for (const Error& cause : error.causes) text += "; because " + explain(cause);
  return printable(text);
}

std::vector<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    const bool begins = word.size() >= 2 && candidate.starts_with(word);
    if (begins || distance <= std::max<std::size_t>(2, candidate.size() / 3)) {
      ranked.emplace_back(begins ? 0 : distance, candidate);
    }
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (const auto& [distance, name] : ranked) {
    if (names.size() < 3) names.push_back(name);
  }
  return names;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::vector<std::string> names = nearest(word, candidates);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "; did you mean " : i + 1 == names.size() ? " or " : ", ";
    text += fmt::format("'{}'", names[i]);
  }
  return text.empty() ? text : text + "?";
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string lines;
  std::size_t used = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const std::size_t columns = columns_of(word);
    const bool forced = at > 0 && text[at - 1] == '\n';
    if (at > 0 && (forced || used + 1 + columns > width)) {
      lines += '\n' + std::string(indent, ' ');
      used = 0;
    } else if (at > 0) {
      lines += ' ';
      ++used;
    }
    lines += word;
    used += columns;
    at = end + 1;
  }
  return lines;
}

std::string Table::text(std::size_t indent, std::size_t width) const {
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  std::size_t before_last = indent;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) before_last += widths[i] + 2;
  const std::size_t room = width > before_last + 20 ? width - before_last : 20;

  std::string lines;
  for (const auto& row : rows_) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == columns_.size();
      const std::string pad(widths[i] > columns_of(row[i]) ? widths[i] - columns_of(row[i]) : 0, ' ');
      if (columns_[i] == Align::right) {
        line += pad + row[i];
      } else {
        line += last ? wrapped(row[i], room, before_last) : row[i] + pad;
      }
      if (!last) line += "  ";
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    lines += line + '\n';
  }
  return lines;
}

}  // namespace holdfast::sim
