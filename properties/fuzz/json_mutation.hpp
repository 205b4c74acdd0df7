// Changes JSON as JSON: bytes changed at random are mostly refused before the reader looks at what they mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <random>
#include <span>
#include <string>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t bytes, std::size_t bytes_max);

namespace holdfast::fuzz {

using Random = std::minstd_rand;

[[nodiscard]] inline std::size_t below(Random& random, std::size_t bound) { return random() % bound; }

// One value somewhere in the document: another one, another's, next to it, doubled or gone. Strings become `words` too.
void mutate_json(nlohmann::json& document, Random& random, std::span<const std::string> words);

// The text on one line; what is not UTF-8 is replaced.
[[nodiscard]] std::string dump_json(const nlohmann::json& document);

// Replaces the input where the text fits. Returns the input's new length.
[[nodiscard]] std::size_t put_text(const std::string& text, std::uint8_t* data, std::size_t bytes,
                                   std::size_t bytes_max);

}  // namespace holdfast::fuzz
