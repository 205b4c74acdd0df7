// What `holdfast bench` measures. Each case is a function of Google Benchmark's that counts what it did in counters.
#pragma once

#include <benchmark/benchmark.h>

#include <span>
#include <string_view>
#include <vector>

namespace holdfast::sim {

struct BenchCase {
  std::string_view group;  // "sim"
  std::string_view name;
  void (*run)(benchmark::State&);
};
// All of them, group by group.
std::vector<BenchCase> bench_cases();
std::span<const BenchCase> simulation_bench_cases();
std::span<const BenchCase> store_bench_cases();

// Counters: rates are per second of processor time; the others are averages.
inline constexpr const char* kCallRate = "calls/s";
inline constexpr const char* kSeedRate = "seeds/s";
inline constexpr const char* kVisits = "nodes";       // looked at or changed, per step
inline constexpr const char* kEvents = "log events";  // per seed
inline constexpr const char* kNsAValue = "ns a value";
inline constexpr const char* kByteRate = "bytes/s";
inline constexpr const char* kBlockRate = "blocks/s";
inline constexpr const char* kSteps = "steps left";  // of the trace that was shrunk

// Cases of which ratios are told.
inline constexpr std::string_view kCoreCase = "80 values put, resumed from and evicted by the core";
inline constexpr std::string_view kByHandCase = "  the same calls of owner and device by hand";

}  // namespace holdfast::sim
