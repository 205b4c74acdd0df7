// Mutates a request trace, mostly one of its lines as the JSON that it is.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "json_mutation.hpp"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t bytes, std::size_t bytes_max,
                                               unsigned seed) {
  namespace fuzz = holdfast::fuzz;
  fuzz::Random random(seed);
  const std::string_view text(reinterpret_cast<const char*>(data), bytes);
  if (text.empty() || fuzz::below(random, 4) == 0) return LLVMFuzzerMutate(data, bytes, bytes_max);
  // The line around some byte: longer ones are changed more often.
  const std::size_t inside = fuzz::below(random, bytes);
  const std::size_t begin = text.substr(0, inside).rfind('\n') + 1;
  const std::size_t end = std::min(text.find('\n', inside), text.size());
  nlohmann::json line = nlohmann::json::parse(text.substr(begin, std::max(begin, end) - begin), nullptr, false);
  if (line.is_discarded()) return LLVMFuzzerMutate(data, bytes, bytes_max);
  fuzz::mutate_json(line, random, {});
  std::string changed(text.substr(0, begin));
  changed += fuzz::dump_json(line);
  changed += text.substr(end);
  return fuzz::put_text(changed, data, bytes, bytes_max);
}
