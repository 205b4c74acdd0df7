#include "holdfast/sim/strict_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace holdfast::sim {
namespace {

// Names `text` in an error without letting a hostile file decide how long or how odd the error is.
std::string shown(std::string_view text) {
  constexpr std::size_t kShownMax = 48;
  std::string quoted = quoted_json(text.substr(0, kShownMax));
  if (text.size() > kShownMax) quoted.insert(quoted.size() - 1, "...");
  return quoted;
}

std::string line_and_column(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, std::min(position, text.size()));
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::size_t last_newline = before.rfind('\n');
  const std::size_t column = last_newline == std::string_view::npos ? before.size() : before.size() - last_newline - 1;
  return fmt::format("line {}, column {}", line, std::max<std::size_t>(column, 1));
}

// Builds the value while it reads. The library's parser keeps its own stack, so the input's depth is bounded here.
class Builder {
 public:
  Builder(std::string_view text, const JsonLimits& limits) : text_(text), limits_(limits) {}

  bool null() { return add(Json{}); }
  bool boolean(bool value) {
    Json json;
    json.kind = Json::Kind::boolean;
    json.boolean = value;
    return add(std::move(json));
  }
  bool number_unsigned(std::uint64_t value) {
    Json json;
    json.kind = Json::Kind::unsigned_number;
    json.magnitude = value;
    return add(std::move(json));
  }
  bool number_integer(std::int64_t value) {
    Json json;
    json.kind = Json::Kind::negative_number;
    json.magnitude = value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
    return add(std::move(json));
  }
  bool number_float(double /*value*/, const std::string& text) {
    Json json;
    json.kind = Json::Kind::other_number;
    json.text = text;
    return add(std::move(json));
  }
  bool string(std::string& text) {
    Json json;
    json.kind = Json::Kind::string;
    json.text = std::move(text);
    return add(std::move(json));
  }
  bool binary(std::vector<std::uint8_t>& /*bytes*/) { return refuse(fmt::format("{}: binary value", path())); }
  bool start_object(std::size_t /*size*/) { return open(Json::Kind::object); }
  bool start_array(std::size_t /*size*/) { return open(Json::Kind::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& text) {
    std::vector<std::string>& keys = open_.back().keys;
    if (keys.size() >= limits_.fields_max)
      return refuse(fmt::format("{}: more than {} fields", path_of_open(), limits_.fields_max));
    if (std::ranges::find(keys, text) != keys.end())
      return refuse(fmt::format("{}: duplicate key {}", path_of_open(), shown(text)));
    keys.push_back(std::move(text));
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/, const nlohmann::detail::exception& error) {
    std::string_view reason = error.what();
    // The library's own prefix tells the position once more.
    if (const std::size_t colon = reason.find(": "); colon != std::string_view::npos) reason.remove_prefix(colon + 2);
    std::string clean;
    for (const char c : reason.substr(0, 200)) clean += c >= ' ' && c <= '~' ? c : '?';
    return refuse(fmt::format("{}: {}", line_and_column(text_, position), clean));
  }

  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  Json take() { return std::move(root_); }

 private:
  bool open(Json::Kind kind) {
    if (open_.size() >= limits_.depth_max)
      return refuse(fmt::format("{}: nested deeper than {}", path(), limits_.depth_max));
    open_.emplace_back();
    open_.back().kind = kind;
    return true;
  }
  bool close() {
    Json json = std::move(open_.back());
    open_.pop_back();
    return add(std::move(json));
  }
  bool add(Json json) {
    if (++values_ > limits_.values_max)
      return refuse(fmt::format("{}: more than {} values", path(), limits_.values_max));
    if (open_.empty())
      root_ = std::move(json);
    else
      open_.back().items.push_back(std::move(json));
    return true;
  }
  bool refuse(std::string reason) {
    if (refusal_.empty()) refusal_ = std::move(reason);
    return false;
  }
  [[nodiscard]] static std::string next_in(const Json& json) {
    if (json.kind == Json::Kind::array) return fmt::format("[{}]", json.items.size());
    if (json.keys.empty()) return {};
    std::string key = shown(json.keys.back());
    std::erase(key, '"');
    return "." + key;
  }
  // Of the innermost array or object.
  [[nodiscard]] std::string path_of_open() const {
    std::string text = "$";
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) text += next_in(open_[i]);
    return text;
  }
  // Of the value that comes next.
  [[nodiscard]] std::string path() const { return open_.empty() ? "$" : path_of_open() + next_in(open_.back()); }

  std::string_view text_;
  JsonLimits limits_;
  std::vector<Json> open_;
  std::uint32_t values_ = 0;
  Json root_;
  std::string refusal_;
};

std::string not_a(std::string_view wanted, const Json& json) {
  if (json.kind == Json::Kind::other_number) return fmt::format("{} is no {}", shown(json.text), wanted);
  return fmt::format("is {}, not {}", to_string(json.kind), wanted);
}

std::string unsigned_refusal(const Json& json, std::uint64_t max) {
  if (json.kind != Json::Kind::unsigned_number) return not_a(fmt::format("whole number from 0 to {}", max), json);
  if (json.magnitude > max) return fmt::format("{} is above {}", json.magnitude, max);
  return {};
}

}  // namespace

std::string_view to_string(Json::Kind kind) {
  switch (kind) {
    case Json::Kind::null:
      return "null";
    case Json::Kind::boolean:
      return "a boolean";
    case Json::Kind::unsigned_number:
      return "a number";
    case Json::Kind::negative_number:
      return "a negative number";
    case Json::Kind::other_number:
      return "a fraction or too large a number";
    case Json::Kind::string:
      return "a string";
    case Json::Kind::array:
      return "an array";
    case Json::Kind::object:
      return "an object";
  }
  return "?";
}

Result<Json> parse_strict_json(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes_max)
    return make_error(Errc::invalid_argument, "read",
                      fmt::format("{} bytes are more than the {} allowed", text.size(), limits.bytes_max));
  // The library skips a byte order mark; JSON between systems has none.
  if (text.starts_with("\xEF\xBB\xBF"))
    return make_error(Errc::invalid_argument, "read", "line 1, column 1: byte order mark");
  Builder builder(text, limits);
  const bool parsed = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  if (!parsed) return make_error(Errc::invalid_argument, "read", builder.refusal());
  return builder.take();
}

JsonFields::JsonFields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (object_.kind != Json::Kind::object) refusal_ = fmt::format("{}: {}", where_, not_a("an object", object_));
  known_.resize(object_.keys.size());
}

const Json* JsonFields::find(std::string_view name, bool required) {
  for (std::size_t i = 0; i < object_.keys.size(); ++i) {
    if (object_.keys[i] != name) continue;
    known_[i] = true;
    return &object_.items[i];
  }
  if (required) refuse(name, "is missing");
  return nullptr;
}

void JsonFields::read_unsigned(std::string_view name, std::uint64_t& into, std::uint64_t max, bool required) {
  const Json* json = find(name, required);
  if (json == nullptr) return;
  if (std::string reason = unsigned_refusal(*json, max); !reason.empty()) return refuse(name, reason);
  into = json->magnitude;
}

void JsonFields::int32_field(std::string_view name, std::int32_t& into) {
  constexpr std::uint64_t kMax = 0x7FFF'FFFF;
  const Json* json = find(name);
  if (json == nullptr) return;
  const bool negative = json->kind == Json::Kind::negative_number;
  if ((!negative && json->kind != Json::Kind::unsigned_number) || json->magnitude > kMax)
    return refuse(name, not_a("whole number of 32 bits", *json));
  const auto magnitude = static_cast<std::int32_t>(json->magnitude);
  into = negative ? -magnitude : magnitude;
}

void JsonFields::bool_field(std::string_view name, bool& into) {
  const Json* json = find(name);
  if (json == nullptr) return;
  if (json->kind != Json::Kind::boolean) return refuse(name, not_a("a boolean", *json));
  into = json->boolean;
}

void JsonFields::string_field(std::string_view name, std::string& into, std::size_t bytes_max, bool required) {
  const Json* json = find(name, required);
  if (json == nullptr) return;
  if (json->kind != Json::Kind::string) return refuse(name, not_a("a string", *json));
  if (json->text.size() > bytes_max) return refuse(name, fmt::format("is longer than {} bytes", bytes_max));
  into = json->text;
}

const Json* JsonFields::array_field(std::string_view name, std::size_t items_max, bool required) {
  const Json* json = find(name, required);
  if (json == nullptr) return nullptr;
  if (json->kind != Json::Kind::array) {
    refuse(name, not_a("an array", *json));
    return nullptr;
  }
  if (json->items.size() > items_max) {
    refuse(name, fmt::format("has {} items, more than {}", json->items.size(), items_max));
    return nullptr;
  }
  return json;
}

void JsonFields::refuse(std::string_view name, std::string_view reason) {
  if (refusal_.empty()) refusal_ = fmt::format("{}.{}: {}", where_, name, reason);
}

Status JsonFields::finish() {
  for (std::size_t i = 0; refusal_.empty() && i < known_.size(); ++i)
    if (!known_[i]) refusal_ = fmt::format("{}: unknown field {}", where_, shown(object_.keys[i]));
  if (!refusal_.empty()) return make_error(Errc::invalid_argument, "read", refusal_);
  return {};
}

Result<std::uint64_t> unsigned_item(const Json& item, std::uint64_t max, const std::string& where) {
  if (const std::string reason = unsigned_refusal(item, max); !reason.empty())
    return make_error(Errc::invalid_argument, "read", fmt::format("{}: {}", where, reason));
  return item.magnitude;
}

std::string quoted_json(std::string_view text) {
  const auto plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (std::ranges::all_of(text, plain)) return fmt::format("\"{}\"", text);
  return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Error bad_input(std::string_view file, std::string_view reason) {
  return make_error(Errc::invalid_argument, "read", fmt::format("{}: {}", file, reason));
}

}  // namespace holdfast::sim
