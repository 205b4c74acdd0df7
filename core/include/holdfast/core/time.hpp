// Time and clocks: everything the core knows about time comes from the Clock it is given.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>

namespace holdfast {

// Nanoseconds: an instant on the given clock, or a length of time.
using Nanos = std::int64_t;

inline constexpr Nanos kMicrosecond = 1'000;
inline constexpr Nanos kMillisecond = 1'000 * kMicrosecond;
inline constexpr Nanos kSecond = 1'000 * kMillisecond;
inline constexpr Nanos kMinute = 60 * kSecond;

// `now_ns` never goes back. It is callable from any thread.
template <class C>
concept Clock = requires(const C& clock) {
  { clock.now_ns() } -> std::same_as<Nanos>;
};

// Production: the system's monotonic clock.
struct SteadyClock {
  [[nodiscard]] Nanos now_ns() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};
static_assert(Clock<SteadyClock>);

}  // namespace holdfast
