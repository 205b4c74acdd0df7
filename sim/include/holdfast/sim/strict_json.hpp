// A strict reader of JSON for files from outside: bounded in bytes and depth, exact about numbers, and able to name the
// place of whatever it refuses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/result.hpp"

namespace holdfast::sim {

// A JSON value. Numbers are whole; what does not fit is kept as `other_number` with its text, for the error.
struct Json {
  enum class Kind : std::uint8_t {
    null,
    boolean,
    unsigned_number,
    negative_number,
    other_number,
    string,
    array,
    object
  };
  Kind kind = Kind::null;
  bool boolean = false;
  std::uint64_t magnitude = 0;  // of a negative number: its absolute value
  std::string text;             // of a string; of another number, as it was written
  std::vector<Json> items;      // of an array; of an object, its values in order
  std::vector<std::string> keys;
};
std::string_view to_string(Json::Kind kind);

struct JsonLimits {
  std::uint64_t bytes_max = 64ULL << 20;
  std::uint32_t depth_max = 16;
  std::uint32_t values_max = 4'000'000;  // in all; about 100 bytes each while it is read
  std::uint32_t fields_max = 256;        // of one object
};

// One JSON value and nothing else but white space. Refuses duplicate keys, invalid UTF-8, trailing bytes, and whatever
// exceeds the limits, in a time and with a stack that do not depend on the depth of the input. The reason names a line
// and a column, or a path like `$.steps[3].kind`; it does not name the file.
Result<Json> parse_strict_json(std::string_view text, const JsonLimits& limits);

// Takes the fields of an object one by one and keeps the first refusal. `where` is the path of the object.
class JsonFields {
 public:
  JsonFields(const Json& object, std::string where);

  // The field, marked as known; nullptr when it is absent (a refusal if `required`).
  const Json* find(std::string_view name, bool required = false);
  // Each leaves `into` alone when the field is absent, which is a refusal if `required`.
  template <class Integer>
  void unsigned_field(std::string_view name, Integer& into, std::uint64_t max, bool required = false) {
    std::uint64_t value = into;
    read_unsigned(name, value, max, required);
    into = static_cast<Integer>(value);
  }
  void int32_field(std::string_view name, std::int32_t& into);
  void bool_field(std::string_view name, bool& into);
  void string_field(std::string_view name, std::string& into, std::size_t bytes_max, bool required = false);
  // nullptr when absent or refused.
  const Json* array_field(std::string_view name, std::size_t items_max, bool required = false);

  void refuse(std::string_view name, std::string_view reason);
  // Refuses fields that nobody took. The first refusal, or success.
  Status finish();
  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] bool ok() const { return refusal_.empty(); }

 private:
  void read_unsigned(std::string_view name, std::uint64_t& into, std::uint64_t max, bool required);

  const Json& object_;
  std::string where_;
  std::vector<bool> known_;
  std::string refusal_;
};

// An item of an array that must be a whole number in [0, max]; the refusal names `where`.
Result<std::uint64_t> unsigned_item(const Json& item, std::uint64_t max, const std::string& where);

// The text as a JSON string, quotes included; bytes that are not UTF-8 become U+FFFD.
std::string quoted_json(std::string_view text);

// An input file that is refused: "file: reason".
Error bad_input(std::string_view file, std::string_view reason);

}  // namespace holdfast::sim
