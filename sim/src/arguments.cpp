#include "holdfast/sim/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <system_error>
#include <utility>

#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kSeedMax = std::numeric_limits<std::uint64_t>::max() / 2;

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// Digits with at most one point; no sign, no exponent, no locale.
std::optional<double> plain_decimal(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::pair<std::string_view, std::string_view> number_and_unit(std::string_view text) {
  const std::size_t end = text.find_first_not_of("0123456789.");
  if (end == std::string_view::npos) return {text, {}};
  return {text.substr(0, end), text.substr(end)};
}

Error wants(std::string_view option, std::string_view what, std::string_view text) {
  return refusal(option, fmt::format("wants {}, not '{}'", what, text));
}

}  // namespace

Result<SeedRange> parse_seeds(std::string_view option, std::string_view text) {
  const std::string what = "seeds like 1-1000, or a number of them like 1000; seeds count from 1";
  const std::size_t dash = text.find('-');
  SeedRange range;
  if (dash == std::string_view::npos) {
    const auto count = whole_number(text);
    if (!count || *count == 0 || *count > kSeedMax) return wants(option, what, text);
    range.last = *count;
    return range;
  }
  const auto first = whole_number(text.substr(0, dash));
  const auto last = whole_number(text.substr(dash + 1));
  if (!first || !last || *first == 0 || *last > kSeedMax) return wants(option, what, text);
  if (*last < *first) {
    return refusal(option, fmt::format("ends before it begins: '{}'; say {}-{}", text, *last, *first));
  }
  range.first = *first;
  range.last = *last;
  return range;
}

Result<std::uint64_t> parse_count(std::string_view option, std::string_view text, std::uint64_t min,
                                  std::uint64_t max) {
  const auto value = whole_number(text);
  if (!value || *value < min || *value > max) {
    return wants(option, fmt::format("a whole number from {} to {}", min, max), text);
  }
  return *value;
}

Result<Nanos> parse_duration(std::string_view option, std::string_view text) {
  const std::string what = "a length of time with its unit, like 250ms, 60s, 10m or 2h";
  const auto [number, unit] = number_and_unit(text);
  const auto value = plain_decimal(number);
  constexpr std::array<std::pair<std::string_view, Nanos>, 4> kUnits{
      {{"ms", kMillisecond}, {"s", kSecond}, {"m", kMinute}, {"h", 60 * kMinute}}};
  for (const auto& [name, scale_ns] : kUnits) {
    if (!value || unit != name) continue;
    const double length_ns = *value * static_cast<double>(scale_ns);
    if (length_ns < 1 || length_ns > 9e18) break;
    return static_cast<Nanos>(length_ns);
  }
  return wants(option, what, text);
}

Result<Share> parse_share(std::string_view option, std::string_view text) {
  const std::string what = "a share like 1/20, 5%, 0 or 1";
  Share share;
  const std::size_t slash = text.find('/');
  if (text.ends_with('%')) {
    const auto percent = plain_decimal(text.substr(0, text.size() - 1));
    if (!percent || *percent > 100) return wants(option, what, text);
    share = {static_cast<std::uint64_t>(std::llround(*percent * 1000)), 100'000};
    return share;
  }
  const auto numerator = whole_number(text.substr(0, slash));
  std::optional<std::uint64_t> denominator = 1;
  if (slash != std::string_view::npos) denominator = whole_number(text.substr(slash + 1));
  if (!numerator || !denominator || *denominator == 0 || *numerator > *denominator) return wants(option, what, text);
  share = {*numerator, *denominator};
  return share;
}

Result<Capacity> parse_capacity(std::string_view option, std::string_view text) {
  const std::string what = "bytes like 1048576 or 10GiB, or a share of the footprint like 25%; more than 0";
  Capacity capacity;
  if (text.ends_with('%')) {
    auto share = parse_share(option, text);
    if (!share || share->numerator == 0) return wants(option, what, text);
    capacity.share = *share;
    return capacity;
  }
  const auto [number, unit] = number_and_unit(text);
  const auto value = plain_decimal(number);
  constexpr std::array<std::pair<std::string_view, unsigned>, 6> kUnits{
      {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}}};
  for (const auto& [name, shift] : kUnits) {
    if (!value || unit != name) continue;
    const double bytes = *value * static_cast<double>(1ULL << shift);
    if (bytes < 1 || bytes > 9e18) break;
    capacity.bytes = static_cast<std::uint64_t>(bytes);
    return capacity;
  }
  return wants(option, what, text);
}

Result<Shard> parse_shard(std::string_view option, std::string_view text) {
  const std::string what = "I/N like 2/8, the second of eight";
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return wants(option, what, text);
  const auto index = whole_number(text.substr(0, slash));
  const auto count = whole_number(text.substr(slash + 1));
  if (!index || !count) return wants(option, what, text);
  if (*index == 0 || *index > *count) {
    return refusal(option, fmt::format("'{}' names no shard; with N of them, I goes from 1 to N", text));
  }
  return Shard{*index, *count, std::string(option)};
}

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
}

Result<Shard> shard_from_environment(const Environment& environment) {
  struct Source {
    const char* index;
    const char* count;
    const char* first;  // the variable of the lowest index, where it is not 0
    const char* step;
  };
  constexpr std::array<Source, 4> kSources{{
      {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP"},
      {"JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", nullptr, nullptr},
      {"TEST_SHARD_INDEX", "TEST_TOTAL_SHARDS", nullptr, nullptr},
      {"GTEST_SHARD_INDEX", "GTEST_TOTAL_SHARDS", nullptr, nullptr},
  }};
  constexpr std::string_view kRemedy = "; --shard I/N overrides it, --shard 1/1 runs everything here";
  for (const Source& source : kSources) {
    const auto index_text = environment(source.index);
    if (!index_text) continue;
    const auto number = [&](const char* name, std::uint64_t otherwise) -> std::optional<std::uint64_t> {
      const auto text = name == nullptr ? std::nullopt : environment(name);
      return text ? whole_number(*text) : std::optional(otherwise);
    };
    const auto count_text = environment(source.count);
    if (!count_text) {
      return refusal(source.index,
                     fmt::format("is set, but {} is not: how many shards are there?{}", source.count, kRemedy));
    }
    const auto index = whole_number(*index_text);
    const auto count = whole_number(*count_text);
    const auto first = number(source.first, 0);
    const auto step = number(source.step, 1);
    if (!index || !count || !first || !step || *step == 0 || *index < *first || (*index - *first) / *step >= *count ||
        (*index - *first) % *step != 0) {
      return refusal(source.index,
                     fmt::format("{} of {}={} is no shard{}", *index_text, source.count, *count_text, kRemedy));
    }
    return Shard{(*index - *first) / *step + 1, *count, source.index};
  }
  return Shard{};
}

std::optional<SeedRange> seeds_of_shard(const SeedRange& all, const Shard& shard) {
  // Whole blocks, the first `longer` of them one seed longer: no product that could overflow.
  const std::uint64_t each = all.count() / shard.count;
  const std::uint64_t longer = all.count() % shard.count;
  const std::uint64_t before = shard.index - 1;
  const std::uint64_t count = each + (before < longer ? 1 : 0);
  if (count == 0) return std::nullopt;
  SeedRange own;
  own.first = all.first + before * each + std::min(before, longer);
  own.last = own.first + count - 1;
  return own;
}

}  // namespace holdfast::sim
