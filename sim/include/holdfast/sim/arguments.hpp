// What is said on the command line and in the environment, as values. A wrong one is bad input that says what would
// have been right.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/core/result.hpp"
#include "holdfast/core/time.hpp"

namespace holdfast::sim {

struct SeedRange {
  std::uint64_t first = 1;
  std::uint64_t last = 0;  // inclusive
  [[nodiscard]] std::uint64_t count() const { return last - first + 1; }
  friend bool operator==(const SeedRange&, const SeedRange&) = default;
};
// "17-40", or "100" for 1-100. Seeds count from 1.
Result<SeedRange> parse_seeds(std::string_view option, std::string_view text);

// A whole number within the bounds.
Result<std::uint64_t> parse_count(std::string_view option, std::string_view text, std::uint64_t min, std::uint64_t max);
// "250ms", "10s", "1.5h": always with a unit; more than 0.
Result<Nanos> parse_duration(std::string_view option, std::string_view text);

struct Share {
  std::uint64_t numerator = 0;
  std::uint64_t denominator = 1;
  friend bool operator==(const Share&, const Share&) = default;
};
// "1/20", "5%", "0", "1": from 0 to 1.
Result<Share> parse_share(std::string_view option, std::string_view text);

// Bytes, or a share of a footprint that is only known once the input was read.
struct Capacity {
  std::uint64_t bytes = 0;
  std::optional<Share> share;
};
// "1048576", "10GiB", "25%"; more than 0.
Result<Capacity> parse_capacity(std::string_view option, std::string_view text);

struct Shard {
  std::uint64_t index = 1;  // from 1
  std::uint64_t count = 1;
  std::string from;  // the option or variable that said so; empty = nobody did
};
// "2/8": the second of eight.
Result<Shard> parse_shard(std::string_view option, std::string_view text);

// Reads a variable of the environment.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment process_environment();
// What a batch system said of this task: Slurm's array, a Kubernetes indexed job, TEST_* (Bazel), GTEST_*.
Result<Shard> shard_from_environment(const Environment& environment);

// The shard's own seeds: blocks that together cover `all` once. Nothing when there are more shards than seeds and this
// one has none.
std::optional<SeedRange> seeds_of_shard(const SeedRange& all, const Shard& shard);

}  // namespace holdfast::sim
