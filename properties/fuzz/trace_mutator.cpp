// Mutates a trace, mostly as the JSON that it is.
#include <nlohmann/json.hpp>
#include <vector>

#include "holdfast/sim/trace.hpp"
#include "json_mutation.hpp"

namespace holdfast::fuzz {
namespace {

template <class Enum, std::size_t kCount>
void add_names(std::vector<std::string>& words) {
  for (std::size_t i = 0; i < kCount; ++i) words.emplace_back(name_of(static_cast<Enum>(i)));
}

std::vector<std::string> names() {
  std::vector<std::string> words{"", "0", "[1]", "\"1\"", "{\"a\":1}", "1.5", "-1"};
  add_names<sim::StepKind, sim::kStepKindCount>(words);
  add_names<sim::ChoiceKind, sim::kChoiceKindCount>(words);
  add_names<sim::Call, sim::kCallCount>(words);
  add_names<sim::FaultKind, sim::kFaultKindCount>(words);
  return words;
}

}  // namespace
}  // namespace holdfast::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t bytes, std::size_t bytes_max,
                                               unsigned seed) {
  namespace fuzz = holdfast::fuzz;
  static const std::vector<std::string> words = fuzz::names();
  fuzz::Random random(seed);
  const std::size_t times = fuzz::below(random, 4);
  nlohmann::json document = nlohmann::json::parse(data, data + bytes, nullptr, false);
  if (times == 0 || document.is_discarded()) return LLVMFuzzerMutate(data, bytes, bytes_max);
  for (std::size_t i = 0; i < times; ++i) fuzz::mutate_json(document, random, words);
  return fuzz::put_text(fuzz::dump_json(document), data, bytes, bytes_max);
}
