// What `holdfast bench` measures. Each case is a function of Google Benchmark's that counts what it did in counters.
#pragma once

#include <benchmark/benchmark.h>

#include <span>
#include <string_view>

namespace holdfast::sim {

struct BenchCase {
  std::string_view group;  // "sim"
  std::string_view name;
  void (*run)(benchmark::State&);
};
std::span<const BenchCase> bench_cases();

// Counters: rates are per second of processor time; the others are averages.
inline constexpr const char* kCallRate = "calls/s";
inline constexpr const char* kSeedRate = "seeds/s";
inline constexpr const char* kVisits = "nodes";       // looked at or changed, per step
inline constexpr const char* kEvents = "log events";  // per seed

}  // namespace holdfast::sim
