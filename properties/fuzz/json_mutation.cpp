#include "json_mutation.hpp"

#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

namespace holdfast::fuzz {
namespace {

using nlohmann::json;

std::vector<json*> values_of(json& document) {
  std::vector<json*> values{&document};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i]->is_structured()) continue;
    for (json& inner : *values[i]) values.push_back(&inner);
  }
  return values;
}

// A copy of another value of that kind, which may be the same.
json another(const std::vector<json*>& values, json::value_t kind, Random& random) {
  std::vector<const json*> fitting;
  for (const json* value : values) {
    if (value->type() == kind) fitting.push_back(value);
  }
  return fitting.empty() ? json() : *fitting[below(random, fitting.size())];
}

json number_near(std::uint64_t number, const json& other, Random& random) {
  switch (below(random, 6)) {
    case 0:
      return number + 1;
    case 1:
      return number - 1;
    case 2:
      return other;
    case 3:
      return below(random, 8);
    case 4:
      return ~std::uint64_t{0} >> below(random, 64);
    default:
      return std::uint64_t{1} << below(random, 64);
  }
}

void mutate_array(json& array, const json& other, Random& random) {
  const std::size_t at = array.empty() ? 0 : below(random, array.size());
  const auto here = array.begin() + static_cast<std::ptrdiff_t>(at);
  if (array.empty() || below(random, 4) == 0) {
    array.insert(here, other);
    return;
  }
  switch (below(random, 3)) {
    case 0:
      array.insert(here, json(array[at]));
      return;
    case 1:
      array.erase(here);
      return;
    default:
      std::swap(array[at], array[below(random, array.size())]);
  }
}

void mutate_object(json& object, const json& other, Random& random) {
  // Members of another object say things that this one left at their defaults.
  if (other.is_object() && !other.empty() && below(random, 2) == 0) {
    const auto member = std::next(other.begin(), static_cast<std::ptrdiff_t>(below(random, other.size())));
    object[member.key()] = member.value();
    return;
  }
  if (object.empty()) return;
  object.erase(std::next(object.begin(), static_cast<std::ptrdiff_t>(below(random, object.size()))));
}

}  // namespace

void mutate_json(json& document, Random& random, std::span<const std::string> words) {
  const std::vector<json*> values = values_of(document);
  json& value = *values[below(random, values.size())];
  // Copies: what is copied may be part of what it is put into, or the other way round.
  const json other = another(values, value.type(), random);
  const json anything = *values[below(random, values.size())];
  switch (value.type()) {
    case json::value_t::number_unsigned:
    case json::value_t::number_integer:
      value = number_near(value.get<std::uint64_t>(), other, random);
      return;
    case json::value_t::boolean:
      value = !value.get<bool>();
      return;
    case json::value_t::string:
      value = words.empty() || below(random, 3) == 0 ? other : json(words[below(random, words.size())]);
      return;
    case json::value_t::array:
      mutate_array(value, anything, random);
      return;
    case json::value_t::object:
      mutate_object(value, other, random);
      return;
    default:
      value = anything;
  }
}

std::string dump_json(const json& document) { return document.dump(-1, ' ', false, json::error_handler_t::replace); }

std::size_t put_text(const std::string& text, std::uint8_t* data, std::size_t bytes, std::size_t bytes_max) {
  if (text.size() > bytes_max) return bytes;
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

}  // namespace holdfast::fuzz
