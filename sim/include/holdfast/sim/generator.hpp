// Makes a trace of a seed: episodes in which something goes wrong, each biased towards one situation of the contract,
// strung together at random. The same seed and profile give the same trace on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

enum class Episode : std::uint8_t {
  write,            // a session writes chunks that nobody wrote before
  reuse,            // a session resumes on what is there and goes on
  rewrite,          // a session writes again what is there
  put_trouble,      // a put fails, and somebody wants the same node soon, or later
  leftovers,        // a put fails after some of its keys were committed
  get_trouble,      // a resume fails somewhere
  evict,            // blobs are evicted, also pinned and referenced ones, and removals fail
  store_evict,      // the owner evicts values under a ready flag
  make_room,        // least recently used blobs go
  owner_restart,    // between steps, or in the middle of a put or a get
  restart,          // a snapshot, the end of the client, and what it still knows
  death,            // the client dies in the middle of a call
  mistaken_layout,  // an engine with other sizes than its namespace was made for
  idle,             // time passes, periodic work
};
inline constexpr std::size_t kEpisodeCount = 14;

struct Ratio {
  std::uint32_t numerator = 0;
  std::uint32_t denominator = 1;
};

struct Profile {
  std::string_view name;
  std::string_view about;
  std::uint32_t episodes_min = 1;
  std::uint32_t episodes_max = 1;
  std::array<std::uint32_t, kEpisodeCount> weights{};
  bool faults = true;            // false: neither faults nor the environment's events
  Ratio stray_fault{};           // of steps that call a runtime: one more fault, anywhere in it
  Ratio choice{};                // of steps that copy: another moment or order, a late route or answer
  Ratio registration_trouble{};  // of traces
  Ratio tight_segment{};         // of traces: slots run out
  Ratio in_memory_store{};       // of traces
  bool hostile = false;          // lies as well: see lies.hpp
};

// "default", "calm", "faulty".
std::span<const Profile> profiles();
const Profile* profile_named(std::string_view name);

// A valid trace, named after seed and profile.
Trace generate(std::uint64_t seed, const Profile& profile);

}  // namespace holdfast::sim
