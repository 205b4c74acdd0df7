#include "holdfast/core/canonical_json.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace holdfast {
namespace {

using nlohmann::json;

Error refused(const std::string& place, std::string_view why) {
  return make_error(Errc::invalid_argument, "canonical_json", fmt::format("{}: {}", place, why));
}

bool is_continuation(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
}

// The length of the UTF-8 sequence at `at`, or 0 when there is none: cut short, overlong, a surrogate, out of range.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return 1;
  if (!is_continuation(text, at + 1)) return 0;
  const auto second = static_cast<unsigned char>(text[at + 1]);
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (!is_continuation(text, at + 2)) return 0;
  if (first == 0xe0) return second >= 0xa0 ? 3 : 0;
  if (first == 0xed) return second <= 0x9f ? 3 : 0;
  if (first > 0xe0 && first <= 0xef) return 3;
  if (!is_continuation(text, at + 3)) return 0;
  if (first == 0xf0) return second >= 0x90 ? 4 : 0;
  if (first == 0xf4) return second <= 0x8f ? 4 : 0;
  if (first > 0xf0 && first < 0xf4) return 4;
  return 0;
}

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  if (static_cast<unsigned char>(c) < 0x20) {
    out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
  } else {
    out += c;
  }
}

Status append_string(std::string& out, std::string_view text, const std::string& place) {
  out += '"';
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) return refused(place, fmt::format("byte {} is not UTF-8", at));
    if (length == 1) {
      append_escaped(out, text[at]);
    } else {
      out += text.substr(at, length);
    }
    at += length;
  }
  out += '"';
  return {};
}

// Python's repr: the shortest digits that read back, an exponent only below 1e-4 and from 1e16 on.
void append_float(std::string& out, double value) {
  std::array<char, 32> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::fabs(value), std::chars_format::scientific);
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  const std::size_t e = text.find('e');
  std::string digits;
  for (const char c : text.substr(0, e)) {
    if (c != '.') digits += c;
  }
  int exponent = 0;
  const std::size_t exponent_at = e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(text.data() + exponent_at, text.data() + text.size(), exponent);

  if (std::signbit(value)) out += '-';
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (digits.size() > 1) out += '.';
    out.append(digits, 1);
    out += fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
    return;
  }
  if (exponent < 0) {
    out += "0.";
    out.append(static_cast<std::size_t>(-exponent - 1), '0');
    out += digits;
    return;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  out.append(digits, 0, whole);
  out += '.';
  out += digits.size() > whole ? std::string_view(digits).substr(whole) : std::string_view("0");
}

Status append_value(std::string& out, const json& value, std::string& place, int depth);

Status append_array(std::string& out, const json& value, std::string& place, int depth) {
  out += '[';
  const std::size_t place_bytes = place.size();
  std::size_t index = 0;
  for (const json& element : value) {
    if (index > 0) out += ',';
    fmt::format_to(std::back_inserter(place), "[{}]", index);
    if (Status status = append_value(out, element, place, depth + 1); !status) return status;
    place.resize(place_bytes);
    ++index;
  }
  out += ']';
  return {};
}

Status append_object(std::string& out, const json& value, std::string& place, int depth) {
  out += '{';
  const std::size_t place_bytes = place.size();
  bool first = true;
  // The members are ordered by their UTF-8 bytes, which is the order of their code points.
  for (auto member = value.begin(); member != value.end(); ++member) {
    if (!first) out += ',';
    first = false;
    // Only a name that proved to be text becomes part of the place.
    if (Status status = append_string(out, member.key(), place + ", the name of a member"); !status) return status;
    place += '.';
    place += member.key();
    out += ':';
    if (Status status = append_value(out, member.value(), place, depth + 1); !status) return status;
    place.resize(place_bytes);
  }
  out += '}';
  return {};
}

Status append_value(std::string& out, const json& value, std::string& place, int depth) {
  if (depth > kCanonicalJsonMaxDepth) {
    return refused(place, fmt::format("nested deeper than {}", kCanonicalJsonMaxDepth));
  }
  switch (value.type()) {
    case json::value_t::null:
      out += "null";
      return {};
    case json::value_t::boolean:
      out += value.get<bool>() ? "true" : "false";
      return {};
    case json::value_t::number_integer:
      out += fmt::to_string(value.get<std::int64_t>());
      return {};
    case json::value_t::number_unsigned:
      out += fmt::to_string(value.get<std::uint64_t>());
      return {};
    case json::value_t::number_float: {
      const auto number = value.get<double>();
      if (!std::isfinite(number)) return refused(place, "not a finite number");
      append_float(out, number);
      return {};
    }
    case json::value_t::string:
      return append_string(out, value.get_ref<const std::string&>(), place);
    case json::value_t::array:
      return append_array(out, value, place, depth);
    case json::value_t::object:
      return append_object(out, value, place, depth);
    case json::value_t::binary:
    case json::value_t::discarded:
      break;
  }
  return refused(place, "not a JSON value");
}

}  // namespace

Result<std::string> canonical_json(const json& value) {
  std::string out;
  std::string place = "$";
  if (Status status = append_value(out, value, place, 0); !status) return std::move(status.error());
  return out;
}

}  // namespace holdfast
