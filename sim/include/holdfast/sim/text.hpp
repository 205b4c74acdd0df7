// Text for people: what reaches a terminal, a report or an XML file is made harmless and readable here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/result.hpp"

namespace holdfast::sim {

inline constexpr std::size_t kTextWidth = 100;

// Valid UTF-8 without control characters, except newline and tab: safe on a terminal and in XML 1.0. What is not UTF-8
// or not a character becomes U+FFFD.
std::string printable(std::string_view text);
// As printable, at most `bytes_max` long: the middle gives way to "[...]".
std::string printable(std::string_view text, std::size_t bytes_max);
// The text without what differs from case to case: numbers become "#", what stands in brackets goes.
std::string kinds_in(std::string_view text);
// The same text as one word of a POSIX shell.
std::string shell_word(std::string_view text);

std::string with_thousands(std::uint64_t value);   // "1,234,567"
std::string bytes_text(std::uint64_t bytes);       // "1.5 GiB"
std::string seconds_text(std::int64_t length_ns);  // "1.23 s", "4 min 05 s"
std::string hex_text(std::uint64_t value);         // 16 digits
std::string step_text(std::uint32_t step);         // "step 3", "the drain"
// "1 copy", "1,234 copies"; `many` is by default `one` and an s.
std::string counted(std::uint64_t count, std::string_view one, std::string_view many = {});

// Of bad usage or bad input: what is wrong, where, and what to do. `place` is the option or the file.
[[nodiscard]] Error refusal(std::string_view place, std::string detail);
// One line for people: the detail and its causes, without our own code names.
std::string explain(const Error& error);

// At most three of `candidates` that one might have meant by `word`, nearest first.
std::vector<std::string> nearest(std::string_view word, std::span<const std::string> candidates);
// "; did you mean 'a' or 'b'?", or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

// Columns aligned by spaces. The last column wraps within the width.
class Table {
 public:
  enum class Align : std::uint8_t { left, right };
  explicit Table(std::vector<Align> columns) : columns_(std::move(columns)) {}

  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // Each row on lines of its own, after `indent` spaces.
  [[nodiscard]] std::string text(std::size_t indent = 0, std::size_t width = kTextWidth) const;

 private:
  std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// `text` broken at spaces so that no line is longer than `width`; a longer word stays whole. Later lines are indented.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace holdfast::sim
